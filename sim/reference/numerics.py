"""What one mma computes, for every format pair: the golden model of numerics.md.

Independent of the hardware: it shares only the tables of `hdl.formats` with it. The arithmetic of
integers is in `integers`, of floats in `floats`, conversions in `convert`.
"""

from __future__ import annotations

import numpy as np

from hdl.config import Config
from hdl.formats import Format, acc_mode, lookup, output_format

from .convert import convert, from_codes, to_codes
from .floats import mma_float
from .integers import mma_integer

__all__ = ["FLAG_NAMES", "convert", "from_codes", "mma", "output", "to_codes"]

FLAG_NAMES = ("inexact", "sat_hit", "invalid", "overflow", "underflow")
"""Bits of an element's flags from bit 0; mxstatus holds them from bit 2."""

_DEFAULT = Config()


def output(ft: str | int, *, bovf: int = 0, acc: int = 0) -> Format:
    """Output format of operands `ft`. Raises ValueError where mxcfg's fields name none."""
    fmt = lookup(ft)
    mode = acc_mode(bovf, acc)
    out = None if mode is None else output_format(fmt, mode)
    if out is None:
        raise ValueError(f"{fmt.name} has no output for ACC = {acc}: use 0 or an ACC of its row")
    return out


def _saturates(fmt: Format, out: Format, bovf: int, acc: int, sat: int) -> bool:
    """Does SAT have an effect on this output?"""
    if not sat:
        return False
    if out.is_float:
        return out.bits <= 8
    return bool(acc) or not bovf


def _codes(name: str, codes: np.ndarray) -> np.ndarray:
    array = np.asarray(codes)
    if array.dtype.kind not in "iu":
        raise ValueError(f"{name} must hold integer codes, not {array.dtype}")
    if array.ndim != 2:
        raise ValueError(f"{name} must have two dimensions, not {array.ndim}")
    return array


def mma(
    ft: str | int,
    a: np.ndarray,
    b: np.ndarray,
    c: np.ndarray | None,
    *,
    bovf: int = 0,
    acc: int = 0,
    rnd: int = 0,
    sat: int = 0,
    alpha: int = 0,
    beta: int = 0,
    k: int | None = None,
    config: Config | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """D = round(C + A x B^T) of one mma, bit for bit.

    Parameters
    ----------
    ft : operand format, by name or Ft code.
    a, b, c : codes, (M, K), (N, K) and (M, N); `c` may be None with `beta`.
    bovf, acc, rnd, sat : fields of mxcfg.
    alpha : 1 flips the sign of every product.
    beta : 1 leaves C out.
    k : lanes that take part, from the first on; all by default.
    config : the core, for its exact_limit and windows; the default core if None.

    Returns d, unsigned codes in the output's container, and flags, bits as `FLAG_NAMES`; both are
    (M, N). Raises ValueError for arguments that do not fit each other.
    """
    fmt = lookup(ft)
    out = output(fmt.name, bovf=bovf, acc=acc)
    if rnd not in range(4):
        raise ValueError(f"rnd = {rnd} is undefined: use 0 to 3")
    a, b = _codes("a", a), _codes("b", b)
    lanes = a.shape[1] if k is None else k
    if not 1 <= lanes <= min(a.shape[1], b.shape[1]):
        raise ValueError(f"k = {lanes} does not fit a {a.shape} and b {b.shape}")
    a, b = a[:, :lanes], b[:, :lanes]
    if beta:
        c = None
    elif c is None:
        raise ValueError("c is missing: give it, or beta = 1")
    else:
        c = _codes("c", c)
        if c.shape != (a.shape[0], b.shape[0]):
            raise ValueError(f"c must be {(a.shape[0], b.shape[0])}, not {c.shape}")
    resolved = {"rnd": rnd, "sat": _saturates(fmt, out, bovf, acc, sat), "alpha": bool(alpha)}
    if fmt.is_float:
        return mma_float(fmt, out, a, b, c, config=config or _DEFAULT, **resolved)
    return mma_integer(fmt, out, a, b, c, **resolved)
