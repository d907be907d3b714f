"""Float multiply-accumulate: exact or windowed sums, C, specials, one rounding.

Source: numerics.md sections 1 and 4.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hdl.config import Config
from hdl.formats import Format

from .float_arrays import round_sums
from .float_codes import DOWN, INEXACT, INVALID, Parts, split
from .float_rounding import infinite_result, round_to_float, zero_result
from .float_sums import Sums, float_sums
from .integers import container_dtype

__all__ = ["mma_float"]

WORTH_ARRAYS = 128
"""Elements from which rounding them together is faster."""

TENSOR_LIMIT = 1 << 18
"""Products held at once by the paths that need them one by one."""


@dataclass
class _Specials:
    """Per result: NaN, invalid, and infinities among the products."""

    nan: np.ndarray
    invalid: np.ndarray
    plus: np.ndarray
    minus: np.ndarray


def _products_specials(a: Parts, b: Parts, alpha: bool) -> _Specials:
    nan = a.nan[:, None, :] | b.nan[None, :, :]
    inf = (a.inf[:, None, :] | b.inf[None, :, :]) & ~nan
    zero_times_inf = (a.inf[:, None, :] & b.zero[None, :, :]) | (
        a.zero[:, None, :] & b.inf[None, :, :]
    )
    inf = inf & ~zero_times_inf
    negative = a.sign[:, None, :] ^ b.sign[None, :, :] ^ alpha
    signalling = a.signalling[:, None, :] | b.signalling[None, :, :]
    return _Specials(
        (nan | zero_times_inf).any(axis=2),
        (zero_times_inf | signalling).any(axis=2),
        (inf & ~negative).any(axis=2),
        (inf & negative).any(axis=2),
    )


def _add_c(found: _Specials, c: Parts) -> None:
    found.nan |= c.nan
    found.invalid |= c.signalling
    found.plus |= c.inf & ~c.sign
    found.minus |= c.inf & c.sign


def _zero_sign(
    row: int, column: int, a: Parts, b: Parts, c: Parts | None, alpha: bool, rnd: int
) -> bool:
    """Sign of a result whose exact value is zero."""
    nonzero = (a.significand[row] != 0) & (b.significand[column] != 0)
    if not nonzero.any() and (c is None or not c.significand[row, column]):
        signs = {bool(sign) for sign in a.sign[row] ^ b.sign[column] ^ alpha}
        if c is not None:
            signs.add(bool(c.sign[row, column]))
        if len(signs) == 1:
            return signs.pop()
    return rnd == DOWN


def _find_specials(a: Parts, b: Parts, c: Parts | None, alpha: bool) -> _Specials:
    if any(part.any() for part in (a.nan, a.inf, b.nan, b.inf)):
        found = _products_specials(a, b, alpha)
    else:
        shape = (a.sign.shape[0], b.sign.shape[0])
        found = _Specials(*(np.zeros(shape, bool) for _ in range(4)))
    if c is not None:
        _add_c(found, c)
    found.invalid |= found.plus & found.minus
    found.nan |= found.plus & found.minus
    return found


def _one_result(
    place: tuple[int, int],
    sums: Sums,
    a: Parts,
    b: Parts,
    c: Parts | None,
    out: Format,
    rnd: int,
    sat: bool,
    alpha: bool,
) -> tuple[int, int]:
    """Code and flags of one finite element, in Python integers; the sums' signs are final."""
    total, unit = int(sums.values[place]), int(sums.units[place])
    if c is not None and c.significand[place]:
        addend = int(c.significand[place])
        if c.sign[place]:
            addend = -addend
        exponent = int(c.exponent[place]) - out.man
        low = min(unit, exponent) if total else exponent
        total = (total << unit - low if total else 0) + (addend << exponent - low)
        unit = low
    dropped = bool(sums.lost[place])
    if total:
        return round_to_float(total < 0, abs(total), unit, out, rnd, sat, dropped)
    code, flags = zero_result(_zero_sign(*place, a, b, c, alpha, rnd), out)
    return code, flags | (INEXACT if dropped else 0)


def _mma_rows(
    fmt: Format,
    out: Format,
    a: Parts,
    b: Parts,
    c: Parts | None,
    rnd: int,
    sat: bool,
    alpha: bool,
    config: Config,
    whole_arrays: bool,
) -> tuple[np.ndarray, np.ndarray]:
    """Codes and flags of some rows of the result."""
    sums = float_sums(a, b, fmt, config)
    if alpha:
        sums = Sums(-sums.values, sums.units, sums.lost)
    found = _find_specials(a, b, c, alpha)
    special = found.nan | found.plus | found.minus
    if whole_arrays:
        codes, flags, done = round_sums(sums, c, out, rnd, sat)
    else:
        shape = special.shape
        codes, flags = np.zeros(shape, container_dtype(out)), np.zeros(shape, np.uint8)
        done = np.zeros(shape, bool)
    for row, column in np.argwhere(~special & ~done):
        place = int(row), int(column)
        codes[place], flags[place] = _one_result(place, sums, a, b, c, out, rnd, sat, alpha)
    for where, sign in ((found.plus, False), (found.minus, True)):
        if where.any():
            codes[where], flags[where] = infinite_result(sign, out, sat)
    if found.nan.any():
        codes[found.nan] = out.canonical_nan
        flags[found.nan] = found.invalid[found.nan] * np.uint8(INVALID)
    return codes, flags


def mma_float(
    fmt: Format,
    out: Format,
    a: np.ndarray,
    b: np.ndarray,
    c: np.ndarray | None,
    *,
    rnd: int,
    sat: bool,
    alpha: bool,
    config: Config,
    whole_arrays: bool | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Codes and flags of round(C + A x B^T); `c` None takes no part.

    `sat` is already resolved for this output. `whole_arrays` says whether to round all elements
    together where possible, or each on its own: two ways to the same result, chosen by speed.
    """
    if whole_arrays is None:
        whole_arrays = a.shape[0] * b.shape[0] >= WORTH_ARRAYS
    parts_a, parts_b = split(a, fmt), split(b, fmt)
    parts_c = None if c is None else split(c, out)
    step = max(1, TENSOR_LIMIT // max(1, b.size))
    done = [
        _mma_rows(
            fmt,
            out,
            parts_a.rows(start, start + step),
            parts_b,
            None if parts_c is None else parts_c.rows(start, start + step),
            rnd,
            sat,
            alpha,
            config,
            whole_arrays,
        )
        for start in range(0, a.shape[0], step)
    ]
    return np.concatenate([codes for codes, _ in done]), np.concatenate([f for _, f in done])
