"""What a move reads and writes, and whether its index exists."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Signal
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
    index : low bits of the index; `index_far`: it has others.
    op, size : the operation; log2 of tiles or of element bytes.
    tiles : tiles of a source or destination, as bits; `last`: the last one.
    at : byte of the source tile at which the row, column or element starts.
    source, destination : it has one.
    may_equal : source and destination may be the same tiles, but not overlap partly.
    bad : the index does not exist.
    """

    def __init__(self, cfg: Config):
        self.cfg = cfg
        at_bits = cfg.rows_log2 + cfg.row_bytes_log2
        super().__init__(
            {
                "f7": In(isa.FUNCT7.width),
                "index": In(at_bits),
                "index_far": In(1),
                "op": Out(isa.MOVE["op"].width),
                "size": Out(isa.MOVE["size"].width),
                "tiles": Out(cfg.tiles),
                "last": Out(isa.MAX_LOG2_TILES),
                "at": Out(at_bits),
                "source": Out(1),
                "destination": Out(1),
                "may_equal": Out(1),
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

        log2 = Signal(3)  # of the tiles; more than there are is found by the caller
        with m.Switch(op):
            with m.Case(*TILE_BY_TILE):
                m.d.comb += log2.eq(size)
            with m.Case(isa.MoveOp.MTRANS), m.Switch(size):
                for size_log2 in SIZES_LOG2:
                    with m.Case(size_log2):
                        m.d.comb += log2.eq(cfg.result_tiles(8 << size_log2).bit_length() - 1)
        m.d.comb += [
            # Those below 2**log2, and the last of these, without an adder.
            self.tiles.eq(Cat(log2 >= tile.bit_length() for tile in range(cfg.tiles))),
            self.last.eq(Cat(log2 > place for place in range(len(self.last)))),
            self.source.eq((op != isa.MoveOp.MZERO) & (op != isa.MoveOp.SCALAR)),
            self.destination.eq(op != isa.MoveOp.ELEMENT),
            self.may_equal.eq((op == isa.MoveOp.MMOV) | (op == isa.MoveOp.MTRANS)),
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
            self.bad.eq(indexed & (self.index_far | (self.index >> limit).any())),
        ]
        return m
