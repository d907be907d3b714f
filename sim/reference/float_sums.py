"""Sums of float products, exact or windowed (numerics.md section 1), for whole matrices.

A sum is a whole number of units, each a power of two. int64 holds the numbers where it can;
elsewhere the arrays hold Python integers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hdl.config import Config
from hdl.formats import Format

from .float_codes import Parts, min_exponent

__all__ = ["Sums", "float_sums", "is_exact", "window_bits"]

EXACT_WIDTH = {
    **{"fp4_e2m1": 14, "fp4_e1m2": 12, "uf4_e2m2": 16, "uf4_e1m3": 14},
    **{"fp6_e2m3": 17, "fp6_e3m2": 23, "fp6_e4m1": 37, "uf6_e4m2": 39},
    **{"fp8_e4m3": 41, "fp8_e5m2": 69, "fp12_e4m7": 48, "fp12_e5m6": 76, "fp16": 84},
    **{"ue8m0": 514, "bf16": 526, "uf16_e8m8": 528, "tf32": 531, "fp32": 557, "fp64": 4198},
}
"""Listed width of an exact sum, sign included; at most `Config.exact_limit` makes the class."""

DEFAULT_WINDOW = {"fp32": 64, "fp64": 106}
OTHER_WINDOW = 32

INT64_BITS = 62
"""Bits of a sum's magnitude that int64 surely holds."""


def is_exact(fmt: Format, config: Config) -> bool:
    """Does `fmt` sum its products exactly?"""
    return EXACT_WIDTH[fmt.name] <= config.exact_limit


def window_bits(fmt: Format, config: Config) -> int:
    """F of a windowed format."""
    return config.window.get(fmt.name, DEFAULT_WINDOW.get(fmt.name, OTHER_WINDOW))


@dataclass(frozen=True)
class Sums:
    """Sums of products, (M, N) each.

    Parameters
    ----------
    values : whole numbers, int64 or Python's.
    units : exponent of the power of two that they count.
    lost : bits were dropped on the way.
    """

    values: np.ndarray
    units: np.ndarray
    lost: np.ndarray


def _exact_sums(a: Parts, b: Parts, fmt: Format) -> Sums:
    """Exact sums. Every row of A and of B counts units of its own smallest exponent."""

    def smallest(parts: Parts) -> np.ndarray:
        used = np.where(parts.significand != 0, parts.exponent, np.iinfo(np.int64).max)
        lowest = used.min(axis=1)
        return np.where((parts.significand != 0).any(axis=1), lowest, min_exponent(fmt))

    def whole(parts: Parts, base: np.ndarray, dtype: type) -> np.ndarray:
        significand = np.where(parts.sign, -parts.significand, parts.significand)
        shift = np.where(significand != 0, parts.exponent - base[:, None], 0)
        return significand.astype(dtype) << shift.astype(dtype)

    def bits(parts: Parts, base: np.ndarray) -> int:
        reach = np.where(parts.significand != 0, parts.exponent - base[:, None], 0)
        return fmt.man + 1 + int(reach.max())

    base_a, base_b = smallest(a), smallest(b)
    width = bits(a, base_a) + bits(b, base_b) + a.sign.shape[1].bit_length()
    dtype = np.int64 if width <= INT64_BITS else object
    values = whole(a, base_a, dtype) @ whole(b, base_b, dtype).T
    units = base_a[:, None] + base_b[None, :] - 2 * fmt.man
    return Sums(values, units, np.zeros(values.shape, bool))


def _truncated(
    product: np.ndarray, negative: np.ndarray, left: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Sums of magnitudes moved `left` bits (right where below 0), and where bits were lost."""
    up, down = np.maximum(left, 0), np.maximum(-left, 0)
    if product.dtype == object:
        up, down = up.astype(object), down.astype(object)
    else:
        down = np.minimum(down, 63)
    kept = (product << up) >> down
    lost = ((kept << down) >> up) != product
    return np.where(negative, -kept, kept).sum(axis=-1), lost.astype(bool).any(axis=-1)


def _windowed_sums(a: Parts, b: Parts, fmt: Format, window: int) -> Sums:
    """Sums of products whose magnitudes lost what lies below the window."""
    lanes = a.sign.shape[1]
    product_bits, fraction = 2 * (fmt.man + 1), 2 * fmt.man
    sig_a, sig_b = a.significand, b.significand
    if product_bits > INT64_BITS:
        sig_a, sig_b = sig_a.astype(object), sig_b.astype(object)
    product = sig_a[:, None, :] * sig_b[None, :, :]
    negative = a.sign[:, None, :] ^ b.sign[None, :, :]
    exponent = a.exponent[:, None, :] + b.exponent[None, :, :]
    nonzero = product != 0
    largest = np.where(nonzero, exponent, 2 * min_exponent(fmt)).max(axis=2)
    left = np.where(nonzero, window - fraction - (largest[:, :, None] - exponent), 0)
    if product.dtype == object or window + 2 + lanes.bit_length() <= INT64_BITS:
        values, lost = _truncated(product, negative, left)
        return Sums(values, largest - window, lost)
    # The window is wide: where the products lie close together, nothing is lost and the smallest
    # exponent makes a better unit; only the others need Python's integers.
    smallest = np.where(nonzero, exponent, largest[:, :, None]).min(axis=2)
    room = min(INT64_BITS - product_bits - lanes.bit_length(), window - fraction)
    close = largest - smallest <= room
    shift = np.where(nonzero & close[:, :, None], exponent - smallest[:, :, None], 0)
    values = (np.where(negative, -product, product) << shift).sum(axis=2)
    units, lost = smallest - fraction, np.zeros(close.shape, bool)
    apart = ~close
    if apart.any():
        values = values.astype(object)
        values[apart], lost[apart] = _truncated(
            product[apart].astype(object), negative[apart], left[apart]
        )
        units[apart] = largest[apart] - window
    return Sums(values, units, lost)


def float_sums(a: Parts, b: Parts, fmt: Format, config: Config) -> Sums:
    """Sums over k of A[i][k] * B[j][k], in the class that `config` gives `fmt`."""
    if is_exact(fmt, config):
        return _exact_sums(a, b, fmt)
    return _windowed_sums(a, b, fmt, window_bits(fmt, config))
