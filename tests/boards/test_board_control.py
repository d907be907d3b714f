"""What controls a board, on its own: the link and the sequencer."""

from __future__ import annotations

import os
import random
import struct

import pytest
from amaranth.sim import Simulator

from boards.link import SILENCE_BYTES, Link
from boards.protocol import (
    ENTRY_BYTES,
    REQUEST_MARK,
    RESPONSE_MARK,
    Op,
    Result,
    RunState,
    Status,
    checksum,
    frame,
)
from boards.sequencer import Sequencer
from hdl.config import Config

SEED = int(os.environ.get("TEST_SEED", "20260731"), 0)
CFG = Config(name="control-test", addr_bits=16, l2_ids=16, m_par=1, n_par=1)
INFO = b"a board"
L2_LOG2, DEPTH_LOG2, DIVISOR = 6, 3, 4


class LinkBench:
    """A link whose line, memory and sequencer a test plays; bytes come as fast as they may."""

    def __init__(self, ctx, dut: Link, rng: random.Random):
        self.ctx = ctx
        self.dut = dut
        self.rng = rng
        self.sent = b""
        self.memory: dict[int, int] = {}
        self.program: dict[int, int] = {}
        self.starts: list[tuple[int, int]] = []
        self.resets = 0

    async def cycle(self) -> None:
        """One cycle, and what it did."""
        ctx, dut = self.ctx, self.dut
        ctx.set(dut.bytes.ready, self.rng.random() < 0.1)
        await ctx.delay(0)
        if ctx.get(dut.bytes.valid) and ctx.get(dut.bytes.ready):
            self.sent += bytes([ctx.get(dut.bytes.payload)])
        if ctx.get(dut.l2_write):
            self.memory[ctx.get(dut.l2_addr)] = ctx.get(dut.l2_in)
        if ctx.get(dut.entry_write):
            self.program[ctx.get(dut.entry_addr)] = ctx.get(dut.entry)
        if ctx.get(dut.start):
            self.starts.append((ctx.get(dut.count), ctx.get(dut.run)))
        self.resets += ctx.get(dut.core_reset)
        assert not (ctx.get(dut.l2_select) and ctx.get(dut.running)), "the core reads now"
        # The addresses themselves, as if they were what lies there.
        ctx.set(dut.l2_out, 0x80 | ctx.get(dut.l2_addr) if ctx.get(dut.l2_select) else 0)
        ctx.set(dut.result_byte, 0x40 | ctx.get(dut.result_addr))
        await ctx.tick()

    async def write(self, content: bytes) -> None:
        for byte in content:
            assert not self.ctx.get(self.dut.bytes.valid)
            self.ctx.set(self.dut.byte, byte)
            self.ctx.set(self.dut.byte_valid, 1)
            await self.cycle()
            self.ctx.set(self.dut.byte_valid, 0)
            for _ in range(Link.BYTE_CYCLES - 1):
                await self.cycle()

    async def answer(self) -> tuple[int, int, bytes]:
        """Status, number and body of an answer, which must come."""
        for _ in range(20_000):
            await self.cycle()
            if self.ctx.get(self.dut.idle):
                break
        came, self.sent = self.sent, b""
        assert came[0] == RESPONSE_MARK
        status, number, length = struct.unpack("<BBH", came[1:5])
        assert len(came) == 7 + length
        assert checksum(came[1:-2]) == int.from_bytes(came[-2:], "little")
        return status, number, came[5:-2]

    async def request(self, op: int, body: bytes = b"") -> tuple[int, bytes]:
        number = self.rng.randrange(256)
        await self.write(frame(REQUEST_MARK, op, number, body))
        status, same, answer = await self.answer()
        assert same == number
        return status, answer


def with_link(test) -> None:
    dut = Link(INFO, l2_log2=L2_LOG2, depth_log2=DEPTH_LOG2, divisor=DIVISOR)
    sim = Simulator(dut)
    sim.add_clock(1e-8)

    async def bench(ctx):
        await test(LinkBench(ctx, dut, random.Random(SEED)))

    sim.add_testbench(bench)
    sim.run()


def test_link_does_what_is_asked_with_bytes_as_close_as_they_may_be():
    async def test(link: LinkBench):
        ctx, dut, rng = link.ctx, link.dut, link.rng
        assert await link.request(Op.INFO) == (Status.OK, INFO)
        content = rng.randbytes(9)
        assert await link.request(Op.WRITE, struct.pack("<I", 3) + content) == (Status.OK, b"")
        assert link.memory == {3 + index: byte for index, byte in enumerate(content)}
        entries = [rng.randbytes(ENTRY_BYTES) for _ in range(3)]
        body = struct.pack("<I", 2) + b"".join(entries)
        assert await link.request(Op.PROGRAM, body) == (Status.OK, b"")
        assert link.program == {
            2 + index: int.from_bytes(entry, "little") for index, entry in enumerate(entries)
        }
        for op, mark, end in ((Op.READ, 0x80, 1 << L2_LOG2), (Op.RESULTS, 0x40, 16 << DEPTH_LOG2)):
            first, count = end - 5, 5
            expected = bytes(mark | address for address in range(first, end))
            body = struct.pack("<II", first, count)
            assert await link.request(op, body) == (Status.OK, expected)
            assert await link.request(op, struct.pack("<II", first, 6)) == (Status.RANGE, b"")
            assert await link.request(op, struct.pack("<II", end, 0)) == (Status.OK, b"")
        assert await link.request(Op.START, struct.pack("<II", 4, 77)) == (Status.OK, b"")
        assert link.starts == [(4, 77)]
        for name, value in {"last_run": 77, "running": 1, "responses": 3, "cycles": 99}.items():
            ctx.set(getattr(dut, name), value)
        state = RunState(77, True, 3, 99)
        assert RunState.parse((await link.request(Op.STATUS))[1]) == state
        assert await link.request(Op.START, struct.pack("<II", 4, 77)) == (Status.OK, b"")
        assert await link.request(Op.START, struct.pack("<II", 4, 78)) == (Status.BUSY, b"")
        assert await link.request(Op.READ, struct.pack("<II", 0, 4)) == (Status.BUSY, b"")
        assert link.starts == [(4, 77)] and link.resets == 0
        assert await link.request(Op.RESET) == (Status.OK, b"")
        assert link.resets > 8

    with_link(test)


def test_link_writes_nothing_while_a_program_runs_and_says_so():
    async def test(link: LinkBench):
        ctx, dut = link.ctx, link.dut
        for op in (Op.WRITE, Op.PROGRAM):
            ctx.set(dut.running, 1)
            request = frame(REQUEST_MARK, op, 1, struct.pack("<I", 0) + bytes(2 * ENTRY_BYTES))
            await link.write(request[:40])
            ctx.set(dut.running, 0)  # before the request is over
            await link.write(request[40:])
            assert (await link.answer())[0] == Status.BUSY
        assert not link.memory and not link.program

    with_link(test)


def test_link_forgets_what_does_not_go_on():
    async def test(link: LinkBench):
        good = frame(REQUEST_MARK, Op.READ, 1, struct.pack("<II", 1, 2))
        long = good[:3] + b"\xff\xff"  # no such length
        for start in (1, 4, 9, len(good) - 1):
            await link.write(good[:start])
            await link.ctx.tick().repeat(SILENCE_BYTES * 10 * DIVISOR + 8)
            assert link.ctx.get(link.dut.idle)
            assert await link.request(Op.READ, struct.pack("<II", 1, 2)) == (0, b"\x81\x82")
        await link.write(long)
        assert await link.request(Op.INFO) == (Status.OK, INFO)
        bad = bytearray(good)
        bad[-1] ^= 0x10
        await link.write(bytes(bad))
        assert (await link.answer())[0] == Status.CHECKSUM

    with_link(test)


@pytest.mark.parametrize("stalls", [0.0, 0.5])
def test_sequencer_offers_every_instruction_and_keeps_every_answer(stalls):
    """Without stalls one a cycle."""
    rng = random.Random(SEED)
    depth = 32
    dut = Sequencer(CFG, depth)
    sim = Simulator(dut)
    sim.add_clock(1e-8)
    program = [rng.getrandbits(8 * ENTRY_BYTES) for _ in range(depth)]

    async def bench(ctx):
        for place, entry in enumerate(program):
            ctx.set(dut.entry_addr, place)
            ctx.set(dut.entry, entry)
            ctx.set(dut.entry_write, 1)
            await ctx.tick()
        ctx.set(dut.entry_write, 0)
        for run, count in enumerate((depth, 1, 20), 5):
            ctx.set(dut.count, count)
            ctx.set(dut.run, run)
            ctx.set(dut.start, 1)
            await ctx.tick()
            ctx.set(dut.start, 0)
            ctx.set(dut.count, 0)
            taken: list[int] = []
            answers: list[Result] = []
            offered = None
            for cycle in range(20 * depth):
                ready = rng.random() >= stalls
                answer = None
                if len(answers) < len(taken) and rng.random() >= stalls:
                    tag = len(answers)
                    answer = Result(rng.getrandbits(64), tag, rng.randrange(32), 1, 0, 0)
                    fields = {"data": answer.data, "tag": tag, "rd": answer.rd, "wb": 1}
                    for name, value in fields.items():
                        ctx.set(getattr(dut, f"host_resp_{name}"), value)
                ctx.set(dut.host_resp_valid, answer is not None)
                ctx.set(dut.host_req_ready, ready)
                ctx.set(dut.busy, len(answers) < len(taken) or cycle < 60)
                names = ("valid", "inst", "rs1", "rs2", "tag")
                values = [getattr(dut, f"host_req_{name}") for name in names]
                _, _, valid, inst, rs1, rs2, tag, running = await ctx.tick().sample(
                    *values, dut.running
                )
                shown = (inst | rs1 << 32 | rs2 << 96, tag)
                assert offered is None or (valid and shown == offered)
                offered = shown if valid and not ready else None
                if valid and ready:
                    assert shown == (program[len(taken)], len(taken))
                    taken.append(cycle)
                if answer is not None:
                    answers.append(Result(answer.data, answer.tag, answer.rd, 1, 0, cycle))
                assert running or (len(answers) == count and cycle > 60)
                if not running:
                    break
            assert len(taken) == len(answers) == count and not ctx.get(dut.running)
            assert stalls or taken[-1] - taken[0] == count - 1
            cycles = answers[-1].cycle - taken[0]
            state = (dut.last_run, dut.responses, dut.cycles)
            assert tuple(ctx.get(value) for value in state) == (run, count, cycles)
            for place in rng.sample(range(count), min(count, 4)):
                found = b""
                for byte in range(16):
                    ctx.set(dut.result_addr, 16 * place + byte)
                    await ctx.tick().repeat(Sequencer.BYTE_LATENCY)
                    found += bytes([ctx.get(dut.result_byte)])
                kept, given = Result.parse(found), answers[place]
                assert (kept.data, kept.tag, kept.rd) == (given.data, given.tag, given.rd)
                assert kept.cycle == given.cycle - taken[0]

    sim.add_testbench(bench)
    sim.run()
