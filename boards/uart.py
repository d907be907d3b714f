"""A serial line: eight data bits, no parity, one stop bit."""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.cdc import FFSynchronizer
from amaranth.lib.wiring import In, Out

__all__ = ["MIN_DIVISOR", "UartReceiver", "UartTransmitter"]

MIN_DIVISOR = 4
"""Fewest clock cycles of a bit."""


def _check(divisor: int) -> None:
    if divisor < MIN_DIVISOR:
        raise ValueError(f"divisor = {divisor} is too low: use {MIN_DIVISOR} cycles a bit or more")


class UartReceiver(wiring.Component):
    """Bytes from a line.

    Parameters
    ----------
    divisor : clock cycles of a bit.

    Members
    -------
    line : the line, of any clock.
    valid, byte : a byte has come, for one cycle. One without a stop bit is dropped.
    idle : no byte is on its way.

    Latency: the middle of the stop bit and three cycles.
    """

    def __init__(self, divisor: int):
        _check(divisor)
        self.divisor = divisor
        super().__init__({"line": In(1, init=1), "valid": Out(1), "byte": Out(8), "idle": Out(1)})

    def elaborate(self, platform):
        m = Module()
        line = Signal(init=1)
        m.submodules.synchronizer = FFSynchronizer(self.line, line, init=1)
        left = Signal(range(self.divisor + self.divisor // 2))
        bits = Signal(range(11))  # still to come, stop bit included
        shift = Signal(8, reset_less=True)
        broken = Signal()
        m.d.comb += self.idle.eq((bits == 0) & line & self.line)
        m.d.sync += self.valid.eq(0)
        with m.If(bits == 0), m.If(~line):
            # The first data bit's middle is one and a half bits from here.
            m.d.sync += [bits.eq(9), left.eq(self.divisor + self.divisor // 2 - 1)]
        with m.Elif(left != 0):
            m.d.sync += left.eq(left - 1)
        with m.Else():
            m.d.sync += [left.eq(self.divisor - 1), bits.eq(bits - 1)]
            with m.If(bits == 1):
                m.d.sync += [self.valid.eq(line & ~broken), self.byte.eq(shift), broken.eq(~line)]
                with m.If(~line):  # no stop bit: drop the byte, wait for a quiet line
                    m.d.sync += [bits.eq(1), left.eq(0)]
            with m.Else():
                m.d.sync += shift.eq(Cat(shift[1:], line))
        return m


class UartTransmitter(wiring.Component):
    """Bytes onto a line.

    Parameters
    ----------
    divisor : clock cycles of a bit.

    Members
    -------
    bytes : what to send.
    line : the line, high when idle.

    Throughput: one byte in ten bits.
    """

    def __init__(self, divisor: int):
        _check(divisor)
        self.divisor = divisor
        super().__init__({"bytes": In(stream.Signature(8)), "line": Out(1, init=1)})

    def elaborate(self, platform):
        m = Module()
        left = Signal(range(self.divisor))
        bits = Signal(range(11))
        shift = Signal(9, init=0x1FF)
        m.d.comb += self.bytes.ready.eq(bits == 0)
        with m.If(bits == 0), m.If(self.bytes.valid):
            m.d.sync += [
                shift.eq(Cat(self.bytes.payload, Const(1))),
                self.line.eq(0),
                bits.eq(10),
                left.eq(self.divisor - 1),
            ]
        with m.Elif(left != 0):
            m.d.sync += left.eq(left - 1)
        with m.Else():
            m.d.sync += [
                left.eq(self.divisor - 1),
                self.line.eq(shift[0]),
                shift.eq(Cat(shift[1:], Const(1))),
                bits.eq(bits - 1),
            ]
        return m
