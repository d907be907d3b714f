"""Conversions against ml_dtypes: from float32, to nearest even.

`test_ml_dtypes_*` show where its answers are not ours, and why.
"""

from __future__ import annotations

import os

import ml_dtypes
import numpy as np
import pytest
from library_formats import hard_values

from hdl.formats import FORMATS
from sim.reference.numerics import convert, from_codes, to_codes

SEED = int(os.environ.get("TEST_SEED", "20250102"))
INEXACT, SAT_HIT = 1, 2
DOWN, TO_ZERO = 2, 3

TYPES = {
    "bf16": ml_dtypes.bfloat16,
    "fp4_e2m1": ml_dtypes.float4_e2m1fn,
    "fp6_e2m3": ml_dtypes.float6_e2m3fn,
    "fp6_e3m2": ml_dtypes.float6_e3m2fn,
    "fp8_e4m3": ml_dtypes.float8_e4m3fn,
    "fp8_e5m2": ml_dtypes.float8_e5m2,
    "ue8m0": ml_dtypes.float8_e8m0fnu,
}
"""Formats that it shares with us; FP16, FP32 and FP64 are numpy's own."""


def cast(values: np.ndarray, name: str) -> np.ndarray:
    """ml_dtypes' codes of values, every NaN as ours."""
    with np.errstate(all="ignore"):
        stored = np.asarray(values).astype(TYPES[name])
    codes = stored.view(f"u{stored.dtype.itemsize}")
    nan = np.isnan(stored.astype(np.float64))
    return np.where(nan, FORMATS[name].canonical_nan or 0, codes)


def float32_values(name: str, count: int) -> np.ndarray:
    rng = np.random.default_rng([SEED, *name.encode()])
    with np.errstate(over="ignore"):
        hard = hard_values(FORMATS[name], 256, rng).astype(np.float32)
        hard = np.concatenate([hard, np.nextafter(hard, np.float32(0))])
    bits = rng.integers(0, 1 << 32, count, np.uint64).astype(np.uint32)
    near = rng.normal(size=count).astype(np.float32)
    values = np.concatenate([hard, bits.view(np.float32), near])
    return values[~np.isnan(values)]


def judged(values: np.ndarray, name: str) -> np.ndarray:
    """Values that ml_dtypes rounds as numerics.md does; its E8M0 has its own rules."""
    if name != "ue8m0":
        return values
    values = values[np.isfinite(values) & (values >= np.float32(2.0**-126))]
    fraction, _ = np.frexp(values)
    return values[fraction != 0.75]


@pytest.mark.parametrize("name", TYPES)
def test_decode(name):
    fmt = FORMATS[name]
    codes = np.arange(1 << fmt.bits).astype(f"u{max(1, fmt.container // 8)}")
    with np.errstate(invalid="ignore"):
        theirs = codes.view(TYPES[name]).astype(np.float64)
    ours = from_codes(codes, name)
    assert np.array_equal(ours, theirs, equal_nan=True)
    assert (np.signbit(ours) == np.signbit(theirs))[~np.isnan(ours)].all()


def check_conversion(name: str, count: int) -> None:
    values = judged(float32_values(name, count), name)
    ours, theirs = to_codes(values, name, sat=0), cast(values, name)
    wrong = ours != theirs
    assert not wrong.any(), (SEED, name, values[wrong][:3], ours[wrong][:3], theirs[wrong][:3])


@pytest.mark.parametrize("name", TYPES)
def test_conversion_from_float32(name):
    check_conversion(name, 3000)


@pytest.mark.slow
@pytest.mark.parametrize("name", TYPES)
def test_conversion_from_float32_longer(name):
    check_conversion(name, 400_000)


@pytest.mark.parametrize(
    ("value", "name", "theirs", "ours"),
    [
        (1.0625 + 2.0**-40, "fp8_e4m3", 1.0, 1.125),
        (-431.99999999999994, "fp8_e4m3", -448.0, -416.0),
        (1 + 2.0**-8 + 2.0**-40, "bf16", 1.0, 1.0078125),
        (0.25 + 2.0**-40, "fp4_e2m1", 0.0, 0.5),
    ],
)
def test_ml_dtypes_rounds_float64_twice(value, name, theirs, ours):
    """It goes through float32, where these become ties; we round once from the exact value."""
    assert from_codes(cast(np.array([value]), name), name)[0] == theirs
    assert float(from_codes(to_codes(value, name), name)) == ours


def test_ml_dtypes_rounds_ties_of_e8m0_up():
    """3.0 lies halfway between 2 and 4: it gives 4, where numerics.md takes the even code, 2."""
    values = np.array([1.5, 3.0, 6.0, 12.0], np.float32)
    assert from_codes(cast(values, "ue8m0"), "ue8m0").tolist() == [2, 4, 8, 16]
    assert from_codes(to_codes(values, "ue8m0"), "ue8m0").tolist() == [2, 2, 8, 8]


def test_ml_dtypes_rounds_subnormal_float32_up_to_e8m0():
    """Between 2^-127 and 2^-126, subnormal in float32, it gives 2^-126 whatever is nearer."""
    values = np.array([1.01, 1.25, 1.49, 1.75], np.float32) * np.float32(2.0**-127)
    assert cast(values, "ue8m0").tolist() == [1, 1, 1, 1]
    assert to_codes(values, "ue8m0").tolist() == [0, 0, 0, 1]


def test_ml_dtypes_has_no_e8m0_of_zero_negatives_and_inf():
    """It gives NaN for them; numerics.md clamps to the smallest code, and saturates Inf."""
    values = np.array([0.0, -1.0, np.inf], np.float32)
    assert cast(values, "ue8m0").tolist() == [0xFF] * 3
    codes, flags = convert(values, "ue8m0")
    assert codes.tolist() == [0, 0, 0xFE]
    assert flags.tolist() == [SAT_HIT | INEXACT, SAT_HIT | INEXACT, SAT_HIT]


def test_ml_dtypes_makes_zeros_of_nan_without_nan():
    """FP4 and FP6 have no NaN: it gives -0, and we an error that names the element."""
    assert cast(np.array([np.nan], np.float32), "fp4_e2m1").tolist() == [8]
    assert cast(np.array([np.nan], np.float32), "fp6_e2m3").tolist() == [32]
    with pytest.raises(ValueError, match="element"):
        to_codes(np.array([np.nan]), "fp4_e2m1")


def test_ml_dtypes_cuts_int4():
    """A cast to an integer is C's: towards zero. So are our codes in that mode, in range."""
    values = np.array([1.5, -1.5, 7.9, -7.9, 0.5], np.float32)
    theirs = values.astype(ml_dtypes.int4).astype(np.int8)
    assert theirs.tolist() == [1, -1, 7, -7, 0]
    assert from_codes(to_codes(values, "int4", rnd=TO_ZERO), "int4").tolist() == theirs.tolist()
    assert from_codes(to_codes(values, "int4"), "int4").tolist() == [2, -2, 7, -8, 0]
