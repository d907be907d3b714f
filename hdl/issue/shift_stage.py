"""Stage I of the decoder: tiles of each operand, and whether all exist."""

from __future__ import annotations

from amaranth.hdl import Module, Mux, Signal

from .. import isa
from .stages import DecodeStage, carry

__all__ = ["ShiftStage"]


class ShiftStage(DecodeStage):
    """Stage I of the decoder: tiles of each operand, and whether all exist."""

    BEFORE, AFTER = "h", "i"

    def elaborate(self, platform):
        m = Module()
        h, i = self.before, self.after
        carry(m, h, i)
        cfg = self.cfg
        beyond = []
        for name in ("rd", "rs1", "rs2"):
            first = h[f"{name}_tile"]
            end = Signal(7, name=f"{name}_end")
            m.d.comb += [
                i[f"{name}_mask"].eq(h[f"{name}_tiles"] << first),
                end.eq(first + h[f"{name}_last"]),
            ]
            beyond.append(h[f"uses_{name}"] & end[cfg.tiles_log2 :].any())
        m.d.comb += [
            i.bad.eq(h.bad | beyond[0] | beyond[1] | beyond[2]),
            i.contiguous.eq(h.stride == h.walked),
        ]
        if cfg.has_vector:
            # The part of z that lies on y is written last, so that y is read before; x is held.
            cfile = h.f7[isa.VECTOR["cfile"].lo] if cfg.split else 0
            on_y = (h.to_y[-1] == 0) & (h.to_y < h.z_last)
            m.d.comb += i.part_first.eq(Mux(on_y & ~cfile, h.to_y + 1, 0))
        return m
