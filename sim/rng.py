"""The random numbers of the simulation: small enough to be written twice, in Python and in C++.

Both copies (this file and `sim/engines/harness.h`) give the same sequence for the same seed, so a
run takes the same cycles on every engine. Source: Steele, Lea, Flood, "Fast splittable
pseudorandom number generators" (splitmix64).
"""

from __future__ import annotations

__all__ = ["Rng", "Stall", "threshold"]

_MASK = (1 << 64) - 1
_GAMMA = 0x9E3779B97F4A7C15
_STREAM = 0xD1342543DE82EF95


def threshold(probability: float) -> int:
    """`probability` in units of 2**-16, never rounded down to a silent 0.

    Raises `ValueError` unless 0 <= probability < 1 and it is 0 or at least 2**-16.
    """
    if not 0 <= probability < 1:
        raise ValueError(f"a probability of {probability} is not possible: use 0 up to below 1")
    units = round(probability * 65536)
    if probability and not units:
        raise ValueError(f"a probability of {probability} rounds to never: use at least 2**-16")
    return min(units, 65535)


class Rng:
    """splitmix64: one of many independent streams of one seed.

    Parameters
    ----------
    seed, stream : any whole numbers; equal pairs give equal sequences.
    """

    __slots__ = ("state",)

    def __init__(self, seed: int, stream: int = 0):
        self.state = (seed + (stream + 1) * _STREAM) & _MASK
        self.state = self.next()

    def next(self) -> int:
        """The next 64 bits."""
        self.state = z = (self.state + _GAMMA) & _MASK
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
        return z ^ (z >> 31)

    def below(self, count: int) -> int:
        """A number from 0 to count - 1; count is at most 2**32."""
        return ((self.next() >> 32) * count) >> 32

    def chance(self, units: int) -> bool:
        """True with a probability of units / 2**16; draws nothing when units is 0."""
        return units != 0 and (self.next() >> 48) < units


class Stall:
    """A channel that pauses now and then, for 1 to `length` cycles in a row.

    Parameters
    ----------
    rng : the stream that decides; nothing is drawn from it when the probability is 0.
    probability : of a pause to start, in each cycle that asks.
    length : longest pause in cycles.
    """

    __slots__ = ("left", "length", "rng", "units")

    def __init__(self, rng: Rng, probability: float, length: int = 1):
        self.rng = rng
        self.units = threshold(probability)
        self.length = length
        self.left = 0

    def draw(self) -> bool:
        """Is the channel paused in the cycle that asks?"""
        if self.left:
            self.left -= 1
            return True
        if not self.rng.chance(self.units):
            return False
        if self.length > 1:
            self.left = self.rng.below(self.length)
        return True
