"""A two-place stream buffer whose wide registers wait for no one who takes from it."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ..registers import copies, parts

__all__ = ["TwoPlaces", "split_layout"]

SELECTED = 64
"""Bits of wide fields that one register selects, at most."""

LOADED = 128
"""Bits of wide fields that one register loads, at most."""


def split_layout(
    shape: data.StructLayout, wide: tuple[str, ...]
) -> tuple[data.StructLayout, data.StructLayout]:
    """The fields called `wide`, and the others."""
    fields = {name: field.shape for name, field in shape}
    narrow = {name: of for name, of in fields.items() if name not in wide}
    return data.StructLayout({name: fields[name] for name in wide}), data.StructLayout(narrow)


class TwoPlaces(wiring.Component):
    """A stream buffer of two items for payloads with wide fields.

    Whether an item is taken may be known late. It decides on the narrow fields, which are held as
    in a `StreamBuffer`, but not on wide ones: these stay where they are, in one of two places that
    take turns, and a place copies its input as long as it holds nothing.

    Parameters
    ----------
    shape : of the payload.
    wide : names of the wide fields; the others come straight from registers.

    Members
    -------
    i, o : the stream in and out. No valid and no `i.ready` depends on an input of the same cycle.
        In the first cycle after a reset nothing may come.
    ready_next : `i.ready` of the next cycle.

    Latency: 1 cycle. Throughput: one item a cycle.
    """

    LATENCY = 1

    def __init__(self, shape: data.StructLayout, wide: tuple[str, ...]):
        self.shape = shape
        self.wide = wide
        super().__init__(
            {
                "i": In(stream.Signature(shape)),
                "o": Out(stream.Signature(shape)),
                "ready_next": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        wide, narrow = split_layout(self.shape, self.wide)
        valid = Signal()
        ready = Signal(init=1)  # else both are full
        valid_next = Signal()
        takes = Signal()  # an item can become the first one
        m.d.comb += [
            takes.eq(self.o.ready | ~valid),
            valid_next.eq(~takes | self.i.valid | ~ready),
            self.ready_next.eq(takes | (ready & ~self.i.valid)),
            self.i.ready.eq(ready),
            self.o.valid.eq(valid),
        ]
        m.d.sync += [valid.eq(valid_next), ready.eq(self.ready_next)]

        item = Signal(narrow, reset_less=True)
        spare = Signal(narrow, reset_less=True)
        came = Signal(narrow)
        m.d.comb += [came[name].eq(self.i.payload[name]) for name, _ in narrow]
        m.d.comb += [self.o.payload[name].eq(item[name]) for name, _ in narrow]
        with m.If(ready):
            m.d.sync += spare.eq(came)
        with m.If(takes):
            m.d.sync += item.eq(Mux(ready, came, spare))

        # The copies have no reset: they are right from the second cycle on.
        first = Signal()  # the place of the first item
        first_next = Signal()
        m.d.comb += first_next.eq(first ^ (valid & self.o.ready))
        m.d.sync += first.eq(first_next)
        bits = wide.size
        places = [Signal(wide, name=f"place{n}", reset_less=True) for n in range(2)]
        came_wide = Signal(wide)
        m.d.comb += [came_wide[name].eq(self.i.payload[name]) for name, _ in wide]
        for n, place in enumerate(places):
            mine = first == n
            # In the next cycle it holds nothing, if the first item is taken now; if it is not.
            taken = Mux(ready, ~(self.i.valid & ~mine), mine)
            stays = ready & ~(self.i.valid | mine)
            empty = Mux(valid, Mux(self.o.ready, taken, stays), ~(self.i.valid & mine))
            loads = copies(m, f"load{n}", empty, -(-bits // LOADED))
            for load, part, new in zip(
                loads,
                parts(Value.cast(place), len(loads)),
                parts(Value.cast(came_wide), len(loads)),
                strict=True,
            ):
                with m.If(load):
                    m.d.sync += part.eq(new)
        selects = copies(m, "first", first_next, -(-bits // SELECTED))
        found = Signal(wide)
        halves = (parts(Value.cast(place), len(selects)) for place in places)
        m.d.comb += [
            Value.cast(found).eq(
                Cat(Mux(select, b, a) for select, a, b in zip(selects, *halves, strict=True))
            ),
            *(self.o.payload[name].eq(found[name]) for name, _ in wide),
        ]
        return m
