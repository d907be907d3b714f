"""The split counters of one slot, as one stream of uops of any kind."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ..config import Config
from ..interfaces import InstrKind, instr, ldst_uop, slot_uop
from ..l2.buffer import StreamBuffer
from .line_cut import LineCut
from .move_split import MoveSplit
from .point_split import PointSplit
from .split import LdStSplit, MmaSplit
from .vector_split import VectorSplit

__all__ = ["SplitCounters", "by_words"]


def by_words(op: data.View, cfg: Config) -> Value:
    """Whether a mma instruction is walked over whole words, not as blocks of rows and columns."""
    on = [op.vector.on] if cfg.has_vector else []
    on += [op.point.on] if cfg.xuantie else []
    return Cat(on).any()


class SplitCounters(wiring.Component):
    """Walks an instruction, whichever it is, and says of each uop which tiles it is about.

    Members
    -------
    start, instr : take an instruction.
    kind : of the instruction taken.
    valid, uop : the next one; `uncut`: the row that it is part of.
    step : it was taken.
    busy : another may follow, or one is offered.

    Latency: the first uop is offered two cycles after `start`: one for the walk's registers, one
    for the buffer behind it, where rows are cut at line borders. Throughput: one uop a cycle; see
    `LdStSplit` for its idle cycles.
    """

    def __init__(self, cfg: Config):
        self.cfg = cfg
        super().__init__(
            {
                "start": In(1),
                "instr": In(instr(cfg)),
                "kind": In(InstrKind),
                "valid": Out(1),
                "uop": Out(slot_uop(cfg)),
                "uncut": Out(slot_uop(cfg)),
                "step": In(1),
                "busy": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        cfg = self.cfg
        m.submodules.mma_split = mma = MmaSplit(cfg)
        m.submodules.ldst_split = ldst = LdStSplit(cfg)
        m.submodules.move_split = move = MoveSplit(cfg)
        walked_uop = data.StructLayout({"uop": slot_uop(cfg), "crosses": 1})
        m.submodules.buffer = buffer = StreamBuffer(walked_uop)
        m.submodules.line_cut = line_cut = LineCut(cfg)
        walking = Signal()
        walk_valid = Signal()
        walk_done = Signal()
        step = Signal()
        uop = Signal(slot_uop(cfg))
        m.d.comb += [
            step.eq(walking & buffer.i.ready),
            buffer.i.valid.eq(walking & walk_valid),
            buffer.i.payload.uop.eq(uop),
            buffer.i.payload.crosses.eq(ldst.crosses),
            self.busy.eq(walking | buffer.o.valid),
        ]
        with m.If(walk_done):
            m.d.sync += walking.eq(0)
        with m.If(self.start):
            m.d.sync += walking.eq(1)
        # Every walk takes its fields as long as none is under way, so that they do not depend on
        # whether an instruction comes: that is known late, and they are many.
        rests = ~walking
        along = Signal(reset_less=True)
        with m.If(rests):
            m.d.sync += along.eq(~self.instr.ldst.down)
        is_mma, is_ldst, is_move = (
            Signal(name=f"is_{name}", reset_less=True) for name in ("mma", "ldst", "move")
        )
        coming = self.instr.kind
        with m.If(rests & ~buffer.o.valid):
            m.d.sync += [
                is_mma.eq(coming == InstrKind.MMA),
                is_ldst.eq((coming == InstrKind.LOAD) | (coming == InstrKind.STORE)),
                is_move.eq(coming == InstrKind.MOVE),
            ]
        m.d.comb += [
            mma.start.eq(rests),
            ldst.start.eq(rests),
            move.start.eq(rests),
            mma.fields.eq(self.instr.mma),
            ldst.fields.eq(self.instr.ldst),
            move.fields.eq(self.instr.move),
            mma.step.eq(step & is_mma),
            ldst.step.eq(step & is_ldst),
            move.step.eq(step & is_move),
        ]

        # One walk among those of a mma instruction.
        walked = Signal.like(mma.uop)
        mma_done = Signal()
        words = Signal()
        m.d.comb += [walked.eq(mma.uop), mma_done.eq(mma.done)]
        for name, walk, on in self._word_walks():
            m.submodules[f"{name}_split"] = walk
            mine = Signal(name=f"is_{name}", reset_less=True)
            m.d.comb += [
                walk.start.eq(rests),
                walk.fields.eq(self.instr.mma),
                walk.step.eq(step & is_mma & mine),
            ]
            with m.If(rests):
                m.d.sync += mine.eq(on)
            with m.If(mine):
                m.d.comb += [
                    words.eq(1),
                    mma.step.eq(0),
                    walked.eq(walk.uop),
                    mma_done.eq(walk.done),
                ]
        computes = ~walked.transposes if cfg.transposes else 1
        reads_c = computes & ~walked.op.overwrite
        with m.Switch(self.kind):
            with m.Case(InstrKind.MMA):
                m.d.comb += [
                    walk_valid.eq(1),
                    walk_done.eq(mma_done),
                    uop.uop.eq(walked),
                    uop.read0.eq(walked.a.tile),
                    uop.read1.eq(walked.b_tile),
                    uop.write.eq(walked.c.tile),
                    uop.reads0.eq(1),
                    uop.reads1.eq(1),
                    uop.writes.eq(1),
                    uop.free0.eq(mma.free_a & ~words),
                    uop.free1.eq(mma.free_b & ~words),
                    uop.free_write.eq(mma.free_c & ~words),
                    # All its tiles at once, so that its own results may land on x and y.
                    uop.whole.eq(words),
                    uop.new_c.eq(reads_c & walked.new_c),
                    uop.held_c.eq(reads_c & ~walked.new_c),
                ]
            with m.Case(InstrKind.LOAD, InstrKind.STORE):
                loads = self.kind == InstrKind.LOAD
                m.d.comb += [
                    walk_valid.eq(ldst.valid),
                    walk_done.eq(ldst.done),
                    uop.uop.eq(ldst.uop),
                    uop.read0.eq(ldst.uop.tile),
                    uop.write.eq(ldst.uop.tile),
                    uop.reads0.eq(~loads),
                    uop.writes.eq(loads),
                    uop.free0.eq(ldst.free & ~loads),
                    uop.free_write.eq(ldst.free & loads),
                    uop.whole.eq(along),
                ]
            with m.Case(InstrKind.MOVE):
                m.d.comb += [
                    walk_valid.eq(1),
                    walk_done.eq(move.done),
                    uop.uop.eq(move.uop),
                    uop.read0.eq(move.uop.src.tile),
                    uop.write.eq(move.uop.dst.tile),
                    uop.reads0.eq(move.uop.read),
                    uop.writes.eq(move.uop.write),
                    uop.free0.eq(move.free),
                    uop.free_write.eq(move.free),
                    uop.whole.eq(move.whole),
                ]

        # Of a row that crosses a line, two uops are made.
        row = buffer.o.payload.uop
        of_row = data.View(ldst_uop(cfg), row.uop[: ldst_uop(cfg).size])
        m.d.comb += [
            line_cut.i.valid.eq(buffer.o.valid),
            line_cut.i.payload.eq(of_row),
            line_cut.crosses.eq(buffer.o.payload.crosses),
            line_cut.o.ready.eq(self.step & is_ldst),
            buffer.o.ready.eq(self.step & (~is_ldst | line_cut.last)),
            self.valid.eq(buffer.o.valid),
            self.uop.eq(row),
            self.uncut.eq(row),
        ]
        with m.If(is_ldst):
            m.d.comb += [
                self.uop.uop.eq(line_cut.o.payload),
                self.uop.free0.eq(row.free0 & line_cut.last),
                self.uop.free_write.eq(row.free_write & line_cut.last),
            ]
        return m

    def _word_walks(self):
        """Name, split counter and condition of each walk over whole words."""
        cfg, op = self.cfg, self.instr.mma.op
        if cfg.has_vector:
            yield "vector", VectorSplit(cfg), op.vector.on
        if cfg.xuantie:
            yield "point", PointSplit(cfg), op.point.on
