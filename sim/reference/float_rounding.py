"""One float rounded once, from its exact value (numerics.md section 4), in Python integers."""

from __future__ import annotations

from hdl.formats import Format, Specials

from .float_codes import (
    DOWN,
    INEXACT,
    NEAREST,
    OVERFLOW,
    SAT_HIT,
    TO_ZERO,
    UNDERFLOW,
    UP,
    infinity,
    max_finite,
    place,
)

__all__ = ["infinite_result", "round_to_float", "zero_result"]


def infinite_result(sign: bool, fmt: Format, sat: bool) -> tuple[int, int]:
    """Code and flags of an Inf that wins. `sat` is already resolved for this format."""
    if fmt.specials is Specials.E8M0:
        if sign:
            return 0, SAT_HIT
        return (max_finite(fmt), SAT_HIT) if sat else (fmt.canonical_nan, 0)
    if sign and not fmt.signed:
        return 0, SAT_HIT
    if sat:
        return place(max_finite(fmt), sign, fmt), SAT_HIT
    if fmt.specials is Specials.IEEE:
        return place(infinity(fmt), sign, fmt), 0
    if fmt.canonical_nan is not None:
        return fmt.canonical_nan, 0
    return place(max_finite(fmt), sign, fmt), SAT_HIT


def zero_result(sign: bool, fmt: Format) -> tuple[int, int]:
    """Code and flags of an exact zero."""
    if fmt.specials is Specials.E8M0:
        return 0, SAT_HIT | INEXACT
    return place(0, sign and fmt.signed, fmt), 0


def _round(magnitude: int, shift: int, sign: bool, rnd: int) -> tuple[int, bool]:
    """`magnitude` / 2^shift as a whole number in mode RND, and whether a 1 was dropped."""
    if shift <= 0:
        return magnitude << -shift, False
    whole = magnitude >> shift
    rest = magnitude - (whole << shift)
    if not rest:
        return whole, False
    if rnd == NEAREST:
        half = 1 << shift - 1
        up = rest > half or (rest == half and whole & 1)
    else:
        up = rnd == (DOWN if sign else UP)
    return whole + bool(up), True


def _round_to_power(magnitude: int, exponent: int, rnd: int, sat: bool) -> tuple[int, int]:
    """Positive magnitude * 2^exponent into UE8M0: linear between neighbouring powers of two."""
    power = magnitude.bit_length() - 1 + exponent
    code = power + 127
    rest = magnitude - (1 << magnitude.bit_length() - 1)
    flags = 0
    if rest:
        flags = INEXACT
        half = 1 << magnitude.bit_length() - 1 >> 1
        if rnd == NEAREST:
            code += 2 * rest > 2 * half or (rest == half and code & 1)
        else:
            code += rnd == UP
    if code > 254:
        flags |= OVERFLOW | INEXACT
        if sat:
            return 254, flags | SAT_HIT
        return (254 if rnd in (DOWN, TO_ZERO) else 255), flags
    if code < 0:
        return 0, flags | SAT_HIT | INEXACT
    return code, flags


def round_to_float(
    sign: bool, magnitude: int, exponent: int, fmt: Format, rnd: int, sat: bool, dropped: bool
) -> tuple[int, int]:
    """Code and flags of the nonzero value (-1)^sign * magnitude * 2^exponent.

    `sat` is already resolved for this format; `dropped`: bits were lost on the way here.
    """
    flags = INEXACT if dropped else 0
    if sign and not fmt.signed:
        return 0, SAT_HIT | INEXACT
    if fmt.specials is Specials.E8M0:
        code, more = _round_to_power(magnitude, exponent, rnd, sat)
        return code, flags | more
    lead = magnitude.bit_length() - 1 + exponent
    smallest = 1 - fmt.bias
    quantum = max(lead, smallest) - fmt.man
    whole, inexact = _round(magnitude, quantum - exponent, sign, rnd)
    if inexact:
        flags |= INEXACT
    # The exponent field is 0 for whole < 2^man; a carry out of the mantissa moves into it.
    code = (quantum + fmt.man - smallest << fmt.man) + whole
    if code > max_finite(fmt):
        flags |= OVERFLOW | INEXACT
        if sat:
            return place(max_finite(fmt), sign, fmt), flags | SAT_HIT
        if rnd in (NEAREST, DOWN if sign else UP):
            if fmt.specials is Specials.IEEE:
                return place(infinity(fmt), sign, fmt), flags
            if fmt.canonical_nan is not None:
                return fmt.canonical_nan, flags
        return place(max_finite(fmt), sign, fmt), flags
    if lead < smallest and flags & INEXACT:
        unbounded, _ = _round(magnitude, lead - fmt.man - exponent, sign, rnd)
        if unbounded.bit_length() - 1 + lead - fmt.man < smallest:
            flags |= UNDERFLOW
    return place(code, sign, fmt), flags
