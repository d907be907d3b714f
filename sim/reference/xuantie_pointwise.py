"""Pointwise operations of the front end `xuantie`, element by element in Python integers.

Shift amounts are the low bits of the second operand, as many as the element needs; mn4clip clips to
a quarter of the element's bits, signed from signed, mn4clipu unsigned from unsigned.
"""

from __future__ import annotations

import numpy as np

from hdl.isa import FixedRounding, PointwiseOp

__all__ = ["NARROWING", "pointwise", "round_shift"]

NARROWING = (PointwiseOp.MN4CLIP, PointwiseOp.MN4CLIPU)
"""Operations whose results are a quarter as wide as their operands."""


def _signed(code: int, bits: int) -> int:
    return code - ((code >> bits - 1) << bits)


def round_shift(value: int, shift: int, rounding: int) -> int:
    """`value` / 2^shift as a whole number, rounded as xmxrm says."""
    floor, rest = value >> shift, value & (1 << shift) - 1
    twice, one = 2 * rest, 1 << shift
    match FixedRounding(rounding):
        case FixedRounding.RNU:
            return floor + (twice >= one)
        case FixedRounding.RNE:
            return floor + (twice > one or (twice == one and floor & 1))
        case FixedRounding.RDN:
            return floor
        case FixedRounding.ROD:
            return floor | (rest != 0)


def _clipped(value: int, low: int, high: int) -> tuple[int, bool]:
    kept = min(max(value, low), high)
    return kept, kept != value


def _one(op: PointwiseOp, x: int, y: int, bits: int, rounding: int) -> tuple[int, bool]:
    """Result of one pair of codes, and whether it was clipped; any integer, still to be cut."""
    shift = y % bits
    if op is PointwiseOp.MN4CLIPU:
        return _clipped(round_shift(x, shift, rounding), 0, (1 << bits // 4) - 1)
    x, y = _signed(x, bits), _signed(y, bits)
    match op:
        case PointwiseOp.MADD:
            return x + y, False
        case PointwiseOp.MSUB:
            return x - y, False
        case PointwiseOp.MMUL:
            return x * y, False
        case PointwiseOp.MMULH:
            return x * y >> bits, False
        case PointwiseOp.MSRA:
            return round_shift(x, shift, rounding), False
        case PointwiseOp.MN4CLIP:
            high = (1 << bits // 4 - 1) - 1
            return _clipped(round_shift(x, shift, rounding), -high - 1, high)


def pointwise(
    op: PointwiseOp, x: np.ndarray, y: np.ndarray, bits: int, rounding: int
) -> tuple[np.ndarray, bool]:
    """Codes of `x` op `y` in whole bytes, and whether one of them was clipped.

    Parameters
    ----------
    x, y : codes of `bits` bits, of one shape (ms2, and ms1 or what stands for it).
    rounding : xmxrm.
    """
    out_bits = bits // 4 if op in NARROWING else bits
    pairs = [
        _one(op, a, b, bits, rounding)
        for a, b in zip(x.ravel().tolist(), y.ravel().tolist(), strict=True)
    ]
    codes = [value & (1 << out_bits) - 1 for value, _ in pairs]
    result = np.array(codes, f"<u{out_bits // 8}").reshape(x.shape)
    return result, any(clipped for _, clipped in pairs)
