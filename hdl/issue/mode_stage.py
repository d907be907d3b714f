"""Stage D of the decoder: which tiling mode a mma runs in, guard included."""

from __future__ import annotations

from amaranth.hdl import Module

from .guard import Guard
from .stages import DecodeStage, carry

__all__ = ["ModeStage"]


class ModeStage(DecodeStage):
    """Stage D of the decoder: which tiling mode a mma runs in, guard included."""

    BEFORE, AFTER = "c", "d"

    def elaborate(self, platform):
        m = Module()
        c, d = self.before, self.after
        carry(m, c, d)
        m.submodules.guard = guard = Guard(self.cfg)
        m.d.comb += [
            guard.guard4x4.eq(c.guard4x4),
            guard.tiling.eq(c.tiling),
            guard.width_log2.eq(c.width_log2),
            guard.a.eq(c.rs1_tile),
            guard.b.eq(c.rs2_tile),
            guard.c.eq(c.rd_tile),
            d.mode.eq(guard.mode),
            d.fallback.eq(guard.fallback),
        ]
        return m
