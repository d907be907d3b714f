"""Pipelined balanced adder tree."""

from __future__ import annotations

from collections.abc import Sequence

from amaranth.hdl import Module, Signal, Value, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["SumTree", "adder_level"]

LEVELS_PER_STAGE = 1
"""Adder levels between registers: synthesis would merge more into slow, wide compressors."""


def adder_level(values: Sequence[Value], limit: int) -> list[Value]:
    """Sums of neighbouring pairs of signed values; an odd last value passes through.

    Every sum keeps all its bits, up to `limit` of them.
    """
    sums: list[Value] = []
    for i in range(0, len(values) - 1, 2):
        total = values[i] + values[i + 1]
        sums.append(total if len(total) <= limit else total[:limit].as_signed())
    if len(values) % 2:
        sums.append(values[-1])
    return sums


class SumTree(wiring.Component):
    """Exact sum of signed terms.

    Parameters
    ----------
    widths : width of each term.
    sum_bits : width of the sum; a narrower one than the terms need is the sum modulo 2^sum_bits.

    Members
    -------
    term0, term1, ... : terms.
    total : their sum, registered.

    Latency: `latency` cycles, one for every adder level. Throughput: one sum a cycle.
    Source: architecture.md section 1.
    """

    def __init__(self, widths: Sequence[int], sum_bits: int):
        self.widths = tuple(widths)
        self.sum_bits = sum_bits
        self.latency = self.latency_of(len(self.widths))
        members = {f"term{i}": In(signed(width)) for i, width in enumerate(self.widths)}
        super().__init__({**members, "total": Out(signed(sum_bits))})

    @staticmethod
    def latency_of(terms: int) -> int:
        """Cycles that a sum of `terms` terms takes."""
        levels = max(1, (terms - 1).bit_length())
        return -(-levels // LEVELS_PER_STAGE)

    def elaborate(self, platform):
        m = Module()
        values: list[Value] = [getattr(self, f"term{i}") for i in range(len(self.widths))]
        for stage in range(self.latency):
            for _ in range(LEVELS_PER_STAGE):
                values = adder_level(values, self.sum_bits)
            values = [self._stored(m, f"sum{stage}_{i}", value) for i, value in enumerate(values)]
        m.d.comb += self.total.eq(values[0])
        return m

    @staticmethod
    def _stored(m: Module, name: str, value: Value) -> Signal:
        reg = Signal(signed(len(value)), name=name, reset_less=True)
        m.d.sync += reg.eq(value)
        return reg
