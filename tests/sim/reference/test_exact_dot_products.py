"""The golden numerics against exact sums, for every pair of formats and rounding mode.

The oracle is `naive_mma`, the cases are those of `dot_cases`. Every element's code and flags count,
and so does what the cases reached: a pair that never met a tie, say, fails.
"""

from __future__ import annotations

import os
import random
from collections import Counter

import numpy as np
import pytest
from dot_cases import make_group, styles
from dot_codes import PAIRS
from dot_kinds import group_kinds, kinds, required

from sim.reference.numerics import mma

SEED = int(os.environ.get("TEST_SEED", "20250102"))
SAMPLE_SIZE = 5
FULL_COUNT = 20_000
FULL_SIZES = (12, 160)
"""Elements of a group."""
ARRAY_SIZE = 160
"""Results that the reference surely rounds together."""
SOURCES = list(dict.fromkeys(pair.name for pair in PAIRS))


def check_group(pair, style, rnd, size, rng, reached) -> None:
    """One group against the oracle; counts the corners that it reached."""
    group = make_group(pair, style, rnd, size, rng)
    a, b, c = (np.array(x, np.uint64) for x in (group.a, [group.b], [[x] for x in group.c]))
    fields = group.fields | {"k": group.k}
    # Equal columns beside the one: from some size on the reference rounds whole arrays.
    copies = rng.choice((1, -(-ARRAY_SIZE // size)))
    b, c = np.repeat(b, copies, 0), np.repeat(c, copies, 1)
    if rng.random() < 0.5:
        d, flags = mma(pair.name, a, b, c, **fields)
    else:
        d, flags = (x.T for x in mma(pair.name, b, a, c.T, **fields))
    assert (d == d[:, :1]).all() and (flags == flags[:, :1]).all()
    for i, dot in enumerate(group.dots):
        got = int(d[i, 0]), int(flags[i, 0])
        assert got == (dot.code, dot.flags), (
            f"seed {SEED}: {pair} {style} {fields} a {[hex(x) for x in group.a[i]]} "
            f"b {[hex(x) for x in group.b]} c {group.c[i]:#x}: got {got[0]:#x} flags "
            f"{got[1]:05b}, expected {dot.code:#x} flags {dot.flags:05b}"
        )
        reached.update(kinds(dot, pair))
    reached.update(dict.fromkeys(group_kinds(group, pair), size))


def missing(need, reached) -> dict[str, tuple[int, int]]:
    return {kind: (reached[kind], n) for kind, n in need.items() if reached[kind] < n}


@pytest.mark.parametrize("name", SOURCES)
def test_sample_of_every_pair_and_mode(name):
    rng = random.Random(f"{SEED} {name}")
    reached, need = Counter(), {}
    for pair in PAIRS:
        if pair.name != name:
            continue
        for rnd in range(4):
            need |= required(pair, rnd)
            for style in styles(pair):
                check_group(pair, style, rnd, SAMPLE_SIZE, rng, reached)
    # The rare corners, and ties at each place, are for the full run.
    often = {kind: 1 for kind, count in need.items() if count > 10}
    assert not missing(often, reached), f"seed {SEED}: {name} did not reach these"


@pytest.mark.slow
@pytest.mark.parametrize("rnd", range(4))
@pytest.mark.parametrize("pair", PAIRS, ids=str)
def test_twenty_thousand_dot_products(pair, rnd):
    rng = random.Random(f"{SEED} {pair} {rnd}")
    reached, count = Counter(), 0
    while count < FULL_COUNT:
        for style in styles(pair):
            for size in FULL_SIZES:
                check_group(pair, style, rnd, size, rng, reached)
                count += size
            for _ in range(FULL_SIZES[1] // FULL_SIZES[0] - 1):
                check_group(pair, style, rnd, FULL_SIZES[0], rng, reached)
                count += FULL_SIZES[0]
    assert not missing(required(pair, rnd), reached), f"seed {SEED}: (times reached, needed)"
