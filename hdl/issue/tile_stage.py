"""Stage F of the decoder: which tiles, in range and apart; the bundle and the answer."""

from __future__ import annotations

from functools import reduce
from operator import or_

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data

from .. import isa
from ..interfaces import ERROR_BADGEOM, ERROR_BUS, ERROR_NONE, InstrKind
from .geometry import GroupMask
from .guard import SIDE
from .move_tiles import MoveTiles
from .register_bundle import RegisterBundle
from .stages import C_STRIDE, MODE_4X4, MODE_A_LOG2, MODE_B_LOG2, MODES, DecodeStage

__all__ = ["TileStage"]


class TileStage(DecodeStage):
    """Stage F of the decoder: which tiles, in range and apart; the bundle and the answer."""

    BEFORE, AFTER = "e", "f"

    def elaborate(self, platform):
        m = Module()
        e, f = self.before, self.after
        cfg = self.cfg
        rb_log2 = cfg.row_bytes_log2
        is_ldst = e.load | e.store
        out, mma, ldst, move = f.instr, f.instr.mma, f.instr.ldst, f.instr.move
        cfile = e.f7[isa.LDST["cfile"].lo]  # loads, stores and moves alike

        def among_all(mask, in_c):
            """Tiles of one file as tiles of all files."""
            return Cat(Mux(in_c, 0, mask), Mux(in_c, mask, 0)) if cfg.split else mask

        def number(tile, in_c):
            """Likewise a tile's number."""
            return Cat(tile[: cfg.tiles_log2], in_c) if cfg.split else tile[: cfg.tiles_log2]

        # Slices with bytes: of a C group of the mma, of a group of the load or store.
        slice_most = Signal(3)
        slice_last = Signal(3)
        m.d.comb += [
            slice_most.eq(e.bytes_most >> rb_log2),
            slice_last.eq(e.bytes_last >> rb_log2),
        ]

        # -- mma: masks of A, B and C ----
        m.submodules.a_mask = a_mask = GroupMask(cfg)
        m.submodules.b_mask = b_mask = GroupMask(cfg)
        m.d.comb += [
            a_mask.base.eq(e.rs1_tile),
            a_mask.group_last.eq(e.i_last),
            a_mask.stride.eq(1),
            b_mask.base.eq(e.rs2_tile),
            b_mask.group_last.eq(e.j_last),
            b_mask.stride.eq(1),
        ]
        relative = Signal(cfg.tiles)
        i_stride = Signal(5)
        c_start = Signal(6)  # last tile's group; strides are powers of two
        row_slices = []
        for j in range(SIDE):
            last = Signal(3, name=f"slices{j}")
            m.d.comb += last.eq(Mux(e.j_last == j, slice_last, slice_most))
            mask = Signal(8, name=f"slice_mask{j}")
            m.d.comb += mask.eq(Mux(j <= e.j_last, (2 << last) - 1, 0))
            row_slices.append(mask)
        with m.Switch(Cat(e.mode, e.stride_c)):
            for mode in range(MODES):
                for stride in (1, 2) if mode == MODE_4X4 else (C_STRIDE,):
                    a_tiles, b_tiles = 1 << MODE_A_LOG2[mode], 1 << MODE_B_LOG2[mode]
                    with m.Case(mode | stride << 3):
                        groups = 0
                        for i in range(a_tiles):
                            for j in range(b_tiles):
                                offset = (i * b_tiles + j) * stride
                                if offset < cfg.tiles:
                                    groups = groups | Mux(i <= e.i_last, row_slices[j] << offset, 0)
                        m.d.comb += [
                            relative.eq(groups),
                            i_stride.eq(b_tiles * stride),
                            c_start.eq(e.i_last * (b_tiles * stride) + e.j_last * stride),
                        ]
        c_mask = Signal(cfg.tiles)
        c_end = Signal(8)
        m.d.comb += [
            c_mask.eq(relative << e.rd_tile),
            c_end.eq(e.rd_tile + c_start + slice_last),
        ]
        operands = a_mask.mask | b_mask.mask
        mma_bad = a_mask.bad | b_mask.bad | (c_end >= cfg.tiles)
        if not cfg.split:
            mma_bad = mma_bad | (c_mask & operands).any()

        # -- load and store: named tiles of a load, active tiles of a store ----------------------
        m.submodules.t_mask = t_mask = GroupMask(cfg)
        named_groups = Signal(3)
        named_slices = Signal(3)
        active_last = Signal(3)
        m.d.comb += [
            named_groups.eq(Mux(e.down, e.tiles, e.tiles >> e.slices_log2)),
            named_slices.eq(
                Mux(
                    e.tiles < (1 << e.slices_log2) - 1,
                    e.tiles,
                    (1 << e.slices_log2) - 1,
                )
            ),
            active_last.eq(Mux(e.down, e.i_last, e.j_last)),
            t_mask.base.eq(e.rd_tile),
            t_mask.stride.eq(e.stride_c),
            t_mask.group_last.eq(Mux(e.load, named_groups, active_last)),
            t_mask.slice_most.eq(Mux(e.load, named_slices, slice_most)),
            t_mask.slice_last.eq(Mux(e.load, named_slices, Mux(e.down, slice_most, slice_last))),
        ]
        if cfg.has_vector:  # z: neighbouring tiles
            with m.If(e.vector):
                m.d.comb += [
                    t_mask.stride.eq(1),
                    t_mask.group_last.eq(0),
                    t_mask.slice_last.eq(e.z_last),
                ]
        walked = Signal(8 + rb_log2)  # bytes from a row's start to the end of its last tile
        to_last = Signal(8 + rb_log2)  # bytes to its last group; pitches are powers of two
        shifted = (Mux(bit, e.j_last << place, 0) for place, bit in enumerate(e.pitch))
        m.d.comb += [
            to_last.eq(reduce(or_, shifted)),
            walked.eq(Mux(e.down, 0, to_last + (slice_last << rb_log2)) + cfg.row_bytes),
        ]
        full_rows = (e.m_last == cfg.rows - 1) & (
            ~e.down | ((e.i_last == e.tiles) & ((e.i_last == 0) | (e.m_most == cfg.rows - 1)))
        )
        full_slices = e.down | (
            (e.j_last == named_groups)
            & (slice_last == named_slices)
            & ((e.j_last == 0) | (slice_most == named_slices))
        )

        # -- move ----
        m.submodules.moves = moves = MoveTiles(cfg)
        m.d.comb += [
            moves.f7.eq(e.f7),
            moves.dst.eq(e.rd_tile),
            moves.src.eq(e.rs1_tile),
            moves.index.eq(e.stride),
            moves.index_far.eq(e.index_far),
        ]
        src_in_c = cfile ^ (moves.op == isa.MoveOp.MMOV_OTHER)

        # -- vector mode: z is what `t_mask` says ----
        xy_mask = Signal(cfg.tiles)
        xy_bad = Signal()
        m.d.comb += [
            xy_mask.eq((1 << e.rs1_tile) | (1 << e.rs2_tile)),
            xy_bad.eq((e.rs1_tile >= cfg.tiles) | (e.rs2_tile >= cfg.tiles)),
        ]

        # -- the answer ----
        bad = Signal()
        m.d.comb += bad.eq(
            (e.mmacc & (e.bad | mma_bad))
            | ((is_ldst | e.vector) & (e.bad | t_mask.bad))
            | (e.vector & xy_bad)
            | (e.move & moves.bad)
        )
        error = Signal(2)
        with m.If(e.error != ERROR_NONE):
            m.d.comb += error.eq(e.error)
        with m.Elif(bad):
            m.d.comb += error.eq(ERROR_BADGEOM)
        with m.Elif((is_ldst | (e.x.load | e.x.store if cfg.xuantie else 0)) & e.far):
            m.d.comb += error.eq(ERROR_BUS)
        answers = Signal()
        m.d.comb += [
            answers.eq(e.wb & (error == ERROR_NONE)),
            f.resp.tag.eq(e.tag),
            f.resp.wb.eq(answers),
            f.resp.rd.eq(Mux(answers, e.rd, 0)),
            f.resp.data.eq(e.data),
            f.resp.error.eq(error),
            f.dispatch.eq((e.mmacc | is_ldst | e.move | e.vector) & (error == ERROR_NONE)),
            f.fence.eq(e.fence),
            f.release.eq(e.release),
            f.fallback.eq(e.mmacc & e.fallback),
            f.scalar.eq(e.move & (moves.op == isa.MoveOp.SCALAR)),
            f.element.eq(e.move & (moves.op == isa.MoveOp.ELEMENT) & (error == ERROR_NONE)),
        ]

        # -- the bundle ----
        imm = isa.IMM
        m.d.comb += [
            out.kind.eq(
                Mux(
                    e.mmacc | e.vector,
                    InstrKind.MMA,
                    Mux(e.load, InstrKind.LOAD, Mux(e.store, InstrKind.STORE, InstrKind.MOVE)),
                )
            ),
            out.reads.eq(
                among_all(
                    Mux(e.mmacc, operands, 0)
                    | Mux(e.vector, xy_mask, 0)
                    | Mux(e.store, t_mask.mask, 0)
                    | Mux(e.move, moves.reads, 0),
                    Mux(e.move, src_in_c, e.store & cfile),
                )
            ),
            out.writes.eq(
                among_all(
                    Mux(e.mmacc, c_mask, 0)
                    | Mux(e.load | e.vector, t_mask.mask, 0)
                    | Mux(e.move, moves.writes, 0),
                    e.mmacc | cfile,
                )
            ),
            mma.a.eq(number(e.rs1_tile, 0)),
            mma.b.eq(number(e.rs2_tile, 0)),
            mma.c.eq(number(e.rd_tile, e.mmacc | cfile)),
            mma.i_last.eq(e.i_last),
            mma.j_last.eq(e.j_last),
            mma.i_stride.eq(i_stride),
            mma.j_stride.eq(e.stride_c),
            mma.m_most.eq(e.m_most),
            mma.m_last.eq(e.m_last),
            mma.n_most.eq(e.n_most),
            mma.n_last.eq(e.n_last),
            mma.shared.eq((a_mask.mask & b_mask.mask).any()),
            mma.width_log2.eq(e.width_log2),
            mma.op.ft.eq(e.ft),
            mma.op.out.eq(e.out),
            mma.op.k.eq(e.k),
            mma.op.negate.eq(e.mmacc & e.f7[imm["alpha"].lo]),
            mma.op.overwrite.eq(e.f7[imm["beta"].lo]),
            mma.op.sat.eq(e.sat),
            mma.op.rnd.eq(e.rnd),
            ldst.tile.eq(number(e.rd_tile, cfile)),
            ldst.tiles.eq(Mux(e.load, e.tiles, Mux(e.down, e.i_last, 0))),
            ldst.down.eq(e.down),
            ldst.slices_log2.eq(e.slices_log2),
            ldst.group_stride.eq(e.stride_c),
            ldst.pitch.eq(e.pitch),
            ldst.half.eq(e.half),
            ldst.group_last.eq(e.j_last),
            ldst.tile_last.eq(e.i_last),
            ldst.rows_most.eq(e.m_most),
            ldst.rows_last.eq(e.m_last),
            ldst.bytes_most.eq(e.bytes_most),
            ldst.bytes_last.eq(e.bytes_last),
            ldst.base.eq(e.base),
            ldst.stride.eq(e.stride),
            ldst.contiguous.eq(e.stride == walked),
            ldst.fill.eq(e.load & ~(full_rows & full_slices)),
            move.dst.eq(number(e.rd_tile, cfile)),
            move.src.eq(number(e.rs1_tile, src_in_c)),
            move.tiles.eq(moves.tiles),
            move.op.eq(moves.op),
            move.size.eq(moves.size),
            move.at.eq(moves.at),
        ]
        if cfg.transposes:
            # As encoded, a set bit differs from the native A x B^T.
            m.d.comb += [
                mma.b_transposed.eq(e.mmacc & e.f7[imm["btr"].lo]),
                mma.a_transposed.eq(e.mmacc & e.f7[imm["btr"].lo + 1]),
            ]
        if cfg.has_vector:
            self._vector(m, e, mma, cfile)
        if cfg.xuantie:
            self._registers(m, error)
        return m

    def _registers(self, m: Module, error: Value) -> None:
        """What the front end `xuantie` asks for takes the place of all that."""
        e, f = self.before, self.after
        m.submodules.registers = registers = RegisterBundle(self.cfg)
        m.d.comb += [
            registers.fields.eq(e.x),
            registers.base.eq(e.base),
            registers.stride.eq(e.stride),
        ]
        with m.If(e.x.on):
            m.d.comb += [
                f.instr.eq(registers.instr),
                f.dispatch.eq(error == ERROR_NONE),
                f.scalar.eq(registers.scalar),
            ]

    def _vector(self, m: Module, e: data.View, mma: data.View, cfile: Value) -> None:
        """The walk of the vector mode."""
        cfg = self.cfg
        kind = e.f7[isa.VECTOR["op"].lo :][: isa.VECTOR["op"].width]
        no_z = Cat(kind == op for op in isa.VECTOR_WITHOUT_Z).any()
        # The part of z that lies on y is written last, so that y is read before; x is held.
        to_y = Signal(5)
        on_y = Signal()
        m.d.comb += [
            to_y.eq(e.rs2_tile - e.rd_tile),
            on_y.eq((e.rs2_tile >= e.rd_tile) & (to_y < e.z_last)),
            mma.part_first.eq(Mux(on_y & ~(cfile if cfg.split else 0), to_y + 1, 0)),
            mma.part_last.eq(e.z_last),
            mma.part_step.eq(e.z_step),
            mma.k_last.eq(e.z_k),
            mma.op.vector.on.eq(e.vector),
            mma.op.vector.kind.eq(kind),
            mma.op.vector.same.eq(~e.f7[isa.VECTOR["wide"].lo]),
        ]
        with m.If(e.vector):
            m.d.comb += mma.op.overwrite.eq(no_z & ~e.z_spare)
