"""Split counter of the moves."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..config import Config
from ..interfaces import bits_for, move_fields, move_uop
from ..isa import MoveOp
from ..units.squares import SIZES_LOG2, Squares, second_slot, square_words

__all__ = ["TILE_BY_TILE", "MoveSplit"]

TILE_BY_TILE = (MoveOp.MMOV, MoveOp.MZERO, MoveOp.MMOV_OTHER)
"""Moves that are done with a tile before they need the next."""


class MoveSplit(wiring.Component):
    """Walk of a move over stored words.

    Whole tiles are copied word by word. A row is read, then written to every word. A group to be
    transposed is walked by pairs of squares (`units.squares`): read the one, read the other, write
    the one's transpose in the other's place, write the other's.

    Members
    -------
    start, fields, step, uop, done : as for `MmaSplit`.
    free : after this uop its tiles are not needed any more.
    whole : the move needs all its tiles from its first uop to its last, and no other move between.
    """

    def __init__(self, cfg: Config):
        self.cfg = cfg
        super().__init__(
            {
                "start": In(1),
                "fields": In(move_fields(cfg)),
                "step": In(1),
                "uop": Out(move_uop(cfg)),
                "free": Out(1),
                "done": Out(1),
                "whole": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        cfg = self.cfg
        uop = self.uop
        fields = Signal(move_fields(cfg), reset_less=True)
        tile = Signal(cfg.tiles_log2)
        block = Signal(max(1, cfg.blocks_log2))
        reading = Signal()  # rows and transposes: into the buffer
        last = Signal()
        block_last = block == cfg.blocks - 1
        if cfg.xuantie:
            block_last = block == Mux(fields.registers, cfg.x_blocks - 1, cfg.blocks - 1)
        word_bytes_log2 = cfg.m_par_log2 + cfg.row_bytes_log2
        transposes = fields.op == MoveOp.MTRANS

        # -- common to all ---------------------------------------------------------------------
        by_tile = Signal()
        with m.Switch(fields.op), m.Case(*TILE_BY_TILE):
            m.d.comb += by_tile.eq(1)
        m.d.comb += [
            uop.dst.tile.eq(fields.dst + tile),
            uop.src.tile.eq(fields.src + tile),
            uop.dst.block.eq(block),
            uop.src.block.eq(block),
            uop.op.eq(fields.op),
            uop.size.eq(fields.size),
            uop.at.eq(fields.at[:word_bytes_log2]),
            uop.more.eq(~by_tile & ~last),
            last.eq(block_last & (tile == fields.tiles)),
            self.whole.eq(~by_tile),
            self.free.eq(Mux(by_tile, block_last, last)),
            self.done.eq(self.step & last),
        ]
        with m.Switch(fields.op):
            with m.Case(MoveOp.MMOV, MoveOp.MMOV_OTHER, MoveOp.COLUMN):
                m.d.comb += [uop.read.eq(1), uop.write.eq(1)]
            with m.Case(MoveOp.MZERO, MoveOp.SCALAR):
                m.d.comb += uop.write.eq(1)
            with m.Case(MoveOp.ROW, MoveOp.MTRANS):
                m.d.comb += [uop.read.eq(reading), uop.write.eq(~reading)]
                with m.If(~transposes):
                    m.d.comb += [
                        uop.src.block.eq(fields.at[word_bytes_log2:]),
                        last.eq(~reading & block_last),
                    ]
            with m.Case(MoveOp.ELEMENT):
                m.d.comb += [
                    uop.read.eq(1),
                    uop.src.block.eq(fields.at[word_bytes_log2:]),
                    last.eq(1),
                ]
        with m.If(self.step & ~transposes):
            m.d.sync += reading.eq(0)
            with m.If(~reading):
                m.d.sync += block.eq(block + 1)
                with m.If(block_last):
                    m.d.sync += [block.eq(0), tile.eq(tile + 1)]
        self._transpose(m, fields, reading, last)
        with m.If(self.start):
            m.d.sync += [
                fields.eq(self.fields),
                tile.eq(0),
                block.eq(0),
                reading.eq((self.fields.op == MoveOp.ROW) | (self.fields.op == MoveOp.MTRANS)),
            ]
        return m

    def _transpose(self, m: Module, fields: Signal, reading: Signal, last: Signal) -> None:
        """Walk of the pairs of squares."""
        cfg, uop = self.cfg, self.uop
        most = max(Squares.of(cfg, size).count for size in SIZES_LOG2)
        # Of the pair (i, j), i up to j, the square that this uop is about: (i, j) is read first and
        # written second.
        row = Signal(bits_for(most))
        column = Signal(bits_for(most))
        word = Signal(bits_for(square_words(cfg)))  # of the square
        second = Signal()  # the other square of the pair
        square_last = Signal.like(row)
        word_last = Signal.like(word)
        tile = Signal(range(2 * cfg.row_bytes), name="square_tile")
        block = Signal(max(1, cfg.blocks_log2), name="square_block")
        slot = Signal.like(uop.slot)
        with m.Switch(fields.size):
            for size in SIZES_LOG2:
                squares = Squares.of(cfg, size)
                down = squares.blocks > 1
                at = word[: squares.words.bit_length() - 1]
                with m.Case(size):
                    m.d.comb += [
                        square_last.eq(squares.count - 1),
                        word_last.eq(squares.words - 1),
                        block.eq(Cat(at, row) if down else row),
                        tile.eq(column if down else Cat(at, column)),
                        slot.eq(Mux(second, second_slot(cfg), 0) + word),
                    ]
        pair_last = (row == column) | second
        with m.If(fields.op == MoveOp.MTRANS):
            m.d.comb += [
                uop.src.tile.eq(fields.src + tile),
                uop.dst.tile.eq(fields.dst + tile),
                uop.src.block.eq(block),
                uop.dst.block.eq(block),
                uop.slot.eq(slot),
                uop.pick.eq(word),
                uop.shift.eq(~reading & (word == word_last) & ~pair_last),
                last.eq(~reading & (word == word_last) & (row == column) & (row == square_last)),
            ]
            with m.If(self.step):
                m.d.sync += word.eq(word + 1)
                with m.If(word == word_last):
                    m.d.sync += [word.eq(0), second.eq(~pair_last)]
                    with m.If(~pair_last):
                        m.d.sync += [row.eq(column), column.eq(row)]
                    with m.Else():
                        m.d.sync += reading.eq(~reading)
                        with m.If(~reading):
                            m.d.sync += column.eq(column + 1)
                            with m.If(column == square_last):
                                m.d.sync += [row.eq(row + 1), column.eq(row + 1)]
        with m.If(self.start):
            m.d.sync += [row.eq(0), column.eq(0), word.eq(0), second.eq(0)]
