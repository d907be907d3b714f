"""The MAC array against the published vectors: results and flags of every row."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from mac_cases import HPC, build, modes, run_cases, saturates

from hdl.formats import FORMATS

VECTORS = Path(__file__).parents[2] / "data" / "mma_vectors.npz"


def check(array, names) -> int:
    """Check every vector of these operand formats; returns how many there are."""
    with np.load(VECTORS) as file:
        vectors = {name: file[name] for name in file.files if name != "flag_names"}
    count = 0
    for name in names:
        src = FORMATS[name]
        for bovf, acc, out in modes(src):
            chosen = (vectors["ft"] == src.code) & (vectors["bovf"] == bovf)
            chosen &= vectors["acc"] == acc
            v = {name: column[chosen] for name, column in vectors.items()}
            d, flags = run_cases(
                array, src, out, v["a"], v["b"], v["c"],
                k=v["k"], rnd=v["rnd"], alpha=v["alpha"], beta=v["beta"],
                sat=v["sat"] * saturates(out, bovf, acc, src),
            )  # fmt: skip
            wrong = np.nonzero((d != v["d"]) | (flags != v["flags"]))[0]
            where = {name: column[wrong[:1]].tolist() for name, column in v.items()}
            assert not len(wrong), f"{name} -> {out.name}: {len(wrong)} wrong, first {where}"
            count += len(d)
    return count


def test_profile_formats():
    assert check(build(*HPC), HPC) == 5520


@pytest.mark.slow
def test_every_format_in_one_array():
    assert check(build(*FORMATS), FORMATS) == 20400


@pytest.mark.slow
@pytest.mark.parametrize("name", FORMATS)
def test_every_format_alone(name):
    assert check(build(name), [name]) >= 240
