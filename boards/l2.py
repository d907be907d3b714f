"""The L2 memory of a board: block RAM behind a core's read and write channels, and for a PC."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.fifo import SyncFIFOBuffered
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from hdl.config import Config
from hdl.interfaces import l2_read_members, l2_write_members

__all__ = ["REQUESTS", "L2Memory", "check_size"]

REQUESTS = 4
"""Requests, and answers to writes, that wait on a channel."""


def check_size(cfg: Config, size: int) -> None:
    """Raise ValueError unless `L2Memory` can be of that size."""
    if size & (size - 1) or not 2 * cfg.bus_bytes <= size <= 1 << min(32, cfg.addr_bits - 1):
        raise ValueError(
            f"L2 memory of {size} bytes is not built: use a power of two from "
            f"{2 * cfg.bus_bytes} to {1 << min(32, cfg.addr_bits - 1)}"
        )


class L2Memory(wiring.Component):
    """Bytes from address 0 on, for one core, and a byte at a time for a PC while the core rests.

    A beat beyond the end is answered with an error and changes nothing. Requests of a channel are
    served in order, beats of different ones never interleave. A read waits while its beat is being
    written.

    Parameters
    ----------
    cfg : the core; it gives the widths of the ports.
    size : bytes; see `check_size`.

    Members
    -------
    (channels) : `hdl.interfaces.l2_read_members`, `l2_write_members`, seen from memory.
    byte_addr : of the PC's access.
    byte_write, byte_in : write a byte; only while no request is under way.
    byte_select : read that address; only while no request is under way.
    byte_out : the byte, `BYTE_LATENCY` cycles after its address, held with it.

    Latency: `READ_LATENCY` from a request to its first beat; `WRITE_LATENCY` from the last beat to
    the answer; at least, without stalls.
    Throughput: one beat a cycle on either channel, whatever the length of the bursts.
    Source: seed 001 section 4.4.
    """

    READ_LATENCY = 5
    WRITE_LATENCY = 2
    BYTE_LATENCY = 3

    def __init__(self, cfg: Config, size: int):
        self.cfg = cfg
        self.size = size
        self.size_log2 = size.bit_length() - 1
        core = {**l2_read_members(cfg), **l2_write_members(cfg)}
        super().__init__(
            {
                **{name: member.flip() for name, member in core.items()},
                "byte_addr": In(self.size_log2),
                "byte_write": In(1),
                "byte_in": In(8),
                "byte_select": In(1),
                "byte_out": Out(8),
            }
        )

    def _request(self) -> data.StructLayout:
        cfg = self.cfg
        return data.StructLayout(
            {
                "word": self.size_log2 - cfg.bus_bytes_log2,
                "outside": 1,
                "len": cfg.len_bits,
                "id": cfg.id_bits,
            }
        )

    def _queue(self, m: Module, name: str, channel: str) -> tuple[SyncFIFOBuffered, data.View]:
        """The requests of a channel ("r" or "w"), oldest first."""
        layout = self._request()
        queue = SyncFIFOBuffered(width=layout.size, depth=REQUESTS)
        m.submodules[name] = queue
        addr = getattr(self, f"dsa_pad_req_{channel}addr")
        new = data.View(layout, queue.w_data)
        m.d.comb += [
            new.word.eq(addr[self.cfg.bus_bytes_log2 : self.size_log2]),
            new.outside.eq(addr[self.size_log2 :].any()),
            new.len.eq(getattr(self, f"dsa_pad_req_{channel}len")),
            new.id.eq(getattr(self, f"dsa_pad_req_{channel}id")),
            queue.w_en.eq(getattr(self, f"dsa_pad_req_{channel}valid")),
            getattr(self, f"pad_dsa_req_{channel}ready").eq(queue.w_rdy),
        ]
        return queue, data.View(layout, queue.r_data)

    def elaborate(self, platform):
        m = Module()
        cfg = self.cfg
        lane_bits = cfg.bus_bytes_log2
        word_bits = self.size_log2 - lane_bits
        memory = Memory(shape=cfg.bus_bits, depth=self.size // cfg.bus_bytes, init=[])
        m.submodules.memory = memory
        write = memory.write_port(granularity=8)
        read = memory.read_port()

        # -- writes: one register stage before the memory --------------------------------------
        requests, head = self._queue(m, "write_requests", "w")
        m.submodules.answers = answers = SyncFIFOBuffered(width=cfg.id_bits + 1, depth=REQUESTS)
        beat = Signal(cfg.len_bits)
        last = Signal()
        take = Signal()
        m.d.comb += [
            last.eq(beat == head.len),
            self.pad_dsa_req_wdready.eq(requests.r_rdy & answers.w_rdy),
            take.eq(self.pad_dsa_req_wdready & self.dsa_pad_req_wdvalid),
            requests.r_en.eq(take & last),
            answers.w_en.eq(take & last),
            answers.w_data.eq(Cat(head.id, head.outside)),
            self.pad_dsa_resp_wvalid.eq(answers.r_rdy),
            answers.r_en.eq(self.dsa_pad_resp_wready),
            Cat(self.pad_dsa_resp_wid, self.pad_dsa_resp_werr).eq(answers.r_data),
        ]
        with m.If(take):
            m.d.sync += beat.eq(Mux(last, 0, beat + 1))
        word = Signal(word_bits, reset_less=True)
        mask = Signal(cfg.bus_bytes)
        writing = Signal()  # some of it, perhaps
        content = Signal(cfg.bus_bits, reset_less=True)
        m.d.sync += [
            word.eq(head.word + beat),
            content.eq(self.dsa_pad_req_wdata),
            mask.eq(Mux(take & ~head.outside, self.dsa_pad_req_wstrb, 0)),
            writing.eq(take & ~head.outside),
        ]
        with m.If(self.byte_write):
            m.d.sync += [
                word.eq(self.byte_addr[lane_bits:]),
                content.eq(self.byte_in.replicate(cfg.bus_bytes)),
                mask.eq(1 << self.byte_addr[:lane_bits]),
            ]
        m.d.comb += [write.addr.eq(word), write.data.eq(content), write.en.eq(mask)]

        # -- reads: a beat's address, the memory's own stage and one behind it; held while an answer
        # -- waits
        requests, head = self._queue(m, "read_requests", "r")
        asked = Signal()
        address = Signal(word_bits, reset_less=True)
        left = Signal(cfg.len_bits, reset_less=True)  # beats behind this one
        ask = Signal(data.StructLayout({"id": cfg.id_bits, "err": 1}), reset_less=True)
        fetch = Signal()
        free = Signal()  # the memory's output may change
        advance = Signal()  # the answer's registers may change
        fetched = Signal()
        tags = Signal(data.StructLayout({"id": cfg.id_bits, "last": 1, "err": 1}), reset_less=True)
        valid = Signal()
        m.d.comb += [
            advance.eq(~valid | self.dsa_pad_resp_rready),
            free.eq(~fetched | advance),
            fetch.eq(asked & free & ~(writing & (word == address))),
            requests.r_en.eq(~asked | (fetch & (left == 0))),
            read.addr.eq(Mux(self.byte_select, self.byte_addr[lane_bits:], address)),
            # Whether this is a beat is known too late to say so here.
            read.en.eq(free),
            self.pad_dsa_resp_rvalid.eq(valid),
        ]
        with m.If(requests.r_en):
            m.d.sync += [
                asked.eq(requests.r_rdy),
                address.eq(head.word),
                left.eq(head.len),
                ask.id.eq(head.id),
                ask.err.eq(head.outside),
            ]
        with m.Elif(fetch):
            m.d.sync += [address.eq(address + 1), left.eq(left - 1)]
        with m.If(free):
            m.d.sync += [
                fetched.eq(fetch),
                tags.id.eq(ask.id),
                tags.last.eq(left == 0),
                tags.err.eq(ask.err),
            ]
        with m.If(advance):
            m.d.sync += [
                valid.eq(fetched),
                self.pad_dsa_resp_rid.eq(tags.id),
                self.pad_dsa_resp_rlast.eq(tags.last),
                self.pad_dsa_resp_rerr.eq(tags.err),
                self.pad_dsa_resp_rdata.eq(read.data),
            ]
        m.d.sync += self.byte_out.eq(
            self.pad_dsa_resp_rdata.word_select(self.byte_addr[:lane_bits], 8)
        )
        return m
