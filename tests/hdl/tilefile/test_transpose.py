"""Transposed operand tiles: every tile, word and part against numpy's transpose."""

import os
import random
from collections import deque

import numpy as np
import pytest
from amaranth.sim import Simulator

from hdl.config import Config
from hdl.interfaces import transpose_parts
from hdl.tilefile.transpose import OperandPath, TransposedTiles

SEED = int(os.environ.get("TEST_SEED", "1"))

CONFIGS = {
    **{f"m_par{m_par}": Config(m_par=m_par, n_par=1) for m_par in (1, 2, 4, 8)},
    "small": Config(tiles=8, rows=8, row_bits=64, bus_bits=64, m_par=4, n_par=2),
    "block": Config(m_par=4, n_par=2, tile_memory="block"),
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
        late = min(1, dut.write_latency)  # of the data
        data = [word(tiles[tile], number) for tile, number, _ in steps]
        data = [rng.getrandbits(cfg.word_bits) for _ in range(late)] + data
        for (tile, number, part), content in zip(steps, data, strict=False):
            ctx.set(dut.write, 1)
            ctx.set(dut.index, tile)
            ctx.set(dut.word, number)
            ctx.set(dut.part, part)
            ctx.set(dut.data, content)
            await ctx.tick()
        ctx.set(dut.write, 0)
        ctx.set(dut.data, data[-1] if late else 0)
        for _ in range(dut.write_latency):
            await ctx.tick()
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


@pytest.mark.parametrize("name", CONFIGS)
def test_the_path_serves_what_it_made_at_once(name):
    """Uops back to back, B's reads held up at random: every word the MAC reads is right."""
    cfg = CONFIGS[name]
    dut = OperandPath(cfg)
    rng = random.Random(SEED)
    parts = transpose_parts(cfg)

    def new_file():
        """A's tiles are 0 to 3, B's 4 to 7."""
        noise = np.frombuffer(rng.randbytes(8 * cfg.rows**2), np.uint8)
        return noise.reshape(8, cfg.rows, cfg.rows)

    def word(tile, number):
        rows = tile[number * cfg.m_par : (number + 1) * cfg.m_par]
        return int.from_bytes(rows.tobytes(), "little")

    uops = []  # (transposes, tile, word, part, a transposed, b transposed, tile file)
    for tiles, a_on, b_on in [(1, 1, 0), (1, 0, 1), (1, 1, 1), (4, 1, 1), (2, 0, 0), (3, 1, 0)]:
        file = new_file()
        if a_on or b_on:
            uops += [
                (1, t, w, p, a_on, b_on, file)
                for t in range(tiles)
                for w in range(cfg.blocks)
                for p in range(parts)
            ]
        uops += [(0, t, w, 0, a_on, b_on, file) for t in range(tiles) for w in range(cfg.blocks)]

    async def bench(ctx):
        ctx.set(dut.a.ready, 1)
        ctx.set(dut.mac_a.valid, 0)
        reads, wanted, cycle, waits = {}, {}, 0, 0  # wanted: by the cycle in which it comes
        coming = deque({"a": None, "b": None} for _ in range(cfg.read_latency - 1))
        announced = {"a": None, "b": None}  # where they are read in this cycle

        def offer(payload, makes, tile, number, part, a_on, b_on, file):
            for field, value in (
                *(("transposes", makes), ("a_transposed", a_on), ("b_transposed", b_on)),
                *(("a_index", tile), ("b_index", tile), ("part", part)),
                *(("b_tile", 4 + tile), ("b_row", number * cfg.m_par), ("new_a", 1)),
            ):
                ctx.set(payload[field], value)
            ctx.set(payload.a.tile, tile)
            ctx.set(payload.a.block, number)

        for uop, following in zip(uops, [*uops[1:], None], strict=True):
            makes, tile, number, _, a_on, b_on, file = uop
            ctx.set(dut.uops.valid, 1)
            offer(dut.uops.payload, *uop)
            # One of the offers comes next, the others do not matter.
            slot = rng.randrange(cfg.slots)
            for index in range(cfg.slots):
                anything = rng.choice(uops)
                offer(dut.offers[index], *(following if index == slot and following else anything))
            have_a = False
            for _ in range(40):
                cycle += 1
                # The MAC pipe: it asks for both words and takes the uop when it gets them.
                b_ready = announced["b"] is None or rng.random() < 0.9
                ctx.set(dut.b.ready, b_ready)
                valid = ctx.get(dut.mac.valid)
                for port, where, asks in (
                    (dut.mac_a, (tile, number), valid and not have_a),
                    (dut.mac_b, (4 + tile, number), valid),
                ):
                    ctx.set(port.valid, asks)
                    ctx.set(port.addr.tile, where[0])
                    ctx.set(port.addr.block, where[1])
                ctx.set(dut.mac.ready, ctx.get(dut.mac_b.ready) and not ctx.get(dut.hold))
                for name in ("a", "b"):
                    port = getattr(dut, name)
                    reads[name] = None
                    if cycle > 1:
                        read = ctx.get(port.addr.tile) if ctx.get(port.valid) else None
                        assert read == announced[name], f"seed {SEED}, cycle {cycle}, {name}"
                    if ctx.get(port.valid):
                        place = ctx.get(port.addr.tile), ctx.get(port.addr.block)
                        reads[name] = word(file[place[0]], place[1])
                taken = ctx.get(dut.uops.ready)
                ctx.set(dut.grants, (taken and following is not None) << slot)
                chosen = ctx.get(dut.reads_chosen)
                assert chosen.bit_count() <= 1, f"seed {SEED}, cycle {cycle}"
                announced = {"a": None, "b": None}
                if chosen:
                    reads_next = dut.reads_next[chosen.bit_length() - 1]
                    for name in announced:
                        if ctx.get(reads_next[name]):
                            announced[name] = ctx.get(reads_next[f"{name}_tile"])
                had_a, have_a = have_a, have_a or (valid and not ctx.get(dut.hold))
                if taken and not makes:
                    assert valid
                    wanted[cycle + cfg.read_latency - 1] = [
                        # A's word may have come before.
                        None if was_read else word(file[t].T if on else file[t], number)
                        for t, on, was_read in ((tile, a_on, had_a), (4 + tile, b_on, False))
                    ]
                await ctx.tick()
                coming.append(dict(reads))
                for name, value in coming.popleft().items():
                    ctx.set(
                        getattr(dut, name).data, rng.getrandbits(64) if value is None else value
                    )
                if cycle in wanted:
                    got = [ctx.get(dut.mac_a.data), ctx.get(dut.mac_b.data)]
                    for name, found, expected in zip("AB", got, wanted.pop(cycle), strict=True):
                        assert expected in (None, found), f"seed {SEED}, cycle {cycle}, {name}"
                if taken:
                    break
                waits += 1
            else:
                raise AssertionError(f"seed {SEED}: no transfer in 40 cycles")
        assert waits, f"seed {SEED}: nothing was ever held up"

    sim = Simulator(dut)
    sim.add_clock(1e-6)
    sim.add_testbench(bench)
    sim.run()
