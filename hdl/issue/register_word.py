"""Stage B of the decoder for the front end `xuantie`: legal or not, and what it asks for."""

from __future__ import annotations

from itertools import count

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from .. import isa
from ..config import REGISTERS, Config
from ..interfaces import host_request
from ..units.point_op import PointOp
from .stages import register_fields

__all__ = ["RegisterWord"]

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
    """Reads a word against the table of the front end, and the sizes it uses; combinational.

    Members
    -------
    before : the request.
    size, rounding : xmsize and xmxrm.
    legal : the word is an instruction that may be executed with these sizes.
    config, new_size : it is an mcfg; what xmsize becomes, and rd too.
    release : it is mrelease.
    fields : everything else, with `on` for what goes to a unit.

    Source: isa.md section 1.
    """

    def __init__(self, cfg: Config):
        self.cfg = cfg
        super().__init__(
            {
                "before": In(host_request(cfg)),
                "size": In(isa.XUANTIE_CSRS[isa.XCsr.XMSIZE].bits),
                "rounding": In(isa.XUANTIE_CSRS[isa.XCsr.XMXRM].bits),
                "legal": Out(1),
                "config": Out(1),
                "new_size": Out(isa.XUANTIE_CSRS[isa.XCsr.XMSIZE].bits),
                "release": Out(1),
                "fields": Out(register_fields(cfg)),
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

        # -- sizes, checked where they are used -------------------------------------------------
        def of_size(name):
            f = isa.XMSIZE[name]
            return self.size[f.lo : f.lo + f.width]

        size_m, size_n, size_k = (of_size(name) for name in "mnk")
        whole = any_of(lambda row: row.registers)
        size_log2 = number(lambda row: row.size, 2)
        b_pair = any_of(lambda row: row.mma and row.mma.b_pair)
        c_pair = any_of(lambda row: row.mma and row.mma.c_pair)
        uneven = Signal()
        m.d.comb += uneven.eq((size_k & ((1 << size_log2) - 1)).any())
        bad_m = (size_m == 0) | (size_m > cfg.x_rows)
        bad_k = (size_k == 0) | (size_k > cfg.row_bytes) | uneven
        bad_n = (size_n == 0) | (size_n > Mux(b_pair, 2 * cfg.x_rows, cfg.x_rows))
        uses_size = mma | ((load | store) & ~whole) | point

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
                & ~(uses_size & (bad_m | bad_k))
                & ~(mma & (bad_n | overlap))
                & ~(bad_pair | bad_destination | bad_whole | bad_row)
            ),
            self.config.eq(of_kind(kinds.CONFIG)),
            self.release.eq(released),
        ]

        # -- mcfg -------------------------------------------------------------------------------
        immediate = any_of(lambda row: row.immediate)
        setting = Signal(len(self.new_size))
        which = number(lambda row: row.index if row.index is not None else 0, 3)
        m.d.comb += [
            setting.eq(Mux(immediate, field(isa.UIMM7), self.before.rs1)),
            self.new_size.eq(self.size),
        ]
        with m.Switch(which):
            for name, part in isa.XMSIZE.items():
                with m.Case(isa.SizeIndex[name.upper()]):
                    m.d.comb += self.new_size[part.lo : part.lo + part.width].eq(setting)
            with m.Case(isa.SizeIndex.ALL):
                m.d.comb += self.new_size.eq(setting)

        # -- what the units need ------------------------------------------------------------------
        outs = cfg.output_formats
        formats = [row.name for row in cfg.format_rows]

        def operand(row):
            return formats.index(isa.mma_formats(row, cfg)[0].name) if row.mma else 0

        def result(row):
            return outs.index(isa.mma_formats(row, cfg)[1]) if row.mma else 0

        def width(row):
            return isa.mma_formats(row, cfg)[1].container.bit_length() - 4 if row.mma else 0

        def lanes_log2(row):
            """log2 of elements in a byte, for those of half a byte."""
            return row.mma is not None and row.mma.operand == "int4"

        elements = Signal(out.k.shape())
        m.d.comb += elements.eq(Mux(any_of(lanes_log2), size_k << 1, size_k >> size_log2))
        m.d.comb += [
            out.mma.eq(mma),
            out.load.eq(load),
            out.store.eq(store),
            out.move.eq(move | zero),
            out.point.eq(point),
            out.on.eq(mma | load | store | move | zero | point),
            out.md.eq(md),
            out.ms1.eq(ms1),
            out.ms2.eq(ms2),
            out.m.eq(size_m),
            out.n.eq(size_n),
            out.k_bytes.eq(size_k),
            out.whole.eq(whole),
            out.registers.eq(registers),
            out.ft.eq(number(operand, len(out.ft))),
            out.out.eq(number(result, len(out.out))),
            out.width_log2.eq(number(width, 2)),
            out.k.eq(elements),
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
            out.rounding.eq(self.rounding),
        ]
        return m
