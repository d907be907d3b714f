"""Operand decode: a row of A or B becomes one integer operand for each multiplier."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Mux, Signal, Value, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from .plan import FormatPlan, MacPlan, Slot

__all__ = ["OperandDecoder", "operand_control", "operand_row"]


def operand_control(plan: MacPlan) -> data.StructLayout:
    """Control of a decoder, from `op` (see control.py).

    `format`: one-hot, in order of `Config.format_rows`. `active`: slots whose lane takes part.
    `unsigned`: integers without sign.
    """
    return data.StructLayout(
        {"format": len(plan.formats), "active": len(plan.slots), "unsigned": 1}
    )


def operand_row(plan: MacPlan) -> data.StructLayout:
    """A decoded row: one two's complement integer for each slot."""
    return data.StructLayout(
        {f"slot{i}": signed(slot.operand_bits) for i, slot in enumerate(plan.slots)}
    )


class OperandDecoder(wiring.Component):
    """Decodes every lane of one operand row.

    Lanes that take no part become zero.

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
                "row": In(plan.cfg.row_bits),
                "control": In(operand_control(plan)),
                "operands": Out(operand_row(plan)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        for i, slot in enumerate(self.plan.slots):
            decoded = self._select(m, i, slot)
            reg = Signal(signed(slot.operand_bits), name=f"operand{i}", reset_less=True)
            # Written as a reset of the register, which costs no logic on most targets.
            with m.If(self.control.active[i]):
                m.d.sync += reg.eq(decoded)
            with m.Else():
                m.d.sync += reg.eq(0)
            m.d.comb += self.operands[f"slot{i}"].eq(reg)
        return m

    def _select(self, m: Module, i: int, slot: Slot) -> Value:
        """The slot's integer in the format of this uop."""
        value: Value | None = None
        for f in slot.formats:
            candidate = self._integer(m, i, slot, f)
            if value is None:
                value = candidate
            else:
                value = Mux(self.control.format[f.index], candidate, value).as_signed()
        assert value is not None
        return value

    def _integer(self, m: Module, i: int, slot: Slot, f: FormatPlan) -> Value:
        bits = self.row[slot.lsb : slot.lsb + f.fmt.bits]
        value = Signal(signed(slot.operand_bits), name=f"{f.fmt.name}_{i}")
        m.d.comb += value.eq(Cat(bits, bits[-1] & ~self.control.unsigned).as_signed())
        return value
