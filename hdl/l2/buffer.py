"""Two-entry stream buffers that cut the path from ready to ready."""

from __future__ import annotations

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["StreamBuffer", "TurnBuffer"]


class StreamBuffer(wiring.Component):
    """Registers a stream in both directions: no output depends on an input of the same cycle.

    Parameters
    ----------
    shape : of the payload.

    Members
    -------
    i, o : the stream in and out.

    Attributes
    ----------
    spare_valid, spare : an item that waits behind `o`, registers; for those who must know of it.

    Latency: 1 cycle. Throughput: one item a cycle.
    """

    LATENCY = 1

    def __init__(self, shape):
        self.shape = shape
        self.spare_valid = Signal()  # only while `item` waits
        self.spare = Signal(shape, reset_less=True)
        super().__init__({"i": In(stream.Signature(shape)), "o": Out(stream.Signature(shape))})

    def elaborate(self, platform):
        m = Module()
        valid = Signal()
        item = Signal(self.shape, reset_less=True)
        spare_valid, spare = self.spare_valid, self.spare
        # A register beside `spare_valid`, which drives all of `spare`; what waits for it is far.
        ready = Signal(init=1)
        m.d.comb += [
            self.i.ready.eq(ready),
            self.o.valid.eq(valid),
            self.o.payload.eq(item),
        ]
        with m.If(~spare_valid):
            m.d.sync += spare.eq(self.i.payload)
        with m.If(self.o.ready | ~valid):
            with m.If(spare_valid):
                m.d.sync += item.eq(spare)
            with m.Else():
                m.d.sync += item.eq(self.i.payload)
        # Beside that enable, which drives many.
        stays = valid & ~self.o.ready
        full = stays & (self.i.valid | spare_valid)
        m.d.sync += [
            valid.eq(stays | self.i.valid | spare_valid),
            spare_valid.eq(full),
            ready.eq(~full),
        ]
        return m


class TurnBuffer(wiring.Component):
    """A stream buffer whose places are filled in turn, so `o.ready`, if late, drives few registers.

    In return `o.payload` comes through a multiplexer, of registers alone.

    Parameters
    ----------
    shape : of the payload.

    Members
    -------
    i, o : the stream in and out; the outputs depend on no input of the same cycle.

    Latency: 1 cycle. Throughput: one item a cycle.
    """

    LATENCY = 1

    def __init__(self, shape):
        self.shape = shape
        super().__init__({"i": In(stream.Signature(shape)), "o": Out(stream.Signature(shape))})

    def elaborate(self, platform):
        m = Module()
        valid = Signal()
        ready = Signal(init=1)
        places = [Signal(self.shape, name=f"place{n}", reset_less=True) for n in range(2)]
        fills = Signal()  # the place that is filled next
        empties = Signal()  # and the one that is emptied next
        m.d.comb += [
            self.i.ready.eq(ready),
            self.o.valid.eq(valid),
            self.o.payload.eq(Mux(empties, places[1], places[0])),
        ]
        # What is not valid is overwritten.
        for number, place in enumerate(places):
            with m.If(ready & (fills == number)):
                m.d.sync += place.eq(self.i.payload)
        stays = valid & ~self.o.ready
        m.d.sync += [
            fills.eq(fills ^ (self.i.valid & ready)),
            empties.eq(empties ^ (self.o.ready & valid)),
            valid.eq(stays | self.i.valid | ~ready),
            ready.eq(~(stays & (self.i.valid | ~ready))),
        ]
        return m
