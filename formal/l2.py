"""Proofs of the L2 pipes: ids, requests and their rules, every byte once in its place."""

from __future__ import annotations

from amaranth.hdl import Array, Cat, Mux, Signal, Value

from hdl.config import Config
from hdl.interfaces import ldst_uop
from hdl.l2.buffer import StreamBuffer, TurnBuffer
from hdl.l2.ids import IdPool
from hdl.l2.load import LoadPipe
from hdl.l2.store import StorePipe

from .harness import Proof
from .storage import registers_in
from .task import Task, mutants

__all__ = ["MUTANTS", "TASKS"]


def _config(row_bits: int, ids: int) -> Config:
    """Small tiles, lines of four beats."""
    return Config(
        tiles=4,
        rows=4,
        row_bits=row_bits,
        bus_bits=64,
        line_bytes=32,
        banks=1,
        m_par=2,
        n_par=1,
        addr_bits=16,
        l2_ids=ids,
    )


# -- parts of both pipes ---------------------------------------------------------------------


def ids(cfg: Config) -> Proof:
    """The pool: an id is given to one user at a time, and is there again at once."""
    p = Proof()
    count = cfg.l2_ids
    dut = IdPool(cfg)
    with registers_in("hdl.l2.ids"):
        inside = p.add("ids", dut, free=True)
    in_use = Signal(count, name="in_use")
    comes_back = p.signal((dut.back_valid << dut.back_id)[:count], "comes_back")
    given = p.signal((dut.take << dut.give_id)[:count], "given")
    p.m.d.sync += in_use.eq((in_use & ~comes_back) | given)
    p.assume("take_what_is_given", ~dut.take | dut.give_valid)
    p.assume("return_what_is_used", (comes_back & ~in_use) == 0)
    p.check("not_in_use", (given & in_use) == 0)
    p.check("given_at_once", dut.give_valid == ~in_use.all())
    p.check("idle", dut.idle == ~in_use.any())

    # Each id is in one place: in use, never used, in one of the registers or in the queue.
    queue = inside.part("queue")
    oldest, newest = inside("oldest"), inside("newest")
    queued = (newest - oldest)[: cfg.id_bits]
    for number in range(count):
        places = [
            in_use[number],
            inside("fresh") <= number,
            inside("held_valid") & (inside("held") == number),
            inside("next_valid") & (inside("next_id") == number),
            inside("read_valid") & (inside("read_id") == number),
        ]
        for slot in range(count):
            waits = ((slot - oldest)[: cfg.id_bits] < queued) & (queue(f"word{slot}") == number)
            places.append(waits)
        places = p.signal(Cat(places), f"places{number}")
        p.check(f"one_place{number}", (places != 0) & ((places & (places - 1)) == 0))
    p.check("fresh_inside", inside("fresh") <= count)
    p.check("used", inside("used") == sum(in_use[number] for number in range(count)))
    behind = p.signal(inside("read_valid") | inside("next_valid"), "behind_held")
    p.check("queued", inside("queued") == (oldest != newest))
    p.check("queue_behind_next", behind | (oldest == newest))
    p.check("next_behind_held", inside("held_valid") | ~behind)
    p.check("new_behind_held", inside("held_valid") | (inside("fresh") == count))
    p.cover("all_used", in_use.all())
    p.cover("queue_full", (queued == count - 3) & inside("read_valid") & inside("next_valid"))
    p.cover("reused", p.past(in_use.all(), "were_all_used") & dut.take)
    return p


def buffer(kind: type[StreamBuffer] | type[TurnBuffer]) -> Proof:
    """A stream buffer holds two items, keeps their order, and offers until it is taken from."""
    p = Proof()
    dut = kind(4)
    inside = p.add("buffer", dut, free=True)
    held = [Signal(4, name=f"held{n}") for n in range(2)]
    count = Signal(range(3), name="count")
    put = p.signal(dut.i.valid & dut.i.ready, "put")
    got = p.signal(dut.o.valid & dut.o.ready, "got")
    left = p.signal(count - got, "left")
    p.m.d.sync += count.eq(left + put)
    with p.m.If(got):
        p.m.d.sync += held[0].eq(held[1])
    with p.m.If(put):
        with p.m.If(left[0]):
            p.m.d.sync += held[1].eq(dut.i.payload)
        with p.m.Else():
            p.m.d.sync += held[0].eq(dut.i.payload)
    p.check("valid", dut.o.valid == (count != 0))
    p.check("ready", dut.i.ready == (count != 2))
    p.check("first", (count == 0) | (dut.o.payload == held[0]))
    p.check("two", count <= 2)
    if isinstance(dut, StreamBuffer):
        p.check("spare", inside("spare_valid") == (count == 2))
        second = inside("spare")
    else:
        p.check("turn", inside("fills") == inside("empties") ^ count[0])
        second = Mux(inside("empties"), inside("place0"), inside("place1"))
    p.check("second", (count != 2) | (second == held[1]))
    was_full = Signal(name="was_full")
    with p.m.If(count == 2):
        p.m.d.sync += was_full.eq(1)
    p.cover("emptied", was_full & (count == 0))
    p.cover("through", put & got)
    return p


class _Uops:
    """Uops as the split counters make them (`ldst_uop`), and one of them that is watched.

    Attributes
    ----------
    stream : valid and payload of what is offered, `ready` to be driven by the pipe.
    taken : it is taken in this cycle.
    uop : the watched one, from the cycle after `now` on, while `seen`.
    """

    def __init__(self, p: Proof, cfg: Config, ready: Value, *, loads: bool):
        self.p, self.cfg = p, cfg
        layout = ldst_uop(cfg)
        self.valid = p.any(1, "uop_valid")
        self.payload = uop = p.any(layout, "uop")
        self.taken = p.signal(self.valid & ready, "uop_taken")
        stalled = p.past(self.valid & ~ready, "uop_stalled")
        before = p.past(Value.cast(uop), "uop_before")
        p.assume("uop_holds", ~stalled | (self.valid & (Value.cast(uop) == before)))
        self.last_byte = p.signal(uop.addr + uop.last - uop.first, "last_byte")
        offset = uop.addr[: cfg.line_bytes_log2]
        parts = ~uop.zero
        p.assume("uop_not_empty", uop.first <= uop.last)
        p.assume("uop_in_line", offset + (uop.last - uop.first) < cfg.line_bytes)
        p.assume("uop_half", ~uop.half | uop.tail)
        if loads:
            p.assume("uop_zero", parts | ((uop.rows != 0) & ~uop.more))
        else:
            p.assume("uop_part", parts)
        # What was promised of the next uop holds.
        p.assume("uop_more", ~uop.more | uop.tail)
        promised = Signal(name="promised")
        start = Signal(cfg.addr_bits, name="next_start")
        beat = Signal(cfg.addr_bits, name="promised_beat")
        with p.m.If(self.taken):
            p.m.d.sync += [
                promised.eq(uop.more),
                start.eq(uop.addr - uop.first + cfg.row_bytes),
                beat.eq(self.last_byte[: cfg.addr_bits] >> cfg.bus_bytes_log2),
            ]
        here = uop.addr >> cfg.bus_bytes_log2
        in_line = cfg.line_bytes_log2 - cfg.bus_bytes_log2
        kept = (
            parts
            & (uop.first == 0)
            & (uop.addr == start)
            & ((here == beat) | (here == (beat + 1)[: cfg.addr_bits]))
            & (here >> in_line == beat >> in_line)
        )
        p.assume("promise_kept", ~(self.valid & promised) | kept)
        self.promised = promised

        self.now = p.any(1, "watch")
        self.seen = Signal(name="seen")
        self.uop = Signal(layout, name="watched", reset_less=True)
        self.starts = p.signal(self.taken & self.now & ~self.seen, "watch_starts")
        with p.m.If(self.starts):
            p.m.d.sync += [self.seen.eq(1), self.uop.eq(uop)]

    def is_watched(self, condition_now: Value, condition_other: Value) -> None:
        """Assume one condition of the watched uop when it is taken, another of all others."""
        self.p.assume("watched", ~self.starts | condition_now)
        self.p.assume("others", ~self.taken | self.starts | condition_other)


def load(cfg: Config) -> Proof:
    """The load pipe with a memory that answers in any order and at any time."""
    p = Proof()
    dut = LoadPipe(cfg)
    p.add("load", dut)
    m = p.m
    u = _Uops(p, cfg, dut.uops.ready, loads=True)
    beat_log2, line_beats = cfg.bus_bytes_log2, cfg.beats_per_line
    request_ready, write_ready = p.any(1, "request_ready"), p.any(1, "write_ready")
    answers = p.any(1, "answers")
    answer_id = p.any(cfg.id_bits, "answer_id")
    answer_data = p.any(cfg.bus_bits, "answer_data")
    error = p.any(1, "answer_error")

    # -- the memory: what is out for each id -------------------------------------------------
    out = [Signal(name=f"out{n}") for n in range(cfg.l2_ids)]
    beat = [Signal(cfg.addr_bits - beat_log2, name=f"beat{n}") for n in range(cfg.l2_ids)]
    left = [Signal(cfg.len_bits, name=f"left{n}") for n in range(cfg.l2_ids)]
    is_out = p.signal(Array(out)[answer_id], "answer_is_out")
    beat_now = p.signal(Array(beat)[answer_id], "answer_beat")
    is_last = p.signal(Array(left)[answer_id] == 0, "answer_is_last")
    p.assume("answers_what_is_out", ~answers | is_out)
    m.d.comb += [
        dut.uops.valid.eq(u.valid),
        dut.uops.payload.eq(u.payload),
        dut.pad_dsa_req_rready.eq(request_ready),
        dut.pad_dsa_resp_rvalid.eq(answers),
        dut.pad_dsa_resp_rid.eq(answer_id),
        dut.pad_dsa_resp_rdata.eq(answer_data),
        dut.pad_dsa_resp_rlast.eq(is_last),
        dut.pad_dsa_resp_rerr.eq(error),
        dut.write.ready.eq(write_ready),
    ]
    accepted = p.signal(answers & dut.dsa_pad_resp_rready, "accepted")
    requested = p.signal(dut.dsa_pad_req_rvalid & request_ready, "requested")
    for n in range(cfg.l2_ids):
        with m.If(accepted & (answer_id == n)):
            m.d.sync += [beat[n].eq(beat[n] + 1), left[n].eq(left[n] - 1)]
            with m.If(is_last):
                m.d.sync += out[n].eq(0)
        with m.If(requested & (dut.dsa_pad_req_rid == n)):
            m.d.sync += [
                out[n].eq(1),
                beat[n].eq(dut.dsa_pad_req_raddr >> beat_log2),
                left[n].eq(dut.dsa_pad_req_rlen),
            ]

    # -- the request channel -----------------------------------------------------------------
    offered = dut.dsa_pad_req_rvalid
    request = Cat(offered, dut.dsa_pad_req_raddr, dut.dsa_pad_req_rlen, dut.dsa_pad_req_rid)
    stalled = p.past(offered & ~request_ready, "request_stalled")
    p.check("request_is_stable", ~stalled | (request == p.past(request, "request_before")))
    p.check("id_not_in_flight", ~offered | ~Array(out)[dut.dsa_pad_req_rid])
    first = dut.dsa_pad_req_raddr[beat_log2 : cfg.line_bytes_log2]
    p.check("request_in_line", ~offered | (first + dut.dsa_pad_req_rlen < line_beats))
    p.check("request_is_aligned", ~offered | ~dut.dsa_pad_req_raddr[:beat_log2].any())

    # -- one byte, from its address to its row -----------------------------------------------
    byte = p.const(cfg.row_bytes_log2, "byte")  # of the row
    value = p.const(8, "value")
    uop, w = u.payload, u.uop
    inside = (uop.first <= byte) & (byte <= uop.last)
    # Nothing but the watched uop writes the row.
    tile, row = p.const(cfg.tile_bits, "tile"), p.const(cfg.rows_log2, "row")
    block, in_block = row >> cfg.m_par_log2, row[: cfg.m_par_log2]
    hits = Mux(
        uop.zero,
        (uop.tile == tile)
        & (uop.row >> cfg.m_par_log2 == block)
        & uop.rows.bit_select(in_block, 1),
        (uop.tile == tile) & (uop.row == row),
    )
    u.is_watched(hits & (uop.zero | inside), ~hits)
    target = p.signal((w.addr + byte - w.first)[: cfg.addr_bits], "target")
    here = p.signal(u.seen & ~w.zero & (beat_now == target >> beat_log2), "target_answered")
    lane = target[:beat_log2]
    p.assume("memory", ~(answers & here) | error | (answer_data.word_select(lane, 8) == value))
    p.assume("no_error_there", ~(answers & here & error))
    payload = dut.write.payload
    writes = p.signal(
        dut.write.valid
        & (payload.tile == tile)
        & (payload.block == block)
        & payload.rows.bit_select(in_block, 1),
        "writes",
    )
    written = Signal(name="written")
    with m.If(writes & write_ready):
        m.d.sync += written.eq(1)
    low = value[:4]
    expected = Mux(w.zero, 0, Mux(w.half & (byte == w.last), low, value))
    p.check("written_if_asked", ~writes | u.seen)
    p.check("written_once", ~(writes & written))
    p.check("byte_is_written", ~writes | payload.mask.bit_select(byte, 1))
    p.check("value", ~writes | (payload.data.word_select(byte, 8) == expected))
    other = p.const(cfg.row_bytes_log2, "other_byte")
    touched = w.zero | ((w.first <= other) & ((other <= w.last) | w.tail))
    p.check("bytes", ~writes | (payload.mask.bit_select(other, 1) == touched))
    zeros = w.zero | (other > w.last)
    p.check("zeros", ~(writes & touched & zeros) | (payload.data.word_select(other, 8) == 0))
    p.check("idle_when_written", ~(dut.idle & u.seen) | written)
    p.check("idle_when_answered", ~dut.idle | ~Cat(out).any())
    write = Cat(dut.write.valid, Value.cast(payload))
    stalled = p.past(dut.write.valid & ~write_ready, "write_stalled")
    p.check("write_is_stable", ~stalled | (write == p.past(write, "write_before")))
    p.check("error_is_told", dut.bus_error == p.past(accepted & error, "had_error"))
    p.check("retired_is_told", dut.retired == p.past(dut.write.valid & write_ready, "had_write"))
    p.cover(
        "burst", written & (w.row == 1) & p.past(requested & (dut.dsa_pad_req_rlen == 1), "two")
    )
    p.cover("late", written & dut.idle & ~w.zero & (byte == w.last) & w.half)
    p.cover("zero_row", written & w.zero)
    p.cover("out_of_order", accepted & out[0] & out[1] & (answer_id == 1))
    return p


def store(cfg: Config) -> Proof:
    """The store pipe with a memory that takes at any time and answers in any order."""
    p = Proof()
    dut = StorePipe(cfg)
    p.add("store", dut)
    m = p.m
    u = _Uops(p, cfg, dut.uops.ready, loads=False)
    beat_log2, line_beats = cfg.bus_bytes_log2, cfg.beats_per_line
    request_ready, data_ready = p.any(1, "request_ready"), p.any(1, "data_ready")
    read_ready = p.any(1, "read_ready")
    answers, answer_id = p.any(1, "answers"), p.any(cfg.id_bits, "answer_id")
    error = p.any(1, "answer_error")
    read_data = p.any(cfg.row_bits, "read_data")
    m.d.comb += [
        dut.uops.valid.eq(u.valid),
        dut.uops.payload.eq(u.payload),
        dut.pad_dsa_req_wready.eq(request_ready),
        dut.pad_dsa_req_wdready.eq(data_ready),
        dut.pad_dsa_resp_wvalid.eq(answers),
        dut.pad_dsa_resp_wid.eq(answer_id),
        dut.pad_dsa_resp_werr.eq(error),
        dut.read.ready.eq(read_ready),
        dut.read.data.eq(read_data),
    ]
    offered, data = dut.dsa_pad_req_wvalid, dut.dsa_pad_req_wdvalid
    requested = p.signal(offered & request_ready, "requested")
    sent = p.signal(data & data_ready, "sent")

    # -- the memory: requests whose data are to come, and those to be answered ----------------
    depth = 8
    waiting = Signal(range(depth + 1), name="waiting")
    heads = [Signal(cfg.addr_bits - beat_log2, name=f"head{n}") for n in range(depth)]
    lens = [Signal(cfg.len_bits, name=f"len{n}") for n in range(depth)]
    fulls = [Signal(name=f"full{n}") for n in range(depth)]
    owners = [Signal(cfg.id_bits, name=f"owner{n}") for n in range(depth)]
    done = Signal(cfg.len_bits, name="done_beats")
    over = p.signal(sent & dut.dsa_pad_req_wlast, "burst_over")
    for queue, new in (
        (heads, dut.dsa_pad_req_waddr >> beat_log2),
        (lens, dut.dsa_pad_req_wlen),
        (fulls, dut.dsa_pad_req_fullline),
        (owners, dut.dsa_pad_req_wid),
    ):
        for n in range(depth):
            with m.If(over & (n + 1 < waiting)):
                m.d.sync += queue[n].eq(queue[n + 1] if n + 1 < depth else 0)
            with m.If(requested & (waiting - over == n)):
                m.d.sync += queue[n].eq(new)
    m.d.sync += waiting.eq(waiting + requested - over)
    with m.If(over):
        m.d.sync += done.eq(0)
    with m.Elif(sent):
        m.d.sync += done.eq(done + 1)
    in_flight = Signal(cfg.l2_ids, name="in_flight")
    whole = Signal(cfg.l2_ids, name="whole")  # all data came
    p.assume("answers_what_is_out", ~answers | (in_flight & whole).bit_select(answer_id, 1))
    m.d.sync += whole.eq(
        (whole & ~(answers << answer_id)[: cfg.l2_ids]) | (over << owners[0])[: cfg.l2_ids]
    )
    m.d.sync += in_flight.eq(
        (in_flight & ~(answers << answer_id)[: cfg.l2_ids])
        | (requested << dut.dsa_pad_req_wid)[: cfg.l2_ids]
    )

    # -- the rules of the channel --------------------------------------------------------------
    request = Cat(
        offered,
        dut.dsa_pad_req_waddr,
        dut.dsa_pad_req_wlen,
        dut.dsa_pad_req_wid,
        dut.dsa_pad_req_fullline,
    )
    stalled = p.past(offered & ~request_ready, "request_stalled")
    p.check("request_is_stable", ~stalled | (request == p.past(request, "request_before")))
    beat = Cat(data, dut.dsa_pad_req_wdata, dut.dsa_pad_req_wstrb, dut.dsa_pad_req_wlast)
    stalled = p.past(data & ~data_ready, "data_stalled")
    p.check("data_are_stable", ~stalled | (beat == p.past(beat, "data_before")))
    p.check("id_not_in_flight", ~offered | ~in_flight.bit_select(dut.dsa_pad_req_wid, 1))
    first = dut.dsa_pad_req_waddr[beat_log2 : cfg.line_bytes_log2]
    p.check("request_in_line", ~offered | (first + dut.dsa_pad_req_wlen < line_beats))
    p.check("request_is_aligned", ~offered | ~dut.dsa_pad_req_waddr[:beat_log2].any())
    p.check(
        "fullline_is_whole",
        ~(offered & dut.dsa_pad_req_fullline) | (dut.dsa_pad_req_wlen == line_beats - 1),
    )
    p.check("data_after_request", ~data | (waiting != 0))
    p.check("last_beat", ~data | (dut.dsa_pad_req_wlast == (done == lens[0])))
    p.check("fullline_writes_all", ~(data & fulls[0]) | dut.dsa_pad_req_wstrb.all())
    p.check("room_for_the_model", waiting != depth)

    # -- one byte, from its row to its address ---------------------------------------------------
    address = p.const(cfg.addr_bits, "address")
    value = p.const(8, "value")
    uop, w = u.payload, u.uop
    covers = ((address - uop.addr)[: cfg.addr_bits] <= (uop.last - uop.first)) & (
        address >= uop.addr
    )
    u.is_watched(covers, ~covers)
    byte = p.signal((w.first + address - w.addr)[: cfg.row_bytes_log2], "byte")
    granted = p.signal(dut.read.valid & read_ready, "granted")
    row_is_watched = u.seen & (dut.read.addr.tile == w.tile) & (dut.read.addr.row == w.row)
    comes = p.past(granted & row_is_watched, "row_comes")
    p.assume("row", ~comes | (read_data.word_select(byte, 8) == value))
    expected = Mux(w.half & (byte == w.last), value[:4], value)
    lane = address[:beat_log2]
    here = (heads[0] + done)[: cfg.addr_bits - beat_log2] == address >> beat_log2
    writes = p.signal(
        data & here & dut.dsa_pad_req_wstrb.bit_select(lane, 1) & (waiting != 0), "writes"
    )
    written = Signal(name="written")
    with m.If(writes & data_ready):
        m.d.sync += written.eq(1)
    p.check("written_if_asked", ~writes | u.seen)
    p.check("written_once", ~(writes & written))
    p.check("value", ~writes | (dut.dsa_pad_req_wdata.word_select(lane, 8) == expected))
    p.check("idle_when_written", ~(dut.idle & u.seen) | written)
    p.check("idle_when_answered", ~dut.idle | (~in_flight.any() & (waiting == 0)))
    p.check("error_is_told", dut.bus_error == p.past(answers & error, "had_error"))
    p.cover("fullline", sent & fulls[0] & dut.dsa_pad_req_wlast)
    p.cover("shared_beat", written & u.promised & ~dut.idle)
    p.cover("idle_again", written & dut.idle & w.half & (byte == w.last))
    p.cover("id_again", requested & p.past(in_flight[0], "used0") & (dut.dsa_pad_req_wid == 0))
    return p


_ONE_BEAT = _config(64, 2)
_TWO_BEATS = _config(128, 2)
_PARAMETERS = "4 tiles, rows 4 x {} bit, beats of 64 bit, lines of 4, {} ids"

TASKS = (
    Task(
        name="l2_ids",
        about="no id is given twice, all are given at once",
        parameters="4 ids",
        build=lambda: ids(_config(64, 4)),
        depth=2,
        cover=14,
        quick=True,
    ),
    Task(
        name="l2_buffer",
        about="order, contents and hold of a stream buffer",
        parameters="items of 4 bit",
        build=lambda: buffer(StreamBuffer),
        depth=2,
        cover=8,
        quick=True,
    ),
    Task(
        name="l2_turns",
        about="the same of the one whose places are filled in turn",
        parameters="items of 4 bit",
        build=lambda: buffer(TurnBuffer),
        depth=2,
        cover=8,
        quick=True,
    ),
    Task(
        name="l2_load",
        about="request rules; every byte once in its row; zeros; errors told",
        parameters=_PARAMETERS.format(64, 2),
        build=lambda: load(_ONE_BEAT),
        mode="bmc",
        timeout=1500,
        depth=12,
        cover=16,
    ),
    Task(
        name="l2_load_wide",
        about="the same with rows of two beats",
        parameters=_PARAMETERS.format(128, 2),
        build=lambda: load(_TWO_BEATS),
        mode="bmc",
        timeout=1500,
        depth=11,
        cover=16,
    ),
    Task(
        name="l2_store",
        about="request, fullline and last rules; every byte once; errors told",
        parameters=_PARAMETERS.format(64, 2),
        build=lambda: store(_ONE_BEAT),
        mode="bmc",
        timeout=1500,
        depth=11,
        cover=16,
    ),
    Task(
        name="l2_store_wide",
        about="the same with rows of two beats",
        parameters=_PARAMETERS.format(128, 2),
        build=lambda: store(_TWO_BEATS),
        mode="bmc",
        timeout=1500,
        depth=11,
        cover=16,
    ),
)
_GATHER = "hdl/l2/gather.py"
_MERGE = "hdl/l2/merge.py"
_SCATTER = "hdl/l2/scatter.py"
MUTANTS = (
    *mutants(
        "hdl/l2/ids.py",
        "l2_ids",
        (
            "an id comes back to two places",
            "next_read | (self.back_valid & ~held_back)",
            "next_read | self.back_valid",
        ),
        (
            "an id is read over the one that waits",
            "queued & (~read_valid | next_free)",
            "queued",
        ),
        ("the same new id again", "fresh.eq(fresh + 1)", "fresh.eq(fresh)"),
        ("idle with an id in use", "self.idle.eq(used == 0)", "self.idle.eq(used[1:] == 0)"),
    ),
    *mutants(
        "hdl/l2/buffer.py",
        "l2_buffer",
        (
            "the spare item is forgotten",
            "valid.eq(stays | self.i.valid | spare_valid)",
            "valid.eq(stays | self.i.valid)",
        ),
        (
            "an item is taken over the spare one",
            "ready.eq(~full)",
            "ready.eq(1)",
        ),
        ("the spare item is the next one", "item.eq(spare)", "item.eq(self.i.payload)"),
    ),
    *mutants(
        "hdl/l2/buffer.py",
        "l2_turns",
        (
            "a place is filled while it waits",
            "with m.If(ready & (fills == number)):",
            "with m.If(fills == number):",
        ),
        ("one place is left out", "empties ^ (self.o.ready & valid)", "empties ^ self.o.ready"),
    ),
    *mutants(
        _GATHER,
        "l2_load",
        (
            "a burst takes an id for every beat",
            "note_valid & self.give_valid & note.last & clear",
            "note_valid & self.give_valid & clear",
        ),
        ("a burst is a beat short", "burst.len.eq(burst.len + 1)", "burst.len.eq(burst.len)"),
        ("the second row of a beat is not noted", "ends.count.eq(2)", "ends.count.eq(1)"),
        (
            "a burst goes on over its end",
            "extends.eq(done & uop.more & (beats.last != row_beats))",
            "extends.eq(done & (beats.last != row_beats))",
        ),
    ),
    *mutants(
        _MERGE,
        "l2_load",
        ("the second row of a beat is not written", "leaves & (plan_ends.count == 2)", "0"),
        (
            "the end of a row keeps its old bytes",
            "bytes_from(chosen.first, row_bytes) & (upto | tail)",
            "bytes_from(chosen.first, row_bytes) & upto",
        ),
        (
            "a spare nibble is kept",
            "live & ~(chosen.half & ends_row[i])",
            "live",
        ),
        ("bytes lie as on the bus", 'rotate_right(m, raw, rows.offset, name="turned")', "raw"),
        (
            "zeros are written with what was read",
            "live = upto[i] & ~zero",
            "live = upto[i]",
        ),
    ),
    *mutants(
        "hdl/l2/load.py",
        "l2_load",
        ("an id is free at its first beat", "beat & self.pad_dsa_resp_rlast", "beat"),
        (
            "idle while beats are to come",
            "& merge.idle & ids.idle",
            "& merge.idle",
        ),
        (
            "an error counts in the last beat only",
            "beat & self.pad_dsa_resp_rerr",
            "beat & self.pad_dsa_resp_rlast & self.pad_dsa_resp_rerr",
        ),
    ),
    *mutants(
        _SCATTER,
        "l2_store",
        ("a line is full if its last beat is", "full & (~is_open | burst.fullline)", "full"),
        ("a shared beat lacks the row before", "                | Mux(head, held_strb, 0)\n", ""),
        ("a burst is one beat", "Mux(is_open, burst.len + 1, 0)", "0"),
        ("a spare nibble is stored", "Mux(coming.half, upto_last & ~(upto_last >> 1), 0)", "0"),
    ),
    *mutants(
        "hdl/l2/store.py",
        "l2_store",
        ("data before their request", "wdvalid.eq(word & allowed)", "wdvalid.eq(word)"),
        ("a request without an id", "request & ids.give_valid", "request"),
        ("idle before the answer", "scatter.idle & ~word & ids.idle", "scatter.idle & ~word"),
        ("errors of stores are not told", "self.pad_dsa_resp_wvalid & self.pad_dsa_resp_werr", "0"),
    ),
)
