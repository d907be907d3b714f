"""Decode of a uop's `op`, once for the whole array."""

from __future__ import annotations

from amaranth.hdl import Const, Module, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..interfaces import mac_op
from .accumulate import accumulate_control
from .operand import operand_control
from .plan import MacPlan, Slot

__all__ = ["ControlDecoder"]


class ControlDecoder(wiring.Component):
    """Turns `op` into the control of every stage, combinationally.

    Parameters
    ----------
    plan : sizes.

    Members
    -------
    op : the uop.
    operand_a, operand_b : control of the operand decoders.
    accumulate : control of the sub-arrays' last stages.
    """

    def __init__(self, plan: MacPlan):
        self.plan = plan
        super().__init__(
            {
                "op": In(mac_op(plan.cfg)),
                "operand_a": Out(operand_control(plan)),
                "operand_b": Out(operand_control(plan)),
                "accumulate": Out(accumulate_control(plan)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        plan, op = self.plan, self.op
        formats = Signal(len(plan.formats))
        outs = Signal(len(plan.outputs))
        m.d.comb += [formats[i].eq(op.ft == i) for i in range(len(plan.formats))]
        m.d.comb += [outs[i].eq(op.out == i) for i in range(len(plan.outputs))]
        for side, unsigned in ((self.operand_a, op.a_unsigned), (self.operand_b, op.b_unsigned)):
            m.d.comb += [side.format.eq(formats), side.unsigned.eq(unsigned)]
            for i, slot in enumerate(plan.slots):
                m.d.comb += side.active[i].eq(self._active(slot, formats))
        self._accumulate(m, formats, outs)
        return m

    def _active(self, slot: Slot, formats: Signal) -> Value:
        """Whether the slot's lane is one of the op.k that take part."""
        by_lane: dict[int, Value] = {}
        for f in slot.formats:
            lane = slot.lane(f)
            by_lane[lane] = by_lane.get(lane, Const(0, 1)) | formats[f.index]
        if len(by_lane) == 1 and len(slot.formats) == len(self.plan.formats):
            return self.op.k > next(iter(by_lane))
        active: Value = Const(0, 1)
        for lane, selected in by_lane.items():
            active = active | (selected & (self.op.k > lane))
        return active

    def _accumulate(self, m: Module, formats: Signal, outs: Signal) -> None:
        plan, control = self.plan, self.accumulate
        m.d.comb += [
            control.out.eq(outs),
            control.negate.eq(self.op.negate),
            control.sat.eq(self.op.sat),
            control.rnd.eq(self.op.rnd),
        ]
        for i, shift in enumerate(plan.shifts):
            chosen: Value = Const(0, 1)
            for pair in plan.pairs:
                if pair.shift == shift:
                    out = plan.outputs.index(pair.out)
                    chosen = chosen | (formats[pair.src.index] & outs[out])
            m.d.comb += control.shift[i].eq(chosen)
