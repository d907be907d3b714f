"""The MAC array: m_par x n_par sub-arrays behind one fixed-latency port."""

from __future__ import annotations

from collections.abc import Callable

from amaranth.hdl import Module, Signal, Value, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ..config import Config
from ..interfaces import mac_flags, mac_op
from ..registers import copies
from ..share import shared
from .accumulate_control import accumulate_control, own_control
from .chunk import ChunkRead, chunk_row, containers
from .control import ControlDecoder
from .dot import DotProduct
from .operand import OperandDecoder
from .pipeline import DelayLine, register
from .plan import MacPlan

__all__ = ["MacArray"]


class MacArray(wiring.Component):
    """Computes a block of D = round(C + A x B^T) for every uop, with a fixed latency.

    Parameters
    ----------
    cfg : the core's configuration.

    Members
    -------
    start : a uop enters; nothing holds it up.
    op : what it computes, a cycle before `start`: the control of wide words is decoded by then, and
        stands in a register of its own for each of them.
    a, b : m_par rows of A and n_par rows of B.
    c : the rows of the stored C word, `c_delay` cycles after `start`.
    valid : `start`, `latency` cycles later.
    d : the block's chunk of each row of C, repeated over the whole row; elements outside op.rows
        and op.cols are undefined. Zero while not `valid`.
    flags : flags of the elements in op.rows and op.cols.

    Latency: `latency` cycles from `start`, `latency - c_delay` from C, the same for every format.
    Throughput: one uop a cycle. Source: architecture.md section 1, numerics.md.
    """

    def __init__(self, cfg: Config):
        self.cfg = cfg
        self.plan = plan = MacPlan(cfg)
        self.c_delay = plan.c_delay
        self.latency = plan.latency
        row = unsigned(cfg.row_bits)
        super().__init__(
            {
                "start": In(1),
                "op": In(mac_op(cfg)),
                "a": In(data.ArrayLayout(row, cfg.m_par)),
                "b": In(data.ArrayLayout(row, cfg.n_par)),
                "c": In(data.ArrayLayout(row, cfg.m_par)),
                "valid": Out(1),
                "d": Out(data.ArrayLayout(row, cfg.m_par)),
                "flags": Out(mac_flags()),
            }
        )

    def elaborate(self, platform):
        m = Module()
        cfg, plan = self.cfg, self.plan
        m.submodules.control = control = ControlDecoder(plan)
        m.d.comb += control.op.eq(self.op)
        accumulate = DelayLine(m, "accumulate", control.accumulate.as_value(), first=-1)
        c_byte = DelayLine(m, "c_byte", self.op.c_byte, first=-1)
        overwrite = DelayLine(m, "overwrite", self.op.overwrite, first=-1)
        rows = DelayLine(m, "rows", self.op.rows, first=-1)
        cols = DelayLine(m, "cols", self.op.cols, first=-1)
        valid = DelayLine(m, "valid", self.start, reset=True)
        m.d.comb += self.valid.eq(valid[self.latency])

        accumulate_layout = control.accumulate.shape()

        def accumulate_at(age: int) -> data.View:
            return data.View(accumulate_layout, accumulate[age])

        if plan.has_floats:
            align = DelayLine(m, "align", control.align.as_value(), first=-1)
        decoded = {}
        for side, count in (("a", cfg.m_par), ("b", cfg.n_par)):
            # Held inverted: a lane that takes no part resets its registers.
            of_side = ~getattr(control, f"operand_{side}").as_value()
            for i, of_row in enumerate(copies(m, f"operand_{side}", of_side, count)):
                m.submodules[f"decode_{side}{i}"] = decoder = OperandDecoder(plan)
                m.d.comb += [
                    decoder.row.eq(getattr(self, side)[i]),
                    decoder.control.eq(~of_row),
                ]
                decoded[side, i] = decoder.operands

        count = cfg.m_par * cfg.n_par
        controls = self._controls(m, accumulate_at)
        if not plan.has_floats:
            inverts = copies(m, "invert", accumulate_at(plan.sum_age - 2).negate, count)
        chunk_age = plan.c_age - ChunkRead.LATENCY
        results: list[list[DotProduct]] = []
        for i in range(cfg.m_par):
            m.submodules[f"chunk{i}"] = chunk = ChunkRead(plan)
            m.d.comb += [
                chunk.row.eq(register(m, f"c_row{i}", self.c[i])),
                chunk.byte.eq(c_byte[chunk_age]),
                chunk.out.eq(accumulate_at(chunk_age).out),
                chunk.skip.eq(overwrite[chunk_age]),
            ]
            results.append([])
            for j in range(cfg.n_par):
                m.submodules[f"dot{i}_{j}"] = dot = shared(platform, DotProduct, plan)
                m.d.comb += [
                    dot.a.eq(decoded["a", i]),
                    dot.b.eq(decoded["b", j]),
                    dot.c.eq(chunk.elements[j]),
                ]
                number = i * cfg.n_par + j
                for (stage, field), values in controls.items():
                    m.d.comb += getattr(dot, f"control_{stage}")[field].eq(values[number])
                if not plan.has_floats:
                    m.d.comb += dot.invert.eq(inverts[number])
                if plan.has_floats:
                    for stage, age in plan.align_ages.items():
                        m.d.comb += getattr(dot, f"align_{stage}").eq(align[age])
                results[i].append(dot)
        self._result(m, results, accumulate_at(self.latency - 2).out, valid[self.latency - 2])
        self._flags(m, results, rows[self.latency - 1], cols[self.latency - 1])
        return m

    def _controls(
        self, m: Module, accumulate_at: Callable[[int], data.View]
    ) -> dict[tuple[str, str], list[Value]]:
        """Fields of the accumulators' control in each stage, one for every sub-array.

        What decides on whole words stands in a register of its own for each of them.
        """
        count = self.cfg.m_par * self.cfg.n_par
        own = own_control(self.plan)
        found: dict[tuple[str, str], list[Value]] = {}
        for stage, age in self.plan.control_ages.items():
            for field in accumulate_control(self.plan).members:
                if field in own.get(stage, ()):
                    before = accumulate_at(age - 1)[field]
                    found[stage, field] = copies(m, f"{stage}_{field}", before, count)
                else:
                    found[stage, field] = [accumulate_at(age)[field]] * count
        return found

    def _result(self, m: Module, results: list[list[DotProduct]], out: Value, valid: Value) -> None:
        """Register the rows; `out` and `valid` are those of a cycle earlier."""
        used = copies(m, "containers", containers(self.plan, out), len(results))
        idle = copies(m, "no_result", ~valid, len(results))
        for i, row in enumerate(results):
            d = Signal(self.cfg.row_bits, name=f"d{i}", reset_less=True)
            m.d.sync += d.eq(chunk_row(self.plan, used[i], [dot.d for dot in row]))
            # A register reset, which costs no logic on most targets.
            with m.If(idle[i]):
                m.d.sync += d.eq(0)
            m.d.comb += self.d[i].eq(d)

    def _flags(self, m: Module, results: list[list[DotProduct]], rows: Value, cols: Value) -> None:
        flags = Signal(mac_flags(), name="flags_reg", reset_less=True)
        total = Signal(mac_flags(), name="flags_now")
        for name, _ in mac_flags():
            bit: Value | None = None
            for i, row in enumerate(results):
                for j, dot in enumerate(row):
                    term = dot.flags[name] & rows[i] & cols[j]
                    bit = term if bit is None else bit | term
            m.d.comb += total[name].eq(bit)
        m.d.sync += flags.eq(total)
        m.d.comb += self.flags.eq(flags)
