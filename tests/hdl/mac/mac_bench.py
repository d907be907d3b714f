"""A bench that streams uops through a `MacArray`, one every cycle or with gaps."""

from __future__ import annotations

import random
from dataclasses import dataclass

from amaranth.sim import Simulator

from hdl.mac.array import MacArray


@dataclass
class Uop:
    """One uop: `op` fields by name, rows as Python integers, C as the rows of its word."""

    op: dict[str, int]
    a: list[int]
    b: list[int]
    c: list[int]


def run(dut: MacArray, uops: list[Uop], rng: random.Random, gaps: float = 0.0):
    """Stream `uops` and return, in order, (rows of d, flags as an integer) of each.

    Checks that `valid` rises exactly `latency` cycles after each start and at no other time.
    """
    schedule: list[Uop | None] = []
    for uop in uops:
        while rng.random() < gaps:
            schedule.append(None)
        schedule.append(uop)
    results = []
    schedule.insert(0, None)  # `op` comes a cycle earlier
    total = len(schedule) + dut.latency

    async def bench(ctx):
        for cycle in range(total + 1):
            uop = schedule[cycle] if cycle < len(schedule) else None
            ctx.set(dut.start, uop is not None)
            # Rubbish where nothing is asked for: only valid uops may count.
            source = uop or Uop({}, *[[rng.getrandbits(64)] * dut.cfg.m_par] * 3)
            coming = schedule[cycle + 1] if cycle + 1 < len(schedule) else None
            if coming is None:
                ctx.set(dut.op.as_value(), rng.getrandbits(dut.op.shape().size))
            else:
                for name, value in coming.op.items():
                    ctx.set(dut.op[name], value)
            for port, rows in ((dut.a, source.a), (dut.b, source.b)):
                for i in range(port.shape().length):
                    ctx.set(port[i], rows[i])
            at = cycle - dut.c_delay
            late = schedule[at] if 0 <= at < len(schedule) else None
            for i in range(dut.cfg.m_par):
                ctx.set(dut.c[i], late.c[i] if late else rng.getrandbits(dut.cfg.row_bits))
            at = cycle - dut.latency
            expected = 0 <= at < len(schedule) and schedule[at] is not None
            assert ctx.get(dut.valid) == expected, f"valid is wrong in cycle {cycle}"
            if expected:
                rows = [ctx.get(dut.d[i]) for i in range(dut.cfg.m_par)]
                results.append((rows, ctx.get(dut.flags.as_value())))
            else:
                rows = [ctx.get(dut.d[i]) for i in range(dut.cfg.m_par)]
                assert cycle < dut.latency or not any(rows), f"d is not zero in cycle {cycle}"
            await ctx.tick()

    sim = Simulator(dut)
    sim.add_clock(1e-6)
    sim.add_testbench(bench)
    sim.run()
    return results
