"""The L2 memory of a board: block RAM behind a core's read and write channels, and for a PC."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.fifo import SyncFIFOBuffered
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from hdl.config import Config
from hdl.interfaces import l2_read_members, l2_write_members
from hdl.l2.buffer import StreamBuffer
from hdl.registers import KeptRegister

__all__ = ["L2Memory", "check_size"]

BEATS = 16
"""Beats of read data on their way through the memory and behind it; with six, reads fall behind."""
_MEMORY_STAGES = 2 + 3
"""Registers from a beat's address to its data: two before the memory, in it, two behind it."""


def check_size(cfg: Config, size: int) -> None:
    """Raise ValueError unless `L2Memory` can be of that size."""
    if size & (size - 1) or not 2 * cfg.bus_bytes <= size <= 1 << min(32, cfg.addr_bits - 1):
        raise ValueError(
            f"L2 memory of {size} bytes is not built: use a power of two from "
            f"{2 * cfg.bus_bytes} to {1 << min(32, cfg.addr_bits - 1)}"
        )


class ByteLane(wiring.Component):
    """One byte of every word, behind registers of its own: block RAMs lie all over an FPGA.

    Parameters
    ----------
    depth : words.

    Members
    -------
    write, write_addr, write_data : a byte to write.
    read_addr, read_data : a byte that is read, two cycles later. Nothing orders a read and a write
        of one byte in one cycle.
    """

    def __init__(self, depth: int):
        self.depth = depth
        addr = (depth - 1).bit_length()
        super().__init__(
            {
                "write": In(1),
                "write_addr": In(addr),
                "write_data": In(8),
                "read_addr": In(addr),
                "read_data": Out(8),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.memory = memory = Memory(shape=8, depth=self.depth, init=[])
        write, read = memory.write_port(), memory.read_port()
        for port, value in (
            (write.en, self.write),
            (write.addr, self.write_addr),
            (write.data, self.write_data),
            (read.addr, self.read_addr),
        ):
            register = KeptRegister(len(port))
            m.submodules += register
            m.d.comb += [register.d.eq(value), port.eq(register.q)]
        m.d.comb += [read.en.eq(1), self.read_data.eq(read.data)]
        return m


class L2Memory(wiring.Component):
    """Bytes from address 0 on, for one core, and a byte at a time for a PC while the core rests.

    A beat beyond the end is answered with an error and changes nothing. Requests of a channel are
    served in order, beats of different ones never interleave; none goes beyond its line. A read
    waits while its beat is being written.

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

    READ_LATENCY = 9
    WRITE_LATENCY = 1
    BYTE_LATENCY = 7

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

    def _beat(self) -> data.StructLayout:
        return data.StructLayout(
            {"id": self.cfg.id_bits, "last": 1, "err": 1, "data": self.cfg.bus_bits}
        )

    def _requests(self, m: Module, name: str, channel: str) -> StreamBuffer:
        """The requests of a channel ("r" or "w"), oldest first."""
        m.submodules[name] = requests = StreamBuffer(self._request())
        addr = getattr(self, f"dsa_pad_req_{channel}addr")
        new = requests.i.payload
        m.d.comb += [
            new.word.eq(addr[self.cfg.bus_bytes_log2 : self.size_log2]),
            new.outside.eq(addr[self.size_log2 :].any()),
            new.len.eq(getattr(self, f"dsa_pad_req_{channel}len")),
            new.id.eq(getattr(self, f"dsa_pad_req_{channel}id")),
            requests.i.valid.eq(getattr(self, f"dsa_pad_req_{channel}valid")),
            getattr(self, f"pad_dsa_req_{channel}ready").eq(requests.i.ready),
        ]
        return requests

    def _behind(self, word: Value, beats: Value | int) -> Value:
        """Address of the beat so many behind `word`, in the same line."""
        bits = min((self.cfg.beats_per_line - 1).bit_length(), len(word))
        return Cat((word[:bits] + beats)[:bits], word[bits:])

    def elaborate(self, platform):
        m = Module()
        cfg = self.cfg
        lane_bits = cfg.bus_bytes_log2
        word_bits = self.size_log2 - lane_bits

        # -- writes: four register stages before the memory ---------------------------------------
        requests = self._requests(m, "write_requests", "w")
        head = requests.o.payload
        m.submodules.answers = answers = StreamBuffer(cfg.id_bits + 1)
        beat = Signal(cfg.len_bits)
        last = Signal()
        take = Signal()
        m.d.comb += [
            last.eq(beat == head.len),
            self.pad_dsa_req_wdready.eq(requests.o.valid & answers.i.ready),
            take.eq(self.pad_dsa_req_wdready & self.dsa_pad_req_wdvalid),
            requests.o.ready.eq(take & last),
            answers.i.valid.eq(take & last),
            answers.i.payload.eq(Cat(head.id, head.outside)),
            self.pad_dsa_resp_wvalid.eq(answers.o.valid),
            answers.o.ready.eq(self.dsa_pad_resp_wready),
            Cat(self.pad_dsa_resp_wid, self.pad_dsa_resp_werr).eq(answers.o.payload),
        ]
        with m.If(take):
            m.d.sync += beat.eq(Mux(last, 0, beat + 1))
        word = Signal(word_bits, reset_less=True)
        mask = Signal(cfg.bus_bytes)
        writing = Signal()  # some of it, perhaps
        content = Signal(cfg.bus_bits, reset_less=True)
        m.d.sync += [
            word.eq(self._behind(head.word, beat)),
            content.eq(self.dsa_pad_req_wdata),
            mask.eq(Mux(take & ~head.outside, self.dsa_pad_req_wstrb, 0)),
            writing.eq(take & ~head.outside),
        ]
        m.submodules.byte_addr = byte_register = KeptRegister(self.size_log2)
        byte_addr = byte_register.q
        byte_in = Signal(8, reset_less=True)
        byte_write, by_byte = Signal(), Signal()
        m.d.comb += byte_register.d.eq(self.byte_addr)
        m.d.sync += [
            byte_in.eq(self.byte_in),
            byte_write.eq(self.byte_write),
            by_byte.eq(self.byte_select),
        ]
        with m.If(byte_write):
            m.d.sync += [
                word.eq(byte_addr[lane_bits:]),
                content.eq(byte_in.replicate(cfg.bus_bytes)),
                mask.eq(1 << byte_addr[:lane_bits]),
            ]
        lane_word, lane_mask, lane_content = word, mask, content
        for stage in range(2):
            word_q = Signal(word_bits, name=f"word{stage}", reset_less=True)
            mask_q = Signal(cfg.bus_bytes, name=f"mask{stage}")
            content_q = Signal(cfg.bus_bits, name=f"content{stage}", reset_less=True)
            m.d.sync += [word_q.eq(lane_word), mask_q.eq(lane_mask), content_q.eq(lane_content)]
            lane_word, lane_mask, lane_content = word_q, mask_q, content_q

        # -- reads: a beat's address, then registers on both sides of the memory. They never stop: a
        # -- beat that starts has its place among those that wait for the core
        requests = self._requests(m, "read_requests", "r")
        head = requests.o.payload
        layout = self._beat()
        m.submodules.beats = beats = SyncFIFOBuffered(width=layout.size, depth=BEATS)
        asked = Signal()
        address = Signal(word_bits, reset_less=True)
        left = Signal(cfg.len_bits, reset_less=True)  # beats behind this one
        final = Signal()  # there are none
        ask = Signal(data.StructLayout({"id": cfg.id_bits, "err": 1}), reset_less=True)
        fetch = Signal()
        taken = Signal()
        room = Signal(range(BEATS + 1), init=BEATS)
        may = Signal()
        m.d.comb += [
            fetch.eq(asked & may),
            taken.eq(beats.r_rdy & self.dsa_pad_resp_rready),
            requests.o.ready.eq(~asked | (may & final)),
        ]
        was_taken = Signal()
        fetched = Signal()
        # A write that is in its first stage now gets to the memory together with the read that
        # `may` allows. That is one of three; any of them waits.
        clash = Signal()
        following = self._behind(address, 1)
        m.d.comb += clash.eq(Cat(word == read for read in (head.word, address, following)).any())
        m.d.sync += [
            was_taken.eq(taken),
            fetched.eq(fetch),
            room.eq(room + was_taken - fetched),
            may.eq((room > 2) & ~(writing & clash)),  # `room` does not tell of two reads yet
        ]
        with m.If(requests.o.ready):
            m.d.sync += [
                asked.eq(requests.o.valid),
                address.eq(head.word),
                left.eq(head.len),
                final.eq(head.len == 0),
                ask.id.eq(head.id),
                ask.err.eq(head.outside),
            ]
        with m.Elif(fetch):
            m.d.sync += [address.eq(following), left.eq(left - 1), final.eq(left == 1)]

        memory_address = Signal(word_bits, reset_less=True)
        m.d.sync += memory_address.eq(Mux(by_byte, byte_addr[lane_bits:], address))
        read_data = []
        for index in range(cfg.bus_bytes):
            m.submodules[f"lane{index}"] = lane = ByteLane(self.size // cfg.bus_bytes)
            m.d.comb += [
                lane.write.eq(lane_mask[index]),
                lane.write_addr.eq(lane_word),
                lane.write_data.eq(lane_content.word_select(index, 8)),
                lane.read_addr.eq(memory_address),
            ]
            read_data.append(lane.read_data)
        fresh = Signal(cfg.bus_bits, reset_less=True)
        found = Signal(layout, reset_less=True)
        valid, tags = fetch, Cat(ask.id, final, ask.err)
        for stage in range(_MEMORY_STAGES):
            valid_q = Signal(name=f"valid{stage}")
            m.d.sync += valid_q.eq(valid)
            valid = valid_q
            if stage < _MEMORY_STAGES - 1:
                tags_q = Signal(len(tags), name=f"tags{stage}", reset_less=True)
                m.d.sync += tags_q.eq(tags)
                tags = tags_q
        m.d.sync += [
            fresh.eq(Cat(read_data)),
            Cat(found.id, found.last, found.err).eq(tags),
            found.data.eq(fresh),
        ]
        first = data.View(layout, beats.r_data)
        m.d.comb += [
            beats.w_en.eq(valid),
            beats.w_data.eq(found),
            beats.r_en.eq(self.dsa_pad_resp_rready),
            self.pad_dsa_resp_rvalid.eq(beats.r_rdy),
            self.pad_dsa_resp_rid.eq(first.id),
            self.pad_dsa_resp_rlast.eq(first.last),
            self.pad_dsa_resp_rerr.eq(first.err),
            self.pad_dsa_resp_rdata.eq(first.data),
        ]
        m.d.sync += self.byte_out.eq(found.data.word_select(byte_addr[:lane_bits], 8))
        return m
