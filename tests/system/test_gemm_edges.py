"""GEMM on the RTL at every edge: sizes, leading dimensions, places, forms, formats, tilings.

Every case has guard bytes around and between the rows; the memory model fails a run that reads
outside the rows of A and B (and of C with beta = 1) or writes outside C's.
"""

from __future__ import annotations

from collections import Counter

import pytest
from gemm_cases import compiled
from gemm_edges import FT, SEED, SIZES, check, covering_cases, every_size

from hdl.config import preset
from sim.kernels import BLOCKS
from sim.kernels import gemm as kernel


@pytest.mark.parametrize("split", [False, True], ids=["unified", "split"])
def test_covering_sample(split: bool) -> None:
    engine, ran = compiled(), Counter()
    for case in covering_cases(SEED):
        if case["split"] == split:
            ran[check(case, engine)] += 1
    wanted = set(BLOCKS) - ({"4x4"} if not split else set())
    assert wanted <= set(ran), f"seed {SEED}: {ran}"


@pytest.mark.parametrize("what", ["no transpose", "no alpha", "K one short"])
def test_a_wrong_kernel_is_found(monkeypatch, what: str) -> None:
    """The checks can fail: kernels with one fault each."""
    writer = kernel._Writer
    if what == "no transpose":
        monkeypatch.setattr(writer, "turns", lambda self, feed: None)
    else:
        program = kernel.Program
        real = program.mmacc if what == "no alpha" else program.set_cfg

        def without_alpha(self, *tiles, beta=0, alpha=0, **others):
            return real(self, *tiles, beta=beta, alpha=0, **others)

        if what == "no alpha":
            monkeypatch.setattr(program, "mmacc", without_alpha)
        else:
            geometry = writer._geometry

            def short(self, **fields):
                if "tiling" in fields and fields["k"] > 1:
                    fields["k"] -= 1
                geometry(self, **fields)

            monkeypatch.setattr(writer, "_geometry", short)
    case = {
        **{"m": 17, "n": 33, "k": 15, "ft": "int8", "trans": "nn", "pack": False, "alpha": -1},
        **{"beta": 1, "lda": 1, "ldb": 7, "ldc": 0, "tiling": "2x2", "split": False},
        **{"offsets": (3, 60, 14), "seed": SEED},
    }
    with pytest.raises(AssertionError):
        check(case, "model")


@pytest.mark.slow
@pytest.mark.parametrize("m", SIZES)
@pytest.mark.parametrize("ft", FT)
def test_every_size(ft: str, m: int) -> None:
    """All N and K; the other axes pairwise, on cores of full width."""
    engine = compiled()
    unified = preset("ame32").replace(name="edges-wide", formats=FT)
    split = unified.replace(name="edges-wide-split", accumulators="split")
    for case in every_size(ft, SEED):
        if case["m"] == m:
            check(case, engine, unified=unified, split=split)
