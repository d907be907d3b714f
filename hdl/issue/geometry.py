"""Small combinational pieces of the decoder: counts to tiles, tile groups to masks."""

from __future__ import annotations

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..config import Config

__all__ = ["GroupMask", "Spread"]

GROUPS = 8
"""Most groups that one load or store names."""


class Spread(wiring.Component):
    """Rows (or columns) of a macro over its tiles (isa.md section 2, TILING).

    Members
    -------
    value : M or N.
    tiles_log2 : log2 of the macro's tiles in this direction.
    bad : zero, or more than the macro holds.
    last : last tile with rows.
    rows_most, rows_last : last row of the tiles before it; of it.
    """

    def __init__(self, cfg: Config):
        self.cfg = cfg
        super().__init__(
            {
                "value": In(8),
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
        end = Signal(8)  # last row of the macro
        total = Signal()  # value counts the rows of all tiles together
        m.d.comb += [
            end.eq(self.value - 1),
            total.eq(self.value > cfg.rows),
            self.bad.eq(
                (self.value == 0) | (end >= (cfg.rows << self.tiles_log2)[: cfg.rows_log2 + 4])
            ),
            self.last.eq(Mux(total, end[cfg.rows_log2 :], (1 << self.tiles_log2) - 1)),
            self.rows_most.eq(Mux(total, cfg.rows - 1, end[: cfg.rows_log2])),
            self.rows_last.eq(end[: cfg.rows_log2]),
        ]
        return m


class GroupMask(wiring.Component):
    """Tiles that lie in groups of neighbouring slices, as a mask and a last tile.

    Members
    -------
    base : first tile, as the instruction has it; it may not exist.
    group_last : last group; groups start every `stride` (1, 2 or 4) tiles.
    slice_most, slice_last : last slice of the groups before it; of it.
    mask : the tiles.
    bad : some lie past the last tile.
    """

    def __init__(self, cfg: Config):
        self.cfg = cfg
        super().__init__(
            {
                "base": In(5),
                "group_last": In(3),
                "stride": In(3),
                "slice_most": In(3),
                "slice_last": In(3),
                "mask": Out(cfg.tiles),
                "bad": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        cfg = self.cfg
        relative = Signal(cfg.tiles)
        start = Signal(6)  # of the last group; no multiplier for powers of two
        with m.Switch(self.stride):
            for stride in (1, 2, 4):
                with m.Case(stride):
                    mask = 0
                    for group in range(GROUPS):
                        if group * stride >= cfg.tiles:
                            break
                        last = Mux(group == self.group_last, self.slice_last, self.slice_most)
                        slices = ((2 << last) - 1)[:8]
                        mask = mask | Mux(group <= self.group_last, slices << group * stride, 0)
                    m.d.comb += [relative.eq(mask), start.eq(self.group_last * stride)]
        end = Signal(8)
        m.d.comb += [
            self.mask.eq(relative << self.base),
            end.eq(self.base + start + self.slice_last),
            self.bad.eq(end >= cfg.tiles),
        ]
        return m
