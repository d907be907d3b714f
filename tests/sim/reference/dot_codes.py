"""Pairs of formats, and codes chosen by exponent or by value."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from naive_mma import LISTED_WIDTH, at, default_window, floor_code, packed, top_code, unit_of

from hdl.formats import FORMATS, Format, Kind, Specials, acc_mode, output_format

__all__ = [
    "EXACT_LIMIT",
    "PAIRS",
    "ROW_BITS",
    "Pair",
    "any_code",
    "cluttered",
    "exact_code",
    "exponent_range",
    "float_code",
    "lead",
    "near_code",
    "trailing",
]

ROW_BITS = 128
EXACT_LIMIT = 96


@dataclass(frozen=True)
class Pair:
    """Operand format and the mxcfg fields that choose its output."""

    name: str
    bovf: int
    acc: int
    src: Format = field(init=False)
    out: Format = field(init=False)
    unit: int = field(init=False)

    def __post_init__(self):
        src = FORMATS[self.name]
        out = output_format(src, acc_mode(self.bovf, self.acc))
        for name, value in (("src", src), ("out", out), ("unit", unit_of(src, out))):
            object.__setattr__(self, name, value)

    def __str__(self):
        return f"{self.name}-{self.out.name}-bovf{self.bovf}-acc{self.acc}"

    @property
    def lanes(self) -> int:
        return ROW_BITS // self.src.container

    @property
    def window(self) -> int:
        """F where the default core cuts this pair's products, or 0."""
        if self.src.kind is not Kind.FLOAT or LISTED_WIDTH[self.name] <= EXACT_LIMIT:
            return 0
        return default_window(self.src)


PAIRS = [
    Pair(name, bovf, acc)
    for name, fmt in FORMATS.items()
    for bovf, acc in ((1, 0), (0, 0), (0, 1), (0, 2), (0, 3))
    if output_format(fmt, acc_mode(bovf, acc)) is not None
]


def lead(value: int) -> int:
    """Place of the highest 1 of a magnitude."""
    return abs(value).bit_length() - 1


def trailing(value: int) -> int:
    return (value & -value).bit_length() - 1


def exponent_range(fmt: Format) -> tuple[int, int]:
    """Exponents of a format's smallest and largest normal value."""
    return fmt.exp_min - fmt.bias, fmt.exp_max - fmt.bias


def cluttered(code: int, fmt: Format, rng: random.Random) -> int:
    """`code` with its container's unused bits set at random."""
    spare = fmt.container - fmt.bits
    return code | rng.getrandbits(spare) << (0 if fmt.top_aligned else fmt.bits) if spare else code


def any_code(fmt: Format, rng: random.Random) -> int:
    code = rng.getrandbits(fmt.bits)
    return code << fmt.container - fmt.bits if fmt.top_aligned else code


def float_code(negative: bool, exponent: int, mantissa: int, fmt: Format) -> int:
    """A finite code with this exponent, or the nearest that there is; below the normal ones, a
    subnormal of about that size."""
    low, high = exponent_range(fmt)
    negative = negative and fmt.signed
    if exponent < low and fmt.specials is not Specials.E8M0:
        return packed(((1 << fmt.man) + mantissa) >> min(low - exponent, 64), negative, fmt)
    field_bits = min(max(exponent, low), high) + fmt.bias
    return packed(min(field_bits << fmt.man | mantissa, top_code(fmt)), negative, fmt)


def exact_code(value: int, fmt: Format, unit: int) -> int | None:
    """The code of this value, or None where there is none."""
    if value == 0:
        return None if fmt.specials is Specials.E8M0 else 0
    if value < 0 and not fmt.signed:
        return None
    code = floor_code(abs(value), fmt, unit)
    if not 0 <= code <= top_code(fmt) or at(code, fmt, unit) != abs(value):
        return None
    return packed(code, value < 0, fmt)


def near_code(value: int, fmt: Format, unit: int, up: int) -> int:
    """The finite code next to this value: away from zero if `up`."""
    code = floor_code(abs(value), fmt, unit) + up if value else 0
    return packed(min(max(code, 0), top_code(fmt)), value < 0 and fmt.signed, fmt)
