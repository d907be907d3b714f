"""Split counter of the pointwise instructions."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..config import Config
from ..interfaces import mma_fields, mma_uop
from ..units.point_op import PointSource

__all__ = ["PointSplit"]


class PointSplit(wiring.Component):
    """Walk of a pointwise instruction over the stored words of its destination, one burst.

    A row that is the second operand is read with the first word and held, so that the destination
    may be its register.

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
        cfg, uop = self.cfg, self.uop
        fields = Signal(mma_fields(cfg), reset_less=True)
        block = Signal(max(1, cfg.blocks_log2))
        last = Signal()
        first_row = Signal(cfg.rows_log2)
        live = Signal(cfg.m_par)
        source = fields.op.point.source
        by_row = source == PointSource.ROW
        row_block = fields.op.point.row[cfg.m_par_log2 :]
        m.d.comb += [
            last.eq(block == cfg.x_blocks - 1),
            first_row.eq(block << cfg.m_par_log2),
            live.eq(Cat(first_row + row < fields.m_live for row in range(cfg.m_par))),
            uop.a.tile.eq(fields.a),
            uop.a.block.eq(block),
            uop.new_a.eq(1),
            uop.b_tile.eq(fields.b),
            uop.b_row.eq(first_row),
            uop.c.tile.eq(fields.c),
            uop.c.block.eq(block),
            uop.more.eq(~last),
            uop.op.eq(fields.op),
            uop.op.rows.eq(live),
            uop.op.zero_rows.eq(~live),
            uop.op.point.held.eq((by_row & (block != 0)) | (source == PointSource.SCALAR)),
            uop.op.point.last.eq(last),
            self.done.eq(self.step & last),
        ]
        with m.If(by_row):
            m.d.comb += uop.b_row.eq(row_block << cfg.m_par_log2)
        with m.If(self.step):
            m.d.sync += block.eq(block + 1)
        with m.If(self.start):
            m.d.sync += [fields.eq(self.fields), block.eq(0)]
        return m
