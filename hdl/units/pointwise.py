"""The pointwise unit: lanes for every element of a stored word, beside the MAC array."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Mux, Signal, Value, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ..config import Config
from ..mac.logic import any_of
from ..mac.pipeline import DelayLine, register
from ..mac.plan import MacPlan
from ..share import shared
from .point_lane import HALF, WIDE, PointLane, point_control
from .point_op import PointOp, PointSource, point_op

__all__ = ["PointwiseArray"]


class PointwiseArray(wiring.Component):
    """Computes one stored word for every pointwise uop, with the timing of the MAC array.

    Parameters
    ----------
    cfg : the core's configuration.

    Members
    -------
    op : what a uop computes (`point_op`).
    x, y : m_par rows each, with `op`: ms2's word, and that of ms1 (`PointSource.WORD`) or the one
        that holds the row `op.row` (`PointSource.ROW`).
    scalar : the scalar (`PointSource.SCALAR`), with `op`; narrow elements take its low half.
    d : the new rows, `latency` cycles after `op`. What is not active is zero: rows outside op.rows,
        elements beyond op.k and all above the packed elements of a clip.
    sat : a clip changed an active element, with `d`.

    Latency: `latency` cycles from `op`, that of the MAC array. Throughput: one word a cycle.
    Size: 16 multiplier blocks for every 64 bits of a word. Source: isa.md section 1.
    """

    RESULT_AGE = PointLane.LATENCY + 1
    """Age of the rows, before they wait for the MAC array."""

    def __init__(self, cfg: Config):
        self.cfg = cfg
        self.latency = MacPlan(cfg).latency
        if self.latency < self.RESULT_AGE:
            raise ValueError(
                f"a MAC array of {self.latency} cycles is shorter than the pointwise unit's "
                f"{self.RESULT_AGE}"
            )
        rows = data.ArrayLayout(unsigned(cfg.row_bits), cfg.m_par)
        super().__init__(
            {
                "op": In(point_op(cfg)),
                "x": In(rows),
                "y": In(rows),
                "scalar": In(WIDE),
                "d": Out(rows),
                "sat": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        cfg = self.cfg
        layout = point_control()
        control = DelayLine(m, "control", self._control(m))
        k = DelayLine(m, "k", self.op.k)
        rows = DelayLine(m, "rows", self.op.rows)

        # The words of a row, of 32 bits, that the packed and the other results come from.
        age = PointLane.LATENCY - 1
        words = cfg.row_bits // HALF
        clips = data.View(layout, control[age]).clips
        active = Signal(words, name="active")
        m.d.comb += active.eq(Cat(k[age] > word * HALF // 8 for word in range(words)))

        shared_y = self._shared_y(m)
        sats = []
        for i in range(cfg.m_par):
            y = Signal(cfg.row_bits, name=f"y{i}")
            m.d.comb += y.eq(Mux(self.op.source == PointSource.WORD, self.y[i], shared_y))
            lanes = []
            for j in range(cfg.row_bits // WIDE):
                m.submodules[f"lane{i}_{j}"] = lane = shared(platform, PointLane)
                m.d.comb += [
                    lane.x.eq(self.x[i].word_select(j, WIDE)),
                    lane.y.eq(y.word_select(j, WIDE)),
                ]
                for stage in range(PointLane.LATENCY + 1):
                    m.d.comb += getattr(lane, f"control{stage}").eq(control[stage])
                lanes.append(lane)
            of_row = active & rows[age][i].replicate(words)
            whole = register(m, f"whole{i}", of_row & (~clips).replicate(words))
            packed = register(m, f"packed{i}", of_row & clips.replicate(words))
            row = _masked(Cat(lane.d for lane in lanes), whole) | _masked(
                Cat(lane.packed for lane in lanes), packed
            )
            line = DelayLine(m, f"d{i}", register(m, f"d{i}_reg", row), first=self.RESULT_AGE)
            m.d.comb += self.d[i].eq(line[self.latency])
            clamped = Cat(lane.clamped for lane in lanes) & packed
            sats.append(register(m, f"sat{i}", clamped.any()))
        sat = DelayLine(m, "sat", any_of(sats), first=self.RESULT_AGE)
        m.d.comb += self.sat.eq(sat[self.latency])
        return m

    def _control(self, m: Module) -> Value:
        """Control of the lanes."""
        kind = self.op.kind
        control = Signal(point_control(), name="lane_control")

        def one_of(*kinds: PointOp) -> Value:
            return any_of(kind == each for each in kinds)

        m.d.comb += [
            control.wide.eq(self.op.wide),
            control.shifts.eq(one_of(PointOp.SRA, PointOp.CLIP, PointOp.CLIPU)),
            control.signed.eq(kind != PointOp.CLIPU),
            control.adds.eq(one_of(PointOp.ADD, PointOp.SUB)),
            control.subtracts.eq(kind == PointOp.SUB),
            control.rnd.eq(self.op.rnd),
            control.multiplies.eq(one_of(PointOp.MUL, PointOp.MULH)),
            control.high.eq(kind == PointOp.MULH),
            control.clips.eq(one_of(PointOp.CLIP, PointOp.CLIPU)),
        ]
        return control.as_value()

    def _shared_y(self, m: Module) -> Value:
        """What all rows take as y: one row of the word, or the scalar."""
        row = self.y[0]
        for i in range(1, self.cfg.m_par):
            row = Mux(self.op.row == i, self.y[i], row)
        high = Mux(self.op.wide, self.scalar[HALF:], self.scalar[:HALF])
        scalars = Cat(self.scalar[:HALF], high).replicate(self.cfg.row_bits // WIDE)
        y = Signal(self.cfg.row_bits, name="shared_y")
        m.d.comb += y.eq(Mux(self.op.source == PointSource.SCALAR, scalars, row))
        return y


def _masked(value: Value, parts: Value) -> Value:
    """`value` in the equal parts that `parts` names, 0 elsewhere."""
    bits = len(value) // len(parts)
    return Cat(value.word_select(i, bits) & parts[i].replicate(bits) for i in range(len(parts)))
