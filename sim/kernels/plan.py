"""How a GEMM is cut up: tilings, tile registers, blocks of C, steps along K, and their bound."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from hdl.config import Config
from hdl.isa import Tiling

from ..codes import row_bytes
from .problem import GemmProblem, Matrix

__all__ = ["TILINGS", "CGroup", "GemmPlan", "Load", "Pair", "Step", "Tiles", "plan_gemm"]

TILINGS: dict[str, Tiling] = {"1x1": Tiling.T1X1, "2x2": Tiling.T2X2}
"""Tilings that the kernels use, by name."""
LATER_TILINGS = ("1x4", "4x1", "4x4")

GROUP_STRIDE = 4
"""Tiles from one C group of a macro to the next (isa.md section 2)."""
MAX_TILES = 8
"""Most tiles that one load or store names."""


def _pow2_below(count: int) -> int:
    """The largest power of two that is at most `count`."""
    return 1 << count.bit_length() - 1


@dataclass(frozen=True)
class Tiles:
    """Which tile registers hold what, for one tiling.

    C takes the lower half of the file, A the third quarter, B the last, so that with 4 banks
    results and loads, and reads of B and of C, never meet in a bank.

    Parameters
    ----------
    tiling : the macro.
    result : tiles of one rows x rows result.
    c_sets : first tile of C for each set; blocks of C take turns.
    a_buffers, b_buffers : first tile of each buffer; steps along K take turns.
    deep : tiles of K that one buffer holds, more than 1 only in 1x1.
    """

    tiling: Tiling
    result: int
    c_sets: tuple[int, ...]
    a_buffers: tuple[int, ...]
    b_buffers: tuple[int, ...]
    deep: int

    @classmethod
    def of(cls, cfg: Config, tiling: Tiling, out_bits: int) -> Tiles:
        """The allocation. Raises ValueError where the file is too small for the macro."""
        name = next(key for key, value in TILINGS.items() if value == tiling)
        result = cfg.result_tiles(out_bits)
        c_tiles, quarter = cfg.tiles // 2, cfg.tiles // 4
        pairs = tiling.a_tiles * tiling.b_tiles
        if pairs == 1:
            c_sets = tuple(range(0, c_tiles - result + 1, result))
            deep = max(1, _pow2_below(max(1, quarter // 2))) if quarter else 1
            deep = min(deep, MAX_TILES)
        else:
            span = GROUP_STRIDE * pairs
            sets = GROUP_STRIDE // result if result <= GROUP_STRIDE else 0
            c_sets = tuple(
                first + result * index
                for first in range(0, c_tiles - span + 1, span)
                for index in range(sets)
            )
            deep = 1
        a_size, b_size = tiling.a_tiles * deep, tiling.b_tiles * deep
        a_buffers = tuple(range(c_tiles, c_tiles + quarter - a_size + 1, a_size))
        b_buffers = tuple(range(c_tiles + quarter, cfg.tiles - b_size + 1, b_size))
        if not (c_sets and a_buffers and b_buffers):
            raise ValueError(
                f"tiling {name} with {out_bits}-bit results does not fit in {cfg.tiles} tiles: "
                f"use a smaller tiling or more tiles"
            )
        return cls(tiling, result, c_sets, a_buffers, b_buffers, deep)


@dataclass(frozen=True)
class Load:
    """One mld of A or B: `n` tiles from `tile` on.

    Parameters
    ----------
    what : "a" or "b".
    tile, n, down : as in the instruction.
    k : elements of each tile's rows.
    rows : rows of A or B, all tiles together when `down`.
    row, column : first element in the matrix.
    """

    what: str
    tile: int
    n: int
    down: bool
    k: int
    rows: int
    row: int
    column: int


@dataclass(frozen=True)
class Pair:
    """One mmacc: tiles of A from `a` on, of B from `b` on, C from `c` on."""

    tiling: Tiling
    c: int
    a: int
    b: int
    k: int
    m: int
    n: int
    first: bool  # it is the first of its part of C


@dataclass(frozen=True)
class CGroup:
    """One mld or mst of C: `n` tiles from `tile` on, `rows` x `columns` from (`row`, `column`)."""

    tile: int
    n: int
    rows: int
    columns: int
    row: int
    column: int


@dataclass(frozen=True)
class Step:
    """A piece of K of one block of C: load its operands, multiply them, perhaps finish C.

    Parameters
    ----------
    c : first tile of the block of C.
    loads : what to load.
    c_loads : parts of C to load before, at the start of a block that accumulates.
    pairs : what to multiply, in order.
    stores : parts of C to store after, at the end of a block.
    """

    c: int
    loads: tuple[Load, ...]
    c_loads: tuple[CGroup, ...]
    pairs: tuple[Pair, ...]
    stores: tuple[CGroup, ...]


@lru_cache(maxsize=1 << 16)
def _words(matrix: Matrix, row: int, rows: int, column: int, columns: int, bus_bytes: int) -> int:
    """Beats that hold the rows of a part of a matrix, each row for itself."""
    size = row_bytes(columns, matrix.container)
    start, stride = matrix.address(row, column), matrix.stride
    if stride % bus_bytes == 0:
        return rows * ((start % bus_bytes + size - 1) // bus_bytes + 1)
    first = start % bus_bytes + np.arange(rows, dtype=np.int64) * (stride % bus_bytes)
    return int(np.sum((first + size - 1) // bus_bytes - first // bus_bytes + 1))


class GemmPlan:
    """A GEMM cut up for one tiling. Raises ValueError where the tiling does not fit.

    Parameters
    ----------
    cfg : the core.
    problem : what to compute, already checked.
    tiling : a name of `TILINGS`.

    Attributes
    ----------
    tiles : which tile registers hold what.
    lanes : elements of K of one mma.
    """

    def __init__(self, cfg: Config, problem: GemmProblem, tiling: str):
        self.cfg = cfg
        self.problem = problem
        self.name = tiling
        self.tiles = Tiles.of(cfg, TILINGS[tiling], problem.out.container)
        self.lanes = cfg.lanes(problem.fmt.container)

    # -- walking -------------------------------------------------------------------------------

    def _k_pieces(self) -> list[tuple[int, int, int]]:
        """(first element, tiles, elements of a tile) of each step along K, ascending."""
        pieces = []
        full, rest = divmod(self.problem.k, self.lanes)
        at = 0
        while at < full:
            count = min(self.tiles.deep, _pow2_below(full - at))
            pieces.append((at * self.lanes, count, self.lanes))
            at += count
        if rest:
            pieces.append((full * self.lanes, 1, rest))
        return pieces

    def _groups(self, base: int, row: int, rows: int, column: int, columns: int) -> list[CGroup]:
        """The loads or stores of one block of C whose first tile is `base`."""
        height, tiles = self.cfg.rows, self.tiles
        across = tiles.tiling.b_tiles
        groups = []
        for i in range(-(-rows // height)):
            part = min(height, rows - height * i)
            first = base + GROUP_STRIDE * across * i
            if columns > height and tiles.result < GROUP_STRIDE:
                # Narrow results: one instruction along the row makes whole lines.
                groups.append(
                    CGroup(first, tiles.result * across, part, columns, row + height * i, column)
                )
                continue
            for j in range(-(-columns // height)):
                groups.append(
                    CGroup(
                        first + GROUP_STRIDE * j,
                        tiles.result,
                        part,
                        min(height, columns - height * j),
                        row + height * i,
                        column + height * j,
                    )
                )
        return groups

    def _pairs(
        self, c: int, a: int, b: int, k: int, rows: int, columns: int, first: bool
    ) -> Iterator[Pair]:
        """The mmaccs of one K slice of a block: the macro, or 1x1 where it is not whole."""
        height, tiling = self.cfg.rows, self.tiles.tiling
        a_used, b_used = -(-rows // height), -(-columns // height)
        if (a_used, b_used) == (tiling.a_tiles, tiling.b_tiles):
            yield Pair(tiling, c, a, b, k, rows, columns, first)
            return
        for i in range(a_used):
            for j in range(b_used):
                yield Pair(
                    Tiling.T1X1,
                    c + GROUP_STRIDE * (i * tiling.b_tiles + j),
                    a + i,
                    b + j,
                    k,
                    min(height, rows - height * i),
                    min(height, columns - height * j),
                    first,
                )

    def steps(self) -> Iterator[Step]:
        """Every step, in order: blocks of C row by row, K ascending inside a block."""
        problem, tiles, height = self.problem, self.tiles, self.cfg.rows
        macro_rows = height * tiles.tiling.a_tiles
        macro_columns = height * tiles.tiling.b_tiles
        pieces = self._k_pieces()
        count = block = 0
        for row in range(0, problem.m, macro_rows):
            rows = min(macro_rows, problem.m - row)
            for column in range(0, problem.n, macro_columns):
                columns = min(macro_columns, problem.n - column)
                c = tiles.c_sets[block % len(tiles.c_sets)]
                groups = tuple(self._groups(c, row, rows, column, columns))
                block += 1
                for index, (at, deep, k) in enumerate(pieces):
                    a = tiles.a_buffers[count % len(tiles.a_buffers)]
                    b = tiles.b_buffers[count % len(tiles.b_buffers)]
                    count += 1
                    first = index == 0 and not problem.beta
                    pairs = [
                        pair
                        for t in range(deep)
                        for pair in self._pairs(c, a + t, b + t, k, rows, columns, first and t == 0)
                    ]
                    yield Step(
                        c=c,
                        loads=(
                            self._load("a", a, deep, k, row, rows, at),
                            self._load("b", b, deep, k, column, columns, at),
                        ),
                        c_loads=groups if problem.beta and index == 0 else (),
                        pairs=tuple(pairs),
                        stores=groups if index == len(pieces) - 1 else (),
                    )

    def _load(self, what: str, tile: int, deep: int, k: int, row: int, rows: int, at: int) -> Load:
        down = -(-rows // self.cfg.rows)
        return Load(what, tile, max(deep, down), down > 1, k, rows, row, at)

    def matrix(self, what: str) -> Matrix:
        """The matrix that a `Load` reads."""
        return self.problem.a if what == "a" else self.problem.b

    # -- bound ---------------------------------------------------------------------------------

    def _pair_cycles(self, pair: Pair) -> int:
        """Cycles of the MAC array for one mmacc at one uop a cycle (64-bit outputs: two)."""
        cfg = self.cfg
        per_uop = cfg.n_par // cfg.uop_columns(self.problem.out.container)

        def blocks(total: int, tiles: int, par: int) -> int:
            sizes = [min(cfg.rows, total - cfg.rows * t) for t in range(tiles)]
            return sum(-(-size // par) for size in sizes)

        tiling = pair.tiling
        return (
            blocks(pair.m, tiling.a_tiles, cfg.m_par)
            * blocks(pair.n, tiling.b_tiles, cfg.n_par)
            * per_uop
        )

    @cached_property
    def work(self) -> tuple[int, int, int]:
        """(uop cycles, read beats, write beats) that the plan needs at least."""
        bus = self.cfg.bus_bytes
        uops = reads = writes = 0
        for step in self.steps():
            for load in step.loads:
                columns = load.k if load.down else load.k * load.n
                matrix = self.matrix(load.what)
                reads += _words(matrix, load.row, load.rows, load.column, columns, bus)
            uops += sum(self._pair_cycles(pair) for pair in step.pairs)
            c = self.problem.c
            for groups, write in ((step.c_loads, False), (step.stores, True)):
                beats = sum(_words(c, g.row, g.rows, g.column, g.columns, bus) for g in groups)
                if write:
                    writes += beats
                else:
                    reads += beats
        return uops, reads, writes

    @property
    def bound(self) -> int:
        """Cycles below which no schedule of this plan can get (performance.md section 1)."""
        return max(self.work)


def plan_gemm(cfg: Config, problem: GemmProblem, tiling: str = "auto") -> GemmPlan:
    """The plan for a tiling, or the one with the lowest bound for "auto".

    Raises `ValueError` for an unknown tiling, one that is not built yet or does not fit.
    """
    if tiling in TILINGS:
        return GemmPlan(cfg, problem, tiling)
    if tiling in LATER_TILINGS:
        raise ValueError(f"tiling {tiling} is not built yet: use auto, {' or '.join(TILINGS)}")
    if tiling != "auto":
        raise ValueError(f"unknown tiling {tiling!r}: use auto, {' or '.join(TILINGS)}")
    plans = []
    for name in TILINGS:
        try:
            plans.append(GemmPlan(cfg, problem, name))
        except ValueError:
            continue  # too few tiles for this macro
    if not plans:
        raise ValueError(f"a GEMM does not fit in {cfg.tiles} tiles: use more tiles")
    return min(plans, key=lambda plan: plan.bound) if len(plans) > 1 else plans[0]
