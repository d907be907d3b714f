"""Stages B and D of the decoder for the front end `xuantie`: legal or not, what it asks for."""

from __future__ import annotations

from itertools import count

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from .. import isa
from ..config import REGISTERS, Config
from ..interfaces import host_request
from ..units.point_op import PointOp
from .stages import carry, register_fields, register_word_fields

__all__ = ["RegisterSizes", "RegisterWord"]

POINT_OPS = {
    isa.PointwiseOp.MADD: PointOp.ADD,
    isa.PointwiseOp.MSUB: PointOp.SUB,
    isa.PointwiseOp.MSRA: PointOp.SRA,
    isa.PointwiseOp.MN4CLIP: PointOp.CLIP,
    isa.PointwiseOp.MN4CLIPU: PointOp.CLIPU,
    isa.PointwiseOp.MMUL: PointOp.MUL,
    isa.PointwiseOp.MMULH: PointOp.MULH,
}
"""What the pointwise unit is asked for."""


class RegisterWord(wiring.Component):
    """Reads a word against the table of the front end; combinational.

    Members
    -------
    before : the request.
    legal : the word is an instruction that may be executed with some sizes.
    immediate : an mcfg's operand is in the word.
    release : it is mrelease.
    fields : everything else, with `on` for what goes to a unit.

    Source: isa.md section 1.
    """

    def __init__(self, cfg: Config):
        self.cfg = cfg
        super().__init__(
            {
                "before": In(host_request(cfg)),
                "legal": Out(1),
                "immediate": Out(1),
                "release": Out(1),
                "fields": Out(register_word_fields(cfg)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        cfg, out = self.cfg, self.fields
        inst = self.before.inst
        kinds = isa.XuanTieKind

        def field(f):
            return inst[f.lo : f.lo + f.width]

        # -- which row -------------------------------------------------------------------------
        rows = isa.built_xuantie(cfg)
        hits = []
        released = Signal()
        for row in rows:
            match = (inst & row.mask) == row.match
            if row.kind is kinds.RELEASE:
                m.d.comb += released.eq(match)
            elif row.kind is kinds.CONFIG:
                match = match & ~released
            hit = Signal(name="is_" + row.name.replace(".", "_"))
            m.d.comb += hit.eq(match)
            hits.append((row, hit))

        def any_of(condition) -> Value:
            return Cat(hit for row, hit in hits if condition(row)).any()

        def of_kind(kind):
            return any_of(lambda row: row.kind is kind)

        def number(of, bits: int) -> Signal:
            """`of(row)` of the row that matches."""
            total = Signal(bits)
            value: Value | int = 0
            for bit in range(bits):
                chosen = any_of(lambda row, bit=bit: (of(row) or 0) >> bit & 1)
                value = value | chosen << bit
            m.d.comb += total.eq(value)
            return total

        mma, load, store = (of_kind(k) for k in (kinds.MMA, kinds.LOAD, kinds.STORE))
        move, point = of_kind(kinds.MMOV), of_kind(kinds.POINTWISE)
        zero = of_kind(kinds.ZERO)

        whole = any_of(lambda row: row.registers)
        size_log2 = number(lambda row: row.size, 2)
        b_pair = any_of(lambda row: row.mma and row.mma.b_pair)
        c_pair = any_of(lambda row: row.mma and row.mma.c_pair)

        # -- registers --------------------------------------------------------------------------
        def one(register, both):
            """Mask of a register, or of a pair."""
            mask = Signal(REGISTERS, name=f"mask{next(names)}")
            m.d.comb += mask.eq((1 << register) | Mux(both, 1 << (register | 1), 0))
            return mask

        names = count()
        md, ms1, ms2 = field(isa.MD), field(isa.MS1), field(isa.MS2)
        allowed = isa.destinations(cfg)
        registers = number(lambda row: max(0, row.registers - 1), 3)
        bad_pair = (b_pair & ms2[0]) | (c_pair & md[0])
        bad_destination = mma & ~Cat(md == n for n in sorted(allowed)).any()
        overlap = (one(md, c_pair) & (one(ms1, 0) | one(ms2, b_pair))).any()
        bad_whole = whole & (md & registers).any()

        # -- the second operand of moves and pointwise instructions ------------------------------
        form = field(isa.UOP)[:2]
        by_row = (form == isa.Form.MV_X) | (form == isa.Form.MV_I)
        scalar = form == isa.Form.MX
        index = Signal(64)
        m.d.comb += index.eq(Mux(form == isa.Form.MV_X, self.before.rs1, field(isa.RS1_LOW)))
        bad_row = (move | point) & by_row & (index >= cfg.x_rows)

        m.d.comb += [
            self.legal.eq(
                Cat(hit for _, hit in hits).any()
                & ~(mma & overlap)
                & ~(bad_pair | bad_destination | bad_whole | bad_row)
            ),
            self.immediate.eq(any_of(lambda row: row.immediate)),
            self.release.eq(released),
        ]

        # -- what the units need ------------------------------------------------------------------
        outs = cfg.output_formats
        formats = [row.name for row in cfg.format_rows]

        def operand(row):
            return formats.index(isa.mma_formats(row, cfg)[0].name) if row.mma else 0

        def result(row):
            return outs.index(isa.mma_formats(row, cfg)[1]) if row.mma else 0

        def width(row):
            return isa.mma_formats(row, cfg)[1].container.bit_length() - 4 if row.mma else 0

        def of_nibbles(row):
            return row.mma is not None and row.mma.operand == "int4"

        m.d.comb += [
            out.config.eq(of_kind(kinds.CONFIG)),
            out.index.eq(number(lambda row: row.index if row.index is not None else 0, 3)),
            out.mma.eq(mma),
            out.load.eq(load),
            out.store.eq(store),
            out.move.eq(move | zero),
            out.point.eq(point),
            out.on.eq(mma | load | store | move | zero | point),
            out.md.eq(md),
            out.ms1.eq(ms1),
            out.ms2.eq(ms2),
            out.whole.eq(whole),
            out.registers.eq(registers),
            out.size_log2.eq(size_log2),
            out.nibbles.eq(any_of(of_nibbles)),
            out.ft.eq(number(operand, len(out.ft))),
            out.out.eq(number(result, len(out.out))),
            out.width_log2.eq(number(width, 2)),
            out.a_unsigned.eq(any_of(lambda row: row.mma and not row.mma.a_signed)),
            out.b_unsigned.eq(any_of(lambda row: row.mma and not row.mma.b_signed)),
            out.b_pair.eq(b_pair),
            out.c_pair.eq(c_pair),
            out.row.eq(index),
            out.by_row.eq(by_row),
            out.scalar.eq((move | point) & scalar),
            out.zero.eq(zero),
            out.op.eq(number(lambda row: POINT_OPS[row.op] if row.op else 0, len(out.op))),
            out.wide.eq(size_log2 == 3),
        ]
        return m


class RegisterSizes(wiring.Component):
    """Checks the sizes that an instruction took along, and adds them; combinational.

    Members
    -------
    word : as `RegisterWord` gives it.
    size, rounding : xmsize and xmxrm.
    bad : the instruction may not be executed with these sizes.
    fields : what it asks of a unit.

    Source: isa.md section 1.
    """

    def __init__(self, cfg: Config):
        self.cfg = cfg
        super().__init__(
            {
                "word": In(register_word_fields(cfg)),
                "size": In(isa.XUANTIE_CSRS[isa.XCsr.XMSIZE].bits),
                "rounding": In(isa.XUANTIE_CSRS[isa.XCsr.XMXRM].bits),
                "bad": Out(1),
                "fields": Out(register_fields(cfg)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        cfg, word, out = self.cfg, self.word, self.fields

        def of_size(name):
            f = isa.XMSIZE[name]
            return self.size[f.lo : f.lo + f.width]

        size_m, size_n, size_k = (of_size(name) for name in "mnk")
        uneven = Signal()
        m.d.comb += uneven.eq((size_k & ((1 << word.size_log2) - 1)).any())
        bad_m = (size_m == 0) | (size_m > cfg.x_rows)
        bad_k = (size_k == 0) | (size_k > cfg.row_bytes) | uneven
        bad_n = (size_n == 0) | (size_n > Mux(word.b_pair, 2 * cfg.x_rows, cfg.x_rows))
        uses_size = word.mma | ((word.load | word.store) & ~word.whole) | word.point
        carry(m, word, out)
        m.d.comb += [
            self.bad.eq((uses_size & (bad_m | bad_k)) | (word.mma & bad_n)),
            out.on.eq(word.on & ~self.bad),
            out.m.eq(size_m),
            out.n.eq(size_n),
            out.k_bytes.eq(size_k),
            out.k.eq(Mux(word.nibbles, size_k << 1, size_k >> word.size_log2)),
            out.rounding.eq(self.rounding),
        ]
        return m
