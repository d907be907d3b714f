"""sim.ops.mma: one instruction, its options, flags and errors."""

from __future__ import annotations

import os
import random

import numpy as np
import pytest
from gemm_cases import OUTPUTS, compiled, product

from hdl.config import preset
from sim.ops import mma

SEED = int(os.environ.get("TEST_SEED", "777"))
FLAGS = [
    *("guard_fallback", "badgeom", "inexact", "sat_hit"),
    *("invalid", "overflow", "underflow", "bus_error"),
]


def codes(values: np.ndarray, bits: int) -> np.ndarray:
    return values & (1 << bits) - 1


def check(seed: int, engine: str, name: str) -> None:
    """One random instruction against plain integers; operands in every integer dtype."""
    draw, noise = random.Random(seed), np.random.default_rng(seed)
    m, n, k = (draw.choice((1, 2, 3, 7, 15, 16)) for _ in range(3))
    bits, sat = draw.choice(list(OUTPUTS)), draw.choice((0, 1))
    alpha, beta = draw.choice((0, 1)), draw.choice((0, 1))
    used = draw.randrange(1, k + 1)
    a, b = (noise.integers(-128, 128, shape) for shape in ((m, k), (n, k)))
    c = noise.integers(-(1 << bits - 1), 1 << bits - 1, (m, n))
    given_c = None if beta and draw.random() < 0.5 else codes(c, bits)
    dtype = draw.choice((np.uint8, np.int16, np.uint16, np.int64, np.uint64))
    result = mma(
        "int8",
        codes(a, 8).astype(dtype),
        codes(b, 8).astype(dtype),
        given_c,
        **OUTPUTS[bits],
        sat=sat,
        alpha=alpha,
        beta=beta,
        k=draw.choice((used, None)) if used == k else used,
        preset=name,
        engine=engine,
    )
    factor = -1 if alpha else 1
    base = None if beta else c
    pieces = a[:, :used], b[:, :used].T, base
    expected = product(*pieces, bits=bits, sat=sat, alpha=factor)
    exact = product(*pieces, bits=62, alpha=factor)
    where = f"seed {seed}, engine {engine}, preset {name}"
    assert result.d.dtype == np.dtype(f"u{bits // 8}") and result.d.shape == (m, n), where
    assert np.array_equal(result.d, codes(expected, bits)), where
    raised = {name for name, value in result.flags.items() if value}
    clamped = sat and bits > 8 and not np.array_equal(expected, exact)
    assert raised == ({"sat_hit"} if clamped else set()), where
    assert list(result.flags) == FLAGS, where
    assert (result.cycles > 0) == (engine != "model"), where


@pytest.mark.parametrize("name", ["ame32", "tiny"])
def test_random_instructions_on_the_model(name: str) -> None:
    for index in range(200):
        check(SEED + index, "model", name)


def test_random_instructions_on_pysim() -> None:
    for index in range(8):
        check(SEED + index, "pysim", "tiny")


@pytest.mark.parametrize("name", ["ame32", "tiny"])
def test_random_instructions_on_a_compiled_engine(name: str) -> None:
    engine = compiled()
    for index in range(100):
        check(SEED + index, engine, name)


def test_c_none_means_beta() -> None:
    ones = np.ones((4, 4), int)
    kept = mma("int8", ones, ones, np.full((4, 4), 100), engine="model")
    assert (kept.d == 104).all()
    assert (mma("int8", ones, ones, engine="model").d == 4).all()
    assert (mma("int8", ones, ones, np.full((4, 4), 100), beta=1, engine="model").d == 4).all()


def test_lanes_beyond_k_take_no_part() -> None:
    a = np.array([[1, 2, 0x80, 0xFF]])
    assert mma("int8", a, a, k=2, engine="model").d[0, 0] == 5


def test_format_by_code_and_by_name_of_a_config() -> None:
    ones = np.ones((2, 2), int)
    for ft in ("int8", "INT8", 0x10, "0x10", 0):
        assert (mma(ft, ones, ones, preset=preset("tiny"), engine="model").d == 2).all()


ONES = np.ones((2, 3), int)
WRONG = [
    ({"a": ONES * 1.0}, "a holds float64, expected integers: unsigned int8 codes, 0 to 0xff"),
    ({"b": ONES.astype(bool)}, "b holds bool, expected integers"),
    ({"a": ONES * 256}, "a holds 256, expected unsigned int8 codes, 0 to 0xff"),
    ({"a": -ONES}, "a holds -1, expected unsigned int8 codes"),
    ({"b": ONES[0]}, "b has 1 dimensions, expected 2"),
    ({"a": [[1, 2, 3], [1, 2]]}, "a is no array, expected"),
    ({"a": np.ones((17, 3), int)}, "a has shape (17, 3), expected"),
    ({"a": np.ones((2, 17), int)}, "1 to 16 rows of 1 to 16 elements"),
    ({"a": np.ones((0, 3), int)}, "a has shape (0, 3)"),
    ({"b": np.ones((2, 4), int)}, "b has shape (2, 4), expected"),
    ({"b": np.ones((17, 3), int)}, "b has shape (17, 3)"),
    ({"c": np.ones((3, 2), int)}, "c has shape (3, 2), expected unsigned int16 codes"),
    ({"c": np.ones((2, 2))}, "c holds float64"),
    ({"c": np.full((2, 2), 65536)}, "c holds 65536, expected unsigned int16 codes, 0 to 0xffff"),
    ({"c": np.full((2, 2), 256), "bovf": 1}, "c holds 256, expected unsigned int8 codes"),
    ({"ft": "int64"}, "ft = 'int64': ame32 does not build int64"),
    ({"ft": "int9"}, "unknown number format 'int9'"),
    ({"ft": 0x7F}, "Ft code 0x7f is reserved"),
    ({"bovf": 2}, "bovf = 2 is undefined: use 0 or 1"),
    ({"sat": "yes"}, "sat = 'yes' is undefined"),
    ({"rnd": 4}, "rnd = 4 is undefined"),
    ({"acc": 2}, "acc = 2 is undefined: use 0 or 1"),
    ({"alpha": -1}, "alpha = -1 is undefined"),
    ({"beta": None}, "beta = None is undefined"),
    ({"k": 4}, "k = 4, expected 1 to 3"),
    ({"k": 0}, "k = 0, expected 1 to 3"),
    ({"k": 1.5}, "k = 1.5, expected 1 to 3"),
    ({"preset": "ame33"}, "unknown preset 'ame33'"),
    ({"engine": "fpga"}, "unknown engine 'fpga'"),
]


@pytest.mark.parametrize(("changes", "message"), WRONG, ids=lambda value: str(value)[:30])
def test_wrong_arguments_are_named(changes: dict, message: str) -> None:
    arguments = {"ft": "int8", "a": ONES, "b": ONES, "engine": "model", **changes}
    with pytest.raises(ValueError) as caught:
        mma(**arguments)
    assert message in str(caught.value) and "\n" not in str(caught.value)
