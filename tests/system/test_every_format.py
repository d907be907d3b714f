"""Every format pair through `sim.ops` and `sim.gemm` on the RTL, against the reference."""

from __future__ import annotations

import itertools
import os

import numpy as np
import pytest
from gemm_cases import compiled

from hdl.config import Config, preset
from hdl.describe import format_pairs
from sim.gemm import gemm
from sim.ops import mma

SEED = int(os.environ.get("TEST_SEED", "20240217"))
# The fields of mxcfg that choose a column of the output table.
SELECT = {
    "bovf": {"bovf": 1},
    "full": {},
    "wide": {"acc": 1},
    "tf32": {"acc": 2},
    "bf16": {"acc": 3},
}
SMALL = Config(name="formats", formats=("all",), m_par=1, n_par=1)
PAIRS = [
    pytest.param(
        cfg,
        pair,
        id=f"{cfg.name}-{pair.operand.name}-{pair.output.name}",
        marks=[pytest.mark.slow] if cfg is SMALL else [],
    )
    for cfg in (preset("ame32"), SMALL)
    for pair in format_pairs(cfg)
]


def codes(noise: np.random.Generator, fmt, shape: tuple[int, int]) -> np.ndarray:
    """Any codes of a format, specials among them."""
    values = noise.integers(0, 1 << 32, shape, dtype=np.uint64) << 32
    values |= noise.integers(0, 1 << 32, shape, dtype=np.uint64)
    dtype = np.dtype(f"u{max(8, fmt.container) // 8}")
    return (values & ((1 << fmt.bits) - 1)).astype(dtype)


@pytest.mark.parametrize(("cfg", "pair"), PAIRS)
def test_one_instruction(cfg: Config, pair) -> None:
    """All rounding modes, with and without SAT, C, alpha; ragged and whole tiles."""
    engine = compiled()
    noise = np.random.default_rng(SEED)
    for index, (rnd, sat, mode) in enumerate(itertools.product(range(4), range(2), pair.modes)):
        m, n, k = (
            (16, 16, pair.lanes) if index == 0 else noise.integers(1, (17, 17, pair.lanes + 1))
        )
        operands = codes(noise, pair.operand, (m, k)), codes(noise, pair.operand, (n, k))
        c = codes(noise, pair.output, (m, n))
        fields = {**SELECT[mode], "rnd": rnd, "sat": sat, "alpha": int(noise.integers(2))}
        beta = int(noise.integers(2))
        ft = pair.operand.name
        expected = mma(ft, *operands, c, beta=beta, preset=cfg, engine="model", **fields)
        found = mma(ft, *operands, c, beta=beta, preset=cfg, engine=engine, **fields)
        where = f"seed {SEED}, case {index}: {fields}, beta {beta}, {m} x {n} x {k}"
        assert np.array_equal(found.d, expected.d), where
        assert found.flags == expected.flags, where


@pytest.mark.parametrize(("cfg", "pair"), PAIRS)
def test_a_whole_product(cfg: Config, pair) -> None:
    """Two tiles and a tail in every direction, from float arrays and from codes."""
    engine = compiled()
    noise = np.random.default_rng(SEED)
    m, n, k = 35, 18, 2 * pair.lanes + 1
    for mode in pair.modes:
        options = {"ft": pair.operand.name, "preset": cfg, "engine": engine, **SELECT[mode]}
        floats = noise.normal(size=(m, k)), noise.normal(size=(k, n))
        for a, b in (
            floats,
            (codes(noise, pair.operand, (m, k)), codes(noise, pair.operand, (k, n))),
        ):
            result = gemm(a, b, rnd=int(noise.integers(4)), sat=int(noise.integers(2)), **options)
            assert result.bit_exact, f"seed {SEED}, {mode}"
