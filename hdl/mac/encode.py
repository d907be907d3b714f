"""Encode: the rounded result as a code of the output format, specials, saturation and flags."""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ..formats import Format, Specials
from ..interfaces import mac_flags
from .accumulate_control import accumulate_control
from .logic import any_of, mux_one_hot, pick_bits
from .plan import MacPlan
from .rounding import DOWN, NEAREST, UP
from .special import special_summary

__all__ = ["Encoder", "largest_code", "rounded"]


def rounded(plan: MacPlan) -> data.StructLayout:
    """A rounded result.

    `value`: biased exponent and mantissa of the magnitude, not yet limited to the output's range,
    or an integer. `dropped`: rounding lost bits. `overflow`: beyond the output's range.
    `tiny` (floats): below the smallest normal number if rounded with unbounded exponent.
    """
    bits = max(out.man for out in plan.float_outputs) + plan.exp_bits
    names = ["dropped", "tiny", "overflow"]
    if plan.has_integers:
        bits = max(bits, *(out.bits for out in plan.integer_outputs))
    return data.StructLayout({"value": signed(bits), **dict.fromkeys(names, 1)})


def largest_code(out: Format) -> int:
    """Code of the largest finite value."""
    if out.has_inf:
        return (((1 << out.exp) - 1) << out.man) - 1
    return (1 << (out.exp + out.man)) - (2 if out.has_nan else 1)


def _inf_code(out: Format) -> int:
    """Code of +Inf; the NaN of formats that have none, and where there is neither the largest
    finite value (numerics.md section 4)."""
    if out.canonical_nan is None:
        return largest_code(out)
    return largest_code(out) + 1 if out.has_inf else out.canonical_nan


class Encoder(wiring.Component):
    """Picks the result's code and flags.

    What does not depend on the rounded value is decided in the two cycles before.

    Parameters
    ----------
    plan : sizes.

    Members
    -------
    control_select, summary, c : with stage select: control of the uop, its special products and
        the class of C.
    control_round, negative, zero : with stage round, one cycle later: control, the sign of the sum,
        whether that is zero.
    control, rounded, lost : with stage out, a cycle after that: control, the rounded result, and
        whether the window dropped a bit of a product.
    d : the result's container in the low bits, with stage out, not registered; undefined above.
    flags : its flags, likewise.

    Source: numerics.md section 4.
    """

    def __init__(self, plan: MacPlan):
        self.plan = plan
        super().__init__(
            {
                "control_select": In(accumulate_control(plan)),
                "summary": In(special_summary()),
                "c": In(special_summary()),
                "control_round": In(accumulate_control(plan)),
                "negative": In(1),
                "zero": In(1),
                "control": In(accumulate_control(plan)),
                "rounded": In(rounded(plan)),
                "lost": In(1),
                "d": Out(plan.out_bits),
                "flags": Out(mac_flags()),
            }
        )

    def elaborate(self, platform):
        m = Module()
        early = self._decide(m, self._classify(m))
        result, control = self.rounded, self.control
        floats = self._floats(control)
        is_float = any_of(condition for _, condition in floats)
        powers = any_of(c for out, c in floats if out.specials is Specials.E8M0)

        below_range = Signal(name="below_range")
        limited = Signal(name="limited")  # too large: the code is the one that was found early
        m.d.comb += [
            below_range.eq(early.below_range | (powers & result.value[-1])),
            limited.eq(early.may_be_limited & result.overflow),
            self.d.eq(Mux(early.special | limited, early.code, self._code(early, below_range))),
        ]

        # Flags.
        finite = ~early.nan & ~early.inf
        inexact = result.dropped | self.lost | limited | below_range
        clamped = (early.inf | limited) & control.sat
        real = is_float & finite
        m.d.comb += [
            self.flags.invalid.eq(early.invalid),
            self.flags.sat_hit.eq(
                Mux(is_float, ~early.nan & (clamped | below_range), limited),
            ),
            self.flags.inexact.eq((real & inexact) | (~is_float & result.dropped)),
            self.flags.overflow.eq(is_float & limited),
            self.flags.underflow.eq(
                real & result.tiny & inexact & ~early.zero & ~below_range & ~powers
            ),
        ]
        return m

    def _code(self, early: data.View, below_range: Value) -> Value:
        """The rounded value in its place, below the sign that a float has."""
        value = self.rounded.value.as_unsigned()
        blank = below_range | early.zero
        source = Cat(value & ~blank.replicate(len(value)), early.sign)
        choices: list[tuple[Value, list[int | None]]] = []
        for i, out in enumerate(self.plan.outputs):
            if out.is_float:
                sign = [len(value)] if out.signed else []
                numbers = [*[None] * self._low(out), *range(out.exp + out.man), *sign]
            else:
                numbers = [min(bit, out.bits - 1) for bit in range(out.container)]
            numbers += [None] * (out.container - len(numbers))
            choices.append((self.control.out[i], numbers))
        bits = []
        for bit in range(self.plan.out_bits):
            # Nothing is asked of narrower containers, nor where all find it in the same place.
            reached = [(c, numbers[bit]) for c, numbers in choices if bit < len(numbers)]
            if len({number for _, number in reached}) == 1 and reached[0][1] is not None:
                bits.append(source[reached[0][1]])
            else:
                bits.append(pick_bits(source, [(c, [number]) for c, number in reached], 1))
        return Cat(bits)

    def _floats(self, control: data.View) -> list[tuple[Format, Value]]:
        outputs = enumerate(self.plan.outputs)
        return [(out, control.out[i]) for i, out in outputs if out.is_float]

    @staticmethod
    def _low(out: Format) -> int:
        """Container bits below the value."""
        return out.container - out.bits if out.top_aligned else 0

    def _classify(self, m: Module) -> data.View:
        """What products and C are together, registered: with stage round.

        `nan`, `inf`: what the result is; `neg_inf`: a negative one is there; `invalid`: the flag;
        `zero_sign`: the sign of a sum that is zero; `pos_to_inf`, `neg_to_inf`: by sign, too large
        a result becomes Inf.
        """
        control = self.control_select
        is_float = any_of(condition for _, condition in self._floats(control))
        both = {name: self.summary[name] | self.c[name] for name, _ in special_summary()}
        clash = both["pos_inf"] & both["neg_inf"]
        nan = both["nan"] | clash
        inf = (both["pos_inf"] | both["neg_inf"]) & ~nan
        all_zero = ~both["nonzero"]
        names = ("nan", "inf", "neg_inf", "invalid", "zero_sign", "pos_to_inf", "neg_to_inf")
        found = Signal(data.StructLayout(dict.fromkeys(names, 1)), name="found", reset_less=True)
        m.d.sync += [
            found.nan.eq(nan),
            found.inf.eq(inf),
            found.neg_inf.eq(both["neg_inf"]),
            found.invalid.eq(is_float & (both["invalid"] | clash)),
            found.zero_sign.eq(
                (all_zero & ~both["pos"]) | ((control.rnd == DOWN) & ~(all_zero & ~both["neg"]))
            ),
        ]
        for name, mode in (("pos_to_inf", UP), ("neg_to_inf", DOWN)):
            outward = (control.rnd == NEAREST) | (control.rnd == mode)
            m.d.sync += found[name].eq((inf | outward) & ~control.sat)
        return found

    def _decide(self, m: Module, found: data.View) -> data.View:
        """What is known before rounding, registered: with stage out.

        `nan`, `inf`, `zero`: what the result is; `sign`: its sign; `invalid`: the flag;
        `below_range`: negative or zero where the output has no such values; `special`: the result
        is `code`, that of a NaN or an Inf or what stands for it; `may_be_limited`: it is `code`,
        the end of the output's range, if the sum lies beyond.
        """
        control = self.control_round
        floats = self._floats(control)
        is_float = any_of(condition for _, condition in floats)
        nan, inf, sign = found.nan, found.inf, Signal(name="is_negative")
        m.d.comb += sign.eq(Mux(inf, found.neg_inf, Mux(self.zero, found.zero_sign, self.negative)))
        powers = any_of(c for out, c in floats if out.specials is Specials.E8M0)
        unsigned = any_of(
            c for out, c in floats if not out.signed and out.specials is not Specials.E8M0
        )
        below_range = Signal(name="is_below_range")
        m.d.comb += below_range.eq(
            ~nan & ((unsigned & sign & (inf | ~self.zero)) | (powers & (sign | (self.zero & ~inf))))
        )
        to_inf = Signal(name="to_inf")
        m.d.comb += to_inf.eq(Mux(sign, found.neg_to_inf, found.pos_to_inf))
        codes = []
        for out, condition in floats:
            bits = out.exp + out.man
            # A format without NaN cannot meet one.
            nan_code = (out.canonical_nan or 0) >> self._low(out)
            magnitude = Mux(to_inf, Const(_inf_code(out), bits), Const(largest_code(out), bits))
            code = Mux(nan, Const(nan_code, bits), magnitude)[:bits]
            if out.signed:
                # The NaN that stands for Inf has no sign.
                is_nan = to_inf if out.has_nan and not out.has_inf else Const(0, 1)
                code = Cat(code, sign & ~nan & ~is_nan)
            codes.append((condition, Cat(Const(0, self._low(out)), code)))
        for i, out in enumerate(self.plan.outputs):
            if not out.is_float:
                high = self.negative.replicate(out.container - out.bits + 1)
                codes.append((control.out[i], Cat((~self.negative).replicate(out.bits - 1), high)))
        names = ("nan", "inf", "zero", "sign", "invalid", "below_range")
        names += ("special", "may_be_limited")
        layout = data.StructLayout({**dict.fromkeys(names, 1), "code": self.plan.out_bits})
        early = Signal(layout, name="early", reset_less=True)
        m.d.sync += [
            early.nan.eq(nan),
            early.inf.eq(inf),
            early.zero.eq(is_float & self.zero),
            early.sign.eq(sign),
            early.invalid.eq(found.invalid),
            early.below_range.eq(below_range),
            early.special.eq(is_float & (nan | (inf & ~below_range))),
            early.may_be_limited.eq(
                Mux(is_float, ~nan & ~inf & ~self.zero & ~below_range, control.sat)
            ),
            early.code.eq(mux_one_hot(codes)),
        ]
        return early
