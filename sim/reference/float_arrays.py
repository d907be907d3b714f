"""C added and one rounding for whole arrays, where 62 bits and a sticky bit are enough.

The results equal those of `float_rounding`, element by element; elements outside its reach are
left for that.
"""

from __future__ import annotations

import numpy as np

from hdl.formats import Format, Specials

from .float_codes import (
    DOWN,
    INEXACT,
    NEAREST,
    OVERFLOW,
    SAT_HIT,
    UNDERFLOW,
    UP,
    Parts,
    infinity,
    max_finite,
)
from .float_sums import Sums
from .integers import container_dtype

__all__ = ["round_sums"]

WORK_BITS = 61
"""Bits of the larger addend after alignment; a sum has one more."""

SURE_BITS = 48
"""A sum this narrow is cut only where C is far larger, so that nothing cancels."""

MAX_MANTISSA = 24
"""Widest output mantissa."""

NEVER = -(1 << 40)
"""Exponent of the leading bit of a zero."""


def _bit_length(magnitude: np.ndarray) -> np.ndarray:
    """Bits of numbers below 2^62; int64 would be rounded on its way through a float64."""
    high, low = magnitude >> 31, magnitude & 0x7FFFFFFF
    return np.where(
        high > 0, np.frexp(high.astype(float))[1] + 31, np.frexp(low.astype(float))[1]
    ).astype(np.int64)


def _lead(value: np.ndarray, unit: np.ndarray) -> np.ndarray:
    return np.where(value == 0, NEVER, _bit_length(np.abs(value)) - 1 + unit)


def _align(value: np.ndarray, shift: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """`value` * 2^shift rounded down, and where that lost bits."""
    left, right = np.clip(shift, 0, 62), np.clip(-shift, 0, 63)
    left = np.where(value == 0, 0, left)
    floor = value >> right
    return np.where(shift >= 0, value << left, floor), (shift < 0) & ((floor << right) != value)


def _round(
    magnitude: np.ndarray, sticky: np.ndarray, shift: np.ndarray, away: np.ndarray, rnd: int
) -> tuple[np.ndarray, np.ndarray]:
    """(magnitude and a bit of sticky) / 2^shift in mode RND, and where that dropped a 1.

    `away`: the mode's direction leads away from zero.
    """
    left, right = np.clip(-shift, 0, 62), np.clip(shift, 0, 63)
    whole = magnitude >> right
    rest = magnitude - (whole << right)
    inexact = (rest != 0) | sticky
    if rnd == NEAREST:
        half = np.int64(1) << np.maximum(right - 1, 0)
        up = (right > 0) & ((rest > half) | ((rest == half) & (sticky | (whole & 1 != 0))))
    else:
        up = inexact & away
    return np.where(shift > 0, whole + up, magnitude << left), inexact


def round_sums(
    sums: Sums, c: Parts | None, out: Format, rnd: int, sat: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Codes, flags, and which elements these are right for.

    Parameters
    ----------
    sums : sums of products, their signs final.
    c : finite addends; what it says of NaN and Inf is ignored.
    out, rnd, sat : as for `float_rounding.round_to_float`.
    """
    shape = sums.units.shape
    nothing = (
        np.zeros(shape, container_dtype(out)),
        np.zeros(shape, np.uint8),
        np.zeros(shape, bool),
    )
    if out.man > MAX_MANTISSA or not out.signed or out.specials is Specials.E8M0:
        return nothing
    done = np.abs(sums.values) < 1 << WORK_BITS
    done = done.astype(bool)
    value, unit = np.where(done, sums.values, 0).astype(np.int64), sums.units
    if c is None:
        addend, addend_unit = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    else:
        addend = np.where(c.sign, -c.significand, c.significand)
        addend_unit = c.exponent - out.man
    lead = np.maximum(_lead(value, unit), _lead(addend, addend_unit))
    base = lead - (WORK_BITS - 1)
    done &= (unit >= base) | (np.abs(value) < 1 << SURE_BITS)
    first, first_lost = _align(value, unit - base)
    second, second_lost = _align(addend, addend_unit - base)
    total, sticky = first + second, first_lost | second_lost
    done &= total != 0
    negative = total < 0
    magnitude = np.where(negative, -total - sticky, total)

    away = negative if rnd == DOWN else ~negative if rnd == UP else np.zeros(shape, bool)
    lead = _bit_length(magnitude) - 1 + base
    smallest = 1 - out.bias
    quantum = np.maximum(lead, smallest) - out.man
    whole, inexact = _round(magnitude, sticky, quantum - base, away, rnd)
    inexact |= sums.lost
    code = (np.where(done, quantum + out.man - smallest, 0) << out.man) + whole
    overflow = code > max_finite(out)
    inexact |= overflow
    unbounded, _ = _round(magnitude, sticky, lead - out.man - base, away, rnd)
    carry = unbounded >> (out.man + 1) != 0
    tiny = (lead < smallest) & ~(carry & (lead == smallest - 1)) & inexact
    flags = inexact * INEXACT | overflow * OVERFLOW | tiny * UNDERFLOW
    beyond = np.full(shape, max_finite(out))
    if sat:
        flags = flags | overflow * SAT_HIT
    elif out.specials is Specials.IEEE:
        beyond = np.where((rnd == NEAREST) | away, infinity(out), beyond)
    code = np.where(overflow, beyond, code) | negative.astype(np.int64) << out.bits - 1
    if out.top_aligned:
        code = code << out.container - out.bits
    if not sat and out.specials is Specials.NAN_TOP:
        code = np.where(overflow & ((rnd == NEAREST) | away), out.canonical_nan, code)
    return code.astype(container_dtype(out)), flags.astype(np.uint8), done
