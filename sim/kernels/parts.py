"""What a planned GEMM is made of: loads, turns, products and moves of C, one step of K each."""

from __future__ import annotations

from dataclasses import dataclass

from .tiles import Macro

__all__ = ["CGroup", "Feed", "Load", "Pair", "Part", "Step"]


@dataclass(frozen=True)
class Load:
    """One mld of A or B: `n` tiles from `tile` on.

    Parameters
    ----------
    what : "a" or "b".
    tile, n, down : as in the instruction.
    k : elements of each tile's rows.
    rows : rows of the matrix, all tiles together when `down`.
    row, column : first element in the matrix as it lies in memory.
    """

    what: str
    tile: int
    n: int
    down: bool
    k: int
    rows: int
    row: int
    column: int

    @property
    def columns(self) -> int:
        """Elements along a row of the matrix."""
        return self.k if self.down else self.k * self.n


@dataclass(frozen=True)
class Feed:
    """One operand for the slices of K that one of its buffers holds.

    Parameters
    ----------
    loads : what to load, in order.
    turns : first tile of each group that is then transposed where it is.
    """

    loads: tuple[Load, ...]
    turns: tuple[int, ...]


@dataclass(frozen=True)
class Part:
    """One macro of a block of C: number `i` down and `j` across, `m` x `n` results from `c` on."""

    macro: Macro
    c: int
    i: int
    j: int
    m: int
    n: int


@dataclass(frozen=True)
class Pair:
    """One mmacc: tiles of A from `a` on, of B from `b` on, C from `c` on.

    `m` and `n` count the rows of all tiles of A, of B, together.
    """

    macro: Macro
    c: int
    a: int
    b: int
    k: int
    m: int
    n: int
    first: bool  # it is the first of its part of C


@dataclass(frozen=True)
class CGroup:
    """One mld or mst of C: `n` tiles from `tile` on, `rows` x `columns` from (`row`, `column`).

    The tiles hold `groups` results side by side; with `packed`, as 4x4 leaves them.
    """

    tile: int
    n: int
    groups: int
    packed: bool
    rows: int
    columns: int
    row: int
    column: int


@dataclass(frozen=True)
class Step:
    """One slice of K of one block of C: as many elements as an mma takes.

    Parameters
    ----------
    c : first tile of the block of C.
    a, b : the operands' next buffers, where this step is the first that needs them.
    a_done, b_done : no later step needs the buffer in use.
    c_loads : parts of C to load before, at the start of a block that accumulates.
    pairs : what to multiply, in order.
    stores : parts of C to store after, at the end of a block.
    """

    c: int
    a: Feed | None
    b: Feed | None
    a_done: bool
    b_done: bool
    c_loads: tuple[CGroup, ...]
    pairs: tuple[Pair, ...]
    stores: tuple[CGroup, ...]

    @property
    def feeds(self) -> tuple[Feed, ...]:
        """Those of A and B that start here."""
        return tuple(feed for feed in (self.a, self.b) if feed is not None)
