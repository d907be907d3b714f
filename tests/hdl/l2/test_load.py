"""The load pipe against bytes in memory, exact requests and exact cycles."""

import random
from collections import Counter

import pytest
from amaranth.hdl import ResetInserter, Signal
from amaranth.sim import Simulator
from l2_bench import AME, CONFIGS, SEED, LoadBench, run_without_collisions, watch_memories
from l2_walks import CASES, Part, coverage, cut, directed, link, mix, requests, trim, walks

from hdl.l2 import ids, merge
from hdl.l2.load import LoadPipe
from sim.memory import Memory
from sim.personality import IDEAL, PERSONALITIES

SIZE = 0x2000
STALLS = {"ideal": 0.0, "fast": 0.5, "slow": 0.1, "jittery": 0.2, "stalling": 0.3, "nasty": 0.05}
"""How often the tile file refuses, beside each personality."""


def expected_write(cfg, memory, part, bad):
    """(tile, block, rows, mask, data under the mask) of a part; the beats in `bad` fail."""
    block, row = divmod(part.row, cfg.m_par)
    everything = (1 << cfg.row_bytes) - 1
    if part.zero:
        return part.tile, block, part.rows, everything, 0
    data = bytearray(cfg.row_bytes)
    source = memory.read(part.addr, part.size)
    mask = 0
    for i, byte in enumerate(range(part.first, part.last + 1)):
        mask |= 1 << byte
        if ((part.addr + i) & memory.mask) // cfg.bus_bytes not in bad:
            data[byte] = source[i]
    if part.half:
        data[part.last] &= 0x0F
    if part.tail:
        mask |= everything & ~((2 << part.last) - 1)
    return part.tile, block, 1 << row, mask, int.from_bytes(data, "little")


def seen_write(cfg, fields):
    """A write in the same form."""
    keep = sum(0xFF << (8 * i) for i in range(cfg.row_bytes) if fields["mask"] >> i & 1)
    data = fields["data"] & keep
    return fields["tile"], fields["block"], fields["rows"], fields["mask"], data


def problem(cfg, seed, parts):
    """Random memory and about `parts` random uops after the directed; nothing else is allowed."""
    rng = random.Random(seed)
    base = rng.randrange(0, (1 << cfg.addr_bits) - SIZE) & ~0xFF
    memory = Memory(cfg.addr_bits)
    memory.add_region(base, SIZE)
    memory.write(base, rng.randbytes(SIZE))
    uops = directed(cfg, base + rng.randrange(0x100), rng)
    more = [walks(cfg, rng, parts // 3, base, base + SIZE) for _ in range(2)]
    uops += mix(more[0], trim(more[1], rng), rng)
    memory.forbid_all()
    for part in uops:
        if not part.zero:
            memory.allow_read(part.addr, part.size)
    return rng, memory, uops


def judge(bench, bad=frozenset()):
    """Everything that a finished run must have done."""
    cfg, run, note = bench.cfg, bench.result, bench.note
    uops = bench.parts
    assert [r[1:3] for r in run.requests] == [r[:2] for r in requests(cfg, uops)], note
    want = Counter(expected_write(cfg, bench.memory, part, bad) for part in uops)
    got = Counter(seen_write(cfg, fields) for _, fields in run.writes)
    assert got == want, f"{note}: missing {want - got}, too many {got - want}"
    grants = [(cycle + LoadPipe.WRITE_TO_RETIRED, f["tile"]) for cycle, f in run.writes]
    assert run.retired == grants, note
    assert run.bus_errors == bench.model.traffic.read_errors, note
    return run


def check(cfg, seed, personality, *, parts=150, gap=0.0, stall=0.0, failing=0, probe=0.0):
    rng, memory, uops = problem(cfg, seed, parts)
    bad = set()
    for part in rng.sample([p for p in uops if not p.zero], failing):
        memory.fail_read(part.addr, 1)
        bad.add(part.addr // cfg.bus_bytes)
    bench = LoadBench(
        LoadPipe(cfg), uops, memory, personality, seed, gap=gap, stall=stall, probe=probe
    )
    bench.run()
    judge(bench, bad)
    return bench


@pytest.mark.parametrize("name", PERSONALITIES)
def test_random_walks(name):
    for seed, gap in ((SEED, 0.0), (SEED + 100, 0.3)):
        bench = check(AME, seed, PERSONALITIES[name], gap=gap, stall=STALLS[name], probe=0.2)
        seen = coverage(AME, bench.parts)
        assert not [case for case in CASES if not seen[case]], bench.note
        assert bool(bench.tile_check.stalled) == bool(STALLS[name]), bench.note


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
            check(cfg, at, personality, gap=0.1 * (seed % 4), stall=STALLS[name], failing=seed % 3)


def test_late_parts_of_a_burst_are_waited_for():
    check(AME, SEED, PERSONALITIES["jittery"], parts=60, gap=0.9)


def test_errors_become_zeros():
    for config, name in ((AME, "jittery"), (CONFIGS["row256"], "stalling")):
        bench = check(config, SEED, PERSONALITIES[name], stall=0.2, failing=8)
        assert bench.result.bus_errors >= 8, bench.note


def test_rows_wrap_at_the_end_of_memory():
    memory = Memory(AME.addr_bits)
    memory.add_region(0, 0x100)
    memory.add_region((1 << AME.addr_bits) - 0x100, 0x100)
    rng = random.Random(SEED)
    for region in memory.regions:
        memory.write(region.base, rng.randbytes(0x100))
    uops = []
    for row in range(8):
        at = (1 << AME.addr_bits) - 0x4A + 16 * row
        uops += cut(AME, 3, row, at, 16)
    uops = [Part(**{**vars(p), "addr": p.addr & memory.mask}) for p in link(AME, uops, rng)]
    bench = LoadBench(LoadPipe(AME), uops, memory, PERSONALITIES["jittery"], SEED)
    bench.run()
    judge(bench)


@pytest.mark.parametrize("config", ("ame32", "row256"))
def test_no_memory_reads_the_word_it_writes(config, monkeypatch):
    cfg = AME if config == "ame32" else CONFIGS[config]
    made = watch_memories(monkeypatch, ids, merge)
    both = 0
    for number, name in enumerate(("fast", "jittery", "stalling")):
        _, memory, uops = problem(cfg, SEED + number, 150)
        stall = 0.0 if name == "fast" else 0.3
        bench = LoadBench(LoadPipe(cfg), uops, memory, PERSONALITIES[name], SEED, stall=stall)
        both += run_without_collisions(bench, made)
        judge(bench)
    assert len(made) == 3 + cfg.beats_per_line + cfg.row_bytes // cfg.bus_bytes
    assert both > 500, "reads and writes hardly ever met"


def test_reset_leaves_nothing_over():
    for stop in (40, 97, 163):
        _, memory, uops = problem(AME, SEED, 60)
        fresh = LoadBench(LoadPipe(AME), uops, memory, PERSONALITIES["jittery"], SEED, stall=0.3)
        expected = fresh.run()
        dut, reset = LoadPipe(AME), Signal()
        _, old_memory, old_uops = problem(AME, SEED + 1, 60)
        old = LoadBench(dut, old_uops, old_memory, PERSONALITIES["stalling"], SEED, stall=0.3)
        again = LoadBench(dut, uops, memory, PERSONALITIES["jittery"], SEED, stall=0.3)

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
        assert judge(again) == expected, again.note


# -- exact cycles ----------------------------------------------------------------------------


def stream(cfg, uops, latency):
    """Run uops as fast as they go."""
    memory = Memory(cfg.addr_bits)
    memory.add_region(0x10000, max(0, max(p.addr for p in uops) - 0x10000) + 0x100)
    bench = LoadBench(LoadPipe(cfg), uops, memory, IDEAL.replace(latency=latency), SEED)
    bench.run()
    return judge(bench)


def rows(cfg, count, offset, stride):
    """Whole rows at even distances."""
    parts = []
    for i in range(count):
        at = 0x10000 + offset + i * stride
        parts += cut(cfg, i % cfg.tiles, i // cfg.tiles % cfg.rows, at, cfg.row_bytes)
    return link(cfg, parts, random.Random(SEED))


@pytest.mark.parametrize("latency", (1, 20))
def test_latency_of_one_row(latency):
    run = stream(AME, rows(AME, 1, 0, 16), latency)
    assert run.uops == [0]
    request = LoadPipe.UOP_TO_REQUEST
    assert run.first_valid["dsa_pad_req_rvalid"] == run.requests[0][0] == request == 3
    assert run.beats == [request + latency]
    assert run.writes[0][0] == run.beats[0] + LoadPipe.BEAT_TO_WRITE
    assert LoadPipe.BEAT_TO_WRITE == 4
    assert run.idle == run.retired[0][0]


def test_latency_of_zeros():
    run = stream(AME, [Part(5, 4, zero=1, rows=6)], 20)
    assert run.writes[0][0] == LoadPipe.ZERO_TO_WRITE == 4
    assert not run.requests
    assert run.idle == run.retired[0][0]


def one_beat_requests(count):
    return [Part(i % 32, i // 32 % 16, 0x10000 + 64 * i, 0, 15, 1) for i in range(count)]


@pytest.mark.parametrize(
    "count", (pytest.param(512, id="512"), pytest.param(4096, id="4096", marks=pytest.mark.slow))
)
@pytest.mark.parametrize("latency", (1, 8, 31, 32, 60))
def test_one_beat_requests_hide_the_latency(latency, count):
    run = stream(AME, one_beat_requests(count), latency)
    # Each id is on the bus again in the cycle after its beat, so every latency + 1 cycles.
    extra = max(0, latency + 1 - AME.l2_ids)
    assert run.span == count + (count - 1) // AME.l2_ids * extra
    if latency <= 31:
        assert len(run.beats) / run.span >= 0.98
    if latency == 32:
        assert len(run.beats) / run.span >= 0.96


@pytest.mark.parametrize("config", ("id1", "ids4"))
def test_an_id_is_used_in_the_cycle_after_its_last_beat(config):
    cfg = CONFIGS[config]
    run = stream(cfg, one_beat_requests(40), 6)
    starts = [cycle for cycle, *_ in run.requests]
    assert [b - a for a, b in zip(starts, starts[cfg.l2_ids :], strict=False)] == [7] * (
        40 - cfg.l2_ids
    )


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
