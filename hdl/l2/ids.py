"""The pool of request ids of one L2 channel."""

from __future__ import annotations

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from ..config import Config

__all__ = ["IdPool"]


class IdPool(wiring.Component):
    """Free ids, in any order; one that comes back may be taken in the same cycle.

    Ids never used since reset come from a counter, so that no memory needs a reset; returned ones
    wait in a register, the read register of a memory and that memory.

    Members
    -------
    give_valid, give_id : an id to take. Combinational from `back_valid` and `back_id`.
    take : it was taken; only while `give_valid`.
    back_valid, back_id : an id in use comes back.
    idle : no id is in use.

    Latency: 0. Throughput: one id taken and one returned a cycle. Source: seed 001 section 4.4.
    """

    def __init__(self, cfg: Config):
        self.cfg = cfg
        super().__init__(
            {
                "give_valid": Out(1),
                "give_id": Out(cfg.id_bits),
                "take": In(1),
                "back_valid": In(1),
                "back_id": In(cfg.id_bits),
                "idle": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        cfg = self.cfg
        ids = cfg.l2_ids

        fresh = Signal(range(ids + 1))
        fresh_valid = Signal()
        held_valid = Signal()
        held = Signal(cfg.id_bits, reset_less=True)
        read_valid = Signal()  # the memory's read register holds an id
        read_id = Signal(cfg.id_bits)
        m.d.comb += [
            fresh_valid.eq(fresh != ids),
            self.give_valid.eq(held_valid | read_valid | self.back_valid | fresh_valid),
            self.give_id.eq(
                Mux(
                    held_valid,
                    held,
                    Mux(read_valid, read_id, Mux(self.back_valid, self.back_id, fresh)),
                )
            ),
        ]
        taken = Signal()  # what came back is taken at once
        m.d.comb += taken.eq(self.take & ~held_valid & ~read_valid & self.back_valid)
        with m.If(self.take & ~held_valid & ~read_valid & ~self.back_valid):
            m.d.sync += fresh.eq(fresh + 1)
        with m.If(~held_valid | self.take):
            m.d.sync += [held_valid.eq(self.back_valid & ~taken), held.eq(self.back_id)]

        if ids > 1:  # a single id never waits behind another one
            m.submodules.queue = queue = Memory(shape=cfg.id_bits, depth=ids, init=[])
            write = queue.write_port()
            read = queue.read_port()
            newest = Signal(cfg.id_bits)
            oldest = Signal(cfg.id_bits)
            m.d.comb += [
                write.addr.eq(newest),
                write.data.eq(self.back_id),
                write.en.eq(self.back_valid & held_valid & ~self.take),
                read.addr.eq(oldest),
                read.en.eq((oldest != newest) & (~read_valid | (self.take & ~held_valid))),
                read_id.eq(read.data),
            ]
            with m.If(write.en):
                m.d.sync += newest.eq(newest + 1)
            with m.If(read.en):
                m.d.sync += [oldest.eq(oldest + 1), read_valid.eq(1)]
            with m.Elif(self.take & ~held_valid):
                m.d.sync += read_valid.eq(0)

        used = Signal(range(ids + 1))
        m.d.comb += self.idle.eq(used == 0)
        with m.If(self.take & ~self.back_valid):
            m.d.sync += used.eq(used + 1)
        with m.Elif(~self.take & self.back_valid):
            m.d.sync += used.eq(used - 1)
        return m
