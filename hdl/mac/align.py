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
    largest_bits, exp_bits : widths of `largest` and `exp`.

    Members
    -------
    largest : sum of exponents that stays where it is: E, or the format's largest.
    exp : sum of the operands' exponents; of a guest, modulo 2^exp_bits.
    limit : `Slot.dropped_from` of the format.
    tz : trailing zeros of the product.
    nonzero : the product is not zero.
    windowed : the format is.
    shift : the shift amount, registered.
    gone : the product is wholly below the axis, registered.
    dropped : bits of the product are lost, registered.

    Latency: 1 cycle. Throughput: one a cycle. Source: numerics.md sections 1 and 8.
    """

    def __init__(self, slot: Slot, largest_bits: int, exp_bits: int):
        self.slot = slot
        self.amount_bits = self.amount_bits_of(slot, largest_bits)
        members = {
            "largest": In(largest_bits),
            "exp": In(exp_bits),
            "shift": Out(slot.shift_bits),
        }
        if slot.has_windows:
            members |= {"windowed": In(1), "gone": Out(1)}
        if slot.windowed:
            members |= {
                "limit": In(signed(slot.limit_bits)),
                "tz": In(slot.tz_bits + 1),
                "nonzero": In(1),
                "dropped": Out(1),
            }
        super().__init__(members)

    @staticmethod
    def amount_bits_of(slot: Slot, largest_bits: int) -> int:
        """Width in which amounts are computed: guests are shifted further than others."""
        return max(slot.shift_bits, largest_bits + (slot.guest is not None))

    def elaborate(self, platform):
        m = Module()
        slot = self.slot
        shift = Signal(slot.shift_bits, name="shift_reg", reset_less=True)
        # Negative only for products that are zero, which may be shifted anywhere.
        amount = Signal(self.amount_bits, name="amount")
        m.d.comb += [amount.eq(self.largest - self.exp), self.shift.eq(shift)]
        m.d.sync += shift.eq(amount)
        if slot.has_windows:
            gone = self.windowed & amount[slot.shift_bits :].any()
            m.d.comb += self.gone.eq(register(m, "gone_reg", gone))
        if slot.windowed:
            place = Signal(signed(slot.limit_bits), name="lowest_set_bit")
            dropped = self.windowed & self.nonzero & (amount > place)
            m.d.comb += [
                place.eq(self.limit + self.tz),
                self.dropped.eq(register(m, "dropped_reg", dropped)),
            ]
        return m


class Aligner(wiring.Component):
    """Shifts one signed product down to its place on the axis, dropping what falls below.

    Products of integers pass by the shifter; their place is a constant.

    Parameters
    ----------
    slot : sizes and places.
    windows : places where windows end (`MacPlan.windows`).

    Members
    -------
    p : product.
    low : low half of a guest's product.
    clear : take zero for a float product: it is one of integers, or is wholly below the axis.
    integer : it is a product of integers.
    shift : places to shift it down.
    window : one-hot, one cycle later: the window of the format, if it has one.
    term : the product on the axis, rounded towards minus infinity.

    Latency: 2 cycles: fine shift, coarse shift. Throughput: one a cycle. Source: numerics.md 1.
    """

    latency = 2

    def __init__(self, slot: Slot, windows: Sequence[int]):
        self.slot = slot
        self.windows = tuple(windows) if slot.has_windows else ()
        members = {"p": In(signed(slot.product_bits)), "term": Out(signed(slot.term_bits))}
        if slot.floats:
            members |= {"clear": In(1), "integer": In(1), "shift": In(slot.shift_bits)}
        if self.windows:
            members["window"] = In(len(self.windows))
        if slot.guest is not None:
            members["low"] = In(slot.guest.fmt.man + 1)
        super().__init__(members)

    def elaborate(self, platform):
        m = Module()
        slot = self.slot
        if not slot.floats:
            product = DelayLine(m, "p", self.p)[2]
            m.d.comb += self.term.eq(product.as_signed() << slot.integer_place)
            return m
        fine_bits = min(3, slot.shift_bits)
        product = self.p[slot.cut : slot.magnitude_bits + 1]
        taken = Cat(Const(0, slot.shifted_bits + 1 - len(product)), product)
        if slot.guest is not None:
            # Either of them is zero.
            gap = slot.shifted_bits - slot.guest_gap - len(self.low)
            taken = taken | Cat(Const(0, gap), self.low)
        taken = Cat(Const(0, slot.float_place), taken).as_signed()
        fine = Signal(signed(len(taken)), name="fine", reset_less=True)
        # Register resets, which cost no logic on most targets, hold what is not used at zero.
        with m.If(self.clear):
            m.d.sync += fine.eq(0)
        with m.Else():
            m.d.sync += fine.eq(shift_right(m, "fine", taken, self.shift[:fine_bits]).as_signed())
        moved: Value = fine
        if slot.shift_bits > fine_bits:
            coarse = register(m, "coarse", self.shift[fine_bits:])
            moved = shift_right(m, "coarse", fine, coarse, 1 << fine_bits).as_signed()
        if slot.has_integers:
            bypass = Signal(signed(slot.product_bits), name="bypass", reset_less=True)
            with m.If(self.integer):
                m.d.sync += bypass.eq(self.p)
            with m.Else():
                m.d.sync += bypass.eq(0)
            moved = moved | (bypass << slot.integer_place)
        m.d.comb += self.term.eq(self._cut(m, moved))
        return m

    def _cut(self, m: Module, moved: Value) -> Value:
        """The registered term: without the bits below the format's window."""
        parts: list[Value] = [Const(0, self.slot.term_low)]
        place = self.slot.term_low
        for i, end in enumerate((*self.windows, self.slot.term_bits)):
            if end <= place:
                continue
            part = Signal(end - place, name=f"aligned{i}", reset_less=True)
            m.d.sync += part.eq(moved[place:end])
            if i < len(self.windows):
                with m.If(self.window[i:].any()):
                    m.d.sync += part.eq(0)
            parts.append(part)
            place = end
        return Cat(parts).as_signed()
