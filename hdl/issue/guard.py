"""The guard of GUARD4x4: may a mma run as 4x4, or does it fall back to 2x2?"""

from __future__ import annotations

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..config import Config

__all__ = ["Guard"]

SIDE = 4
"""Tiles of A and of B in the guarded mode."""

MAX_WIDTH_LOG2 = 1
"""Outputs of at most 2 bytes."""


class Guard(wiring.Component):
    """Grants 4x4 when outputs are at most 16 bit, all results fit above C, and miss A and B.

    Members
    -------
    width_log2 : log2 of the bytes of an output.
    a, b, c : base tiles.
    grant : the mma runs as 4x4.

    Source: seed 000 sections 6 and 11; isa.md section 2, Guard. Ranges are nominal.
    """

    def __init__(self, cfg: Config):
        self.cfg = cfg
        tile = cfg.tiles_log2
        super().__init__(
            {"width_log2": In(2), "a": In(tile), "b": In(tile), "c": In(tile), "grant": Out(1)}
        )

    def elaborate(self, platform):
        m = Module()
        cfg = self.cfg
        with m.Switch(self.width_log2):
            for width_log2 in range(MAX_WIDTH_LOG2 + 1):
                results = SIDE * SIDE * cfg.result_tiles(8 << width_log2)
                if results > cfg.tiles:
                    continue
                with m.Case(width_log2):
                    end = Signal(cfg.tiles_log2 + 2, name=f"end{width_log2}")
                    m.d.comb += end.eq(self.c + results)
                    apart = [(base + SIDE <= self.c) | (base >= end) for base in (self.a, self.b)]
                    m.d.comb += self.grant.eq((end <= cfg.tiles) & apart[0] & apart[1])
        return m
