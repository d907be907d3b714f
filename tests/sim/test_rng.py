"""The random numbers that the Python and C++ models share."""

import pytest

from sim.rng import Rng, Stall, threshold


def test_splitmix64_known_sequence():
    # Published outputs of splitmix64 for seed 1234567.
    rng = Rng(0)
    rng.state = 1234567
    assert [rng.next() for _ in range(5)] == [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
        4593380528125082431,
        16408922859458223821,
    ]


def test_streams_and_seeds_differ_and_repeat():
    first = [Rng(s, c).next() for s in range(20) for c in range(13)]
    assert len(set(first)) == len(first)
    assert first == [Rng(s, c).next() for s in range(20) for c in range(13)]


def test_below_stays_below_and_reaches_all():
    rng = Rng(5)
    assert {rng.below(7) for _ in range(400)} == set(range(7))
    assert rng.below(1) == 0


@pytest.mark.parametrize("p", [0.001, 0.25, 0.9])
def test_chance_is_as_asked(p):
    rng = Rng(9)
    hits = sum(rng.chance(threshold(p)) for _ in range(20000)) / 20000
    assert abs(hits - p) < 0.015


def test_chance_zero_draws_nothing():
    rng = Rng(1)
    before = rng.state
    assert not rng.chance(0)
    assert not Stall(rng, 0.0, 9).draw()
    assert rng.state == before


@pytest.mark.parametrize("p", [-0.1, 1.0, 2, 1e-6])
def test_impossible_probability(p):
    with pytest.raises(ValueError, match="probability"):
        threshold(p)


def test_stall_lengths_cover_one_to_length():
    stall = Stall(Rng(3), 0.05, 6)
    runs, length = set(), 0
    for _ in range(20000):
        if stall.draw():
            length += 1
        elif length:
            runs.add(length)
            length = 0
    assert {1, 2, 3, 4, 5, 6} <= runs
