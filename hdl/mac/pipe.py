"""Control round the MAC array: operand reads, late C read, write-back."""

from __future__ import annotations

from dataclasses import dataclass

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ..config import Config
from ..interfaces import ReadPort, mac_flags, mma_uop, result_write, tile_word
from ..units.point_op import PointSource
from ..units.pointwise import PointwiseArray
from ..units.vector import VectorArray
from .array import MacArray
from .plan import MacPlan

__all__ = ["MacPipe", "MacTiming"]


@dataclass(frozen=True)
class MacTiming:
    """Fixed latencies of the MAC pipe of one Config, in cycles.

    Parameters
    ----------
    depth : from a uop's transfer to its tile-file write.
    loop : W, from a C read until a read sees its result.
    """

    depth: int
    loop: int

    @classmethod
    def of(cls, cfg: Config) -> MacTiming:
        plan = MacPlan(cfg)
        return cls(
            depth=MacPipe.operand_stages(cfg) + plan.latency,
            loop=cfg.read_latency + plan.latency - plan.c_delay + 1,
        )


class MacPipe(wiring.Component):
    """Takes mma uops, one a cycle; a uop's result is written a fixed time later.

    With the vector mode, uops of that kind go the same way through the lanes of the vector unit.

    A's block is read once and held while columns are walked; a C word is read with its first
    chunk and held for the others. Only the operand read can be held up; behind it nothing stalls.

    Members
    -------
    uops : mma uops; a transfer is the cycle of B's read (A's may lie earlier).
    hold : there is none in this cycle, but operands may be read.
    a, b, c : tile-file reads; data come `Config.read_latency` cycles later. C's is always granted.
    result : tile-file write of one chunk.
    flags, flags_valid : sticky flags of the uop written in this cycle.
    ahead : a result will be written `Config.move_latency` cycles from now.
    scalar, scalar_done, saturated (front end xuantie) : operand of a pointwise instruction; it is
        not needed any more; one of its clips changed a value.

    Attributes
    ----------
    timing, depth, loop : see `MacTiming`.

    Source: architecture.md section 1; seed 001 section 4.5.
    """

    def __init__(self, cfg: Config):
        self.cfg = cfg
        self.array = MacArray(cfg)
        self.vector = VectorArray(cfg) if cfg.has_vector else None
        self.point = PointwiseArray(cfg) if cfg.xuantie else None
        self.timing = timing = MacTiming.of(cfg)
        self.depth, self.loop = timing.depth, timing.loop
        word = ReadPort(tile_word(cfg), cfg.word_bits)
        super().__init__(
            {
                "uops": In(stream.Signature(mma_uop(cfg))),
                "hold": In(1),
                "a": Out(word),
                "b": Out(word),
                "c": Out(word),
                "result": Out(result_write(cfg)),
                "flags": Out(mac_flags()),
                "flags_valid": Out(1),
                "ahead": Out(1),
                **(
                    {"scalar": In(64), "scalar_done": Out(1), "saturated": Out(1)}
                    if cfg.xuantie
                    else {}
                ),
            }
        )

    @staticmethod
    def operand_stages(cfg: Config) -> int:
        """Cycles from the operand read to the array's start: read, select."""
        return cfg.read_latency + 1

    def elaborate(self, platform):
        m = Module()
        cfg = self.cfg
        operand_stages = self.operand_stages(cfg)
        m.submodules.array = array = self.array
        uop = self.uops.payload

        # -- operand read: A may be granted before B, never the other way round --------------
        have_a = Signal()
        go = Signal()
        may = Signal()
        b_held = uop.op.point.held if cfg.xuantie else Const(0)  # what was read last serves again
        m.d.comb += [
            self.a.valid.eq(self.uops.valid & uop.new_a & ~have_a),
            self.a.addr.eq(uop.a),
            self.b.valid.eq(self.uops.valid & ~b_held),
            self.b.addr.tile.eq(uop.b_tile),
            self.b.addr.block.eq(uop.b_row[cfg.m_par_log2 :]),
            may.eq((self.b.ready | b_held) & (~self.a.valid | self.a.ready) & ~self.hold),
            go.eq(self.uops.valid & may),
            self.uops.ready.eq(may),
        ]
        with m.If(go):
            m.d.sync += have_a.eq(0)
        with m.Elif(self.a.valid & self.a.ready & ~self.hold):
            m.d.sync += have_a.eq(1)

        # -- select: words to operand rows ------------------------------------------------------
        def when_read(value, *, name, reset_less):
            """`value` of the cycle of an operand read, in the cycle of its data."""
            for stage in range(cfg.read_latency):
                later = Signal(len(value), name=f"{name}{stage}", reset_less=reset_less)
                m.d.sync += later.eq(value)
                value = later
            return value

        a_fresh = when_read(self.a.valid & self.a.ready, name="a_fresh", reset_less=False)
        b_offset = when_read(uop.b_row[: cfg.m_par_log2], name="b_offset", reset_less=True)
        b_rows = [self.b.data.word_select(row, cfg.row_bits) for row in range(cfg.m_par)]
        a_q = Signal(data.ArrayLayout(cfg.row_bits, cfg.m_par), reset_less=True)
        b_q = Signal(data.ArrayLayout(cfg.row_bits, cfg.n_par), reset_less=True)
        # A's rows stay until the next block comes, which is after the last uop that uses them.
        with m.If(a_fresh):
            m.d.sync += a_q.eq(self.a.data)
        b_fresh = Const(1)
        if cfg.xuantie:
            b_fresh = when_read(self.b.valid & self.b.ready, name="b_fresh", reset_less=False)
        # Wide outputs take fewer columns a uop, so every offset their step allows is wired.
        steps = sorted({cfg.uop_columns(8 << log2) for log2 in range(4)})
        for column in range(cfg.n_par):
            row = b_rows[column]
            for offset in range(steps[0], cfg.m_par, steps[0]):
                row = Mux(b_offset == offset, b_rows[(offset + column) % cfg.m_par], row)
            with m.If(b_fresh):
                m.d.sync += b_q[column].eq(row)

        # The vector unit takes whole words of both.
        y_q = [b_q[row] for row in range(cfg.n_par)]
        if cfg.has_words:
            for row in range(cfg.n_par, cfg.m_par):
                y_row = Signal(cfg.row_bits, name=f"y_row{row}", reset_less=True)
                with m.If(b_fresh):
                    m.d.sync += y_row.eq(b_rows[row])
                y_q.append(y_row)

        # -- what travels beside the array ------------------------------------------------------
        layout = data.StructLayout({"c": tile_word(cfg), "new_c": 1, "op": uop.shape()["op"].shape})
        stages = []
        valid_in = go
        load_in = Signal(layout)
        m.d.comb += [
            load_in.c.eq(uop.c),
            load_in.new_c.eq(uop.new_c),
            load_in.op.eq(uop.op),
        ]
        for stage in range(1, self.depth + 1):
            valid = Signal(name=f"stage{stage}_valid")
            load = Signal(layout, name=f"stage{stage}", reset_less=True)
            m.d.sync += [valid.eq(valid_in), load.eq(load_in)]
            stages.append((valid, load))
            valid_in, load_in = valid, load

        def at(cycle):
            """What was issued `cycle` cycles ago."""
            return stages[cycle - 1]

        start, start_load = at(operand_stages)
        m.d.comb += [
            array.start.eq(start),
            array.op.eq(start_load.op),
            array.a.eq(a_q),
            array.b.eq(b_q),
        ]
        if self.vector is not None:
            m.submodules.vector = vector = self.vector
            m.d.comb += [
                vector.op.eq(start_load.op),
                vector.x.eq(a_q),
                vector.y.eq(Cat(y_q)),
                vector.z.eq(array.c),
            ]
            # Lanes that are not used stand still.
            with m.If(~start):
                m.d.comb += vector.op.vector.on.eq(0)

        if self.point is not None:
            m.submodules.point = point = self.point
            wanted = start_load.op.point
            m.d.comb += [
                point.x.eq(a_q),
                point.y.eq(Cat(y_q)),
                point.scalar.eq(self.scalar),
                point.op.row.eq(wanted.row),
                point.op.k.eq(start_load.op.k),
                point.op.rows.eq(start_load.op.rows),
                self.scalar_done.eq(
                    start & wanted.on & wanted.last & (wanted.source == PointSource.SCALAR)
                ),
            ]
            for name in ("kind", "wide", "rnd", "source"):
                m.d.comb += point.op[name].eq(wanted[name])

        # -- C: read when its data come as the array takes them, held for the other chunks ------
        c_cycle = operand_stages + array.c_delay
        read_valid, read_load = at(c_cycle - cfg.read_latency)
        m.d.comb += [
            self.c.valid.eq(read_valid & read_load.new_c),
            self.c.addr.eq(read_load.c),
        ]
        c_fresh = when_read(self.c.valid, name="c_fresh", reset_less=False)
        c_held = Signal(cfg.word_bits, reset_less=True)
        m.d.comb += array.c.eq(Mux(c_fresh, self.c.data, c_held))
        with m.If(c_fresh):
            m.d.sync += c_held.eq(self.c.data)

        # -- write-back --------------------------------------------------------------------------
        done_valid, done = at(self.depth)
        widths = [out.container for out in cfg.output_formats]
        row_mask = Signal(cfg.row_bytes)
        zero_mask = Signal(cfg.row_bytes)  # bytes that become zero beside them
        zero_rows = done.op.zero_rows if cfg.xuantie else Const(0, cfg.m_par)

        def bytes_of(columns, width):
            bits = Cat(bit.replicate(width // 8) for bit in columns[: cfg.uop_columns(width)])
            return bits << done.op.c_byte

        with m.Switch(done.op.out):
            for index, width in enumerate(widths):
                with m.Case(index):
                    m.d.comb += row_mask.eq(bytes_of(done.op.cols, width))
                    if cfg.xuantie:
                        m.d.comb += zero_mask.eq(bytes_of(done.op.zero_cols, width))
        computed = Signal(cfg.word_bits)
        live = Cat(row_mask & row.replicate(cfg.row_bytes) for row in done.op.rows)
        kept = Cat(bit.replicate(8) for bit in live) if cfg.xuantie else Const(-1, cfg.word_bits)
        m.d.comb += [
            computed.eq(array.d),
            self.result.valid.eq(done_valid),
            self.result.addr.eq(done.c),
            self.result.data.eq(computed & kept),
            self.result.mask.eq(
                Cat(
                    (row_mask | zero_mask) & (row | zero).replicate(cfg.row_bytes)
                    for row, zero in zip(done.op.rows, zero_rows, strict=True)
                )
            ),
            self.flags_valid.eq(done_valid),
            self.flags.eq(array.flags),
            self.ahead.eq(at(self.depth - cfg.move_latency)[0]),
        ]
        if self.vector is not None:
            with m.If(done.op.vector.on):
                m.d.comb += [
                    row_mask.eq(vector.mask),
                    computed.eq(vector.d),
                    self.flags.eq(vector.flags),
                ]
        if self.point is not None:
            # What is not active is zero in its words already.
            m.d.comb += self.saturated.eq(done_valid & done.op.point.on & point.sat)
            with m.If(done.op.point.on):
                m.d.comb += [
                    row_mask.eq(~0),
                    computed.eq(point.d),
                    self.flags.eq(0),
                ]
        return m
