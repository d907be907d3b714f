"""Rounding decisions shared by integers and floats."""

from __future__ import annotations

from amaranth.hdl import Value

__all__ = ["DOWN", "NEAREST", "TO_ZERO", "UP", "round_integer", "round_magnitude"]

NEAREST, UP, DOWN, TO_ZERO = range(4)
"""RND codes (isa.md section 2)."""


def round_integer(rnd: Value, *, negative: Value, lsb: Value, guard: Value, rest: Value) -> Value:
    """Whether a truncated two's complement value must be raised by one.

    `guard` is the first dropped bit, `rest` whether any later one is set.
    """
    dropped = guard | rest
    return (
        ((rnd == NEAREST) & guard & (lsb | rest))
        | ((rnd == UP) & dropped)
        | ((rnd == TO_ZERO) & negative & dropped)
    )


def round_magnitude(rnd: Value, *, negative: Value, lsb: Value, guard: Value, rest: Value) -> Value:
    """Whether a truncated magnitude must be raised by one; `negative` is its sign."""
    dropped = guard | rest
    return (
        ((rnd == NEAREST) & guard & (lsb | rest))
        | ((rnd == UP) & ~negative & dropped)
        | ((rnd == DOWN) & negative & dropped)
    )
