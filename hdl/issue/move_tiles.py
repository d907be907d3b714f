"""Which tiles a move reads and writes, and whether they and its index exist."""

from __future__ import annotations

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from .. import isa
from ..config import Config
from ..units.squares import SIZES_LOG2
from .move_split import TILE_BY_TILE

__all__ = ["MoveTiles"]


class MoveTiles(wiring.Component):
    """Takes a move's fields apart (isa.md section 2, moves); combinational.

    Members
    -------
    f7 : of the instruction.
    dst, src : tiles, as the instruction has them.
    index : low bits of the index; `index_far`: it has others.
    op, size : the operation; log2 of tiles or of element bytes.
    tiles : tiles of a source or destination, less one.
    at : byte of the source tile at which the row, column or element starts.
    reads, writes : tiles.
    bad : a tile or the index does not exist, or source and destination overlap partly.
    """

    def __init__(self, cfg: Config):
        self.cfg = cfg
        at_bits = cfg.rows_log2 + cfg.row_bytes_log2
        super().__init__(
            {
                "f7": In(isa.FUNCT7.width),
                "dst": In(5),
                "src": In(5),
                "index": In(at_bits),
                "index_far": In(1),
                "op": Out(isa.MOVE["op"].width),
                "size": Out(isa.MOVE["size"].width),
                "tiles": Out(cfg.tiles_log2),
                "at": Out(at_bits),
                "reads": Out(cfg.tiles),
                "writes": Out(cfg.tiles),
                "bad": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        cfg = self.cfg
        op, size = self.op, self.size
        for name in ("op", "size"):
            field = isa.MOVE[name]
            m.d.comb += getattr(self, name).eq(self.f7[field.lo : field.lo + field.width])

        count = Signal(isa.MAX_LOG2_TILES + 1, init=1)
        with m.Switch(op):
            with m.Case(*TILE_BY_TILE):
                m.d.comb += count.eq(1 << size)
            with m.Case(isa.MoveOp.MTRANS), m.Switch(size):
                for log2 in SIZES_LOG2:
                    with m.Case(log2):
                        m.d.comb += count.eq(cfg.result_tiles(8 << log2))
            with m.Default():
                m.d.comb += count.eq(1)
        has_source = Signal()
        has_destination = Signal()
        may_overlap = Signal()  # in whole or not at all
        m.d.comb += [
            has_source.eq((op != isa.MoveOp.MZERO) & (op != isa.MoveOp.SCALAR)),
            has_destination.eq(op != isa.MoveOp.ELEMENT),
            may_overlap.eq((op == isa.MoveOp.MMOV) | (op == isa.MoveOp.MTRANS)),
        ]

        few = Signal(cfg.tiles)
        m.d.comb += [
            few.eq((1 << count) - 1),
            self.writes.eq(Mux(has_destination, few << self.dst, 0)),
            self.reads.eq(Mux(has_source, few << self.src, 0)),
            self.tiles.eq(count - 1),
        ]

        # The index: rows, elements of a row, elements of a tile.
        at_bits = len(self.at)
        shift = Signal(range(at_bits + 1))
        limit = Signal(range(at_bits + 1))  # log2 of the indices there are
        indexed = Signal()
        with m.Switch(op):
            with m.Case(isa.MoveOp.ROW):
                m.d.comb += [indexed.eq(1), shift.eq(cfg.row_bytes_log2), limit.eq(cfg.rows_log2)]
            with m.Case(isa.MoveOp.COLUMN):
                m.d.comb += [indexed.eq(1), shift.eq(size), limit.eq(cfg.row_bytes_log2 - size)]
            with m.Case(isa.MoveOp.ELEMENT):
                m.d.comb += [indexed.eq(1), shift.eq(size), limit.eq(at_bits - size)]
        m.d.comb += [
            self.at.eq(self.index << shift),
            self.bad.eq(
                (has_destination & (self.dst + count > cfg.tiles))
                | (has_source & (self.src + count > cfg.tiles))
                | (may_overlap & (self.dst != self.src) & (self.reads & self.writes).any())
                | (indexed & (self.index_far | (self.index >> limit).any()))
            ),
        ]
        return m
