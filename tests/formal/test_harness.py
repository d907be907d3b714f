"""What proofs are written with."""

from __future__ import annotations

import os
import random

import pytest
from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.sim import Simulator

from formal.harness import Proof
from formal.storage import Registers
from formal.task import Task

SEED = int(os.environ.get("TEST_SEED", "41"))


class _Toy(wiring.Component):
    def __init__(self):
        super().__init__({"step": In(1), "count": Out(3), "twice": Out(4)})

    def elaborate(self, platform):
        m = Module()
        a, b = Signal(name="same"), Signal(name="same")
        m.d.sync += [self.count.eq(self.count + self.step), a.eq(~a), b.eq(a)]
        m.d.comb += self.twice.eq(self.count << 1)
        return m


def test_inside_finds_what_has_no_port():
    p = Proof()
    inside = p.add("toy", _Toy(), free=True)
    assert inside("count").shape().width == 3
    with pytest.raises(KeyError, match="toy drives 2 signals called 'same'"):
        inside("same")
    with pytest.raises(KeyError, match="toy drives 0 signals called 'none'"):
        inside("none")
    p.rtlil()


def test_properties_have_names_of_their_own():
    p = Proof()
    p.check("fits", 1)
    with pytest.raises(ValueError, match="'fits' is taken"):
        p.cover("fits", 1)
    with pytest.raises(ValueError, match="no identifier"):
        p.check("does it", 1)
    p.rtlil()


def test_nothing_is_initialised():
    p = Proof()
    inside = p.add("toy", _Toy(), free=True)
    p.check("even", ~inside("twice")[0])
    text = p.rtlil()
    assert "attribute \\init " not in text and "$meminit" not in text
    assert "cell $initstate" in text and "cell $check \\property.even" in text


def test_task_knows_its_modes():
    with pytest.raises(ValueError, match="use prove or bmc"):
        Task(name="x", about="", parameters="", build=Proof, mode="guess", depth=1, cover=1)


@pytest.mark.parametrize("bits, granularity, depth", [(16, 8, 4), (12, None, 8), (8, 4, 2)])
def test_registers_behave_as_a_memory(bits, granularity, depth):
    """Two write ports, one read port, never at the same word in one cycle."""
    rng = random.Random(SEED)
    m = Module()
    kinds = {"memory": Memory, "registers": Registers}
    ports = {}
    for name, kind in kinds.items():
        m.submodules[name] = memory = kind(shape=bits, depth=depth, init=[])
        ports[name] = (
            [memory.write_port(granularity=granularity) for _ in range(2)],
            memory.read_port(),
        )

    async def bench(ctx):
        enables = 1 if granularity is None else bits // granularity
        for name in kinds:  # every word is known
            for word in range(depth):
                write = ports[name][0][0]
                ctx.set(write.addr, word)
                ctx.set(write.data, word)
                ctx.set(write.en, (1 << enables) - 1)
                await ctx.tick()
            ctx.set(write.en, 0)
        read_yet = False
        for cycle in range(300):
            words = rng.sample(range(depth), 2)
            values = [(w, rng.getrandbits(bits), rng.getrandbits(enables)) for w in words]
            look, on = rng.randrange(depth), rng.getrandbits(1)
            on &= look not in words
            for writes, read in ports.values():
                for write, (word, value, enable) in zip(writes, values, strict=True):
                    ctx.set(write.addr, word)
                    ctx.set(write.data, value)
                    ctx.set(write.en, enable)
                ctx.set(read.addr, look)
                ctx.set(read.en, on)
            await ctx.tick()
            read_yet |= bool(on)
            if read_yet:
                seen = {name: ctx.get(read.data) for name, (_, read) in ports.items()}
                assert seen["memory"] == seen["registers"], f"seed {SEED}, cycle {cycle}"

    simulator = Simulator(m)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
