"""Blocks of several elements with floats and integers mixed from uop to uop, on pysim."""

from __future__ import annotations

import os
import random

import numpy as np
import pytest
from mac_bench import Uop, run
from mac_cases import modes, saturates
from mac_random import random_codes

from hdl.config import Config
from hdl.mac.array import MacArray
from sim.reference.numerics import mma

SEED = int(os.environ.get("TEST_SEED", "20250919"))


def row_of(codes: np.ndarray, container: int) -> int:
    return sum(int(code) << (container * i) for i, code in enumerate(codes))


@pytest.mark.parametrize(
    ("formats", "m_par", "n_par", "row_bits"),
    [
        (("int8", "fp8_e4m3", "bf16"), 2, 1, 128),
        (("fp64", "int16"), 2, 2, 64),  # one column of 64-bit outputs a uop
    ],
)
def test_blocks(formats, m_par, n_par, row_bits):
    cfg = Config(
        formats=formats,
        m_par=m_par,
        n_par=n_par,
        row_bits=row_bits,
        bus_bits=64,
        line_bytes=32,
    )
    rng, numbers = random.Random(SEED), np.random.default_rng(SEED)
    uops, expected = [], []
    for _ in range(30):
        src = rng.choice(cfg.format_rows)
        bovf, acc, out = rng.choice(modes(src))
        columns = cfg.uop_columns(out.container)
        chunk = columns * out.container // 8
        a = random_codes(numbers, src, (m_par, cfg.lanes(src.container)))
        b = random_codes(numbers, src, (n_par, cfg.lanes(src.container)))
        word = random_codes(numbers, out, (m_par, cfg.lanes(out.container)))
        sat = rng.getrandbits(1)
        op = {
            "ft": cfg.format_rows.index(src),
            "out": cfg.output_formats.index(out),
            "k": rng.randint(1, cfg.lanes(src.container)),
            "negate": rng.getrandbits(1),
            "overwrite": rng.getrandbits(1),
            "sat": sat and saturates(out, bovf, acc, src),
            "rnd": rng.randrange(4),
            "a_unsigned": 0,
            "b_unsigned": 0,
            "rows": rng.getrandbits(m_par),
            "cols": rng.getrandbits(columns),
            "c_byte": chunk * rng.randrange(cfg.row_bytes // chunk),
        }
        first = op["c_byte"] * 8 // out.container
        d, flags = mma(
            src.name, a, b[:columns], word[:, first : first + columns], bovf=bovf, acc=acc,
            sat=sat, rnd=op["rnd"], alpha=op["negate"], beta=op["overwrite"], k=op["k"], config=cfg,
        )  # fmt: skip
        uops.append(
            Uop(
                op,
                [row_of(row, src.container) for row in a],
                [row_of(row, src.container) for row in b],
                [row_of(row, out.container) for row in word],
            )
        )
        expected.append((op, out, d, flags))
    for number, ((op, out, d, flags), (rows, got_flags)) in enumerate(
        zip(expected, run(MacArray(cfg), uops, rng, 0.2), strict=True)
    ):
        where = f"seed {SEED} uop {number} {op}"
        any_flags = 0
        for i in range(m_par):
            for j in range(d.shape[1]):
                if op["rows"] >> i & op["cols"] >> j & 1:
                    at = 8 * op["c_byte"] + j * out.container
                    assert rows[i] >> at & ((1 << out.container) - 1) == d[i, j], where
                    any_flags |= int(flags[i, j])
        assert got_flags == any_flags, where
