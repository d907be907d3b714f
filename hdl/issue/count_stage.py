"""Stage F of the decoder: counts of tiles, rows, columns and bytes."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data

from .. import isa
from ..interfaces import bits_for
from .geometry import Spread, last_of
from .stages import C_STRIDE, MODE_4X4, MODE_A_LOG2, MODE_B_LOG2, MODES, DecodeStage, carry

__all__ = ["CountStage"]


class CountStage(DecodeStage):
    """Stage F of the decoder: counts of tiles, rows, columns and bytes.

    All counts are held less one, so that a product with a power of two, less one, is a shift that
    fills up with ones, and "more than a power of two" is a bit that is set: nothing here adds.
    """

    BEFORE, AFTER = "e", "f"

    def elaborate(self, platform):
        m = Module()
        e, f = self.before, self.after
        carry(m, e, f)
        cfg = self.cfg
        ldst = isa.LDST
        rb_log2 = cfg.row_bytes_log2

        def of_f7(field):
            return e.f7[field.lo : field.lo + field.width]

        what = of_f7(ldst["what"])
        is_ldst = e.load | e.store
        n_log2 = of_f7(ldst["n_log2"])
        down = Signal()
        is_a = is_ldst & (what == isa.LdstWhat.A)
        is_b = is_ldst & (what == isa.LdstWhat.B)
        is_c = is_ldst & (what == isa.LdstWhat.C)
        whole = is_ldst & (what == isa.LdstWhat.R)
        m.d.comb += down.eq(of_f7(ldst["down"]))

        # K in nibbles and bytes; K = 0 is too large as well.
        k_bits = len(e.k_last) + 4
        nibble_last = Signal(k_bits)
        k_bad = Signal()
        k_end = Signal(rb_log2)  # last byte of K elements
        m.d.comb += [
            nibble_last.eq(last_of(e.k_last, e.container_log2, 4)),
            k_bad.eq(nibble_last[rb_log2 + 1 :].any()),
            k_end.eq(nibble_last >> 1),
        ]

        # Slices of a result and distance of groups, by output width.
        slices_log2 = Signal(3)
        narrow = Signal()  # 4x4 packs the groups
        with m.Switch(e.width_log2):
            for width_log2 in range(4):
                with m.Case(width_log2):
                    slices = cfg.result_tiles(8 << width_log2)
                    m.d.comb += [
                        slices_log2.eq(slices.bit_length() - 1),
                        narrow.eq(width_log2 <= 1),
                    ]
        packed = Signal()
        m.d.comb += packed.eq(Mux(e.mmacc, e.mode == MODE_4X4, e.guard4x4 & narrow))
        stride_c = Signal(3)
        m.d.comb += stride_c.eq(Mux(packed, 1 << slices_log2, C_STRIDE))

        # Tiles of the macro in each direction.
        a_log2 = Signal(2)
        b_log2 = Signal(2)
        with m.Switch(e.mode):
            for mode in range(MODES):
                with m.Case(mode):
                    m.d.comb += [a_log2.eq(MODE_A_LOG2[mode]), b_log2.eq(MODE_B_LOG2[mode])]
        across_log2 = Signal(2)  # C groups of a load or store along a row
        m.d.comb += across_log2.eq(Mux(n_log2 > slices_log2, n_log2 - slices_log2, 0))
        m.submodules.rows = rows = Spread(cfg)
        m.submodules.columns = columns = Spread(cfg)
        m.d.comb += [
            rows.end.eq(e.row_end),
            rows.tiles_log2.eq(Mux(e.mmacc, a_log2, Mux(down, n_log2, 0))),
            columns.end.eq(e.column_end),
            columns.tiles_log2.eq(Mux(e.mmacc, b_log2, Mux(down, 0, across_log2))),
        ]

        # Bytes of C's columns in a group, and whether the named tiles hold them.
        bytes_most = Signal(bits_for(cfg.group_bytes))
        bytes_last = Signal(bits_for(cfg.group_bytes))
        named_log2 = Signal(2)  # tiles of one group that are named
        m.d.comb += [
            bytes_most.eq(last_of(columns.rows_most, e.width_log2, 3)),
            bytes_last.eq(last_of(columns.rows_last, e.width_log2, 3)),
            named_log2.eq(Mux(down, 0, Mux(n_log2 < slices_log2, n_log2, slices_log2))),
        ]

        # The outputs of 64 bits fill more than a group's four tiles, so one pair only.
        wide_bad = Signal()
        m.d.comb += wide_bad.eq(((1 << slices_log2) > C_STRIDE) & (e.mode != isa.Tiling.T1X1))
        # Only square tiles of bytes can be transposed.
        square = e.square & (e.container_log2 == 1) if cfg.transposes else 0
        btr_bad = (of_f7(isa.IMM["btr"]) != 0) & ~square
        m.d.comb += [
            f.bad.eq(e.bad | k_bad),
            f.bad_rows.eq(rows.bad),
            f.bad_columns.eq(columns.bad),
            # No group has more bytes than those before the last.
            f.bad_bytes.eq((bytes_most[rb_log2:] >> named_log2).any()),
            f.bad_mma.eq(wide_bad | btr_bad),
        ]

        if cfg.has_vector:
            self._vector(m, e, f)
        tiles = Cat(n_log2 > place for place in range(3))  # 2**n_log2 less one
        m.d.comb += [
            f.tiles.eq(tiles),
            f.named_groups.eq(tiles >> Mux(is_c & ~down, slices_log2, 0)),
            f.down.eq(down),
            f.slices_log2.eq(Mux(e.mmacc | (is_c & ~down), slices_log2, 0)),
            # z of the vector mode is one group, maybe of eight tiles.
            f.stride_c.eq(Mux(e.vector, C_STRIDE, Mux(e.mmacc | is_c, stride_c, 1))),
            f.pitch.eq(Mux(is_c & ~down, cfg.rows << e.width_log2, cfg.row_bytes)),
            f.i_last.eq(rows.last),
            f.j_last.eq(columns.last),
            f.m_most.eq(rows.rows_most),
            f.m_last.eq(rows.rows_last),
            f.n_most.eq(columns.rows_most),
            f.n_last.eq(columns.rows_last),
            f.bytes_most.eq(bytes_most),
            f.bytes_last.eq(bytes_last),
        ]
        with m.If(is_a | is_b):
            m.d.comb += [
                f.bytes_most.eq(k_end),
                f.bytes_last.eq(k_end),
                f.half.eq((e.container_log2 == 0) & e.k[0]),
            ]
        with m.If(whole):
            m.d.comb += [
                f.i_last.eq(Mux(down, (1 << n_log2) - 1, 0)),
                f.m_most.eq(cfg.rows - 1),
                f.m_last.eq(cfg.rows - 1),
                f.bytes_most.eq(cfg.row_bytes - 1),
                f.bytes_last.eq(cfg.row_bytes - 1),
            ]
        with m.If(whole | is_a | is_b):
            m.d.comb += f.j_last.eq((1 << n_log2) - 1)
        return m

    def _vector(self, m: Module, e: data.View, f: data.View) -> None:
        """Words of z, by its container."""
        cfg = self.cfg
        row_nibbles_log2 = cfg.row_bytes_log2 + 1
        container_log2 = Signal(3)  # log2 of container bits / 4, as of x
        growth = Signal(2)
        last = Signal(len(e.k_last) + 4)  # last nibble
        wide = e.f7[isa.VECTOR["wide"].lo]
        m.d.comb += [
            container_log2.eq(Mux(wide, e.width_log2 + 1, e.container_log2)),
            growth.eq(container_log2 - e.container_log2),
            last.eq(last_of(e.k_last, container_log2, 4)),
            f.z_last.eq(last >> row_nibbles_log2),
            f.z_step.eq(8 >> growth),
            f.z_k.eq((last[:row_nibbles_log2] >> container_log2) + 1),
            f.z_spare.eq((container_log2 == 0) & e.k[0]),
        ]
