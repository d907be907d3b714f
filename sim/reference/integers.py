"""Integer and fixed-point multiply-accumulate, whole arrays at a time (numerics.md section 1).

The exact sum with C, one rounding (fixed point only), one clamp or wrap at the value width, sign
extension into the container.
"""

from __future__ import annotations

import numpy as np

from hdl.formats import Format, Kind

__all__ = ["clamp_or_wrap", "container_dtype", "mma_integer", "round_shift", "signed_values"]

INEXACT, SAT_HIT = 1, 2
FLOAT64_EXACT_BITS = 53
INT64_MODULUS_BITS = 64
Q32_32_MODULUS_BITS = 96


def container_dtype(fmt: Format) -> np.dtype:
    """Smallest unsigned numpy type that holds a code of `fmt`."""
    return np.dtype(f"u{max(1, fmt.container // 8)}")


def signed_values(codes: np.ndarray, fmt: Format) -> np.ndarray:
    """Values of integer codes as int64, the container's other bits ignored."""
    unused = 64 - fmt.bits
    raw = np.asarray(codes).astype(np.uint64, casting="unsafe")
    return (raw << np.uint64(unused)).view(np.int64) >> np.int64(unused)


def _objects(values: np.ndarray) -> np.ndarray:
    """The same whole numbers as Python ints, which have no width."""
    return values.astype(object)


def _dot(a: np.ndarray, b: np.ndarray, bits: int) -> np.ndarray:
    """Exact A x B^T of int64 values of `bits` bits; Python ints where int64 is too narrow."""
    lanes = a.shape[1]
    if 2 * (bits - 1) + lanes.bit_length() <= FLOAT64_EXACT_BITS:
        return (a.astype(np.float64) @ b.astype(np.float64).T).astype(np.int64)
    half = bits // 2
    if half + bits + lanes.bit_length() < 63:
        low, high = a & ((1 << half) - 1), a >> half
        return (_objects(high @ b.T) << half) + _objects(low @ b.T)
    return _objects(a) @ _objects(b).T


def round_shift(values: np.ndarray, shift: int, rnd: int) -> tuple[np.ndarray, np.ndarray]:
    """`values` / 2^shift rounded to whole numbers in mode RND, and where that dropped a 1."""
    floor = values >> shift
    rest = values - (floor << shift)
    dropped = rest != 0
    if rnd == 0:
        half = 1 << shift >> 1
        up = (rest > half) | ((rest == half) & dropped & (floor & 1 != 0))
    elif rnd == 1:
        up = dropped
    elif rnd == 2:
        up = np.zeros_like(dropped)
    else:
        up = dropped & (values < 0)
    return floor + up.astype(bool).astype(int), dropped.astype(bool)


def clamp_or_wrap(values: np.ndarray, bits: int, sat: bool) -> tuple[np.ndarray, np.ndarray]:
    """`values` in `bits` bits, and where a clamp changed one."""
    low, high = -(1 << bits - 1), (1 << bits - 1) - 1
    if not sat:
        return ((values - low) & ((1 << bits) - 1)) + low, np.zeros(values.shape, bool)
    clamped = np.minimum(np.maximum(values, low), high)
    return clamped, (clamped != values).astype(bool)


def mma_integer(
    fmt: Format,
    out: Format,
    a: np.ndarray,
    b: np.ndarray,
    c: np.ndarray | None,
    *,
    rnd: int,
    sat: bool,
    alpha: bool,
) -> tuple[np.ndarray, np.ndarray]:
    """Codes and flags of C + A x B^T (C - A x B^T with `alpha`); `c` None takes no part.

    `sat` is already resolved for this output. Formats without a wider output wrap: INT64 sums
    modulo 2^64, Q32.32 modulo 2^96.
    """
    product = _dot(signed_values(a, fmt), signed_values(b, fmt), fmt.bits)
    if out.bits > 32:
        product = _objects(product)
    if alpha:
        product = -product
    shift = 2 * fmt.frac - out.frac if fmt.kind is Kind.FIXED else 0
    total = product
    if c is not None:
        addend = signed_values(c, out)
        total = total + ((_objects(addend) if out.bits > 32 else addend) << shift)
    inexact = np.zeros(total.shape, bool)
    if fmt.bits == 64:
        modulus = Q32_32_MODULUS_BITS if fmt.kind is Kind.FIXED else INT64_MODULUS_BITS
        total, _ = clamp_or_wrap(total, modulus, False)
        sat = False
    if shift:
        total, inexact = round_shift(total, shift, rnd)
    total, sat_hit = clamp_or_wrap(total, out.bits, sat)
    codes = (total & ((1 << out.container) - 1)).astype(container_dtype(out))
    return codes, inexact * np.uint8(INEXACT) | sat_hit * np.uint8(SAT_HIT)
