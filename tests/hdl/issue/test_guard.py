"""The guard of GUARD4x4 against an independent function, over every input it knows."""

import os
import random
from collections import Counter

import pytest
from amaranth.hdl import Module
from amaranth.sim import Simulator

from hdl.config import Config
from hdl.formats import by_code, output_format
from hdl.issue.format_stage import FormatStage
from hdl.issue.guard import Guard
from hdl.issue.mode_stage import ModeStage

SEED = int(os.environ.get("TEST_SEED", "1"))
CFG = Config(formats=("int8",))


def simulate(dut, bench):
    sim = Simulator(dut)
    sim.add_testbench(bench)
    sim.run()


def guarded(cfg, width, tiling, guard4x4, a, b, c):
    """(tiles of A, tiles of B, fallback) by seed 000 and isa.md, from sets of tiles."""
    if not guard4x4:
        return (*((1, 1), (2, 2), (1, 4), (4, 1))[tiling], False)
    per_result = -(-cfg.rows * width // cfg.row_bits)
    results = set(range(c, c + 16 * per_result))
    granted = width <= 16 and len(results) <= 32 and max(results) < cfg.tiles
    if cfg.accumulators == "unified":
        granted = granted and not results & {*range(a, a + 4), *range(b, b + 4)}
    return (4, 4, False) if granted else (2, 2, True)


MODES_TILES = ((1, 1), (2, 2), (1, 4), (4, 1), (4, 4))


@pytest.mark.parametrize("accumulators", ["unified", "split"])
def test_guard_truth_table(accumulators):
    """Every output width, TILING, GUARD4x4, and every pair of C with A and with B."""
    cfg = CFG.replace(accumulators=accumulators)
    dut = Guard(cfg)
    rng = random.Random(SEED)
    seen = Counter()

    async def bench(ctx):
        def check(width, tiling, guard4x4, a, b, c):
            ctx.set(dut.a, a)
            ctx.set(dut.b, b)
            ctx.set(dut.c, c)
            got = (*MODES_TILES[ctx.get(dut.mode)], bool(ctx.get(dut.fallback)))
            where = f"seed {SEED}: {width, tiling, guard4x4, a, b, c}"
            assert got == guarded(cfg, width, tiling, guard4x4, a, b, c), where
            seen[width, guard4x4, got] += 1

        for width in (8, 16, 32, 64):
            ctx.set(dut.width_log2, width.bit_length() - 4)
            for guard4x4 in (0, 1):
                ctx.set(dut.guard4x4, guard4x4)
                for tiling in range(4):
                    ctx.set(dut.tiling, tiling)
                    if not guard4x4:
                        check(width, tiling, 0, *(rng.randrange(32) for _ in range(3)))
                # TILING does not matter any more: it stays 3, and the tiles go through all.
                if guard4x4:
                    for c in range(32):
                        for one in range(32):
                            other = rng.choice((rng.randrange(32), 28, 0))
                            check(width, 3, 1, one, other, c)
                            check(width, 3, 1, other, one, c)

    simulate(dut, bench)
    granted = {width for width, _, got in seen if got[:2] == (4, 4)}
    refused = {width for width, asked, got in seen if asked and got[2]}
    assert granted == ({8} if accumulators == "unified" else {8, 16})
    assert refused == {8, 16, 32, 64}


@pytest.mark.parametrize("accumulators", ["unified", "split"])
def test_guard_behind_the_formats(accumulators):
    """Every Ft code, bOVF, ACC, TILING and GUARD4x4 through the decoder's stages D and E."""
    cfg = CFG.replace(accumulators=accumulators, formats=("all",))
    formats, mode = FormatStage(cfg), ModeStage(cfg)
    top = Module()
    top.submodules.formats, top.submodules.mode = formats, mode
    top.d.comb += mode.before.eq(formats.after)
    granted = set()

    async def bench(ctx):
        before, after = formats.before, mode.after
        for name, tile in (("rd_tile", 0), ("rs1_tile", 24), ("rs2_tile", 28)):
            ctx.set(before[name], tile)
        ctx.set(before.m, 1)  # 0 is bad whatever the format
        for ft in range(256):
            for bovf in (0, 1):
                for acc in range(8):
                    ctx.set(before.mxcfg, ft | bovf << 8 | acc << 13)
                    # The table of seed 000 as the generator holds it; ACC goes before bOVF.
                    column = {0: ("full", "bovf")[bovf], 1: "wide", 2: "tf32", 3: "bf16"}.get(acc)
                    fmt = by_code(ft)
                    out = output_format(fmt, column) if fmt and column else None
                    for tiling in range(4):
                        for guard4x4 in (0, 1):
                            ctx.set(before.tiling, tiling)
                            ctx.set(before.guard4x4, guard4x4)
                            where = (ft, bovf, acc, tiling, guard4x4)
                            assert ctx.get(after.bad) == (out is None), where
                            if out is None:
                                break
                            got = (*MODES_TILES[ctx.get(after.mode)], bool(ctx.get(after.fallback)))
                            tiles = (24, 28, 0)
                            want = guarded(cfg, out.container, tiling, guard4x4, *tiles)
                            assert got == want, where
                            if got[:2] == (4, 4):
                                granted.add((fmt.name, out.name))

    simulate(top, bench)
    # Seed 000's allowed pairs.
    assert ("int8", "int8") in granted
    split = accumulators == "split"
    assert (("int8", "int16") in granted) == split
    assert (("fp8_e4m3", "fp16") in granted) == split
    assert ("int8", "int32") not in granted and ("fp16", "fp32") not in granted
