"""Stage B of the decoder: legal or not, by the instruction tables; the CSR access."""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from .. import isa
from ..config import Config
from ..interfaces import ERROR_ILLEGAL, ERROR_NONE, host_request
from .csr import CsrFile
from .register_word import RegisterWord
from .stages import stage_layouts

__all__ = ["WordStage"]


class WordStage(wiring.Component):
    """Reads the word against the tables of `hdl.isa` and accesses the CSRs it holds.

    Members
    -------
    before, after : the request; what stage B's register is to hold. Combinational.
    leaves : the request moves on, so its CSR write takes effect.
    decode_empty, settled : older instructions have left the decoder; all their work is done.
    held : the request must wait for them.
    status, dirty, initial : see `CsrFile`.
    """

    def __init__(self, cfg: Config):
        self.cfg = cfg
        super().__init__(
            {
                "before": In(host_request(cfg)),
                "after": Out(stage_layouts(cfg)["b"]),
                "leaves": In(1),
                "decode_empty": In(1),
                "settled": In(1),
                "held": Out(1),
                "status": In(isa.MXSTATUS_BITS),
                "dirty": In(1),
                "initial": In(1),
                **({"saturated": In(1)} if cfg.xuantie else {}),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.csr = csr = CsrFile(self.cfg)
        a, b = self.before, self.after
        m.d.comb += [
            csr.status.eq(self.status),
            csr.dirty.eq(self.dirty),
            csr.initial.eq(self.initial),
        ]
        cfg = self.cfg
        inst = a.inst

        def field(f):
            return inst[f.lo : f.lo + f.width]

        built = isa.built_instructions(cfg)
        rows = [row for row in isa.AME if row.name in built]
        hit: dict[str, object] = {}
        for row in rows:
            match = (inst & row.mask) == row.match
            for operand in row.operands:
                if operand.limit is not None:
                    match = match & (field(operand.field) <= operand.limit)
                if operand.name == "cfile" and cfg.accumulators != "split":
                    match = match & ~field(operand.field).any()
            wire = Signal(name="is_" + row.name.replace(".", "_"))
            m.d.comb += wire.eq(match)
            hit[row.name] = wire

        def any_of(names):
            return Cat(Const(0), *(wire for name, wire in hit.items() if name in names)).any()

        csr_names = {funct3.name.lower() for funct3 in isa.CsrFunct3}
        is_csr = Signal()
        legal = Signal()
        m.d.comb += is_csr.eq(any_of(csr_names))

        # CSR access: csrrs and csrrc with register (or immediate) 0 do not write.
        funct3 = field(isa.FUNCT3)
        source_zero = field(isa.RS1) == 0
        swap = funct3[:2] == isa.CsrFunct3.CSRRW
        writes = Signal()
        operand = Signal(64)
        m.d.comb += [
            csr.number.eq(inst[20:32]),
            writes.eq(swap | ~source_zero),
            operand.eq(Mux(funct3[2], field(isa.RS1), a.rs1)),
            csr.write.eq(self.leaves & is_csr & legal & writes),
            csr.write_data.eq(
                Mux(
                    swap,
                    operand,
                    Mux(funct3[0], csr.value & ~operand, csr.value | operand),
                )
            ),
            legal.eq(
                Mux(
                    is_csr,
                    csr.known & ~(csr.read_only & writes),
                    Cat(hit.values()).any() & ~csr.off,
                )
            ),
            self.held.eq(
                is_csr
                & legal
                & (
                    (csr.after_all & ~(self.decode_empty & self.settled))
                    | (csr.after_decode & ~self.decode_empty)
                )
            ),
        ]
        mxtile = csr.mxtile
        move_op = field(isa.FUNCT7)[isa.MOVE["op"].lo :][: isa.MOVE["op"].width]
        is_move = Signal()
        m.d.comb += is_move.eq(any_of(isa.MOVE_INSTRUCTIONS))
        is_element = is_move & (move_op == isa.MoveOp.ELEMENT)
        is_scalar = is_move & (move_op == isa.MoveOp.SCALAR)

        def of_tile(name):
            f = isa.MXTILE[name]
            return mxtile[f.lo : f.lo + f.width]

        m.d.comb += [
            b.tag.eq(a.tag),
            b.rd.eq(field(isa.RD)),
            b.wb.eq((is_csr | is_element) & legal & (field(isa.RD) != 0)),
            b.data.eq(
                Mux(
                    is_csr & legal & (field(isa.RD) != 0),
                    csr.value,
                    Mux(is_scalar & legal, a.rs1, 0),
                )
            ),
            b.error.eq(Mux(legal, ERROR_NONE, ERROR_ILLEGAL)),
            b.mmacc.eq(legal & any_of({"mmacc.t"})),
            b.load.eq(legal & any_of({f"mld{w.name.lower()}" for w in isa.LdstWhat})),
            b.store.eq(legal & any_of({f"mst{w.name.lower()}" for w in isa.LdstWhat})),
            b.move.eq(legal & is_move),
            b.vector.eq(legal & any_of(isa.VECTOR_INSTRUCTIONS)),
            b.fence.eq(legal & any_of({"mfence"})),
            b.release.eq(legal & any_of({"mrelease"})),
            b.f7.eq(field(isa.FUNCT7)),
            b.rd_tile.eq(field(isa.RD)),
            b.rs1_tile.eq(field(isa.RS1)),
            b.rs2_tile.eq(field(isa.RS2)),
            b.far.eq(a.rs1[cfg.addr_bits :].any()),
            b.index_far.eq(a.rs2[cfg.rows_log2 + cfg.row_bytes_log2 :].any()),
            b.base.eq(a.rs1),
            b.stride.eq(a.rs2),
            b.mxcfg.eq(csr.mxcfg),
            b.reserved_tile.eq(of_tile("reserved").any()),
        ]
        for name in ("tiling", "guard4x4", "k", "m"):
            m.d.comb += b[name].eq(of_tile(name))
        # N = 0 stands for M.
        m.d.comb += b.n.eq(Mux(of_tile("n") == 0, of_tile("m"), of_tile("n")))
        if cfg.xuantie:
            self._registers(m, csr)
        return m

    def _registers(self, m: Module, csr: CsrFile) -> None:
        """Words of the front end `xuantie`: another opcode, so nothing above knows them."""
        a, b = self.before, self.after
        m.submodules.registers = registers = RegisterWord(self.cfg)
        legal = Signal(name="register_legal")
        wants_rd = Signal()
        rd = isa.RD
        m.d.comb += [
            registers.before.eq(a),
            registers.size.eq(csr.xmsize),
            registers.rounding.eq(csr.xmxrm),
            legal.eq(registers.legal & ~csr.off),
            wants_rd.eq(registers.config & (a.inst[rd.lo : rd.lo + rd.width] != 0)),
            csr.new_size.eq(registers.new_size),
            csr.saturated.eq(self.saturated),
            csr.resize.eq(self.leaves & legal & registers.config),
        ]
        with m.If(legal):
            m.d.comb += [
                b.error.eq(ERROR_NONE),
                b.release.eq(registers.release),
                b.wb.eq(wants_rd),
                b.x.eq(registers.fields),
            ]
            with m.If(wants_rd):
                m.d.comb += b.data.eq(registers.new_size)
            with m.If(registers.fields.scalar):
                m.d.comb += b.data.eq(a.rs1)
