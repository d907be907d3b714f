"""Stage B of the decoder: what a word is, by the instruction tables."""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from .. import isa
from ..config import Config
from ..interfaces import host_request
from .csr import CsrSelect
from .register_word import RegisterWord
from .stages import stage_layouts

__all__ = ["WordStage"]


class WordStage(wiring.Component):
    """Reads a word against the tables of `hdl.isa`; what it says depends on no state.

    Members
    -------
    before, after : the request; what stage B's register is to hold. Combinational.
    """

    def __init__(self, cfg: Config):
        self.cfg = cfg
        super().__init__({"before": In(host_request(cfg)), "after": Out(stage_layouts(cfg)["b"])})

    def elaborate(self, platform):
        m = Module()
        a, b = self.before, self.after
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

        # CSR access: csrrs and csrrc with register (or immediate) 0 do not write.
        csr_names = {funct3.name.lower() for funct3 in isa.CsrFunct3}
        m.submodules.select = select = CsrSelect(cfg)
        csr = b.csr
        funct3 = field(isa.FUNCT3)
        source_zero = field(isa.RS1) == 0
        swap = funct3[:2] == isa.CsrFunct3.CSRRW
        writes = Signal()
        is_csr = Signal()
        allowed = Signal()
        of_csr = Signal()  # the operand is an immediate, if it is one of a CSR instruction
        m.d.comb += [
            select.number.eq(inst[20:32]),
            is_csr.eq(any_of(csr_names)),
            writes.eq(swap | ~source_zero),
            allowed.eq(is_csr & select.known & ~(select.read_only & writes)),
            of_csr.eq((field(isa.OPCODE) == isa.OPCODE_SYSTEM) & funct3[2]),
            csr.on.eq(is_csr),
            csr.allowed.eq(allowed),
            csr.select.eq(select.select),
            csr.write.eq(allowed & writes),
            csr.swap.eq(swap),
            csr.clear.eq(funct3[0]),
            csr.after_all.eq(allowed & select.after_all),
            csr.after_decode.eq(allowed & select.after_decode),
        ]
        move_op = field(isa.FUNCT7)[isa.MOVE["op"].lo :][: isa.MOVE["op"].width]
        is_move = Signal()
        m.d.comb += is_move.eq(any_of(isa.MOVE_INSTRUCTIONS))
        is_element = is_move & (move_op == isa.MoveOp.ELEMENT)
        m.d.comb += [
            b.tag.eq(a.tag),
            b.wb.eq((allowed | is_element) & (field(isa.RD) != 0)),
            b.data.eq(Mux(of_csr, field(isa.RS1), a.rs1)),
            b.known.eq(any_of(set(hit) - csr_names)),
            b.mmacc.eq(any_of({"mmacc.t"})),
            b.load.eq(any_of({f"mld{w.name.lower()}" for w in isa.LdstWhat})),
            b.store.eq(any_of({f"mst{w.name.lower()}" for w in isa.LdstWhat})),
            b.move.eq(is_move),
            b.vector.eq(any_of(isa.VECTOR_INSTRUCTIONS)),
            b.fence.eq(any_of({"mfence"})),
            b.release.eq(any_of({"mrelease"})),
            b.f7.eq(field(isa.FUNCT7)),
            b.rd_tile.eq(field(isa.RD)),
            b.rs1_tile.eq(field(isa.RS1)),
            b.rs2_tile.eq(field(isa.RS2)),
            b.far.eq(a.rs1[cfg.addr_bits :].any()),
            b.index_far.eq(a.rs2[cfg.rows_log2 + cfg.row_bytes_log2 :].any()),
            b.stride.eq(a.rs2),
        ]
        if cfg.xuantie:
            self._registers(m, any_of(set(hit) - csr_names))
        return m

    def _registers(self, m: Module, known) -> None:
        """Words of the front end `xuantie`: another opcode, so nothing above knows them."""
        a, b = self.before, self.after
        m.submodules.registers = registers = RegisterWord(self.cfg)
        rd, uimm7 = isa.RD, isa.UIMM7
        m.d.comb += [
            registers.before.eq(a),
            b.known.eq(known | registers.legal),
            b.x_word.eq(registers.fields),
        ]
        with m.If(registers.legal):
            m.d.comb += b.release.eq(registers.release)
        with m.If(registers.legal & registers.fields.config):
            m.d.comb += b.wb.eq(a.inst[rd.lo : rd.lo + rd.width] != 0)
            with m.If(registers.immediate):
                m.d.comb += b.data.eq(a.inst[uimm7.lo : uimm7.lo + uimm7.width])
