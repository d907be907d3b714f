"""Moves: split counter and unit together on a small tile file, against the reference."""

from __future__ import annotations

import os
import random
from collections import deque

import numpy as np
import pytest
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.sim import Simulator

from hdl.config import PRESETS, Config
from hdl.interfaces import ReadPort, move_fields, result_write, tile_word
from hdl.isa import MoveOp
from hdl.issue.move_split import MoveSplit
from hdl.issue.scoreboard import Scoreboard
from hdl.units.move import MoveUnit
from hdl.units.squares import SIZES_LOG2, Squares, buffer_words
from sim.reference import moves

SEED = int(os.environ.get("TEST_SEED", "1"))

CONFIGS = {
    "word of 4 rows": Config(),
    "word of 2 rows": Config(m_par=2, n_par=1),
    "word of 1 row": Config(m_par=1, n_par=1),
    "word of 8 rows": Config(m_par=8, n_par=1),
    "tile is a word": Config(m_par=4, n_par=1, rows=4, row_bits=64, bus_bits=64),
    "wide rows": Config(tiles=8, rows=8, row_bits=256, banks=2, m_par=4, n_par=2),
    "two files": Config(accumulators="split"),
    "block RAM": Config(tile_memory="block"),
}


class Bench(wiring.Component):
    """The split counter feeds the unit."""

    def __init__(self, cfg):
        self.cfg = cfg
        super().__init__(
            {
                "start": In(1),
                "fields": In(move_fields(cfg)),
                "hold": In(1),
                "a": Out(ReadPort(tile_word(cfg), cfg.word_bits)),
                "result": Out(result_write(cfg)),
                "mac": In(result_write(cfg)),
                "mac_next": In(1),
                "mac_next_tile": In(cfg.tile_bits),
                "result_next": Out(1),
                "result_next_tile": Out(cfg.tile_bits),
                "a_busy": In(1),
                "result_busy": In(1),
                "yield_": In(1),
                "scalar": In(64),
                "scalar_done": Out(1),
                "element_valid": Out(1),
                "element": Out(64),
                "done": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.split = split = MoveSplit(self.cfg)
        m.submodules.unit = unit = MoveUnit(self.cfg)
        wiring.connect(m, unit.a, wiring.flipped(self.a))
        wiring.connect(m, unit.result, wiring.flipped(self.result))
        wiring.connect(m, wiring.flipped(self.mac), unit.mac)
        m.d.comb += [
            split.start.eq(self.start),
            split.fields.eq(self.fields),
            unit.uops.payload.eq(split.uop),
            unit.uops.valid.eq(~self.hold),
            split.step.eq(unit.uops.valid & unit.uops.ready),
            unit.mac_next.eq(self.mac_next),
            unit.mac_next_tile.eq(self.mac_next_tile),
            self.result_next.eq(unit.result_next),
            self.result_next_tile.eq(unit.result_next_tile),
            unit.a_busy.eq(self.a_busy),
            unit.result_busy.eq(self.result_busy),
            unit.yield_.eq(self.yield_),
            unit.scalar.eq(self.scalar),
            self.scalar_done.eq(unit.scalar_done),
            self.element_valid.eq(unit.element_valid),
            self.element.eq(unit.element),
            self.done.eq(split.done),
        ]
        return m


def run(cfg, cases, tiles, rng, stall):
    """Run moves one after the other on `tiles`, in place; (cycles, elements, scalars done)."""
    dut = Bench(cfg)
    words = {
        (tile, block): tiles[tile, block * cfg.m_par : (block + 1) * cfg.m_par]
        for tile in range(len(tiles))
        for block in range(cfg.blocks)
    }
    cycles, elements, scalars = [], [], 0

    async def bench(ctx):
        nonlocal scalars
        answers = deque([0] * cfg.read_latency)
        results = deque([{}] * cfg.move_latency)  # of the MAC, by the cycle in which they come

        announced = None

        async def cycle():
            nonlocal scalars, announced
            a_busy = rng.random() < stall
            ctx.set(dut.a_busy, a_busy)
            busy = rng.random() < stall
            ctx.set(dut.result_busy, busy)
            coming = {"data": cfg.word_bits, "mask": cfg.word_bits // 8, "tile": cfg.tile_bits}
            results.append({name: rng.getrandbits(n) for name, n in coming.items()} if busy else {})
            result = results.popleft()
            ctx.set(dut.mac.valid, bool(result))
            noise = rng.getrandbits(cfg.word_bits)
            ctx.set(dut.mac.data, result.get("data", noise))
            ctx.set(dut.mac.mask, result.get("mask", 0))
            ctx.set(dut.mac.addr.tile, result.get("tile", 0))
            ctx.set(dut.mac_next, bool(results[0]))
            ctx.set(dut.mac_next_tile, results[0].get("tile", 0))
            if announced is not None:
                assert ctx.get(dut.result.valid) == announced[0], f"seed {SEED}"
                if announced[0]:
                    assert ctx.get(dut.result.addr.tile) == announced[1], f"seed {SEED}"
            announced = ctx.get(dut.result_next), ctx.get(dut.result_next_tile)
            ctx.set(dut.yield_, rng.random() < stall / 2)
            ctx.set(dut.a.ready, rng.random() >= stall)
            ctx.set(dut.a.data, answers.popleft())
            written = None
            if result:
                assert ctx.get(dut.result.valid)
                for name in ("data", "mask"):
                    value = result[name]
                    assert ctx.get(getattr(dut.result, name)) == value, f"seed {SEED}: {name}"
            elif ctx.get(dut.result.valid):
                addr = ctx.get(dut.result.addr.tile), ctx.get(dut.result.addr.block)
                assert ctx.get(dut.result.mask) == (1 << cfg.word_bits // 8) - 1
                written = addr, ctx.get(dut.result.data)
            answer = rng.getrandbits(cfg.word_bits)  # nothing was asked for
            assert not (a_busy and ctx.get(dut.a.valid)), f"seed {SEED}"
            if ctx.get(dut.a.valid) and ctx.get(dut.a.ready):
                addr = ctx.get(dut.a.addr.tile), ctx.get(dut.a.addr.block)
                assert written is None or written[0] != addr, "read and write of one word"
                answer = int.from_bytes(words[addr].tobytes(), "little")
            answers.append(answer)
            if written:
                content = written[1].to_bytes(cfg.word_bits // 8, "little")
                words[written[0]][...] = np.frombuffer(content, np.uint8).reshape(cfg.m_par, -1)
            if ctx.get(dut.element_valid):
                elements.append(ctx.get(dut.element))
            scalars += ctx.get(dut.scalar_done)
            done = ctx.get(dut.done)
            await ctx.tick()
            return done

        ctx.set(dut.hold, 1)
        for fields, scalar in cases:
            for name, value in fields.items():
                ctx.set(dut.fields[name], value)
            ctx.set(dut.scalar, scalar)
            ctx.set(dut.start, 1)
            await cycle()
            ctx.set(dut.start, 0)
            ctx.set(dut.fields.as_value(), rng.getrandbits(30))
            count, ended = 0, False
            while not ended:
                count += 1
                assert count < 4000, f"seed {SEED}: {fields} never ended"
                ctx.set(dut.hold, rng.random() < stall)
                ended = await cycle()
            cycles.append(count)
            ctx.set(dut.hold, 1)
            for _ in range(cfg.move_latency + 1):
                await cycle()

    sim = Simulator(dut)
    sim.add_clock(1e-6)
    sim.add_testbench(bench)
    sim.run()
    return cycles, elements, scalars


def expected(cfg, fields, scalar, tiles):
    """Do the move on `tiles`; returns the element it answers with."""
    op, size, count = MoveOp(fields["op"]), 1 << fields["size"], fields["tiles"] + 1
    source = tiles[fields["src"] : fields["src"] + count].copy()
    row, byte = divmod(fields["at"], cfg.row_bytes)
    if op is MoveOp.ELEMENT:
        return moves.element(source[0], fields["at"] // size, size)
    tiles[fields["dst"] : fields["dst"] + count] = {
        MoveOp.MMOV: lambda: source,
        MoveOp.MMOV_OTHER: lambda: source,
        MoveOp.MZERO: lambda: 0,
        MoveOp.MTRANS: lambda: moves.transposed(source, size),
        MoveOp.ROW: lambda: moves.broadcast_row(source[0], row),
        MoveOp.COLUMN: lambda: moves.broadcast_column(source[0], byte // size, size),
        MoveOp.SCALAR: lambda: moves.broadcast_scalar(cfg.rows, cfg.row_bytes, scalar, size),
    }[op]()
    return None


def cases_of(cfg, rng):
    """Every operation with every size, apart and in place."""
    cases = []
    for op in MoveOp:
        for size in SIZES_LOG2:
            for in_place in (False, True):
                at = 0
                if op is MoveOp.ROW:
                    at = rng.randrange(cfg.rows) * cfg.row_bytes
                elif op is MoveOp.COLUMN:
                    at = rng.randrange(cfg.row_bytes >> size) << size
                elif op is MoveOp.ELEMENT:
                    at = rng.randrange(cfg.rows * cfg.row_bytes >> size) << size
                tiles = {MoveOp.MTRANS: cfg.result_tiles(8 << size)}.get(op, 1)
                if op in (MoveOp.MMOV, MoveOp.MZERO, MoveOp.MMOV_OTHER):
                    tiles = rng.choice((1, 2))
                if 2 * tiles > cfg.all_tiles:
                    continue
                src = rng.randrange(cfg.all_tiles // 2 - tiles + 1)
                dst = src if in_place else src + cfg.all_tiles // 2
                fields = {"op": op, "size": size, "at": at, "src": src, "dst": dst}
                cases.append((fields | {"tiles": tiles - 1}, rng.getrandbits(64)))
    rng.shuffle(cases)
    return cases


@pytest.mark.parametrize("stall", [0.0, 0.3])
@pytest.mark.parametrize("name", CONFIGS)
def test_every_move(name, stall):
    cfg = CONFIGS[name]
    rng = random.Random(f"{SEED} {name}")
    cases = cases_of(cfg, rng)
    tiles = np.frombuffer(
        rng.randbytes(cfg.all_tiles * cfg.rows * cfg.row_bytes), np.uint8
    ).reshape(cfg.all_tiles, cfg.rows, cfg.row_bytes)
    got, want = tiles.copy(), tiles.copy()
    cycles, elements, scalars = run(cfg, cases, got, rng, stall)
    answers = [expected(cfg, fields, scalar, want) for fields, scalar in cases]
    assert (got == want).all(), f"seed {SEED}: {np.argwhere(got != want)[0]} differs"
    assert elements == [answer for answer in answers if answer is not None]
    assert scalars == sum(fields["op"] == MoveOp.SCALAR for fields, _ in cases)
    if not stall:
        for count, (fields, _) in zip(cycles, cases, strict=True):
            assert count == uops(cfg, fields), f"seed {SEED}: {fields}"


def uops(cfg, fields):
    """Cycles of a move that nothing holds up (docs/isa.md)."""
    words = (fields["tiles"] + 1) * cfg.blocks
    return {MoveOp.ELEMENT: 1, MoveOp.ROW: 1 + words, MoveOp.MTRANS: 2 * words}.get(
        fields["op"], words
    )


@pytest.mark.parametrize("name", PRESETS)
def test_who_waits_for_a_move_comes_after_its_write(name):
    """The first uop due to the end of what is told reads its tiles so many cycles later."""
    cfg = PRESETS[name]
    assert Scoreboard.MOVE_STAGES + Scoreboard.latency(cfg) >= cfg.move_latency


def test_squares_fill_the_group():
    for cfg in CONFIGS.values():
        for size in SIZES_LOG2:
            squares = Squares.of(cfg, size)
            words = squares.count**2 * squares.words
            assert words == cfg.result_tiles(8 << size) * cfg.blocks
            assert 1 in (squares.blocks, squares.tiles)
    assert buffer_words(Config()) == 4
