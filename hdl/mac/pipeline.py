"""Delay lines: values that travel beside the data of a fixed-latency pipeline."""

from __future__ import annotations

from amaranth.hdl import Module, Signal, Value, ValueLike

__all__ = ["DelayLine", "register"]


def register(m: Module, name: str, value: ValueLike) -> Signal:
    """`value` one cycle later, in a payload register without reset."""
    value = Value.cast(value)
    reg = Signal(value.shape(), name=name, reset_less=True)
    m.d.sync += reg.eq(value)
    return reg


class DelayLine:
    """One value at every age that is asked for: `line[n]` is the value `n` cycles later.

    Registers are made on demand, so a value that nobody asks for late costs nothing.

    Parameters
    ----------
    m : module that holds the registers.
    name : prefix of their names.
    value : the value at age `first`.
    first : age of `value`, in cycles after the start of the pipeline.
    reset : also clear the registers on reset (valid bits); payload needs none.
    """

    def __init__(
        self, m: Module, name: str, value: ValueLike, *, first: int = 0, reset: bool = False
    ):
        self._m = m
        self._name = name
        self._first = first
        self._reset = reset
        self._taps = [Value.cast(value)]

    def __getitem__(self, age: int) -> Value:
        if age < self._first:
            raise ValueError(f"{self._name} is known from age {self._first} on, not at {age}")
        while len(self._taps) <= age - self._first:
            last = self._taps[-1]
            number = self._first + len(self._taps)
            tap = Signal(last.shape(), name=f"{self._name}_{number}", reset_less=not self._reset)
            self._m.d.sync += tap.eq(last)
            self._taps.append(tap)
        return self._taps[age - self._first]
