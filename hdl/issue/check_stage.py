"""Stage J of the decoder: what an instruction reads and writes, and whether it may."""

from __future__ import annotations

from amaranth.hdl import Module, Mux

from .register_bundle import RegisterMasks
from .stages import DecodeStage, carry

__all__ = ["CheckStage"]


class CheckStage(DecodeStage):
    """Stage J of the decoder: what an instruction reads and writes, and whether it may."""

    BEFORE, AFTER = "i", "j"

    def elaborate(self, platform):
        m = Module()
        i, j = self.before, self.after
        carry(m, i, j)
        sources = i.rs1_mask | i.rs2_mask
        m.d.comb += [
            j.reads.eq(sources | Mux(i.store, i.rd_mask, 0)),
            j.writes.eq(Mux(i.store, 0, i.rd_mask)),
            j.shared.eq((i.rs1_mask & i.rs2_mask).any()),
            j.overlap.eq(i.apart & (i.rd_mask & sources).any()),
        ]
        if self.cfg.xuantie:
            m.submodules.registers = registers = RegisterMasks(self.cfg)
            m.d.comb += registers.fields.eq(i.x)
            with m.If(i.x.on):
                m.d.comb += [
                    j.reads.eq(registers.reads),
                    j.writes.eq(registers.writes),
                    j.shared.eq(registers.shared),
                ]
        return m
