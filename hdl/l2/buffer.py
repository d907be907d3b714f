"""A two-entry stream buffer that cuts the path from ready to ready."""

from __future__ import annotations

from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["StreamBuffer"]


class StreamBuffer(wiring.Component):
    """Registers a stream in both directions: no output depends on an input of the same cycle.

    Parameters
    ----------
    shape : of the payload.

    Members
    -------
    i, o : the stream in and out.

    Latency: 1 cycle. Throughput: one item a cycle.
    """

    LATENCY = 1

    def __init__(self, shape):
        self.shape = shape
        super().__init__({"i": In(stream.Signature(shape)), "o": Out(stream.Signature(shape))})

    def elaborate(self, platform):
        m = Module()
        valid = Signal()
        item = Signal(self.shape, reset_less=True)
        spare_valid = Signal()  # only while `item` waits
        spare = Signal(self.shape, reset_less=True)
        m.d.comb += [
            self.i.ready.eq(~spare_valid),
            self.o.valid.eq(valid),
            self.o.payload.eq(item),
        ]
        with m.If(~spare_valid):
            m.d.sync += spare.eq(self.i.payload)
        with m.If(self.o.ready | ~valid):
            m.d.sync += [valid.eq(self.i.valid | spare_valid), spare_valid.eq(0)]
            with m.If(spare_valid):
                m.d.sync += item.eq(spare)
            with m.Else():
                m.d.sync += item.eq(self.i.payload)
        with m.Elif(self.i.valid):
            m.d.sync += spare_valid.eq(1)
        return m
