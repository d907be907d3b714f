"""Decoder of the front end `ame`: instruction words to checked `instr` bundles and responses."""

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
    host_request,
    host_response,
    instr,
    mac_flags,
)
from .count_stage import CountStage
from .format_stage import FormatStage
from .mode_stage import ModeStage
from .stages import stage_layouts
from .tile_stage import TileStage
from .word_stage import WordStage

__all__ = ["Decode"]


class Decode(wiring.Component):
    """Takes one instruction a cycle, checks all that can trap, answers in order, dispatches.

    The stages: A holds the word; B knows whether it is legal, and has done its CSR access; C has
    looked its formats up; D its mode; E its counts; F its tiles. F answers, and dispatches what
    has no error. Every instruction carries the mxcfg and mxtile it saw in A.

    Members
    -------
    req, resp : host streams (isa.md section 3).
    instrs : checked instructions; the dispatch.
    quiet : all older work is done, memory included.
    flags, flags_valid : MAC flags to gather in mxstatus.
    bus_error : a beat or write came back with an error.
    scalar, scalar_done : what the scalar broadcast under way writes; it is not needed any more.
    saturated (front end xuantie) : a clip changed a value.
    element_valid, element : the element that the last instruction answers with.

    Latency: 6 cycles from a request's transfer to its dispatch when nothing waits, and one more to
    its response. Throughput: one instruction a cycle while slots are free.
    """

    STAGES = 6

    def __init__(self, cfg: Config):
        self.cfg = cfg
        super().__init__(
            {
                "req": In(stream.Signature(host_request(cfg))),
                "resp": Out(stream.Signature(host_response(cfg))),
                "instrs": Out(stream.Signature(instr(cfg))),
                "quiet": In(1),
                "flags": In(mac_flags()),
                "flags_valid": In(1),
                "bus_error": In(1),
                "scalar": Out(64),
                "scalar_done": In(1),
                "element_valid": In(1),
                "element": In(64),
                "idle": Out(1),
                **({"saturated": In(1)} if cfg.xuantie else {}),
            }
        )

    def elaborate(self, platform):
        m = Module()
        cfg = self.cfg

        # -- pipeline skeleton ----
        names = ("a", "b", "c", "d", "e", "f")
        full = {name: Signal(name=f"{name}_full") for name in names}
        takes = {name: Signal(name=f"{name}_takes") for name in names}  # may load this cycle
        leaves = {name: Signal(name=f"{name}_leaves") for name in names}
        held_a = Signal()  # A waits for older work
        out_go = Signal()  # F may leave
        regs = {
            name: Signal(layout, name=name, reset_less=True)
            for name, layout in stage_layouts(cfg).items()
        }
        a = Signal(host_request(cfg), name="a", reset_less=True)
        for name, following in zip(names, (*names[1:], None), strict=True):
            may = takes[following] if following else out_go
            if name == "a":
                may = may & ~held_a
            m.d.comb += [
                leaves[name].eq(full[name] & may),
                takes[name].eq(~full[name] | leaves[name]),
            ]
        for name, before in zip(names[1:], names[:-1], strict=True):
            with m.If(takes[name]):
                m.d.sync += full[name].eq(leaves[before])
        with m.If(takes["a"]):
            m.d.sync += full["a"].eq(self.req.valid)
        with m.If(takes["a"] & self.req.valid):
            m.d.sync += a.eq(self.req.payload)
        m.d.comb += self.req.ready.eq(takes["a"])

        # Work of older instructions, seen from A: first the decoder's own, then everything.
        decode_empty = Signal()
        quiet_before = Signal()
        m.d.comb += decode_empty.eq(~(full["b"] | full["c"] | full["d"] | full["e"] | full["f"]))
        m.d.sync += quiet_before.eq(self.quiet)
        settled = Signal()  # for two cycles, so that late flags have arrived
        m.d.comb += settled.eq(self.quiet & quiet_before)

        m.submodules.word = word = WordStage(cfg)
        m.d.comb += [
            word.before.eq(a),
            word.leaves.eq(leaves["a"]),
            word.decode_empty.eq(decode_empty),
            word.settled.eq(settled),
            held_a.eq(word.held),
        ]
        with m.If(takes["b"]):
            m.d.sync += regs["b"].eq(word.after)
        for name, before, stage in (
            ("c", "b", FormatStage(cfg)),
            ("d", "c", ModeStage(cfg)),
            ("e", "d", CountStage(cfg)),
            ("f", "e", TileStage(cfg)),
        ):
            m.submodules[f"stage_{name}"] = stage
            m.d.comb += stage.before.eq(regs[before])
            with m.If(takes[name]):
                m.d.sync += regs[name].eq(stage.after)

        # -- F: answer and dispatch ----
        f = regs["f"]
        m.submodules.responses = responses = SyncFIFOBuffered(
            width=host_response(cfg).size, depth=4
        )
        pending_bus = Signal()
        response = Signal(host_response(cfg))
        # An instruction that answers with an element waits here for it; one scalar at a time is
        # on its way.
        waiting = Signal()
        scalar_busy = Signal()
        sends = Signal()
        m.d.comb += [
            sends.eq(f.dispatch & ~waiting),
            self.instrs.payload.eq(f.instr),
            self.instrs.valid.eq(full["f"] & sends & responses.w_rdy & ~(f.scalar & scalar_busy)),
            out_go.eq(
                responses.w_rdy
                & (~sends | (self.instrs.ready & ~(f.scalar & scalar_busy)))
                & (~f.element | self.element_valid)
                & (~f.fence | settled)
            ),
            response.eq(f.resp),
            responses.w_en.eq(leaves["f"]),
            responses.w_data.eq(response),
            self.resp.valid.eq(responses.r_rdy),
            self.resp.payload.eq(responses.r_data),
            responses.r_en.eq(self.resp.ready),
        ]
        dispatched = self.instrs.valid & self.instrs.ready
        with m.If(dispatched & f.element):
            m.d.sync += waiting.eq(1)
        with m.If(self.element_valid):
            m.d.sync += waiting.eq(0)
        scalar = Signal(64, reset_less=True)
        m.d.comb += self.scalar.eq(scalar)
        with m.If(self.scalar_done):
            m.d.sync += scalar_busy.eq(0)
        with m.If(dispatched & f.scalar):
            m.d.sync += [scalar_busy.eq(1), scalar.eq(f.resp.data)]
        with m.If(f.scalar):
            m.d.comb += response.data.eq(0)
        with m.If(f.element):
            m.d.comb += response.data.eq(Mux(f.resp.wb, self.element, 0))
        with m.If(f.fence):
            m.d.comb += response.error.eq(Mux(pending_bus, ERROR_BUS, ERROR_NONE))
            with m.If(leaves["f"]):
                m.d.sync += pending_bus.eq(0)
        with m.If(self.bus_error):
            m.d.sync += pending_bus.eq(1)

        badgeom = leaves["f"] & (f.resp.error == ERROR_BADGEOM)
        fields = isa.MXSTATUS
        status = [Const(0)] * isa.MXSTATUS_BITS
        status[fields["guard_fallback"].lo] = leaves["f"] & f.dispatch & f.fallback
        status[fields["badgeom"].lo] = badgeom
        status[fields["bus_error"].lo] = self.bus_error
        for name, _ in mac_flags():
            status[fields[name].lo] = self.flags_valid & self.flags[name]
        m.d.comb += [
            word.status.eq(Cat(status)),
            word.dirty.eq(leaves["f"] & f.dispatch & f.instr.writes.any()),
            word.initial.eq(leaves["f"] & f.release),
            *([word.saturated.eq(self.saturated)] if cfg.xuantie else []),
            self.idle.eq(decode_empty & ~full["a"] & (responses.level == 0)),
        ]
        return m
