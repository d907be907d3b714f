"""The decoder's last step: instructions answer in order, and go to the slots."""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.fifo import SyncFIFOBuffered
from amaranth.lib.wiring import In, Out

from .. import isa
from ..config import Config
from ..interfaces import (
    ERROR_BADGEOM,
    ERROR_BUS,
    ERROR_NONE,
    host_response,
    instr,
    mac_flags,
)
from ..registers import copies
from .stages import answer_layout

__all__ = ["Answer"]

ANSWERS = 6
"""Answers that wait for the host, at most."""


class Answer(wiring.Component):
    """Answers each instruction and dispatches those without an error, one a cycle.

    Members
    -------
    checked : instructions, as stage K knows them.
    resp : host stream of answers (isa.md section 3).
    instrs : checked instructions; the dispatch.
    quiet : all older work is done, memory included.
    settled : for two cycles, so that late flags have arrived, and nothing was dispatched since.
    flags, flags_valid : MAC flags to gather in mxstatus.
    bus_error : a beat or write came back with an error.
    scalar, scalar_done : what the scalar broadcast under way writes; it is not needed any more.
    element_valid, element : the element that the last instruction answers with.
    status : bits of mxstatus to set.
    dirty, initial : a tile is going to be written; mrelease. These three a cycle late: who looks at
        them waits longer.
    answered : every answer has been taken.

    Latency: 1 cycle from `checked` to `resp`, none to `instrs`; mfence waits a cycle more for
    `settled`. An instruction that waits for a slot is answered before it is dispatched.
    """

    def __init__(self, cfg: Config):
        self.cfg = cfg
        super().__init__(
            {
                "checked": In(stream.Signature(answer_layout(cfg))),
                "resp": Out(stream.Signature(host_response(cfg))),
                "instrs": Out(stream.Signature(instr(cfg))),
                "quiet": In(1),
                "settled": Out(1),
                "flags": In(mac_flags()),
                "flags_valid": In(1),
                "bus_error": In(1),
                "scalar": Out(64),
                "scalar_done": In(1),
                "element_valid": In(1),
                "element": In(64),
                "status": Out(isa.MXSTATUS_BITS),
                "dirty": Out(1),
                "initial": Out(1),
                "answered": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        k = self.checked.payload
        m.submodules.responses = responses = SyncFIFOBuffered(
            width=host_response(self.cfg).size, depth=ANSWERS
        )
        # There was room for two answers, or for one and none came: what is offered stays offered.
        room = Signal()
        quiet_before = Signal()
        settled = Signal()
        m.d.sync += [
            quiet_before.eq(self.quiet),
            # What goes now shows in `quiet` from the next cycle on.
            settled.eq(self.quiet & quiet_before & ~self.instrs.valid),
        ]

        # Whether the slots take an instruction is known late, so that decides on nothing but when
        # the next one comes: an instruction is answered as soon as it is offered to them. Only one
        # that answers with an element waits for it. One scalar at a time is on its way.
        plain = Signal()  # it goes to the slots, and what it answers is known
        sent = Signal()  # one with an element was dispatched
        told = Signal()  # a plain one was answered
        scalar_busy = Signal()
        sends = Signal()
        tells = Signal()
        dispatched = Signal()
        m.d.comb += [
            plain.eq(k.dispatch & ~k.element),
            sends.eq(
                self.checked.valid & k.dispatch & ~sent & (told | room) & ~(k.scalar & scalar_busy)
            ),
            tells.eq(
                self.checked.valid
                & room
                & ~told
                & (~k.element | (sent & self.element_valid))
                & (~k.fence | settled)
            ),
            dispatched.eq(sends & self.instrs.ready),
            self.instrs.payload.eq(k.instr),
            self.instrs.valid.eq(sends),
            self.checked.ready.eq((sends & ~k.element & self.instrs.ready) | (tells & ~plain)),
            self.settled.eq(settled),
        ]
        m.d.sync += [
            room.eq((responses.level < ANSWERS - 1) | (room & ~tells)),
            sent.eq(k.element & (sent | dispatched) & ~tells),
            told.eq(plain & (told | tells) & ~dispatched),
        ]
        # The scalar is held from its dispatch on. That decides on 64 bits, so it has a copy,
        # without a reset: it is right as soon as there may be an instruction.
        scalar = Signal(64, reset_less=True)
        busy_next = Signal()
        (held,) = copies(m, "scalar_busy", busy_next, 1)
        m.d.comb += [
            busy_next.eq((scalar_busy & ~self.scalar_done) | (dispatched & k.scalar)),
            self.scalar.eq(scalar),
        ]
        m.d.sync += scalar_busy.eq(busy_next)
        with m.If(~held):
            m.d.sync += scalar.eq(k.resp.data)

        # -- the answer: data only where a register is written ----
        pending_bus = Signal()
        response = Signal(host_response(self.cfg))
        m.d.comb += [
            response.eq(k.resp),
            response.data.eq(Mux(k.resp.wb, Mux(k.from_unit, self.element, k.resp.data), 0)),
            responses.w_en.eq(tells),
            responses.w_data.eq(response),
            self.resp.valid.eq(responses.r_rdy),
            self.resp.payload.eq(responses.r_data),
            responses.r_en.eq(self.resp.ready),
            self.answered.eq(responses.level == 0),
        ]
        with m.If(k.fence):
            m.d.comb += response.error.eq(Mux(pending_bus, ERROR_BUS, ERROR_NONE))
            with m.If(tells):
                m.d.sync += pending_bus.eq(0)
        with m.If(self.bus_error):
            m.d.sync += pending_bus.eq(1)

        # -- state that software sees ----
        fields = isa.MXSTATUS
        status = [Const(0)] * isa.MXSTATUS_BITS
        status[fields["guard_fallback"].lo] = tells & k.dispatch & k.fallback
        status[fields["badgeom"].lo] = tells & (k.resp.error == ERROR_BADGEOM)
        status[fields["bus_error"].lo] = self.bus_error
        for name, _ in mac_flags():
            status[fields[name].lo] = self.flags_valid & self.flags[name]
        happens = {
            "status": Cat(status),
            "dirty": tells & k.dispatch & k.dirty,
            "initial": tells & k.release,
        }
        for name, value in happens.items():
            now = Signal(len(value), name=f"{name}_now")
            m.d.comb += now.eq(value)
            m.d.sync += getattr(self, name).eq(now)
        return m
