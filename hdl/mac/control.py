"""Decode of a uop's `op`, once for the whole array."""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Signal, Value, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ..interfaces import mac_op
from .accumulate_control import accumulate_control
from .logic import any_of, mux_one_hot
from .operand import operand_control
from .plan import MacPlan, Slot

__all__ = ["ControlDecoder", "align_control"]


def align_control(plan: MacPlan) -> data.StructLayout:
    """Control of the aligners.

    `integer`, `windowed`: the format is. `guest`: it is the guest of slots. `window`: one-hot, in
    order of `MacPlan.windows`. `largest`: `FormatPlan.anchor`, where formats differ. `limit0`,
    `limit1`, ...: `Slot.dropped_from` for each class of slots in which formats differ.
    """
    fields: dict[str, object] = {"integer": 1, "windowed": 1, "window": len(plan.windows)}
    if plan.has_guests:
        fields["guest"] = 1
    if len(plan.anchors) > 1:
        fields["largest"] = plan.largest_bits
    for i, slot in enumerate(plan.slot_classes):
        if len(slot.limits) > 1:
            fields[f"limit{i}"] = signed(slot.limit_bits)
    return data.StructLayout(fields)


class ControlDecoder(wiring.Component):
    """Turns `op` into the control of every stage, combinationally.

    Parameters
    ----------
    plan : sizes.

    Members
    -------
    op : the uop.
    operand_a, operand_b : control of the operand decoders.
    align : control of the aligners.
    accumulate : control of the accumulators.
    """

    def __init__(self, plan: MacPlan):
        self.plan = plan
        members = {
            "op": In(mac_op(plan.cfg)),
            "operand_a": Out(operand_control(plan)),
            "operand_b": Out(operand_control(plan)),
            "accumulate": Out(accumulate_control(plan)),
        }
        if plan.has_floats:
            members["align"] = Out(align_control(plan))
        super().__init__(members)

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
        if plan.has_floats:
            m.d.comb += self.operand_a.negate.eq(op.negate)
            self._align(m, formats)
        self._accumulate(m, formats, outs)
        return m

    def _active(self, slot: Slot, formats: Signal) -> Value:
        """Whether the slot's lane is one of the op.k that take part."""
        by_lane: dict[int, list[Value]] = {}
        for f in slot.formats:
            by_lane.setdefault(slot.lane(f), []).append(formats[f.index])
        if len(by_lane) == 1 and len(slot.formats) == len(self.plan.formats):
            return self.op.k > next(iter(by_lane))
        return any_of(any_of(used) & (self.op.k > lane) for lane, used in by_lane.items())

    def _align(self, m: Module, formats: Signal) -> None:
        plan, control = self.plan, self.align
        windowed = {f: formats[f.index] for f in plan.formats if f.windowed}
        m.d.comb += [
            control.windowed.eq(any_of(windowed.values())),
            control.window.eq(
                Cat(any_of(c for f, c in windowed.items() if f.lift == end) for end in plan.windows)
            ),
            control.integer.eq(
                any_of(formats[f.index] for f in plan.formats if not f.fmt.is_float)
            ),
        ]
        if plan.has_guests:
            guests = [slot.guest for slot in plan.slots]
            m.d.comb += control.guest.eq(any_of(c for f, c in windowed.items() if f in guests))
        if len(plan.anchors) > 1:
            floats = [f for f in plan.formats if f.fmt.is_float]
            m.d.comb += control.largest.eq(
                mux_one_hot(
                    [(formats[f.index], Const(f.anchor, plan.largest_bits)) for f in floats]
                )
            )
        for i, slot in enumerate(plan.slot_classes):
            if len(slot.limits) > 1:
                bits = signed(slot.limit_bits)
                m.d.comb += control[f"limit{i}"].eq(
                    mux_one_hot(
                        [
                            (condition, Const(slot.dropped_from(f), bits))
                            for f, condition in windowed.items()
                            if f in slot.floats
                        ]
                    )
                )

    def _accumulate(self, m: Module, formats: Signal, outs: Signal) -> None:
        plan, op, control = self.plan, self.op, self.accumulate
        m.d.comb += [control.out.eq(outs), control.sat.eq(op.sat), control.rnd.eq(op.rnd)]
        chosen = {
            pair: formats[pair.src.index] & outs[plan.outputs.index(pair.out)]
            for pair in plan.pairs
        }
        if plan.has_integers:
            m.d.comb += control.modular.eq(
                any_of(formats[f.index] for f in plan.formats if f.modular)
            )
            for i, shift in enumerate(plan.shifts):
                pairs = [p for p in plan.pairs if not p.out.is_float and p.shift == shift]
                m.d.comb += control.shift[i].eq(any_of(chosen[p] for p in pairs))
        if not plan.has_floats:
            m.d.comb += control.negate.eq(op.negate)
            return
        m.d.comb += [
            control.c_out.eq(outs & ~op.overwrite.replicate(len(outs))),
            control.windowed.eq(any_of(formats[f.index] for f in plan.formats if f.windowed)),
        ]
        low, sticky, frame = plan.frame_low, plan.sticky_bits, plan.frame_bits
        constants = {
            "c_base": lambda pair: pair.c_place + low + sticky,
            "c_most": lambda pair: pair.dominated_from - 1 + low + sticky,
            "room_base": lambda pair: frame - 3 + pair.out.bias + pair.src.weight - low,
            "room_c_base": lambda pair: frame - 3 - pair.out.man - low,
        }
        for name, value in constants.items():
            bits = len(control[name])
            options = [
                (chosen[pair], Const(value(pair), signed(bits))) for pair in plan.float_pairs
            ]
            m.d.comb += control[name].eq(mux_one_hot(options))
