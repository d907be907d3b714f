"""The MAC array against the reference on random dot products, in every mode."""

from __future__ import annotations

import os
import random

import numpy as np
import pytest
from mac_cases import HPC, build, compare, modes
from mac_random import random_c, random_codes

from hdl.formats import FORMATS
from sim.reference.numerics import mma

SEED = int(os.environ.get("TEST_SEED", "20250919"))


def check(array, names, groups: int, seed: int = SEED) -> None:
    """`groups` random groups of dot products for each output of these operand formats."""
    rng = np.random.default_rng(seed)
    for name in names:
        src = FORMATS[name]
        lanes = array.cfg.lanes(src.container)
        for bovf, acc, out in modes(src):
            for _ in range(groups):
                a = random_codes(rng, src, (int(rng.integers(8, 40)), lanes))
                b = random_codes(rng, src, (1, lanes))
                if rng.random() < 0.3 and src.is_float and src.signed and lanes > 1:
                    cancel(src, a, b)
                fields = {
                    "k": int(rng.choice([1, lanes, rng.integers(1, lanes + 1)])),
                    "rnd": int(rng.integers(4)),
                    "alpha": int(rng.integers(2)),
                }
                d, _ = mma(name, a, b, None, beta=1, bovf=bovf, acc=acc, config=array.cfg, **fields)
                fields |= {"beta": int(rng.random() < 0.15), "sat": int(rng.integers(2))}
                c = random_c(rng, out, d[:, 0])
                try:
                    compare(array, src, (bovf, acc, out), a, b, c, **fields)
                except AssertionError as error:
                    raise AssertionError(f"seed {seed}: {error}") from None


def cancel(src, a: np.ndarray, b: np.ndarray) -> None:
    """Make neighbouring products cancel, in place."""
    sign = np.uint64(1) << np.uint64((src.container if src.top_aligned else src.bits) - 1)
    b[:, 1::2] = b[:, 0:-1:2]
    a[:, 1::2] = a[:, 0:-1:2] ^ sign


def test_profile_formats():
    check(build(*HPC), HPC, 4)


@pytest.mark.slow
def test_profile_formats_longer():
    check(build(*HPC), HPC, 80, SEED + 1)


@pytest.mark.slow
def test_every_format_in_one_array():
    check(build(*FORMATS), FORMATS, 20)


@pytest.mark.slow
@pytest.mark.parametrize("name", FORMATS)
def test_every_format_alone(name):
    """2,000 dot products and more for every pair."""
    check(build(name), [name], 90)


def test_two_windows_beside_narrow_integers():
    """Carries enter the tree at two places, one of them above all of an INT8 product."""
    names = ("int8", "fp32", "fp64")
    check(build(*names), names, 4)


def subset(number: int) -> tuple[str, ...]:
    """Two to five formats, the widths mixed."""
    rng = random.Random(f"{SEED} {number}")
    return tuple(rng.sample(tuple(FORMATS), rng.randint(2, 5)))


@pytest.mark.slow
@pytest.mark.parametrize("number", range(24))
def test_any_subset_of_formats(number):
    """Which formats share a slot decides its widths, places and pieces."""
    names = subset(number)
    check(build(*names), names, 12)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("names", "fields"),
    [
        (("fp16", "fp12_e5m6", "fp8_e5m2", "fp8_e4m3", "int16"), {"exact_limit": 48}),
        (("fp4_e2m1", "fp8_e4m3", "fp6_e2m3", "uf4_e2m2"), {"exact_limit": 1}),
        (("ue8m0", "bf16", "tf32"), {"exact_limit": 600}),
        (("fp16", "bf16", "int8", "fp8_e4m3", "fp32", "int16"), {"row_bits": 256}),
        (("fp64", "int64", "fp32"), {"row_bits": 64, "bus_bits": 64, "line_bytes": 32}),
        (("fp64", "q32_32", "int64", "int32", "q16_16"), {}),
        (("q4_3", "fp4_e2m1", "uf4_e1m3"), {}),
    ],
)
def test_other_shapes(names, fields):
    check(build(*names, **fields), names, 30)
