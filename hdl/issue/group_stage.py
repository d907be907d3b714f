"""Stage G of the decoder: groups of tiles of the first operand, and what of them is filled."""

from __future__ import annotations

from functools import reduce
from operator import or_

from amaranth.hdl import Cat, Module, Mux, Signal

from .. import isa
from .geometry import up_to
from .stages import MODE_A_LOG2, MODE_B_LOG2, MODES, DecodeStage, carry

__all__ = ["GroupStage"]

NAMED_GROUPS = 8
"""Most groups that one load or store names."""


class GroupStage(DecodeStage):
    """Stage G of the decoder: groups of tiles of the first operand, and what of them is filled.

    The first operand is C of a mma, what a load writes (all named tiles), what a store reads (those
    with active bytes), z of the vector mode; a move has no groups.
    """

    BEFORE, AFTER = "f", "g"

    def elaborate(self, platform):
        m = Module()
        f, g = self.before, self.after
        carry(m, f, g)
        cfg = self.cfg
        rb_log2 = cfg.row_bytes_log2
        what = isa.LDST["what"]
        what = f.f7[what.lo : what.lo + what.width]
        is_ldst = f.load | f.store
        is_c = is_ldst & (what == isa.LdstWhat.C)
        whole = is_ldst & (what == isa.LdstWhat.R)
        m.d.comb += g.bad.eq(
            (f.mmacc & (f.bad | f.bad_rows | f.bad_columns | f.bad_mma))
            | (f.vector & (f.bad | f.bad_rows))
            | (is_ldst & ~whole & (f.bad | f.bad_rows))
            | (is_c & (f.bad_columns | f.bad_bytes))
        )

        # Slices with bytes, and slices that are named: the lesser of two powers of two, less one.
        slice_most, slice_last, named_slices = Signal(3), Signal(3), Signal(3)
        m.d.comb += [
            slice_most.eq(f.bytes_most >> rb_log2),
            slice_last.eq(f.bytes_last >> rb_log2),
            named_slices.eq(f.tiles & Cat(f.slices_log2 > place for place in range(3))),
        ]

        last = Signal(3)  # group of a load or store
        m.d.comb += last.eq(Mux(f.load, f.named_groups, Mux(f.down, f.i_last, f.j_last)))
        with m.If(f.mmacc):
            with m.Switch(f.mode):
                for mode in range(MODES):
                    a_tiles, b_tiles = 1 << MODE_A_LOG2[mode], 1 << MODE_B_LOG2[mode]
                    with m.Case(mode):
                        for i in range(a_tiles):
                            for j in range(b_tiles):
                                m.d.comb += [
                                    g.groups[i * b_tiles + j].eq((i <= f.i_last) & (j <= f.j_last)),
                                    g.ends[i * b_tiles + j].eq(j == f.j_last),
                                ]
                        m.d.comb += [
                            g.group_last.eq((f.i_last << MODE_B_LOG2[mode]) | f.j_last),
                            g.i_stride.eq(f.stride_c << MODE_B_LOG2[mode]),
                        ]
            m.d.comb += [g.slice_most.eq(slice_most), g.slice_last.eq(slice_last)]
        with m.Elif(is_ldst):
            m.d.comb += [
                g.groups.eq(up_to(last, NAMED_GROUPS)),
                g.ends.eq(1 << last),
                g.group_last.eq(last),
                g.slice_most.eq(Mux(f.load, named_slices, slice_most)),
                g.slice_last.eq(Mux(f.load, named_slices, Mux(f.down, slice_most, slice_last))),
            ]
        if cfg.has_vector:
            with m.If(f.vector):
                m.d.comb += [g.groups[0].eq(1), g.ends[0].eq(1), g.slice_last.eq(f.z_last)]

        # The walk along a row: pitches are powers of two, and a group's slices fit in one.
        shifted = (Mux(bit, f.j_last << place, 0) for place, bit in enumerate(f.pitch))
        to_last = reduce(or_, shifted)
        m.d.comb += [
            g.walked.eq(Mux(f.down, 0, to_last | (slice_last << rb_log2))),
            g.tiles.eq(Mux(f.load, f.tiles, Mux(f.down, f.i_last, 0))),
            g.full_rows.eq(
                (f.m_last == cfg.rows - 1)
                & (
                    ~f.down
                    | ((f.i_last == f.tiles) & ((f.i_last == 0) | (f.m_most == cfg.rows - 1)))
                )
            ),
            g.full_groups.eq(f.down | (f.j_last == f.named_groups)),
            g.full_slices.eq(
                f.down
                | ((slice_last == named_slices) & ((f.j_last == 0) | (slice_most == named_slices)))
            ),
        ]
        return m
