"""Stage D of the decoder: which tiling mode a mma runs in, guard included."""

from __future__ import annotations

from amaranth.hdl import Module, Mux

from .. import isa
from .guard import Guard
from .stages import MODE_4X4, DecodeStage, carry

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
            guard.width_log2.eq(c.width_log2),
            guard.a.eq(c.rs1_tile),
            guard.b.eq(c.rs2_tile),
            guard.c.eq(c.rd_tile),
            d.mode.eq(c.tiling),
        ]
        with m.If(c.guard4x4):
            m.d.comb += [
                d.mode.eq(Mux(guard.grant, MODE_4X4, isa.Tiling.T2X2)),
                d.fallback.eq(~guard.grant),
            ]
        if not isa.GUARD4X4:
            m.d.comb += d.bad.eq(c.bad | (c.mmacc & c.guard4x4))
        return m
