"""Every pair of narrow operands, and every narrow code in and out."""

from __future__ import annotations

import numpy as np
import pytest
from mac_cases import build, compare, modes

from hdl.formats import FORMATS

NARROW = [name for name, fmt in FORMATS.items() if fmt.container <= 8]
ROW = {"row_bits": 64, "bus_bits": 64, "line_bytes": 32}


def every_pair(name: str, outputs, **fields) -> None:
    """All pairs of codes with K = 1, C left out."""
    src = FORMATS[name]
    array = build(name, **ROW)
    codes = np.arange(1 << src.bits, dtype=np.uint64)
    none = np.zeros(len(codes), np.uint64)
    for mode in outputs:
        for b in codes:
            row = np.array([[b]], np.uint64)
            compare(array, src, mode, codes[:, None], row, none, k=1, beta=1, **fields)


@pytest.mark.parametrize("name", ["fp4_e2m1", "uf4_e1m3"])
def test_every_pair_of_4_bits(name):
    every_pair(name, modes(FORMATS[name]), rnd=0, alpha=0)


@pytest.mark.slow
@pytest.mark.parametrize("name", NARROW)
def test_every_pair(name):
    every_pair(name, modes(FORMATS[name])[:2], rnd=0, alpha=0)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["fp8_e5m2", "ue8m0", "bf16", "fp16", "uf16_e8m8", "fp12_e4m7"])
@pytest.mark.parametrize("alpha", [0, 1])
def test_every_code_decoded_and_encoded(name, alpha):
    """Every code of A times one, and every code of C with products of zero."""
    src = FORMATS[name]
    array = build(name, **ROW)
    codes = np.arange(1 << src.bits, dtype=np.uint64)
    one = np.array([[src.bias << src.man]], np.uint64)
    none = np.zeros(len(codes), np.uint64)
    for mode in modes(src):
        for rnd in range(4):
            compare(array, src, mode, codes[:, None], one, none, k=1, beta=1, rnd=rnd, alpha=alpha)
    for mode in modes(src):
        if mode[2].bits <= 16:
            c = np.arange(1 << mode[2].bits, dtype=np.uint64)
            a = np.zeros((len(c), 1), np.uint64)
            compare(array, src, mode, a, one, c, k=1, beta=0, rnd=0, alpha=alpha)
