"""Rounding modes, and the rounding of two's complement integers."""

from __future__ import annotations

from amaranth.hdl import Value

__all__ = ["DOWN", "NEAREST", "TO_ZERO", "UP", "round_integer"]

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
