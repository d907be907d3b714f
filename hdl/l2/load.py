"""The load pipe: from L2 memory into the tile file."""

from __future__ import annotations

from amaranth.hdl import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ..config import Config
from ..interfaces import l2_read_members, ldst_uop, row_write
from .buffer import StreamBuffer
from .entry import zeroing
from .gather import Gather
from .ids import IdPool
from .merge import Merge

__all__ = ["LoadPipe"]


class LoadPipe(wiring.Component):
    """Requests the beats that hold the parts, and writes every part once, zeros included.

    Neighbouring parts of one line share a burst, and the beat that two of them touch. Bytes that
    came with an error are zero.

    Members
    -------
    uops : parts of rows, and blocks to zero.
    (read channels) : `hdl.interfaces.l2_read_members`. `dsa_pad_resp_rready` depends on registers
        alone.
    write : one write a uop, in the order in which beats come; it may be stalled for ever.
    retired, retired_tile : the write of some uop was granted in the cycle before.
    bus_error : a beat with an error was accepted in the cycle before.
    idle : nothing is held or in flight; not before the last `retired` and `bus_error`.

    Attributes
    ----------
    starved : a request waits for nothing but an id; beside the ports, for those who watch the
        core.

    Latency: see `UOP_TO_REQUEST` (to a request on the bus), `BEAT_TO_WRITE`, `ZERO_TO_WRITE`
    (from a uop that zeros) and `WRITE_TO_RETIRED`, in cycles.
    Throughput: one uop, one beat and one write a cycle. An id returns with its burst's last beat;
    a request with it may be on the bus in the next cycle, so that ids of one-beat requests keep
    the bus full up to a latency of l2_ids - 1.
    Source: seed 001 section 4.4.
    """

    UOP_TO_REQUEST = Gather.LATENCY
    BEAT_TO_WRITE = Merge.LATENCY
    ZERO_TO_WRITE = 2 * StreamBuffer.LATENCY + Merge.ZERO_LATENCY
    WRITE_TO_RETIRED = 1

    def __init__(self, cfg: Config):
        self.cfg = cfg
        self._gather = Gather(cfg)
        self.starved = self._gather.starved
        super().__init__(
            {
                "uops": In(stream.Signature(ldst_uop(cfg))),
                **l2_read_members(cfg),
                "write": Out(stream.Signature(row_write(cfg))),
                "retired": Out(1),
                "retired_tile": Out(cfg.tile_bits),
                "bus_error": Out(1),
                "idle": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        cfg = self.cfg
        m.submodules.gather = gather = self._gather
        m.submodules.merge = merge = Merge(cfg)
        m.submodules.ids = ids = IdPool(cfg)

        wiring.connect(m, wiring.flipped(self.uops), gather.uops)
        m.submodules.zeros = zeros = StreamBuffer(zeroing(cfg))
        wiring.connect(m, gather.zero, zeros.i)
        wiring.connect(m, zeros.o, merge.zero)
        wiring.connect(m, merge.write, wiring.flipped(self.write))
        request = gather.request
        beat = self.pad_dsa_resp_rvalid & self.dsa_pad_resp_rready
        m.d.comb += [
            self.dsa_pad_req_rvalid.eq(request.valid),
            self.dsa_pad_req_raddr.eq(request.payload.beat << cfg.bus_bytes_log2),
            self.dsa_pad_req_rlen.eq(request.payload.len),
            self.dsa_pad_req_rid.eq(request.payload.id),
            request.ready.eq(self.pad_dsa_req_rready),
            merge.rvalid.eq(self.pad_dsa_resp_rvalid),
            merge.rid.eq(self.pad_dsa_resp_rid),
            merge.rdata.eq(self.pad_dsa_resp_rdata),
            merge.rlast.eq(self.pad_dsa_resp_rlast),
            merge.rerr.eq(self.pad_dsa_resp_rerr),
            self.dsa_pad_resp_rready.eq(merge.rready),
            ids.take.eq(gather.take),
            ids.back_valid.eq(beat & self.pad_dsa_resp_rlast),
            ids.back_id.eq(self.pad_dsa_resp_rid),
            gather.give_valid.eq(ids.give_valid),
            gather.give_id.eq(ids.give_id),
        ]
        for name in ("note_en", "note_addr", "ends", "parts", "rows"):
            m.d.comb += getattr(merge, name).eq(getattr(gather, name))

        m.d.sync += [
            self.retired.eq(self.write.valid & self.write.ready),
            self.retired_tile.eq(self.write.payload.tile),
            self.bus_error.eq(beat & self.pad_dsa_resp_rerr),
        ]
        m.d.comb += self.idle.eq(gather.idle & ~zeros.o.valid & merge.idle & ids.idle)
        return m
