"""numerics.md read literally, in whole numbers of a unit small enough for everything; for tests.

It shares no step with the reference: values come from the definition of a format, rounding from
the two neighbouring codes, and nothing is shifted out or kept sticky. All that an element sums is
a whole number of 2^-unit, with one unit for each pair of formats.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from hdl.formats import FORMATS, Format, Kind, Specials, acc_mode, lookup, output_format

INEXACT, SAT_HIT, INVALID, OVERFLOW, UNDERFLOW = 1, 2, 4, 8, 16
NEAREST, UP, DOWN, TO_ZERO = range(4)

LISTED_WIDTH = {
    **{"fp4_e2m1": 14, "fp4_e1m2": 12, "uf4_e2m2": 16, "uf4_e1m3": 14, "fp6_e2m3": 17},
    **{"fp6_e3m2": 23, "fp6_e4m1": 37, "uf6_e4m2": 39, "fp8_e4m3": 41, "fp8_e5m2": 69},
    **{"fp12_e4m7": 48, "fp12_e5m6": 76, "fp16": 84, "ue8m0": 514, "bf16": 526},
    **{"uf16_e8m8": 528, "tf32": 531, "fp32": 557, "fp64": 4198},
}
HAS_SIGNALLING_NAN = ("fp16", "bf16", "tf32", "fp32", "fp64")


class Number(NamedTuple):
    """A float operand: kind "nan", "snan", "inf" or "finite"; a finite one is whole * 2^-scale."""

    kind: str
    negative: bool
    whole: int = 0
    exponent: int = 0


def scale(fmt: Format) -> int:
    """Every finite magnitude of a float format is a whole number of 2^-scale."""
    return fmt.bias if fmt.specials is Specials.E8M0 else fmt.bias - 1 + fmt.man


def unit_of(fmt: Format, out: Format) -> int:
    """Products, C and every result of a pair of formats are whole numbers of 2^-unit."""
    if fmt.kind is not Kind.FLOAT:
        return 2 * fmt.frac
    return max(2 * scale(fmt), scale(out) + 1)


def at(magnitude: int, fmt: Format, unit: int) -> int:
    """Value, in 2^-unit, of exponent and mantissa bits; specials, and codes beyond, as if normal.

    UE8M0 codes may be below 0.
    """
    if fmt.specials is Specials.E8M0:
        return 1 << unit + magnitude - fmt.bias
    exponent, mantissa = divmod(magnitude, 1 << fmt.man)
    if exponent == 0:
        return mantissa << unit + 1 - fmt.bias - fmt.man
    return ((1 << fmt.man) + mantissa) << unit + exponent - fmt.bias - fmt.man


def number(code: int, fmt: Format) -> Number:
    return _number(code, fmt.name)


@lru_cache(1 << 18)
def _number(code: int, name: str) -> Number:
    fmt = FORMATS[name]
    if fmt.top_aligned:
        code >>= fmt.container - fmt.bits
    code &= (1 << fmt.bits) - 1
    negative = bool(fmt.signed and code >> (fmt.bits - 1))
    magnitude = code & ((1 << (fmt.exp + fmt.man)) - 1)
    exponent, mantissa = divmod(magnitude, 1 << fmt.man)
    if fmt.specials is Specials.E8M0:
        if code == 0xFF:
            return Number("nan", False)
        return Number("finite", False, at(code, fmt, scale(fmt)), code - 127)
    if fmt.specials is Specials.IEEE and exponent == (1 << fmt.exp) - 1:
        if mantissa == 0:
            return Number("inf", negative)
        signals = fmt.name in HAS_SIGNALLING_NAN and mantissa < 1 << (fmt.man - 1)
        return Number("snan" if signals else "nan", negative)
    if fmt.specials is Specials.NAN_TOP and magnitude == (1 << (fmt.exp + fmt.man)) - 1:
        return Number("nan", negative)
    whole = at(magnitude, fmt, scale(fmt))
    return Number("finite", negative, whole, max(exponent, 1) - fmt.bias)


def pick(low: int, high: int, low_even: bool, value: int, rnd: int, negative: bool) -> str:
    """One of two neighbours of a magnitude that lies between them."""
    if rnd == NEAREST:
        if value - low != high - value:
            return "low" if value - low < high - value else "high"
        return "low" if low_even else "high"
    away = (rnd == UP and not negative) or (rnd == DOWN and negative)
    return "high" if away else "low"


def round_integer(value: int, one: int, rnd: int) -> int:
    """value / one to a whole number."""
    low, rest = divmod(value, one)
    if rest == 0:
        return low
    if rnd == NEAREST:
        if 2 * rest == one:
            return low + low % 2
        return low + (2 * rest > one)
    return low + (rnd == UP or (rnd == TO_ZERO and value < 0))


def top_code(fmt: Format) -> int:
    """Exponent and mantissa bits of the largest finite value."""
    top = (1 << (fmt.exp + fmt.man)) - 1
    if fmt.specials is Specials.IEEE:
        return (((1 << fmt.exp) - 1) << fmt.man) - 1
    return top if fmt.specials is Specials.NONE else top - 1


def packed(magnitude: int, negative: bool, fmt: Format) -> int:
    code = magnitude + ((1 << (fmt.bits - 1)) if negative else 0)
    return code << (fmt.container - fmt.bits) if fmt.top_aligned else code


def floor_code(value: int, fmt: Format, unit: int) -> int:
    """The largest code, codes beyond the format's included, whose value is not above."""
    lead = value.bit_length() - 1 - unit
    if fmt.specials is Specials.E8M0:
        code = lead + fmt.bias
    else:
        first = max(0, lead + fmt.bias) << fmt.man
        codes = range(first, first + (1 << fmt.man))
        code = bisect_right(codes, value, key=lambda m: at(m, fmt, unit)) - 1 + first
    assert at(code, fmt, unit) <= value < at(code + 1, fmt, unit)
    return code


def float_result(
    value: int, unit: int, fmt: Format, rnd: int, sat: bool, flags: int
) -> tuple[int, int]:
    """Code and flags of a nonzero value."""
    negative, value = value < 0, abs(value)
    if negative and not fmt.signed:
        return 0, SAT_HIT | INEXACT
    top = top_code(fmt)
    powers = fmt.specials is Specials.E8M0
    code = floor_code(value, fmt, unit)
    below = at(code, fmt, unit)
    if below != value:
        flags |= INEXACT
        above = at(code + 1, fmt, unit)
        if pick(below, above, code % 2 == 0, value, rnd, negative) == "high":
            code += 1
    if powers and code < 0:
        return 0, flags | SAT_HIT | INEXACT
    if code > top:
        flags |= OVERFLOW | INEXACT
        if sat:
            return packed(top, negative, fmt), flags | SAT_HIT
        inward = rnd == TO_ZERO or rnd == (UP if negative else DOWN)
        if inward:
            return packed(top, negative, fmt), flags
        if fmt.specials is Specials.IEEE:
            return packed(top + 1, negative, fmt), flags
        return fmt.canonical_nan, flags
    smallest = 1 << unit + 1 - fmt.bias
    if not powers and value < smallest and flags & INEXACT:
        # With an unbounded exponent, neighbours are one unit of the last place apart.
        place = 1 << max(0, value.bit_length() - 1 - fmt.man)
        whole = round_integer(-value if negative else value, place, rnd)
        if abs(whole) * place < smallest:
            flags |= UNDERFLOW
    return packed(code, negative, fmt), flags


@dataclass(slots=True)
class Dot:
    """One element, exactly: what was summed, in 2^-unit, and what came out.

    Parameters
    ----------
    code, flags : the result.
    terms : nonzero products and C, none if `special`.
    total : their sum, each product as the window left it.
    addend : C, 0 where it takes no part.
    spread : largest exponent of a product less the smallest.
    special : a NaN or an Inf is the result.
    zero_signs : signs of the zeros among products and C.
    """

    code: int
    flags: int
    terms: list[int]
    total: int
    addend: int
    spread: int
    special: bool
    zero_signs: set[bool] = frozenset()


def float_sum(fmt, out, a, b, c, sat, alpha, exact_limit, window) -> Dot:
    """The exact sum, or the NaN or Inf instead; a sum's code is still to be found."""
    unit = unit_of(fmt, out)
    pairs = [(number(x, fmt), number(y, fmt)) for x, y in zip(a, b, strict=True)]
    c = None if c is None else number(c, out)
    nan = c is not None and c.kind in ("nan", "snan")
    invalid = c is not None and c.kind == "snan"
    infinities, products, zero_signs, exponents = set(), [], set(), []
    spare = unit - 2 * scale(fmt)
    for x, y in pairs:
        negative = (x.negative != y.negative) != bool(alpha)
        if x.kind == y.kind == "finite":
            value = x.whole * y.whole << spare
            if value:
                exponents.append(x.exponent + y.exponent)
                products.append((value, negative))
            else:
                zero_signs.add(negative)
            continue
        kinds = (x.kind, y.kind)
        if "nan" in kinds or "snan" in kinds:
            nan = True
            invalid = invalid or "snan" in kinds
        elif any(z.kind == "finite" and z.whole == 0 for z in (x, y)):
            nan = invalid = True
        else:
            infinities.add(negative)
    if c and c.kind == "inf":
        infinities.add(c.negative)
    if len(infinities) == 2:
        nan = invalid = True
    if nan:
        return Dot(out.canonical_nan, INVALID if invalid else 0, [], 0, 0, 0, True)
    if infinities:
        (negative,) = infinities
        code, flags = infinite_result(negative, out, sat)
        return Dot(code, flags, [], 0, 0, 0, True)
    flags, total, terms, spread = 0, 0, [], 0
    grid = 1
    if products:
        spread = max(exponents) - min(exponents)
        if LISTED_WIDTH[fmt.name] > exact_limit:
            grid = 1 << max(0, max(exponents) - window + unit)
    for value, negative in products:
        kept = value // grid * grid
        if kept != value:
            flags |= INEXACT
        total += -kept if negative else kept
        terms.append(-value if negative else value)
    addend = 0
    if c:
        addend = c.whole << unit - scale(out)
        addend = -addend if c.negative else addend
        total += addend
        if addend == 0:
            zero_signs.add(c.negative)
        else:
            terms.append(addend)
    return Dot(0, flags, terms, total, addend, spread, False, zero_signs)


def float_dot(fmt, out, a, b, c, rnd, sat, alpha, exact_limit, window) -> Dot:
    dot = float_sum(fmt, out, a, b, c, sat, alpha, exact_limit, window)
    if dot.special:
        return dot
    if dot.total:
        unit = unit_of(fmt, out)
        dot.code, dot.flags = float_result(dot.total, unit, out, rnd, sat, dot.flags)
    elif out.specials is Specials.E8M0:
        dot.flags |= SAT_HIT | INEXACT
    else:
        negative = rnd == DOWN
        if not dot.terms and len(dot.zero_signs) == 1:
            (negative,) = dot.zero_signs
        dot.code = packed(0, negative and out.signed, out)
    return dot


def infinite_result(negative: bool, out: Format, sat: bool) -> tuple[int, int]:
    if negative and not out.signed:
        return 0, SAT_HIT
    if sat:
        return packed(top_code(out), negative, out), SAT_HIT
    if out.specials is Specials.IEEE:
        return packed(top_code(out) + 1, negative, out), 0
    return out.canonical_nan, 0


def signed(code: int, bits: int) -> int:
    code &= (1 << bits) - 1
    return code - (1 << bits) if code >> (bits - 1) else code


def integer_dot(fmt, out, a, b, c, rnd, sat, alpha) -> Dot:
    """Sums count 2^(-2 frac): the places of a product."""
    terms = []
    for x, y in zip(a, b, strict=True):
        product = signed(x, fmt.bits) * signed(y, fmt.bits)
        terms.append(-product if alpha else product)
    one = 1 << 2 * fmt.frac - out.frac
    addend = 0 if c is None else signed(c, out.bits) * one
    total = sum(terms) + addend
    terms = [term for term in (*terms, addend) if term]
    if fmt.name == "q32_32":
        total = signed(total, 96)
    whole = round_integer(total, one, rnd)
    flags = INEXACT if total % one else 0
    low, high = -(1 << (out.bits - 1)), (1 << (out.bits - 1)) - 1
    if sat and fmt.bits != 64 and not low <= whole <= high:
        whole = low if whole < low else high
        flags |= SAT_HIT
    code = signed(whole, out.bits) & ((1 << out.container) - 1)
    return Dot(code, flags, terms, total, addend, 0, False)


def default_window(fmt: Format) -> int:
    return {"fp32": 64, "fp64": 106}.get(fmt.name, 32)


def naive_dot(
    ft, a, b, c, *, bovf=0, acc=0, rnd=0, sat=0, alpha=0, beta=0, exact_limit=96, window=None
) -> Dot:
    """One element: lists of codes `a` and `b`, one code `c`."""
    fmt = lookup(ft)
    out = output_format(fmt, acc_mode(bovf, acc))
    c = None if beta else c
    if fmt.kind is not Kind.FLOAT:
        return integer_dot(fmt, out, a, b, c, rnd, sat and (acc or not bovf), alpha)
    if window is None:
        window = default_window(fmt)
    return float_dot(fmt, out, a, b, c, rnd, sat and out.bits <= 8, alpha, exact_limit, window)


def naive_mma(ft, a, b, c, **fields) -> tuple[int, int]:
    """(code, flags) of one element, as `naive_dot` finds them."""
    dot = naive_dot(ft, a, b, c, **fields)
    return dot.code, dot.flags
