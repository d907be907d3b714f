"""Float codes, exact sums of float products and their one rounding (numerics.md sections 1, 3, 4).

Sums are exact integers times a power of two; numpy does them for whole arrays where 64 bits hold
them and Python integers do elsewhere. The final rounding is done element by element.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from hdl.config import Config
from hdl.formats import Format, Specials

from .integers import container_dtype

__all__ = [
    "INEXACT",
    "INVALID",
    "OVERFLOW",
    "SAT_HIT",
    "UNDERFLOW",
    "Parts",
    "is_exact",
    "max_finite",
    "mma_float",
    "round_to_float",
    "split",
    "window_bits",
]

INEXACT, SAT_HIT, INVALID, OVERFLOW, UNDERFLOW = (1 << bit for bit in range(5))
"""Bits of an element's flags, mxstatus[6:2]."""

NEAREST, UP, DOWN, TO_ZERO = range(4)

EXACT_WIDTH = {
    **{"fp4_e2m1": 14, "fp4_e1m2": 12, "uf4_e2m2": 16, "uf4_e1m3": 14},
    **{"fp6_e2m3": 17, "fp6_e3m2": 23, "fp6_e4m1": 37, "uf6_e4m2": 39},
    **{"fp8_e4m3": 41, "fp8_e5m2": 69, "fp12_e4m7": 48, "fp12_e5m6": 76, "fp16": 84},
    **{"ue8m0": 514, "bf16": 526, "uf16_e8m8": 528, "tf32": 531, "fp32": 557, "fp64": 4198},
}
"""Listed width of an exact sum, sign included; at most `Config.exact_limit` makes the class."""

DEFAULT_WINDOW = {"fp32": 64, "fp64": 106}
OTHER_WINDOW = 32

SIGNALLING = frozenset({"fp16", "bf16", "tf32", "fp32", "fp64"})
"""Formats whose NaNs with a clear top mantissa bit signal."""

TENSOR_LIMIT = 1 << 18
"""Products held at once by the paths that need them one by one."""


def is_exact(fmt: Format, config: Config) -> bool:
    """Does `fmt` sum its products exactly?"""
    return EXACT_WIDTH[fmt.name] <= config.exact_limit


def window_bits(fmt: Format, config: Config) -> int:
    """F of a windowed format."""
    return config.window.get(fmt.name, DEFAULT_WINDOW.get(fmt.name, OTHER_WINDOW))


# -- codes -----------------------------------------------------------------------------------


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

    def columns(self, count: int) -> Parts:
        """The first `count` columns."""
        return Parts(*(value[:, :count] for value in vars(self).values()))

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


def _place(code: int, sign: bool, fmt: Format) -> int:
    """A magnitude's code with its sign, where the container has it."""
    code |= int(sign) << fmt.bits - 1
    return code << fmt.container - fmt.bits if fmt.top_aligned else code


def infinite_result(sign: bool, fmt: Format, sat: bool) -> tuple[int, int]:
    """Code and flags of an Inf that wins. `sat` is already resolved for this format."""
    if fmt.specials is Specials.E8M0:
        if sign:
            return 0, SAT_HIT
        return (max_finite(fmt), SAT_HIT) if sat else (fmt.canonical_nan, 0)
    if sign and not fmt.signed:
        return 0, SAT_HIT
    if sat:
        return _place(max_finite(fmt), sign, fmt), SAT_HIT
    if fmt.specials is Specials.IEEE:
        return _place(infinity(fmt), sign, fmt), 0
    if fmt.canonical_nan is not None:
        return fmt.canonical_nan, 0
    return _place(max_finite(fmt), sign, fmt), SAT_HIT


def zero_result(sign: bool, fmt: Format) -> tuple[int, int]:
    """Code and flags of an exact zero."""
    if fmt.specials is Specials.E8M0:
        return 0, SAT_HIT | INEXACT
    return _place(0, sign and fmt.signed, fmt), 0


def _round(magnitude: int, shift: int, sign: bool, rnd: int) -> tuple[int, bool]:
    """`magnitude` / 2^shift as a whole number in mode RND, and whether a 1 was dropped."""
    if shift <= 0:
        return magnitude << -shift, False
    whole = magnitude >> shift
    rest = magnitude - (whole << shift)
    if not rest:
        return whole, False
    if rnd == NEAREST:
        half = 1 << shift - 1
        up = rest > half or (rest == half and whole & 1)
    else:
        up = rnd == (DOWN if sign else UP)
    return whole + bool(up), True


def _round_to_power(magnitude: int, exponent: int, rnd: int, sat: bool) -> tuple[int, int]:
    """Positive magnitude * 2^exponent into UE8M0: linear between neighbouring powers of two."""
    power = magnitude.bit_length() - 1 + exponent
    code = power + 127
    rest = magnitude - (1 << magnitude.bit_length() - 1)
    flags = 0
    if rest:
        flags = INEXACT
        half = 1 << magnitude.bit_length() - 1 >> 1
        if rnd == NEAREST:
            code += 2 * rest > 2 * half or (rest == half and code & 1)
        else:
            code += rnd == UP
    if code > 254:
        flags |= OVERFLOW | INEXACT
        if sat:
            return 254, flags | SAT_HIT
        return (254 if rnd in (DOWN, TO_ZERO) else 255), flags
    if code < 0:
        return 0, flags | SAT_HIT | INEXACT
    return code, flags


def round_to_float(
    sign: bool, magnitude: int, exponent: int, fmt: Format, rnd: int, sat: bool, dropped: bool
) -> tuple[int, int]:
    """Code and flags of the nonzero value (-1)^sign * magnitude * 2^exponent.

    `sat` is already resolved for this format; `dropped`: bits were lost on the way here.
    """
    flags = INEXACT if dropped else 0
    if sign and not fmt.signed:
        return 0, SAT_HIT | INEXACT
    if fmt.specials is Specials.E8M0:
        code, more = _round_to_power(magnitude, exponent, rnd, sat)
        return code, flags | more
    lead = magnitude.bit_length() - 1 + exponent
    smallest = 1 - fmt.bias
    quantum = max(lead, smallest) - fmt.man
    whole, inexact = _round(magnitude, quantum - exponent, sign, rnd)
    if inexact:
        flags |= INEXACT
    # The exponent field is 0 for whole < 2^man; a carry out of the mantissa moves into it.
    code = (quantum + fmt.man - smallest << fmt.man) + whole
    if code > max_finite(fmt):
        flags |= OVERFLOW | INEXACT
        if sat:
            return _place(max_finite(fmt), sign, fmt), flags | SAT_HIT
        if rnd in (NEAREST, DOWN if sign else UP):
            if fmt.specials is Specials.IEEE:
                return _place(infinity(fmt), sign, fmt), flags
            if fmt.canonical_nan is not None:
                return fmt.canonical_nan, flags
        return _place(max_finite(fmt), sign, fmt), flags
    if lead < smallest and flags & INEXACT:
        unbounded, _ = _round(magnitude, lead - fmt.man - exponent, sign, rnd)
        if unbounded.bit_length() - 1 + lead - fmt.man < smallest:
            flags |= UNDERFLOW
    return _place(code, sign, fmt), flags


# -- sums ------------------------------------------------------------------------------------


def _exact_sums(a: Parts, b: Parts, fmt: Format) -> tuple[np.ndarray, int]:
    """Exact sums of products as whole numbers, and the exponent of their unit."""
    base = min_exponent(fmt)
    narrow = EXACT_WIDTH[fmt.name] + a.sign.shape[1].bit_length() <= 62

    def whole(parts: Parts) -> np.ndarray:
        significand, shift = parts.significand, parts.exponent - base
        if not narrow:
            significand, shift = significand.astype(object), shift.astype(object)
        return np.where(parts.sign, -significand, significand) << shift

    return whole(a) @ whole(b).T, 2 * (base - fmt.man)


def _windowed_sums(
    a: Parts, b: Parts, fmt: Format, window: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Windowed sums as whole numbers, the exponents of their units, and where bits were lost."""
    lanes = a.sign.shape[1]
    wide = window + 2 + lanes.bit_length() > 62 or 2 * (fmt.man + 1) > 62
    sig_a, sig_b = a.significand, b.significand
    if wide:
        sig_a, sig_b = sig_a.astype(object), sig_b.astype(object)
    product = sig_a[:, None, :] * sig_b[None, :, :]
    exponent = a.exponent[:, None, :] + b.exponent[None, :, :]
    nonzero = product != 0
    lowest = 2 * min_exponent(fmt)
    largest = np.where(nonzero, exponent, lowest).max(axis=2)
    left = window - 2 * fmt.man - (largest[:, :, None] - exponent)
    left = np.where(nonzero, left, 0)
    up, down = np.maximum(left, 0), np.maximum(-left, 0)
    if wide:
        up, down = up.astype(object), down.astype(object)
    else:
        down = np.minimum(down, 63)
    kept = (product << up) >> down
    lost = ((kept << down) >> up) != product
    negative = a.sign[:, None, :] ^ b.sign[None, :, :]
    sums = np.where(negative, -kept, kept).sum(axis=2)
    return sums, largest - window, lost.astype(bool).any(axis=2)


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
) -> tuple[np.ndarray, np.ndarray]:
    """Codes and flags of some rows of the result."""
    shape = (a.sign.shape[0], b.sign.shape[0])
    if is_exact(fmt, config):
        sums, unit = _exact_sums(a, b, fmt)
        units, lost = np.full(shape, unit), np.zeros(shape, bool)
    else:
        sums, units, lost = _windowed_sums(a, b, fmt, window_bits(fmt, config))
        units = units.astype(np.int64)
    if any(part.any() for part in (a.nan, a.inf, b.nan, b.inf)):
        found = _products_specials(a, b, alpha)
    else:
        found = _Specials(*(np.zeros(shape, bool) for _ in range(4)))
    if c is not None:
        _add_c(found, c)
    found.invalid |= found.plus & found.minus
    found.nan |= found.plus & found.minus
    codes = np.zeros(shape, container_dtype(out))
    flags = np.zeros(shape, np.uint8)
    special = found.nan | found.plus | found.minus
    codes[found.nan] = 0 if out.canonical_nan is None else out.canonical_nan
    flags[found.nan & found.invalid] = INVALID
    for row, column in np.argwhere(special & ~found.nan):
        codes[row, column], flags[row, column] = infinite_result(
            bool(found.minus[row, column]), out, sat
        )
    for row, column in np.argwhere(~special):
        total, unit = int(sums[row, column]), int(units[row, column])
        if alpha:
            total = -total
        if c is not None and c.significand[row, column]:
            addend = int(c.significand[row, column])
            if c.sign[row, column]:
                addend = -addend
            exponent = int(c.exponent[row, column]) - out.man
            low = min(unit, exponent) if total else exponent
            total = (total << unit - low if total else 0) + (addend << exponent - low)
            unit = low
        dropped = bool(lost[row, column])
        if total:
            code, flag = round_to_float(total < 0, abs(total), unit, out, rnd, sat, dropped)
        else:
            code, flag = zero_result(_zero_sign(row, column, a, b, c, alpha, rnd), out)
            flag |= INEXACT if dropped else 0
        codes[row, column], flags[row, column] = code, flag
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
) -> tuple[np.ndarray, np.ndarray]:
    """Codes and flags of round(C + A x B^T); `c` None takes no part.

    `sat` is already resolved for this output.
    """
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
        )
        for start in range(0, a.shape[0], step)
    ]
    return np.concatenate([codes for codes, _ in done]), np.concatenate([f for _, f in done])
