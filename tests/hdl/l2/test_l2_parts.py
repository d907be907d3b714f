"""The small parts of the L2 pipes: id pool, buffer, rotators and masks."""

import os
import random

import pytest
from amaranth.hdl import Module, Signal
from amaranth.sim import Simulator

from hdl.config import preset
from hdl.interfaces import ldst_uop
from hdl.l2.buffer import StreamBuffer
from hdl.l2.ids import IdPool
from hdl.l2.shift import (
    beats_of,
    bytes_from,
    bytes_upto,
    bytes_wrapped,
    rotate_left,
    rotate_right,
)
from sim.stream_check import add_watchers, get_all, put_all

SEED = int(os.environ.get("TEST_SEED", "1"))
NOTE = f"TEST_SEED={SEED}"


@pytest.mark.parametrize("count", (1, 2, 4, 32))
@pytest.mark.parametrize("takes, returns", ((0.9, 0.9), (0.9, 0.3), (0.3, 0.9), (1.0, 1.0)))
def test_id_pool_offers_an_id_whenever_one_is_free(count, takes, returns):
    rng = random.Random(SEED)
    dut = IdPool(preset("ame32-int8").replace(l2_ids=count))
    used: list[int] = []
    most = 0

    async def bench(ctx):
        nonlocal most
        for cycle in range(1200):
            note = f"cycle {cycle}, {NOTE}"
            assert ctx.get(dut.idle) == (not used), note
            # Between mixed phases, one that only takes and one that only gives back.
            phase = ("mixed", "take", "mixed", "return")[cycle // 300 % 4]
            back = bool(used) and phase != "take" and rng.random() < returns
            ctx.set(dut.back_valid, back)
            given = used.pop(rng.randrange(len(used))) if back else rng.randrange(count)
            ctx.set(dut.back_id, given)
            offered = ctx.get(dut.give_valid)
            assert offered == (len(used) + back < count), note  # what comes back is there next
            take = offered and phase != "return" and rng.random() < takes
            ctx.set(dut.take, take)
            if offered:
                assert ctx.get(dut.give_id) not in [*used, *([given] if back else [])], note
                assert ctx.get(dut.give_id) < count, note
            if take:
                used.append(ctx.get(dut.give_id))
            most = max(most, len(used))
            await ctx.tick()

    sim = Simulator(dut)
    sim.add_clock(1e-6)
    sim.add_testbench(bench)
    sim.run()
    assert most == count, NOTE


@pytest.mark.parametrize("gap, stall", ((0, 0), (0.5, 0), (0, 0.5), (0.4, 0.4)))
def test_stream_buffer(gap, stall):
    rng = random.Random(SEED)
    dut = StreamBuffer(9)
    items = [rng.getrandbits(9) for _ in range(200)]
    sim = Simulator(dut)
    sim.add_clock(1e-6)
    checks = add_watchers(sim, {"i": dut.i, "o": dut.o})
    found = []

    async def source(ctx):
        await put_all(ctx, dut.i, items, rng=rng, gap=gap)

    async def sink(ctx):
        found.extend(await get_all(ctx, dut.o, len(items), rng=rng, gap=stall))

    sim.add_testbench(source)
    sim.add_testbench(sink)
    sim.run()
    assert found == items, NOTE
    if not gap and not stall:
        cycles = [cycle for cycle, _ in checks["o"].transfers]
        assert cycles == list(range(StreamBuffer.LATENCY, StreamBuffer.LATENCY + len(items)))


@pytest.mark.parametrize("count", (2, 8, 16, 64))
def test_masks_and_rotators(count):
    rng = random.Random(SEED)
    m = Module()
    at = Signal(range(count))
    value = Signal(8 * count)
    masks = [Signal(count) for _ in range(3)]
    m.d.comb += [
        mask.eq(make(at, count))
        for mask, make in zip(masks, (bytes_from, bytes_upto, bytes_wrapped), strict=True)
    ]
    left = rotate_left(m, value, at, name="left")
    right = rotate_right(m, value, at, name="right")
    data = rng.randbytes(count)

    async def bench(ctx):
        ctx.set(value, int.from_bytes(data, "little"))
        for n in range(count):
            ctx.set(at, n)
            want = [
                [byte >= n for byte in range(count)],
                [byte <= n for byte in range(count)],
                [byte + n >= count for byte in range(count)],
            ]
            got = [[bool(ctx.get(mask) >> b & 1) for b in range(count)] for mask in masks]
            assert got == want
            turned = [ctx.get(v).to_bytes(count, "little") for v in (left, right)]
            assert turned == [
                bytes(data[(i - n) % count] for i in range(count)),
                bytes(data[(i + n) % count] for i in range(count)),
            ]

    sim = Simulator(m)
    sim.add_testbench(bench)
    sim.run()


@pytest.mark.parametrize("row_bits, bus_bits", ((128, 128), (512, 128), (128, 64)))
def test_beats_of_a_part(row_bits, bus_bits):
    rng = random.Random(SEED)
    cfg = preset("ame32-int8").replace(row_bits=row_bits, bus_bits=bus_bits, line_bytes=64)
    m = Module()
    uop = Signal(ldst_uop(cfg))
    beats = beats_of(m, cfg, uop)

    async def bench(ctx):
        for _ in range(300):
            first = rng.randrange(cfg.row_bytes)
            last = rng.randrange(first, cfg.row_bytes)
            start = rng.randrange(1 << 20)
            ctx.set(uop.addr, start + first)
            ctx.set(uop.first, first)
            ctx.set(uop.last, last)
            of = [ctx.get(value) for value in (beats.offset, beats.first, beats.last)]
            bus = cfg.bus_bytes
            assert of == [
                start % bus,
                (start + first) // bus - start // bus,
                (start + last) // bus - start // bus,
            ], NOTE

    sim = Simulator(m)
    sim.add_testbench(bench)
    sim.run()
