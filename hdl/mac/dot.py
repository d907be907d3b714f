"""One sub-array: the dot product of a row of A and a row of B, plus an element of C."""

from __future__ import annotations

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..interfaces import mac_flags
from .accumulate import IntegerAccumulator, accumulate_control
from .multiply import Multiplier
from .operand import operand_row
from .pipeline import DelayLine
from .plan import MacPlan
from .tree import SumTree

__all__ = ["DotProduct"]


class DotProduct(wiring.Component):
    """Multiplies two decoded rows lane by lane, sums, adds C and rounds once.

    Every sub-array of an array is the same module.

    Parameters
    ----------
    plan : sizes and latencies.

    Members
    -------
    a, b : decoded rows, both in cycle 1 of the uop.
    c : the element of C in cycle `MacPlan.accumulate_age`.
    control_add, control_round, control_out : see `IntegerAccumulator`.
    d, flags : the result, to be registered outside.

    Throughput: one uop a cycle. Source: architecture.md section 1.
    """

    def __init__(self, plan: MacPlan):
        self.plan = plan
        control = accumulate_control(plan)
        super().__init__(
            {
                "a": In(operand_row(plan)),
                "b": In(operand_row(plan)),
                "c": In(plan.out_bits),
                "control_add": In(control),
                "control_round": In(control),
                "control_out": In(control),
                "d": Out(plan.out_bits),
                "flags": Out(mac_flags()),
            }
        )

    def elaborate(self, platform):
        m = Module()
        plan = self.plan
        m.submodules.tree = tree = SumTree([s.product_bits for s in plan.slots], plan.sum_bits)
        for i, slot in enumerate(plan.slots):
            multiplier = Multiplier(slot.operand_bits, slot.product_bits)
            m.submodules[f"multiply{i}"] = multiplier
            m.d.comb += [
                multiplier.a.eq(self.a[f"slot{i}"]),
                multiplier.b.eq(self.b[f"slot{i}"]),
                getattr(tree, f"term{i}").eq(multiplier.p),
            ]
        total = DelayLine(m, "total", tree.total)[plan.sum_wait]
        m.submodules.accumulate = accumulate = IntegerAccumulator(plan)
        m.d.comb += [
            accumulate.total.eq(total),
            accumulate.c.eq(self.c.as_signed()),
            accumulate.control_add.eq(self.control_add),
            accumulate.control_round.eq(self.control_round),
            accumulate.control_out.eq(self.control_out),
            self.d.eq(accumulate.d),
            self.flags.eq(accumulate.flags),
        ]
        return m
