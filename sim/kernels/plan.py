"""How a GEMM is cut up: blocks of C, slices of K, and the bound of the whole."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property, lru_cache
from itertools import cycle

import numpy as np

from hdl.config import Config

from ..codes import row_bytes
from .parts import CGroup, Feed, Load, Pair, Part, Step
from .problem import GemmProblem, Matrix
from .tiles import BLOCKS, GROUP_STRIDE, MAX_TILES, TILINGS, Macro, Tiles, pow2_above, pow2_below

__all__ = ["GemmPlan", "plan_gemm"]


def _words(matrix: Matrix, row: int, rows: int, column: int, columns: int, bus_bytes: int) -> int:
    """Beats that hold the rows of a part of a matrix, each row for itself."""
    size = row_bytes(columns, matrix.container)
    start = matrix.address(row, column) % bus_bytes
    return _beats(start, matrix.stride % bus_bytes, rows, size, bus_bytes)


@lru_cache(maxsize=1 << 16)
def _beats(start: int, stride: int, rows: int, size: int, bus_bytes: int) -> int:
    """Beats of rows of `size` bytes; where the first starts in a beat, and how the others move."""
    if not stride:
        return rows * ((start + size - 1) // bus_bytes + 1)
    first = start + np.arange(rows, dtype=np.int64) * stride
    return int(np.sum((first + size - 1) // bus_bytes - first // bus_bytes + 1))


class GemmPlan:
    """A GEMM cut up for one tiling. Raises ValueError where the tiling does not fit.

    Parameters
    ----------
    cfg : the core.
    problem : what to compute, already checked.
    tiling : a name of `tiles.BLOCKS`.

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

        def allocate(name: str) -> Tiles:
            macro, down, across = BLOCKS[name]
            return Tiles.of(
                cfg,
                macro,
                problem.out.container,
                down=down,
                across=across,
                in_bits=problem.fmt.container,
                transposed=problem.transposed,
            )

        self.name, self.refused = tiling, False
        try:
            self.tiles = allocate(tiling)
        except ValueError:
            if tiling != "4x4":
                raise
            # The guard will refuse it: what it falls back to, still asking.
            self.tiles = allocate("2x2")
            self.name = "2x2"
            self.refused = self.tiles.macro is TILINGS["2x2"]
        self.lanes = self.tiles.lanes

    @property
    def block(self) -> tuple[int, int, int]:
        """Mb, Nb, Kb of seed 000 section 13.B: rows and columns of C kept in tiles, K of a step."""
        height = self.cfg.rows
        return height * self.tiles.a.tiles, height * self.tiles.b.tiles, self.lanes

    # -- walking -------------------------------------------------------------------------------

    def _macro(self, rows: int, columns: int) -> Macro:
        """The macro for a part of C: the plan's, or a smaller one where that is not filled.

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
        """The loads or stores of one part of C whose first tile is `base`."""
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

    def _blocks(self) -> Iterator[tuple[int, int, int, int]]:
        """First row, rows, first column, columns of each block of C, row by row."""
        problem, (deep, wide, _) = self.problem, self.block
        for row in range(0, problem.m, deep):
            for column in range(0, problem.n, wide):
                yield row, min(deep, problem.m - row), column, min(wide, problem.n - column)

    def _parts(self, c: int, rows: int, columns: int) -> Iterator[Part]:
        """The macros of a block of `rows` x `columns` that are not empty, row by row."""
        tiles, height = self.tiles, self.cfg.rows
        down, across = height * tiles.macro.a_tiles, height * tiles.macro.b_tiles
        for index, offset in enumerate(tiles.c_parts):
            i, j = divmod(index, tiles.across)
            m, n = min(down, rows - down * i), min(across, columns - across * j)
            if m > 0 and n > 0:
                yield Part(self._macro(m, n), c + offset, i, j, m, n)

    def steps(self) -> Iterator[Step]:
        """Every step, in order: block after block of C, K ascending inside a block."""
        problem, tiles, lanes, height = self.problem, self.tiles, self.lanes, self.cfg.rows
        macro = tiles.macro
        slices = -(-problem.k // lanes)
        a, b = cycle(tiles.a_buffers), cycle(tiles.b_buffers)
        for count, (row, rows, column, columns) in enumerate(self._blocks()):
            c = tiles.c_sets[count % len(tiles.c_sets)]
            parts = tuple(self._parts(c, rows, columns))
            groups = []
            for part in parts:
                at = row + height * macro.a_tiles * part.i, column + height * macro.b_tiles * part.j
                groups += self._groups(part.macro, part.c, at[0], part.m, at[1], part.n)
            for index in range(slices):
                k = min(lanes, problem.k - lanes * index)
                last = index == slices - 1
                a_at, b_at = index % tiles.a.deep, index % tiles.b.deep
                if a_at == 0:
                    a_tile = next(a)
                if b_at == 0:
                    b_tile = next(b)
                pairs = tuple(
                    Pair(
                        macro=part.macro,
                        c=part.c,
                        a=a_tile + macro.a_tiles * tiles.a.deep * part.i + a_at,
                        b=b_tile + macro.b_tiles * tiles.b.deep * part.j + b_at,
                        k=k,
                        m=part.m,
                        n=part.n,
                        first=index == 0 and not problem.beta,
                    )
                    for part in parts
                )
                yield Step(
                    c=c,
                    a=None if a_at else self._feed("a", a_tile, row, rows, lanes * index),
                    b=None if b_at else self._feed("b", b_tile, column, columns, lanes * index),
                    a_done=last or a_at == tiles.a.deep - 1,
                    b_done=last or b_at == tiles.b.deep - 1,
                    c_loads=tuple(groups) if problem.beta and index == 0 else (),
                    pairs=pairs,
                    stores=tuple(groups) if last else (),
                )

    def _feed(self, what: str, tile: int, row: int, rows: int, at: int) -> Feed:
        """How rows of op(A), or columns of op(B), come to the buffer that starts with `tile`.

        `at` is the first element of K; the buffer takes as many as it is deep.
        """
        share = self.tiles.a if what == "a" else self.tiles.b
        k = min(self.lanes * share.deep, self.problem.k - at)
        height = self.cfg.rows
        if share.group:
            loads = self._along(what, tile, at, k, row, rows)
            turns = tuple(tile + share.group * i for i in range(-(-rows // height)))
            return Feed(tuple(loads), turns)
        if share.deep == 1:
            down = pow2_above(-(-rows // height))
            return Feed((Load(what, tile, down, down > 1, k, rows, row, at),), ())
        loads = []
        for i in range(-(-rows // height)):
            part = min(height, rows - height * i)
            loads += self._along(what, tile + share.deep * i, row + height * i, part, at, k)
        return Feed(tuple(loads), ())

    def _along(
        self, what: str, tile: int, row: int, rows: int, column: int, columns: int
    ) -> list[Load]:
        """Loads of `columns` elements along up to a tile's rows into neighbouring tiles."""
        whole = self.lanes == self.cfg.lanes(self.problem.fmt.container)
        full, rest = divmod(columns, self.lanes)
        loads, at = [], 0
        while at < full:
            # Several tiles of one load lie a whole tile row apart.
            n = min(MAX_TILES, pow2_below(full - at)) if whole else 1
            place = column + self.lanes * at
            loads.append(Load(what, tile + at, n, False, self.lanes, rows, row, place))
            at += n
        if rest:
            place = column + self.lanes * full
            loads.append(Load(what, tile + full, 1, False, rest, rows, row, place))
        return loads

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
    def _totals(self) -> tuple[int, int, int, int]:
        """Uop cycles, read beats, write beats, words that transposes read and write."""
        bus, c = self.cfg.bus_bytes, self.problem.c
        uops = reads = writes = turned = 0
        for step in self.steps():
            for feed, share in ((step.a, self.tiles.a), (step.b, self.tiles.b)):
                if feed is None:
                    continue
                turned += len(feed.turns) * share.group * self.cfg.blocks
                for load in feed.loads:
                    matrix = self.matrix(load.what)
                    reads += _words(matrix, load.row, load.rows, load.column, load.columns, bus)
            uops += sum(self._pair_cycles(pair) for pair in step.pairs)
            for g in step.c_loads:
                reads += _words(c, g.row, g.rows, g.column, g.columns, bus)
            for g in step.stores:
                writes += _words(c, g.row, g.rows, g.column, g.columns, bus)
        return uops, reads, writes, turned

    @property
    def work(self) -> tuple[int, int, int]:
        """(uop cycles, read beats, write beats) that the plan needs at least."""
        return self._totals[:3]

    @property
    def turned_words(self) -> int:
        """Words that transposes read and write."""
        return self._totals[3]

    @property
    def bound(self) -> int:
        """Cycles below which no schedule of this plan can get (performance.md section 1)."""
        return max(self.work)

    @property
    def estimate(self) -> int:
        """Cycles that the plan is likely to take; never below the bound.

        What the MAC array waits for counts with its uops: transposes, which read each word and then
        write it; half of what a block's last macro stores, where blocks cannot take turns; all
        reads, where an operand that must be transposed has one buffer.
        """
        uops, reads, writes = self.work
        tiles, busy = self.tiles, uops + 2 * self.turned_words
        if len(tiles.c_sets) == 1:
            busy += writes * (1 + self.problem.beta) // (2 * len(tiles.c_parts))
        if any(share.group and len(share.buffers) == 1 for share in (tiles.a, tiles.b)):
            busy += reads
        return max(busy, reads, writes)


def plan_gemm(cfg: Config, problem: GemmProblem, tiling: str = "auto") -> GemmPlan:
    """The plan for a tiling, or for "auto" the one with the lowest estimate.

    This is the partitioner, `make_plan` of seed 000 section 13.B. A 4x4 that the core's guard
    refuses is planned as the 2x2 that will run. Raises `ValueError` for a tiling that is unknown
    or does not fit.
    """
    if tiling in BLOCKS:
        return GemmPlan(cfg, problem, tiling)
    if tiling != "auto":
        raise ValueError(f"unknown tiling {tiling!r}: use auto, {' or '.join(BLOCKS)}")
    plans = []
    for name in BLOCKS if any(problem.transposed) else TILINGS:
        try:
            plan = GemmPlan(cfg, problem, name)
        except ValueError:
            continue  # too few tiles for this block
        tiles = plan.tiles
        # One tile of A and several of B pay only where A has no second one, or where several
        # cannot be transposed side by side; likewise B.
        if tiles.a.group <= 1 and tiles.b.group <= 1 and max(tiles.a.tiles, tiles.b.tiles) == 4:
            if tiles.a.tiles == 1 and problem.m > cfg.rows:
                continue
            if tiles.b.tiles == 1 and problem.n > cfg.rows:
                continue
        if plan.name == name:
            plans.append(plan)
    if not plans:
        raise ValueError(f"a GEMM does not fit in {cfg.tiles} tiles: use more tiles")
    return min(plans, key=lambda plan: plan.estimate) if len(plans) > 1 else plans[0]
