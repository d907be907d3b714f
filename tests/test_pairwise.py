"""The sampler of covering cases."""

from __future__ import annotations

from itertools import combinations

import pytest
from gemm_edges import AXES, PLACES, SEED, SIZES, covering_cases, every_size
from pairwise import pairs_of, pairwise


def missing(axes, rows) -> int:
    seen = set().union(*(pairs_of(row) for row in rows)) if rows else set()
    return sum(
        ((first, one), (second, two)) not in seen
        for first, second in combinations(axes, 2)
        for one in axes[first]
        for two in axes[second]
    )


@pytest.mark.parametrize("seed", range(5))
def test_every_pair_is_there(seed: int) -> None:
    axes = {"a": (0, 1, 2), "b": (0, 1), "c": ("x", "y", "z", "w"), "d": (True, False)}
    rows = pairwise(axes, seed)
    assert missing(axes, rows) == 0
    assert missing(axes, rows[:-1]) > 0, "the last case shows something new"
    assert all(list(row) == list(axes) for row in rows)
    assert all(row[name] in axes[name] for row in rows for name in axes)
    assert len(rows) <= 20, "all of them would be 48"


def test_the_same_seed_gives_the_same_cases() -> None:
    assert covering_cases(3) == covering_cases(3) != covering_cases(4)


def test_the_sample_of_gemms_covers_its_axes() -> None:
    cases = covering_cases(SEED)
    rows = [{name: case[name] for name in AXES} for case in cases]
    assert missing(AXES, rows) == 0
    assert len(cases) < 200, "121 pairs of sizes need 121 cases"
    for which in range(3):
        assert {case["offsets"][which] for case in cases} == set(range(PLACES))


def test_the_whole_matrix_has_every_size_and_covers_the_rest() -> None:
    cases = every_size("bf16", SEED)
    assert len({(case["m"], case["n"], case["k"]) for case in cases}) == len(cases) == 11**3
    axes = {name: values for name, values in AXES.items() if name != "ft"}
    assert missing(axes, [{name: case[name] for name in axes} for case in cases]) == 0
    assert {case["m"] for case in cases} == set(SIZES)
