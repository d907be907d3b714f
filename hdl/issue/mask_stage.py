"""Stage H of the decoder: tiles of each operand, counted from the one that the word names."""

from __future__ import annotations

from amaranth.hdl import Module, Mux, Value

from ..interfaces import OPERAND_TILES
from .geometry import GroupTiles, up_to
from .move_tiles import MoveTiles
from .stages import DecodeStage, carry

__all__ = ["MaskStage"]


class MaskStage(DecodeStage):
    """Stage H of the decoder: tiles of each operand, counted from the one that the word names.

    rd names the first operand of `GroupStage` and what a move writes; rs1 names A, x and what a
    move reads; rs2 names B and y.
    """

    BEFORE, AFTER = "g", "h"

    def elaborate(self, platform):
        m = Module()
        g, h = self.before, self.after
        carry(m, g, h)
        cfg = self.cfg
        m.submodules.groups = groups = GroupTiles(cfg)
        m.submodules.moves = moves = MoveTiles(cfg)
        m.d.comb += [
            groups.groups.eq(g.groups),
            groups.ends.eq(g.ends),
            groups.group_last.eq(g.group_last),
            groups.stride.eq(g.stride_c),
            groups.slice_most.eq(g.slice_most),
            groups.slice_last.eq(g.slice_last),
            moves.f7.eq(g.f7),
            moves.index.eq(g.stride),
            moves.index_far.eq(g.index_far),
        ]
        is_ldst = g.load | g.store
        reads, writes = g.move & moves.source, g.move & moves.destination

        def first(count: int, last: Value) -> Value:
            """`count` bits: tiles of a mma's operand, or the one of a vector."""
            return Mux(g.mmacc, up_to(last, count), Mux(g.vector, 1, 0))

        m.d.comb += [
            h.rd_tiles.eq(Mux(g.move, Mux(writes, moves.tiles, 0), groups.tiles)),
            h.rd_last.eq(Mux(g.move, moves.last, groups.last)),
            h.uses_rd.eq(g.mmacc | is_ldst | g.vector | writes),
            h.rs1_tiles.eq(Mux(reads, moves.tiles, first(OPERAND_TILES, g.i_last))),
            h.rs1_last.eq(Mux(g.move, moves.last, Mux(g.mmacc, g.i_last, 0))),
            h.uses_rs1.eq(g.mmacc | g.vector | reads),
            h.rs2_tiles.eq(first(OPERAND_TILES, g.j_last)),
            h.rs2_last.eq(Mux(g.mmacc, g.j_last, 0)),
            h.uses_rs2.eq(g.mmacc | g.vector),
            h.apart.eq(
                (g.move & moves.may_equal & (g.rd_tile != g.rs1_tile))
                | (g.mmacc & int(not cfg.split))
            ),
            h.bad.eq(g.bad | (g.move & moves.bad)),
            h.move_tiles.eq(moves.last),
            h.at.eq(moves.at),
            h.walked.eq(g.walked + cfg.row_bytes),
            h.fill.eq(g.load & ~(g.full_rows & g.full_groups & g.full_slices)),
        ]
        if cfg.has_vector:
            m.d.comb += h.to_y.eq(g.rs2_tile - g.rd_tile)
        return m
