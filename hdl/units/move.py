"""The move unit: copies and zeroes stored words through the A read and the result port."""

from __future__ import annotations

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ..config import Config
from ..interfaces import ReadPort, move_uop, result_write, tile_word

__all__ = ["MoveUnit"]


class MoveUnit(wiring.Component):
    """Takes a move uop whenever the MAC leaves it the A read now and the result port then.

    Members
    -------
    uops : move uops; a transfer is the read.
    a : tile-file read on the A port; the MAC goes first.
    result : tile-file write, two cycles after the read.
    port_busy : the MAC reads A in this cycle, or writes a result when this move would.
    yield_ : a load has starved; leave it the next gap.
    writing{0,1}, write_tile{0,1} : moves read but not written yet.

    Latency: 2 cycles from the read to the write. Throughput: one word a cycle.
    Source: architecture.md section 1, tile register file.
    """

    LATENCY = 2

    def __init__(self, cfg: Config):
        self.cfg = cfg
        members = {
            "uops": In(stream.Signature(move_uop(cfg))),
            "a": Out(ReadPort(tile_word(cfg), cfg.word_bits)),
            "result": Out(result_write(cfg)),
            "port_busy": In(1),
            "yield_": In(1),
        }
        for stage in range(self.LATENCY):
            members[f"writing{stage}"] = Out(1)
            members[f"write_tile{stage}"] = Out(cfg.tile_bits)
        super().__init__(members)

    def elaborate(self, platform):
        m = Module()
        cfg = self.cfg
        uop = self.uops.payload
        go = Signal()
        m.d.comb += [
            self.uops.ready.eq(~self.port_busy & ~self.yield_ & self.a.ready),
            go.eq(self.uops.valid & self.uops.ready),
            self.a.valid.eq(self.uops.valid & ~self.port_busy & ~self.yield_ & ~uop.zero),
            self.a.addr.eq(uop.src),
        ]
        read_valid = Signal()
        read_zero = Signal(reset_less=True)
        read_dst = Signal(tile_word(cfg), reset_less=True)
        write_valid = Signal()
        write_dst = Signal(tile_word(cfg), reset_less=True)
        word = Signal(cfg.word_bits, reset_less=True)
        m.d.sync += [
            read_valid.eq(go),
            read_zero.eq(uop.zero),
            read_dst.eq(uop.dst),
            write_valid.eq(read_valid),
            write_dst.eq(read_dst),
            word.eq(Mux(read_zero, 0, self.a.data)),
        ]
        m.d.comb += [
            self.result.valid.eq(write_valid),
            self.result.addr.eq(write_dst),
            self.result.data.eq(word),
            self.result.mask.eq(~0),
            self.writing0.eq(read_valid),
            self.write_tile0.eq(read_dst.tile),
            self.writing1.eq(write_valid),
            self.write_tile1.eq(write_dst.tile),
        ]
        return m
