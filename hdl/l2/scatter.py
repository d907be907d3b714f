"""The store pipe's first half: rows of the tile file become beats, and bursts of them."""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ..config import Config
from ..interfaces import ReadPort, ldst_uop, tile_row
from .buffer import StreamBuffer, TurnBuffer
from .shift import beats_of, bytes_from, bytes_upto, bytes_wrapped, rotate_left

__all__ = ["Scatter", "write_beat", "write_burst"]


def write_beat(cfg: Config) -> data.StructLayout:
    """A beat of a write burst."""
    return data.StructLayout({"data": cfg.bus_bits, "strb": cfg.bus_bytes, "last": 1})


def write_burst(cfg: Config) -> data.StructLayout:
    """A write request without its id: number of its first beat in memory, beats - 1, fullline."""
    return data.StructLayout(
        {"beat": cfg.addr_bits - cfg.bus_bytes_log2, "len": cfg.len_bits, "fullline": 1}
    )


class Scatter(wiring.Component):
    """Reads rows and cuts them into beats; the bytes that two rows put into one beat are joined.

    Never stalls after a read: a row is read only when there is room for all of its beats, and
    when the row before will be cut up by the time its data come.

    Parameters
    ----------
    room : beats that fit behind this part; at least twice those of a line.

    Members
    -------
    uops : parts of rows.
    read : rows of the tile file.
    reading{0,1}, reading_tile{0,1} : a uop is held whose row is still to be read; first, second.
    beat_en, beat : the next beat.
    burst_en, burst : the burst that ends with this beat.
    room_back : one beat leaves what is behind.
    idle : nothing is held here or behind.

    Latency: UOP_TO_READ cycles from accepting a uop to the offered read, `READ_TO_BEAT` from the
    granted read to its first beat, of which `Config.read_latency` (here 1) are the tile file's.
    Throughput: one beat and one part a cycle.
    """

    UOP_TO_READ = StreamBuffer.LATENCY
    READ_TO_BEAT = 2

    def __init__(self, cfg: Config, *, room: int):
        self.cfg = cfg
        self.room = room
        super().__init__(
            {
                "uops": In(stream.Signature(ldst_uop(cfg))),
                "read": Out(ReadPort(tile_row(cfg), cfg.row_bits)),
                "reading0": Out(1),
                "reading_tile0": Out(cfg.tile_bits),
                "reading1": Out(1),
                "reading_tile1": Out(cfg.tile_bits),
                "beat_en": Out(1),
                "beat": Out(write_beat(cfg)),
                "burst_en": Out(1),
                "burst": Out(write_burst(cfg)),
                "room_back": In(1),
                "idle": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        cfg = self.cfg
        bus_bytes = cfg.bus_bytes
        lanes = cfg.row_bytes // bus_bytes  # beats of a row
        plan_layout = data.StructLayout(
            {
                "beat": cfg.addr_bits - cfg.bus_bytes_log2,  # number of the first in memory
                "offset": cfg.bus_bytes_log2,  # byte of a beat where the row starts
                "start": cfg.bus_bytes_log2,  # byte of the first beat where the part starts
                "end": cfg.bus_bytes_log2,  # byte of the last beat where it ends
                "at": lanes.bit_length(),  # first beat, counted from the row's start
                "stop": lanes.bit_length(),  # last beat to cut
                "holds": 1,  # the bytes of the last beat wait for the next row's
                "silent": 1,  # there is no other beat
                "half": 1,
                "last": cfg.row_bytes_log2,  # byte of the row where the part ends
                "more": 1,
            }
        )

        # -- the part, waiting for its read --------------------------------------------------
        # What is made of a part is known before it waits, so that its read is offered from
        # registers. Whether it is granted is known late in the cycle, so of all that is known only
        # the row's address waits for that.
        wait_layout = data.StructLayout(
            {
                "plan": plan_layout,
                "steps": lanes.bit_length(),  # cycles to cut it, less one
                "beats": (lanes + 1).bit_length(),
            }
        )
        read_layout = data.StructLayout({"addr": tile_row(cfg), "passes": 1})
        m.submodules.reads = reads = StreamBuffer(read_layout)
        m.submodules.uops = uops = TurnBuffer(wait_layout)
        uop = self.uops.payload
        beats = beats_of(m, cfg, uop)
        plan = uops.i.payload.plan
        holds = Signal()
        silent = Signal()
        stop = Signal.like(beats.last)
        steps = Signal.like(beats.first)
        m.d.comb += [
            holds.eq(uop.more & (beats.last == lanes)),
            silent.eq(holds & (beats.first == beats.last)),
            stop.eq(beats.last - (holds & ~silent)),
            steps.eq(stop - beats.first),
            plan.beat.eq(uop.addr[cfg.bus_bytes_log2 :]),
            plan.offset.eq(beats.offset),
            plan.start.eq(uop.addr[: cfg.bus_bytes_log2]),
            plan.end.eq(beats.offset + uop.last),
            plan.at.eq(beats.first),
            plan.stop.eq(stop),
            plan.holds.eq(holds),
            plan.silent.eq(silent),
            plan.half.eq(uop.half),
            plan.last.eq(uop.last),
            plan.more.eq(uop.more),
            uops.i.payload.steps.eq(steps),
            uops.i.payload.beats.eq(Mux(silent, 0, steps + 1)),
            reads.i.payload.addr.tile.eq(uop.tile),
            reads.i.payload.addr.row.eq(uop.row),
            # A part without a beat passes by the register, beside the beats of the row before. With
            # one beat a row that would save no cycle: each part needs a read of its own.
            reads.i.payload.passes.eq(silent if lanes > 1 else 0),
            # Both hold the same uops.
            reads.i.valid.eq(self.uops.valid),
            uops.i.valid.eq(self.uops.valid),
            self.uops.ready.eq(reads.i.ready),
        ]
        first = uops.o.payload
        addr, passes = reads.o.payload.addr, reads.o.payload.passes
        offers = Signal()
        granted = Signal()
        m.d.comb += [
            self.read.valid.eq(offers),
            self.read.addr.eq(addr),
            granted.eq(offers & self.read.ready),
            reads.o.ready.eq(granted),
            uops.o.ready.eq(granted),
            self.reading0.eq(reads.o.valid),
            self.reading_tile0.eq(addr.tile),
            self.reading1.eq(reads.spare_valid),
            self.reading_tile1.eq(reads.spare.addr.tile),
        ]

        # Whether the next cycle's part may be read then: with this cycle's grant, and without.
        free = Signal(range(self.room + 1), init=self.room)
        wait = Signal.like(steps)  # cycles until the row before leaves its register early enough
        room_back = Signal()
        most = min(lanes + 1, cfg.beats_per_line)
        left = Signal.like(free)
        after = Signal.like(free)
        comes = Signal()
        comes_passing = Signal()
        m.d.comb += [
            left.eq(free + room_back),
            after.eq(left - first.beats),
            comes.eq(reads.spare_valid | self.uops.valid),
            comes_passing.eq(Mux(reads.spare_valid, reads.spare.passes, reads.i.payload.passes)),
        ]
        early = wait <= 1
        all_left = Signal(init=1)  # as `free` says, all is free
        m.d.sync += [room_back.eq(self.room_back), all_left.eq(left == self.room)]
        with m.If(granted):
            m.d.sync += [
                free.eq(after),
                all_left.eq(0),  # or not until the part that this one promised has been read
                offers.eq(
                    comes & (comes_passing | Mux(passes, early, first.steps == 0)) & (after >= most)
                ),
            ]
        with m.Elif(reads.o.valid):
            m.d.sync += [free.eq(left), offers.eq((passes | early) & (left >= most))]
        with m.Else():
            m.d.sync += [free.eq(left), offers.eq(comes & (comes_passing | early) & (left >= most))]
        with m.If(granted & ~passes):
            m.d.sync += wait.eq(first.steps)
        with m.Elif(wait != 0):
            m.d.sync += wait.eq(wait - 1)

        # -- its data arrive, and are cut up beat by beat ------------------------------------
        arrives, coming = granted, first.plan
        for stage in range(cfg.read_latency):
            before = arrives, coming
            arrives = Signal(name=f"arrives{stage}")
            coming = Signal(plan_layout, name=f"coming{stage}", reset_less=True)
            m.d.sync += [arrives.eq(before[0]), coming.eq(before[1])]
        passing = Signal()
        if lanes > 1:
            m.d.comb += passing.eq(arrives & coming.silent)

        # A spare nibble at the end of packed elements is stored as zero.
        upto_last = bytes_upto(coming.last, cfg.row_bytes)
        spare = Signal(cfg.row_bytes)
        arrived = Signal(cfg.row_bits)
        m.d.comb += [
            spare.eq(Mux(coming.half, upto_last & ~(upto_last >> 1), 0)),
            arrived.eq(self.read.data & ~Cat(Cat(Const(0, 4), bit.replicate(4)) for bit in spare)),
        ]

        valid = Signal()
        part = Signal(plan_layout, reset_less=True)
        row = Signal(cfg.row_bits, reset_less=True)
        head = Signal(reset_less=True)  # the part's first beat
        final = Signal()
        m.d.comb += final.eq(part.at == part.stop)
        with m.If(arrives & ~passing):
            m.d.sync += [valid.eq(1), part.eq(coming), row.eq(arrived), head.eq(1)]
        with m.Else():
            m.d.sync += [part.at.eq(part.at + 1), head.eq(0)]
            with m.If(final):
                m.d.sync += valid.eq(0)

        held = Signal(cfg.bus_bits, reset_less=True)  # last lane of the row before
        held_strb = Signal(bus_bytes)  # its bytes that wait for this row's first beat
        lane = [row[i * cfg.bus_bits : (i + 1) * cfg.bus_bits] for i in range(lanes)]

        def select(values, index):
            while len(values) > 1:
                pairs = zip(values[::2], values[1::2], strict=True)
                values = [Mux(index[0], one, zero) for zero, one in pairs]
                index = index[1:]
            return values[0]

        low = Signal(cfg.bus_bits)
        high = Signal(cfg.bus_bits)
        m.d.comb += [
            low.eq(select(lane, part.at)),
            high.eq(Mux(part.at == 0, held, select(lane[-1:] + lane[:-1], part.at))),
        ]
        # In the row's own order: bytes of lane `at`, and before them the end of the lane before.
        wrapped = Signal(bus_bytes, reset_less=True)
        with m.If(arrives & ~passing):
            m.d.sync += wrapped.eq(bytes_wrapped(coming.offset, bus_bytes))
        unturned = Signal(cfg.bus_bits)
        m.d.comb += unturned.eq(
            Cat(
                Mux(wrapped[byte], high.word_select(byte, 8), low.word_select(byte, 8))
                for byte in range(bus_bytes)
            )
        )

        everything = Const((1 << bus_bytes) - 1, bus_bytes)
        after = Signal(bus_bytes)
        upto = Signal(bus_bytes)
        strb = Signal(bus_bytes)
        emits = Signal()
        m.d.comb += [
            after.eq(bytes_from(part.start, bus_bytes)),
            upto.eq(bytes_upto(part.end, bus_bytes)),
            strb.eq(
                (Mux(head, after, everything) & Mux(final & ~part.holds, upto, everything))
                | Mux(head, held_strb, 0)
            ),
            emits.eq(valid & ~part.silent),
        ]
        with m.If(emits & head):
            m.d.sync += held_strb.eq(0)
        with m.If(valid & final & part.holds):
            m.d.sync += [
                held.eq(lane[-1]),
                held_strb.eq(upto & Mux(part.silent, after, everything)),
            ]
        if lanes > 1:
            with m.If(passing):
                m.d.sync += [
                    held.eq(arrived[-cfg.bus_bits :]),
                    held_strb.eq(
                        bytes_from(coming.start, bus_bytes) & bytes_upto(coming.end, bus_bytes)
                    ),
                ]

        # -- the burst -----------------------------------------------------------------------
        is_open = Signal()  # the next beat belongs to it
        burst = Signal(write_burst(cfg), reset_less=True)
        now = Signal(write_burst(cfg))
        full = Signal()
        last = final & ~part.more
        m.d.comb += [
            full.eq(strb.all()),
            now.beat.eq(Mux(is_open, burst.beat, part.beat)),
            now.len.eq(Mux(is_open, burst.len + 1, 0)),
            now.fullline.eq(full & (~is_open | burst.fullline)),
            self.beat_en.eq(emits),
            self.beat.data.eq(rotate_left(m, unturned, part.offset, name="turned")),
            self.beat.strb.eq(strb),
            self.beat.last.eq(last),
            self.burst_en.eq(emits & last),
            self.burst.beat.eq(now.beat),
            self.burst.len.eq(now.len),
            self.burst.fullline.eq(now.fullline & (now.len == cfg.beats_per_line - 1)),
        ]
        follows = Signal()  # another part was promised
        with m.If(emits):
            m.d.sync += [is_open.eq(~last), burst.eq(now)]
        with m.If(granted):
            m.d.sync += follows.eq(first.plan.more)

        # A row that was read has room set aside, or is promised a successor.
        m.d.comb += self.idle.eq(~reads.o.valid & ~follows & all_left)
        return m
