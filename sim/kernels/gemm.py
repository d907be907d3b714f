"""The instructions of a planned GEMM: loads run ahead of products, stores behind them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import tee

from hdl import isa

from ..program import Program, mxtile_value
from .parts import CGroup, Feed, Step
from .plan import GemmPlan

__all__ = ["gemm_program"]


_SIZES = {8: "b", 16: "h", 32: "w", 64: "d"}
"""Sizes of elements as mtrans names them, by bits."""


class _Writer:
    """Appends instructions to a program; writes mxtile only when it must change."""

    def __init__(self, plan: GemmPlan):
        self.plan = plan
        self.program = Program(plan.cfg)
        self._fields: dict[str, int] = {"k": 1, "m": 1, "n": 1, "tiling": isa.Tiling.T1X1}
        self._cfile = plan.tiles.cfile
        self._mxtile: int | None = None

    def _geometry(self, *, m=None, n=None, **fields: int) -> None:
        """Set the fields of mxtile that the next instruction looks at; the others stay.

        `m` and `n` are rows and the tiles that share them. Those of whole tiles are written as
        those of one tile, which is what holds in each.
        """
        rows = self.plan.cfg.rows
        for name, pair in (("m", m), ("n", n)):
            if pair is not None:
                total, tiles = pair
                fields[name] = rows if total == rows * tiles else total
        self._fields |= fields
        value = mxtile_value(**self._fields)
        if value != self._mxtile:
            self.program.csrrw("mxtile", value)
            self._mxtile = value

    def c_loads(self, step: Step) -> None:
        """What a step that starts a block reads of C."""
        for group in step.c_loads:
            self._c(self.program.mld, group)

    def loads(self, feed: Feed) -> None:
        """What the next buffer of an operand reads."""
        for load in feed.loads:
            rows = load.rows, load.n if load.down else 1
            self._geometry(**{"k": load.k, "m" if load.what == "a" else "n": rows})
            matrix = self.plan.matrix(load.what)
            self.program.mld(
                load.what,
                load.tile,
                matrix.address(load.row, load.column),
                matrix.stride,
                n=load.n,
                down=load.down,
            )

    def turns(self, feed: Feed) -> None:
        """Transpose what was loaded, where it is."""
        size = _SIZES[self.plan.problem.fmt.container]
        for tile in feed.turns:
            self.program.mtrans(size, tile, tile)

    def products(self, step: Step) -> None:
        """A step's mmaccs, and the stores of a block that it finishes."""
        problem = self.plan.problem
        for pair in step.pairs:
            macro = pair.macro
            # A plan that the guard refuses asks all the same, wherever it runs what is granted.
            asks = macro.guard4x4 or (self.plan.refused and macro is self.plan.tiles.macro)
            self._geometry(
                k=pair.k,
                m=(pair.m, macro.a_tiles),
                n=(pair.n, macro.b_tiles),
                tiling=macro.tiling,
                guard4x4=asks,
            )
            self.program.mmacc(
                pair.c, pair.a, pair.b, beta=int(pair.first), alpha=int(problem.alpha < 0)
            )
        for group in step.stores:
            self._c(self.program.mst, group)

    def _c(self, move, group: CGroup) -> None:
        self._geometry(m=(group.rows, 1), n=(group.columns, group.groups), guard4x4=group.packed)
        c = self.plan.problem.c
        address = c.address(group.row, group.column)
        move("c", group.tile, address, c.stride, n=group.n, cfile=self._cfile)

    def zeros(self) -> None:
        """Store zeros over all of C: what is left of a product along no K at all."""
        plan, c, height = self.plan, self.plan.problem.c, self.plan.cfg.rows
        tile, count = plan.tiles.c_sets[0], plan.tiles.result
        self.program.mzero(tile, n=count, cfile=self._cfile)
        for row in range(0, c.rows, height):
            for column in range(0, c.columns, height):
                rows, columns = min(height, c.rows - row), min(height, c.columns - column)
                group = CGroup(tile, count, 1, False, rows, columns, row, column)
                self._c(self.program.mst, group)


class _Operand:
    """One operand's feeds: loaded as long as a buffer is free, turned a step before their use."""

    def __init__(self, feeds: Iterator[Feed | None], buffers: int):
        self._feeds = ((number, feed) for number, feed in enumerate(feeds) if feed is not None)
        self._free = buffers
        self._loaded: deque[tuple[int, Feed]] = deque()

    def load(self) -> Feed | None:
        """The next feed if a buffer is free, which it takes."""
        if not self._free:
            return None
        number, feed = next(self._feeds, (0, None))
        if feed is not None:
            self._free -= 1
            if feed.turns:
                self._loaded.append((number, feed))
        return feed

    def turn(self, step: int) -> Feed | None:
        """The next feed that must be turned for steps up to number `step`."""
        if self._loaded and self._loaded[0][0] <= step:
            return self._loaded.popleft()[1]
        return None

    def release(self) -> None:
        """The oldest buffer was multiplied for the last time."""
        self._free += 1


def _multiply(plan: GemmPlan, writer: _Writer) -> None:
    """All steps, each stage of them as early as tiles and slots allow."""
    tiles = plan.tiles
    slots = max(2, plan.cfg.slots // 2)  # pairs of loads
    buffers = min(len(tiles.a_buffers), slots), min(len(tiles.b_buffers), slots)
    ahead = min(buffers) - 1
    products, for_a, for_b, for_c = tee(plan.steps(), 4)
    operands = (
        _Operand((step.a for step in for_a), buffers[0]),
        _Operand((step.b for step in for_b), buffers[1]),
    )
    waiting: deque[bool] = deque()  # of the next steps: must its C be loaded late?
    sets: deque[int] = deque()  # and in which tiles they work
    for number, step in enumerate(products):
        while len(waiting) <= ahead and (later := next(for_c, None)) is not None:
            # C may come early only into tiles that no older block still works in.
            late = later.c in sets
            waiting.append(late)
            sets.append(later.c)
            if not late:
                writer.c_loads(later)
        feeds = [operand.load() for operand in operands]
        while any(feeds):
            for feed in filter(None, feeds):
                writer.loads(feed)
            feeds = [operand.load() for operand in operands]
        for operand in operands:
            while (feed := operand.turn(number + 1)) is not None:
                writer.turns(feed)
        if waiting.popleft():
            writer.c_loads(step)
        sets.popleft()
        writer.products(step)
        for operand, done in zip(operands, (step.a_done, step.b_done), strict=True):
            if done:
                operand.release()


def gemm_program(plan: GemmPlan) -> Program:
    """The whole GEMM, from mxcfg to the mfence that sees the last store.

    This is the scheduler, `gemm_schedule` of seed 000 section 13.B. Operands are loaded as soon as
    a buffer is free, but no further ahead than the core's slots hold the loads: the first product
    would wait for all of them. Those that must be transposed are, one step before their use.
    Lengths of K that are 0 give beta * C; sizes of C that are 0 give an mfence alone.
    """
    problem = plan.problem
    writer = _Writer(plan)
    program = writer.program
    program.set_cfg(
        problem.fmt.name, bovf=problem.bovf, rnd=problem.rnd, sat=problem.sat, acc=problem.acc
    )
    if problem.k:
        _multiply(plan, writer)
    elif not problem.beta and problem.m and problem.n:
        writer.zeros()
    program.mfence()
    return program
