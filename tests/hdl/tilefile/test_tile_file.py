"""The tile file against a plain model of its bytes, its priorities and its ports."""

import os
import random
import re
from collections import deque

import numpy as np
import pytest
from amaranth.back import rtlil
from amaranth.sim import Simulator
from yosys_tool import run_yosys

from hdl.config import Config, preset
from hdl.tilefile.file import TileFile

SEED = int(os.environ.get("TEST_SEED", "1"))

CONFIGS = {
    "ame32": preset("ame32-int8"),
    "tiny": preset("tiny"),
    "registers": Config(tiles=8, rows=8, row_bits=256, banks=4, m_par=4, n_par=4),
    "one_bank": Config(tiles=4, rows=4, row_bits=128, banks=1, m_par=4, n_par=2),
    "block": Config(
        n_par=2, tiles=4, rows=4, row_bits=64, bus_bits=64, banks=2, m_par=2, tile_memory="block"
    ),
    "one_row": Config(tiles=8, rows=4, row_bits=128, banks=2, m_par=1, n_par=1),
}


class Model:
    """Bytes of every tile, and who wins."""

    def __init__(self, cfg):
        self.cfg = cfg
        self.tiles = np.zeros((cfg.tiles, cfg.rows, cfg.row_bytes), dtype=np.uint8)

    def word(self, tile, block):
        m = self.cfg.m_par
        return int.from_bytes(self.tiles[tile, block * m : block * m + m].tobytes(), "little")

    def row(self, tile, row):
        return int.from_bytes(self.tiles[tile, row].tobytes(), "little")

    def write_word(self, tile, block, data, mask):
        m, size = self.cfg.m_par, self.cfg.word_bits // 8
        old = self.tiles[tile, block * m : block * m + m].reshape(-1)
        new = np.frombuffer(data.to_bytes(size, "little"), dtype=np.uint8)
        select = np.array([mask >> i & 1 for i in range(size)], dtype=bool)
        self.tiles[tile, block * m : block * m + m] = np.where(select, new, old).reshape(m, -1)

    def bank(self, tile):
        return tile * self.cfg.banks // self.cfg.tiles


@pytest.mark.parametrize("name", CONFIGS)
def test_reads_and_writes(name):
    """Random traffic on every port: right data, right winners, nothing lost."""
    cfg = CONFIGS[name]
    rng = random.Random(SEED)
    dut = TileFile(cfg)
    model = Model(cfg)
    seen = {"b_lost": 0, "move_lost": 0, "store_lost": 0, "load_lost": 0, "same_bank_pair": 0}

    async def bench(ctx):
        expected: dict[str, int] = {}
        coming: deque[dict[str, int]] = deque({} for _ in range(cfg.read_latency - 1))

        def plan():
            """What is asked for in a cycle: by whom, tiles, rows or blocks, words to write."""
            busy = rng.random()
            tiles = rng.choice([cfg.tiles, max(1, cfg.tiles // cfg.banks)])  # spread or crowded
            wants = {p: rng.random() < 0.3 + 0.7 * busy for p in ("a", "b", "c", "move", "store")}
            wants["move"] &= not wants["a"]
            target = {p: rng.randrange(tiles) for p in wants}
            place = {p: rng.randrange(cfg.rows if p == "store" else cfg.blocks) for p in wants}
            # Writes never meet a read of the same word in the same cycle (the scoreboard's job).
            read = {
                (target[p], place[p] // cfg.m_par if p == "store" else place[p])
                for p in wants
                if wants[p]
            }

            def free_word(read=read, tiles=tiles):
                for _ in range(100):
                    word = (rng.randrange(tiles), rng.randrange(cfg.blocks))
                    if word not in read:
                        return word
                return None

            result, load = free_word(), free_word()
            result_on = result is not None and rng.random() < busy
            load_on = load is not None and rng.random() < busy
            if result_on and load_on and result == load:
                load_on = False
            return wants, target, place, result, result_on, load, load_on

        def announce(wants, target, place, result, result_on, load, load_on):
            # One of several is what A and B read, unless neither does; the others are anything.
            chosen = rng.randrange(cfg.slots + 1)
            ctx.set(dut.reads_chosen, (wants["a"] or wants["b"]) << chosen)
            for index in range(cfg.slots + 1):
                for name in "ab":
                    own = index == chosen
                    reads = dut.reads_next[index]
                    on = wants[name] if own else rng.randrange(2)
                    tile = target[name] if own else rng.randrange(cfg.tiles)
                    ctx.set(reads[name], on)
                    ctx.set(reads[f"{name}_tile"], tile)
            ctx.set(dut.c_next, wants["c"])
            ctx.set(dut.c_next_tile, target["c"])
            ctx.set(dut.result_next, result_on)
            ctx.set(dut.result_next_tile, result[0] if result_on else rng.randrange(cfg.tiles))

        following = plan()
        announce(*following)
        await ctx.tick()
        for cycle in range(900):
            where = f"seed {SEED}, cycle {cycle}"
            wants, target, place, result, result_on, load, load_on = following
            following = plan()
            announce(*following)
            for p in wants:
                port = getattr(dut, p)
                ctx.set(port.valid, wants[p])
                ctx.set(port.addr.tile, target[p])
                ctx.set(port.addr.row if p == "store" else port.addr.block, place[p])
            ctx.set(dut.result.valid, result_on)
            ctx.set(dut.load.valid, load_on)
            if result_on:
                data, mask = rng.getrandbits(cfg.word_bits), rng.getrandbits(cfg.word_bits // 8)
                ctx.set(dut.result.addr.tile, result[0])
                ctx.set(dut.result.addr.block, result[1])
                ctx.set(dut.result.data, data)
                ctx.set(dut.result.mask, mask)
            if load_on:
                row, rows = rng.getrandbits(cfg.row_bits), rng.getrandbits(cfg.m_par)
                row_mask = rng.getrandbits(cfg.row_bytes)
                payload = dut.load.payload
                for field, value in (
                    ("tile", load[0]),
                    ("block", load[1]),
                    ("rows", rows),
                    ("mask", row_mask),
                    ("data", row),
                ):
                    ctx.set(getattr(payload, field), value)

            coming.append(expected)
            for p, value in coming.popleft().items():
                assert ctx.get(getattr(dut, p).data) == value, f"{where}: data of {p}"
            expected = {}

            bank = {p: model.bank(target[p]) for p in wants if wants[p]}
            b_wins = not (bank.get("b") == bank.get("a") == bank.get("c")) if "b" in bank else False
            store_wins = (
                "store" in bank and sum(bank.get(p) == bank["store"] for p in ("a", "b", "c")) < 2
            )
            move_wins = (
                "move" in bank and sum(bank.get(p) == bank["move"] for p in ("b", "c", "store")) < 2
            )
            assert ctx.get(dut.c.ready) and ctx.get(dut.a.ready), where
            if wants["b"]:
                assert ctx.get(dut.b.ready) == b_wins, where
                seen["b_lost"] += not b_wins
            if wants["move"]:
                assert ctx.get(dut.move.ready) == move_wins, where
                seen["move_lost"] += not move_wins
            if wants["store"]:
                assert ctx.get(dut.store.ready) == store_wins, where
                seen["store_lost"] += not store_wins
                seen["same_bank_pair"] += store_wins and bank["store"] in (
                    bank.get("a"),
                    bank.get("b"),
                    bank.get("c"),
                    bank.get("move"),
                )
            wins = {
                "a": wants["a"],
                "c": wants["c"],
                "b": b_wins,
                "move": move_wins,
                "store": store_wins,
            }
            for p, won in wins.items():
                if won and wants[p]:
                    get = model.row if p == "store" else model.word
                    expected[p] = get(target[p], place[p])

            if result_on:
                model.write_word(*result, data, mask)
            if load_on:
                taken = not (result_on and model.bank(result[0]) == model.bank(load[0]))
                assert ctx.get(dut.load.ready) == taken, where
                seen["load_lost"] += not taken
                if taken:
                    for r in range(cfg.m_par):
                        if rows >> r & 1:
                            model.write_word(
                                *load,
                                row << r * cfg.row_bits,
                                row_mask << r * cfg.row_bytes,
                            )
            await ctx.tick()

    sim = Simulator(dut)
    sim.add_clock(1e-6)
    sim.add_testbench(bench)
    sim.run()
    assert all(seen.values()), f"seed {SEED}: never happened: {seen}"


def test_synthesis_keeps_memories(tmp_path):
    """ECP5 synthesis finds memories; registers are at most the read outputs and selects."""
    cfg = Config(tiles=8, rows=4, row_bits=64, bus_bits=64, banks=4, m_par=2, n_par=2)
    (tmp_path / "dut.il").write_text(rtlil.convert(TileFile(cfg), name="dut"))
    run_yosys(
        "read_rtlil dut.il\n"
        "setparam -set COLLISION_X_MASK 1'b1 t:$memrd_v2\n"
        "synth_ecp5 -top dut\ntee -o stat.txt stat\n",
        tmp_path,
    )
    stat = (tmp_path / "stat.txt").read_text()
    counts = {cell: int(n) for n, cell in re.findall(r"^\s+(\d+)\s+(\w+)$", stat, re.M)}
    stored = cfg.tiles * cfg.rows * cfg.row_bits
    ram = 64 * counts.get("TRELLIS_DPR16X4", 0) + 18432 * counts.get("DP16KD", 0)
    assert ram >= 2 * stored, stat
    outputs = 2 * cfg.banks * cfg.word_bits
    assert counts.get("TRELLIS_FF", 0) <= outputs + 64, stat
