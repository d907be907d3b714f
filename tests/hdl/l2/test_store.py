"""The store pipe against bytes in memory, exact requests and exact cycles."""

import random

import pytest
from l2_bench import SEED, StoreBench
from l2_walks import requests, walks
from test_load import CONFIGS

from hdl.config import preset
from hdl.l2.store import StorePipe
from sim.memory import PERSONALITIES, Memory

AME = preset("ame32")
SIZE = 0x2000


def check(cfg, seed, personality, *, parts=120, gap=0.0, stall=0.0):
    rng = random.Random(seed)
    base = rng.randrange(0, (1 << cfg.addr_bits) - SIZE) & ~0xFF
    memory = Memory(cfg.addr_bits)
    memory.add_region(base, SIZE)
    before = rng.randbytes(SIZE)
    memory.write(base, before)
    uops = walks(cfg, rng, parts, base, base + SIZE, zeros=False)
    memory.forbid_all()
    for part in uops:
        memory.allow_write(part.addr, part.size)
    bench = StoreBench(StorePipe(cfg), uops, memory, personality, seed, gap=gap, stall=stall)
    run = bench.simulate()
    note = bench.note

    want = bytearray(before)
    for part in uops:
        row = bench.rows[part.tile, part.row].to_bytes(cfg.row_bytes, "little")
        at = part.addr - base
        want[at : at + part.size] = row[part.first : part.last + 1]
    expected = requests(cfg, uops)
    assert [r[1:] for r in run.requests] == [r[:2] for r in expected], note
    assert memory.read(base, SIZE) == want, note
    assert run.full_lines == sum(r[2] for r in expected), note
    assert [r[1:] for r in run.reads] == [(p.tile, p.row) for p in uops], note
    assert len(run.beats) == sum(r[1] + 1 for r in expected), note
    return bench, uops


@pytest.mark.parametrize("name", PERSONALITIES)
def test_random_walks(name):
    bench, uops = check(AME, SEED, PERSONALITIES[name], parts=250, gap=0.2, stall=0.3)


@pytest.mark.parametrize("config", CONFIGS)
def test_configurations(config):
    cfg = CONFIGS[config]
    for number, name in enumerate(("fast", "jittery", "stalling")):
        stall = 0.4 * number
        check(cfg, SEED + number, PERSONALITIES[name], parts=120, gap=0.2, stall=stall)
