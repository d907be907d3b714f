"""One sub-array: the dot product of a row of A and a row of B, plus an element of C."""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..interfaces import mac_flags
from .accumulate_control import accumulate_control
from .align import Aligner, Anchor, ShiftAmount
from .control import align_control
from .float_accumulate import FloatAccumulator
from .integer_accumulate import IntegerAccumulator
from .logic import any_of
from .multiply import Multiplier
from .operand import operand_row
from .pipeline import DelayLine, register
from .plan import MacPlan
from .special import Specials
from .tree import SumTree

__all__ = ["DotProduct"]


class DotProduct(wiring.Component):
    """Multiplies two decoded rows lane by lane, aligns, sums, adds C and rounds once.

    Every sub-array of an array is the same module.

    Parameters
    ----------
    plan : sizes and ages.

    Members
    -------
    a, b : decoded rows, at age 1.
    align_amount, align_shift, align_term, align_sum : control of the aligners and the tree, from
        age `shift_age - 1` on, one cycle after the other; align_guest at age 2
        (`MacPlan.align_ages`).
    invert : without floats, at age `sum_age - 1`: invert the sum's bits, which is all of a negation
        but the carry that the accumulator adds.
    c : the element of C, at age `c_age`.
    control_... : control of the accumulator (`MacPlan.control_ages`).
    d, flags : the result, at age `latency - 1`, to be registered outside.

    Throughput: one uop a cycle. Source: architecture.md section 1.
    """

    def __init__(self, plan: MacPlan):
        self.plan = plan
        control = accumulate_control(plan)
        members = {
            "a": In(operand_row(plan)),
            "b": In(operand_row(plan)),
            "c": In(plan.out_bits),
            "d": Out(plan.out_bits),
            "flags": Out(mac_flags()),
        }
        if plan.has_floats:
            members |= {f"align_{stage}": In(align_control(plan)) for stage in plan.align_ages}
        else:
            members["invert"] = In(1)
        members |= {f"control_{stage}": In(control) for stage in plan.control_ages}
        super().__init__(members)

    def elaborate(self, platform):
        m = Module()
        plan = self.plan
        m.submodules.tree = tree = SumTree(
            [slot.term_bits for slot in plan.slots],
            plan.sum_bits,
            plan.carries,
            plan.windows,
            inverts=not plan.has_floats,
        )
        products = [self._product(m, i) for i in range(len(plan.slots))]
        if plan.has_floats:
            self._align(m, products, tree)
            m.submodules.accumulate = accumulate = FloatAccumulator(plan)
            wait = plan.c_delay + 1 - plan.sum_age
        else:
            for i, product in enumerate(products):
                m.d.comb += getattr(tree, f"term{i}").eq(product[plan.product_age])
            m.d.comb += tree.invert.eq(self.invert)
            m.submodules.accumulate = accumulate = IntegerAccumulator(plan, inverted=True)
            wait = plan.c_age - plan.sum_age
        m.d.comb += [
            accumulate.total.eq(DelayLine(m, "total", tree.total)[wait].as_signed()),
            accumulate.c.eq(self.c),
            self.d.eq(accumulate.d),
            self.flags.eq(accumulate.flags),
        ]
        for stage in plan.control_ages:
            name = f"control_{stage}"
            m.d.comb += getattr(accumulate, name).eq(getattr(self, name))
        if plan.has_floats:
            self._specials(m, accumulate)
        return m

    def _product(self, m: Module, i: int) -> DelayLine:
        slot = self.plan.slots[i]
        m.submodules[f"multiply{i}"] = multiplier = Multiplier(slot.operand_bits, slot.product_bits)
        m.d.comb += [
            multiplier.a.eq(self.a[f"slot{i}"].sig),
            multiplier.b.eq(self.b[f"slot{i}"].sig),
        ]
        return DelayLine(m, f"product{i}", multiplier.p, first=1 + multiplier.latency)

    def _align(self, m: Module, products: list[DelayLine], tree: SumTree) -> None:
        plan = self.plan
        self._lost = []
        carries = []
        largest = self._largest(m)
        age = plan.shift_age - 1
        hosts = {plan.guest_slot(i): i for i, slot in enumerate(plan.slots) if slot.split}
        for i, slot in enumerate(plan.slots):
            product = Signal(signed(slot.product_bits), name=f"p{i}")
            m.d.comb += product.eq(products[i][plan.shift_age])
            m.submodules[f"align{i}"] = align = Aligner(slot, plan.windows)
            m.d.comb += [align.p.eq(product), getattr(tree, f"term{i}").eq(align.term)]
            if not slot.floats:
                continue
            exp = self._exponent(m, i)[age]
            m.submodules[f"shift{i}"] = amount = ShiftAmount(slot, len(largest), len(exp))
            gone = Const(0, 1)
            if slot.has_windows:
                gone = amount.gone
                m.d.comb += [
                    amount.windowed.eq(self.align_amount.windowed),
                    align.window.eq(self.align_term.window),
                ]
            if slot.guest is not None:
                m.d.comb += align.low.eq(products[hosts[i]][plan.shift_age])
            m.d.comb += [
                amount.largest.eq(largest),
                amount.exp.eq(exp),
                align.shift.eq(amount.shift),
                align.integer.eq(self.align_shift.integer),
                align.clear.eq(self.align_shift.integer | gone),
            ]
            if slot.windowed:
                tz = DelayLine(m, f"tz{i}", self.a[f"slot{i}"].tz + self.b[f"slot{i}"].tz, first=1)
                nonzero = DelayLine(m, f"nonzero{i}", self._nonzero(i), first=1)
                limit = f"limit{plan.slot_class(slot)}"
                m.d.comb += [
                    amount.limit.eq(
                        self.align_amount[limit] if len(slot.limits) > 1 else slot.limits[0]
                    ),
                    amount.tz.eq(tz[age]),
                    amount.nonzero.eq(nonzero[age]),
                ]
                # Truncation of a magnitude: a negative product is raised by one.
                raised = DelayLine(m, f"raised{i}", amount.dropped & ~gone & product[-1])
                carries.append(raised[Aligner.latency])
                self._lost.append(amount.dropped)
        if carries:
            m.d.comb += [tree.carry.eq(Cat(carries)), tree.place.eq(self.align_sum.window)]

    def _exponent(self, m: Module, i: int) -> DelayLine:
        """Sum of the exponents of slot `i`, or where it has a guest, that of the guest.

        A guest is a product's low half: its exponent is less by the distance.
        """
        plan = self.plan
        slot = plan.slots[i]
        exp = DelayLine(m, f"exp{i}", self.a[f"slot{i}"].exp + self.b[f"slot{i}"].exp, first=1)
        if slot.guest is None:
            return exp
        host = next(n for n, s in enumerate(plan.slots) if s.split and plan.guest_slot(n) == i)
        a, b = self.a[f"slot{host}"].exp, self.b[f"slot{host}"].exp
        guest = DelayLine(m, f"guest_exp{i}", a + b, first=1)[2]
        distance = slot.guest.fmt.man + 1 - slot.guest_gap
        here = Signal(ShiftAmount.amount_bits_of(slot, plan.largest_bits), name=f"exp_or_guest{i}")
        m.d.comb += here.eq(Mux(self.align_guest.guest, guest - distance, exp[2]))
        return DelayLine(m, f"late_exp{i}", here, first=2)

    def _largest(self, m: Module) -> Value:
        """The sum of exponents that is not shifted: E, or the format's largest, or both."""
        plan = self.plan
        largest: Value = Const(plan.anchors[-1], plan.largest_bits)
        if len(plan.anchors) > 1:
            largest = self.align_amount.largest  # 0 for windowed formats
        if plan.has_windows:
            self._anchor_line = self._anchor(m)
            windowed = self.align_amount.windowed.replicate(plan.anchor_bits)
            largest = largest | (self._anchor_line[plan.shift_age - 1] & windowed)
        signal = Signal(plan.largest_bits, name="largest")
        m.d.comb += signal.eq(largest)
        return signal

    def _nonzero(self, i: int) -> Value:
        a, b = self.a[f"slot{i}"], self.b[f"slot{i}"]
        return a.active & ~a.zero & ~b.zero

    def _anchor(self, m: Module) -> DelayLine:
        """E; undefined for formats that are not windowed."""
        plan = self.plan
        widths = [plan.slots[i].exp_bits + 1 for i in plan.anchor_slots]
        m.submodules.anchor = anchor = Anchor(widths, plan.ANCHOR_LEVELS_PER_STAGE)
        for n, i in enumerate(plan.anchor_slots):
            exp = register(m, f"anchor_exp{i}", self.a[f"slot{i}"].exp + self.b[f"slot{i}"].exp)
            m.d.comb += [
                getattr(anchor, f"exp{n}").eq(exp),
                anchor.nonzero[n].eq(register(m, f"anchor_nonzero{i}", self._nonzero(i))),
            ]
        return DelayLine(m, "anchor", anchor.largest, first=plan.anchor_age)

    def _specials(self, m: Module, accumulate: FloatAccumulator) -> None:
        plan = self.plan
        last = plan.latency - 1
        m.submodules.specials = specials = Specials(plan)
        summary = DelayLine(m, "summary", specials.summary.as_value(), first=2)
        lost = DelayLine(m, "lost", any_of(self._lost), first=plan.shift_age)
        m.d.comb += [
            specials.a.eq(self.a),
            specials.b.eq(self.b),
            accumulate.summary.eq(summary[last - 2]),
            accumulate.lost.eq(lost[last]),
        ]
        if plan.has_windows:
            windowed = self.control_start.windowed.replicate(plan.anchor_bits)
            m.d.comb += accumulate.anchor.eq(self._anchor_line[plan.c_age - 1] & windowed)
