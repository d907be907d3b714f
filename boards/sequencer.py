"""Runs a stored program on a core and keeps the core's answers."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.fifo import SyncFIFOBuffered
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from hdl.config import Config
from hdl.interfaces import host_members, host_response
from hdl.registers import KeptRegister

from .protocol import ENTRY_BYTES, RESULT_BYTES

__all__ = ["Sequencer"]

_QUEUE = 8
"""Instructions read ahead of the core."""
_ON_THE_WAY = 4
"""Instructions that are read but that the queue's level does not tell of yet, at most."""


class Sequencer(wiring.Component):
    """The host of a core: requests from a program memory, answers into a result memory.

    Tags count from 0 in each run. A run is over when every request is answered and the core is not
    busy.

    Parameters
    ----------
    cfg : the core.
    depth : instructions of the longest program, a power of two.

    Members
    -------
    host_* : the core's host ports, seen from outside; `busy` is the core's.
    entry, entry_addr, entry_write : a place of the program memory; only while nothing runs.
    start, count, run : run the first `count` instructions, at least one, as number `run`.
    last_run : number of the last run.
    running : a run is not over.
    responses, cycles : see `protocol.RunState`.
    result_addr, result_byte : a byte of the result memory, `BYTE_LATENCY` cycles later.

    Throughput: an instruction and an answer each cycle.
    """

    BYTE_LATENCY = 3

    def __init__(self, cfg: Config, depth: int):
        self.cfg = cfg
        self.depth = depth
        self.depth_log2 = depth.bit_length() - 1
        super().__init__(
            {
                **{name: member.flip() for name, member in host_members(cfg).items()},
                "busy": In(1),
                "entry": In(8 * ENTRY_BYTES),
                "entry_addr": In(self.depth_log2),
                "entry_write": In(1),
                "start": In(1),
                "count": In(self.depth_log2 + 1),
                "run": In(32),
                "last_run": Out(32),
                "running": Out(1),
                "responses": Out(self.depth_log2 + 1),
                "cycles": Out(32),
                "result_addr": In(self.depth_log2 + RESULT_BYTES.bit_length() - 1),
                "result_byte": Out(8),
            }
        )

    def elaborate(self, platform):
        m = Module()
        cfg = self.cfg
        count = Signal(self.depth_log2 + 1)
        with m.If(self.start):
            m.d.sync += [
                self.running.eq(1),
                self.last_run.eq(self.run),
                count.eq(self.count),
            ]

        # -- requests: the memory, then a queue that the core empties ----------------------------
        program = Memory(shape=8 * ENTRY_BYTES, depth=self.depth, init=[])
        m.submodules.program = program
        write = program.write_port()
        read = program.read_port()
        m.submodules.queue = queue = SyncFIFOBuffered(
            width=8 * ENTRY_BYTES + cfg.tag_bits, depth=_QUEUE
        )
        place = Signal(self.depth_log2)
        left = Signal(self.depth_log2 + 2, init=-1)  # behind this one; -1 after the last
        room = Signal()
        fetch = Signal()
        fetched = Signal()
        tag = Signal(cfg.tag_bits, reset_less=True)  # of what is fetched
        arrived = Signal()
        item = Signal(8 * ENTRY_BYTES + cfg.tag_bits, reset_less=True)
        m.d.comb += [
            write.addr.eq(self.entry_addr),
            write.data.eq(self.entry),
            write.en.eq(self.entry_write),
            read.addr.eq(place),
            read.en.eq(1),
            fetch.eq(room & ~left[-1]),
            queue.w_data.eq(item),
            queue.w_en.eq(arrived),
        ]
        m.d.sync += [
            room.eq(queue.w_level <= _QUEUE - _ON_THE_WAY),
            fetched.eq(fetch),
            tag.eq(place),
            arrived.eq(fetched),
            item.eq(Cat(read.data, tag)),
        ]
        with m.If(self.start):
            m.d.sync += [place.eq(0), left.eq(self.count - 1)]
        with m.Elif(fetch):
            m.d.sync += [place.eq(place + 1), left.eq(left - 1)]
        taken = Signal()  # in the cycle before
        m.d.sync += taken.eq(self.host_req_valid & self.host_req_ready)
        fields = {"inst": 32, "rs1": 64, "rs2": 64}
        m.d.comb += [
            self.host_req_valid.eq(queue.r_rdy),
            queue.r_en.eq(self.host_req_ready),
            Cat(*(getattr(self, f"host_req_{name}") for name in fields), self.host_req_tag).eq(
                queue.r_data
            ),
        ]

        # -- answers -------------------------------------------------------------------------------
        layout = data.StructLayout(
            {"data": 64, "tag": 16, "rd": 8, "wb": 1, "error": 7, "cycle": 32}
        )
        answer = Signal(layout, reset_less=True)
        answered = Signal()
        m.d.comb += self.host_resp_ready.eq(1)
        m.d.sync += answered.eq(self.host_resp_valid)
        for name, _ in host_response(cfg):
            m.d.sync += answer[name].eq(getattr(self, f"host_resp_{name}"))
        now = Signal(32)
        first = Signal()  # no request has been taken yet
        with m.If(self.start):
            m.d.sync += [now.eq(1), first.eq(1)]  # it starts to count a cycle late
        with m.Elif(taken | ~first):
            m.d.sync += [now.eq(now + 1), first.eq(0)]
        m.d.sync += answer.cycle.eq(now)
        results = Memory(shape=layout.size, depth=self.depth, init=[])
        m.submodules.results = results
        write = results.write_port()
        read = results.read_port()
        with m.If(self.start):
            m.d.sync += [self.responses.eq(0), self.cycles.eq(0)]
        with m.Elif(answered):
            m.d.sync += [self.responses.eq(self.responses + 1), self.cycles.eq(answer.cycle)]
        lane_bits = RESULT_BYTES.bit_length() - 1
        m.submodules.lane = lane = KeptRegister(lane_bits)
        found = Signal(layout.size, reset_less=True)
        m.d.comb += [
            write.addr.eq(self.responses),
            write.data.eq(answer),
            write.en.eq(answered),
            read.addr.eq(self.result_addr[lane_bits:]),
            read.en.eq(1),
            lane.d.eq(self.result_addr),
        ]
        m.d.sync += [
            found.eq(read.data),
            self.result_byte.eq(found.word_select(lane.q, 8)),
        ]
        busy = Signal()
        quiet = Signal()
        m.d.sync += [busy.eq(self.busy), quiet.eq((self.responses == count) & ~busy)]
        with m.If(self.running & quiet & (self.responses == count)):
            m.d.sync += self.running.eq(0)
        return m
