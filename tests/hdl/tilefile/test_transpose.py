"""Transposed operand tiles: every tile, word and part against numpy's transpose."""

import os
import random

import numpy as np
import pytest
from amaranth.sim import Simulator

from hdl.config import Config
from hdl.tilefile.transpose import TransposedTiles

SEED = int(os.environ.get("TEST_SEED", "1"))

CONFIGS = {
    **{f"m_par{m_par}": Config(m_par=m_par, n_par=1) for m_par in (1, 2, 4, 8)},
    "small": Config(tiles=8, rows=8, row_bits=64, bus_bits=64, m_par=4, n_par=2),
    "one_word": Config(tiles=8, rows=8, row_bits=64, bus_bits=64, m_par=8, n_par=8),
}


@pytest.mark.parametrize("name", CONFIGS)
def test_tiles_are_transposed_in_sixteen_writes_or_fewer(name):
    cfg = CONFIGS[name]
    assert cfg.transposes
    dut = TransposedTiles(cfg)
    assert cfg.blocks * dut.parts <= 16
    rng = random.Random(SEED)
    tiles = np.frombuffer(rng.randbytes(4 * cfg.rows**2), np.uint8)
    tiles = tiles.reshape(4, cfg.rows, cfg.rows)
    steps = [(t, w, p) for t in range(4) for w in range(cfg.blocks) for p in range(dut.parts)]
    rng.shuffle(steps)  # no write depends on another

    def word(tile, number):
        rows = tile[number * cfg.m_par : (number + 1) * cfg.m_par]
        return int.from_bytes(rows.tobytes(), "little")

    async def bench(ctx):
        for tile, number, part in steps:
            ctx.set(dut.write, 1)
            ctx.set(dut.index, tile)
            ctx.set(dut.word, number)
            ctx.set(dut.part, part)
            ctx.set(dut.data, word(tiles[tile], number))
            await ctx.tick()
        ctx.set(dut.write, 0)
        ctx.set(dut.data, 0)
        for tile in range(4):
            for number in range(cfg.blocks):
                ctx.set(dut.read, 1)
                ctx.set(dut.read_index, tile)
                ctx.set(dut.read_word, number)
                await ctx.tick()
                ctx.set(dut.read, 0)
                ctx.set(dut.read_index, rng.randrange(4))
                ctx.set(dut.read_word, rng.randrange(cfg.blocks))
                got = ctx.get(dut.read_data)
                assert got == word(tiles[tile].T, number), f"seed {SEED}: {tile, number}"

    sim = Simulator(dut)
    sim.add_clock(1e-6)
    sim.add_testbench(bench)
    sim.run()


def test_other_shapes_have_no_transposes():
    assert not Config(rows=8, row_bits=256, m_par=4).transposes
    assert not Config(formats=("fp16",)).transposes
    assert Config(formats=("fp6_e3m2",)).transposes  # in containers of 8 bits
