"""How a GEMM is cut up: blocks of C, steps along K, and their bound."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from hdl.config import Config

from ..codes import row_bytes
from .problem import GemmProblem, Matrix
from .tiles import GROUP_STRIDE, MAX_TILES, TILINGS, Macro, Tiles, pow2_above, pow2_below

__all__ = ["CGroup", "GemmPlan", "Load", "Pair", "Step", "plan_gemm"]


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
    tiling : a name of `tiles.TILINGS`.

    Attributes
    ----------
    tiles : which tile registers hold what.
    refused : 4x4 was asked for, but the guard will not grant it.
    name : the tiling that the core will run.
    lanes : elements of K of one mma.
    """

    def __init__(self, cfg: Config, problem: GemmProblem, tiling: str):
        self.cfg = cfg
        self.problem = problem
        asked = TILINGS[tiling]
        try:
            self.tiles = Tiles.of(cfg, asked, problem.out.container)
        except ValueError:
            if not asked.guard4x4:
                raise
            # The guard will refuse it: what it falls back to, still asking.
            self.tiles = Tiles.of(cfg, TILINGS["2x2"], problem.out.container)
        self.refused = asked.guard4x4 and not self.tiles.macro.guard4x4
        self.name = self.tiles.macro.name
        self.lanes = cfg.lanes(problem.fmt.container)

    # -- walking -------------------------------------------------------------------------------

    def _k_pieces(self) -> list[tuple[int, int, int]]:
        """(first element, tiles, elements of a tile) of each step along K, ascending."""
        pieces = []
        full, rest = divmod(self.problem.k, self.lanes)
        at = 0
        while at < full:
            count = min(self.tiles.deep, pow2_below(full - at))
            pieces.append((at * self.lanes, count, self.lanes))
            at += count
        if rest:
            pieces.append((full * self.lanes, 1, rest))
        return pieces

    def _macro(self, rows: int, columns: int) -> Macro:
        """The macro for a block of C: the plan's, or a smaller one where that is not filled.

        M and N up to a tile's rows would mean as many in every tile of a larger one.
        """
        height, whole = self.cfg.rows, self.tiles.macro
        a_tiles = 1 if rows <= height else whole.a_tiles
        b_tiles = 1 if columns <= height else whole.b_tiles
        if (a_tiles, b_tiles) == (whole.a_tiles, whole.b_tiles):
            return whole
        if a_tiles == b_tiles == 1:
            return TILINGS["1x1"]
        return TILINGS["1x4" if a_tiles == 1 else "4x1"]

    def _groups(
        self, macro: Macro, base: int, row: int, rows: int, column: int, columns: int
    ) -> list[CGroup]:
        """The loads or stores of one block of C whose first tile is `base`."""
        height, result = self.cfg.rows, self.tiles.result
        stride, packed = macro.group_stride(result), macro.guard4x4
        across = -(-columns // height)
        joined = pow2_above(across)
        groups = []
        for i in range(-(-rows // height)):
            part = min(height, rows - height * i)
            first = base + stride * macro.b_tiles * i
            place = row + height * i
            if across > 1 and result < GROUP_STRIDE and result * joined <= MAX_TILES:
                # Narrow results: one instruction along the row makes whole lines.
                groups.append(
                    CGroup(first, result * joined, joined, packed, part, columns, place, column)
                )
                continue
            for j in range(across):
                wide = min(height, columns - height * j)
                tile, left = first + stride * j, column + height * j
                groups.append(CGroup(tile, result, 1, packed, part, wide, place, left))
        return groups

    def steps(self) -> Iterator[Step]:
        """Every step, in order: blocks of C row by row, K ascending inside a block."""
        problem, tiles, height = self.problem, self.tiles, self.cfg.rows
        macro_rows = height * tiles.macro.a_tiles
        macro_columns = height * tiles.macro.b_tiles
        pieces = self._k_pieces()
        count = block = 0
        for row in range(0, problem.m, macro_rows):
            rows = min(macro_rows, problem.m - row)
            for column in range(0, problem.n, macro_columns):
                columns = min(macro_columns, problem.n - column)
                c = tiles.c_sets[block % len(tiles.c_sets)]
                macro = self._macro(rows, columns)
                groups = tuple(self._groups(macro, c, row, rows, column, columns))
                block += 1
                for index, (at, deep, k) in enumerate(pieces):
                    a = tiles.a_buffers[count % len(tiles.a_buffers)]
                    b = tiles.b_buffers[count % len(tiles.b_buffers)]
                    count += 1
                    first = index == 0 and not problem.beta
                    pairs = [
                        Pair(macro, c, a + t, b + t, k, rows, columns, first and t == 0)
                        for t in range(deep)
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
        down = pow2_above(-(-rows // self.cfg.rows))
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
            sizes = [min(cfg.rows, max(0, total - cfg.rows * t)) for t in range(tiles)]
            return sum(-(-size // par) for size in sizes)

        macro = pair.macro
        return (
            blocks(pair.m, macro.a_tiles, cfg.m_par)
            * blocks(pair.n, macro.b_tiles, cfg.n_par)
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

    A 4x4 that the core's guard refuses is planned as the 2x2 that will run. Raises `ValueError`
    for a tiling that is unknown or does not fit.
    """
    if tiling in TILINGS:
        return GemmPlan(cfg, problem, tiling)
    if tiling != "auto":
        raise ValueError(f"unknown tiling {tiling!r}: use auto, {' or '.join(TILINGS)}")
    plans = []
    for name, macro in TILINGS.items():
        # A macro with one tile of A pays only where there is no second one; likewise B.
        if macro.pairs == 4 and (
            (macro.a_tiles == 1 and problem.m > cfg.rows)
            or (macro.b_tiles == 1 and problem.n > cfg.rows)
        ):
            continue
        try:
            plan = GemmPlan(cfg, problem, name)
        except ValueError:
            continue  # too few tiles for this macro
        if not plan.refused:
            plans.append(plan)
    if not plans:
        raise ValueError(f"a GEMM does not fit in {cfg.tiles} tiles: use more tiles")
    return min(plans, key=lambda plan: plan.bound) if len(plans) > 1 else plans[0]
