"""Stage C of the decoder: the CSR access, and what an instruction takes along of the CSRs."""

from __future__ import annotations

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from .. import isa
from ..config import Config
from .csr import CsrFile
from .stages import carry, stage_layouts

__all__ = ["AccessStage"]


class AccessStage(wiring.Component):
    """Accesses the CSRs that a word names; now it is known whether words of the tables are legal.

    The only stage that reads and writes them, so an instruction sees every CSR as those before it
    left it.

    Members
    -------
    before, after : registers of stages B and C. Combinational.
    leaves : the instruction moves on, so its CSR write takes effect.
    empty : no instruction is in a later stage; `drained`: and all their work is done.
    held : the instruction must wait for that.
    status, dirty, initial, saturated : see `CsrFile`.
    """

    def __init__(self, cfg: Config):
        self.cfg = cfg
        layouts = stage_layouts(cfg)
        super().__init__(
            {
                "before": In(layouts["b"]),
                "after": Out(layouts["c"]),
                "leaves": In(1),
                "empty": In(1),
                "drained": In(1),
                "held": Out(1),
                "status": In(isa.MXSTATUS_BITS),
                "dirty": In(1),
                "initial": In(1),
                **({"saturated": In(1)} if cfg.xuantie else {}),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.csr = csr = CsrFile(self.cfg)
        b, c = self.before, self.after
        carry(m, b, c)
        operand = b.data
        m.d.comb += [
            csr.status.eq(self.status),
            csr.dirty.eq(self.dirty),
            csr.initial.eq(self.initial),
            csr.select.eq(b.csr.select),
            csr.write.eq(self.leaves & b.csr.write),
            csr.write_data.eq(
                Mux(
                    b.csr.swap,
                    operand,
                    Mux(b.csr.clear, csr.value & ~operand, csr.value | operand),
                )
            ),
            self.held.eq((b.csr.after_all & ~self.drained) | (b.csr.after_decode & ~self.empty)),
        ]
        on = Signal()
        m.d.comb += [
            on.eq(~csr.off),
            c.illegal.eq(~(b.csr.allowed | (b.known & on))),
            c.wb.eq(b.wb & (b.csr.on | on)),
            c.data.eq(Mux(b.csr.on, csr.value, operand)),
            c.mmacc.eq(b.mmacc & on),
            c.load.eq(b.load & on),
            c.store.eq(b.store & on),
            c.move.eq(b.move & on),
            c.vector.eq(b.vector & on),
            c.fence.eq(b.fence & on),
            c.release.eq(b.release & on),
        ]

        def of_tile(name):
            f = isa.MXTILE[name]
            return csr.mxtile[f.lo : f.lo + f.width]

        m.d.comb += [
            c.mxcfg.eq(csr.mxcfg),
            c.reserved_tile.eq(of_tile("reserved").any()),
            # N = 0 stands for M.
            c.n.eq(Mux(of_tile("n") == 0, of_tile("m"), of_tile("n"))),
        ]
        for name in ("tiling", "guard4x4", "k", "m"):
            m.d.comb += c[name].eq(of_tile(name))
        if self.cfg.xuantie:
            self._registers(m, csr, on)
        return m

    def _registers(self, m: Module, csr: CsrFile, on: Signal) -> None:
        """Sizes of the front end `xuantie`: mcfg sets them and answers with them."""
        b, c = self.before, self.after
        config = Signal()
        m.d.comb += [
            config.eq(b.x_word.config & b.known & on),
            csr.new_size.eq(csr.xmsize),
            csr.saturated.eq(self.saturated),
            csr.resize.eq(self.leaves & config),
            c.x_size.eq(csr.xmsize),
            c.x_rounding.eq(csr.xmxrm),
            c.x_word.on.eq(b.x_word.on & b.known & on),
        ]
        with m.Switch(b.x_word.index):
            for name, part in isa.XMSIZE.items():
                with m.Case(isa.SizeIndex[name.upper()]):
                    m.d.comb += csr.new_size[part.lo : part.lo + part.width].eq(b.data)
            with m.Case(isa.SizeIndex.ALL):
                m.d.comb += csr.new_size.eq(b.data)
        with m.If(config):
            m.d.comb += c.data.eq(csr.new_size)
