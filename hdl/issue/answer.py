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
from .stages import answer_layout

__all__ = ["Answer"]


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
    `settled`.
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
            width=host_response(self.cfg).size, depth=4
        )
        leaves = Signal()
        dispatched = Signal()

        quiet_before = Signal()
        settled = Signal()
        m.d.sync += [
            quiet_before.eq(self.quiet),
            # What goes now shows in `quiet` from the next cycle on.
            settled.eq(self.quiet & quiet_before & ~dispatched),
        ]

        # An instruction that answers with an element waits here for it; one scalar at a time is
        # on its way.
        waiting = Signal()
        scalar_busy = Signal()
        sends = Signal()
        blocked = Signal()
        m.d.comb += [
            sends.eq(k.dispatch & ~waiting),
            blocked.eq(
                ~responses.w_rdy
                | (k.element & ~self.element_valid)
                | (k.fence & ~settled)
                | (sends & k.scalar & scalar_busy)
            ),
            self.instrs.payload.eq(k.instr),
            self.instrs.valid.eq(
                self.checked.valid & sends & responses.w_rdy & ~(k.scalar & scalar_busy)
            ),
            self.checked.ready.eq(~blocked & (~sends | self.instrs.ready)),
            leaves.eq(self.checked.valid & self.checked.ready),
            dispatched.eq(self.instrs.valid & self.instrs.ready),
            self.settled.eq(settled),
        ]
        with m.If(dispatched & k.element):
            m.d.sync += waiting.eq(1)
        with m.If(self.element_valid):
            m.d.sync += waiting.eq(0)
        scalar = Signal(64, reset_less=True)
        m.d.comb += self.scalar.eq(scalar)
        with m.If(self.scalar_done):
            m.d.sync += scalar_busy.eq(0)
        with m.If(dispatched & k.scalar):
            m.d.sync += [scalar_busy.eq(1), scalar.eq(k.resp.data)]

        # -- the answer: data only where a register is written ----
        pending_bus = Signal()
        response = Signal(host_response(self.cfg))
        m.d.comb += [
            response.eq(k.resp),
            response.data.eq(Mux(k.resp.wb, Mux(k.element, self.element, k.resp.data), 0)),
            responses.w_en.eq(leaves),
            responses.w_data.eq(response),
            self.resp.valid.eq(responses.r_rdy),
            self.resp.payload.eq(responses.r_data),
            responses.r_en.eq(self.resp.ready),
            self.answered.eq(responses.level == 0),
        ]
        with m.If(k.fence):
            m.d.comb += response.error.eq(Mux(pending_bus, ERROR_BUS, ERROR_NONE))
            with m.If(leaves):
                m.d.sync += pending_bus.eq(0)
        with m.If(self.bus_error):
            m.d.sync += pending_bus.eq(1)

        # -- state that software sees ----
        fields = isa.MXSTATUS
        status = [Const(0)] * isa.MXSTATUS_BITS
        status[fields["guard_fallback"].lo] = leaves & k.dispatch & k.fallback
        status[fields["badgeom"].lo] = leaves & (k.resp.error == ERROR_BADGEOM)
        status[fields["bus_error"].lo] = self.bus_error
        for name, _ in mac_flags():
            status[fields[name].lo] = self.flags_valid & self.flags[name]
        happens = {
            "status": Cat(status),
            "dirty": leaves & k.dispatch & k.dirty,
            "initial": leaves & k.release,
        }
        for name, value in happens.items():
            now = Signal(len(value), name=f"{name}_now")
            m.d.comb += now.eq(value)
            m.d.sync += getattr(self, name).eq(now)
        return m
