"""Squares of a group of elements: what the transposing move works on (pure Python).

A group is rows x rows elements, its columns cut over neighbouring tiles. It falls into squares of
whole stored words: as many rows as a word has rows or elements along a row, whichever is more.
Transposing swaps square (i, j) with (j, i) and transposes both, so a pair of squares is read into
the move unit's buffer before either is written, and a group may be transposed in place.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..config import Config

__all__ = ["SIZES_LOG2", "Squares", "buffer_words", "second_slot", "square_words"]

SIZES_LOG2 = range(4)
"""Element sizes of the moves, log2 of bytes."""


@dataclass(frozen=True)
class Squares:
    """The squares of groups of one element size.

    Parameters
    ----------
    size : bytes of an element.
    columns : elements of a row of one tile that belong to the group.
    side : rows and columns of a square.
    count : squares along a side of the group.
    blocks, tiles : stored words of a square, downwards and across; one of them is 1.
    """

    size: int
    columns: int
    side: int
    count: int
    blocks: int
    tiles: int

    @classmethod
    def of(cls, cfg: Config, size_log2: int) -> Squares:
        """Squares of elements of 1 << `size_log2` bytes."""
        size = 1 << size_log2
        columns = min(cfg.row_bytes // size, cfg.rows)
        side = max(cfg.m_par, columns)
        return cls(
            size, columns, side, cfg.rows // side, blocks=side // cfg.m_par, tiles=side // columns
        )

    @property
    def words(self) -> int:
        """Stored words of a square."""
        return self.blocks * self.tiles


def square_words(cfg: Config) -> int:
    """Most stored words of a square."""
    return max(Squares.of(cfg, size).words for size in SIZES_LOG2)


def second_slot(cfg: Config) -> int:
    """Slot of the move unit's buffer from which on the second square of a pair lies."""
    squares = [Squares.of(cfg, size) for size in SIZES_LOG2]
    return max((s.words for s in squares if s.count > 1), default=0)


def buffer_words(cfg: Config) -> int:
    """Stored words that the move unit's buffer holds: a square, or a pair of them."""
    return max(square_words(cfg), 2 * second_slot(cfg))
