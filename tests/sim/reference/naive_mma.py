"""numerics.md read literally, with Fractions and bisection over codes; for tests only.

It shares no step with the reference: values come from the definition of a format, rounding from
the two neighbouring codes, and nothing is shifted or kept sticky.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache

from hdl.formats import Kind, Specials, acc_mode, lookup, output_format

INEXACT, SAT_HIT, INVALID, OVERFLOW, UNDERFLOW = 1, 2, 4, 8, 16

LISTED_WIDTH = {
    **{"fp4_e2m1": 14, "fp4_e1m2": 12, "uf4_e2m2": 16, "uf4_e1m3": 14, "fp6_e2m3": 17},
    **{"fp6_e3m2": 23, "fp6_e4m1": 37, "uf6_e4m2": 39, "fp8_e4m3": 41, "fp8_e5m2": 69},
    **{"fp12_e4m7": 48, "fp12_e5m6": 76, "fp16": 84, "ue8m0": 514, "bf16": 526},
    **{"uf16_e8m8": 528, "tf32": 531, "fp32": 557, "fp64": 4198},
}
HAS_SIGNALLING_NAN = ("fp16", "bf16", "tf32", "fp32", "fp64")


@cache
def power(exponent):
    return Fraction(2) ** exponent


class Number:
    """A float operand: kind "nan", "snan", "inf" or "finite", sign, value and exponent."""

    def __init__(self, code, fmt):
        if fmt.top_aligned:
            code >>= fmt.container - fmt.bits
        code &= (1 << fmt.bits) - 1
        self.negative = bool(fmt.signed and code >> (fmt.bits - 1))
        magnitude = code & ((1 << (fmt.exp + fmt.man)) - 1)
        self.kind, self.value, self.exponent = "finite", None, None
        exponent, mantissa = divmod(magnitude, 1 << fmt.man)
        top = (1 << fmt.exp) - 1
        if fmt.specials is Specials.E8M0:
            if code == 0xFF:
                self.kind = "nan"
                return
            self.value, self.exponent = power(code - 127), code - 127
            return
        if fmt.specials is Specials.IEEE and exponent == top:
            self.kind = "nan" if mantissa else "inf"
            if mantissa and fmt.name in HAS_SIGNALLING_NAN and mantissa < 1 << (fmt.man - 1):
                self.kind = "snan"
            return
        if fmt.specials is Specials.NAN_TOP and magnitude == (1 << (fmt.exp + fmt.man)) - 1:
            self.kind = "nan"
            return
        self.value = magnitude_value(magnitude, fmt)
        self.exponent = max(exponent, 1) - fmt.bias

    @property
    def is_nan(self):
        return self.kind in ("nan", "snan")

    @property
    def is_zero(self):
        return self.kind == "finite" and self.value == 0


def magnitude_value(magnitude, fmt):
    """Value of exponent and mantissa bits, specials (and bits above the format) as if normal."""
    exponent, mantissa = divmod(magnitude, 1 << fmt.man)
    if fmt.specials is Specials.E8M0:
        return power(magnitude - 127)
    if exponent == 0:
        return Fraction(mantissa, 1 << fmt.man) * power(1 - fmt.bias)
    return (1 + Fraction(mantissa, 1 << fmt.man)) * power(exponent - fmt.bias)


def pick(low, high, low_even, value, rnd, negative):
    """One of two neighbours of a magnitude that lies between them."""
    if rnd == 0:
        if value - low != high - value:
            return "low" if value - low < high - value else "high"
        return "low" if low_even else "high"
    away = (rnd == 1 and not negative) or (rnd == 2 and negative)
    return "high" if away else "low"


def round_integer(value, rnd):
    """A Fraction to a whole number."""
    low = value.numerator // value.denominator
    if value == low:
        return low
    if rnd == 0:
        if value - low == Fraction(1, 2):
            return low + low % 2
        return low + (value - low > Fraction(1, 2))
    return low + (rnd == 1 or (rnd == 3 and value < 0))


def top_code(fmt):
    top = (1 << (fmt.exp + fmt.man)) - 1
    if fmt.specials is Specials.IEEE:
        return (((1 << fmt.exp) - 1) << fmt.man) - 1
    return top if fmt.specials is Specials.NONE else top - 1


def packed(magnitude, negative, fmt):
    code = magnitude + ((1 << (fmt.bits - 1)) if negative else 0)
    return code << (fmt.container - fmt.bits) if fmt.top_aligned else code


def float_result(value, fmt, rnd, sat, flags):
    """Code and flags of a nonzero value."""
    negative, value = value < 0, abs(value)
    if negative and not fmt.signed:
        return 0, SAT_HIT | INEXACT
    top = top_code(fmt)
    powers = fmt.specials is Specials.E8M0
    # Bisect: the largest code whose value is not above. UE8M0 codes may be below 0.
    low, high = (-1100, 4000) if powers else (0, 1 << (fmt.exp + fmt.man + 13))
    while high - low > 1:
        middle = (low + high) // 2
        if magnitude_value(middle, fmt) <= value:
            low = middle
        else:
            high = middle
    code = low
    if magnitude_value(low, fmt) != value:
        flags |= INEXACT
        below, above = magnitude_value(low, fmt), magnitude_value(high, fmt)
        if pick(below, above, low % 2 == 0, value, rnd, negative) == "high":
            code = high
    if powers and code < 0:
        return 0, flags | SAT_HIT | INEXACT
    if code > top:
        flags |= OVERFLOW | INEXACT
        if sat:
            return packed(top, negative, fmt), flags | SAT_HIT
        inward = rnd == 3 or rnd == (1 if negative else 2)
        if inward:
            return packed(top, negative, fmt), flags
        if fmt.specials is Specials.IEEE:
            return packed(top + 1, negative, fmt), flags
        return fmt.canonical_nan, flags
    smallest = power(1 - fmt.bias)
    if not powers and value < smallest and flags & INEXACT:
        scale = Fraction(1)
        while value * scale < 1 << fmt.man:
            scale *= 2
        whole = round_integer(value * scale * (-1 if negative else 1), rnd)
        if abs(whole) / scale < smallest:
            flags |= UNDERFLOW
    return packed(code, negative, fmt), flags


def float_dot(fmt, out, a, b, c, rnd, sat, alpha, exact_limit, window):
    a, b = [Number(x, fmt) for x in a], [Number(x, fmt) for x in b]
    c = None if c is None else Number(c, out)
    numbers = a + b + ([c] if c else [])
    nan = any(x.is_nan for x in numbers)
    invalid = any(x.kind == "snan" for x in numbers)
    infinities, products, zero_signs, exponents = set(), [], set(), []
    for x, y in zip(a, b, strict=True):
        negative = (x.negative != y.negative) != bool(alpha)
        if x.is_nan or y.is_nan:
            continue
        if "inf" in (x.kind, y.kind):
            if x.is_zero or y.is_zero:
                nan = invalid = True
            else:
                infinities.add(negative)
            continue
        value = x.value * y.value
        if value:
            exponents.append(x.exponent + y.exponent)
            products.append((value, negative))
        else:
            zero_signs.add(negative)
    if c and c.kind == "inf":
        infinities.add(c.negative)
    if len(infinities) == 2:
        nan = invalid = True
    if nan:
        return out.canonical_nan, INVALID if invalid else 0
    if infinities:
        (negative,) = infinities
        if negative and not out.signed:
            return 0, SAT_HIT
        if sat:
            return packed(top_code(out), negative, out), SAT_HIT
        if out.specials is Specials.IEEE:
            return packed(top_code(out) + 1, negative, out), 0
        return out.canonical_nan, 0
    flags, total = 0, Fraction(0)
    if LISTED_WIDTH[fmt.name] <= exact_limit or not products:
        grid = None
    else:
        grid = power(max(exponents) - window)
    for value, negative in products:
        if grid is not None:
            kept = (value / grid).__floor__() * grid
            if kept != value:
                flags |= INEXACT
            value = kept
        total += -value if negative else value
    if c:
        total += -c.value if c.negative else c.value
        if c.value == 0:
            zero_signs.add(c.negative)
    if total == 0:
        if out.specials is Specials.E8M0:
            return 0, flags | SAT_HIT | INEXACT
        only_zeros = not products and not (c and c.value)
        negative = rnd == 2
        if only_zeros and len(zero_signs) == 1:
            (negative,) = zero_signs
        return packed(0, negative and out.signed, out), flags
    return float_result(total, out, rnd, sat, flags)


def signed(code, bits):
    code &= (1 << bits) - 1
    return code - (1 << bits) if code >> (bits - 1) else code


def integer_dot(fmt, out, a, b, c, rnd, sat, alpha):
    total = Fraction(0)
    for x, y in zip(a, b, strict=True):
        product = Fraction(signed(x, fmt.bits) * signed(y, fmt.bits), 1 << (2 * fmt.frac))
        total += -product if alpha else product
    if c is not None:
        total += Fraction(signed(c, out.bits), 1 << out.frac)
    if fmt.name == "q32_32":
        total = Fraction(signed(int(total * (1 << 64)), 96), 1 << 64)
    scaled = total * (1 << out.frac)
    whole = round_integer(scaled, rnd)
    flags = INEXACT if whole != scaled else 0
    low, high = -(1 << (out.bits - 1)), (1 << (out.bits - 1)) - 1
    if sat and fmt.bits != 64 and not low <= whole <= high:
        whole = low if whole < low else high
        flags |= SAT_HIT
    return signed(whole, out.bits) & ((1 << out.container) - 1), flags


def naive_mma(
    ft, a, b, c, *, bovf=0, acc=0, rnd=0, sat=0, alpha=0, beta=0, exact_limit=96, window=None
):
    """(code, flags) of one element: lists of codes `a` and `b`, one code `c`."""
    fmt = lookup(ft)
    out = output_format(fmt, acc_mode(bovf, acc))
    c = None if beta else c
    if fmt.kind is not Kind.FLOAT:
        honoured = sat and (acc or not bovf)
        return integer_dot(fmt, out, a, b, c, rnd, honoured, alpha)
    if window is None:
        window = {"fp32": 64, "fp64": 106}.get(fmt.name, 32)
    return float_dot(fmt, out, a, b, c, rnd, sat and out.bits <= 8, alpha, exact_limit, window)
