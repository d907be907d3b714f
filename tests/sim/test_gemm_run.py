"""GEMM on a user's own memory image: in place, with permissions that come back."""

from __future__ import annotations

import numpy as np
import pytest

from hdl.formats import FORMATS
from sim.gemm import GemmProblem, Matrix, run_gemm
from sim.memory import Memory

SEED = 20240613
SIDE = 48
"""Rows and bytes of a row of the image that all matrices share."""


def problem(m: int = 18, n: int = 20, k: int = 9, **changes) -> GemmProblem:
    """Three windows of one image of bytes: A top left, B top right, C below A."""
    fields = {
        "fmt": FORMATS["int8"],
        "out": FORMATS["int8"],
        "bovf": 1,
        "trans": "nn",
        "a": Matrix("A", m, k, 8, 0x1000, SIDE),
        "b": Matrix("B", k, n, 8, 0x1000 + 20, SIDE),
        "c": Matrix("C", m, n, 8, 0x1000 + 20 * SIDE, SIDE),
        **changes,
    }
    return GemmProblem(**fields)


def image() -> tuple[Memory, np.ndarray]:
    memory = Memory()
    content = np.random.default_rng(SEED).integers(0, 256, (SIDE, SIDE), np.uint8)
    memory.add_region(0x1000, content.reshape(-1))
    return memory, content


@pytest.mark.parametrize("beta", [0, 1])
@pytest.mark.parametrize("alpha", [1, -1])
@pytest.mark.parametrize("tiling", ["auto", "1x1", "4x4"])
def test_windows_of_one_image(tiling: str, alpha: int, beta: int) -> None:
    memory, content = image()
    before = content.astype(np.int64)
    run = run_gemm(memory, problem(alpha=alpha, beta=beta), engine="model", tiling=tiling)
    expected = before.copy()
    a, b = before[:18, :9], before[:9, 20:40]
    expected[20:38, :20] = alpha * a @ b + beta * before[20:38, :20]
    assert np.array_equal(content, expected.astype(np.uint8))
    assert run.engine == "model" and run.plan.name in ("1x1", "2x2", "4x4", "4x2")


def test_permissions_come_back() -> None:
    memory, _ = image()
    memory.allow_write(0x1000, 7, on=False)
    before = memory.regions[0].perms.copy()
    run_gemm(memory, problem(), engine="model")
    assert np.array_equal(memory.regions[0].perms, before)
    with pytest.raises(ValueError):
        run_gemm(memory, problem(), engine="model", tiling="9x9")
    assert np.array_equal(memory.regions[0].perms, before)


def matrix(name: str, rows: int, columns: int, base: int, ld: int = SIDE, bits: int = 8) -> Matrix:
    return Matrix(name, rows, columns, bits, base, ld)


REFUSED = [
    ({"a": matrix("A", 18, 9, 0x1000, 8)}, "lda = 8 is below a row of A, 9 elements"),
    ({"b": matrix("B", 9, 20, 0x1000 + 20, 19)}, "ldb = 19 is below a row of B, 20 elements"),
    ({"c": matrix("C", 18, 20, 0x1000 + 960, 0)}, "ldc = 0 is below a row of C, 20 elements"),
    ({"c": matrix("C", 18, 20, 0x1000 + 17 * SIDE + 8)}, "C overlaps A in memory: give it bytes"),
    ({"c": matrix("C", 18, 20, 0x1000 + 1)}, "C overlaps A in memory"),
    ({"c": matrix("C", 18, 20, 0x1000 + 20)}, "C overlaps B in memory"),
    ({"b": matrix("B", 20, 9, 0x1000 + 20)}, "do not fit each other with trans = nn"),
    ({"trans": "tn"}, "do not fit each other with trans = tn"),
    ({"trans": "cc"}, "trans = 'cc' is unknown: use one of nn, nt, tn, tt"),
    ({"alpha": 2}, "alpha = 2 is not built: use 1 or -1"),
    ({"beta": -1}, "beta = -1 is not built: use 0 or 1"),
    ({"a": matrix("A", 18, 9, 0x9000)}, "A is not all in memory: no memory at 0x9000"),
    ({"c": matrix("C", 18, 20, 0x1000 + 40 * SIDE)}, "C is not all in memory"),
    ({"a": matrix("A", 18, 9, -1)}, "A does not fit in 40 address bits"),
    ({"a": matrix("A", 18, 9, 0x1000, bits=16)}, "A has elements of 16 bits, but int8 takes 8"),
    ({"a": matrix("A", -1, 9, 0x1000)}, "A is -1 x 9: sizes are 0 or more"),
]


@pytest.mark.parametrize(("changes", "message"), REFUSED, ids=lambda value: str(value)[:40])
def test_refusals_are_one_line_and_touch_nothing(changes: dict, message: str) -> None:
    memory, content = image()
    before = content.copy()
    with pytest.raises(ValueError) as caught:
        run_gemm(memory, problem(**changes), engine="model")
    assert message in str(caught.value) and "\n" not in str(caught.value)
    assert np.array_equal(content, before)


@pytest.mark.parametrize(("m", "n", "k"), [(0, 5, 5), (5, 0, 5), (5, 5, 0)])
@pytest.mark.parametrize("beta", [0, 1])
def test_sizes_of_zero(m: int, n: int, k: int, beta: int) -> None:
    memory, content = image()
    before = content.copy()
    run_gemm(memory, problem(m, n, k, beta=beta), engine="model")
    if not (k or beta):
        before[20 : 20 + m, :n] = 0
    assert np.array_equal(content, before)
