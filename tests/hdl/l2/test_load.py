"""The load pipe against bytes in memory, exact requests and exact cycles."""

import random
from collections import Counter

import pytest
from l2_bench import SEED, LoadBench, expected_write, masked
from l2_walks import Part, coverage, requests, walks

from hdl.config import Config, preset
from hdl.l2.load import LoadPipe
from sim.memory import IDEAL, PERSONALITIES, Memory

AME = preset("ame32")
CONFIGS = {
    "ame32": AME,
    "ids4": AME.replace(l2_ids=4, m_par=2, n_par=1),
    "id1": AME.replace(l2_ids=1),
    "row256": AME.replace(tiles=8, rows=8, row_bits=256, l2_ids=8),
    "row512": AME.replace(rows=4, row_bits=512, line_bytes=128, m_par=2, n_par=2),
    "line32": AME.replace(line_bytes=32, m_par=1, n_par=1),
    "line16": AME.replace(line_bytes=16, rows=8, m_par=8, banks=1),
    "bus64": AME.replace(bus_bits=64, line_bytes=32),
    "line128": AME.replace(line_bytes=128, l2_ids=16, addr_bits=32),
}
SIZE = 0x2000


def check(cfg, seed, personality, *, parts=120, gap=0.0, stall=0.0, failing=0):
    rng = random.Random(seed)
    base = rng.randrange(0, (1 << cfg.addr_bits) - SIZE) & ~0xFF
    memory = Memory(cfg.addr_bits)
    memory.add_region(base, SIZE)
    memory.write(base, rng.randbytes(SIZE))
    uops = walks(cfg, rng, parts, base, base + SIZE)
    memory.forbid_all()
    for part in uops:
        if not part.zero:
            memory.allow_read(part.addr, part.size)
    bad = set()
    for _ in range(failing):
        part = rng.choice([p for p in uops if not p.zero])
        memory.fail_read(part.addr, 1)
        bad.add(part.addr // cfg.bus_bytes)
    bench = LoadBench(LoadPipe(cfg), uops, memory, personality, seed, gap=gap, stall=stall)
    run = bench.simulate()
    note = bench.note

    assert [r[1:] for r in run.requests] == [r[:2] for r in requests(cfg, uops)], note
    want = Counter(expected_write(cfg, memory, part, bad) for part in uops)
    got = Counter(masked(cfg, fields) for _, fields in run.writes)
    assert got == want, f"{note}: missing {want - got}, too many {got - want}"
    grants = [(cycle + LoadPipe.WRITE_TO_RETIRED, f["tile"]) for cycle, f in run.writes]
    assert run.retired == grants, note
    assert run.bus_errors == bench.model.traffic.read_errors, note
    assert bool(failing) == bool(run.bus_errors), note
    return bench, uops


@pytest.mark.parametrize("name", PERSONALITIES)
def test_random_walks(name):
    bench, uops = check(AME, SEED, PERSONALITIES[name], parts=250, gap=0.2, stall=0.3)
    assert bench.checks["tile"].stalled, "the tile file never stalled a write"


@pytest.mark.parametrize("config", CONFIGS)
def test_configurations(config):
    cfg = CONFIGS[config]
    for number, name in enumerate(("fast", "jittery", "stalling")):
        stall = 0.4 * number
        check(cfg, SEED + number, PERSONALITIES[name], parts=120, gap=0.2, stall=stall)
