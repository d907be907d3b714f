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
    carries : single bits to be added, in the carries of the adders.
    places : bits of the sum at which they may be added. Terms are zero below the one in use.
    inverts : there is `invert`.

    Members
    -------
    term0, term1, ... : terms.
    carry : the single bits, if any.
    place : one-hot, which of `places` they are added at; all clear if they are zero.
    invert : the bits of the sum that is registered in this cycle are inverted.
    total : the sum, registered.

    Latency: `latency` cycles, one for every adder level. Throughput: one sum a cycle.
    Source: architecture.md section 1.
    """

    def __init__(
        self,
        widths: Sequence[int],
        sum_bits: int,
        carries: int = 0,
        places: Sequence[int] = (0,),
        *,
        inverts: bool = False,
    ):
        self.widths = tuple(widths)
        self.sum_bits = sum_bits
        self.carries = carries
        self.places = tuple(places)
        self.inverts = inverts
        self.latency = self.latency_of(len(self.widths), carries)
        members = {f"term{i}": In(signed(width)) for i, width in enumerate(self.widths)}
        if carries:
            members |= {"carry": In(carries), "place": In(len(self.places))}
        if inverts:
            members["invert"] = In(1)
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
        place = DelayLine(m, "place", self.place) if self.carries else None
        carry = [DelayLine(m, f"carry{i}", self.carry[i]) for i in range(self.carries)]
        # An adder takes one carry; the bits that find none are terms of their own.
        while len(carry) > len(values) - 1:
            values.append(self._alone(carry.pop()[0]))
        for level in range(self.latency):
            sums = []
            for i in range(0, len(values) - 1, 2):
                if carry:
                    total = self._add(values[i], values[i + 1], carry.pop(0)[level], place[level])
                else:
                    total = values[i] + values[i + 1]
                sums.append(total[: self.sum_bits].as_signed())
            if len(values) % 2:
                sums.append(values[-1])
            if self.inverts and level == self.latency - 1:
                (value,) = sums
                sums = [(value ^ self.invert.replicate(len(value))).as_signed()]
            values = []
            for i, value in enumerate(sums):
                reg = Signal(signed(len(value)), name=f"sum{level}_{i}", reset_less=True)
                m.d.sync += reg.eq(value)
                values.append(reg)
        m.d.comb += self.total.eq(values[0])
        return m

    def _alone(self, carry: Value) -> Value:
        """A carry as a term."""
        bits: list[Value] = []
        for i, place in enumerate(self.places):
            bits += [Const(0, place - len(bits)), carry & self.place[i]]
            bits = list(Cat(bits))
        return Cat(bits, Const(0, 1)).as_signed()

    def _add(self, a: Value, b: Value, carry: Value, place: Value) -> Value:
        """a + b + carry, in one carry chain.

        Below each place both operands get one bit more. If the carry is added there, both are the
        carry; at other places one of them is set, so that a carry from below passes.
        """
        a, b = (self._reaching(value) for value in (a, b))
        low = 0
        parts_a, parts_b = [], []
        for i, high in enumerate(self.places):
            parts_a += [a[low:high], carry | ~place[i] if high else carry & place[i]]
            parts_b += [b[low:high], carry & place[i]]
            low = high
        total = Cat(parts_a, a[low:]).as_signed() + Cat(parts_b, b[low:]).as_signed()
        parts = []
        low = 0
        for i, high in enumerate(self.places):
            parts.append(total[low + i : high + i])
            low = high
        return Cat(parts, total[low + len(self.places) :]).as_signed()

    def _reaching(self, value: Value) -> Value:
        """The same number, at least as wide as the places lie high."""
        missing = self.places[-1] + 1 - len(value)
        return Cat(value, value[-1].replicate(missing)).as_signed() if missing > 0 else value
