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
        # Each unit's walk goes by a register of its own, as much hangs on it.
        names = ("mma", "ldst", "move")
        walks = {name: Signal(name=f"{name}_walks") for name in names}
        coming = self.instr.kind
        comes = {
            "mma": coming == InstrKind.MMA,
            "ldst": (coming == InstrKind.LOAD) | (coming == InstrKind.STORE),
            "move": coming == InstrKind.MOVE,
        }
        mma_done = Signal()
        done = {"mma": mma_done, "ldst": ldst.done, "move": move.done}
        walking = Signal()
        uop = Signal(slot_uop(cfg))
        m.d.comb += [
            walking.eq(Cat(walks.values()).any()),
            buffer.i.valid.eq(walks["mma"] | (walks["ldst"] & ldst.valid) | walks["move"]),
            buffer.i.payload.uop.eq(uop),
            buffer.i.payload.crosses.eq(ldst.crosses),
            self.busy.eq(walking | buffer.o.valid),
        ]
        # Every walk takes its fields as long as it is not under way, so that they do not depend on
        # whether an instruction comes: that is known late, and they are many.
        for name, split in (("mma", mma), ("ldst", ldst), ("move", move)):
            with m.If(done[name]):
                m.d.sync += walks[name].eq(0)
            with m.If(self.start):
                m.d.sync += walks[name].eq(comes[name])
            m.d.comb += [
                split.start.eq(~walks[name]),
                split.fields.eq(self.instr[name]),
                split.step.eq(walks[name] & buffer.i.ready),
            ]
        along = Signal(reset_less=True)
        with m.If(~walks["ldst"]):
            m.d.sync += along.eq(~self.instr.ldst.down)
        # What is offered is of that unit, even behind the walk.
        is_ldst = Signal(reset_less=True)
        with m.If(~walking & ~buffer.o.valid):
            m.d.sync += is_ldst.eq(comes["ldst"])

        # One walk among those of a mma instruction.
        walked = Signal.like(mma.uop)
        words = Signal()
        m.d.comb += [walked.eq(mma.uop), mma_done.eq(mma.done)]
        for name, walk, on in self._word_walks():
            m.submodules[f"{name}_split"] = walk
            mine = Signal(name=f"is_{name}", reset_less=True)
            m.d.comb += [
                walk.start.eq(~walks["mma"]),
                walk.fields.eq(self.instr.mma),
                walk.step.eq(walks["mma"] & buffer.i.ready & mine),
            ]
            with m.If(~walks["mma"]):
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
        of_mma, of_ldst, loads = (
            Signal(name=name, reset_less=True) for name in ("of_mma", "of_ldst", "loads")
        )
        with m.If(~walking):
            m.d.sync += [
                of_mma.eq(comes["mma"]),
                of_ldst.eq(comes["ldst"]),
                loads.eq(coming == InstrKind.LOAD),
            ]
        with m.If(of_mma):
            m.d.comb += [
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
        with m.Elif(of_ldst):
            m.d.comb += [
                uop.uop.eq(ldst.uop),
                uop.read0.eq(ldst.uop.tile),
                uop.write.eq(ldst.uop.tile),
                uop.reads0.eq(~loads),
                uop.writes.eq(loads),
                uop.free0.eq(ldst.free & ~loads),
                uop.free_write.eq(ldst.free & loads),
                uop.whole.eq(along),
            ]
        with m.Else():
            m.d.comb += [
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
