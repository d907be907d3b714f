"""Control round the MAC array: operand reads, late C read, write-back."""

from __future__ import annotations

from dataclasses import dataclass

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ..config import Config
from ..interfaces import ReadPort, mac_flags, mma_uop, result_write, tile_word
from ..registers import copies
from ..units.point_op import PointSource
from ..units.pointwise import PointwiseArray
from ..units.vector import VectorArray
from .array import MacArray
from .pipeline import register
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
    a, b, c : tile-file reads; data come `Config.read_latency` cycles later. C's is always granted;
        its request stands in registers.
    result : tile-file write of one chunk, from registers; all its fields are zero in other cycles.
    flags, flags_valid : sticky flags of the uop that was written in the cycle before.
    ahead : a result will be written `Config.move_latency` cycles from now.
    c_next, c_next_tile : C will be read in the next cycle, and where.
    result_next, result_next_tile : likewise of the result's write.
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
                "c_next": Out(1),
                "c_next_tile": Out(cfg.tile_bits),
                "result_next": Out(1),
                "result_next_tile": Out(cfg.tile_bits),
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
        def when_read(value, *, name, reset_less, before=0):
            """`value` of the cycle of a read, in the cycle of its data, or `before` that."""
            for stage in range(cfg.read_latency - before):
                later = Signal(len(value), name=f"{name}{stage}", reset_less=reset_less)
                m.d.sync += later.eq(value)
                value = later
            return value

        def rows_when_read(valid, *, name):
            """Likewise of a read's `valid`, for each row of its word."""
            before = when_read(valid, name=name, reset_less=False, before=1)
            return copies(m, name, before, cfg.m_par)

        a_fresh = rows_when_read(self.a.valid & self.a.ready, name="a_fresh")
        b_offset = when_read(uop.b_row[: cfg.m_par_log2], name="b_offset", reset_less=True)
        b_rows = [self.b.data.word_select(row, cfg.row_bits) for row in range(cfg.m_par)]
        a_q = Signal(data.ArrayLayout(cfg.row_bits, cfg.m_par), reset_less=True)
        b_q = Signal(data.ArrayLayout(cfg.row_bits, cfg.n_par), reset_less=True)
        # A's rows stay until the next block comes, which is after the last uop that uses them.
        for row, fresh in enumerate(a_fresh):
            with m.If(fresh):
                m.d.sync += a_q[row].eq(self.a.data.word_select(row, cfg.row_bits))
        b_fresh = Const(1)
        if cfg.xuantie:
            b_fresh = when_read(self.b.valid & self.b.ready, name="b_fresh", reset_less=False)
        # Wide outputs take fewer columns a uop, so every offset their step allows is wired.
        steps = sorted({cfg.uop_columns(out.container) for out in cfg.output_formats})
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
            array.op.eq(at(operand_stages - 1)[1].op),
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
        # Whether it is read stands in a register in that cycle and in the one before.
        c_read_cycle = c_cycle - cfg.read_latency
        planned, planned_load = at(c_read_cycle - 2)
        c_next, c_read = Signal(), Signal()
        m.d.sync += [c_next.eq(planned & planned_load.new_c), c_read.eq(c_next)]
        m.d.comb += [
            self.c_next.eq(c_next),
            self.c_next_tile.eq(at(c_read_cycle - 1)[1].c.tile),
            self.c.valid.eq(c_read),
            self.c.addr.eq(at(c_read_cycle)[1].c),
        ]
        c_held = Signal(data.ArrayLayout(cfg.row_bits, cfg.m_par), reset_less=True)
        for row, fresh in enumerate(rows_when_read(c_read, name="c_fresh")):
            c_row = self.c.data.word_select(row, cfg.row_bits)
            m.d.comb += array.c[row].eq(Mux(fresh, c_row, c_held[row]))
            m.d.sync += c_held[row].eq(array.c[row])

        # -- write-back: which bytes of a row is decided two cycles before, of the word one --------
        early = at(self.depth - 2)[1].op
        last_valid, last = at(self.depth - 1)
        done_valid, done = at(self.depth)
        no_rows, no_bytes = Const(0, cfg.m_par), Const(0, cfg.row_bytes)
        row_mask = register(m, "row_mask", self._bytes(m, early, early.cols, name="columns"))
        zero_mask = no_bytes  # bytes that become zero beside them
        if cfg.xuantie:
            zeroes = self._bytes(m, early, early.zero_cols, name="zero_columns")
            zero_mask = register(m, "zero_mask", zeroes)

        def bytes_of_word(part, zero, op):
            """Both kinds of bytes of a row, in the rows of `op`."""
            zero_rows = op.zero_rows if cfg.xuantie else no_rows
            return Cat(
                (part | zero) & (row | zero_row).replicate(cfg.row_bytes)
                for row, zero_row in zip(op.rows, zero_rows, strict=True)
            )

        addr = Signal(tile_word(cfg), name="result_addr", reset_less=True)
        mask = Signal(cfg.word_bits // 8, name="result_mask", reset_less=True)
        with m.If(last_valid):
            m.d.sync += [addr.eq(last.c), mask.eq(bytes_of_word(row_mask, zero_mask, last.op))]
        with m.Else():
            m.d.sync += [addr.eq(0), mask.eq(0)]
        m.d.comb += [
            self.result.valid.eq(done_valid),
            self.result.addr.eq(addr),
            self.result.data.eq(array.d),
            self.result.mask.eq(mask),
            self.result_next.eq(last_valid),
            self.result_next_tile.eq(last.c.tile),
            self.ahead.eq(at(self.depth - cfg.move_latency)[0]),
        ]

        # -- flags: a cycle later, as they go far --------------------------------------------------
        flags = Signal(mac_flags(), name="flags_now")
        flags_q = Signal(mac_flags(), reset_less=True)
        m.d.comb += [flags.eq(array.flags), self.flags.eq(flags_q)]
        m.d.sync += [flags_q.eq(flags), self.flags_valid.eq(done_valid)]

        # -- results of other units, and what of a word becomes zero ------------------------------
        if not cfg.has_words:
            return m
        computed = Signal(cfg.word_bits)
        part = Signal(cfg.row_bytes)  # of another unit
        other = Signal()
        m.d.comb += computed.eq(array.d)
        if self.vector is not None:
            with m.If(done_valid & done.op.vector.on):
                m.d.comb += [
                    other.eq(1),
                    part.eq(vector.mask),
                    computed.eq(vector.d),
                    flags.eq(vector.flags),
                ]
        if self.point is not None:
            # What is not active is zero in its words already.
            m.d.comb += self.saturated.eq(done_valid & done.op.point.on & point.sat)
            with m.If(done_valid & done.op.point.on):
                m.d.comb += [
                    other.eq(1),
                    part.eq(~0),
                    computed.eq(point.d),
                    flags.eq(0),
                ]
        zero_part = register(m, "zero_part", zero_mask)
        with m.If(other):
            m.d.comb += self.result.mask.eq(bytes_of_word(part, zero_part, done.op))
        if cfg.xuantie:
            own_part = register(m, "own_part", row_mask)
            live = Cat(
                Mux(other, part, own_part) & row.replicate(cfg.row_bytes) for row in done.op.rows
            )
            computed = computed & Cat(bit.replicate(8) for bit in live)
        m.d.comb += self.result.data.eq(computed)
        return m

    def _bytes(self, m: Module, op: data.View, columns: Value, *, name: str) -> Signal:
        """The bytes of a row that `columns` of a uop's block take."""
        cfg = self.cfg
        mask = Signal(cfg.row_bytes, name=f"{name}_bytes")
        with m.Switch(op.out):
            for index, out in enumerate(cfg.output_formats):
                with m.Case(index):
                    width = out.container
                    bits = Cat(
                        bit.replicate(width // 8) for bit in columns[: cfg.uop_columns(width)]
                    )
                    m.d.comb += mask.eq(bits << op.c_byte)
        return mask
