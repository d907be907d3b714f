"""The store pipe against bytes in memory, exact requests and exact cycles."""

import random

import pytest
from amaranth.hdl import ResetInserter, Signal
from amaranth.sim import Simulator
from l2_bench import AME, CONFIGS, SEED, StoreBench, run_without_collisions, watch_memories
from l2_walks import CASES, Part, coverage, cut, directed, link, mix, requests, trim, walks

from hdl.l2 import ids, store
from hdl.l2.store import StorePipe
from sim.memory import Memory
from sim.personality import IDEAL, PERSONALITIES

SIZE = 0x2000
STALLS = {"ideal": 0.0, "fast": 0.5, "slow": 0.1, "jittery": 0.2, "stalling": 0.3, "nasty": 0.05}
"""How often the tile file refuses, beside each personality."""


def problem(cfg, seed, parts):
    """Random memory and about `parts` random uops after the directed; nothing else is allowed."""
    rng = random.Random(seed)
    base = rng.randrange(0, (1 << cfg.addr_bits) - SIZE) & ~0xFF
    memory = Memory(cfg.addr_bits)
    memory.add_region(base, SIZE)
    before = rng.randbytes(SIZE)
    memory.write(base, before)
    uops = directed(cfg, base + rng.randrange(0x100), rng)
    more = [walks(cfg, rng, parts // 3, base, base + SIZE, zeros=False) for _ in range(2)]
    uops += mix(more[0], trim(more[1], rng), rng)
    memory.forbid_all()
    for part in uops:
        memory.allow_write(part.addr, part.size)
    return memory, before, uops


def judge(bench, before):
    """Everything that a finished run must have done."""
    cfg, run, note = bench.cfg, bench.result, bench.note
    uops = bench.parts
    region = bench.memory.regions[0]
    want = bytearray(before)
    for part in uops:
        row = bytearray(bench.rows[part.tile, part.row].to_bytes(cfg.row_bytes, "little"))
        if part.half:
            row[part.last] &= 0x0F
        at = part.addr - region.base
        want[at : at + part.size] = row[part.first : part.last + 1]
    expected = requests(cfg, uops)
    assert [r[1:3] for r in run.requests] == [r[:2] for r in expected], note
    assert region.data.tobytes() == bytes(want), note
    assert run.full_lines == sum(r[2] for r in expected), note
    assert [r[1:] for r in run.reads] == [(p.tile, p.row) for p in uops], note
    assert len(run.beats) == sum(r[1] for r in expected), note
    assert run.bus_errors == bench.model.traffic.write_errors, note
    return run


def check(cfg, seed, personality, *, parts=150, gap=0.0, stall=0.0, probe=0.0):
    memory, before, uops = problem(cfg, seed, parts)
    bench = StoreBench(
        StorePipe(cfg), uops, memory, personality, seed, gap=gap, stall=stall, probe=probe
    )
    bench.run()
    judge(bench, before)
    return bench


@pytest.mark.parametrize("name", PERSONALITIES)
def test_random_walks(name):
    for seed, gap in ((SEED, 0.0), (SEED + 100, 0.3)):
        bench = check(AME, seed, PERSONALITIES[name], gap=gap, stall=STALLS[name], probe=0.2)
        seen = coverage(AME, bench.parts)
        assert not [case for case in CASES if not seen[case]], bench.note
        assert bool(bench.tile_check.stalled) == bool(STALLS[name]), bench.note
        assert bench.result.full_lines, bench.note


@pytest.mark.parametrize("config", CONFIGS)
def test_configurations(config):
    for number, name in enumerate(("fast", "jittery", "stalling")):
        check(CONFIGS[config], SEED + number, PERSONALITIES[name], gap=0.2, stall=STALLS[name])


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_many_walks(seed):
    for number, cfg in enumerate((AME, *CONFIGS.values())):
        for name, personality in PERSONALITIES.items():
            at = SEED + 1000 * seed + number
            check(cfg, at, personality, gap=0.1 * (seed % 4), stall=STALLS[name])


def test_late_parts_of_a_burst_are_waited_for():
    check(AME, SEED, PERSONALITIES["jittery"], parts=60, gap=0.9)


def test_errors_are_told():
    bench = check(AME, SEED, PERSONALITIES["jittery"].replace(write_error=0.1))
    assert bench.result.bus_errors > 3, bench.note


def test_a_later_row_wins():
    parts = link(
        AME,
        [p for row in range(16) for p in cut(AME, 9, row, 0x10030 + 3 * row, 16)],
        random.Random(SEED),
    )
    memory = Memory(AME.addr_bits)
    memory.add_region(0x10000, 0x100)
    bench = StoreBench(StorePipe(AME), parts, memory, PERSONALITIES["jittery"], SEED)
    bench.run()
    judge(bench, bytes(0x100))


@pytest.mark.parametrize("config", ("ame32", "row256", "row512"))
def test_ends_of_cut_rows_pass_beside_other_rows(config):
    cfg = AME if config == "ame32" else CONFIGS[config]
    rng = random.Random(SEED)
    parts = []
    for number in range(40):
        # Some row, then one that a line cuts, from the cut on, and its successor.
        line = 0x10000 + (3 * number + 1) * cfg.line_bytes
        some = cut(cfg, 0, 0, line - cfg.line_bytes + rng.randrange(cfg.line_bytes), cfg.row_bytes)
        tail = rng.randrange(1, cfg.bus_bytes)
        pair = [
            cut(cfg, 1, row, line + cfg.line_bytes + tail + (row - 1) * cfg.row_bytes, size)
            for row, size in ((0, cfg.row_bytes), (1, rng.randint(1, cfg.row_bytes)))
        ]
        rest = link(cfg, [pair[0][-1], *pair[1]], rng)
        parts += trim(some[:1], rng) + trim(rest, rng)
    memory = Memory(cfg.addr_bits)
    memory.add_region(0x10000, 125 * cfg.line_bytes)
    before = rng.randbytes(125 * cfg.line_bytes)
    memory.write(0x10000, before)
    bench = StoreBench(StorePipe(cfg), parts, memory, IDEAL, SEED)
    bench.run()
    judge(bench, before)


@pytest.mark.parametrize("config", ("ame32", "row256"))
def test_no_memory_reads_the_word_it_writes(config, monkeypatch):
    cfg = AME if config == "ame32" else CONFIGS[config]
    made = watch_memories(monkeypatch, ids, store)
    both = 0
    for number, name in enumerate(("fast", "jittery", "stalling")):
        memory, before, uops = problem(cfg, SEED + number, 150)
        bench = StoreBench(StorePipe(cfg), uops, memory, PERSONALITIES[name], SEED)
        both += run_without_collisions(bench, made)
        judge(bench, before)
    assert len(made) == 3
    assert both > 300, "reads and writes hardly ever met"


def test_reset_leaves_nothing_over():
    for stop in (40, 97, 163):
        memory, before, uops = problem(AME, SEED, 60)
        fresh = StoreBench(StorePipe(AME), uops, memory, PERSONALITIES["jittery"], SEED, stall=0.3)
        expected = fresh.run()
        memory.write(memory.regions[0].base, before)
        dut, reset = StorePipe(AME), Signal()
        old_memory, _, old_uops = problem(AME, SEED + 1, 60)
        old = StoreBench(dut, old_uops, old_memory, PERSONALITIES["stalling"], SEED, stall=0.3)
        again = StoreBench(dut, uops, memory, PERSONALITIES["jittery"], SEED, stall=0.3)

        async def bench(ctx, old=old, again=again, stop=stop, reset=reset):
            await old.play(ctx, stop)
            assert not old.model.idle, "nothing was in flight"
            ctx.set(reset, 1)
            await ctx.tick()
            ctx.set(reset, 0)
            await again.play(ctx)

        sim = Simulator(ResetInserter(reset)(dut))
        sim.add_clock(1e-6)
        sim.add_testbench(bench)
        sim.run()
        assert judge(again, before) == expected, again.note


# -- exact cycles ----------------------------------------------------------------------------


def stream(cfg, uops, latency):
    """Run uops as fast as they go."""
    size = max(p.addr for p in uops) + 0x100 - 0x10000
    memory = Memory(cfg.addr_bits)
    memory.add_region(0x10000, size)
    bench = StoreBench(StorePipe(cfg), uops, memory, IDEAL.replace(latency=latency), SEED)
    bench.run()
    return judge(bench, bytes(size))


def rows(cfg, count, offset, stride):
    """Whole rows at even distances."""
    parts = []
    for i in range(count):
        at = 0x10000 + offset + i * stride
        parts += cut(cfg, i % cfg.tiles, i // cfg.tiles % cfg.rows, at, cfg.row_bytes)
    return link(cfg, parts, random.Random(SEED))


def test_latency_of_one_row():
    for offset, beats in ((0, 1), (8, 2)):
        run = stream(AME, rows(AME, 1, offset, 16), 20)
        read = StorePipe.UOP_TO_READ
        assert run.first_valid["read.valid"] == run.reads[0][0] == read == 1
        request = run.requests[0][0]
        assert request == run.first_valid["dsa_pad_req_wvalid"]
        assert request == read + StorePipe.READ_TO_REQUEST + beats - 1
        assert StorePipe.READ_TO_REQUEST == 4
        data = run.first_valid["dsa_pad_req_wdvalid"]
        assert data == request + StorePipe.REQUEST_TO_DATA == request + 1
        # The response comes `latency` cycles after the last beat and is noted a cycle later.
        assert run.idle == run.beats[-1] + 20 + 1


@pytest.mark.parametrize(
    "count", (pytest.param(512, id="512"), pytest.param(4096, id="4096", marks=pytest.mark.slow))
)
@pytest.mark.parametrize("latency", (1, 8, 30, 31, 32, 60))
def test_one_beat_rows_take_one_request_a_cycle(latency, count):
    parts = [Part(i % 32, i // 32 % 16, 0x10000 + 64 * i, 0, 15, 1) for i in range(count)]
    run = stream(AME, parts, latency)
    # An id is away from its request to its response, which follows the data, and back on the bus
    # in the next cycle.
    extra = max(0, StorePipe.REQUEST_TO_DATA + latency + 1 - AME.l2_ids)
    assert run.span == count + (count - 1) // AME.l2_ids * extra


@pytest.mark.parametrize("config", CONFIGS)
def test_full_queues_wait_for_ids(config):
    cfg = CONFIGS[config]
    parts = [Part(0, i % cfg.rows, 0x10000 + 128 * i, 0, 7, 1) for i in range(60)]
    run = stream(cfg, parts, 80)
    assert run.span >= 80 * (60 // cfg.l2_ids - 1)


@pytest.mark.parametrize("config", ("ame32", "row256", "row512", "bus64", "line128"))
def test_rows_stream_at_one_beat_or_part_a_cycle(config):
    cfg = AME if config == "ame32" else CONFIGS[config].replace(l2_ids=32)
    for offset in (0, 3):
        for stride in (cfg.row_bytes, cfg.line_bytes, 100):
            parts = rows(cfg, 60, offset, stride)
            run = stream(cfg, parts, 8)
            beats = sum(r[1] for r in requests(cfg, parts))
            note = f"offset {offset}, stride {stride}"
            assert len(run.beats) == beats, note
            assert run.span <= max(beats, len(parts)) + 2, note
