"""The stream checker and helpers, against good and deliberately broken producers."""

import os
import random

import pytest
from amaranth.hdl import Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.sim import Simulator

from sim.stream_check import (
    StreamChecker,
    StreamError,
    StreamTimeout,
    add_watchers,
    expect,
    flat_stream,
    get,
    get_all,
    put,
    put_all,
)

SEED = int(os.environ.get("TEST_SEED", "1"))
ITEM = data.StructLayout({"low": 4, "high": 4})


class Buffer(wiring.Component):
    """A one-entry buffer; `fault` breaks one rule of its output."""

    def __init__(self, fault=None):
        self.fault = fault
        super().__init__({"i": In(stream.Signature(ITEM)), "o": Out(stream.Signature(ITEM))})

    def elaborate(self, platform):
        m = Module()
        full = Signal()
        age = Signal(4)
        item = Signal(ITEM)
        m.d.comb += [
            self.o.valid.eq(full),
            self.o.payload.eq(item),
            self.i.ready.eq(~full | self.o.ready),
        ]
        m.d.sync += age.eq(age + 1)
        with m.If(self.i.valid & self.i.ready):
            m.d.sync += [full.eq(1), item.eq(self.i.payload), age.eq(0)]
        with m.Elif(self.o.ready):
            m.d.sync += full.eq(0)
        if self.fault == "drop":
            with m.If(age == 3):
                m.d.comb += self.o.valid.eq(0)
        elif self.fault == "change":
            with m.If(age == 3):
                m.d.comb += self.o.payload.high.eq(~item.high)
        elif self.fault == "wait":
            m.d.comb += self.o.valid.eq(full & self.o.ready)
        elif self.fault == "lose":
            with m.If(age == 1):
                m.d.sync += full.eq(0)
        return m


def simulate(dut, *benches, watch=True):
    sim = Simulator(dut)
    sim.add_clock(1e-6)
    checkers = add_watchers(sim, {"in": dut.i, "out": dut.o}) if watch else {}
    for bench in benches:
        sim.add_testbench(bench)
    sim.run()
    return checkers


def items(count):
    rng = random.Random(SEED)
    return [ITEM.const({"low": rng.randrange(16), "high": rng.randrange(16)}) for _ in range(count)]


@pytest.mark.parametrize("gap_in, gap_out", [(0, 0), (0.5, 0), (0, 0.5), (0.4, 0.4)])
def test_everything_arrives_in_order(gap_in, gap_out):
    dut = Buffer()
    values = items(60)
    found = []

    async def producer(ctx):
        await put_all(ctx, dut.i, values, rng=random.Random(SEED), gap=gap_in)

    async def consumer(ctx):
        found.extend(await get_all(ctx, dut.o, 60, rng=random.Random(SEED + 1), gap=gap_out))

    checkers = simulate(dut, producer, consumer)
    assert found == values, f"TEST_SEED={SEED}"
    assert checkers["out"].payloads == values
    if not gap_in and not gap_out:  # the helpers themselves lose no cycle
        cycles = [cycle for cycle, _ in checkers["out"].transfers]
        assert cycles == list(range(cycles[0], cycles[0] + 60))
    assert bool(gap_out) == bool(checkers["out"].stalled)
    assert bool(gap_in) <= bool(checkers["out"].starved)


@pytest.mark.parametrize(
    "fault, message",
    [
        ("drop", "out: valid fell before ready"),
        ("lose", "out: valid fell before ready"),
        ("change", "out: the payload changed"),
        ("wait", "valid waits for ready"),
    ],
)
def test_broken_producer_is_caught(fault, message):
    dut = Buffer(fault)

    async def producer(ctx):
        await put_all(ctx, dut.i, items(30))

    async def consumer(ctx):
        for _ in range(30):
            for _ in range(5):
                await ctx.tick()
            await get(ctx, dut.o, what="out")

    with pytest.raises(StreamError, match=message):
        simulate(dut, producer, consumer)


@pytest.mark.parametrize("fault", ["drop", "change", "wait"])
def test_get_all_with_gaps_finds_the_fault(fault):
    dut = Buffer(fault)

    async def producer(ctx):
        await put_all(ctx, dut.i, items(200))

    async def consumer(ctx):
        await get_all(ctx, dut.o, 200, rng=random.Random(SEED), gap=0.7, what="out")

    with pytest.raises(StreamError):
        simulate(dut, producer, consumer)


def test_put_poisons_the_payload_in_gaps():
    dut = Buffer()
    seen = set()

    async def producer(ctx):
        await put_all(ctx, dut.i, [{"low": 1, "high": 2}] * 40, rng=random.Random(SEED), gap=0.6)

    async def spy(ctx):
        while True:
            _, _, valid, payload = await ctx.tick().sample(dut.i.valid, dut.i.payload)
            if not valid:
                seen.add(payload.as_bits())

    async def consumer(ctx):
        await get_all(ctx, dut.o, 40)

    sim = Simulator(dut)
    sim.add_clock(1e-6)
    sim.add_testbench(spy, background=True)
    sim.add_testbench(producer)
    sim.add_testbench(consumer)
    sim.run()
    assert len(seen) > 5, f"TEST_SEED={SEED}"


def test_timeouts_say_what_was_awaited():
    dut = Buffer()

    async def consumer(ctx):
        with pytest.raises(StreamTimeout, match="the answer: nothing came within 20 cycles"):
            await get(ctx, dut.o, bound=20, what="the answer")
        with pytest.raises(StreamTimeout, match="answers, item 0: nothing came within 20"):
            await get_all(ctx, dut.o, 3, bound=20, what="answers")
        await put(ctx, dut.i, {"low": 1, "high": 1})
        with pytest.raises(StreamTimeout, match=r"word: .* was not taken within 20 cycles"):
            await put(ctx, dut.i, {"low": 2, "high": 1}, bound=20, what="word")

    simulate(dut, consumer, watch=False)


def test_expect_compares_values_and_fields():
    dut = Buffer()

    async def bench(ctx):
        for _ in range(4):
            await put(ctx, dut.i, {"low": 3, "high": 9})
            await expect(ctx, dut.o, {"low": 3})
            await put(ctx, dut.i, {"low": 3, "high": 9})
            with pytest.raises(StreamError, match=r"word: expected .*'high': 8.*'high': 9"):
                await expect(ctx, dut.o, {"low": 3, "high": 8}, what="word")

    simulate(dut, bench)


def test_flat_ports_are_a_stream():
    dut = Buffer("change")
    flat = flat_stream(dut.o.valid, dut.o.ready, dut.o.payload.low, dut.o.payload.high)
    sim = Simulator(dut)
    sim.add_clock(1e-6)
    add_watchers(sim, {"flat": flat})

    async def bench(ctx):
        await put(ctx, dut.i, {"low": 3, "high": 9})
        for _ in range(10):
            await ctx.tick()

    sim.add_testbench(bench)
    with pytest.raises(StreamError, match="flat: the payload changed"):
        sim.run()


def test_reset_forgives_what_waited():
    checker = StreamChecker("s")
    checker.step(1, 0, 7)
    checker.reset()
    checker.step(0, 0, 0)
    checker.step(1, 0, 1)
    with pytest.raises(StreamError, match="cycle 4, s: valid fell"):
        checker.step(0, 1, 1)
