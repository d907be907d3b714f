"""Our formats as the libraries of others describe them, and values that are hard to round."""

from __future__ import annotations

import numpy as np
from gfloat import Domain, FormatInfo, decode_ndarray
from gfloat import formats as ocp

from hdl.formats import FORMATS, Format, Kind, Specials

__all__ = ["GFLOAT_FORMATS", "gfloat_codes", "gfloat_info", "hard_values"]

PUBLISHED = {
    "fp4_e2m1": ocp.format_info_ocp_e2m1,
    "fp6_e3m2": ocp.format_info_ocp_e3m2,
    "fp6_e2m3": ocp.format_info_ocp_e2m3,
    "fp8_e4m3": ocp.format_info_ocp_e4m3,
    "fp8_e5m2": ocp.format_info_ocp_e5m2,
    "ue8m0": ocp.format_info_ocp_e8m0,
    "fp16": ocp.format_info_binary16,
    "bf16": ocp.format_info_bfloat16,
    "fp32": ocp.format_info_binary32,
    "fp64": ocp.format_info_binary64,
}
"""Formats that gfloat itself describes; the others are put together from its parameters."""

GFLOAT_FORMATS = [name for name in FORMATS if name not in ("int64", "q32_32")]
"""gfloat holds values as float64, which is too narrow for 64-bit integers and fixed point."""


def described(fmt: Format) -> FormatInfo:
    if fmt.kind is not Kind.FLOAT:
        # All subnormal: the significand counts units of 2^-frac.
        return FormatInfo(
            fmt.name, fmt.bits, fmt.bits, bias=2 - fmt.bits + fmt.frac, is_signed=True,
            domain=Domain.Finite, has_nz=False, num_high_nans=0, has_subnormals=True,
            is_twos_complement=True,
        )  # fmt: skip
    nans = {Specials.NONE: 0, Specials.IEEE: (1 << fmt.man) - 1}
    return FormatInfo(
        fmt.name, fmt.bits, fmt.man + 1, bias=fmt.bias, is_signed=fmt.signed,
        domain=Domain.Extended if fmt.specials is Specials.IEEE else Domain.Finite,
        has_nz=fmt.signed, num_high_nans=nans.get(fmt.specials, 1),
        has_subnormals=fmt.specials is not Specials.E8M0, is_twos_complement=False,
    )  # fmt: skip


def gfloat_info(fmt: Format) -> FormatInfo:
    """gfloat's own description of a format, ours where it has none."""
    return PUBLISHED.get(fmt.name, described(fmt))


def gfloat_codes(fmt: Format, count: int, rng: np.random.Generator) -> np.ndarray:
    """All codes of a format if `count` allows, else the edges and a sample; in its low bits."""
    if 1 << fmt.bits <= count:
        return np.arange(1 << fmt.bits, dtype=np.uint64)
    step = (1 << fmt.bits) // count
    codes = [(i * step + int(rng.integers(step))) for i in range(count)]
    places = [0, 1 << fmt.bits - 1]
    places += [(1 << fmt.exp) - 1 << fmt.man, 1 << fmt.man] if fmt.is_float else []
    edges = [place + step for place in places for step in range(-2, 3)]
    return np.array([code % (1 << fmt.bits) for code in codes + edges], np.uint64)


def hard_values(fmt: Format, count: int, rng: np.random.Generator) -> np.ndarray:
    """Codes' values, the ties between neighbours, a hair to either side of both, and what lies
    beyond the format, as float64."""
    info = gfloat_info(fmt)
    top = info.code_of_max
    codes = gfloat_codes(fmt, count, rng)
    codes = np.unique(codes[codes <= top])
    values = decode_ndarray(info, codes)
    above = decode_ndarray(info, np.minimum(codes + np.uint64(1), np.uint64(top)))
    with np.errstate(over="ignore"):
        beyond = info.max + (values.max() - np.sort(values)[-2]) * np.array([0.25, 0.5, 1, 2, 9])
        middle = values / 2 + above / 2
        random = rng.normal(size=count) * info.max * 2.0 ** -rng.integers(0, 60, count)
        values = np.concatenate([values, middle, beyond, random, [1e300, np.inf]])
        values = np.concatenate([values, np.nextafter(values, 0), np.nextafter(values, np.inf)])
    return np.concatenate([values, -values])
