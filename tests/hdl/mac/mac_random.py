"""Random operands that reach the corners of float arithmetic."""

from __future__ import annotations

import numpy as np

from hdl.formats import Format

__all__ = ["random_c", "random_codes"]


def _exponent_shift(fmt: Format) -> int:
    return fmt.man + (fmt.container - fmt.bits if fmt.top_aligned else 0)


def random_codes(rng: np.random.Generator, fmt: Format, shape: tuple[int, ...]) -> np.ndarray:
    """Codes in one of several styles: any; near one exponent; small; special; sparse."""
    bits = fmt.container
    codes = rng.integers(0, 1 << min(bits, 63), shape, dtype=np.uint64)
    if bits == 64:
        codes = codes << np.uint64(1) | rng.integers(0, 2, shape, dtype=np.uint64)
    style = rng.integers(0, 7)
    if not fmt.is_float:
        if style == 0:
            codes = rng.choice([0, 1, (1 << (fmt.bits - 1)) - 1, 1 << (fmt.bits - 1)], shape)
            return codes.astype(np.uint64)
        return codes >> np.uint64(rng.integers(0, bits)) if style == 1 else codes
    low = np.uint64(_exponent_shift(fmt))
    field = np.uint64((1 << fmt.exp) - 1)
    if style in (1, 2, 3):  # exponents in a narrow band
        width = int(rng.integers(1, 6 if style < 3 else 40))
        center = int(rng.integers(0, 1 << fmt.exp)) if style != 2 else (1 << fmt.exp) // 2
        exps = np.clip(center + rng.integers(-width, width + 1, shape), 0, int(field))
        codes = (codes & ~(field << low)) | exps.astype(np.uint64) << low
    if style in (2, 4):  # few mantissa bits: ties and cancellation
        keep = int(rng.integers(0, 3))
        man = (1 << fmt.man) - 1
        codes &= ~np.uint64((man >> keep) << (int(low) - fmt.man))
    if style == 5:  # mostly zeros
        sign = np.uint64(1) << np.uint64(bits - 1)
        codes = np.where(rng.random(shape) < 0.6, codes & sign, codes)
    if style == 6:  # infinities, NaNs and lowest exponents
        pick = rng.random(shape)
        codes = np.where(pick < 0.1, codes | field << low, codes)
        codes = np.where((pick > 0.9) & (pick < 0.95), codes & ~(field << low), codes)
    return codes


def random_c(rng: np.random.Generator, out: Format, d: np.ndarray) -> np.ndarray:
    """C codes: any, or close to what the products alone give (`d`), of either sign."""
    c = random_codes(rng, out, d.shape)
    near = d.astype(np.uint64)
    pick = rng.integers(0, 6)
    if pick == 0:
        return near
    if pick == 1:
        sign = np.uint64(1) << np.uint64(out.container - 1)
        return (
            near ^ sign
            if out.is_float and out.signed
            else (~near + np.uint64(1))
            & (np.uint64((1 << out.container) - 1 if out.container < 64 else 0xFFFFFFFFFFFFFFFF))
        )
    if pick == 2:
        mask = np.uint64((1 << out.container) - 1 if out.container < 64 else 0xFFFFFFFFFFFFFFFF)
        step = np.uint64(1 << rng.integers(0, max(1, out.bits - 1)))
        return (near ^ step) & mask
    return c
