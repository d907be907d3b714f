"""Covering samples: few cases in which every two values of different axes meet at least once."""

from __future__ import annotations

import random
from collections.abc import Hashable, Mapping, Sequence
from itertools import combinations

__all__ = ["pairs_of", "pairwise"]

Row = dict[str, Hashable]
Pair = tuple[tuple[str, Hashable], tuple[str, Hashable]]


def pairs_of(row: Mapping[str, Hashable]) -> set[Pair]:
    """All pairs of values that a case shows, each with its axis; axes in the case's order."""
    return set(combinations(row.items(), 2))


def pairwise(axes: Mapping[str, Sequence[Hashable]], seed: int) -> list[Row]:
    """Greedy: each case starts with a pair not yet seen and adds what shows most new pairs.

    Parameters
    ----------
    axes : name and values of each axis.
    seed : breaks ties.
    """
    draw = random.Random(seed)
    missing = [
        ((first, one), (second, two))
        for first, second in combinations(axes, 2)
        for one in axes[first]
        for two in axes[second]
    ]
    draw.shuffle(missing)
    left = dict.fromkeys(missing)  # a set with an order
    rows = []
    while left:
        row: Row = dict(next(iter(left)))
        for name in draw.sample(list(axes), len(axes)):
            if name in row:
                continue
            values = list(axes[name])
            draw.shuffle(values)
            row[name] = max(values, key=lambda value: _new(axes, row | {name: value}, name, left))
        rows.append({name: row[name] for name in axes})
        for pair in pairs_of(rows[-1]):
            left.pop(pair, None)
    return rows


def _new(axes: Mapping[str, Sequence[Hashable]], row: Row, name: str, left: dict) -> int:
    """Pairs of axis `name` with the others of the row that were not seen yet."""
    order = list(axes)
    here = order.index(name)
    count = 0
    for other, value in row.items():
        if other != name:
            ends = (other, value), (name, row[name])
            count += (ends if order.index(other) < here else ends[::-1]) in left
    return count
