"""Dot products aimed at the corners of rounding, with the oracle's answers."""

from __future__ import annotations

import random
from dataclasses import dataclass

from dot_codes import Pair, any_code, cluttered
from float_cases import FLOAT_STYLES, float_group
from naive_mma import Dot, naive_dot

from hdl.formats import Format, Kind, Specials

__all__ = ["Group", "make_group", "styles"]

INTEGER_STYLES = ("any", "wide", "extremes", "tie", "cancel", "small", "edge", "zeros")


@dataclass
class Group:
    """Elements that share one row of B and their fields."""

    style: str
    fields: dict[str, int]
    k: int
    a: list[list[int]]
    b: list[int]
    c: list[int]
    dots: list[Dot]


def integer_operand(fmt: Format, style: str, rng: random.Random) -> int:
    low, high = -(1 << fmt.bits - 1), (1 << fmt.bits - 1) - 1
    if style in ("extremes", "edge") and rng.random() < 0.8:
        return rng.choice((low, low, high, high, -1, 0, 1))
    if style == "small":
        return rng.randint(-3, 3)
    if style == "zeros" and rng.random() < 0.8:
        return 0
    value = rng.randint(low, high)
    return value >> rng.randrange(fmt.bits) if style == "wide" else value


def integer_tie(pair: Pair, row: list[int], b: list[int], place: int, rng: random.Random) -> None:
    """Make the products of fixed-point lanes whole places of the output, and a half in the first.

    `place`: the bit below which the output is cut off, split between the lane's two factors.
    """
    top = 1 << pair.src.bits - 2
    low = b[0].bit_length() - 1
    row[0] = rng.choice((1, -1, 3, rng.randrange(-top, top) | 1)) << max(0, place - 1 - low)
    if abs(row[0]) > top:
        row[0] = 1 << place - 1 - low
    for lane in range(1, len(row)):
        zeros = place - (b[lane] & -b[lane]).bit_length() + 1
        row[lane] = rng.randrange(-top, top) >> max(0, zeros) << max(0, zeros)


def integer_group(pair: Pair, style: str, k: int, fields: dict, size: int, rng) -> tuple:
    src, out = pair.src, pair.out
    low, high = -(1 << out.bits - 1), (1 << out.bits - 1) - 1
    one = 1 << 2 * src.frac - out.frac
    b = [integer_operand(src, style, rng) for _ in range(k)]
    place = one.bit_length() - 1
    if style == "tie" and place:
        b = [1 << rng.randrange(min(place, src.bits - 1)) for _ in range(k)]
    rows, c = [], []
    for _ in range(size):
        row = [integer_operand(src, style, rng) for _ in range(k)]
        if style == "tie" and place:
            integer_tie(pair, row, b, place, rng)
        if style == "cancel":
            for lane in range(1, k, 2):
                row[lane], b[lane] = -row[lane - 1], b[lane - 1]
        rows.append(row)
    for row in rows:
        total = sum(x * y for x, y in zip(row, b, strict=True)) * (-1) ** fields["alpha"]
        if style == "edge":
            addend = rng.choice((low, high)) - total // one + rng.randint(-2, 2)
        elif style == "cancel":
            addend = -(total // one) + rng.choice((0, 0, -1, 1))
        elif style == "small":
            addend = rng.randint(-3, 3)
        elif style == "zeros":
            addend = rng.choice((0, 0, low, high, -1))
        else:
            addend = rng.choice((low, high, rng.randint(low, high), rng.randint(-9, 9)))
        c.append(addend)
    mask = (1 << src.bits) - 1
    return [[x & mask for x in row] for row in rows], [x & mask for x in b], [
        x & (1 << out.bits) - 1 for x in c
    ]  # fmt: skip


def styles(pair: Pair) -> tuple[str, ...]:
    """What groups of a pair can aim at."""
    return FLOAT_STYLES if pair.src.kind is Kind.FLOAT else INTEGER_STYLES


def make_group(pair: Pair, style: str, rnd: int, size: int, rng: random.Random) -> Group:
    """`size` elements of a style, with what the oracle says of each."""
    lanes = pair.lanes
    k = rng.choice((1, min(3, lanes), lanes, lanes, rng.randint(1, lanes), 4 * lanes))
    if style == "edge" and pair.src.specials is Specials.E8M0:
        k = rng.randint(1, 3)  # no lane is zero: a few are an edge, many are not
    fields = {"bovf": pair.bovf, "acc": pair.acc, "rnd": rnd, "sat": rng.randrange(2)}
    fields |= {"alpha": rng.randrange(2), "beta": int(rng.random() < 0.2)}
    make = float_group if pair.src.kind is Kind.FLOAT else integer_group
    rows, b, c = make(pair, style, k, fields, size, rng)
    # Lanes beyond K and unused bits of containers hold anything.
    width = k if k >= lanes or rng.random() < 0.2 else rng.randint(k + 1, lanes)
    clutter = rng.random() < 0.5
    for row in (*rows, b):
        if clutter:
            row[:] = [cluttered(code, pair.src, rng) for code in row]
        row += [any_code(pair.src, rng) for _ in range(width - k)]
    if clutter:
        c = [cluttered(code, pair.out, rng) for code in c]
    dots = [
        naive_dot(pair.name, row[:k], b[:k], addend, **fields)
        for row, addend in zip(rows, c, strict=True)
    ]
    return Group(style, fields, k, rows, b, c, dots)
