"""Stage E of the decoder: counts of tiles, rows, columns and bytes."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data

from .. import isa
from ..interfaces import bits_for
from .geometry import Spread
from .stages import C_STRIDE, MODE_4X4, MODE_A_LOG2, MODE_B_LOG2, MODES, DecodeStage, carry

__all__ = ["CountStage"]


class CountStage(DecodeStage):
    """Stage E of the decoder: counts of tiles, rows, columns and bytes."""

    BEFORE, AFTER = "d", "e"

    def elaborate(self, platform):
        m = Module()
        d, e = self.before, self.after
        carry(m, d, e)
        cfg = self.cfg
        ldst = isa.LDST

        def of_f7(f):
            return d.f7[f.lo : f.lo + f.width]

        bad = Signal()
        what = of_f7(ldst["what"])
        is_ldst = d.load | d.store
        n_log2 = of_f7(ldst["n_log2"])
        down = Signal()
        is_a = is_ldst & (what == isa.LdstWhat.A)
        is_b = is_ldst & (what == isa.LdstWhat.B)
        is_c = is_ldst & (what == isa.LdstWhat.C)
        whole = is_ldst & (what == isa.LdstWhat.R)
        m.d.comb += down.eq(of_f7(ldst["down"]))

        # K in elements and bytes.
        lanes = Signal(9)
        k_bad = Signal()
        bits = Signal(12)
        k_end = Signal(cfg.row_bytes_log2)  # last byte of K elements
        m.d.comb += [
            lanes.eq(cfg.lanes(4) >> d.container_log2),
            k_bad.eq((d.k == 0) | (d.k > lanes)),
            bits.eq(d.k << (d.container_log2 + 2)),
            k_end.eq((bits + 7 >> 3) - 1),
        ]

        # Slices of a result and distance of groups, by output width.
        slices_log2 = Signal(3)
        narrow = Signal()  # 4x4 packs the groups
        with m.Switch(d.width_log2):
            for width_log2 in range(4):
                with m.Case(width_log2):
                    slices = cfg.result_tiles(8 << width_log2)
                    m.d.comb += [
                        slices_log2.eq(slices.bit_length() - 1),
                        narrow.eq(width_log2 <= 1),
                    ]
        packed = Signal()
        m.d.comb += packed.eq(Mux(d.mmacc, d.mode == MODE_4X4, d.guard4x4 & narrow))
        stride_c = Signal(3)
        m.d.comb += stride_c.eq(Mux(packed, 1 << slices_log2, C_STRIDE))

        # Tiles of the macro in each direction.
        a_log2 = Signal(2)
        b_log2 = Signal(2)
        with m.Switch(d.mode):
            for mode in range(MODES):
                with m.Case(mode):
                    m.d.comb += [a_log2.eq(MODE_A_LOG2[mode]), b_log2.eq(MODE_B_LOG2[mode])]
        across_log2 = Signal(2)  # C groups of a load or store along a row
        m.d.comb += across_log2.eq(Mux(n_log2 > slices_log2, n_log2 - slices_log2, 0))
        m.submodules.rows = rows = Spread(cfg)
        m.submodules.columns = columns = Spread(cfg)
        m.d.comb += [
            rows.value.eq(Mux(is_b, d.n, d.m)),
            rows.tiles_log2.eq(Mux(d.mmacc, a_log2, Mux(down, n_log2, 0))),
            columns.value.eq(d.n),
            columns.tiles_log2.eq(Mux(d.mmacc, b_log2, Mux(down, 0, across_log2))),
        ]

        # Bytes of C's columns in a group, and whether the named tiles hold them.
        bytes_most = Signal(bits_for(cfg.group_bytes))
        bytes_last = Signal(bits_for(cfg.group_bytes))
        named_log2 = Signal(3)  # tiles of one group that are named
        c_bad = Signal()
        held = Signal(8)
        m.d.comb += [
            bytes_most.eq(((columns.rows_most + 1) << d.width_log2) - 1),
            bytes_last.eq(((columns.rows_last + 1) << d.width_log2) - 1),
            named_log2.eq(Mux(down, 0, Mux(n_log2 < slices_log2, n_log2, slices_log2))),
            held.eq(1 << named_log2),
            c_bad.eq(
                ((bytes_last >> cfg.row_bytes_log2) >= held)
                | ((bytes_most >> cfg.row_bytes_log2) >= held)
            ),
        ]

        # The outputs of 64 bits fill more than a group's four tiles, so one pair only.
        wide_bad = Signal()
        m.d.comb += wide_bad.eq(((1 << slices_log2) > C_STRIDE) & (d.mode != isa.Tiling.T1X1))
        # Only square tiles of bytes can be transposed.
        square = Signal()
        if cfg.transposes:
            m.d.comb += square.eq(
                (d.container_log2 == 1) & Cat(x == cfg.rows for x in (d.k, d.m, d.n)).all()
            )
        btr_bad = (of_f7(isa.IMM["btr"]) != 0) & ~square
        # Every user of mxcfg and mxtile checks what it does not use as well (isa.md, Traps).
        checked = d.bad | k_bad | (d.m == 0)
        with m.If(d.mmacc):
            m.d.comb += bad.eq(checked | rows.bad | columns.bad | wide_bad | btr_bad)
        with m.Elif(is_a | is_b | d.vector):
            m.d.comb += bad.eq(checked | rows.bad)
        with m.Elif(is_c):
            m.d.comb += bad.eq(checked | rows.bad | columns.bad | c_bad)

        if cfg.has_vector:
            self._vector(m, d, e)
        m.d.comb += [
            e.bad.eq(bad),
            e.tiles.eq((1 << n_log2) - 1),
            e.down.eq(down),
            e.slices_log2.eq(Mux(d.mmacc | (is_c & ~down), slices_log2, 0)),
            e.stride_c.eq(Mux(d.mmacc | is_c, stride_c, 1)),
            e.pitch.eq(Mux(is_c & ~down, cfg.rows << d.width_log2, cfg.row_bytes)),
            e.i_last.eq(rows.last),
            e.j_last.eq(columns.last),
            e.m_most.eq(rows.rows_most),
            e.m_last.eq(rows.rows_last),
            e.n_most.eq(columns.rows_most),
            e.n_last.eq(columns.rows_last),
            e.bytes_most.eq(bytes_most),
            e.bytes_last.eq(bytes_last),
        ]
        with m.If(is_a | is_b):
            m.d.comb += [e.bytes_most.eq(k_end), e.bytes_last.eq(k_end), e.half.eq(bits[:3].any())]
        with m.If(whole):
            m.d.comb += [
                e.i_last.eq(Mux(down, (1 << n_log2) - 1, 0)),
                e.m_most.eq(cfg.rows - 1),
                e.m_last.eq(cfg.rows - 1),
                e.bytes_most.eq(cfg.row_bytes - 1),
                e.bytes_last.eq(cfg.row_bytes - 1),
            ]
        with m.If(whole | is_a | is_b):
            m.d.comb += e.j_last.eq((1 << n_log2) - 1)
        return m

    def _vector(self, m: Module, d: data.View, e: data.View) -> None:
        """Words of z, by its container."""
        cfg = self.cfg
        row_nibbles_log2 = cfg.row_bytes_log2 + 1
        container_log2 = Signal(3)  # log2 of container bits / 4, as of x
        growth = Signal(2)
        last = Signal(cfg.lanes(4).bit_length() + 3)  # last nibble
        wide = d.f7[isa.VECTOR["wide"].lo]
        m.d.comb += [
            container_log2.eq(Mux(wide, d.width_log2 + 1, d.container_log2)),
            growth.eq(container_log2 - d.container_log2),
            last.eq((d.k << container_log2) - 1),
            e.z_last.eq(last >> row_nibbles_log2),
            e.z_step.eq(8 >> growth),
            e.z_k.eq((last[:row_nibbles_log2] >> container_log2) + 1),
            e.z_spare.eq((container_log2 == 0) & d.k[0]),
        ]
