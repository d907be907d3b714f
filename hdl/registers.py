"""Registers that hold the same and yet stay apart, so that none drives a whole FPGA."""

from __future__ import annotations

from itertools import pairwise

from amaranth.hdl import Module, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from .share import target

__all__ = ["KeptRegister", "copies", "parts"]


class KeptRegister(wiring.Component):
    """A register that is to stay apart from others that hold the same.

    Synthesis makes one of them, so a platform that has a method `get_register` is asked for the
    module in place of this one: it gets the component, drives `q` and has the same latency.

    Parameters
    ----------
    bits : of it.

    Members
    -------
    d, q : `q` is `d` of the cycle before. It has no reset.
    """

    def __init__(self, bits: int):
        super().__init__({"d": In(bits), "q": Out(bits)})

    def elaborate(self, platform):
        get_register = getattr(target(platform), "get_register", None)
        if get_register is not None:
            return get_register(self)
        m = Module()
        value = Signal(len(self.d), reset_less=True)
        m.d.sync += value.eq(self.d)
        m.d.comb += self.q.eq(value)
        return m


def copies(m: Module, name: str, value: Value, count: int) -> list[Value]:
    """`count` registers of `value`, one for each part of a wide word that it decides on.

    Parameters
    ----------
    m, name : the module that gets them, and their common name there.
    value : any; what the registers hold is `value` of the cycle before, without a reset.
    count : how many.
    """
    found = []
    for number in range(count):
        m.submodules[f"{name}_copy{number}"] = register = KeptRegister(len(value))
        m.d.comb += register.d.eq(value)
        found.append(register.q)
    return found


def parts(word: Value, count: int) -> list[Value]:
    """The bits of `word` in `count` parts, about equally wide."""
    ends = [len(word) * number // count for number in range(count + 1)]
    return [word[start:end] for start, end in pairwise(ends)]
