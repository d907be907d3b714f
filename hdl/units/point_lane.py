"""One lane of the pointwise unit: an element of 64 bits or two of 32."""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ..mac.logic import mux_one_hot
from ..mac.pipeline import DelayLine, register
from .point_multiply import PointMultiplier
from .point_op import Rounding
from .point_shift import PointShifter

__all__ = ["PointLane", "point_control"]

WIDE = 64
HALF = WIDE // 2


def point_control() -> data.StructLayout:
    """Control of a lane, which follows its elements from stage to stage.

    `wide`: one element of 64 bits, else two of 32. `shifts`: x is shifted by y. `signed`: x has a
    sign. `adds`: y or, if `subtracts`, its negative is added. `rnd`: `Rounding`. `multiplies`: the
    result is a product, its high half if `high`. `clips`: the packed result is taken.
    """
    return data.StructLayout(
        {
            "wide": 1,
            "shifts": 1,
            "signed": 1,
            "adds": 1,
            "subtracts": 1,
            "rnd": 2,
            "multiplies": 1,
            "high": 1,
            "clips": 1,
        }
    )


class PointLane(wiring.Component):
    """Sum, product, or shift with rounding and clamping, of one pair of wide elements or two.

    All of them take the same time: the product is made beside the shifted x, to which a shift adds
    its rounding and a sum adds y, with the same adder.

    Members
    -------
    x, y : elements, at age 0.
    control0, control1, ... : the control, at the age in its name.
    d : the elements of the result, at age `LATENCY`.
    packed : the clamped elements side by side, each a quarter as wide, with `d`.
    clamped : whether clamping changed the low element, or the wide one, and the high one.

    Latency: `LATENCY` cycles. Throughput: one word a cycle. Size: 16 multiplier blocks.
    Source: isa.md section 1 (madd, msub, mmul, mmulh, msra, mn4clip, mn4clipu).
    """

    OPERAND_AGE = 1
    SHIFTED_AGE = OPERAND_AGE + PointShifter.LATENCY
    SUM_AGE = OPERAND_AGE + PointMultiplier.LATENCY
    LATENCY = SUM_AGE + 1

    def __init__(self):
        controls = {f"control{age}": In(point_control()) for age in range(self.LATENCY + 1)}
        super().__init__(
            {
                "x": In(WIDE),
                "y": In(WIDE),
                **controls,
                "d": Out(WIDE),
                "packed": Out(WIDE // 4),
                "clamped": Out(2),
            }
        )

    def _control(self, age: int) -> data.View:
        return getattr(self, f"control{age}")

    def elaborate(self, platform):
        m = Module()
        x = register(m, "x_reg", self.x)
        y = DelayLine(m, "y", self.y)
        m.submodules.multiply = multiply = PointMultiplier()
        m.d.comb += [
            multiply.a.eq(x),
            multiply.b.eq(y[self.OPERAND_AGE]),
            multiply.wide.eq(self._control(self.OPERAND_AGE).wide),
        ]
        shifter = self._shift(m, x)
        total = self._add(m, shifter, y)
        self._select(m, total, multiply.p)
        self._clip(m, total)
        return m

    def _shift(self, m: Module, x: Value) -> PointShifter:
        """x shifted by y, if at all, at age `SHIFTED_AGE`."""
        m.submodules.shift = shifter = PointShifter()
        control = self._control(self.OPERAND_AGE - 1)
        bits = len(shifter.high)
        low = self.y[: bits + 1] & Cat(Const(-1, bits), control.wide)
        high = Mux(control.wide, self.y[:bits], self.y[HALF : HALF + bits])
        m.d.comb += [
            shifter.x.eq(x),
            shifter.low.eq(register(m, "low_amount", low & control.shifts.replicate(bits + 1))),
            shifter.high.eq(register(m, "high_amount", high & control.shifts.replicate(bits))),
        ]
        for i, port in enumerate((shifter.control0, shifter.control1)):
            control = self._control(self.OPERAND_AGE + i)
            m.d.comb += [port.wide.eq(control.wide), port.signed.eq(control.signed)]
        return shifter

    def _add(self, m: Module, shifter: PointShifter, y: DelayLine) -> Signal:
        """The shifted x with its rounding, or with y, at age `SUM_AGE`."""
        before = self._control(self.SHIFTED_AGE - 1)
        addend = register(
            m,
            "addend",
            (y[self.SHIFTED_AGE - 1] ^ before.subtracts.replicate(WIDE))
            & before.adds.replicate(WIDE),
        )
        control = self._control(self.SHIFTED_AGE)
        carries = []
        for i, half in enumerate((shifter.d[:HALF], shifter.d[HALF:])):
            guard, sticky, odd = shifter.guard[i], shifter.sticky[i], half[0]
            up = Signal(name=f"up{i}")
            with m.Switch(control.rnd):
                with m.Case(Rounding.RNU):
                    m.d.comb += up.eq(guard)
                with m.Case(Rounding.RNE):
                    m.d.comb += up.eq(guard & (sticky | odd))
                with m.Case(Rounding.ROD):
                    m.d.comb += up.eq(~odd & (guard | sticky))
            carry = Signal(name=f"carry{i}")
            m.d.comb += carry.eq(up | control.subtracts)
            carries.append(carry)
        # One carry chain: a place below takes the low carry in, one between the halves passes the
        # carry of a wide element or takes that of the high element.
        low, high = carries
        left = Cat(Const(1, 1), shifter.d[:HALF], control.wide | high, shifter.d[HALF:])
        right = Cat(low, addend[:HALF], ~control.wide & high, addend[HALF:])
        chain = Signal(len(left), name="chain", reset_less=True)
        m.d.sync += chain.eq(left + right)
        total = Signal(WIDE, name="total")
        m.d.comb += total.eq(Cat(chain[1 : 1 + HALF], chain[2 + HALF :]))
        return total

    def _select(self, m: Module, total: Value, product: Value) -> None:
        """The result's elements, registered."""
        control = self._control(self.SUM_AGE)
        halves = [product.word_select(i, HALF) for i in range(4)]
        sums = ~control.multiplies
        low = ~control.high
        choices = [
            (sums, total),
            (low & control.wide, Cat(halves[0], halves[1])),
            (low & ~control.wide, Cat(halves[0], halves[2])),
            (control.high & control.wide, Cat(halves[2], halves[3])),
            (control.high & ~control.wide, Cat(halves[1], halves[3])),
        ]
        m.d.comb += self.d.eq(register(m, "d_reg", mux_one_hot(choices)))

    def _clip(self, m: Module, total: Value) -> None:
        """The clamped elements, from what is known one cycle before."""
        control = self._control(self.LATENCY)
        kept = register(m, "kept", total)
        packed, clamped = {}, {}
        for name, bits, place in (("wide", WIDE, 0), ("low", HALF, 0), ("high", HALF, HALF)):
            element, quarter = total[place : place + bits], bits // 4
            clear = register(m, f"{name}_clear", ~element[quarter:].any())
            full = register(m, f"{name}_full", element[quarter:].all())
            value = kept[place : place + quarter]
            negative = kept[place + bits - 1] & control.signed
            fits = Signal(name=f"{name}_fits")
            m.d.comb += fits.eq(Mux(control.signed & value[-1], full, clear))
            limit = Cat((~negative).replicate(quarter - 1), negative | ~control.signed)
            packed[name] = Mux(fits, value, limit)
            clamped[name] = ~fits
        m.d.comb += [
            self.packed.eq(Mux(control.wide, packed["wide"], Cat(packed["low"], packed["high"]))),
            self.clamped.eq(
                Mux(control.wide, clamped["wide"], Cat(clamped["low"], clamped["high"]))
            ),
        ]
