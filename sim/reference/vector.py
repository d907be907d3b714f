"""Vector mode: element-wise arithmetic, one rounding an element (isa.md section 2, numerics.md).

An element is a multiply-accumulate with K = 1: a sum is x * 1 + z, a maximum is the larger operand
times 1, so that rounding, SAT and flags are those of mma. Formats that are no mma output
(4, 6 and 12 bits) follow the same rules; one that has neither Inf nor NaN takes the largest finite
value wherever those would be, in every rounding mode.
"""

from __future__ import annotations

import numpy as np

from hdl.formats import Format
from hdl.isa import VectorOp

from .float_arrays import round_sums
from .float_codes import DOWN, INVALID, Parts, split
from .float_rounding import infinite_result, round_to_float, zero_result
from .float_sums import Sums
from .integers import (
    INEXACT,
    INT64_MODULUS_BITS,
    Q32_32_MODULUS_BITS,
    SAT_HIT,
    clamp_or_wrap,
    container_dtype,
    round_shift,
    signed_values,
)

__all__ = ["reads_z", "saturates", "vector"]

NO_Z = (VectorOp.MUL, VectorOp.MAX, VectorOp.MIN)
"""Operations that z takes no part in."""

WIDE_SIGNIFICANDS = 31
"""Bits of a significand whose square int64 does not hold."""


def reads_z(op: VectorOp) -> bool:
    """Does the old z take part?"""
    return op not in NO_Z


def saturates(fmt: Format, out: Format, *, bovf: int, acc: int, sat: int) -> bool:
    """Does SAT have an effect on this output? (numerics.md section 4, SAT)"""
    if not sat or fmt.name in ("int64", "q32_32"):
        return False
    return out.bits <= 8 if out.is_float else bool(acc) or not bovf


def vector(
    fmt: Format,
    out: Format,
    op: VectorOp,
    x: np.ndarray,
    y: np.ndarray,
    z: np.ndarray,
    *,
    rnd: int = 0,
    sat: bool = False,
) -> tuple[np.ndarray, np.ndarray]:
    """Codes and flags (bits as `numerics.FLAG_NAMES`) of every element.

    Parameters
    ----------
    fmt, out : formats of x and y, and of z.
    x, y, z : codes, arrays of one shape; z is the old one, and ignored where it takes no part.
    rnd : rounding mode.
    sat : already resolved for this output (`saturates`).
    """
    old = np.asarray(z).reshape(-1) if reads_z(op) else None
    shape = np.shape(x)
    x, y = np.asarray(x).reshape(-1), np.asarray(y).reshape(-1)
    work = _floats if fmt.is_float else _integers
    codes, flags = work(fmt, out, op, x, y, old, rnd, sat)
    return codes.reshape(shape), flags.reshape(shape)


# -- integers and fixed point ------------------------------------------------------------------


def _integers(
    fmt: Format,
    out: Format,
    op: VectorOp,
    x: np.ndarray,
    y: np.ndarray,
    z: np.ndarray | None,
    rnd: int,
    sat: bool,
) -> tuple[np.ndarray, np.ndarray]:
    a, b = (signed_values(codes, fmt).astype(object) for codes in (x, y))
    one = 1 << fmt.frac
    product = {
        VectorOp.MUL_ADD: lambda: a * b,
        VectorOp.MUL: lambda: a * b,
        VectorOp.ADD_X: lambda: a * one,
        VectorOp.ADD_Y: lambda: b * one,
        VectorOp.MAX: lambda: np.maximum(a, b) * one,
        VectorOp.MIN: lambda: np.minimum(a, b) * one,
    }[op]()
    shift = 2 * fmt.frac - out.frac
    total = product
    if z is not None:
        total = total + (signed_values(z, out).astype(object) << shift)
    if fmt.bits == 64:
        modulus = Q32_32_MODULUS_BITS if fmt.frac else INT64_MODULUS_BITS
        total, _ = clamp_or_wrap(total, modulus, False)
    inexact = np.zeros(total.shape, bool)
    if shift:
        total, inexact = round_shift(total, shift, rnd)
    total, sat_hit = clamp_or_wrap(total, out.bits, sat)
    codes = (total & ((1 << out.container) - 1)).astype(container_dtype(out))
    return codes, (inexact * np.uint8(INEXACT) | sat_hit * np.uint8(SAT_HIT)).astype(np.uint8)


# -- floats ------------------------------------------------------------------------------------


def _one(fmt: Format, count: int) -> Parts:
    """1.0, `count` times."""
    none = np.zeros(count, bool)
    return Parts(none, np.full(count, 1 << fmt.man), np.zeros(count, np.int64), none, none, none)


def _pick(takes_x: np.ndarray, x: Parts, y: Parts) -> Parts:
    """x where `takes_x`, y elsewhere; NaN, and signalling, where either is."""
    picked = {
        name: np.where(takes_x, getattr(x, name), getattr(y, name))
        for name in ("sign", "significand", "exponent", "inf")
    }
    nan = x.nan | y.nan
    picked["inf"] = picked["inf"] & ~nan
    picked["significand"] = np.where(nan, 0, picked["significand"])
    return Parts(**picked, nan=nan, signalling=x.signalling | y.signalling)


def _is_larger(x: Parts, y: Parts) -> np.ndarray:
    """Is x above y? -0 is below +0; elements with a NaN mean nothing."""

    def larger_magnitude(one: Parts, other: Parts) -> np.ndarray:
        # A significand of a larger exponent has its hidden bit, so pairs compare like numbers; a
        # zero has the smallest exponent.
        by_exponent = np.where(
            one.exponent != other.exponent,
            one.exponent > other.exponent,
            one.significand > other.significand,
        )
        return np.where(one.inf | other.inf, one.inf & ~other.inf, by_exponent)

    magnitude = np.where(x.sign, larger_magnitude(y, x), larger_magnitude(x, y))
    return np.where(x.sign != y.sign, y.sign, magnitude).astype(bool)


def _factors(op: VectorOp, x: Parts, y: Parts, one: Parts) -> tuple[Parts, Parts]:
    """What is multiplied."""
    match op:
        case VectorOp.MUL_ADD | VectorOp.MUL:
            return x, y
        case VectorOp.ADD_X:
            return x, one
        case VectorOp.ADD_Y:
            return y, one
        case VectorOp.MAX:
            return _pick(_is_larger(x, y), x, y), one
        case VectorOp.MIN:
            return _pick(_is_larger(y, x), x, y), one
    raise ValueError(f"{op} is no operation of the vector mode")


def _one_result(
    total: int, unit: int, z: tuple[bool, int, int] | None, sign: bool, out: Format, rnd: int, sat
) -> tuple[int, int]:
    """Code and flags of a finite element: total * 2^unit, of sign `sign` if zero, plus z."""
    alone = not total
    if z is not None:
        z_sign, significand, exponent = z
        addend, exponent = (-significand if z_sign else significand), exponent - out.man
        low = min(unit, exponent)
        alone = alone and not addend and sign == z_sign
        total = (total << unit - low) + (addend << exponent - low)
        unit = low
    if total:
        return round_to_float(total < 0, abs(total), unit, out, rnd, sat, False)
    return zero_result(sign if alone else rnd == DOWN, out)


def _floats(
    fmt: Format,
    out: Format,
    op: VectorOp,
    x: np.ndarray,
    y: np.ndarray,
    z: np.ndarray | None,
    rnd: int,
    sat: bool,
) -> tuple[np.ndarray, np.ndarray]:
    a, b = _factors(op, split(x, fmt), split(y, fmt), _one(fmt, len(x)))
    c = None if z is None else split(z, out)
    sign = a.sign ^ b.sign
    meaningless = (a.inf & b.zero) | (a.zero & b.inf)
    nan = a.nan | b.nan | meaningless
    invalid = a.signalling | b.signalling | meaningless
    inf = (a.inf | b.inf) & ~nan
    plus, minus = inf & ~sign, inf & sign
    if c is not None:
        nan, invalid = nan | c.nan, invalid | c.signalling
        plus, minus = plus | c.inf & ~c.sign, minus | c.inf & c.sign
    clash = plus & minus
    nan, invalid = nan | clash, invalid | clash

    significands = (a.significand, b.significand)
    if fmt.man >= WIDE_SIGNIFICANDS:
        significands = tuple(part.astype(object) for part in significands)
    magnitude = significands[0] * significands[1]
    values = np.where(sign, -magnitude, magnitude)
    units = a.exponent + b.exponent - 2 * fmt.man
    sums = Sums(values, units, np.zeros(len(x), bool))
    codes, flags, done = round_sums(sums, c, out, rnd, sat)
    for (place,) in np.argwhere(~done & ~nan & ~plus & ~minus):
        old = None
        if c is not None:
            old = bool(c.sign[place]), int(c.significand[place]), int(c.exponent[place])
        codes[place], flags[place] = _one_result(
            int(values[place]), int(units[place]), old, bool(sign[place]), out, rnd, sat
        )
    for where, negative in ((plus, False), (minus, True)):
        if where.any():
            codes[where], flags[where] = infinite_result(negative, out, sat)
    if nan.any():
        codes[nan] = out.canonical_nan
        flags[nan] = invalid[nan] * np.uint8(INVALID)
    return codes, flags
