"""The instructions of a planned GEMM: loads run ahead of products, stores behind them."""

from __future__ import annotations

from collections import deque

from hdl import isa

from ..program import Program, mxtile_value
from .plan import CGroup, GemmPlan, Step

__all__ = ["gemm_program"]


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

    def loads(self, step: Step) -> None:
        """What a step reads of A and B."""
        for load in step.loads:
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


def gemm_program(plan: GemmPlan) -> Program:
    """The whole GEMM, from mxcfg to the mfence that sees the last store.

    A step's operands are loaded as many steps ahead as there are buffers, less the one in use, but
    no further than the core's slots hold the loads: the first product would wait for all of them.
    Lengths of K that are 0 give beta * C; sizes of C that are 0 give an mfence alone.
    """
    problem, tiles = plan.problem, plan.tiles
    writer = _Writer(plan)
    program = writer.program
    program.set_cfg(
        problem.fmt.name, bovf=problem.bovf, rnd=problem.rnd, sat=problem.sat, acc=problem.acc
    )
    if not problem.k:
        if not problem.beta and problem.m and problem.n:
            writer.zeros()
    else:
        slots = max(2, plan.cfg.slots // 2)  # pairs of loads
        ahead = min(len(tiles.a_buffers), len(tiles.b_buffers), slots) - 1
        waiting: deque[tuple[Step, bool]] = deque()

        def multiply() -> None:
            step, c_late = waiting.popleft()
            if c_late:
                writer.c_loads(step)
            writer.products(step)

        for step in plan.steps():
            # C may come early only into tiles that no older block still works in.
            c_late = any(older.c == step.c for older, _ in waiting)
            if not c_late:
                writer.c_loads(step)
            writer.loads(step)
            waiting.append((step, c_late))
            if len(waiting) > ahead:
                multiply()
        while waiting:
            multiply()
    program.mfence()
    return program
