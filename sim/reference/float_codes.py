"""Float codes and what they mean (numerics.md section 3)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from hdl.formats import Format, Specials

__all__ = [
    "DOWN",
    "INEXACT",
    "INVALID",
    "NEAREST",
    "OVERFLOW",
    "SAT_HIT",
    "TO_ZERO",
    "UNDERFLOW",
    "UP",
    "Parts",
    "infinity",
    "max_finite",
    "min_exponent",
    "place",
    "split",
]

INEXACT, SAT_HIT, INVALID, OVERFLOW, UNDERFLOW = (1 << bit for bit in range(5))
"""Bits of an element's flags, mxstatus[6:2]."""

NEAREST, UP, DOWN, TO_ZERO = range(4)

SIGNALLING = frozenset({"fp16", "bf16", "tf32", "fp32", "fp64"})
"""Formats whose NaNs with a clear top mantissa bit signal."""


@dataclass(frozen=True)
class Parts:
    """Float codes taken apart; every member is an array of the codes' shape.

    A finite value is (-1)^sign * significand * 2^(exponent - man), with the exponent of a
    subnormal 1 - bias. Significand and exponent of NaN and Inf are 0 and the smallest.
    """

    sign: np.ndarray
    significand: np.ndarray
    exponent: np.ndarray
    nan: np.ndarray
    signalling: np.ndarray
    inf: np.ndarray

    def rows(self, start: int, stop: int) -> Parts:
        """Some of the rows."""
        return Parts(*(value[start:stop] for value in vars(self).values()))

    @property
    def zero(self) -> np.ndarray:
        return (self.significand == 0) & ~self.nan & ~self.inf


def min_exponent(fmt: Format) -> int:
    """Exponent of the smallest values."""
    return -fmt.bias if fmt.specials is Specials.E8M0 else 1 - fmt.bias


def split(codes: np.ndarray, fmt: Format) -> Parts:
    """Take float codes apart; bits of the container outside the format are ignored."""
    raw = np.asarray(codes).astype(np.uint64, casting="unsafe")
    if fmt.top_aligned:
        raw = raw >> np.uint64(fmt.container - fmt.bits)
    raw = raw & np.uint64((1 << fmt.bits) - 1)
    top = (1 << fmt.exp) - 1
    mantissa = (raw & np.uint64((1 << fmt.man) - 1)).astype(np.int64)
    field = ((raw >> np.uint64(fmt.man)) & np.uint64(top)).astype(np.int64)
    none = np.zeros(raw.shape, bool)
    sign = (raw >> np.uint64(fmt.bits - 1)) != 0 if fmt.signed else none
    if fmt.specials is Specials.E8M0:
        nan = field == top
        return Parts(none, np.where(nan, 0, 1), np.where(nan, 0, field) - fmt.bias, nan, none, none)
    nan = inf = signalling = none
    if fmt.specials is Specials.IEEE:
        nan = (field == top) & (mantissa != 0)
        inf = (field == top) & (mantissa == 0)
        if fmt.name in SIGNALLING:
            signalling = nan & (mantissa >> (fmt.man - 1) == 0)
    elif fmt.specials is Specials.NAN_TOP:
        nan = (field == top) & (mantissa == (1 << fmt.man) - 1)
    special = nan | inf
    significand = np.where(special, 0, mantissa + ((field != 0).astype(np.int64) << fmt.man))
    exponent = np.where(special, 1, np.maximum(field, 1)) - fmt.bias
    return Parts(sign, significand, exponent, nan, signalling, inf)


@cache
def max_finite(fmt: Format) -> int:
    """Code of the largest finite value, not yet moved up in its container."""
    top = (1 << fmt.exp + fmt.man) - 1
    if fmt.specials is Specials.IEEE:
        return ((1 << fmt.exp) - 1 << fmt.man) - 1
    return top if fmt.specials is Specials.NONE else top - 1


@cache
def infinity(fmt: Format) -> int | None:
    """Code of +Inf, or None where the format has none."""
    return max_finite(fmt) + 1 if fmt.specials is Specials.IEEE else None


def place(code: int, sign: bool, fmt: Format) -> int:
    """A magnitude's code with its sign, where the container has it."""
    code |= int(sign) << fmt.bits - 1
    return code << fmt.container - fmt.bits if fmt.top_aligned else code
