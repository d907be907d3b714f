"""The load pipe's second half: beats, in any order, become writes of tile rows."""

from __future__ import annotations

from enum import IntEnum

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from ..config import Config
from ..interfaces import row_write
from .buffer import StreamBuffer
from .entry import (
    beat_ends,
    beat_parts,
    burst_rows,
    part,
    tail_part,
    write_target,
    zeroing,
)
from .shift import bytes_from, bytes_upto, bytes_wrapped, rotate_right

__all__ = ["Merge"]


class Source(IntEnum):
    """Where a nibble of a row comes from; nothing is kept yet where `PREVIOUS` or `NOW` has it."""

    ZERO = 0
    KEPT = 1
    PREVIOUS = 2
    NOW = 3


class Merge(wiring.Component):
    """Turns each beat so that its bytes lie as in the row, keeps it for its id, and writes a part
    when its last beat has come.

    Three stages before the write's buffer: `look` holds the beat while what was noted of it is
    looked up (from block RAM, whose data come late in the cycle), and turns it; `plan` decides
    what is written and where each nibble comes from; `join` picks the nibbles. Whether a beat is
    accepted is a register, as ids, notes and memory wait for it: `plan` has a
    second place.

    Members
    -------
    rvalid, rready, rid, rdata, rlast, rerr : the read response channel. `rready` depends on
        registers alone.
    note_en, note_addr, ends, parts, rows : see `Gather`.
    zero : blocks to write zeros to; they go first.
    write : one write for each part and block.
    idle : nothing is held.

    Latency: a write is offered `LATENCY` cycles after the part's last beat was accepted,
    `ZERO_LATENCY` after a block to zero was.
    Throughput: one beat and one write a cycle. A beat that ends two parts needs two writes; the
    second waits, in a register, until a beat that ends none goes by or none comes.
    """

    LATENCY = StreamBuffer.LATENCY + 3
    ZERO_LATENCY = StreamBuffer.LATENCY + 1

    def __init__(self, cfg: Config):
        self.cfg = cfg
        self.beat_bits = cfg.beats_per_line.bit_length() - 1
        super().__init__(
            {
                "rvalid": In(1),
                "rready": Out(1),
                "rid": In(cfg.id_bits),
                "rdata": In(cfg.bus_bits),
                "rlast": In(1),
                "rerr": In(1),
                "note_en": In(1),
                "note_addr": In(cfg.id_bits + self.beat_bits),
                "ends": In(beat_ends(cfg)),
                "parts": In(beat_parts(cfg)),
                "rows": In(burst_rows(cfg)),
                "zero": In(stream.Signature(zeroing(cfg))),
                "write": Out(stream.Signature(row_write(cfg))),
                "idle": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        cfg = self.cfg
        bus_bytes, row_bytes = cfg.bus_bytes, cfg.row_bytes
        lanes = row_bytes // bus_bytes  # beats of a row

        m.submodules.out = out = StreamBuffer(row_write(cfg))
        wiring.connect(m, out.o, wiring.flipped(self.write))

        # -- look: the beat, and what was noted of it -------------------------------------------
        accept = Signal()
        look_valid, plan_valid = Signal(), Signal()
        plan_ready = Signal()  # the stage behind `look` takes a beat
        look_id = Signal(cfg.id_bits, reset_less=True)
        raw = Signal(cfg.bus_bits, reset_less=True)
        accepts = Signal(init=1)  # whether `look` will be free, so known a cycle before
        m.d.comb += [
            self.rready.eq(accepts),
            accept.eq(self.rvalid & self.rready),
        ]
        with m.If(self.rready):
            m.d.sync += [
                look_valid.eq(self.rvalid),
                look_id.eq(self.rid),
                raw.eq(Mux(self.rerr, 0, self.rdata)),
            ]

        number = Signal(self.beat_bits)  # of the beat in its burst
        look_number = Signal(self.beat_bits, reset_less=True)
        if self.beat_bits:
            # Registers, as every id must start at 0 after a reset, and its beat must be known
            # before the notes are looked up.
            width = 1 << (self.beat_bits - 1).bit_length()
            counts = Signal(width << cfg.id_bits)
            m.d.comb += number.eq(counts.word_select(self.rid, width))
            with m.If(accept):
                m.d.sync += [
                    counts.word_select(self.rid, width)[: self.beat_bits].eq(
                        Mux(self.rlast, 0, number + 1)
                    ),
                    look_number.eq(number),
                ]

        def notes(name, shape, depth, en, addr, value, look):
            memory = Memory(shape=shape, depth=depth, init=[])
            m.submodules[name] = memory
            write, read = memory.write_port(), memory.read_port()
            m.d.comb += [
                write.en.eq(en),
                write.addr.eq(addr),
                write.data.eq(value),
                read.en.eq(accept),
                read.addr.eq(look),
            ]
            return read.data

        parts = notes(
            "parts",
            beat_parts(cfg),
            cfg.l2_ids << self.beat_bits,
            self.note_en,
            self.note_addr,
            self.parts,
            Cat(number, self.rid),
        )
        note_id = self.note_addr[self.beat_bits :]
        rows = notes(
            "rows", burst_rows(cfg), cfg.l2_ids, self.note_en, note_id, self.rows, self.rid
        )
        # Those of all beats of an id at once: which one it is need not be known first.
        ends_bits = beat_ends(cfg).size
        ends = Signal(beat_ends(cfg))
        every = [
            notes(
                f"ends{beat}",
                beat_ends(cfg),
                cfg.l2_ids,
                self.note_en & (self.note_addr[: self.beat_bits] == beat),
                note_id,
                self.ends,
                self.rid,
            )
            for beat in range(1 << self.beat_bits)
        ]
        m.d.comb += ends.eq(Cat(every).word_select(look_number, ends_bits))

        # The row's byte p (modulo the bus width) is the beat's byte p + offset.
        turned = rotate_right(m, raw, rows.offset, name="turned")
        at = Signal(lanes, init=1)  # beat of the row, modulo its beats, one-hot
        if lanes > 1:
            beat = Signal(range(lanes))
            m.d.comb += [
                beat.eq(rows.beat + look_number),
                at.eq(Cat(beat == lane for lane in range(lanes))),
            ]

        # -- plan: what is written, and whether the beat goes on ---------------------------------
        layout = data.StructLayout(
            {
                "id": cfg.id_bits,
                "same_id": 1,  # as the beat before
                "turned": cfg.bus_bits,
                "at": lanes,
                "ends": beat_ends(cfg),
                "ends_none": 1,  # `ends.count` is 0
                "parts": beat_parts(cfg),
                # Of lane i, the low bytes lie in the row's beat i and the high ones in beat i + 1.
                "high": bus_bytes,
            }
        )
        m.submodules.plan = plan_buffer = StreamBuffer(layout)
        ahead, plan = plan_buffer.i.payload, plan_buffer.o.payload
        last_id = Signal(cfg.id_bits, reset_less=True)
        m.d.comb += [
            plan_buffer.i.valid.eq(look_valid),
            plan_ready.eq(plan_buffer.i.ready),
            plan_valid.eq(plan_buffer.o.valid),
            ahead.id.eq(look_id),
            ahead.same_id.eq(look_id == last_id),
            ahead.turned.eq(turned),
            ahead.at.eq(at),
            ahead.ends.eq(ends),
            ahead.ends_none.eq(ends.count == 0),
            ahead.parts.eq(parts),
            ahead.high.eq(bytes_wrapped(rows.offset, bus_bytes)),
        ]
        stays = plan_valid & ~plan_buffer.o.ready
        behind = look_valid | plan_buffer.spare_valid
        m.d.sync += accepts.eq(~(stays & (~accepts | (behind & self.rvalid))))
        with m.If(look_valid & plan_ready):
            m.d.sync += last_id.eq(look_id)
        plan_id, plan_turned, plan_at = plan.id, plan.turned, plan.at
        plan_ends, plan_parts, high = plan.ends, plan.parts, plan.high
        ends_none, same_id = plan.ends_none, plan.same_id

        waiting = Signal()  # a second part, which lies in `previous` alone
        second = Signal(tail_part(cfg), reset_less=True)
        join_valid = Signal()  # a beat, which goes to `previous` and is kept
        join_writes = Signal()
        # Whether `join` will be free, so known a cycle before; one moves `join`, one is for others.
        join_ready = Signal(init=1)
        join_full = Signal()
        next_writes = Signal()  # there is something to write
        leaves = Signal()  # the beat in `plan` goes on
        held = out.spare_valid & join_writes  # no place is free
        two = out.spare_valid | join_writes  # nor is there when one more comes
        m.d.comb += [
            next_writes.eq(self.zero.valid | waiting | (plan_valid & ~ends_none)),
            self.zero.ready.eq(~join_full),
            leaves.eq(plan_valid & ~join_full & ~self.zero.valid & (~waiting | ends_none)),
            plan_buffer.o.ready.eq(leaves),
        ]
        fills = out.o.valid & ~out.o.ready & (held | (two & next_writes))
        m.d.sync += [join_ready.eq(~fills), join_full.eq(fills)]
        with m.If(leaves):
            m.d.sync += second.eq(plan_parts.two)
        with m.If(~join_full & ~self.zero.valid):
            # Only a beat that ends no part leaves beside a part that waits.
            m.d.sync += waiting.eq(leaves & (plan_ends.count == 2))

        chosen = Signal(part(cfg))
        m.d.comb += chosen.eq(plan_parts.one)
        with m.If(waiting):
            m.d.comb += [
                chosen.tile.eq(second.tile),
                chosen.row.eq(second.row),
                chosen.first.eq(0),
                chosen.last.eq(second.last),
                chosen.tail.eq(second.tail),
                chosen.half.eq(second.half),
            ]
        zero = self.zero.valid
        upto = Signal(row_bytes)
        ends_row = Signal(row_bytes)  # one-hot: the part's last byte
        follows = Signal()  # `previous` will belong to the same id
        m.d.comb += [
            upto.eq(bytes_upto(chosen.last, row_bytes)),
            ends_row.eq(upto & ~(upto >> 1)),
            follows.eq(same_id & join_valid),
        ]
        sources = []  # of each nibble
        for lane in range(lanes):
            after = (lane + 1) % lanes
            # Beat 0 of the row and the beat after its last whole one both count as 0.
            low_now = ~waiting & plan_at[lane] & (~plan_ends.began if lane == 0 else 1)
            high_now = ~waiting & plan_at[after]
            low_previous = waiting | (follows & plan_at[after])
            high_previous = waiting | (follows & plan_at[(lane + 2) % lanes])
            from_now = Signal(bus_bytes, name=f"from_now{lane}")
            from_previous = Signal(bus_bytes, name=f"from_previous{lane}")
            m.d.comb += [
                from_now.eq(Mux(high_now, high, 0) | Mux(low_now, ~high, 0)),
                from_previous.eq(Mux(high_previous, high, 0) | Mux(low_previous, ~high, 0)),
            ]
            for byte in range(bus_bytes):
                i = lane * bus_bytes + byte
                source = Mux(
                    from_now[byte],
                    Source.NOW,
                    Mux(from_previous[byte], Source.PREVIOUS, Source.KEPT),
                )
                live = upto[i] & ~zero
                sources += [
                    Mux(live, source, Source.ZERO),
                    Mux(live & ~(chosen.half & ends_row[i]), source, Source.ZERO),
                ]

        # -- join: a beat, a write or both ---------------------------------------------------------
        join_id = Signal(cfg.id_bits, reset_less=True)
        join_turned = Signal(cfg.bus_bits, reset_less=True)
        join_at = Signal(lanes, init=1)
        join_high = Signal(bus_bytes, reset_less=True)
        source = Signal(data.ArrayLayout(2, 2 * row_bytes), reset_less=True)
        target = Signal(write_target(cfg), reset_less=True)
        row = Mux(zero, self.zero.payload.row, chosen.row)
        tail = chosen.tail.replicate(row_bytes)
        with m.If(join_ready):
            m.d.sync += [
                join_valid.eq(leaves),
                join_writes.eq(next_writes),
                join_id.eq(plan_id),
                join_turned.eq(plan_turned),
                join_high.eq(high),
                source.eq(Cat(sources)),
                target.tile.eq(Mux(zero, self.zero.payload.tile, chosen.tile)),
                target.block.eq(row[cfg.m_par_log2 :]),
                target.rows.eq(
                    Mux(zero, self.zero.payload.rows, 1 << chosen.row[: cfg.m_par_log2])
                ),
                target.mask.eq(Mux(zero, ~0, bytes_from(chosen.first, row_bytes) & (upto | tail))),
            ]
            if lanes > 1:
                m.d.sync += join_at.eq(plan_at)

        # Earlier beats: the last one in a register, those before in a memory a lane.
        previous = Signal(cfg.bus_bits, reset_less=True)
        kept = []
        goes = Signal()
        m.d.comb += goes.eq(join_valid & join_ready)
        with m.If(goes):
            m.d.sync += previous.eq(join_turned)
        for lane in range(lanes):
            memory = Memory(shape=cfg.bus_bits, depth=cfg.l2_ids, init=[])
            m.submodules[f"lane{lane}"] = memory
            write, read = memory.write_port(), memory.read_port()
            m.d.comb += [
                write.en.eq(goes & join_at[lane]),
                write.addr.eq(join_id),
                write.data.eq(join_turned),
                # Never the word being written: that beat is then `previous`. Before a beat leaves
                # it is looked up more than once, as that is known sooner.
                read.en.eq(plan_valid & ~join_full & ~(follows & join_at[lane])),
                read.addr.eq(plan_id),
            ]
            kept.append(read.data)

        picked = []
        for lane in range(lanes):
            for byte in range(bus_bytes):
                for half in range(2):
                    span = slice(8 * byte + 4 * half, 8 * byte + 4 * half + 4)
                    which = source[2 * (lane * bus_bytes + byte) + half]
                    older = kept[lane][span]
                    if lanes > 1:
                        older = Mux(join_high[byte], kept[(lane + 1) % lanes][span], older)
                    picked.append(
                        Mux(
                            which[1],
                            Mux(which[0], join_turned[span], previous[span]),
                            Mux(which[0], older, 0),
                        )
                    )
        m.d.comb += [
            out.i.valid.eq(join_writes),
            out.i.payload.data.eq(Cat(picked)),
            # A part that waits has the one before it in `join` or in the buffer.
            self.idle.eq(~look_valid & ~plan_valid & ~join_valid & ~join_writes & ~out.o.valid),
        ]
        for name, _ in write_target(cfg):
            m.d.comb += out.i.payload[name].eq(target[name])
        return m
