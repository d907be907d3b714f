"""Every engine, on a stand-in for the core: what runs return, what is refused, and that the
engines agree to the cycle."""

import os
import random
from dataclasses import asdict

import pytest
from dummy_core import DummyCore, add, both, read, write

from hdl.config import preset
from sim.driver import QUIET_CYCLES, RunOptions, SimulationError, SimulationTimeout
from sim.engines import available, open_engine
from sim.memory import FILL, Memory
from sim.personality import FAST, IDEAL, NASTY, PERSONALITIES, STALLING
from sim.protocol import Channel, ProtocolError, Rule

SEED = int(os.environ.get("TEST_SEED", "1"))
CFG = preset("ame32-int8").replace(name="dummy")
BASE, SPACE = 0x10000, 0x10000
FAST_ENGINES = [name for name in available() if name not in ("pysim", "model")]
HARDWARE = [*FAST_ENGINES, "pysim"]
NEEDS = {name: reason for name, reason in available().items() if reason}


@pytest.fixture(scope="module")
def engines():
    """One engine of each kind, reset before each use."""
    opened = {}

    def get(name, cfg=CFG):
        if name in NEEDS:
            pytest.skip(NEEDS[name])
        key = (name, cfg.name)
        if key not in opened:
            opened[key] = open_engine(name, cfg, dut=DummyCore(cfg), progress=False)
        engine = opened[key]
        engine.reset()
        engine.memory = Memory(cfg.addr_bits)
        engine.memory.add_region(BASE, SPACE)
        engine.memory.write(BASE, random.Random(SEED).randbytes(SPACE))
        return engine

    yield get
    for engine in opened.values():
        engine.close()


def program(rng, length=12):
    """Random requests; reads below the middle of memory, writes above."""

    def line(top):
        return BASE + 64 * rng.randrange(256) + (SPACE // 2 if top else 0)

    made = []
    for _ in range(length):
        kind, lines = rng.randrange(4), rng.randint(1, 100)
        if kind == 0:
            made.append(add(rng.getrandbits(64), rng.getrandbits(64)))
        elif kind == 1:
            made.append(read(line(False), lines))
        elif kind == 2:
            made.append(write(line(True), lines, rng.getrandbits(64)))
        else:
            made.append(both(line(False), line(True), lines))
    return made


def told(result):
    """Everything a run returns, as plain data."""
    kept = asdict(result)
    kept["probes"] = {name: values.tolist() for name, values in result.probes.items()}
    return kept


@pytest.mark.parametrize("name", PERSONALITIES)
@pytest.mark.parametrize("fast", FAST_ENGINES)
def test_engines_agree_to_the_cycle(engines, fast, name):
    rng = random.Random(f"{SEED} {name}")
    personality = PERSONALITIES[name].replace(read_error=0.01, write_error=0.02)
    slow, fast = engines("pysim"), engines(fast)
    for part in range(3):  # without reset between
        requests = program(rng, 6)
        seed = rng.getrandbits(70)
        options = {"personality": personality, "seed": seed, "probes": part == 1}
        expected = told(slow.run(requests, **options))
        found = told(fast.run(requests, **options))
        assert found == expected, f"TEST_SEED={SEED}"
        assert len(expected["probes"]) == (2 if part == 1 else 0)
    assert fast.memory.read(BASE, SPACE) == slow.memory.read(BASE, SPACE), f"TEST_SEED={SEED}"


@pytest.mark.parametrize("fast", FAST_ENGINES)
@pytest.mark.parametrize(
    "changes",
    [
        {"bus_bits": 64, "line_bytes": 32, "l2_ids": 2, "tag_bits": 1, "addr_bits": 32},
        {"row_bits": 256, "bus_bits": 256, "line_bytes": 64, "l2_ids": 8, "tag_bits": 64},
    ],
)
def test_engines_agree_on_other_sizes(engines, fast, changes):
    cfg = CFG.replace(name=f"dummy{changes['bus_bits']}", **changes)
    requests = program(random.Random(SEED), 8)
    found = []
    for name in (fast, "pysim"):
        engine = engines(name, cfg)
        found.append(
            (
                told(engine.run(requests, personality=STALLING, seed=SEED)),
                engine.memory.read(BASE, SPACE),
            )
        )
    assert found[0] == found[1], f"TEST_SEED={SEED}"


@pytest.mark.parametrize("name", HARDWARE)
def test_responses_and_counts(engines, name):
    engine = engines(name)
    data = engine.memory.read(BASE, 3 * 64)
    words = sum(
        int.from_bytes(data[64 * i + 8 * j :][:8], "little")
        for i in range(3)
        for j in range(2 * i + 2)
    )
    requests = [add(3, 1 << 63), read(BASE, 3), write(BASE + 0x8000, 4, 9), add(-1, 2)]
    result = engine.run(requests, personality=IDEAL, probes=True)
    assert [r[:3] for r in result.responses] == [(0, 1, 0), (1, 1, 6), (2, 0, 8), (3, 1, 0)]
    assert [r.data for r in result.responses][:2] == [3 + (1 << 63), words & (1 << 64) - 1]
    assert result.responses[3].data == 1
    assert [r.error for r in result.responses] == [0] * 4
    assert result.first_request_cycle == 0
    assert result.cycles == result.responses[-1].cycle - result.request_cycles[0]
    assert result.total_cycles == result.last_response_cycle + 2 + QUIET_CYCLES
    assert (result.read_requests, result.read_beats) == (3, 6)
    assert (result.write_requests, result.write_beats) == (4, 10)
    assert result.fullline_requests == 1
    assert not result.stopped
    assert set(result.probes) == {"phase", "time"}
    time = result.probes["time"].tolist()
    assert time == list(range(time[0], time[0] + result.total_cycles))
    assert 1 in result.probes["phase"]


@pytest.mark.parametrize("name", HARDWARE)
def test_nothing_to_do(engines, name):
    result = engines(name).run([])
    assert (result.cycles, result.responses, result.first_request_cycle) == (0, [], -1)
    assert result.total_cycles == 1 + QUIET_CYCLES


@pytest.mark.parametrize("name", HARDWARE)
def test_long_programs_wrap_the_tags(engines, name):
    result = engines(name).run([add(i, i) for i in range(300)], personality=FAST)
    assert [r.tag for r in result.responses] == [i % 256 for i in range(300)]
    assert [r.data for r in result.responses] == [2 * i for i in range(300)]


@pytest.mark.parametrize("name", HARDWARE)
def test_host_gaps_and_stalls_happen(engines, name):
    result = engines(name).run([add(i, i) for i in range(60)], personality=STALLING, seed=SEED)
    t = result.traffic
    assert min(t.host_request_gaps, t.host_response_stalls, t.host_request_stalls) > 10, t


@pytest.mark.parametrize("name", HARDWARE)
def test_bus_errors_reach_the_core(engines, name):
    engine = engines(name)
    engine.memory.fail_read(BASE + 64, 1)
    result = engine.run([read(BASE, 1), read(BASE, 2), read(BASE + 128, 1)])
    assert [r.error for r in result.responses] == [0, 3, 0]
    assert result.traffic.read_errors == 1
    before = engine.memory.read(BASE + 0x8000, 64)
    engine.memory.fail_write(BASE + 0x8000, 64)
    result = engine.run([write(BASE + 0x8000, 2, 5)])
    assert result.traffic.write_errors == 1
    assert engine.memory.read(BASE + 0x8000, 64) == before


def test_engines_agree_on_odd_regions_and_wrapping(engines):
    found = []
    top = (1 << 40) - 64
    for name in HARDWARE:
        engine = engines(name)
        memory = engine.memory = Memory()
        rng = random.Random(SEED)
        for base, size in ((BASE + 5, 70), (BASE + 75, 3), (BASE + 80, 37), (top, 64), (0, 64)):
            memory.add_region(base, size, readable=base != BASE + 75)
            memory.write(base, rng.randbytes(size))
        memory.fail_read(1, 1)
        result = engine.run([read(BASE, 2), read(top, 2), write(top, 2, 3), read(0, 1)], seed=SEED)
        found.append((told(result), memory.read(top, 64), memory.read(0, 64)))
        # line 0 is a burst of one beat, line 1 of two; the top line is a full one
        assert [r.error for r in result.responses] == [0, 3, 0, 3]
        expected = sum(
            int.from_bytes(b"".join(_byte(memory, BASE + 16 * beat + i) for i in half), "little")
            for beat in (0, 4, 5)
            for half in (range(8), range(8, 16))
        )
        assert result.responses[0].data == expected % (1 << 64), f"TEST_SEED={SEED}"
    assert all(one == found[0] for one in found), f"TEST_SEED={SEED}"


def _byte(memory, addr):
    return memory.read(addr, 1) if memory.find(addr) else bytes([FILL])


def test_write_permission_of_single_bytes(engines):
    messages = []
    for name in HARDWARE:
        engine = engines(name)
        engine.memory.forbid_all()
        engine.memory.allow_write(BASE, 7)
        engine.memory.allow_write(BASE + 8, 8)
        with pytest.raises(ProtocolError, match=f"the byte at {BASE + 7:#x} may not") as caught:
            engine.run([write(BASE, 1, 0xDA)])  # the strobes are 0x5A5A ^ 0xDA = 0x5A80
        messages.append(str(caught.value))
        engine.reset()
        engine.run([write(BASE, 1, 0x5A)])  # 0x5A00
        engine.reset()
    assert len(set(messages)) == 1, messages


@pytest.mark.parametrize("name", HARDWARE)
def test_reset_in_mid_flight(engines, name):
    engine = engines(name)
    fresh = told(engine.run(program(random.Random(SEED)), personality=NASTY, seed=SEED))
    for cycles in (1, 30, 97):
        cut = engine.run([both(BASE, BASE + 0x8000, 90)], stop_after=cycles)
        assert cut.stopped and cut.total_cycles == cycles
        with pytest.raises(SimulationError, match=r"call reset\(\)"):
            engine.run([add(1, 1)])
        engine.reset()
        engine.memory.write(BASE, random.Random(SEED).randbytes(SPACE))
        again = told(engine.run(program(random.Random(SEED)), personality=NASTY, seed=SEED))
        assert again == fresh, f"TEST_SEED={SEED}"


@pytest.mark.parametrize("name", HARDWARE)
def test_state_persists_without_reset(engines, name):
    engine = engines(name)
    engine.run([add(1, 1, fault="busy_stuck")], stop_after=20)
    engine.reset()
    engine.run([add(1, 1)])
    first = engine.run([add(1, 1)], probes=True).probes["time"]
    second = engine.run([add(1, 1)], probes=True).probes["time"]
    assert second[0] == first[-1] + 2  # one idle cycle between runs


BROKEN = [
    ("busy_low", [read(BASE, 4)], Rule.BUSY_LOW, Channel.BUSY),
    ("busy_rises", [], Rule.BUSY_ROSE, Channel.BUSY),
    ("late_read", [], Rule.TRAFFIC_WHEN_IDLE, Channel.READ_REQUEST),
    ("wrong_tag", [add(1, 1)], Rule.RESPONSE_TAG, Channel.HOST_RESPONSE),
    ("extra_response", [], Rule.TRAFFIC_WHEN_IDLE, Channel.HOST_RESPONSE),
    ("extra_response", [write(BASE, 20, 1)], Rule.RESPONSE_UNASKED, Channel.HOST_RESPONSE),
    ("response_drops", [add(1, 1)] * 9, Rule.VALID_DROPPED, Channel.HOST_RESPONSE),
    ("response_changes", [add(1, 1)] * 9, Rule.PAYLOAD_CHANGED, Channel.HOST_RESPONSE),
    ("read_id", [read(BASE, 40)], Rule.ID_IN_USE, Channel.READ_REQUEST),
    ("read_line", [read(BASE, 40)], Rule.LINE_CROSSED, Channel.READ_REQUEST),
    ("read_unaligned", [read(BASE, 40)], Rule.UNALIGNED, Channel.READ_REQUEST),
    ("read_drops", [read(BASE, 40)], Rule.VALID_DROPPED, Channel.READ_REQUEST),
    ("read_changes", [read(BASE, 40)], Rule.PAYLOAD_CHANGED, Channel.READ_REQUEST),
    ("none", [read(0x9000, 1)], Rule.READ_FORBIDDEN, Channel.READ_REQUEST),
    ("none", [read(BASE + SPACE - 64, 2)], Rule.READ_FORBIDDEN, Channel.READ_REQUEST),
    ("none", [write(0x9000, 1, 1)], Rule.WRITE_FORBIDDEN, Channel.WRITE_DATA),
    ("wlast_early", [write(BASE, 4, 1)], Rule.LAST_EARLY, Channel.WRITE_DATA),
    ("wlast_missing", [write(BASE, 4, 1)], Rule.LAST_MISSING, Channel.WRITE_DATA),
    ("data_first", [write(BASE, 40, 1)], Rule.DATA_WITHOUT_REQUEST, Channel.WRITE_DATA),
    ("fullline_short", [write(BASE, 4, 1)], Rule.FULLLINE_LENGTH, Channel.WRITE_REQUEST),
    ("fullline_strobe", [write(BASE, 4, 1)], Rule.FULLLINE_STROBE, Channel.WRITE_DATA),
    ("write_drops", [write(BASE, 40, 1)], Rule.VALID_DROPPED, Channel.WRITE_REQUEST),
    ("data_changes", [write(BASE, 40, 1)], Rule.PAYLOAD_CHANGED, Channel.WRITE_DATA),
]


@pytest.mark.parametrize("fault, requests, rule, channel", BROKEN)
def test_broken_cores_are_caught_alike(engines, fault, requests, rule, channel):
    messages = []
    personality = STALLING if rule in (Rule.PAYLOAD_CHANGED, Rule.VALID_DROPPED) else IDEAL
    if rule == Rule.DATA_WITHOUT_REQUEST:
        personality = IDEAL.replace(write_request_stall=0.5)
    for name in HARDWARE:
        engine = engines(name)
        with pytest.raises(ProtocolError) as caught:
            engine.run([add(1, 1, fault=fault), *requests], personality=personality, seed=SEED)
        assert (caught.value.rule, caught.value.channel) == (rule, channel), str(caught.value)
        messages.append(str(caught.value))
        with pytest.raises(SimulationError, match="did not end well"):
            engine.run([add(1, 1)])
        engine.reset()
        assert engine.run([add(1, 1)]).responses[0].data == 2
    assert len(set(messages)) == 1, messages


HANGING = [
    ("hang", [], "for the response to request 0 of 1 .word 0x01000004, taken in cycle 0.; busy 1$"),
    (
        "no_ready",
        [add(1, 1)],
        "for request 1 of 2 to be taken .word 0x00000004.; busy 0; host request waits for ready$",
    ),
    ("busy_stuck", [write(BASE, 3, 1)], "for busy to fall after all 2 responses; busy 1$"),
    (
        "no_read_ready",
        [read(BASE, 3)],
        "for the response to request 1 of 2 .*; read response waits for ready; "
        "reads in flight with ids 0, 1, 2$",
    ),
]


@pytest.mark.parametrize("fault, requests, message", HANGING)
def test_hanging_cores_are_caught_alike(engines, fault, requests, message):
    messages = []
    for name in HARDWARE:
        engine = engines(name)
        with pytest.raises(SimulationTimeout, match=message) as caught:
            engine.run([add(1, 1, fault=fault), *requests], patience=200)
        assert "no handshake for 200 cycles" in str(caught.value)
        messages.append(str(caught.value))
    assert len(set(messages)) == 1, messages


@pytest.mark.parametrize("name", HARDWARE)
def test_max_cycles(engines, name):
    with pytest.raises(
        SimulationTimeout, match=r"cycle 50: not done within max_cycles = 50, .* of 99"
    ):
        engines(name).run([add(1, 1)] * 99, max_cycles=50)


def test_bad_options():
    with pytest.raises(ValueError, match="patience = 0 is not possible: use 1 or more"):
        RunOptions(patience=0)
