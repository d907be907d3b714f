"""The store pipe: from the tile file into L2 memory."""

from __future__ import annotations

from amaranth.hdl import Module, Mux, Signal
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
    reading, reading_tile : a uop was accepted whose row is still to be read; at most one.
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
                "reading": Out(1),
                "reading_tile": Out(cfg.tile_bits),
                "bus_error": Out(1),
                "idle": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        cfg = self.cfg
        m.submodules.scatter = scatter = Scatter(cfg, room=self.depth - 1)
        m.submodules.ids = ids = IdPool(cfg)
        wiring.connect(m, wiring.flipped(self.uops), scatter.uops)
        wiring.connect(m, scatter.read, wiring.flipped(self.read))
        m.d.comb += [
            self.reading.eq(scatter.reading),
            self.reading_tile.eq(scatter.reading_tile),
        ]

        def queue(name, shape, put, item, get):
            """A memory as a ring; Scatter's `room` keeps it from overflowing."""
            memory = Memory(shape=shape, depth=self.depth, init=[])
            m.submodules[name] = memory
            write, read = memory.write_port(), memory.read_port()
            m.d.comb += [write.en.eq(put), write.data.eq(item), read.en.eq(get)]
            m.d.sync += [
                write.addr.eq(write.addr + put),
                read.addr.eq(read.addr + get),
            ]
            return read.data, write.addr != read.addr

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

        # -- data: as many beats as the requests taken so far allow --------------------------
        allowed = Signal(range(self.depth + 1))
        word = Signal()
        pop = Signal()
        beat, _ = queue("beats", write_beat(cfg), scatter.beat_en, scatter.beat, pop)
        m.d.comb += [
            pop.eq(((allowed != 0) | taken) & (~word | self.pad_dsa_req_wdready)),
            scatter.room_back.eq(pop),
            self.dsa_pad_req_wdvalid.eq(word),
            self.dsa_pad_req_wdata.eq(beat.data),
            self.dsa_pad_req_wstrb.eq(beat.strb),
            self.dsa_pad_req_wlast.eq(beat.last),
        ]
        m.d.sync += allowed.eq(allowed + Mux(taken, burst.len + 1, 0) - pop)
        with m.If(pop):
            m.d.sync += word.eq(1)
        with m.Elif(self.pad_dsa_req_wdready):
            m.d.sync += word.eq(0)

        # -- responses -----------------------------------------------------------------------
        m.d.comb += [
            self.dsa_pad_resp_wready.eq(1),
            ids.back_valid.eq(self.pad_dsa_resp_wvalid),
            ids.back_id.eq(self.pad_dsa_resp_wid),
            # Until a request is taken its beats fill Scatter's room, from then on its id is in use.
            self.idle.eq(scatter.idle & ids.idle),
        ]
        m.d.sync += self.bus_error.eq(self.pad_dsa_resp_wvalid & self.pad_dsa_resp_werr)
        return m
