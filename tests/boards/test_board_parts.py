"""The parts of a board on their own: L2 memory under random traffic, the serial line, the PLL."""

from __future__ import annotations

import os
import random
from collections import deque
from itertools import pairwise

import pytest
from amaranth.hdl import Module, Signal
from amaranth.sim import Simulator

import boards.l2
from boards.l2 import ByteLane, L2Memory, check_size
from boards.pll import pll_settings
from boards.protocol import MAX_BODY, checksum, frame
from boards.uart import UartReceiver, UartTransmitter
from hdl.config import Config

SEED = int(os.environ.get("TEST_SEED", "20260731"), 0)
CFG = Config(name="l2-test", addr_bits=16, l2_ids=16, m_par=1, n_par=1)
SIZE = 512
BEATS = CFG.beats_per_line
ONES = (1 << CFG.bus_bits) - 1


class JealousLane(ByteLane):
    """A lane that reads wrongly what is written in the same cycle, as a block RAM may."""

    def elaborate(self, platform):
        m = Module()
        m.submodules.lane = lane = ByteLane(self.depth)
        for name in ("write", "write_addr", "write_data", "read_addr"):
            m.d.comb += getattr(lane, name).eq(getattr(self, name))
        meets = [self.write & (self.write_addr == self.read_addr), Signal(), Signal()]
        m.d.sync += [late.eq(early) for early, late in pairwise(meets)]
        m.d.comb += self.read_data.eq(lane.read_data ^ meets[-1].replicate(8))
        return m


@pytest.fixture(autouse=True)
def jealous_lanes(monkeypatch):
    monkeypatch.setattr(boards.l2, "ByteLane", JealousLane)


class Side:
    """One channel's requests, in order, and the ids that may be used."""

    def __init__(self, rng: random.Random, most: int):
        self.rng = rng
        self.most = most
        self.left = 0
        self.ids = set(range(CFG.l2_ids))
        self.owed: deque[list] = deque()

    def request(self) -> tuple[int, int, int]:
        """A new one: address, beats, id. One in eight is beyond the end."""
        beats = self.rng.randint(1, self.most)
        line = self.rng.randrange(SIZE // CFG.line_bytes)
        address = line * CFG.line_bytes + self.rng.randint(0, BEATS - beats) * CFG.bus_bytes
        address += SIZE * self.rng.randrange(1, 100) if self.rng.random() < 1 / 8 else 0
        return address, beats, self.rng.choice(sorted(self.ids))


def traffic(
    seed: int, stalls: float, most: int, n: int, slow: float | None = None
) -> dict[str, tuple[int, int]]:
    """Random reads and writes, every beat checked; beats of each side, and cycles that they took.

    Parameters
    ----------
    stalls : probability that nothing moves; `slow` that of beats of reads, if another.
    most, n : beats of a request, and requests of a side.
    """
    rng = random.Random(seed)
    dut = L2Memory(CFG, SIZE)
    memory = bytearray(SIZE)
    times: dict[str, list[int]] = {"r": [], "w": []}
    sim = Simulator(dut)
    sim.add_clock(1e-8)
    bytes_of_beat = CFG.bus_bytes

    async def bench(ctx):
        reads, writes = Side(rng, most), Side(rng, most)
        read_left = write_left = n
        new_read = new_write = None
        data: deque[tuple[int, int, int]] = deque()  # what the write channel still sends
        written: deque[list] = deque()  # requests whose data are not all there
        answers: deque[tuple[int, int]] = deque()
        # Every content that a beat has had, with the cycle in which it ended.
        history: dict[int, list[tuple[int, bytes]]] = {}
        cycle = 0
        shown = None
        while read_left or write_left or reads.owed or written or answers:
            assert cycle < 60 * n + 1000, f"cycle {cycle}: traffic stopped, seed {seed}"
            if new_read is None and read_left and reads.ids and rng.random() >= stalls:
                new_read = reads.request()
            if new_write is None and write_left and writes.ids and rng.random() >= stalls:
                new_write = writes.request()
            for channel, new in (("r", new_read), ("w", new_write)):
                ctx.set(getattr(dut, f"dsa_pad_req_{channel}valid"), new is not None)
                if new is not None:
                    ctx.set(getattr(dut, f"dsa_pad_req_{channel}addr"), new[0])
                    ctx.set(getattr(dut, f"dsa_pad_req_{channel}len"), new[1] - 1)
                    ctx.set(getattr(dut, f"dsa_pad_req_{channel}id"), new[2])
            if data and (ctx.get(dut.dsa_pad_req_wdvalid) or rng.random() >= stalls):
                ctx.set(dut.dsa_pad_req_wdvalid, 1)
                value, strobe, last = data[0]
                ctx.set(dut.dsa_pad_req_wdata, value)
                ctx.set(dut.dsa_pad_req_wstrb, strobe)
                ctx.set(dut.dsa_pad_req_wlast, last)
            else:
                ctx.set(dut.dsa_pad_req_wdvalid, 0)
            ctx.set(dut.dsa_pad_resp_rready, rng.random() >= (stalls if slow is None else slow))
            ctx.set(dut.dsa_pad_resp_wready, rng.random() >= stalls)
            names = (
                *("dsa_pad_req_rvalid", "pad_dsa_req_rready", "dsa_pad_req_wvalid"),
                *("pad_dsa_req_wready", "dsa_pad_req_wdvalid", "pad_dsa_req_wdready"),
                *("pad_dsa_resp_rvalid", "dsa_pad_resp_rready", "pad_dsa_resp_rid"),
                *("pad_dsa_resp_rdata", "pad_dsa_resp_rlast", "pad_dsa_resp_rerr"),
                *("pad_dsa_resp_wvalid", "dsa_pad_resp_wready", "pad_dsa_resp_wid"),
                "pad_dsa_resp_werr",
            )
            _, _, *values = await ctx.tick().sample(*(getattr(dut, name) for name in names))
            seen = dict(zip(names, values, strict=True))
            if seen["dsa_pad_req_rvalid"] and seen["pad_dsa_req_rready"]:
                reads.owed.append([*new_read, 0, cycle])
                reads.ids.discard(new_read[2])
                new_read, read_left = None, read_left - 1
            if seen["dsa_pad_req_wvalid"] and seen["pad_dsa_req_wready"]:
                address, beats, _ = new_write
                written.append([*new_write, 0])
                writes.ids.discard(new_write[2])
                for beat in range(beats):
                    data.append((rng.getrandbits(CFG.bus_bits), rng.getrandbits(16),
                                 beat == beats - 1))  # fmt: skip
                new_write, write_left = None, write_left - 1
            if seen["dsa_pad_req_wdvalid"] and seen["pad_dsa_req_wdready"]:
                times["w"].append(cycle)
                value, strobe, last = data.popleft()
                address, _, id, done = written[0]
                at = address + done * bytes_of_beat
                written[0][3] += 1
                if at < SIZE:
                    old = bytes(memory[at : at + bytes_of_beat])
                    history.setdefault(at, []).append((cycle, old))
                    for lane, byte in enumerate(value.to_bytes(bytes_of_beat, "little")):
                        if strobe >> lane & 1:
                            memory[at + lane] = byte
                if last:
                    answers.append((id, int(address >= SIZE)))
                    written.popleft()
            state = (seen["pad_dsa_resp_rid"], seen["pad_dsa_resp_rdata"],
                     seen["pad_dsa_resp_rlast"], seen["pad_dsa_resp_rerr"])  # fmt: skip
            if shown is not None:
                assert seen["pad_dsa_resp_rvalid"] and state == shown, f"cycle {cycle}: {seed}"
            shown = None
            if seen["pad_dsa_resp_rvalid"] and not seen["dsa_pad_resp_rready"]:
                shown = state
            elif seen["pad_dsa_resp_rvalid"]:
                times["r"].append(cycle)
                address, beats, id, done, asked = reads.owed[0]
                at = address + done * bytes_of_beat
                reads.owed[0][3] += 1
                where = f"cycle {cycle}, address {at:#x}, seed {seed}"
                outside = int(at >= SIZE)
                assert state[0] == id and state[2] == (done + 1 == beats), where
                assert state[3] == outside, where
                if not outside:
                    # Any content that the beat had since the request came.
                    now = bytes(memory[at : at + bytes_of_beat])
                    past = [old for ended, old in history.get(at, []) if ended >= asked]
                    assert state[1].to_bytes(bytes_of_beat, "little") in [now, *past], where
                if done + 1 == beats:
                    reads.ids.add(id)
                    reads.owed.popleft()
            if seen["pad_dsa_resp_wvalid"]:
                expected = (seen["pad_dsa_resp_wid"], seen["pad_dsa_resp_werr"])
                assert answers and expected == answers[0], f"cycle {cycle}, seed {seed}"
                if seen["dsa_pad_resp_wready"]:
                    writes.ids.add(answers.popleft()[0])
            cycle += 1

    sim.add_testbench(bench)
    sim.run()
    return {side: (len(at), at[-1] - at[0] + 1) for side, at in times.items()}


@pytest.mark.parametrize("stalls", [0.0, 0.5])
def test_l2_memory_keeps_the_rules_of_the_port(stalls):
    traffic(SEED, stalls, BEATS, 150)


def test_l2_memory_reads_what_is_written_while_reads_wait():
    traffic(SEED + 2, 0.0, BEATS, 250, slow=0.6)


def test_l2_memory_keeps_up_with_requests_of_one_beat():
    moved = traffic(SEED + 1, 0.0, 1, 150)
    for side, (beats, cycles) in moved.items():
        # Reads lose what collides with writes, an eighth at worst here.
        assert beats >= 0.85 * cycles, f"{side}: {beats} beats in {cycles} cycles"


def test_l2_memory_has_the_latencies_that_it_tells():
    dut = L2Memory(CFG, SIZE)
    sim = Simulator(dut)
    sim.add_clock(1e-8)

    async def bench(ctx):
        value = random.Random(SEED).getrandbits(CFG.bus_bits)
        ctx.set(dut.dsa_pad_req_wvalid, 1)
        await ctx.tick()
        ctx.set(dut.dsa_pad_req_wvalid, 0)
        ctx.set(dut.dsa_pad_req_wdvalid, 1)
        ctx.set(dut.dsa_pad_req_wdata, value)
        ctx.set(dut.dsa_pad_req_wstrb, (1 << CFG.bus_bytes) - 1)
        assert ctx.get(dut.pad_dsa_req_wdready)
        await ctx.tick()
        ctx.set(dut.dsa_pad_req_wdvalid, 0)
        # What the answer to a write has been seen for is read.
        latency = 1
        while not ctx.get(dut.pad_dsa_resp_wvalid):
            await ctx.tick()
            latency += 1
        assert latency == L2Memory.WRITE_LATENCY
        ctx.set(dut.dsa_pad_req_rvalid, 1)
        await ctx.tick()
        ctx.set(dut.dsa_pad_req_rvalid, 0)
        latency = 1
        while not ctx.get(dut.pad_dsa_resp_rvalid):
            await ctx.tick()
            latency += 1
        assert latency == L2Memory.READ_LATENCY
        assert ctx.get(dut.pad_dsa_resp_rdata) == value
        ctx.set(dut.byte_select, 1)
        ctx.set(dut.byte_addr, 3)
        await ctx.tick().repeat(L2Memory.BYTE_LATENCY)
        assert ctx.get(dut.byte_out) == value >> 24 & 0xFF

    sim.add_testbench(bench)
    sim.run()


@pytest.mark.parametrize("size", [0, 16, 100, 1 << 20])
def test_l2_memory_of_no_size_is_refused(size):
    with pytest.raises(ValueError, match="power of two"):
        check_size(CFG, size)


@pytest.mark.parametrize("divisor", [4, 7])
def test_serial_line_carries_every_byte(divisor):
    m = Module()
    m.submodules.tx = tx = UartTransmitter(divisor)
    m.submodules.rx = rx = UartReceiver(divisor)
    m.d.comb += rx.line.eq(tx.line)
    sent = [0x00, 0xFF, 0x55, 0xA5, 0x80, 0x01]
    sim = Simulator(m)
    sim.add_clock(1e-8)

    async def send(ctx):
        ctx.set(tx.bytes.valid, 1)
        for byte in sent:
            ctx.set(tx.bytes.payload, byte)
            await ctx.tick().until(tx.bytes.ready)
        ctx.set(tx.bytes.valid, 0)

    async def receive(ctx):
        found = []
        for _ in range(len(sent) * 11 * divisor + 20):
            _, _, valid, byte = await ctx.tick().sample(rx.valid, rx.byte)
            if valid:
                found.append(byte)
        assert found == sent
        assert ctx.get(rx.idle)

    sim.add_testbench(send)
    sim.add_testbench(receive)
    sim.run()


def test_a_byte_without_stop_bit_is_dropped():
    rx = UartReceiver(4)
    sim = Simulator(rx)
    sim.add_clock(1e-8)

    async def bench(ctx):
        found = []

        async def drive(bits: str):
            for bit in bits:
                ctx.set(rx.line, int(bit))
                for _ in range(4):
                    _, _, valid, byte = await ctx.tick().sample(rx.valid, rx.byte)
                    if valid:
                        found.append(byte)

        await drive("1" + "0" * 14 + "111")  # a break, longer than a byte
        await drive("0" + "11000010" + "111")  # 0x43
        assert found == [0x43]

    sim.add_testbench(bench)
    sim.run()


@pytest.mark.parametrize(
    "pin, mhz, expected", [(25, 100, 100), (50, 50, 50), (25, 80, 80), (12, 50, 48)]
)
def test_pll_settings_are_in_range(pin, mhz, expected):
    found = pll_settings(pin * 1e6, mhz * 1e6)
    assert found.hz == pytest.approx(expected * 1e6)
    assert pin * 1e6 / found.input_div * found.feedback_div == pytest.approx(found.hz)
    assert 400e6 <= found.hz * found.output_div <= 800e6


@pytest.mark.parametrize("mhz", [0.5, 900])
def test_pll_that_cannot_be_is_refused(mhz):
    with pytest.raises(ValueError, match="no PLL setting"):
        pll_settings(25e6, mhz * 1e6)


def test_checksum_is_the_published_one():
    assert checksum(b"123456789") == 0x29B1  # the check value of CRC-16/IBM-3740


def test_a_body_that_is_too_long_is_refused():
    with pytest.raises(ValueError, match="too long"):
        frame(0x5A, 0, 0, bytes(MAX_BODY + 1))
