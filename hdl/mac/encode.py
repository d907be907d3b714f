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
    or an integer. `negative`, `zero`: before rounding. `dropped`: rounding lost bits. Floats:
    `tiny`: below the smallest normal number if rounded with unbounded exponent. Integers:
    `overflow`: beyond the output's range.
    """
    bits = max(out.man for out in plan.float_outputs) + plan.exp_bits
    names = ["negative", "zero", "dropped", "tiny"]
    if plan.has_integers:
        bits = max(bits, *(out.bits for out in plan.integer_outputs))
        names.append("overflow")
    return data.StructLayout({"value": signed(bits), **dict.fromkeys(names, 1)})


def _inf_code(out: Format) -> int:
    """Code of +Inf; the NaN of formats that have none (numerics.md section 4)."""
    if out.has_inf:
        return ((1 << out.exp) - 1) << out.man
    assert out.canonical_nan is not None
    return out.canonical_nan


def _largest_code(out: Format) -> int:
    """Code of the largest finite value."""
    if out.has_inf:
        return _inf_code(out) - 1
    return (1 << (out.exp + out.man)) - 2


class Encoder(wiring.Component):
    """Picks the result's code and flags, combinationally.

    Parameters
    ----------
    plan : sizes.

    Members
    -------
    control : control of the uop.
    rounded : its rounded result.
    summary, c : special products and the class of C.
    lost : the window dropped a bit of a product.
    d : the result's container in the low bits.
    flags : its flags.

    Source: numerics.md section 4.
    """

    def __init__(self, plan: MacPlan):
        self.plan = plan
        super().__init__(
            {
                "control": In(accumulate_control(plan)),
                "rounded": In(rounded(plan)),
                "summary": In(special_summary()),
                "c": In(special_summary()),
                "lost": In(1),
                "d": Out(plan.out_bits),
                "flags": Out(mac_flags()),
            }
        )

    def elaborate(self, platform):
        m = Module()
        plan, control, result = self.plan, self.control, self.rounded
        floats = [(out, control.out[i]) for i, out in enumerate(plan.outputs) if out.is_float]
        is_float = any_of(condition for _, condition in floats)
        both = {name: self.summary[name] | self.c[name] for name, _ in special_summary()}

        def when(test) -> Value:
            """Whether the output format is one of those for which `test` holds."""
            return any_of(condition for out, condition in floats if test(out))

        nan, inf, finite = Signal(name="nan"), Signal(name="inf"), Signal(name="finite")
        clash = both["pos_inf"] & both["neg_inf"]
        m.d.comb += [
            nan.eq(both["nan"] | clash),
            inf.eq((both["pos_inf"] | both["neg_inf"]) & ~nan),
            finite.eq(~nan & ~inf),
        ]

        # Sign, of zeros too.
        only_neg = ~both["nonzero"] & ~both["pos"]
        only_pos = ~both["nonzero"] & ~both["neg"]
        zero_sign = only_neg | ((control.rnd == DOWN) & ~only_pos)
        negative = Signal(name="negative")
        m.d.comb += negative.eq(
            Mux(inf, both["neg_inf"], Mux(result.zero, zero_sign, result.negative))
        )

        # Beyond the range of the output.
        unsigned = when(lambda out: not out.signed and out.specials is not Specials.E8M0)
        powers = when(lambda out: out.specials is Specials.E8M0)
        below_range = Signal(name="below_range")
        overflow = Signal(name="overflow")
        m.d.comb += [
            below_range.eq(
                (unsigned & negative & (inf | ~result.zero))
                | (powers & (negative | result.zero | result.value[-1]))
            ),
            overflow.eq(
                finite
                & ~result.zero
                & ~below_range
                & any_of(condition & self._overflows(out) for out, condition in floats)
            ),
        ]
        saturates = control.sat & (inf | overflow)
        outward = (
            (control.rnd == NEAREST)
            | ((control.rnd == UP) & ~negative)
            | ((control.rnd == DOWN) & negative)
        )
        to_inf = inf | outward

        # The code.
        limit = Signal(name="limit")
        m.d.comb += limit.eq(inf | overflow)
        codes = []
        for out, condition in floats:
            bits = out.exp + out.man
            nan_code = out.canonical_nan
            assert nan_code is not None
            top = Mux(saturates | ~to_inf, Const(_largest_code(out), bits), _inf_code(out))
            value = Mux(limit, top, result.value[:bits])[:bits]
            blank = below_range | (result.zero & finite)
            code = Cat(value & ~blank.replicate(bits))
            if out.signed:
                keeps_sign = ~limit | saturates | ~to_inf if not out.has_inf else Const(1, 1)
                code = Cat(code, negative & keeps_sign)
            value = Mux(
                nan,
                Const(nan_code >> (out.container - out.bits if out.top_aligned else 0), len(code)),
                code,
            )
            if out.top_aligned:
                value = Cat(Const(0, out.container - out.bits), value)
            codes.append((condition, value))
        integer_overflow = Const(0, 1)
        if plan.has_integers:
            codes += self._integers()
            integer_overflow = ~is_float & result.overflow & control.sat
        m.d.comb += self.d.eq(mux_one_hot(codes))

        # Flags.
        real = is_float & finite
        inexact = result.dropped | self.lost | overflow | below_range
        m.d.comb += [
            self.flags.invalid.eq(is_float & (both["invalid"] | clash)),
            self.flags.sat_hit.eq((is_float & ~nan & (saturates | below_range)) | integer_overflow),
            self.flags.inexact.eq((real & inexact) | (~is_float & result.dropped)),
            self.flags.overflow.eq(real & overflow),
            self.flags.underflow.eq(
                real & result.tiny & inexact & ~result.zero & ~below_range & ~powers
            ),
        ]
        return m

    def _overflows(self, out: Format) -> Value:
        """Whether the rounded magnitude is beyond the largest finite value of `out`."""
        value = self.rounded.value
        bits = out.exp + out.man
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
