"""What a multiply-accumulate of the front end `xuantie` computes (isa.md section 1).

Integers are added modulo the width of C; floats follow numerics.md, nearest even.
"""

from __future__ import annotations

import numpy as np

from hdl.config import Config
from hdl.formats import Format

from .floats import mma_float

__all__ = ["multiply_accumulate", "unpacked"]


def unpacked(rows: np.ndarray, bits: int) -> np.ndarray:
    """Codes of `bits` bits in rows of bytes, the low nibble first; a copy."""
    if bits == 4:
        return np.stack([rows & 15, rows >> 4], axis=-1).reshape(len(rows), -1)
    return np.ascontiguousarray(rows).view(f"<u{bits // 8}").copy()


def _modulo_values(codes: np.ndarray, bits: int, signed: bool) -> np.ndarray:
    """Integers modulo 2^64."""
    unused = 64 - bits
    raised = codes.astype(np.uint64) << np.uint64(unused)
    if signed:
        return (raised.view(np.int64) >> np.int64(unused)).view(np.uint64)
    return raised >> np.uint64(unused)


def multiply_accumulate(
    a: np.ndarray,
    b: np.ndarray,
    c: np.ndarray,
    *,
    operand: Format,
    output: Format,
    a_signed: bool,
    b_signed: bool,
    config: Config,
) -> tuple[np.ndarray, int]:
    """C + A x B^T as codes, and its flags (`numerics.FLAG_NAMES`) together.

    Parameters
    ----------
    a, b, c : codes, (M, K), (N, K), (M, N).
    operand, output : formats of A and B, and of C.
    a_signed, b_signed : how integer operands are read.
    config : the core, for its exact_limit and windows.
    """
    if operand.is_float:
        d, flags = mma_float(operand, output, a, b, c, rnd=0, sat=False, alpha=False, config=config)
        return d, int(np.bitwise_or.reduce(flags, axis=None))
    x = _modulo_values(a, operand.bits, a_signed)
    y = _modulo_values(b, operand.bits, b_signed)
    return (x @ y.T + c.astype(np.uint64)).astype(c.dtype), 0
