"""Pipelined balanced adder tree."""

from __future__ import annotations

from collections.abc import Sequence

from amaranth.hdl import Cat, Const, Module, Signal, Value, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from .pipeline import DelayLine

__all__ = ["SumTree"]


class SumTree(wiring.Component):
    """Exact sum of signed terms, with a register behind every adder.

    (Adders without registers between them would be merged by synthesis into wide compressors,
    which cost an FPGA more than its carry chains.)

    Parameters
    ----------
    widths : width of each term.
    sum_bits : width of the sum; a narrower one than the terms need is the sum modulo 2^sum_bits.
    carries : single bits to be added at weight 1, in the carry-ins of the adders.

    Members
    -------
    term0, term1, ... : terms.
    carry : the single bits, if any.
    total : the sum, registered.

    Latency: `latency` cycles, one for every adder level. Throughput: one sum a cycle.
    Source: architecture.md section 1.
    """

    def __init__(self, widths: Sequence[int], sum_bits: int, carries: int = 0):
        self.widths = tuple(widths)
        self.sum_bits = sum_bits
        self.carries = carries
        self.latency = self.latency_of(len(self.widths), carries)
        members = {f"term{i}": In(signed(width)) for i, width in enumerate(self.widths)}
        if carries:
            members["carry"] = In(carries)
        super().__init__({**members, "total": Out(signed(sum_bits))})

    @staticmethod
    def latency_of(terms: int, carries: int = 0) -> int:
        """Cycles that a sum of `terms` terms takes."""
        spare = max(0, carries - (terms - 1))
        return max(1, (terms + spare - 1).bit_length())

    def elaborate(self, platform):
        m = Module()
        values: list[Value] = [getattr(self, f"term{i}") for i in range(len(self.widths))]
        values.sort(key=len)  # narrow terms first: fewer wide adders
        carry = [DelayLine(m, f"carry{i}", self.carry[i]) for i in range(self.carries)]
        # An adder takes one carry; the bits that find none are terms of their own.
        while len(carry) > len(values) - 1:
            values.append(Cat(carry.pop()[0], Const(0, 1)).as_signed())
        for level in range(self.latency):
            sums = []
            for i in range(0, len(values) - 1, 2):
                carry_in = carry.pop(0)[level] if carry else None
                sums.append(self._add(values[i], values[i + 1], carry_in))
            if len(values) % 2:
                sums.append(values[-1])
            values = []
            for i, value in enumerate(sums):
                reg = Signal(signed(len(value)), name=f"sum{level}_{i}", reset_less=True)
                m.d.sync += reg.eq(value)
                values.append(reg)
        m.d.comb += self.total.eq(values[0])
        return m

    def _add(self, a: Value, b: Value, carry_in: Value | None) -> Value:
        if carry_in is None:
            total = a + b
        else:  # one carry chain: the lowest bit makes the carry
            total = (Cat(carry_in, a).as_signed() + Cat(carry_in, b).as_signed())[1:]
        return total[: self.sum_bits].as_signed()
