"""Alignment: products onto one axis, at constant places or below the largest."""

from __future__ import annotations

from collections.abc import Sequence

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from .logic import shift_right
from .pipeline import DelayLine, register
from .plan import Slot

__all__ = ["Aligner", "Anchor", "ShiftAmount"]


class Anchor(wiring.Component):
    """E of a windowed sum: the largest exponent of the nonzero products.

    Parameters
    ----------
    widths : width of each exponent sum.
    levels_per_stage : levels of the maximum tree between registers.

    Members
    -------
    exp0, exp1, ... : exponent sums.
    nonzero : whether each product is not zero.
    largest : the largest exponent sum of nonzero products; undefined if there is none.

    Latency: `latency` cycles. Throughput: one uop a cycle. Source: numerics.md section 1.
    """

    def __init__(self, widths: Sequence[int], levels_per_stage: int):
        self.widths = tuple(widths)
        self.levels_per_stage = levels_per_stage
        levels = (max(2, len(self.widths)) - 1).bit_length()
        self.latency = -(-levels // levels_per_stage)
        members = {f"exp{i}": In(width) for i, width in enumerate(self.widths)}
        super().__init__(
            {**members, "nonzero": In(len(self.widths)), "largest": Out(max(self.widths))}
        )

    def elaborate(self, platform):
        m = Module()
        bits = max(self.widths)
        # A zero product compares below every other: its topmost bit is clear.
        values: list[Value] = [
            Cat(getattr(self, f"exp{i}"), Const(0, bits - width), self.nonzero[i])
            for i, width in enumerate(self.widths)
        ]
        for stage in range(self.latency):
            for _ in range(self.levels_per_stage):
                pairs = zip(values[0::2], values[1::2], strict=False)
                odd = values[-1:] if len(values) % 2 else []
                values = [Mux(a > b, a, b) for a, b in pairs] + odd
            values = [register(m, f"max{stage}_{i}", value) for i, value in enumerate(values)]
        m.d.comb += self.largest.eq(values[0][:bits])
        return m


class ShiftAmount(wiring.Component):
    """How far one product is shifted down to its place on the axis.

    Parameters
    ----------
    slot : sizes.
    anchor_bits : width of E; 0 if no format of the slot is windowed.

    Members
    -------
    base : constant of the format (`Slot.shift_base`).
    exp : sum of the operands' exponents.
    anchor : E, 0 for a format that is not windowed.
    tz : trailing zeros of the product.
    nonzero : the product is not zero.
    windowed : the format is.
    shift : the shift amount, registered.
    gone : the product is wholly below the axis, registered.
    dropped : bits of the product are lost, registered.

    Latency: 1 cycle. Throughput: one a cycle. Source: numerics.md sections 1 and 8.
    """

    def __init__(self, slot: Slot, anchor_bits: int):
        self.slot = slot
        self.anchor_bits = anchor_bits
        self.windowed_slot = slot.windowed
        self.base_bits = max(1, max(slot.shift_base(f) for f in slot.floats).bit_length())
        members = {
            "base": In(self.base_bits),
            "exp": In(slot.exp_bits + 1),
            "shift": Out(slot.shift_bits),
        }
        if slot.windowed:
            members |= {
                "anchor": In(anchor_bits),
                "tz": In(slot.tz_bits + 1),
                "nonzero": In(1),
                "windowed": In(1),
                "gone": Out(1),
                "dropped": Out(1),
            }
        super().__init__(members)

    def elaborate(self, platform):
        m = Module()
        slot = self.slot
        shift = Signal(slot.shift_bits, name="shift_reg", reset_less=True)
        m.d.comb += self.shift.eq(shift)
        if not slot.windowed:
            m.d.sync += shift.eq(self.base - self.exp)
            return m
        # Negative only for products that are zero, which may be shifted anywhere.
        bits = max(self.base_bits, self.anchor_bits + 1) + 1
        amount = Signal(bits, name="amount")
        gone = Signal(name="is_gone")
        place = Signal(range(slot.windowed_place + (2 << slot.tz_bits)), name="lowest_set_bit")
        m.d.comb += [
            amount.eq(self.base + self.anchor - self.exp),
            gone.eq(amount[slot.shift_bits :].any() & self.windowed),
            place.eq(slot.windowed_place + self.tz),
        ]
        m.d.sync += shift.eq(amount)
        dropped = self.windowed & self.nonzero & (gone | (amount > place))
        m.d.comb += [
            self.gone.eq(register(m, "gone_reg", gone)),
            self.dropped.eq(register(m, "dropped_reg", dropped)),
        ]
        return m


class Aligner(wiring.Component):
    """Shifts one signed product down to its place on the axis, dropping what falls below.

    Products of integers pass by the shifter; their place is bit 0.

    Parameters
    ----------
    slot : sizes and the places where products are taken in.

    Members
    -------
    p : product.
    windowed : take it in at `Slot.windowed_place`, not at `Slot.exact_place`.
    integer : it is a product of integers.
    shift : places to shift it down.
    clear : the product is wholly below the axis.
    term : the product on the axis, rounded towards minus infinity; 0 if `clear`.

    Latency: 2 cycles: fine shift, coarse shift. Throughput: one a cycle. Source: numerics.md 1.
    """

    latency = 2

    def __init__(self, slot: Slot):
        self.slot = slot
        super().__init__(
            {
                "p": In(signed(slot.product_bits)),
                "windowed": In(1),
                "integer": In(1),
                "shift": In(slot.shift_bits),
                "clear": In(1),
                "term": Out(signed(slot.term_bits)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        slot = self.slot
        if not slot.floats:
            m.d.comb += self.term.eq(DelayLine(m, "p", self.p)[2].as_signed())
            return m
        fine_bits = min(3, slot.shift_bits)
        taken = self._take(m)
        fine = Signal(signed(len(taken)), name="fine", reset_less=True)
        m.d.sync += fine.eq(shift_right(m, "fine", taken, self.shift[:fine_bits]).as_signed())
        moved: Value = fine
        if slot.shift_bits > fine_bits:
            coarse = register(m, "coarse", self.shift[fine_bits:])
            moved = shift_right(m, "coarse", fine, coarse, 1 << fine_bits).as_signed()
        if slot.has_integers:
            # Either way is held at zero, by register resets, while the other one is used.
            bypass = Signal(signed(slot.product_bits), name="bypass", reset_less=True)
            with m.If(self.integer):
                m.d.sync += [fine.eq(0), bypass.eq(self.p)]
            with m.Else():
                m.d.sync += bypass.eq(0)
            moved = moved | bypass
        term = Signal(signed(slot.term_bits), name="aligned", reset_less=True)
        m.d.sync += term.eq(moved)
        if slot.windowed:
            with m.If(register(m, "clear_reg", self.clear)):
                m.d.sync += term.eq(0)
        m.d.comb += self.term.eq(term)
        return m

    def _take(self, m: Module) -> Signal:
        """The product at the place where it enters the shifter."""
        slot = self.slot
        exact = [f.product_bits for f in slot.floats if not f.windowed]
        windowed = [f.product_bits for f in slot.floats if f.windowed]
        bits = max(
            slot.exact_place + max(exact, default=0),
            slot.windowed_place + max(windowed, default=0),
        )
        options = []
        for name, width, place in (
            ("at_exact", max(exact, default=0), slot.exact_place),
            ("at_windowed", max(windowed, default=0), slot.windowed_place),
        ):
            if width:
                option = Signal(signed(bits), name=name)
                m.d.comb += option.eq(self.p[:width].as_signed() << place)
                options.append(option)
        if len(options) == 1:
            return options[0]
        taken = Signal(signed(bits), name="taken")
        m.d.comb += taken.eq(Mux(self.windowed, options[1], options[0]))
        return taken
