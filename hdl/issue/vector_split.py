"""Split counter of the vector mode."""

from __future__ import annotations

from amaranth.hdl import C, Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..config import Config
from ..interfaces import mma_fields, mma_uop

__all__ = ["VectorSplit"]


class VectorSplit(wiring.Component):
    """Walk of an element-wise operation: words of z fastest, then row blocks.

    The words of z that belong to one block of x and y are one burst: they are computed from one
    read of x, and y is read for the last time before a z that lies on it is written.

    Members
    -------
    start, fields, step, uop, done : as for `MmaSplit`.

    Throughput: one uop a cycle.
    """

    def __init__(self, cfg: Config):
        self.cfg = cfg
        super().__init__(
            {
                "start": In(1),
                "fields": In(mma_fields(cfg)),
                "step": In(1),
                "uop": Out(mma_uop(cfg)),
                "done": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        cfg = self.cfg
        uop = self.uop
        fields = Signal(mma_fields(cfg), reset_less=True)
        block = Signal(max(1, cfg.blocks_log2))
        part = Signal(3)
        left = Signal(3)  # parts of this block after this one
        block_last = Signal()
        in_block = fields.m_last[: cfg.m_par_log2]
        rows = Cat(~block_last | (C(row, cfg.m_par) <= in_block) for row in range(cfg.m_par))
        m.d.comb += [
            block_last.eq(block == fields.m_last[cfg.m_par_log2 :]),
            uop.a.tile.eq(fields.a),
            uop.a.block.eq(block),
            uop.new_a.eq(left == fields.part_last),
            uop.b_tile.eq(fields.b),
            uop.b_row.eq(block << cfg.m_par_log2),
            uop.c.tile.eq(fields.c + part),
            uop.c.block.eq(block),
            uop.new_c.eq(1),
            uop.more.eq(left != 0),
            uop.op.eq(fields.op),
            uop.op.k.eq(Mux(part == fields.part_last, fields.k_last, fields.op.k)),
            uop.op.rows.eq(rows),
            uop.op.vector.eighth.eq(part * fields.part_step),
            self.done.eq(self.step & (left == 0) & block_last),
        ]
        with m.If(self.step):
            m.d.sync += [
                part.eq(Mux(part == fields.part_last, 0, part + 1)),
                left.eq(left - 1),
            ]
            with m.If(left == 0):
                m.d.sync += [
                    block.eq(block + 1),
                    part.eq(fields.part_first),
                    left.eq(fields.part_last),
                ]
        with m.If(self.start):
            m.d.sync += [
                fields.eq(self.fields),
                block.eq(0),
                part.eq(self.fields.part_first),
                left.eq(self.fields.part_last),
            ]
        return m
