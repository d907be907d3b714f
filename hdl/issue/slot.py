"""One instruction slot: claims on tiles, split counters, the next uop and whether it may go."""

from __future__ import annotations

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ..config import Config
from ..interfaces import InstrKind, instr, ldst_uop, mma_uop, move_uop
from .move_split import MoveSplit
from .point_split import PointSplit
from .split import LdStSplit, MmaSplit
from .vector_split import VectorSplit

__all__ = ["Slot", "mma_waits"]


def mma_waits() -> data.StructLayout:
    """Why a mma uop may not issue.

    `operands`: A or B is not there, or an older instruction uses the transposes. `c_tile`: C's
    tile belongs to something else. `c_word`: a result for the word of C is in flight.
    """
    return data.StructLayout({"operands": 1, "c_tile": 1, "c_word": 1})


class Slot(wiring.Component):
    """Holds one instruction until its last uop is issued.

    A tile named by the instruction is *free* for others before dispatch, *claimed* while its bit
    in `reads` or `writes` is set, and *done* as soon as the last uop that needs it was issued;
    what is still in flight then is the scoreboard's business.

    Members
    -------
    start, instr : take an instruction (only while not `valid`).
    valid : occupied.
    kind : unit that the next uop wants.
    ready : the next uop may issue now.
    step : it issues in this cycle.
    burst : (load, store) the uop continues into the next one.
    mma, ldst, move : the next uop, by kind.
    reads, writes : claims left.
    block_read, block_write, block_acc : tiles that this slot must not yet read; write; use as
        accumulators.
    word_busy : a result for `mma.c` is in flight and would be missed.
    continuing : this slot issued the last mma uop, so held A and C words are its own.
    transposes, block_transposed : this slot uses the transposes; an older one still does.

    Attributes
    ----------
    waits : what keeps the next mma uop from issuing (`mma_waits`), beside the ports for those who
        watch the core.
    """

    def __init__(self, cfg: Config):
        self.cfg = cfg
        self.waits = Signal(mma_waits())
        super().__init__(
            {
                "start": In(1),
                "instr": In(instr(cfg)),
                "valid": Out(1),
                "kind": Out(InstrKind),
                "ready": Out(1),
                "step": In(1),
                "mma": Out(mma_uop(cfg)),
                "ldst": Out(ldst_uop(cfg)),
                "move": Out(move_uop(cfg)),
                "reads": Out(cfg.all_tiles),
                "writes": Out(cfg.all_tiles),
                "block_read": In(cfg.all_tiles),
                "block_write": In(cfg.all_tiles),
                "block_acc": In(cfg.all_tiles),
                "word_busy": In(1),
                "continuing": In(1),
                "transposes": Out(1),
                "block_transposed": In(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        cfg = self.cfg
        m.submodules.mma_split = mma = MmaSplit(cfg)
        m.submodules.ldst_split = ldst = LdStSplit(cfg)
        m.submodules.move_split = move = MoveSplit(cfg)

        valid = Signal()
        kind = Signal(InstrKind, reset_less=True)
        reads = Signal(cfg.all_tiles, reset_less=True)
        writes = Signal(cfg.all_tiles, reset_less=True)
        along = Signal(reset_less=True)
        granted = Signal()  # the claim on the current tile (along a row: on all) was won

        mma_uop_next = Signal(mma_uop(cfg))
        mma_done = Signal()
        splits = {InstrKind.MMA: mma, InstrKind.MOVE: move}
        is_load = kind == InstrKind.LOAD
        is_store = kind == InstrKind.STORE
        is_ldst = is_load | is_store
        m.d.comb += [
            move.start.eq(self.start & (self.instr.kind == InstrKind.MOVE)),
            ldst.start.eq(
                self.start
                & ((self.instr.kind == InstrKind.LOAD) | (self.instr.kind == InstrKind.STORE))
            ),
            mma.fields.eq(self.instr.mma),
            ldst.fields.eq(self.instr.ldst),
            move.fields.eq(self.instr.move),
            ldst.step.eq(self.step & is_ldst),
        ]
        for which, split in splits.items():
            m.d.comb += split.step.eq(self.step & (kind == which))

        m.d.comb += [
            self.valid.eq(valid),
            self.kind.eq(kind),
            self.reads.eq(Mux(valid, reads, 0)),
            self.writes.eq(Mux(valid, writes, 0)),
            self.ldst.eq(ldst.uop),
            self.move.eq(move.uop),
            self.mma.eq(mma_uop_next),
            self.mma.new_a.eq(mma_uop_next.new_a | ~self.continuing),
            self.mma.new_c.eq((mma_uop_next.new_c | ~self.continuing) & ~mma_uop_next.op.overwrite),
        ]
        mma_start = self.start & (self.instr.kind == InstrKind.MMA)
        m.d.comb += [mma.start.eq(mma_start), mma_uop_next.eq(mma.uop), mma_done.eq(mma.done)]
        by_words = Signal()  # the walk is one of whole words
        for name, walk, on in self._word_walks():
            m.submodules[f"{name}_split"] = walk
            mine = Signal(name=f"is_{name}", reset_less=True)
            m.d.comb += [
                walk.start.eq(mma_start & on),
                walk.fields.eq(self.instr.mma),
                walk.step.eq(self.step & (kind == InstrKind.MMA) & mine),
            ]
            with m.If(self.start):
                m.d.sync += mine.eq(on)
            with m.If(on):
                m.d.comb += mma.start.eq(0)
            with m.If(mine):
                m.d.comb += [
                    by_words.eq(1),
                    mma.step.eq(0),
                    mma_uop_next.eq(walk.uop),
                    mma_done.eq(walk.done),
                ]
        transposes = Signal(reset_less=True)
        if cfg.transposes:
            m.d.comb += self.transposes.eq(valid & transposes)
            with m.If(self.start):
                m.d.sync += transposes.eq(
                    (self.instr.kind == InstrKind.MMA)
                    & (self.instr.mma.a_transposed | self.instr.mma.b_transposed)
                )
            with m.If(mma_uop_next.transposes):
                m.d.comb += self.mma.new_c.eq(0)

        free = Signal()
        done = Signal()
        may = Signal()
        m.d.comb += [
            self.waits.operands.eq(
                self.block_read.bit_select(mma.uop.a.tile, 1)
                | self.block_read.bit_select(mma.uop.b_tile, 1)
                | (self.transposes & self.block_transposed)
            ),
            self.waits.c_tile.eq(self.block_acc.bit_select(mma.uop.c.tile, 1)),
            self.waits.c_word.eq(self.mma.new_c & self.word_busy),
        ]
        if cfg.has_words:
            with m.If(by_words):
                # All its tiles at once, so that its own results may land on x and y.
                m.d.comb += [
                    self.waits.operands.eq(~granted & (reads & self.block_read).any()),
                    self.waits.c_tile.eq(~granted & (writes & self.block_acc).any()),
                ]
        with m.Switch(kind):
            with m.Case(InstrKind.MMA):
                m.d.comb += [may.eq(~self.waits.as_value().any()), done.eq(mma_done)]
            with m.Case(InstrKind.LOAD):
                m.d.comb += [
                    may.eq(
                        ldst.valid
                        & (
                            granted
                            | Mux(
                                along,
                                ~(writes & self.block_write).any(),
                                ~self.block_write.bit_select(ldst.uop.tile, 1),
                            )
                        )
                    ),
                    free.eq(ldst.free),
                    done.eq(ldst.done),
                ]
            with m.Case(InstrKind.STORE):
                m.d.comb += [
                    may.eq(
                        granted
                        | Mux(
                            along,
                            ~(reads & self.block_read).any(),
                            ~self.block_read.bit_select(ldst.uop.tile, 1),
                        )
                    ),
                    free.eq(ldst.free),
                    done.eq(ldst.done),
                ]
            with m.Case(InstrKind.MOVE):
                m.d.comb += [
                    may.eq(
                        granted
                        | Mux(
                            move.whole,
                            ~((reads & self.block_read) | (writes & self.block_write)).any(),
                            # Only claims: an element read from a tile has no destination tile.
                            (~move.uop.read | ~self.block_read.bit_select(move.uop.src.tile, 1))
                            & ~(writes & self.block_write).bit_select(move.uop.dst.tile, 1),
                        )
                    ),
                    free.eq(move.free),
                    done.eq(move.done),
                ]
        m.d.comb += self.ready.eq(valid & may)

        def drop(claims, when, tile):
            with m.If(when):
                m.d.sync += claims.bit_select(tile, 1).eq(0)

        with m.If(self.step):
            m.d.sync += granted.eq(~free)
        drop(reads, mma.step & mma.free_a, mma.uop.a.tile)
        drop(reads, mma.step & mma.free_b, mma.uop.b_tile)
        drop(writes, mma.step & mma.free_c, mma.uop.c.tile)
        drop(reads, ldst.step & ldst.free & is_store, ldst.uop.tile)
        drop(writes, ldst.step & ldst.free & is_load, ldst.uop.tile)
        drop(reads, move.step & move.free, move.uop.src.tile)
        drop(writes, move.step & move.free, move.uop.dst.tile)
        with m.If(valid & done):
            m.d.sync += valid.eq(0)
        with m.If(self.start):
            m.d.sync += [
                valid.eq(1),
                granted.eq(0),
                kind.eq(self.instr.kind),
                reads.eq(self.instr.reads),
                writes.eq(self.instr.writes),
                along.eq(~self.instr.ldst.down),
            ]
        return m

    def _word_walks(self):
        """Name, split counter and condition of each walk over whole words."""
        cfg, op = self.cfg, self.instr.mma.op
        if cfg.has_vector:
            yield "vector", VectorSplit(cfg), op.vector.on
        if cfg.xuantie:
            yield "point", PointSplit(cfg), op.point.on
