"""Stage K of the decoder: the bundle and the answer."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data

from .. import isa
from ..interfaces import ERROR_BADGEOM, ERROR_BUS, ERROR_ILLEGAL, ERROR_NONE, InstrKind
from .register_bundle import RegisterBundle
from .stages import DecodeStage
from .walk_start import start_of

__all__ = ["BundleStage"]


class BundleStage(DecodeStage):
    """Stage K of the decoder: the bundle and the answer."""

    BEFORE, AFTER = "j", "k"

    def elaborate(self, platform):
        m = Module()
        j, k = self.before, self.after
        cfg = self.cfg
        is_ldst = j.load | j.store
        out, mma, ldst, move = k.instr, k.instr.mma, k.instr.ldst, k.instr.move
        cfile = j.f7[isa.LDST["cfile"].lo]  # loads, stores and moves alike
        op = j.f7[isa.MOVE["op"].lo :][: isa.MOVE["op"].width]
        src_in_c = cfile ^ (op == isa.MoveOp.MMOV_OTHER)

        def among_all(mask, in_c):
            """Tiles of one file as tiles of all files."""
            return Cat(Mux(in_c, 0, mask), Mux(in_c, mask, 0)) if cfg.split else mask

        def number(tile, in_c):
            """Likewise a tile's number."""
            return Cat(tile[: cfg.tiles_log2], in_c) if cfg.split else tile[: cfg.tiles_log2]

        # -- the answer ----
        error = Signal(2)
        with m.If(j.illegal):
            m.d.comb += error.eq(ERROR_ILLEGAL)
        with m.Elif(j.bad | j.overlap):
            m.d.comb += error.eq(ERROR_BADGEOM)
        with m.Elif((is_ldst | (j.x.on & (j.x.load | j.x.store) if cfg.xuantie else 0)) & j.far):
            m.d.comb += error.eq(ERROR_BUS)
        fine = error == ERROR_NONE
        answers = Signal()
        m.d.comb += [
            answers.eq(j.wb & fine),
            k.resp.tag.eq(j.tag),
            k.resp.wb.eq(answers),
            k.resp.rd.eq(Mux(answers, j.rd_tile, 0)),
            k.resp.data.eq(j.data),
            k.resp.error.eq(error),
            k.dispatch.eq((j.mmacc | is_ldst | j.move | j.vector) & fine),
            k.fence.eq(j.fence),
            k.release.eq(j.release),
            k.fallback.eq(j.mmacc & j.fallback),
            k.scalar.eq(j.move & (op == isa.MoveOp.SCALAR)),
            k.element.eq(j.move & (op == isa.MoveOp.ELEMENT) & fine),
            k.from_unit.eq(k.element),
            k.dirty.eq(~j.store & ~k.element),
        ]

        # -- the bundle ----
        imm = isa.IMM
        size = isa.MOVE["size"]
        m.d.comb += [
            out.kind.eq(
                Mux(
                    j.mmacc | j.vector,
                    InstrKind.MMA,
                    Mux(j.load, InstrKind.LOAD, Mux(j.store, InstrKind.STORE, InstrKind.MOVE)),
                )
            ),
            out.reads.eq(among_all(j.reads, Mux(j.move, src_in_c, j.store & cfile))),
            out.writes.eq(among_all(j.writes, j.mmacc | cfile)),
            mma.a.eq(number(j.rs1_tile, 0)),
            mma.b.eq(number(j.rs2_tile, 0)),
            mma.c.eq(number(j.rd_tile, j.mmacc | cfile)),
            mma.i_last.eq(j.i_last),
            mma.j_last.eq(j.j_last),
            mma.i_stride.eq(j.i_stride),
            mma.j_stride.eq(j.stride_c),
            mma.m_most.eq(j.m_most),
            mma.m_last.eq(j.m_last),
            mma.n_most.eq(j.n_most),
            mma.n_last.eq(j.n_last),
            mma.shared.eq(j.shared),
            mma.width_log2.eq(j.width_log2),
            mma.op.ft.eq(j.ft),
            mma.op.out.eq(j.out),
            mma.op.k.eq(j.k),
            mma.op.negate.eq(j.mmacc & j.f7[imm["alpha"].lo]),
            mma.op.overwrite.eq(j.f7[imm["beta"].lo]),
            mma.op.sat.eq(j.sat),
            mma.op.rnd.eq(j.rnd),
            ldst.tile.eq(number(j.rd_tile, cfile)),
            ldst.tiles.eq(j.tiles),
            ldst.down.eq(j.down),
            ldst.slices_log2.eq(j.slices_log2),
            ldst.group_stride.eq(j.stride_c),
            ldst.pitch.eq(j.pitch),
            ldst.half.eq(j.half),
            ldst.group_last.eq(j.j_last),
            ldst.tile_last.eq(j.i_last),
            ldst.rows_most.eq(j.m_most),
            ldst.rows_last.eq(j.m_last),
            ldst.bytes_most.eq(j.bytes_most),
            ldst.bytes_last.eq(j.bytes_last),
            ldst.base.eq(j.data),
            ldst.stride.eq(j.stride),
            ldst.contiguous.eq(j.contiguous),
            ldst.fill.eq(j.fill),
            move.dst.eq(number(j.rd_tile, cfile)),
            move.src.eq(number(j.rs1_tile, src_in_c)),
            move.tiles.eq(j.move_tiles),
            move.op.eq(op),
            move.size.eq(j.f7[size.lo : size.lo + size.width]),
            move.at.eq(j.at),
        ]
        if cfg.transposes:
            # As encoded, a set bit differs from the native A x B^T.
            m.d.comb += [
                mma.b_transposed.eq(j.mmacc & j.f7[imm["btr"].lo]),
                mma.a_transposed.eq(j.mmacc & j.f7[imm["btr"].lo + 1]),
            ]
        if cfg.has_vector:
            self._vector(m, j, mma)
        if cfg.xuantie:
            self._registers(m, fine)
        m.d.comb += ldst.start.eq(start_of(cfg, ldst))
        return m

    def _registers(self, m: Module, fine: Value) -> None:
        """What the front end `xuantie` asks for takes the place of all that."""
        j, k = self.before, self.after
        m.submodules.registers = registers = RegisterBundle(self.cfg)
        m.d.comb += [
            registers.fields.eq(j.x),
            registers.base.eq(j.data),
            registers.stride.eq(j.stride),
        ]
        with m.If(j.x.on):
            m.d.comb += [
                k.instr.eq(registers.instr),
                k.instr.reads.eq(j.reads),
                k.instr.writes.eq(j.writes),
                k.instr.mma.shared.eq(j.shared),
                k.dispatch.eq(fine),
                k.dirty.eq(~j.x.store),
                k.scalar.eq(j.x.scalar),
            ]

    def _vector(self, m: Module, j: data.View, mma: data.View) -> None:
        """The walk of the vector mode."""
        kind = j.f7[isa.VECTOR["op"].lo :][: isa.VECTOR["op"].width]
        no_z = Cat(kind == op for op in isa.VECTOR_WITHOUT_Z).any()
        m.d.comb += [
            mma.part_first.eq(j.part_first),
            mma.part_last.eq(j.z_last),
            mma.part_step.eq(j.z_step),
            mma.k_last.eq(j.z_k),
            mma.op.vector.on.eq(j.vector),
            mma.op.vector.kind.eq(kind),
            mma.op.vector.same.eq(~j.f7[isa.VECTOR["wide"].lo]),
        ]
        with m.If(j.vector):
            m.d.comb += mma.op.overwrite.eq(no_z & ~j.z_spare)
