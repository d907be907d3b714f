"""What the personalities do: latency to the cycle, order, gaps, errors, and that they happened."""

import os
import random

import pytest
from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.sim import Simulator

from hdl.config import preset
from hdl.interfaces import l2_read_members, l2_write_members
from sim.l2_model import L2Model, serve
from sim.memory import Memory
from sim.personality import FAST, IDEAL, JITTERY, NASTY, PERSONALITIES, SLOW, STALLING, Personality

SEED = int(os.environ.get("TEST_SEED", "1"))
CFG = preset("ame32-int8")
BASE = 0x4000


class Master:
    """A well-behaved core in Python: random bursts, every id, data after requests."""

    def __init__(self, model, seed, reads=120, writes=120, gap=0.0, ready=1.0):
        self.m, self.rng = model, random.Random(seed)
        self.gap, self.ready = gap, ready
        self.memory = model.read_side.memory
        lines = list(range(64))
        self.reads = [self.burst(i % 32 if i < 32 else None) for i in range(reads)]
        self.writes = [self.burst(lines[i % 64] + 64) for i in range(writes)]
        self.expected = {}
        self.free = {"r": list(range(32)), "w": list(range(32))}
        self.request = {"r": None, "w": None}
        self.data = []
        self.word = None
        self.pending = {}
        self.read_log = []
        self.write_log = []

    def burst(self, line):
        line = self.rng.randrange(64) if line is None else line
        first = self.rng.randrange(4)
        return BASE + 64 * line + 16 * first, self.rng.randint(1, 4 - first)

    def cycle(self):
        m, rng = self.m, self.rng
        for kind, queue in (("r", self.reads), ("w", self.writes)):
            if (
                self.request[kind] is None
                and queue
                and self.free[kind]
                and rng.random() >= self.gap
            ):
                ids = self.free[kind]
                self.request[kind] = (*queue.pop(0), ids.pop(rng.randrange(len(ids))))
        if self.word is None and self.data and rng.random() >= self.gap:
            self.word = self.data.pop(0)
        outs = {
            "dsa_pad_resp_rready": int(rng.random() < self.ready),
            "dsa_pad_resp_wready": int(rng.random() < self.ready),
            "dsa_pad_req_fullline": 0,
        }
        for kind in "rw":
            addr, beats, id = self.request[kind] or (0, 1, 0)
            outs |= {
                f"dsa_pad_req_{kind}valid": int(self.request[kind] is not None),
                f"dsa_pad_req_{kind}addr": addr,
                f"dsa_pad_req_{kind}len": beats - 1,
                f"dsa_pad_req_{kind}id": id,
            }
        data, strobe, last = self.word or (0, 0, 0)
        outs |= {
            "dsa_pad_req_wdvalid": int(self.word is not None),
            "dsa_pad_req_wdata": data,
            "dsa_pad_req_wstrb": strobe,
            "dsa_pad_req_wlast": last,
        }
        seen = dict(m.outputs())
        now = m.cycle
        m.step(outs)
        if self.request["r"] and seen["pad_dsa_req_rready"]:
            addr, beats, id = self.request["r"]
            self.pending["r", id] = [now, addr, beats]
            self.request["r"] = None
        if self.request["w"] and seen["pad_dsa_req_wready"]:
            addr, beats, id = self.request["w"]
            for i in range(beats):
                data, strobe = rng.getrandbits(128), rng.getrandbits(16)
                self.data.append((data, strobe, int(i == beats - 1)))
                self.expected.update(
                    (addr + 16 * i + b, data >> (8 * b) & 255) for b in range(16) if strobe >> b & 1
                )
            self.request["w"] = None
            self.pending["w", id] = [now, addr, beats]
        if self.word is not None and seen["pad_dsa_req_wdready"]:
            self.word = None
        if seen["pad_dsa_resp_rvalid"] and outs["dsa_pad_resp_rready"]:
            id = seen["pad_dsa_resp_rid"]
            start, addr, beats = self.pending["r", id]
            assert seen["pad_dsa_resp_rlast"] == (beats == 1)
            data = seen["pad_dsa_resp_rdata"].to_bytes(16, "little")
            good = self.memory.read(addr, 16)
            if seen["pad_dsa_resp_rerr"]:
                assert data == bytes(255 - b for b in good)
            else:
                assert data == good
            self.read_log.append((now, id, start))
            self.pending["r", id] = [start, addr + 16, beats - 1]
            if beats == 1:
                del self.pending["r", id]
                self.free["r"].append(id)
        if seen["pad_dsa_resp_wvalid"] and outs["dsa_pad_resp_wready"]:
            id = seen["pad_dsa_resp_wid"]
            self.write_log.append((now, id, self.pending.pop(("w", id))[0]))
            self.free["w"].append(id)

    def run(self, bound=60000):
        while self.reads or self.writes or self.request["r"] or self.request["w"] or self.pending:
            self.cycle()
            assert self.m.cycle < bound, f"{len(self.pending)} bursts never ended, {SEED=}"
        assert self.m.idle
        for addr, value in self.expected.items():
            assert self.memory.read(addr, 1)[0] == value, f"byte {addr:#x}, {SEED=}"
        return self.m.traffic


def make(personality, seed=SEED):
    memory = Memory()
    rng = random.Random(seed)
    memory.add_region(BASE, 64 * 64)  # reads
    memory.add_region(BASE + 64 * 64, 64 * 64)  # writes
    memory.write(BASE, rng.randbytes(64 * 64))
    return L2Model(CFG, memory, personality, seed)


@pytest.mark.parametrize("latency", [1, 2, 8, 31])
def test_first_beat_exactly_after_the_latency_and_one_beat_a_cycle(latency):
    m = make(IDEAL.replace(latency=latency))
    master = Master(m, SEED, reads=200, writes=0)
    master.reads = [(addr, 1) for addr, _ in master.reads]
    master.run()
    assert {now - start for now, _, start in master.read_log} == {latency}
    cycles = [now for now, _, _ in master.read_log]
    assert cycles == list(range(latency, latency + 200))  # no bubble up to latency 31
    assert m.traffic.first_read_beat == latency
    assert m.traffic.last_read_beat == latency + 199


def test_32_ids_hide_31_cycles_but_not_32():
    m = make(IDEAL.replace(latency=32))
    master = Master(m, SEED, reads=330, writes=0)
    master.reads = [(addr, 1) for addr, _ in master.reads]
    master.run()
    assert m.traffic.max_reads_in_flight == 32
    assert m.traffic.last_read_beat - m.traffic.first_read_beat + 1 == 330 + 10


@pytest.mark.parametrize("write_latency", [1, 5, None])
def test_write_response_latency(write_latency):
    m = make(IDEAL.replace(latency=9, write_latency=write_latency))
    master = Master(m, SEED, reads=0, writes=1)
    master.writes = [(BASE + 64 * 64, 4)]
    master.run()
    # request in cycle 0, data in 1 to 4
    assert master.write_log == [(4 + (write_latency or 9), master.write_log[0][1], 0)]
    assert m.traffic.first_write_beat == 1
    assert m.traffic.last_write_beat == 4


@pytest.mark.parametrize("name", PERSONALITIES)
@pytest.mark.parametrize("gap, ready", [(0.0, 1.0), (0.3, 0.5)])
def test_every_personality_keeps_data_and_rules(name, gap, ready):
    m = make(PERSONALITIES[name])
    traffic = Master(m, SEED, gap=gap, ready=ready).run()
    assert traffic.read_requests == traffic.write_requests == 120
    assert traffic.read_errors == traffic.write_errors == 0
    assert bool(traffic.read_response_stalls) == (ready < 1)


def test_ideal_does_nothing_odd():
    t = Master(make(IDEAL), SEED).run()
    assert not (t.read_request_stalls or t.read_response_gaps or t.read_reorders)
    assert not (t.write_request_stalls or t.write_data_stalls or t.write_response_gaps)
    assert not (t.read_interleaves or t.write_reorders)
    t = Master(make(SLOW), SEED).run()
    assert t.max_reads_in_flight == t.max_writes_in_flight == 32


@pytest.mark.parametrize("personality", [JITTERY, NASTY])
def test_jittery_reorders_and_interleaves(personality):
    t = Master(make(personality), SEED).run()
    assert t.read_reorders > 10 and t.read_interleaves > 10 and t.write_reorders > 10, SEED


@pytest.mark.parametrize("personality", [STALLING, NASTY])
def test_stalling_stalls_every_channel(personality):
    t = Master(make(personality), SEED).run()
    for name in (
        "read_request_stalls",
        "read_response_gaps",
        "write_request_stalls",
        "write_data_stalls",
        "write_response_gaps",
    ):
        assert getattr(t, name) > 10, (name, SEED)


def test_in_order_without_reorder_and_whole_bursts_without_interleave():
    m = make(JITTERY.replace(reorder=False, interleave=False))
    master = Master(m, SEED)
    master.run()
    starts = [start for _, _, start in master.read_log]
    assert starts == sorted(starts)
    assert [s for _, _, s in master.write_log] == sorted(s for _, _, s in master.write_log)
    assert not (m.traffic.read_reorders or m.traffic.read_interleaves or m.traffic.write_reorders)
    m = make(JITTERY.replace(interleave=False))
    master = Master(m, SEED)
    master.run()
    runs = [
        start
        for i, (_, _, start) in enumerate(master.read_log)
        if i == 0 or start != master.read_log[i - 1][2]
    ]
    assert len(runs) == len(set(runs))
    assert m.traffic.read_reorders > 10 and not m.traffic.read_interleaves
    m = make(IDEAL.replace(interleave=True, read_response_gap=0.5))
    master = Master(m, SEED)
    master.run()
    assert m.traffic.read_interleaves > 10 and not m.traffic.read_reorders


def test_random_errors_and_failing_bytes():
    t = Master(make(FAST.replace(read_error=0.2, write_error=0.2)), SEED).run()
    assert 20 < t.read_errors < 120 and 5 < t.write_errors < 60
    m = make(FAST)
    m.read_side.memory.fail_read(BASE, 64)
    t = Master(m, SEED).run()
    assert 0 < t.read_errors < 40 and t.write_errors == 0


def test_same_seed_same_cycles_other_seed_other_cycles():
    logs = []
    for seed in (3, 3, 4):
        memory = Memory()
        memory.add_region(BASE, 128 * 64)
        master = Master(L2Model(CFG, memory, NASTY, seed), SEED)
        master.run()
        logs.append(master.read_log)
    assert logs[0] == logs[1] != logs[2]


@pytest.mark.parametrize(
    "field, value, message",
    [
        ("latency", 0, "latency = 0 is not possible: use 1 or more"),
        ("write_latency", 0, "write_latency = 0"),
        ("jitter", -1, "jitter = -1"),
        ("stall_length", 0, "stall_length = 0"),
        ("read_error", 1.0, "read_error: a probability of 1.0"),
        ("host_request_gap", 1e-9, "host_request_gap: .* rounds to never"),
    ],
)
def test_impossible_personality(field, value, message):
    with pytest.raises(ValueError, match=message):
        Personality(**{field: value})


class Copier(wiring.Component):
    """Reads 16 lines-to-be, one beat each, and writes each beat 1 KiB further up."""

    def __init__(self, cfg):
        super().__init__(l2_read_members(cfg) | l2_write_members(cfg))

    def elaborate(self, platform):
        m = Module()
        n_req = Signal(5)
        n_wreq = Signal(5)
        word = Signal(128)
        full = Signal()
        sent = Signal()
        m.d.comb += [
            self.dsa_pad_req_rvalid.eq(~n_req[4]),
            self.dsa_pad_req_raddr.eq(BASE + (n_req << 6)),
            self.dsa_pad_req_rid.eq(n_req),
            self.dsa_pad_resp_rready.eq(~full),
            self.dsa_pad_req_wvalid.eq(full & ~sent),
            self.dsa_pad_req_waddr.eq(BASE + 1024 + (n_wreq << 4)),
            self.dsa_pad_req_wid.eq(n_wreq),
            self.dsa_pad_req_wdvalid.eq(full & sent),
            self.dsa_pad_req_wdata.eq(word),
            self.dsa_pad_req_wstrb.eq(0xFFFF),
            self.dsa_pad_req_wlast.eq(1),
            self.dsa_pad_resp_wready.eq(1),
        ]
        with m.If(self.dsa_pad_req_rvalid & self.pad_dsa_req_rready):
            m.d.sync += n_req.eq(n_req + 1)
        with m.If(self.pad_dsa_resp_rvalid & self.dsa_pad_resp_rready):
            m.d.sync += [full.eq(1), word.eq(self.pad_dsa_resp_rdata)]
        with m.If(self.dsa_pad_req_wvalid & self.pad_dsa_req_wready):
            m.d.sync += sent.eq(1)
        with m.If(self.dsa_pad_req_wdvalid & self.pad_dsa_req_wdready):
            m.d.sync += [sent.eq(0), full.eq(0), n_wreq.eq(n_wreq + 1)]
        return m


@pytest.mark.parametrize("name", ["ideal", "stalling"])
def test_serve_answers_a_component_in_simulation(name):
    dut = Copier(CFG)
    memory = Memory()
    memory.add_region(BASE, 4096)
    memory.write(BASE, random.Random(SEED).randbytes(1024))
    model = L2Model(CFG, memory, PERSONALITIES[name], SEED)
    sim = Simulator(dut)
    sim.add_clock(1e-6)
    sim.add_testbench(serve(dut, model), background=True)

    async def bench(ctx):
        for _ in range(2000):
            if model.traffic.write_requests == 16 and model.idle:
                return
            await ctx.tick()
        raise AssertionError(f"16 copies took more than 2000 cycles, {model.traffic}")

    sim.add_testbench(bench)
    sim.run()
    source = memory.read(BASE, 1024)
    found = sorted(memory.read(BASE + 1024 + 16 * i, 16) for i in range(16))
    assert found == sorted(source[64 * i : 64 * i + 16] for i in range(16))
