"""The adder tree against plain sums: terms of all widths, carries at several places."""

from __future__ import annotations

import os
import random

import pytest
from amaranth.sim import Simulator

from hdl.mac.tree import SumTree

SEED = int(os.environ.get("TEST_SEED", "20250919"))


def run(dut: SumTree, cases, inverted=()) -> list[int]:
    """The total of each case, one a cycle; `inverted`: whether the tree inverts it."""
    found = []

    async def bench(ctx):
        for number in range(len(cases) + dut.latency):
            terms, carries, place = cases[min(number, len(cases) - 1)]
            for i, term in enumerate(terms):
                ctx.set(getattr(dut, f"term{i}"), term)
            if dut.carries:
                ctx.set(dut.carry, carries)
                ctx.set(dut.place, place)
            if dut.inverts:
                at = number - (dut.latency - 1)
                ctx.set(dut.invert, 0 <= at < len(cases) and inverted[at])
            if number >= dut.latency:
                found.append(ctx.get(dut.total))
            await ctx.tick()

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    return found


def wrapped(value: int, bits: int) -> int:
    half = 1 << bits - 1
    return (value + half) % (1 << bits) - half


@pytest.mark.parametrize(
    ("widths", "carries", "places"),
    [
        ((5,), 0, (0,)),
        ((5, 9, 3), 0, (0,)),
        ((5, 5, 5, 5), 3, (0,)),
        ((9, 9, 9), 7, (0, 4)),
        ((4, 4, 20, 20), 2, (0, 12)),  # narrow terms meet a carry that enters above them
        ((4, 20, 4, 4, 4, 4, 20), 6, (3, 9, 15)),
        ((2,) * 7 + (18,), 7, (0, 16)),
    ],
)
def test_sum(widths, carries, places):
    rng = random.Random(SEED)
    sum_bits = max(widths) + 5
    dut = SumTree(widths, sum_bits, carries, places)
    cases, expected = [], []
    for _ in range(300):
        number = rng.randrange(len(places) + 1)  # the last: none of the places
        place = places[number] if number < len(places) else 0
        # Terms are zero below the place in use.
        terms = [rng.randrange(-(1 << width - 1), 1 << width - 1) for width in widths]
        if rng.random() < 0.2:
            terms = [rng.choice((-(1 << width - 1), -1, 0)) for width in widths]
        terms = [
            term >> place << place if width > place else 0
            for term, width in zip(terms, widths, strict=True)
        ]
        bits = rng.getrandbits(carries) if carries and number < len(places) else 0
        cases.append((terms, bits, 1 << number if number < len(places) else 0))
        expected.append(wrapped(sum(terms) + (bits.bit_count() << place), sum_bits))
    assert run(dut, cases) == expected, f"seed {SEED}"


@pytest.mark.parametrize("widths", [(6,), (6, 6, 3), (5,) * 8])
def test_inverted_sum(widths):
    rng = random.Random(SEED)
    dut = SumTree(widths, 9, inverts=True)
    cases = [
        ([rng.randrange(-(1 << width - 1), 1 << width - 1) for width in widths], 0, 0)
        for _ in range(100)
    ]
    inverted = [rng.getrandbits(1) for _ in cases]
    expected = [
        ~sum(terms) if invert else sum(terms)
        for (terms, _, _), invert in zip(cases, inverted, strict=True)
    ]
    assert run(dut, cases, inverted) == expected, f"seed {SEED}"
