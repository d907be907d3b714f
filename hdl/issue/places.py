"""A stream buffer for wide payloads, of which little depends on who takes from it."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from ..registers import copies, parts

__all__ = ["ThreePlaces", "split_layout"]

STORED = 64
"""Bits of wide fields that one memory holds, at most, with addresses of its own."""


def split_layout(
    shape: data.StructLayout, wide: tuple[str, ...]
) -> tuple[data.StructLayout, data.StructLayout]:
    """The fields called `wide`, and the others."""
    fields = {name: field.shape for name, field in shape}
    narrow = {name: of for name, of in fields.items() if name not in wide}
    return data.StructLayout({name: fields[name] for name in wide}), data.StructLayout(narrow)


class ThreePlaces(wiring.Component):
    """A stream buffer of three items for payloads with wide fields.

    Whether an item is taken may be known late, so little depends on it: which place is emptied
    next, how many items are held, and the narrow fields of the first, which come straight from
    registers. Wide fields stay in a memory with a place to spare, which the input is always
    written to. An item is let in only if there is room for it even if none was taken.

    Parameters
    ----------
    shape : of the payload.
    wide : names of the wide fields; the others come straight from registers.

    Members
    -------
    i, o : the stream in and out. No valid and no `i.ready` depends on an input of the same cycle,
        nor `i.ready` on `o.ready` of the one before. In the first cycle after a reset nothing may
        come.
    ready_next : `i.ready` of the next cycle; it does not depend on `o.ready`.

    Latency: 1 cycle. Throughput: one item a cycle.
    """

    LATENCY = 1
    PLACES = 4

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
        # It holds one item, two, three.
        valid = Signal()
        more = Signal()
        full = Signal()
        ready = Signal(init=1)
        comes = Signal()
        takes = Signal()  # an item can become the first one
        crowded = Signal()  # three if none is taken
        m.d.comb += [
            comes.eq(self.i.valid & ready),
            takes.eq(self.o.ready | ~valid),
            crowded.eq(full | (more & comes)),
            self.ready_next.eq(~crowded),
            self.i.ready.eq(ready),
            self.o.valid.eq(valid),
        ]
        m.d.sync += [
            valid.eq(~takes | more | comes),
            more.eq(Mux(takes, crowded, more | comes)),
            full.eq(crowded & ~takes),
            ready.eq(self.ready_next),
        ]

        # Copies of these have no reset: they are right from the second cycle on.
        fills = Signal(range(self.PLACES))  # the place that is filled next
        empties = Signal(range(self.PLACES))  # and the one that is emptied next
        fills_next = Signal.like(fills)
        empties_next = Signal.like(empties)
        m.d.comb += [
            fills_next.eq(fills + comes),
            empties_next.eq(empties + (valid & self.o.ready)),
        ]
        m.d.sync += [fills.eq(fills_next), empties.eq(empties_next)]

        def stored(name: str, value: Value, fills: Value, reads: Value) -> Value:
            """What a memory that takes up `value` holds at `reads`."""
            memory = Memory(shape=len(value), depth=self.PLACES, init=[])
            m.submodules[name] = memory
            write, read = memory.write_port(), memory.read_port(domain="comb")
            m.d.comb += [
                write.addr.eq(fills),
                write.data.eq(value),
                write.en.eq(1),
                read.addr.eq(reads),
            ]
            return read.data

        item = Signal(narrow, reset_less=True)
        came = Signal(narrow)
        second = Signal(narrow)
        came_wide = Signal(wide)
        first_wide = Signal(wide)
        for there, layout in ((came, narrow), (came_wide, wide)):
            m.d.comb += [there[name].eq(self.i.payload[name]) for name, _ in layout]
        for there, layout in ((item, narrow), (first_wide, wide)):
            m.d.comb += [self.o.payload[name].eq(there[name]) for name, _ in layout]
        behind = (empties + 1)[: len(empties)]
        m.d.comb += second.eq(stored("narrow", Value.cast(came), fills, behind))
        with m.If(takes):
            m.d.sync += item.eq(Mux(more, second, came))
        count = -(-wide.size // STORED)
        m.d.comb += Value.cast(first_wide).eq(
            Cat(
                stored(f"wide{number}", part, *where)
                for number, (part, *where) in enumerate(
                    zip(
                        parts(Value.cast(came_wide), count),
                        copies(m, "fills", fills_next, count),
                        copies(m, "empties", empties_next, count),
                        strict=True,
                    )
                )
            )
        )
        return m
