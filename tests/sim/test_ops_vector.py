"""`sim.ops.vector`: on the model, on the RTL, and its errors."""

from __future__ import annotations

import numpy as np
import pytest

from hdl.config import Config, preset
from sim.ops import VECTOR_OPS, vector

CFG = Config(name="ops-vector", m_par=2, n_par=1, formats=("int4", "int8"), units=("vector",))
RELU = ([[5, 0xFB, 0x80]], [[0, 0, 0]])


@pytest.mark.parametrize("engine", ["model", "pysim"])
def test_known_results(engine):
    """By hand: a sum that saturates, a product of 16 bits, a maximum, an odd number of nibbles."""
    run = lambda *args, **fields: vector(*args, preset=CFG, engine=engine, **fields)  # noqa: E731
    got = run("mvaddx", "int8", [[100, 0x80]], [[0, 0]], [[100, 0xFF]], sat=1)
    assert got.d.tolist() == [[127, 0x80]] and got.flags["sat_hit"]
    got = run("mvmadd", "int8", [[0x80] * 16] * 16, [[0x80] * 16] * 16, [[1] * 16] * 16, wide=1)
    assert got.d.dtype == np.uint16 and (got.d == 0x4001).all()
    assert run("mvmax", "int8", *RELU).d.tolist() == [[5, 0, 0]]
    assert run("mvmul", "int4", [[3, 0xF, 2]], [[2, 2, 0xD]]).d.tolist() == [[6, 0xE, 0xA]]


@pytest.mark.parametrize(
    ("arguments", "fields", "message"),
    [
        (("mvdiv", "int8", *RELU), {}, "op = 'mvdiv' is undefined: use one of mvmadd, mvmul"),
        (("mvmul", "int8", *RELU), {"preset": preset("tiny")}, "tiny has no vector mode: use a"),
        (("mvmul", "fp16", *RELU), {}, "ft = 'fp16': ops-vector does not build fp16"),
        (("mvmul", "int8", RELU[0], [[0, 0]]), {}, "y has shape"),
        (("mvmul", "int8", [[1] * 17], [[1] * 17]), {}, "x has shape"),
        (("mvaddx", "int8", *RELU, [[256, 0, 0]]), {}, "z holds 256"),
        (("mvmul", "int8", *RELU), {"rnd": 4}, "rnd = 4 is undefined"),
        (("mvmul", "int8", *RELU), {"wide": 2}, "wide = 2 is undefined"),
    ],
)
def test_errors(arguments, fields, message):
    with pytest.raises(ValueError, match=r".*") as caught:
        vector(*arguments, **{"preset": CFG, "engine": "model", **fields})
    assert str(caught.value).startswith(message)


def test_every_operation_is_known():
    for op in VECTOR_OPS:
        assert vector(op, "int8", [[2]], [[3]], [[1]], preset=CFG, engine="model").d.shape == (1, 1)
