"""A GEMM that asks for 4x4, in every pair of formats, on the RTL: what the guard decides shows."""

from __future__ import annotations

import os

import numpy as np
import pytest
from gemm_cases import compiled

from hdl.config import Config
from hdl.describe import format_pairs
from hdl.formats import ACC_MODES
from sim.codes import random_codes
from sim.gemm import gemm

SEED = int(os.environ.get("TEST_SEED", "7"))
UNIFIED = Config(
    name="vector-small",
    m_par=2,
    n_par=1,
    slots=4,
    formats=("int4", "int8", "fp8_e4m3"),
    units=("vector",),
)
SPLIT = UNIFIED.replace(name="vector-split", accumulators="split")
PAIRS = format_pairs(UNIFIED)


def granted(out_bits: int, *, split: bool) -> bool:
    """isa.md section 2 for a kernel that keeps C in the lower half of one file, or in its own."""
    tiles = 16 * max(1, out_bits // 8)
    return out_bits <= 16 and tiles <= (32 if split else 16)


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: f"{pair.operand.name}-{pair.output.name}")
@pytest.mark.parametrize("cfg", [UNIFIED, SPLIT], ids=lambda cfg: cfg.name)
def test_every_pair_asks_for_4x4(cfg: Config, pair) -> None:
    rng = np.random.default_rng(SEED)
    mode = pair.modes[0]
    selected = {"bovf": 1} if mode == "bovf" else {"acc": ACC_MODES.index(mode) - 1}
    a = random_codes(rng, (64, 70), pair.operand)
    b = random_codes(rng, (70, 130), pair.operand)
    result = gemm(
        a, b, ft=pair.operand.name, tiling="4x4", preset=cfg, engine=compiled(), **selected
    )
    expected = granted(pair.output.container, split=cfg.split)
    assert result.bit_exact and result.out == pair.output
    assert result.flags["guard_fallback"] == (not expected)
    assert result.tiling == ("4x4" if expected else "2x2")
    uops = 64 // cfg.m_par * 130 * -(-70 // pair.lanes)
    assert uops <= result.cycles
