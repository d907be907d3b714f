"""Whole GEMM on the RTL, from and to L2 memory: exact at every edge, and near the roofline.

The memory model fails a run that reads outside the rows of A, B and C or writes outside C's.
"""

from __future__ import annotations

import numpy as np
import pytest
from gemm_cases import SEED, SIZES, Case, compiled

from hdl.config import Config, preset
from sim.gemm import gemm

INT8 = preset("ame32-int8")
SPLIT = INT8.replace(name="ame32-int8-split", accumulators="split")


def check(case: Case, engine: str, preset: str | Config) -> None:
    where = f"{case}, engine {engine}, preset {getattr(preset, 'name', preset)}"
    result = gemm(case.a, case.b, case.c, engine=engine, preset=preset, **case.options)
    assert np.array_equal(result.c, case.expected()), where
    assert result.bit_exact, where
    assert result.bound_cycles <= result.cycles, where


@pytest.mark.parametrize("cfg", [INT8, SPLIT, preset("tiny")], ids=lambda cfg: cfg.name)
def test_random_cases_on_a_compiled_engine(cfg: Config) -> None:
    engine = compiled()
    for index in range(60):
        check(Case(SEED + index, sizes=(*SIZES, 70, 100)), engine, cfg)


def test_random_cases_on_pysim() -> None:
    for index in range(3):
        check(Case(SEED + index, sizes=(1, 2, 15, 16, 17)), "pysim", "tiny")


FULL = np.full((128, 128), 3, np.int8)


@pytest.mark.parametrize(
    ("options", "cycles"),
    [
        # the operand that every tile of the other shares is read once for all four
        ({"tiling": "1x4"}, 10480),
        ({"tiling": "4x1"}, 10470),
        # half the reads of 2x2; refused for 16-bit results in one file
        ({"tiling": "4x4", "bovf": 1}, 8430),
        ({"tiling": "4x4"}, 8490),
        ({"tiling": "4x4", "preset": SPLIT}, 8690),
        ({"tiling": "2x2", "preset": SPLIT}, 8490),
        # two sets of C tiles: a block's stores and the next block's products overlap
        ({"tiling": "2x2", "preset": SPLIT, "acc": 1}, 8660),
        # int8 -> int16: one uop a cycle but for the first loads and the last stores
        ({}, 8500),
        ({"latency": 31}, 8510),
        ({"bovf": 1}, 8450),
        # twice the reads for each product
        ({"tiling": "1x1"}, 16650),
        # one set of C tiles: a block's stores leave before the next block's products
        ({"acc": 1}, 9960),
        # rows that miss the beats' borders: three reads where there were two
        ({"offsets": (3, 0, 0)}, 12600),
        # turned where they are, under the products of the step before; blocks of two macros
        ({"trans": "nn", "pack": False}, 9700),
        ({"trans": "tt", "pack": False}, 9850),
        ({"trans": "tn", "pack": False}, 12600),
        ({"trans": "nn", "pack": False, "preset": SPLIT}, 9750),
        ({"trans": "tt", "pack": False, "preset": SPLIT}, 9650),
        ({"trans": "tn", "pack": False, "preset": SPLIT}, 10850),
    ],
    ids=lambda value: (
        str({k: getattr(v, "name", v) for k, v in value.items()}) if isinstance(value, dict) else ""
    ),
)
def test_cycles_of_128_cubed(options: dict, cycles: int) -> None:
    """Cycles are exact and repeatable; the figure may fall, and the limit with it."""
    result = gemm(FULL, FULL, engine=compiled(), **{"preset": INT8} | options)
    assert result.bit_exact
    assert result.bound_cycles <= result.cycles <= cycles, f"{result.cycles} cycles"


@pytest.mark.parametrize(("cfg", "tiling"), [(INT8, "auto"), (SPLIT, "4x4")])
def test_tails_cost_little(cfg: Config, tiling: str) -> None:
    """Sizes that are no multiple of a tile against the same rounded up."""
    engine = compiled()
    for m, n, k in ((100, 100, 100), (20, 20, 20), (17, 33, 65)):
        rounded = [-(-size // 16) * 16 for size in (m, n, k)]
        cycles = []
        for sizes in ((m, n, k), rounded):
            a = np.ones((sizes[0], sizes[2]), np.int8)
            b = np.ones((sizes[2], sizes[1]), np.int8)
            lds = {"lda": rounded[2], "ldb": rounded[2], "ldc": rounded[1]}
            result = gemm(a, b, engine=engine, preset=cfg, tiling=tiling, **lds)
            assert result.bit_exact
            cycles.append(result.cycles)
        assert cycles[0] <= 1.1 * cycles[1], f"{m} x {n} x {k}: {cycles}"
