"""Decoder: instruction words to checked `instr` bundles and responses."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ..config import Config
from ..interfaces import host_request, host_response, instr, mac_flags
from ..l2.buffer import StreamBuffer
from ..registers import copies, parts
from .access_stage import AccessStage
from .answer import Answer
from .bundle_stage import BundleStage
from .check_stage import CheckStage
from .count_stage import CountStage
from .format_stage import FormatStage
from .group_stage import GroupStage
from .mask_stage import MaskStage
from .mode_stage import ModeStage
from .places import ThreePlaces
from .shift_stage import ShiftStage
from .stages import WIDE, answer_layout, stage_layouts
from .word_stage import WordStage

__all__ = ["CHECKS", "Decode"]

CHECKS = (
    FormatStage,
    ModeStage,
    CountStage,
    GroupStage,
    MaskStage,
    ShiftStage,
    CheckStage,
    BundleStage,
)
"""What stands behind the CSR access, in order."""

MOVED = 128
"""Bits of a stage that one register moves on, at most."""


class Decode(wiring.Component):
    """Takes one instruction a cycle, checks all that can trap, answers in order, dispatches.

    The stages: A holds the word; B knows what it is; C has accessed the CSRs; D has looked its
    formats up; E its mode; F its counts; G its groups of tiles; H knows its tiles from the one that
    the word names on; I its tiles; J whether it may use them. K answers, and dispatches what has no
    error. Every instruction carries the mxcfg and mxtile it saw on its way into C, the only place
    where CSRs are read and written.

    A has two places, and K has three. C to J move all at once, and stand still while those of K may
    be full, so no signal from behind the decoder reaches them in the same cycle or the next; nor
    does one that host or decoder drive pass from one to the other. An instruction waits in B where
    its CSR access has to.

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
    idle : it holds no instruction and no answer.

    Latency: `STAGES` cycles from a request's transfer to its dispatch when nothing waits, and one
    more to its response. Throughput: one instruction a cycle while slots are free.
    """

    STAGES = 3 + len(CHECKS)

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
        layouts = stage_layouts(cfg)
        m.submodules.word = word = WordStage(cfg)
        m.submodules.access = access = AccessStage(cfg)
        m.submodules.words = words = StreamBuffer(host_request(cfg))
        m.submodules.last = last = ThreePlaces(answer_layout(cfg), WIDE)
        m.submodules.answer = answer = Answer(cfg)
        checks = [stage(cfg) for stage in CHECKS]
        for stage in checks:
            m.submodules[f"stage_{stage.AFTER}"] = stage

        # -- A and B: each moves on if there is room -----------------------------------------------
        names = [stage.BEFORE for stage in checks]  # C to J
        full = {name: Signal(name=f"{name}_full") for name in ("b", *names)}
        leaves = {name: Signal(name=f"{name}_leaves") for name in full}
        go = Signal()  # C to J move
        # Copies of it have no reset: they are right as soon as there may be something to move.
        gone = copies(m, "go_b", last.ready_next, 2)
        takes = {name: Signal(name=f"{name}_takes") for name in "ab"}  # from A into B
        b = Signal(layouts["b"], reset_less=True)
        wiring.connect(m, wiring.flipped(self.req), words.i)
        m.d.comb += [
            go.eq(last.i.ready),
            leaves["b"].eq(full["b"] & go & ~access.held),
            *(
                takes[name].eq(~full["b"] | (moves & ~access.held))
                for name, moves in zip("ab", gone, strict=True)
            ),
            words.o.ready.eq(takes["a"]),
            word.before.eq(words.o.payload),
            access.before.eq(b),
            access.leaves.eq(leaves["b"]),
        ]
        with m.If(takes["b"]):
            m.d.sync += [full["b"].eq(words.o.valid), b.eq(word.after)]

        # -- C to J ------------------------------------------------------------------------------
        came, value = leaves["b"], access.after
        for name, stage in zip(names, checks, strict=True):
            register = Signal(layouts[name], name=name, reset_less=True)
            bits = len(Value.cast(register))
            moves = copies(m, f"go_{name}", last.ready_next, -(-bits // MOVED))
            for move, part, new in zip(
                moves,
                parts(Value.cast(register), len(moves)),
                parts(Value.cast(value), len(moves)),
                strict=True,
            ):
                with m.If(move):
                    m.d.sync += part.eq(new)
            with m.If(go):
                m.d.sync += full[name].eq(came)
            m.d.comb += [leaves[name].eq(full[name] & go), stage.before.eq(register)]
            came, value = full[name], stage.after

        # -- K -----------------------------------------------------------------------------------
        wiring.connect(m, last.o, answer.checked)
        m.d.comb += [last.i.valid.eq(came), last.i.payload.eq(value)]
        for stream_name in ("resp", "instrs"):
            wiring.connect(
                m, getattr(answer, stream_name), wiring.flipped(getattr(self, stream_name))
            )
        for name in (
            "quiet",
            "flags",
            "flags_valid",
            "bus_error",
            "scalar_done",
            "element_valid",
            "element",
        ):
            m.d.comb += getattr(answer, name).eq(getattr(self, name))

        # Work of older instructions, seen from B: first the decoder's own, then everything. What
        # leaves B now is not in C yet.
        later = Signal()
        empty = Signal()
        drained = Signal()
        m.d.comb += [
            later.eq(Cat(full[name] for name in names).any() | last.o.valid),
            access.empty.eq(empty),
            access.drained.eq(drained),
            access.status.eq(answer.status),
            access.dirty.eq(answer.dirty),
            access.initial.eq(answer.initial),
            *([access.saturated.eq(self.saturated)] if cfg.xuantie else []),
            self.scalar.eq(answer.scalar),
            self.idle.eq(~(words.o.valid | full["b"] | later) & answer.answered),
        ]
        m.d.sync += [
            empty.eq(~later & ~leaves["b"]),
            drained.eq(~later & ~leaves["b"] & answer.settled),
        ]
        return m
