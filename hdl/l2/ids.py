"""The pool of request ids of one L2 channel."""

from __future__ import annotations

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from ..config import Config

__all__ = ["IdPool"]


class IdPool(wiring.Component):
    """Free ids, in any order; one that comes back may be taken in the next cycle.

    Ids never used since reset come from a counter, so that no memory needs a reset; returned ones
    wait in two registers, the read register of a memory and that memory. The first register is
    what is given; the second hides that what is put into the memory is read two cycles later.

    Members
    -------
    give_valid, give_id : an id to take, from registers; it stays until it is taken.
    take : it was taken; only while `give_valid`.
    back_valid, back_id : an id in use comes back.
    idle : no id is in use.

    Latency: 1 cycle from `back_valid` to `give_valid`, which holds as long as any id is not in use.
    Throughput: one id taken and one returned a cycle. Source: seed 001 section 4.4.
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

        fresh = Signal(range(ids + 1), init=1)
        fresh_valid = Signal()
        held_valid = Signal(init=1)
        held = Signal(cfg.id_bits)
        next_valid = Signal()
        next_id = Signal(cfg.id_bits, reset_less=True)
        read_valid = Signal()  # the memory's read register holds an id
        read_id = Signal(cfg.id_bits)
        free = Signal()  # `held` takes another
        held_back = Signal()  # and that is what comes back
        m.d.comb += [
            fresh_valid.eq(fresh != ids),
            self.give_valid.eq(held_valid),
            self.give_id.eq(held),
            free.eq(~held_valid | self.take),
            held_back.eq(free & ~next_valid & ~read_valid),
        ]
        with m.If(free):
            m.d.sync += [
                held_valid.eq(next_valid | read_valid | self.back_valid | fresh_valid),
                held.eq(
                    Mux(
                        next_valid,
                        next_id,
                        Mux(read_valid, read_id, Mux(self.back_valid, self.back_id, fresh)),
                    )
                ),
            ]
        with m.If(held_back & ~self.back_valid & fresh_valid):
            m.d.sync += fresh.eq(fresh + 1)

        if ids > 1:  # a single id never waits behind another one
            next_free = Signal()  # `next_id` takes another
            next_read = Signal()  # and that is what was read
            m.d.comb += [
                next_free.eq(~next_valid | free),
                next_read.eq(read_valid & (next_valid | ~free)),
            ]
            with m.If(next_free):
                m.d.sync += [
                    next_valid.eq(next_read | (self.back_valid & ~held_back)),
                    next_id.eq(Mux(next_read, read_id, self.back_id)),
                ]
        if ids > 2:
            m.submodules.queue = queue = Memory(shape=cfg.id_bits, depth=ids, init=[])
            write = queue.write_port()
            read = queue.read_port()
            newest = Signal(cfg.id_bits)
            oldest = Signal(cfg.id_bits)
            queued = Signal()  # these differ, as never all ids are in the memory
            m.d.comb += [
                write.addr.eq(newest),
                write.data.eq(self.back_id),
                write.en.eq(self.back_valid & (~next_free | next_read)),
                read.addr.eq(oldest),
                read.en.eq(queued & (~read_valid | next_free)),
                read_id.eq(read.data),
            ]
            with m.If(write.en):
                m.d.sync += [newest.eq(newest + 1), queued.eq(1)]
            with m.Elif(read.en & ((oldest + 1)[: cfg.id_bits] == newest)):
                m.d.sync += queued.eq(0)
            with m.If(read.en):
                m.d.sync += [oldest.eq(oldest + 1), read_valid.eq(1)]
            with m.Elif(next_free):
                m.d.sync += read_valid.eq(0)

        used = Signal(range(ids + 1))
        m.d.comb += self.idle.eq(used == 0)
        with m.If(self.take & ~self.back_valid):
            m.d.sync += used.eq(used + 1)
        with m.Elif(~self.take & self.back_valid):
            m.d.sync += used.eq(used - 1)
        return m
