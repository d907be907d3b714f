"""Stages J and K of the decoder for the front end `xuantie`: the bundle for the slots."""

from __future__ import annotations

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from .. import isa
from ..config import REGISTERS, Config
from ..interfaces import InstrKind, instr
from ..units.point_op import PointSource
from .stages import register_fields

__all__ = ["RegisterBundle", "RegisterMasks"]


class RegisterMasks(wiring.Component):
    """Tiles that an instruction on registers reads and writes; combinational.

    Members
    -------
    fields : as `RegisterSizes` gives them.
    reads, writes : tiles.
    shared : A and B name some register both.
    """

    def __init__(self, cfg: Config):
        self.cfg = cfg
        super().__init__(
            {
                "fields": In(register_fields(cfg)),
                "reads": Out(cfg.tiles),
                "writes": Out(cfg.tiles),
                "shared": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        cfg, x = self.cfg, self.fields

        def one(register):
            """A mask of registers with this one."""
            return (1 << register)[:REGISTERS]

        def pair(register, both):
            return one(register) | Mux(both, one(register | 1), 0)

        moved = Signal(REGISTERS)  # of a load or store
        a_regs, b_regs = Signal(REGISTERS), Signal(REGISTERS)
        reads, writes = Signal(REGISTERS), Signal(REGISTERS)
        second = x.move & ~x.zero & ~x.scalar | x.point & ~x.scalar  # ms1 is an operand
        m.d.comb += [
            moved.eq(((2 << x.registers) - 1) << x.md),
            a_regs.eq(one(x.ms1)),
            b_regs.eq(pair(x.ms2, x.b_pair)),
            self.shared.eq((a_regs & b_regs).any()),
            reads.eq(
                Mux(x.mma, a_regs | b_regs, 0)
                | Mux(x.store, moved, 0)
                | Mux(second, one(x.ms1), 0)
                | Mux(x.point, one(x.ms2), 0)
            ),
            writes.eq(
                Mux(x.mma, pair(x.md, x.c_pair), 0)
                | Mux(x.load, moved, 0)
                | Mux(x.move | x.point, one(x.md), 0)
            ),
        ]
        for n in range(REGISTERS):
            tile = n * cfg.x_tiles
            m.d.comb += [self.reads[tile].eq(reads[n]), self.writes[tile].eq(writes[n])]
        return m


class RegisterBundle(wiring.Component):
    """Registers to tiles, sizes to the walks of the units; combinational.

    Register n is the first `Config.x_rows` rows of tile n * `Config.x_tiles`.

    Members
    -------
    fields : as `RegisterSizes` gives them.
    base, stride : of a load or store.
    instr : the bundle but for what `RegisterMasks` says.
    """

    def __init__(self, cfg: Config):
        self.cfg = cfg
        super().__init__(
            {
                "fields": In(register_fields(cfg)),
                "base": In(cfg.addr_bits),
                "stride": In(cfg.addr_bits),
                "instr": Out(instr(cfg)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        cfg, x, out = self.cfg, self.fields, self.instr
        row_last = cfg.x_rows - 1
        distance_log2 = cfg.x_tiles.bit_length() - 1

        def tile(register):
            return register << distance_log2

        m.d.comb += [
            out.kind.eq(
                Mux(
                    x.mma | x.point,
                    InstrKind.MMA,
                    Mux(x.load, InstrKind.LOAD, Mux(x.store, InstrKind.STORE, InstrKind.MOVE)),
                )
            ),
        ]

        # -- multiply-accumulate: the whole destination is walked, for its zeros ------------------
        mma = out.mma
        m.d.comb += [
            mma.a.eq(tile(x.ms1)),
            mma.b.eq(tile(x.ms2)),
            mma.c.eq(tile(x.md)),
            mma.m_most.eq(row_last),
            mma.m_last.eq(row_last),
            mma.n_most.eq(Mux(x.b_pair, 2 * row_last + 1, row_last)),
            mma.n_last.eq(mma.n_most),
            mma.width_log2.eq(x.width_log2),
            mma.op.ft.eq(x.ft),
            mma.op.out.eq(x.out),
            mma.op.k.eq(x.k),
            mma.op.a_unsigned.eq(x.a_unsigned),
            mma.op.b_unsigned.eq(x.b_unsigned),
            mma.registers.eq(1),
            mma.m_live.eq(x.m),
            mma.n_live.eq(x.n),
        ]

        # -- pointwise: ms2 op ms1; a row of ms1 is read and held ---------------------------------
        point = mma.op.point
        with m.If(x.point):
            m.d.comb += [
                mma.a.eq(tile(x.ms2)),
                mma.b.eq(tile(Mux(x.scalar, x.ms2, x.ms1))),
                mma.op.k.eq(x.k_bytes),
                mma.op.overwrite.eq(1),
                point.on.eq(1),
                point.kind.eq(x.op),
                point.wide.eq(x.wide),
                point.rnd.eq(x.rounding),
                point.row.eq(x.row),
                point.source.eq(PointSource.WORD),
            ]
            with m.If(x.by_row):
                m.d.comb += point.source.eq(PointSource.ROW)
            with m.If(x.scalar):
                m.d.comb += point.source.eq(PointSource.SCALAR)

        # -- load and store: a part of one register, or whole ones ------------------------------
        ldst = out.ldst
        last_byte = Signal(cfg.row_bytes_log2)
        stride = Signal(cfg.addr_bits)
        m.d.comb += [
            last_byte.eq(Mux(x.whole, cfg.row_bytes - 1, x.k_bytes - 1)),
            stride.eq(Mux(x.whole, cfg.row_bytes, self.stride)),
            ldst.tile.eq(tile(x.md)),
            ldst.tiles.eq(x.registers),
            ldst.down.eq(x.whole),
            ldst.group_stride.eq(cfg.x_tiles),
            ldst.pitch.eq(cfg.row_bytes),
            ldst.tile_last.eq(x.registers),
            ldst.rows_most.eq(row_last),
            ldst.rows_last.eq(Mux(x.whole, row_last, x.m - 1)),
            ldst.bytes_most.eq(last_byte),
            ldst.bytes_last.eq(last_byte),
            ldst.base.eq(self.base),
            ldst.stride.eq(stride),
            ldst.contiguous.eq(stride == cfg.row_bytes),
            ldst.fill.eq(x.load & ~x.whole & (x.m != cfg.x_rows)),
            ldst.registers.eq(1),
        ]

        # -- move -------------------------------------------------------------------------------
        move = out.move
        operation = Signal(move.op.shape())
        with m.If(x.zero):
            m.d.comb += operation.eq(isa.MoveOp.MZERO)
        with m.Elif(x.scalar):
            m.d.comb += operation.eq(isa.MoveOp.SCALAR)
        with m.Elif(x.by_row):
            m.d.comb += operation.eq(isa.MoveOp.ROW)
        with m.Else():
            m.d.comb += operation.eq(isa.MoveOp.MMOV)
        m.d.comb += [
            move.dst.eq(tile(x.md)),
            move.src.eq(tile(x.ms1)),
            move.op.eq(operation),
            move.size.eq(Mux(x.scalar, 3, 0)),
            move.at.eq(x.row << cfg.row_bytes_log2),
            move.registers.eq(1),
        ]
        return m
