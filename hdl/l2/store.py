"""The store pipe: from the tile file into L2 memory."""

from __future__ import annotations

from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from ..config import Config
from ..interfaces import ReadPort, l2_write_members, ldst_uop, tile_row
from .ids import IdPool
from .scatter import Scatter, write_beat, write_burst

__all__ = ["StorePipe"]


class StorePipe(wiring.Component):
    """Reads each part's row once and writes its bytes, in the order of the parts.

    Neighbouring parts of one line share a burst, and the beat that two of them touch. A burst's
    request goes out when its last beat is known, its data after the request was taken. `zero` and
    `tail` of the uops are ignored.

    Members
    -------
    uops : parts of rows.
    (write channels) : `hdl.interfaces.l2_write_members`. Responses are always taken.
    read : rows of the tile file.
    reading{0,1}, reading_tile{0,1} : uops that were accepted whose row is still to be read.
    bus_error : a response with an error was accepted in the cycle before.
    idle : nothing is held or in flight; not before the last `bus_error`.

    Attributes
    ----------
    starved : a request waits for nothing but an id; beside the ports, for those who watch the
        core.

    Latency: see `UOP_TO_READ` (to the offered read), `READ_TO_REQUEST` (from the granted read of
    a part to the request of its one beat; later by one for each further beat) and
    `REQUEST_TO_DATA` (from a taken request to its first beat), in cycles, for `Config.read_latency`
    of 1.
    Throughput: one uop and one beat a cycle; ids as for `LoadPipe`.
    Source: seed 001 section 4.4.
    """

    UOP_TO_READ = Scatter.UOP_TO_READ
    READ_TO_REQUEST = Scatter.READ_TO_BEAT + 2
    REQUEST_TO_DATA = 1
    HELD = 2
    """Uops that may wait for their read."""

    def __init__(self, cfg: Config):
        self.cfg = cfg
        # Several bursts: one that is being made, one that waits for its request, one that leaves.
        self.depth = max(16, 4 * cfg.beats_per_line)
        self.starved = Signal()
        super().__init__(
            {
                "uops": In(stream.Signature(ldst_uop(cfg))),
                **l2_write_members(cfg),
                "read": Out(ReadPort(tile_row(cfg), cfg.row_bits)),
                "reading0": Out(1),
                "reading_tile0": Out(cfg.tile_bits),
                "reading1": Out(1),
                "reading_tile1": Out(cfg.tile_bits),
                "bus_error": Out(1),
                "idle": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        cfg = self.cfg
        m.submodules.scatter = scatter = Scatter(cfg, room=self.depth)
        m.submodules.ids = ids = IdPool(cfg)
        wiring.connect(m, wiring.flipped(self.uops), scatter.uops)
        wiring.connect(m, scatter.read, wiring.flipped(self.read))
        for place in range(self.HELD):
            for name in (f"reading{place}", f"reading_tile{place}"):
                m.d.comb += getattr(self, name).eq(getattr(scatter, name))

        def queue(name, shape, put, item, get):
            """A memory as a ring, and whether there is anything to get.

            Scatter's `room` keeps it from overflowing.
            """
            memory = Memory(shape=shape, depth=self.depth, init=[])
            m.submodules[name] = memory
            write, read = memory.write_port(), memory.read_port()
            m.d.comb += [write.en.eq(put), write.data.eq(item), read.en.eq(get)]
            m.d.sync += [
                write.addr.eq(write.addr + put),
                read.addr.eq(read.addr + get),
            ]
            some = Signal(name=f"some_{name}")
            with m.If(put):
                m.d.sync += some.eq(1)
            with m.Elif(get & ((read.addr + 1)[: len(read.addr)] == write.addr)):
                m.d.sync += some.eq(0)
            return read.data, some

        # -- requests: the queue's read register is the channel's ----------------------------
        # Its id is the one offered, taken together with it.
        request = Signal()
        taken = Signal()
        send = Signal()
        burst, bursts = queue("bursts", write_burst(cfg), scatter.burst_en, scatter.burst, send)
        m.d.comb += [
            taken.eq(self.dsa_pad_req_wvalid & self.pad_dsa_req_wready),
            send.eq(bursts & (~request | taken)),
            self.starved.eq(request & ~ids.give_valid),
            ids.take.eq(taken),
            self.dsa_pad_req_wvalid.eq(request & ids.give_valid),
            self.dsa_pad_req_waddr.eq(burst.beat << cfg.bus_bytes_log2),
            self.dsa_pad_req_wlen.eq(burst.len),
            self.dsa_pad_req_wid.eq(ids.give_id),
            self.dsa_pad_req_fullline.eq(burst.fullline),
        ]
        with m.If(send):
            m.d.sync += request.eq(1)
        with m.Elif(taken):
            m.d.sync += request.eq(0)

        # -- data: the queue's read register is the channel's, which waits for the request -------
        word = Signal()  # the read register holds a beat
        allowed = Signal()  # its request was taken
        ahead = Signal(
            range(self.depth + 2)
        )  # bursts whose request was, and not yet their last beat
        sent = Signal()
        over = Signal()  # and with it a burst
        pop = Signal()
        beat, beats = queue("beats", write_beat(cfg), scatter.beat_en, scatter.beat, pop)
        m.d.comb += [
            sent.eq(word & allowed & self.pad_dsa_req_wdready),
            over.eq(sent & beat.last),
            pop.eq(beats & (~word | (allowed & self.pad_dsa_req_wdready))),
            scatter.room_back.eq(pop),
            self.dsa_pad_req_wdvalid.eq(word & allowed),
            self.dsa_pad_req_wdata.eq(beat.data),
            self.dsa_pad_req_wstrb.eq(beat.strb),
            self.dsa_pad_req_wlast.eq(beat.last),
        ]
        with m.If(pop):
            m.d.sync += word.eq(1)
        with m.Elif(sent):
            m.d.sync += word.eq(0)
        m.d.sync += allowed.eq(taken | (allowed & ~(over & (ahead == 1))))
        with m.If(taken & ~over):
            m.d.sync += ahead.eq(ahead + 1)
        with m.Elif(over & ~taken):
            m.d.sync += ahead.eq(ahead - 1)

        # -- responses -----------------------------------------------------------------------
        m.d.comb += [
            self.dsa_pad_resp_wready.eq(1),
            ids.back_valid.eq(self.pad_dsa_resp_wvalid),
            ids.back_id.eq(self.pad_dsa_resp_wid),
            # Until a request is taken its beats fill Scatter's room or the read register, from then
            # on its id is in use.
            self.idle.eq(scatter.idle & ~word & ids.idle),
        ]
        m.d.sync += self.bus_error.eq(self.pad_dsa_resp_wvalid & self.pad_dsa_resp_werr)
        return m
