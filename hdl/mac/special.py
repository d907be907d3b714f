"""Infinities, NaNs and signs of zero among the products of one dot product."""

from __future__ import annotations

from amaranth.hdl import Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from .logic import any_of
from .operand import operand_row
from .plan import MacPlan

__all__ = ["Specials", "special_summary"]


def special_summary() -> data.StructLayout:
    """What the products of a uop that takes part hold at least once.

    `nan`: a NaN operand or a product without meaning; `invalid`: one that sets the flag (0 x Inf,
    a signalling NaN); `pos_inf`, `neg_inf`; `nonzero`: a product that is not zero; `pos`, `neg`:
    products by sign, zeros included.
    """
    names = ("nan", "invalid", "pos_inf", "neg_inf", "nonzero", "pos", "neg")
    return data.StructLayout(dict.fromkeys(names, 1))


class Specials(wiring.Component):
    """Collects the special products of two decoded rows.

    Parameters
    ----------
    plan : sizes.

    Members
    -------
    a, b : decoded rows.
    summary : what they hold, registered.

    Latency: 1 cycle. Throughput: one uop a cycle. Source: numerics.md section 4.
    """

    latency = 1

    def __init__(self, plan: MacPlan):
        self.plan = plan
        row = operand_row(plan)
        super().__init__({"a": In(row), "b": In(row), "summary": Out(special_summary())})

    def elaborate(self, platform):
        m = Module()
        found: dict[str, list] = {name: [] for name, _ in special_summary()}
        undefined = []
        for i, slot in enumerate(self.plan.slots):
            if not slot.floats:
                continue
            a, b = self.a[f"slot{i}"], self.b[f"slot{i}"]
            negative = Signal(name=f"negative{i}")
            inf = Signal(name=f"inf{i}")
            m.d.comb += [
                negative.eq(a.negative ^ b.negative),
                inf.eq((a.inf & ~b.zero & ~b.nan) | (b.inf & ~a.zero & ~a.nan)),
            ]
            undefined.append((a.inf & b.zero) | (a.zero & b.inf))
            found["pos_inf"].append(inf & ~negative)
            found["neg_inf"].append(inf & negative)
            found["nonzero"].append(a.active & ~a.zero & ~b.zero)
            found["pos"].append(a.active & ~negative)
            found["neg"].append(a.active & negative)
        found["nan"] = [self.a.nan, self.b.nan, *undefined]
        found["invalid"] = [self.a.snan, self.b.snan, *undefined]
        reg = Signal(special_summary(), name="summary_reg", reset_less=True)
        m.d.sync += [reg[name].eq(any_of(bits)) for name, bits in found.items()]
        m.d.comb += self.summary.eq(reg)
        return m
