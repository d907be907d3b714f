"""Small combinational pieces of the decoder: counts to tiles, groups of tiles to tiles."""

from __future__ import annotations

from functools import reduce
from operator import or_

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..config import Config
from .stages import C_STRIDE, GROUPS

__all__ = ["GroupTiles", "Spread", "last_of", "up_to"]


def last_of(last: Value, log2: Value, most: int) -> Value:
    """`(last + 1 << log2) - 1` without an adder; `log2` up to `most`."""
    chosen = 0
    for amount in range(most + 1):
        shifted = Cat(Const((1 << amount) - 1, amount), last)
        chosen = chosen | Mux(log2 == amount, shifted, 0)
    return chosen


def up_to(last: Value, count: int) -> Value:
    """`count` bits, of which those of the numbers 0 to `last` are set."""
    return Cat(number <= last for number in range(count))


class Spread(wiring.Component):
    """Rows (or columns) of a macro over its tiles (isa.md section 2, TILING).

    Members
    -------
    end : M or N, less one; that of 0 is all ones.
    tiles_log2 : log2 of the macro's tiles in this direction.
    bad : zero, or more than the macro holds.
    last : last tile with rows.
    rows_most, rows_last : last row of the tiles before it; of it.
    """

    def __init__(self, cfg: Config):
        self.cfg = cfg
        super().__init__(
            {
                "end": In(8),
                "tiles_log2": In(2),
                "bad": Out(1),
                "last": Out(3),
                "rows_most": Out(cfg.rows_log2),
                "rows_last": Out(cfg.rows_log2),
            }
        )

    def elaborate(self, platform):
        m = Module()
        cfg = self.cfg
        tile = self.end[cfg.rows_log2 :]
        total = Signal()  # the value counts the rows of all tiles together
        m.d.comb += [
            total.eq(tile.any()),
            self.bad.eq((tile >> self.tiles_log2).any()),
            self.last.eq(Mux(total, tile, (1 << self.tiles_log2) - 1)),
            self.rows_most.eq(Mux(total, cfg.rows - 1, self.end[: cfg.rows_log2])),
            self.rows_last.eq(self.end[: cfg.rows_log2]),
        ]
        return m


class GroupTiles(wiring.Component):
    """Tiles that lie in groups of neighbouring slices, counted from the first.

    Members
    -------
    groups : the groups there are; they start every `stride` (1, 2 or 4) tiles.
    ends : those whose last slice is `slice_last`; of the others it is `slice_most`.
    group_last : the last group.
    tiles : the tiles, as far as there are so many.
    last : the last one.

    A group ends before the next starts, but one alone may be longer than a stride of `C_STRIDE`.
    """

    def __init__(self, cfg: Config):
        self.cfg = cfg
        super().__init__(
            {
                "groups": In(GROUPS),
                "ends": In(GROUPS),
                "group_last": In(GROUPS.bit_length() - 1),
                "stride": In(3),
                "slice_most": In(3),
                "slice_last": In(3),
                "tiles": Out(cfg.tiles),
                "last": Out(6),
            }
        )

    def elaborate(self, platform):
        m = Module()
        most, last = up_to(self.slice_most, 8), up_to(self.slice_last, 8)

        def has(group, part):
            return self.groups[group] & Mux(self.ends[group], last[part], most[part])

        for tile in range(self.cfg.tiles):
            found = 0
            for log2, bit in enumerate(self.stride):
                group, part = tile >> log2, tile & ((1 << log2) - 1)
                if group < GROUPS:
                    found = found | (bit & has(group, part))
            if C_STRIDE <= tile < 2 * C_STRIDE:
                found = found | (self.stride[-1] & has(0, tile))
            m.d.comb += self.tiles[tile].eq(found)
        starts = (Mux(bit, self.group_last << log2, 0) for log2, bit in enumerate(self.stride))
        m.d.comb += self.last.eq(reduce(or_, starts) | self.slice_last)
        return m
