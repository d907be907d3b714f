"""The guard of GUARD4x4: does a mma run as 4x4, or does it fall back to 2x2?"""

from __future__ import annotations

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from .. import isa
from ..config import Config
from .stages import MODE_4X4

__all__ = ["SIDE", "Guard"]

SIDE = 4
"""Tiles of A and of B in the guarded mode."""

MAX_WIDTH_LOG2 = 1
"""Outputs of at most 2 bytes."""


class Guard(wiring.Component):
    """Chooses the mode: TILING's, or, where GUARD4x4 asks for it, 4x4 if that is granted, else 2x2.

    4x4 is granted when outputs are at most 16 bit, all results fit between C and the end of its
    file, and, if that file holds A and B as well, miss both. The ranges are nominal: M and N do
    not matter.

    Members
    -------
    guard4x4, tiling : as in mxtile.
    width_log2 : log2 of the bytes of an output.
    a, b, c : base tiles, as the instruction has them; they may not exist.
    mode : TILING's number, or `MODE_4X4`.
    fallback : 4x4 was asked for and not granted.

    Latency: none. Source: seed 000 sections 6 and 11; isa.md section 2, Guard.
    """

    def __init__(self, cfg: Config):
        self.cfg = cfg
        super().__init__(
            {
                "guard4x4": In(1),
                "tiling": In(isa.MXTILE["tiling"].width),
                "width_log2": In(2),
                "a": In(isa.RS1.width),
                "b": In(isa.RS2.width),
                "c": In(isa.RD.width),
                "mode": Out(range(MODE_4X4 + 1)),
                "fallback": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        cfg = self.cfg
        grant = Signal()
        with m.Switch(self.width_log2):
            for width_log2 in range(MAX_WIDTH_LOG2 + 1):
                results = SIDE * SIDE * cfg.result_tiles(8 << width_log2)
                if results > cfg.tiles:
                    continue
                with m.Case(width_log2):
                    fits = self.c <= cfg.tiles - results
                    if cfg.split:
                        m.d.comb += grant.eq(fits)
                        continue
                    end = Signal(range(cfg.tiles + results), name=f"end{width_log2}")
                    m.d.comb += end.eq(self.c + results)
                    apart = [(base + SIDE <= self.c) | (base >= end) for base in (self.a, self.b)]
                    m.d.comb += grant.eq(fits & apart[0] & apart[1])
        m.d.comb += self.mode.eq(self.tiling)
        with m.If(self.guard4x4):
            m.d.comb += [
                self.mode.eq(Mux(grant, MODE_4X4, isa.Tiling.T2X2)),
                self.fallback.eq(~grant),
            ]
        return m
