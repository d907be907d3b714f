"""A bench that starts a split counter, steps it at random and notes what it offers."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Sequence

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.sim import Simulator

from hdl.config import Config
from hdl.issue.line_cut import LineCut
from hdl.issue.split import LdStSplit
from hdl.issue.walk_start import start_of

__all__ = ["SEED", "CutRows", "walk"]

SEED = int(os.environ.get("TEST_SEED", "1"))
LONGEST = 5000


class CutRows(wiring.Component):
    """The walk of a load or store with the cutting of rows behind it; members as of the walk."""

    def __init__(self, cfg: Config):
        self.cfg = cfg
        self.rows = LdStSplit(cfg)
        self.cut = LineCut(cfg)
        super().__init__(self.rows.signature)

    def elaborate(self, platform):
        m = Module()
        m.submodules.rows, m.submodules.cut = rows, cut = self.rows, self.cut
        m.d.comb += [
            rows.start.eq(self.start),
            rows.fields.eq(self.fields),
            rows.fields.start.eq(start_of(self.cfg, self.fields)),
            rows.step.eq(self.step & cut.last),
            cut.i.valid.eq(rows.valid),
            cut.i.payload.eq(rows.uop),
            cut.crosses.eq(rows.crosses),
            cut.o.ready.eq(self.step),
            self.valid.eq(rows.valid),
            self.uop.eq(cut.o.payload),
            self.crosses.eq(rows.crosses),
            self.free.eq(rows.free & cut.last),
            self.done.eq(rows.done),
        ]
        return m


def _put(ctx, view, values: dict) -> None:
    for name, value in values.items():
        if isinstance(value, dict):
            _put(ctx, view[name], value)
        else:
            ctx.set(view[name], value)


def walk(split, cases: Sequence[dict], read: Callable, *, stall: float = 0.3) -> list[list]:
    """Start each case (fields by name) and return what was offered for each, read by `read`."""
    rng = random.Random(SEED)
    results = []

    async def bench(ctx):
        for fields in cases:
            ctx.set(split.fields.as_value(), 0)
            _put(ctx, split.fields, fields)
            ctx.set(split.start, 1)
            await ctx.tick()
            ctx.set(split.start, 0)
            # The fields are sampled at the start, so what the port holds now must not matter.
            ctx.set(split.fields.as_value(), rng.getrandbits(40))
            offered = []
            for _ in range(LONGEST):
                valid = ctx.get(split.valid) if hasattr(split, "valid") else 1
                step = rng.random() >= stall
                ctx.set(split.step, step)
                done = ctx.get(split.done)
                if step and valid:
                    offered.append(read(ctx))
                await ctx.tick()
                ctx.set(split.step, 0)
                if done:
                    break
            else:
                raise AssertionError(f"seed {SEED}: the walk of {fields} never ended")
            results.append(offered)

    simulator = Simulator(split)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    return results
