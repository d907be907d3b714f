"""One lane of the vector unit: x * y + z for one element, and what is made of that."""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ..interfaces import mac_flags
from ..mac.accumulate_control import accumulate_control
from ..mac.float_accumulate import FloatAccumulator
from ..mac.integer_accumulate import IntegerAccumulator
from ..mac.logic import any_of, mux_one_hot
from ..mac.multiply import Multiplier
from ..mac.operand import OperandDecoder, operand_row
from ..mac.pipeline import DelayLine, register
from ..mac.special import Specials
from .lane_control import lane_control
from .lane_plan import LanePlan

__all__ = ["VectorLane"]


class VectorLane(wiring.Component):
    """Computes round(x * y + z), or a product or sum of which one part is left out or 1.

    Lanes of one class are the same module.

    Parameters
    ----------
    plan : sizes and ages.
    start : age of x and y.

    Members
    -------
    x, y : elements in the low bits, at age `start`.
    lane : control before the multiplier, at age `start`.
    z : the old element in the low bits, at age `c_age - 1`.
    read, skip : control of the accumulator and `LaneControl.skip`, with `z`.
    control_... : control of the accumulator (`MacPlan.control_ages`).
    d, flags : the result, at age `latency - 1`, to be registered outside.

    Throughput: one element a cycle. Source: numerics.md, isa.md section 2 (vector mode).
    """

    def __init__(self, plan: LanePlan, start: int):
        self.plan = plan
        self.start = start
        control = accumulate_control(plan)
        members = {
            "x": In(plan.row_bits),
            "y": In(plan.row_bits),
            "lane": In(lane_control(plan)),
            "z": In(plan.out_bits),
            "read": In(control),
            "skip": In(1),
            "d": Out(plan.out_bits),
            "flags": Out(mac_flags()),
        }
        members |= {f"control_{stage}": In(control) for stage in plan.control_ages}
        super().__init__(members)

    def elaborate(self, platform):
        m = Module()
        plan = self.plan
        a, b = self._factors(m)
        age = self.start + plan.PRODUCT_STAGES
        m.submodules.multiply = multiply = Multiplier(
            plan.slot.operand_bits, plan.slot.product_bits
        )
        m.d.comb += [multiply.a.eq(a.slot0.sig), multiply.b.eq(b.slot0.sig)]
        product = DelayLine(m, "product", multiply.p, first=age + multiply.latency)
        kind = FloatAccumulator if plan.has_floats else IntegerAccumulator
        m.submodules.accumulate = accumulate = kind(plan)
        m.d.comb += [
            accumulate.total.eq(product[plan.total_age].as_signed()),
            accumulate.c.eq(self._old(m)),
            self.d.eq(accumulate.d),
            self.flags.eq(accumulate.flags),
        ]
        for stage in plan.control_ages:
            name = f"control_{stage}"
            m.d.comb += getattr(accumulate, name).eq(getattr(self, name))
        if plan.has_floats:
            m.submodules.specials = specials = Specials(plan)
            summary = DelayLine(m, "summary", specials.summary.as_value(), first=age + 1)
            exponent = DelayLine(m, "exponent", a.slot0.exp + b.slot0.exp, first=age)
            windowed = self.control_start.windowed.replicate(plan.anchor_bits)
            m.d.comb += [
                specials.a.eq(a),
                specials.b.eq(b),
                accumulate.summary.eq(summary[plan.latency - 3]),
                accumulate.anchor.eq(exponent[plan.c_age - 1] & windowed),
            ]
        return m

    # -- operands ------------------------------------------------------------------------------

    def _factors(self, m: Module) -> tuple[data.View, data.View]:
        """The two decoded factors: stages decode and select."""
        plan = self.plan
        decoded = {}
        for name in ("x", "y"):
            m.submodules[f"decode_{name}"] = decoder = OperandDecoder(plan)
            m.d.comb += [decoder.row.eq(getattr(self, name)), decoder.control.eq(self.lane.operand)]
            decoded[name] = decoder.operands
        key_x, key_y = self._key(m, "x"), self._key(m, "y")
        x_below = register(m, "x_below_y", key_x < key_y)
        lane = data.View(self.lane.shape(), register(m, "lane_select", self.lane.as_value()))

        x, y = decoded["x"], decoded["y"]
        picks = lane.larger | lane.smaller
        take_y = Signal(name="takes_y")
        m.d.comb += take_y.eq(lane.take_y | (lane.larger & x_below) | (lane.smaller & ~x_below))
        a = Signal(operand_row(plan), name="factor_a", reset_less=True)
        b = Signal(operand_row(plan), name="factor_b", reset_less=True)
        one = Signal(operand_row(plan), name="one")
        m.d.comb += self._one(one, lane)
        m.d.sync += [a.eq(Mux(take_y, y, x)), b.eq(Mux(lane.by_one, one, y))]
        if plan.has_floats:
            # Of a maximum or minimum, a NaN on either side is the result.
            with m.If(picks):
                m.d.sync += [
                    a.nan.eq(x.nan | y.nan),
                    a.snan.eq(x.snan | y.snan),
                    a.slot0.nan.eq(x.slot0.nan | y.slot0.nan),
                    a.slot0.inf.eq(Mux(take_y, y.slot0.inf, x.slot0.inf) & ~x.nan & ~y.nan),
                ]
        return a, b

    def _key(self, m: Module, name: str) -> Signal:
        """An unsigned number that orders the codes of each format like their values."""
        code = getattr(self, name)
        formats = self.lane.operand.format
        options = []
        for f in self.plan.formats:
            low = f.fmt.container - f.fmt.bits if f.fmt.top_aligned else 0
            bits = code[low : low + f.fmt.bits]
            if f.fmt.signed:
                # Two's complement but for its sign; sign and magnitude where there is a float.
                rest = bits[:-1]
                if f.fmt.is_float:
                    rest = rest ^ bits[-1].replicate(len(rest))
                bits = Cat(rest, ~bits[-1])
            options.append((formats[f.index], bits))
        key = Signal(max(len(bits) for _, bits in options), name=f"key_{name}")
        m.d.comb += key.eq(mux_one_hot(options))
        return key

    def _one(self, one: data.View, lane: data.View) -> list:
        """1.0 as the operand decoder would give it."""
        formats = lane.operand.format
        plan = self.plan
        values: dict[int, list[Value]] = {}
        exponents: dict[int, list[Value]] = {}
        for f in plan.formats:
            place = plan.slot.significand_bits - 1 if f.fmt.is_float else f.fmt.frac
            values.setdefault(1 << place, []).append(formats[f.index])
            exponents.setdefault(f.fmt.bias if f.fmt.is_float else 0, []).append(formats[f.index])

        def chosen(options: dict[int, list[Value]], bits: int) -> Value:
            return mux_one_hot([(any_of(c), Const(value, bits)) for value, c in options.items()])

        statements = [one.slot0.sig.eq(chosen(values, plan.slot.operand_bits))]
        if plan.has_floats:
            statements += [
                one.slot0.exp.eq(chosen(exponents, plan.slot.exp_bits)),
                one.slot0.active.eq(lane.operand.active[0]),
            ]
        return statements

    # -- z -------------------------------------------------------------------------------------

    def _old(self, m: Module) -> Signal:
        """z as the accumulator takes it: integers sign-extended, 0 where it takes no part."""
        plan = self.plan
        options = []
        for i, out in enumerate(plan.outputs):
            if out.is_float:
                value = self.z[: out.container].as_signed()
            else:
                value = self.z[: out.bits].as_signed()
            options.append((self.read.out[i], value))
        old = Signal(signed(plan.out_bits), name="old", reset_less=True)
        # A register reset, which costs no logic on most targets.
        with m.If(self.skip):
            m.d.sync += old.eq(0)
        with m.Else():
            m.d.sync += old.eq(mux_one_hot(options))
        return old
