"""Stage E of the decoder: which tiling mode a mma runs in, guard included; sizes less one."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Mux

from .. import isa
from .guard import Guard
from .stages import DecodeStage, carry

__all__ = ["ModeStage"]


class ModeStage(DecodeStage):
    """Stage E of the decoder: which tiling mode a mma runs in, guard included; sizes less one."""

    BEFORE, AFTER = "d", "e"

    def elaborate(self, platform):
        m = Module()
        d, e = self.before, self.after
        cfg = self.cfg
        carry(m, d, e)
        m.submodules.guard = guard = Guard(cfg)
        what = isa.LDST["what"]
        is_b = (d.load | d.store) & (d.f7[what.lo : what.lo + what.width] == isa.LdstWhat.B)
        m.d.comb += [
            guard.guard4x4.eq(d.guard4x4),
            guard.tiling.eq(d.tiling),
            guard.width_log2.eq(d.width_log2),
            guard.a.eq(d.rs1_tile),
            guard.b.eq(d.rs2_tile),
            guard.c.eq(d.rd_tile),
            e.mode.eq(guard.mode),
            e.fallback.eq(guard.fallback),
            e.k_last.eq(d.k - 1),
            e.row_end.eq(Mux(is_b, d.n, d.m) - 1),
            e.column_end.eq(d.n - 1),
            # Every user of mxcfg and mxtile checks what it does not use as well (isa.md, Traps).
            e.bad.eq(d.bad | (d.m == 0)),
        ]
        if cfg.transposes:
            m.d.comb += e.square.eq(Cat(x == cfg.rows for x in (d.k, d.m, d.n)).all())
        return m
