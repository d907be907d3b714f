"""Small parts of the decoder and of the issue logic against plain Python."""

import os
import random

import pytest
from amaranth.hdl import Module, Signal
from amaranth.lib import data
from amaranth.sim import Simulator

from hdl.config import Config, preset
from hdl.isa import encode
from hdl.issue.csr import CsrFile, CsrSelect, mxinfo
from hdl.issue.decode import Decode
from hdl.issue.fairness import PATIENCE, Fairness
from hdl.issue.geometry import GroupTiles, Spread, last_of
from hdl.issue.places import ThreePlaces
from hdl.issue.scoreboard import Scoreboard

SEED = int(os.environ.get("TEST_SEED", "1"))
CFG = preset("ame32-int8")


def simulate(dut, bench, *, clocked=False):
    sim = Simulator(dut)
    if clocked:
        sim.add_clock(1e-6)
    sim.add_testbench(bench)
    sim.run()


def test_spread_of_rows_over_tiles():
    """Every M for every macro: up to 16 each tile has M rows, above it is the total."""
    dut = Spread(CFG)

    async def bench(ctx):
        for tiles_log2 in range(4):
            tiles = 1 << tiles_log2
            ctx.set(dut.tiles_log2, tiles_log2)
            for value in range(256):
                ctx.set(dut.end, (value - 1) % 256)
                where = (tiles, value)
                legal = 1 <= value <= 16 * tiles
                assert ctx.get(dut.bad) == (not legal), where
                if not legal:
                    continue
                rows = [min(16, max(0, value - 16 * t)) if value > 16 else value for t in range(8)]
                used = [r for r in rows[:tiles] if r]
                assert ctx.get(dut.last) == len(used) - 1, where
                assert ctx.get(dut.rows_last) == used[-1] - 1, where
                if len(used) > 1:
                    assert {ctx.get(dut.rows_most) + 1} == set(used[:-1]), where

    simulate(dut, bench)


def test_a_product_less_one_by_shifting():
    """`last_of` against the product it stands for, every operand."""
    top = Module()
    last, log2 = Signal(4), Signal(3)
    result = Signal(8)
    top.d.comb += result.eq(last_of(last, log2, 4))

    async def bench(ctx):
        for value in range(16):
            for amount in range(5):
                ctx.set(last, value)
                ctx.set(log2, amount)
                assert ctx.get(result) == ((value + 1) << amount) - 1, (value, amount)

    simulate(top, bench)


@pytest.mark.parametrize("tiles", [32, 8])
def test_tiles_of_groups(tiles):
    """Groups in a row, in a square with a last column, and one that is long."""
    cfg = CFG if tiles == 32 else Config(tiles=8, rows=8, row_bits=256, banks=4)
    dut = GroupTiles(cfg)
    rng = random.Random(SEED)

    async def bench(ctx):
        for _ in range(800):
            log2 = rng.choice([0, 1, 2])
            stride = 1 << log2
            most, last = rng.randrange(stride), rng.randrange(stride)
            columns = rng.choice([1, 2, 4, 8])
            if columns < 8:
                across, down = rng.randrange(columns), rng.randrange(16 // columns // stride)
                found = {
                    columns * i + j: j == across for i in range(down + 1) for j in range(across + 1)
                }
            elif rng.random() < 0.8:
                across = rng.randrange(8)
                found = {group: group == across for group in range(across + 1)}
            else:
                log2, stride, last, found = 2, 4, rng.randrange(8), {0: True}
            for name, value in (
                ("groups", sum(1 << group for group in found)),
                ("ends", sum(1 << group for group, ends in found.items() if ends)),
                ("group_last", max(found)),
                ("stride", stride),
                ("slice_most", most),
                ("slice_last", last),
            ):
                ctx.set(getattr(dut, name), value)
            named = [
                group * stride + part
                for group, ends in found.items()
                for part in range((last if ends else most) + 1)
            ]
            where = f"seed {SEED}: {found, stride, most, last}"
            assert ctx.get(dut.last) == max(found) * stride + last, where
            assert ctx.get(dut.tiles) == sum(1 << t for t in named if t < tiles), where

    simulate(dut, bench)


def test_csr_file_reads_writes_and_gathers():
    dut, which = CsrFile(CFG), CsrSelect(CFG)
    base = CFG.csr_base
    top = Module()
    top.submodules.file, top.submodules.which = dut, which
    top.d.comb += dut.select.eq(which.select)

    async def bench(ctx):
        def look(number):
            ctx.set(which.number, number)
            return ctx.get(which.known), ctx.get(which.read_only), ctx.get(dut.value)

        async def write(number, value):
            ctx.set(which.number, number)
            ctx.set(dut.write_data, value)
            ctx.set(dut.write, 1)
            await ctx.tick()
            ctx.set(dut.write, 0)

        assert look(base) == (1, 0, 0)
        assert look(base + 1) == (1, 0, 16 | 16 << 8 | 1 << 16)
        assert look(base + 4) == (1, 1, mxinfo(CFG))
        assert look(base + 3)[0] == 0 and look(base - 1)[0] == 0 and look(base + 5)[0] == 0
        await write(base, (1 << 64) - 1)
        assert look(base)[2] == (1 << 32) - 1
        await write(base + 2, 0)
        ctx.set(dut.status, 0b101)
        await ctx.tick()
        ctx.set(dut.status, 0)
        assert look(base + 2)[2] == 0b101
        ctx.set(dut.dirty, 1)
        await ctx.tick()
        ctx.set(dut.dirty, 0)
        assert look(0x802)[2] == 3 and not ctx.get(dut.off)
        await write(0x802, 0)
        assert ctx.get(dut.off)
        ctx.set(dut.initial, 1)
        await ctx.tick()
        assert look(0x802)[2] == 1

    simulate(top, bench, clocked=True)


def test_mxinfo_names_what_is_built():
    """Field by field, from isa.md section 2."""
    info = mxinfo(CFG)
    assert info & 0xFFFFFFFF == 1 << 9  # INT8 is the tenth code of the list
    assert [info >> 32 & 15, info >> 36 & 7, info >> 39 & 7] == [5, 4, 2]
    assert info >> 42 & 31 == 0 and info >> 47 == 1
    assert mxinfo(CFG.replace(formats=("all",))) & 0xFFFFFFFF == 0xFFFFFFFF


def test_the_decoder_is_busy_until_its_answer_is_taken():
    """`idle` stays low from the cycle after a request's transfer to its response's, no gap."""
    dut = Decode(CFG)

    async def bench(ctx):
        ctx.set(dut.quiet, 1)
        for stall in (0, 3, 9):
            ctx.set(dut.resp.ready, 0)
            ctx.set(dut.req.payload.inst, encode("csrrs", 10, "mxinfo", 0))
            ctx.set(dut.req.valid, 1)
            assert ctx.get(dut.req.ready) and ctx.get(dut.idle)
            await ctx.tick()
            ctx.set(dut.req.valid, 0)
            for cycle in range(40):
                assert not ctx.get(dut.idle), f"idle {cycle} cycles after the request"
                if ctx.get(dut.resp.valid) and cycle >= stall + Decode.STAGES:
                    break
                await ctx.tick()
            else:
                raise AssertionError("no response in 40 cycles")
            ctx.set(dut.resp.ready, 1)
            await ctx.tick()
            assert ctx.get(dut.idle)

    simulate(dut, bench, clocked=True)


def test_the_decoder_answers_every_cycle():
    """From the first answer on, and on again after the host took none for a while."""
    dut = Decode(CFG)

    async def bench(ctx):
        ctx.set(dut.quiet, 1)
        ctx.set(dut.req.payload.inst, encode("csrrs", 10, "mxinfo", 0))
        ctx.set(dut.req.valid, 1)
        sent = taken = 0
        for cycle in range(160):
            stalls = 60 <= cycle < 100
            ctx.set(dut.resp.ready, not stalls)
            ctx.set(dut.req.payload.tag, sent % (1 << CFG.tag_bits))
            if cycle >= Decode.STAGES + 2 and not stalls:
                assert ctx.get(dut.resp.valid), f"no answer in cycle {cycle}"
                assert ctx.get(dut.resp.payload.tag) == taken % (1 << CFG.tag_bits)
                taken += 1
            if 90 <= cycle < 100:
                assert not ctx.get(dut.req.ready), "more is let in than there is room for"
            sent += ctx.get(dut.req.ready)
            await ctx.tick()

    simulate(dut, bench, clocked=True)


def test_three_places_keep_order_under_random_stalls():
    """Wide and narrow fields together; ready as if nothing was taken; at best an item a cycle."""
    shape = data.StructLayout({"a": 70, "b": 3, "c": 140})
    dut = ThreePlaces(shape, ("a", "c"))
    rng = random.Random(SEED)
    seen = set()

    async def bench(ctx):
        await ctx.tick()  # nothing may come before
        for gaps in (0.0, 0.5, 0.1, 0.9):
            number, taken, expected, cycles, offers, most = 0, 0, [], 0, False, 0
            while taken < 200:
                offers = offers or rng.random() >= gaps
                item = {
                    "a": number << 60 & (1 << 70) - 1,
                    "b": number % 8,
                    "c": number << 130 | number,
                }
                takes = rng.random() >= gaps
                ctx.set(dut.i.valid, offers)
                ctx.set(dut.i.payload, item)
                ctx.set(dut.o.ready, takes)
                where = f"seed {SEED}, gaps {gaps}, item {number}"
                held = len(expected) - taken
                assert ctx.get(dut.i.ready) == (most < 3), where
                assert ctx.get(dut.o.valid) == (held > 0), where
                if held:
                    found, first = ctx.get(dut.o.payload), expected[taken]
                    assert (found.a, found.b) == (first << 60 & (1 << 70) - 1, first % 8), where
                    assert found.c == (first << 130 | first) & (1 << 140) - 1, where
                comes = offers and most < 3
                seen.add((held, comes, takes))
                most = held + comes  # if none is taken
                for late in (not takes, takes):
                    ctx.set(dut.o.ready, late)
                    assert ctx.get(dut.ready_next) == (most < 3), where
                taken += takes and held > 0
                if comes:
                    expected.append(number)
                    number, offers = number + 1, False
                await ctx.tick()
                cycles += 1
            assert gaps or cycles == taken + ThreePlaces.LATENCY
            ctx.set(dut.i.valid, 0)
            ctx.set(dut.o.ready, 1)
            await ctx.tick().repeat(4)

    simulate(dut, bench, clocked=True)
    assert {held for held, *_ in seen} == {0, 1, 2, 3}, f"seed {SEED}"


def test_fairness_skips_once_after_patience():
    """One skip for each request that lost 15 cycles, and another only if that one did not help."""
    depth = 10
    dut = Fairness(CFG, mac_depth=depth)

    async def bench(ctx):
        async def wait_for_skip(limit):
            for cycle in range(limit):
                if ctx.get(dut.skip):
                    return cycle
                await ctx.tick()
            return None

        for requester in range(len(Fairness.REQUESTERS)):
            ctx.set(dut.waiting, 1 << requester)
            assert await wait_for_skip(40) == PATIENCE
            starved = Fairness.REQUESTERS[requester] == "load"
            assert ctx.get(dut.load_starved) == starved
            ctx.set(dut.skipped, 1)
            await ctx.tick()
            ctx.set(dut.skipped, 0)
            assert await wait_for_skip(60) == depth
            ctx.set(dut.skipped, 1)
            await ctx.tick()
            ctx.set(dut.skipped, 0)
            ctx.set(dut.waiting, 0)
            assert await wait_for_skip(60) is None
        # Losing now and then is no reason.
        for _ in range(6):
            ctx.set(dut.waiting, 1)
            await ctx.tick().repeat(PATIENCE - 1)
            ctx.set(dut.waiting, 0)
            await ctx.tick()
        assert not ctx.get(dut.skip)

    simulate(dut, bench, clocked=True)


def test_scoreboard_times_mma_results_exactly():
    """A tile is held until its result is written; a word until a C read would see it."""
    depth, loop = 10, 6
    dut = Scoreboard(CFG, mac_depth=depth, loop=loop, words=2)

    async def bench(ctx):
        ctx.set(dut.mac_c.tile, 5)
        ctx.set(dut.mac_c.block, 2)
        for index, block in enumerate((2, 3)):  # the word itself, and its neighbour
            ctx.set(dut.word[index].tile, 5)
            ctx.set(dut.word[index].block, block)
        ctx.set(dut.mac_waiting, 1)
        ctx.set(dut.mac_writes, 1)
        ctx.set(dut.mac_go, 1)
        assert ctx.get(dut.accumulating) == 1 << 5 and ctx.get(dut.word_busy) == 0b01
        await ctx.tick()
        ctx.set(dut.mac_waiting, 0)
        ctx.set(dut.mac_go, 0)
        held, busy, idle = [], [], []
        for _ in range(2 * depth):
            held.append(ctx.get(dut.accumulating) == 1 << 5)
            busy.append(ctx.get(dut.word_busy))
            idle.append(ctx.get(dut.idle))
            await ctx.tick()

        def until(cycles):
            return [1] * cycles + [0] * (2 * depth - cycles)

        # Registers before the operand read of who is let through: what is blocked (of tiles), that
        # the uop is not, the uop on offer, the one issued. Who waits for all does so to the end.
        assert held == until(depth - 4)
        assert busy == until(loop - 1 - 3)
        assert idle == [not busy for busy in until(depth - 1)]

    simulate(dut, bench, clocked=True)


def test_scoreboard_counts_loads():
    """Loads return in any order; a tile is free when as many came back as left."""
    dut = Scoreboard(CFG, mac_depth=10, loop=6, words=1)
    rng = random.Random(SEED)

    async def bench(ctx):
        out = [0] * CFG.tiles
        for cycle in range(600):
            growing = cycle < 400
            leaves = growing and rng.random() < 0.6
            tile = rng.randrange(4)
            leaves = leaves and out[tile] < 2 * CFG.rows
            back = rng.choice([t for t in range(4) if out[t]] or [None])
            returns = back is not None and (not growing or rng.random() < 0.5)
            ctx.set(dut.load_waiting, leaves)
            ctx.set(dut.load_go, leaves)
            ctx.set(dut.load_tile, tile)
            ctx.set(dut.load_retired, returns)
            ctx.set(dut.load_retired_tile, back or 0)
            expected = sum(1 << t for t in range(4) if out[t] or (leaves and t == tile))
            assert ctx.get(dut.writing) == expected, f"seed {SEED}, cycle {cycle}"
            out[tile] += leaves
            if returns:
                out[back] -= 1
            await ctx.tick()
        assert not any(out)

    simulate(dut, bench, clocked=True)
