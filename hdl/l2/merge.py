"""The load pipe's second half: beats, in any order, become writes of tile rows."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from ..config import Config
from ..interfaces import row_write
from .buffer import StreamBuffer
from .entry import beat_ends, beat_parts, burst_rows, part, tail_part, zeroing
from .shift import bytes_from, bytes_upto, bytes_wrapped, rotate_right

__all__ = ["Merge"]


class Merge(wiring.Component):
    """Turns each beat so that its bytes lie as in the row, keeps it for its id, and writes a part
    when its last beat has come.

    Members
    -------
    rvalid, rready, rid, rdata, rlast, rerr : the read response channel. `rready` depends on
        registers alone.
    note_en, note_addr, ends, parts, rows_en, rows_addr, rows : see `Gather`.
    zero : blocks to write zeros to; they go first.
    write : one write for each part and block.
    idle : nothing is held.

    Latency: a write is offered `LATENCY` cycles after the part's last beat was accepted.
    Throughput: one beat and one write a cycle. A beat that ends two parts needs two writes; the
    second waits, in a register, until a beat that ends none goes by.
    """

    LATENCY = StreamBuffer.LATENCY + 1

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
                "rows_en": In(1),
                "rows_addr": In(cfg.id_bits),
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

        # -- stage 1: the beat, and what was noted of it -------------------------------------
        accept = Signal()
        move = Signal()
        valid = Signal()
        beat_id = Signal(cfg.id_bits, reset_less=True)
        raw = Signal(cfg.bus_bits, reset_less=True)
        m.d.comb += [
            self.rready.eq(~valid | move),
            accept.eq(self.rvalid & self.rready),
        ]
        with m.If(self.rready):
            m.d.sync += [
                valid.eq(self.rvalid),
                beat_id.eq(self.rid),
                raw.eq(Mux(self.rerr, 0, self.rdata)),
            ]

        number = Signal(self.beat_bits)  # of the beat in its burst
        beat_number = Signal(self.beat_bits, reset_less=True)
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
                    beat_number.eq(number),
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

        beats = cfg.l2_ids << self.beat_bits
        look = Cat(number, self.rid)
        ends = notes("ends", beat_ends(cfg), beats, self.note_en, self.note_addr, self.ends, look)
        parts = notes(
            "parts", beat_parts(cfg), beats, self.note_en, self.note_addr, self.parts, look
        )
        rows = notes(
            "rows", burst_rows(cfg), cfg.l2_ids, self.rows_en, self.rows_addr, self.rows, self.rid
        )

        # The row's byte p (modulo the bus width) is the beat's byte p + offset.
        turned = rotate_right(m, raw, rows.offset, name="turned")
        at = Signal(lanes, init=1)  # beat of the row, modulo its beats, one-hot
        if lanes > 1:
            beat = Signal(range(lanes))
            m.d.comb += [
                beat.eq(rows.beat + beat_number),
                at.eq(Cat(beat == lane for lane in range(lanes))),
            ]

        # -- earlier beats: the last one in a register, those before in a memory a lane ------
        previous = Signal(cfg.bus_bits, reset_less=True)
        follows = Signal(reset_less=True)  # `previous` belongs to the same id
        same_id = Signal()
        m.d.comb += same_id.eq(valid & (beat_id == self.rid))
        with m.If(accept):
            m.d.sync += follows.eq(same_id)
        with m.If(move):
            m.d.sync += previous.eq(turned)
        kept = []
        for lane in range(lanes):
            here = at[lane]
            memory = Memory(shape=cfg.bus_bits, depth=cfg.l2_ids, init=[])
            m.submodules[f"lane{lane}"] = memory
            write, read = memory.write_port(), memory.read_port()
            m.d.comb += [
                write.en.eq(move & here),
                write.addr.eq(beat_id),
                write.data.eq(turned),
                # Never the word being written: that beat is then `previous`.
                read.en.eq(accept & ~(same_id & here)),
                read.addr.eq(self.rid),
            ]
            kept.append(read.data)

        # -- which write goes out ------------------------------------------------------------
        waiting = Signal()  # a second part, which lies in `previous` alone
        second = Signal(tail_part(cfg), reset_less=True)
        writes = valid & (ends.count != 0)
        ready = out.i.ready & ~self.zero.valid
        m.d.comb += [
            self.zero.ready.eq(out.i.ready),
            out.i.valid.eq(self.zero.valid | waiting | writes),
            move.eq(valid & Mux(waiting, ready & (ends.count == 0), ready | (ends.count == 0))),
            # A part that waits has the one before it in the buffer.
            self.idle.eq(~valid & ~out.o.valid),
        ]
        with m.If(move):
            m.d.sync += second.eq(parts.two)
        with m.If(ready):
            m.d.sync += waiting.eq(~waiting & move & (ends.count == 2))

        chosen = Signal(part(cfg))
        m.d.comb += chosen.eq(parts.one)
        with m.If(waiting):
            m.d.comb += [
                chosen.tile.eq(second.tile),
                chosen.row.eq(second.row),
                chosen.first.eq(0),
                chosen.last.eq(second.last),
                chosen.tail.eq(second.tail),
                chosen.half.eq(second.half),
            ]

        # -- the row: each byte from one of three places, or zero ------------------------------
        payload = out.i.payload
        zero = self.zero.valid
        upto = Signal(row_bytes)
        m.d.comb += upto.eq(bytes_upto(chosen.last, row_bytes))
        # Of lane i, the low bytes lie in the row's beat i and the high ones in beat i + 1.
        high = Signal(bus_bytes)
        m.d.comb += high.eq(bytes_wrapped(rows.offset, bus_bytes))
        use_previous = follows | waiting
        data = []
        for lane in range(lanes):
            after = (lane + 1) % lanes
            # Beat 0 of the row and the beat after its last whole one both count as 0.
            low_now = ~waiting & at[lane] & (~ends.began if lane == 0 else 1)
            high_now = ~waiting & at[after]
            low_previous = use_previous & (waiting | at[after])
            high_previous = use_previous & (waiting | at[(lane + 2) % lanes])
            from_now = Signal(bus_bytes, name=f"from_now{lane}")
            from_previous = Signal(bus_bytes, name=f"from_previous{lane}")
            m.d.comb += [
                from_now.eq(Mux(high_now, high, 0) | Mux(low_now, ~high, 0)),
                from_previous.eq(Mux(high_previous, high, 0) | Mux(low_previous, ~high, 0)),
            ]
            for byte in range(bus_bytes):
                span = slice(8 * byte, 8 * byte + 8)
                older = Mux(high[byte], kept[after][span], kept[lane][span])
                earlier = Mux(from_previous[byte], previous[span], older)
                data.append(Mux(from_now[byte], turned[span], earlier))

        ends_row = upto & ~(upto >> 1)  # one-hot: the part's last byte
        row = Mux(zero, self.zero.payload.row, chosen.row)
        tail = chosen.tail.replicate(row_bytes)
        m.d.comb += [
            payload.tile.eq(Mux(zero, self.zero.payload.tile, chosen.tile)),
            payload.block.eq(row[cfg.m_par_log2 :]),
            payload.rows.eq(Mux(zero, self.zero.payload.rows, 1 << chosen.row[: cfg.m_par_log2])),
            payload.mask.eq(Mux(zero, ~0, bytes_from(chosen.first, row_bytes) & (upto | tail))),
            payload.data.eq(
                Cat(
                    Cat(
                        Mux(upto[i] & ~zero, byte[:4], 0),
                        Mux(upto[i] & ~(chosen.half & ends_row[i]) & ~zero, byte[4:], 0),
                    )
                    for i, byte in enumerate(data)
                )
            ),
        ]
        return m
