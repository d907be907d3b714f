"""Numbers to codes and back (numerics.md section 6)."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from hdl.formats import Format, Kind, lookup

from .float_codes import INEXACT, NEAREST, SAT_HIT, TO_ZERO, UP, split
from .float_rounding import infinite_result, round_to_float, zero_result
from .integers import clamp_or_wrap, container_dtype, signed_values

__all__ = ["convert", "from_codes", "to_codes"]

STICKY_BITS = 8
"""Bits kept below the last one of a result when a value is no binary fraction."""

FLOAT64_EXACT_BITS = 53


def _binary(value: int | float | Fraction, precision: int) -> tuple[bool, int, int]:
    """Sign, magnitude and exponent of a finite value.

    A value that is no binary fraction is cut after more than `precision` bits, with a last bit
    that says so.
    """
    fraction = Fraction(value)
    negative = fraction < 0 or (isinstance(value, float) and math.copysign(1.0, value) < 0)
    numerator, denominator = abs(fraction.numerator), fraction.denominator
    if denominator & (denominator - 1) == 0:
        return negative, numerator, 1 - denominator.bit_length()
    shift = max(0, precision + STICKY_BITS + denominator.bit_length() - numerator.bit_length())
    whole, rest = divmod(numerator << shift, denominator)
    return negative, whole << 1 | (rest != 0), -shift - 1


def _to_fixed(
    value: int | float | Fraction, fmt: Format, rnd: int, sat: bool, where: str
) -> tuple[int, int]:
    low, high = -(1 << fmt.bits - 1), (1 << fmt.bits - 1) - 1
    mask = (1 << fmt.container) - 1
    if isinstance(value, float) and math.isinf(value):
        if not sat:
            raise ValueError(f"{where} is {value}, which {fmt.name} cannot hold without sat")
        return (high if value > 0 else low) & mask, SAT_HIT
    scaled = Fraction(value) * (1 << fmt.frac)
    floor = math.floor(scaled)
    rest = scaled - floor
    if rnd == NEAREST:
        up = rest > Fraction(1, 2) or (rest == Fraction(1, 2) and floor & 1)
    elif rnd == TO_ZERO:
        up = rest and floor < 0
    else:
        up = rest and rnd == UP
    whole = np.array([floor + bool(up)], object)
    result, clamped = clamp_or_wrap(whole, fmt.bits, sat)
    flags = (INEXACT if rest else 0) | (SAT_HIT if clamped[0] else 0)
    return int(result[0]) & mask, flags


def _to_float(
    value: int | float | Fraction, fmt: Format, rnd: int, sat: bool, where: str
) -> tuple[int, int]:
    if isinstance(value, float) and math.isinf(value):
        return infinite_result(value < 0, fmt, sat)
    sign, magnitude, exponent = _binary(value, fmt.man + 1)
    if not magnitude:
        return zero_result(sign, fmt)
    return round_to_float(sign, magnitude, exponent, fmt, rnd, sat, False)


def convert(
    values: np.ndarray | float | int | Fraction, fmt: str | int | Format, rnd: int = 0, sat: int = 1
) -> tuple[np.ndarray, np.ndarray]:
    """Codes of numbers, rounded in mode RND, and their flags.

    `sat` = 1 saturates integers, fixed point, unsigned floats and floats of 8 bits or fewer, Inf
    included; wider floats follow IEEE. `sat` = 0 wraps and overflows as an mma does; formats with
    neither Inf nor NaN saturate all the same. Values are floats, ints or Fractions, rounded once
    from their exact value. Raises ValueError that names the element for a NaN where the format
    has none.
    """
    if not isinstance(fmt, Format):
        fmt = lookup(fmt)
    if rnd not in range(4):
        raise ValueError(f"rnd = {rnd} is undefined: use 0 to 3")
    array = np.asarray(values)
    codes = np.zeros(array.shape, container_dtype(fmt))
    flags = np.zeros(array.shape, np.uint8)
    saturates = bool(sat) and (not fmt.is_float or fmt.bits <= 8 or not fmt.signed)
    to_code = _to_float if fmt.is_float else _to_fixed
    for index in np.ndindex(array.shape):
        value = array[index]
        if not isinstance(value, Fraction):
            value = value.item() if isinstance(value, np.generic) else value
        where = f"element {index}" if index else "the value"
        if isinstance(value, float) and math.isnan(value):
            if fmt.canonical_nan is None:
                raise ValueError(f"{where} is NaN, which {fmt.name} does not have")
            codes[index] = fmt.canonical_nan
        else:
            codes[index], flags[index] = to_code(value, fmt, rnd, saturates, where)
    return codes, flags


def to_codes(
    values: np.ndarray | float | int | Fraction, fmt: str | int | Format, rnd: int = 0, sat: int = 1
) -> np.ndarray:
    """Codes of numbers, as `convert` gives them, without the flags."""
    return convert(values, fmt, rnd, sat)[0]


def from_codes(codes: np.ndarray | int, fmt: str | int | Format) -> np.ndarray:
    """Exact values of codes: int64 for integers, Fractions for Q32.32, float64 for all others."""
    if not isinstance(fmt, Format):
        fmt = lookup(fmt)
    codes = np.asarray(codes)
    if fmt.kind is Kind.INT:
        return signed_values(codes, fmt)
    if fmt.kind is Kind.FIXED:
        values = signed_values(codes, fmt)
        if fmt.bits <= FLOAT64_EXACT_BITS:
            return values / float(1 << fmt.frac)
        exact = np.empty(codes.shape, object)
        for index in np.ndindex(codes.shape):
            exact[index] = Fraction(int(values[index]), 1 << fmt.frac)
        return exact
    parts = split(codes, fmt)
    magnitude = np.ldexp(parts.significand.astype(np.float64), parts.exponent - fmt.man)
    magnitude = np.where(parts.inf, np.inf, np.where(parts.nan, np.nan, magnitude))
    return np.where(parts.sign, -magnitude, magnitude)
