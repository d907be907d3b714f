"""Rows of loads and stores, cut at the borders of cache lines (seed 001 4.2.1)."""

from __future__ import annotations

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ..config import Config
from ..interfaces import ldst_uop

__all__ = ["LineCut"]


class LineCut(wiring.Component):
    """Cuts a row that crosses a line in two, and says whether the burst goes on after it.

    Only the payload of `i` is taken apart: `o` is valid with it, and `i` is taken with its last
    part, so the stream before it should come from registers.

    Members
    -------
    i : a row, or a block to zero, as `LdStSplit` offers them.
    crosses : it is a row that crosses a line; whether it does takes longer than the cut.
    o : its parts, in order.
    last : of what `i` offers.

    Throughput: one part a cycle. Latency: none.
    """

    def __init__(self, cfg: Config):
        self.cfg = cfg
        super().__init__(
            {
                "i": In(stream.Signature(ldst_uop(cfg))),
                "o": Out(stream.Signature(ldst_uop(cfg))),
                "crosses": In(1),
                "last": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        cfg = self.cfg
        row, part = self.i.payload, self.o.payload
        line_log2, bus_log2 = cfg.line_bytes_log2, cfg.bus_bytes_log2
        second = Signal()
        offset = row.addr[:line_log2]
        line = row.addr[line_log2:]
        room = Signal(line_log2 + 1)  # bytes to the line's end
        end = Signal(line_log2 + 1)  # offset of the last byte
        after = Signal(line_log2 + 1)  # offset of a row just behind this one
        m.d.comb += [
            room.eq(cfg.line_bytes - offset),
            end.eq(offset + row.last),
            after.eq(offset + cfg.row_bytes),
            self.last.eq(~self.crosses | second),
            self.o.valid.eq(self.i.valid),
            self.i.ready.eq(self.o.ready & self.last),
            part.eq(row),
            part.first.eq(Mux(second, room, 0)),
            part.tail.eq(self.last),
            part.half.eq(row.half & self.last),
            # The next row starts in the last beat of this one or in the next, in the same line.
            part.more.eq(
                row.more
                & self.last
                & (second | ~after[line_log2])
                & ((after >> bus_log2) <= (end >> bus_log2) + 1)
            ),
        ]
        with m.If(second):
            m.d.comb += part.addr.eq((line + 1) << line_log2)
        with m.Elif(self.crosses):
            m.d.comb += part.last.eq(room - 1)
        with m.If(self.o.valid & self.o.ready):
            m.d.sync += second.eq(~self.last)
        return m
