"""Encode: the rounded result as a code of the output format, specials, saturation and flags."""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ..formats import Format, Specials
from ..interfaces import mac_flags
from .accumulate_control import accumulate_control
from .logic import any_of, mux_one_hot
from .plan import MacPlan
from .rounding import DOWN, NEAREST, UP
from .special import special_summary

__all__ = ["Encoder", "rounded"]


def rounded(plan: MacPlan) -> data.StructLayout:
    """A rounded result.

    `value`: biased exponent and mantissa of the magnitude, not yet limited to the output's range,
    or an integer. `negative`: its sign before rounding. `dropped`: rounding lost bits. Floats:
    `tiny`: below the smallest normal number if rounded with unbounded exponent. Integers:
    `overflow`: beyond the output's range.
    """
    bits = max(out.man for out in plan.float_outputs) + plan.exp_bits
    names = ["negative", "dropped", "tiny"]
    if plan.has_integers:
        bits = max(bits, *(out.bits for out in plan.integer_outputs))
        names.append("overflow")
    return data.StructLayout({"value": signed(bits), **dict.fromkeys(names, 1)})


def _largest_code(out: Format) -> int:
    """Code of the largest finite value."""
    if out.has_inf:
        return (((1 << out.exp) - 1) << out.man) - 1
    return (1 << (out.exp + out.man)) - (2 if out.has_nan else 1)


def _inf_code(out: Format) -> int:
    """Code of +Inf; the NaN of formats that have none, and where there is neither the largest
    finite value (numerics.md section 4)."""
    if out.canonical_nan is None:
        return _largest_code(out)
    return _largest_code(out) + 1 if out.has_inf else out.canonical_nan


class Encoder(wiring.Component):
    """Picks the result's code and flags.

    What does not depend on the rounded value is decided one cycle earlier, while it is rounded.

    Parameters
    ----------
    plan : sizes.

    Members
    -------
    control_round, negative, zero, summary, c : with stage round: control of the uop, the sign of
        its sum, whether that is zero, its special products and the class of C.
    control, rounded, lost : with stage out, one cycle later: control, the rounded result, and
        whether the window dropped a bit of a product.
    d : the result's container in the low bits, with stage out, not registered.
    flags : its flags, likewise.

    Source: numerics.md section 4.
    """

    def __init__(self, plan: MacPlan):
        self.plan = plan
        super().__init__(
            {
                "control_round": In(accumulate_control(plan)),
                "negative": In(1),
                "zero": In(1),
                "summary": In(special_summary()),
                "c": In(special_summary()),
                "control": In(accumulate_control(plan)),
                "rounded": In(rounded(plan)),
                "lost": In(1),
                "d": Out(plan.out_bits),
                "flags": Out(mac_flags()),
            }
        )

    def elaborate(self, platform):
        m = Module()
        early = self._decide(m)
        result, control = self.rounded, self.control
        floats = self._floats(control)
        is_float = any_of(condition for _, condition in floats)
        powers = any_of(c for out, c in floats if out.specials is Specials.E8M0)

        finite = Signal(name="finite")
        below_range = Signal(name="below_range")
        overflow = Signal(name="overflow")
        m.d.comb += [
            finite.eq(~early.nan & ~early.inf),
            below_range.eq(early.below_range | (powers & result.value[-1])),
            overflow.eq(
                early.may_overflow
                & ~below_range
                & any_of(condition & self._overflows(out) for out, condition in floats)
            ),
        ]

        # The code: a special or limiting one, or the rounded value.
        special = Signal(name="special")
        blank = Signal(name="blank")
        m.d.comb += [
            special.eq(early.nan | (early.inf & ~below_range) | overflow),
            blank.eq(below_range | early.zero),
        ]
        codes = []
        for out, condition in floats:
            value = result.value[: out.exp + out.man]
            code = value & ~blank.replicate(len(value))
            if out.signed:
                code = Cat(code, early.sign)
            codes.append((condition, Cat(Const(0, self._low(out)), code)))
        if self.plan.has_integers:
            codes += self._integers()
        code = Signal(self.plan.out_bits, name="code")
        m.d.comb += [
            code.eq(mux_one_hot(codes)),
            self.d.eq(Mux(special & is_float, early.code, code)),
        ]

        # Flags.
        inexact = result.dropped | self.lost | overflow | below_range
        clamped = (early.inf | overflow) & control.sat
        integer = Const(0, 1)
        if self.plan.has_integers:
            integer = ~is_float & result.overflow & control.sat
        real = is_float & finite
        m.d.comb += [
            self.flags.invalid.eq(early.invalid),
            self.flags.sat_hit.eq((is_float & ~early.nan & (clamped | below_range)) | integer),
            self.flags.inexact.eq((real & inexact) | (~is_float & result.dropped)),
            self.flags.overflow.eq(overflow),
            self.flags.underflow.eq(
                real & result.tiny & inexact & ~early.zero & ~below_range & ~powers
            ),
        ]
        return m

    def _floats(self, control: data.View) -> list[tuple[Format, Value]]:
        outputs = enumerate(self.plan.outputs)
        return [(out, control.out[i]) for i, out in outputs if out.is_float]

    @staticmethod
    def _low(out: Format) -> int:
        """Container bits below the value."""
        return out.container - out.bits if out.top_aligned else 0

    def _decide(self, m: Module) -> data.View:
        """What is known before rounding, registered.

        `nan`, `inf`, `zero`: what the result is; `sign`: its sign; `invalid`: the flag;
        `below_range`: negative or zero where the output has no such values; `may_overflow`:
        neither of these; `code`: the code of a NaN, an Inf or an overflow.
        """
        control = self.control_round
        floats = self._floats(control)
        is_float = any_of(condition for _, condition in floats)
        both = {name: self.summary[name] | self.c[name] for name, _ in special_summary()}
        clash = both["pos_inf"] & both["neg_inf"]
        nan, inf, sign = Signal(name="is_nan"), Signal(name="is_inf"), Signal(name="is_negative")
        only_neg = ~both["nonzero"] & ~both["pos"]
        only_pos = ~both["nonzero"] & ~both["neg"]
        zero_sign = only_neg | ((control.rnd == DOWN) & ~only_pos)
        m.d.comb += [
            nan.eq(both["nan"] | clash),
            inf.eq((both["pos_inf"] | both["neg_inf"]) & ~nan),
            sign.eq(Mux(inf, both["neg_inf"], Mux(self.zero, zero_sign, self.negative))),
        ]
        powers = any_of(c for out, c in floats if out.specials is Specials.E8M0)
        unsigned = any_of(
            c for out, c in floats if not out.signed and out.specials is not Specials.E8M0
        )
        below_range = Signal(name="is_below_range")
        m.d.comb += below_range.eq(
            (unsigned & sign & (inf | ~self.zero)) | (powers & (sign | (self.zero & ~inf)))
        )
        outward = (
            (control.rnd == NEAREST)
            | ((control.rnd == UP) & ~sign)
            | ((control.rnd == DOWN) & sign)
        )
        to_inf = Signal(name="to_inf")
        m.d.comb += to_inf.eq((inf | outward) & ~control.sat)
        codes = []
        for out, condition in floats:
            bits = out.exp + out.man
            # A format without NaN cannot meet one.
            nan_code = (out.canonical_nan or 0) >> self._low(out)
            magnitude = Mux(to_inf, Const(_inf_code(out), bits), Const(_largest_code(out), bits))
            code = Mux(nan, Const(nan_code, bits), magnitude)[:bits]
            if out.signed:
                # The NaN that stands for Inf has no sign.
                is_nan = to_inf if out.has_nan and not out.has_inf else Const(0, 1)
                code = Cat(code, sign & ~nan & ~is_nan)
            codes.append((condition, Cat(Const(0, self._low(out)), code)))
        layout = data.StructLayout(
            {
                **dict.fromkeys(("nan", "inf", "zero", "sign", "invalid"), 1),
                "below_range": 1,
                "may_overflow": 1,
                "code": self.plan.out_bits,
            }
        )
        early = Signal(layout, name="early", reset_less=True)
        m.d.sync += [
            early.nan.eq(nan),
            early.inf.eq(inf),
            early.zero.eq(self.zero),
            early.sign.eq(sign),
            early.invalid.eq(is_float & (both["invalid"] | clash)),
            early.below_range.eq(below_range & ~nan),
            early.may_overflow.eq(is_float & ~nan & ~inf & ~self.zero),
            early.code.eq(mux_one_hot(codes)),
        ]
        return early

    def _overflows(self, out: Format) -> Value:
        """Whether the rounded magnitude is beyond the largest finite value of `out`."""
        value = self.rounded.value
        bits = out.exp + out.man
        if not out.has_nan:
            return value[bits:].any()
        top = value[out.man : bits] if out.has_inf else value[:bits]
        return value[bits:].any() | top.all()

    def _integers(self) -> list[tuple[Value, Value]]:
        """Codes of integer outputs by condition: wrapped or clamped, sign-extended."""
        result = self.rounded
        clamp = result.overflow & self.control.sat
        codes = []
        for i, out in enumerate(self.plan.outputs):
            if out.is_float:
                continue
            largest = Const((1 << (out.bits - 1)) - 1, out.bits)
            value = Mux(
                clamp, largest ^ result.negative.replicate(out.bits), result.value[: out.bits]
            )
            codes.append(
                (self.control.out[i], Cat(value, value[-1].replicate(out.container - out.bits)))
            )
        return codes
