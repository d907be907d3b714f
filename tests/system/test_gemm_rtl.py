"""Whole GEMM on the RTL, from and to L2 memory: exact at every edge, and near the roofline.

The memory model fails a run that reads outside the rows of A, B and C or writes outside C's.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from gemm_cases import SEED, SIZES, Case, compiled

from sim.gemm import gemm


def check(case: Case, engine: str, preset: str) -> None:
    where = f"{case}, engine {engine}, preset {preset}"
    result = gemm(case.a, case.b, case.c, engine=engine, preset=preset, **case.options)
    assert np.array_equal(result.c, case.expected()), where
    assert result.bit_exact, where
    assert result.bound_cycles <= result.cycles, where


@pytest.mark.parametrize("preset", ["ame32", "tiny"])
def test_random_cases_on_a_compiled_engine(preset: str) -> None:
    engine = compiled()
    for index in range(60):
        check(Case(SEED + index), engine, preset)


def test_random_cases_on_pysim() -> None:
    for index in range(3):
        check(Case(SEED + index, sizes=(1, 2, 15, 16, 17)), "pysim", "tiny")


@pytest.mark.parametrize("m", SIZES)
def test_every_size(m: int) -> None:
    engine = compiled()
    for n, k in itertools.product(SIZES, SIZES):
        case = Case(SEED + 10_000 * m + 100 * n + k, shape=(m, n, k))
        check(case, engine, "ame32")


FULL = np.full((128, 128), 3, np.int8)


@pytest.mark.parametrize(
    ("options", "cycles"),
    [
        # int8 -> int16: one uop a cycle but for the first loads and the last stores
        ({}, 8500),
        ({"latency": 31}, 8510),
        ({"bovf": 1}, 8450),
        # twice the reads for each product
        ({"tiling": "1x1"}, 16650),
        # one set of C tiles: a block's stores leave before the next block's products
        ({"acc": 1}, 9950),
        # rows that miss the beats' borders: three reads where there were two
        ({"offsets": (3, 0, 0)}, 12600),
    ],
    ids=str,
)
def test_cycles_of_128_cubed(options: dict, cycles: int) -> None:
    """Cycles are exact and repeatable; the figure may fall, and the limit with it."""
    result = gemm(FULL, FULL, engine=compiled(), **options)
    assert result.bit_exact
    assert result.bound_cycles <= result.cycles <= cycles, f"{result.cycles} cycles"


def test_tails_cost_little() -> None:
    """Sizes that are no multiple of a tile against the same rounded up."""
    engine = compiled()
    for m, n, k in ((100, 100, 100), (17, 33, 65)):
        rounded = [-(-size // 16) * 16 for size in (m, n, k)]
        cycles = []
        for sizes in ((m, n, k), rounded):
            a = np.ones((sizes[0], sizes[2]), np.int8)
            b = np.ones((sizes[2], sizes[1]), np.int8)
            lds = {"lda": rounded[2], "ldb": rounded[2], "ldc": rounded[1]}
            cycles.append(gemm(a, b, engine=engine, **lds).cycles)
        assert cycles[0] <= 1.1 * cycles[1], f"{m} x {n} x {k}: {cycles}"
