"""Operand decode: a row of A or B becomes one integer significand for each multiplier."""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Signal, Value, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from .fields import unpack
from .logic import any_of, mux_one_hot, trailing_zeros
from .plan import FormatPlan, MacPlan, Slot

__all__ = ["OperandDecoder", "operand", "operand_control", "operand_row"]


def operand_control(plan: MacPlan) -> data.StructLayout:
    """Control of a decoder, from `op` (see control.py).

    `format`: one-hot, in order of `Config.format_rows`. `active`: slots whose lane takes part.
    `negate`: change every sign (done by the accumulator where there are only integers).
    `unsigned`: integers without sign.
    """
    return data.StructLayout(
        {"format": len(plan.formats), "active": len(plan.slots), "negate": 1, "unsigned": 1}
    )


def operand(slot: Slot) -> data.StructLayout:
    """A decoded lane.

    `sig`: its two's complement significand, 0 if it takes no part; a float's hidden bit is always
    bit `Slot.significand_bits` - 1. With floats also the biased
    exponent `exp`, and of a lane that takes part: `active`, `negative` (the sign, zeros have one
    too), `zero`, `inf`, `nan`. With windowed floats also `tz`, the significand's trailing zeros.
    """
    fields: dict[str, object] = {"sig": signed(slot.operand_bits)}
    if slot.floats:
        fields |= {"exp": slot.exp_bits, "active": 1, "negative": 1, "zero": 1, "inf": 1, "nan": 1}
    if slot.windowed:
        fields["tz"] = slot.tz_bits
    return data.StructLayout(fields)


def operand_row(plan: MacPlan) -> data.StructLayout:
    """A decoded row: its lanes, and whether any of those that take part is a (signalling) NaN."""
    fields: dict[str, object] = {f"slot{i}": operand(s) for i, s in enumerate(plan.slots)}
    if plan.has_floats:
        fields |= {"nan": 1, "snan": 1}
    return data.StructLayout(fields)


class OperandDecoder(wiring.Component):
    """Decodes every lane of one operand row.

    Parameters
    ----------
    plan : sizes.

    Members
    -------
    row : a row of a tile.
    control : format and modifiers.
    operands : decoded lanes, registered.

    Latency: 1 cycle. Throughput: one row a cycle. Source: numerics.md sections 1 and 3.
    """

    latency = 1

    def __init__(self, plan: MacPlan):
        self.plan = plan
        super().__init__(
            {
                "row": In(plan.row_bits),
                "control": In(operand_control(plan)),
                "operands": Out(operand_row(plan)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        nans, snans = [], []
        for i, slot in enumerate(self.plan.slots):
            decoded = Signal(operand(slot), name=f"decoded{i}")
            reg = Signal(operand(slot), name=f"operand{i}", reset_less=True)
            nan, snan = self._decode(m, i, slot, decoded)
            nans.append(nan & self.control.active[i])
            snans.append(snan & self.control.active[i])
            # Written as a reset of the register, which costs no logic on most targets.
            with m.If(self.control.active[i]):
                m.d.sync += reg.eq(decoded)
            with m.Else():
                m.d.sync += reg.eq(0)
            m.d.comb += self.operands[f"slot{i}"].eq(reg)
        if self.plan.has_floats:
            for name, bits in (("nan", nans), ("snan", snans)):
                reg = Signal(name=f"{name}_reg", reset_less=True)
                m.d.sync += reg.eq(any_of(bits))
                m.d.comb += self.operands[name].eq(reg)
        return m

    def _decode(self, m: Module, i: int, slot: Slot, decoded: data.View) -> tuple[Value, Value]:
        """Drive `decoded`; returns whether the lane is a NaN and a signalling one."""
        bits, control = slot.operand_bits, self.control
        integers = [f for f in slot.formats if not f.fmt.is_float]
        value: Value = Const(0, bits)
        if integers:
            value = mux_one_hot(
                [(control.format[f.index], self._integer(m, i, slot, f)) for f in integers]
            )
        if not slot.floats:
            if self.plan.has_floats:
                value = self._negate(m, i, slot, value, control.negate)
            m.d.comb += decoded.sig.eq(value)
            return Const(0, 1), Const(0, 1)
        container = self.row[slot.lsb : slot.lsb + max(f.fmt.container for f in slot.floats)]
        choices = [(f.fmt, control.format[f.index]) for f in slot.floats]
        fields = unpack(m, f"lane{i}", container, choices, at_top=True)
        is_float = any_of(control.format[f.index] for f in slot.floats)
        if integers:
            value = mux_one_hot(
                [(is_float, Cat(fields.sig, Const(0, 1)).as_signed()), (~is_float, value)]
            )
        else:
            value = fields.sig
        negative = Signal(name=f"negative{i}")
        m.d.comb += [
            negative.eq((fields.sign & is_float) ^ control.negate),
            decoded.sig.eq(self._negate(m, i, slot, value, negative)),
            decoded.exp.eq(fields.exp & is_float.replicate(len(fields.exp))),
            decoded.active.eq(1),
            decoded.negative.eq(negative),
            decoded.zero.eq(fields.zero),
            decoded.inf.eq(fields.inf),
            decoded.nan.eq(fields.nan),
        ]
        if slot.windowed:
            sig = fields.sig[-slot.windowed_significand_bits :]
            m.d.comb += decoded.tz.eq(trailing_zeros(m, f"tz{i}", sig))
        return fields.nan, fields.snan

    def _integer(self, m: Module, i: int, slot: Slot, f: FormatPlan) -> Value:
        bits = self.row[slot.lsb : slot.lsb + f.fmt.bits]
        value = Signal(signed(slot.operand_bits), name=f"{f.fmt.name}_{i}")
        m.d.comb += value.eq(Cat(bits, bits[-1] & ~self.control.unsigned).as_signed())
        return value

    def _negate(self, m: Module, i: int, slot: Slot, value: Value, negate: Value) -> Signal:
        wide = Signal(signed(slot.operand_bits), name=f"positive{i}")
        result = Signal(signed(slot.operand_bits), name=f"significand{i}")
        flip = negate.replicate(slot.operand_bits).as_signed()
        m.d.comb += [wide.eq(value), result.eq((wide ^ flip) + negate)]
        return result
