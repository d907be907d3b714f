"""The instruction table of the front end `xuantie` (isa.md section 1), the only copy of it.

The fields are those of the XuanTie matrix extension v0.2. As with `ame`, the decoder, the
assembler, the architectural model, the tests and the documents are all made from these rows. A row
says not only how its words look but also what they mean, as plain data (`XuanTieInstruction`).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, IntEnum

from ..formats import FORMATS
from .ame import FUNCT3, OPCODE, RD, RS1, RS2
from .fields import Field, Instruction, Operand, OperandKind

__all__ = [
    "FUNC",
    "MD",
    "MREGS",
    "MS1",
    "MS2",
    "NF",
    "OPCODE_XUANTIE",
    "RS1_LOW",
    "SIZE",
    "UIMM7",
    "UOP",
    "WIDE_BIT",
    "WORD_RELEASE",
    "XUANTIE",
    "Form",
    "MemoryFunc",
    "Mma",
    "PointwiseOp",
    "SizeIndex",
    "Uop",
    "XuanTieInstruction",
    "XuanTieKind",
]

OPCODE_XUANTIE = 0x2B  # custom-1; funct3 is 000 in every instruction

MREGS = 8
"""Matrix registers m0..m7."""

MD = Field(7, 3)  # also ms3, the source of a store
SIZE = Field(10, 2)  # log2 of the element's bytes
RS1_LOW = Field(15, 3)  # rs1' (the scalar register 8 + n), a row number, or a fixed pattern
MS1 = Field(18, 3)
MS2 = Field(21, 3)
WIDE_BIT = Field(24, 1)
UOP = Field(25, 3)
FUNC = Field(28, 4)
NF = Field(20, 3)  # whole-register loads and stores: registers - 1
NF_ZERO = Field(23, 2)
UIMM7 = Field(18, 7)

WORD_RELEASE = 0x7E00002B
"""mrelease: mcfgi with rd and the constant 0."""


class Uop(IntEnum):
    """uop, for everything but the four forms of moves and pointwise operations."""

    MATRIX = 0
    LOAD = 4
    STORE = 5
    CONFIG = 7


class Form(IntEnum):
    """Where a move or a pointwise operation takes its second operand from; the value is uop."""

    MM = 0  # ms1, element by element
    MV_X = 1  # one row of ms1, its number in the scalar register rs1'
    MV_I = 2  # one row of ms1, its number in the word
    MX = 3  # the scalar register rs1'


class PointwiseOp(IntEnum):
    """Pointwise operations, `ms2 op ms1`; the value is func."""

    MADD = 3
    MSUB = 4
    MSRA = 5
    MN4CLIP = 6
    MN4CLIPU = 7
    MMUL = 8
    MMULH = 9


class MemoryFunc(IntEnum):
    """func of loads and stores."""

    STRIDED = 0
    STREAM = 1
    WHOLE = 2


class SizeIndex(IntEnum):
    """What a config instruction sets; func's low three bits."""

    K = 0
    M = 1
    N = 2
    ALL = 7


class XuanTieKind(Enum):
    """What a row does, and so which of its other members have a meaning."""

    MMA = "mma"  # mma
    LOAD = "load"  # size, stream or registers
    STORE = "store"  # size, stream or registers
    MMOV = "mmov"  # form
    POINTWISE = "pointwise"  # op, form, size
    ZERO = "zero"
    CONFIG = "config"  # index, immediate
    RELEASE = "release"


@dataclass(frozen=True)
class Mma:
    """What a multiply-accumulate works on.

    Parameters
    ----------
    operand : format of A and B; BF16 takes FP16's place where `Config.xuantie_bf16` is set.
    output : format of C.
    a_signed, b_signed : how integers are read.
    """

    operand: str
    output: str
    a_signed: bool = True
    b_signed: bool = True

    @property
    def b_pair(self) -> bool:
        """B is the pair ms2, ms2+1: N may be twice the rows of a register."""
        return FORMATS[self.output].container == 16

    @property
    def c_pair(self) -> bool:
        """C is the pair md, md+1: half of a row's columns in each."""
        return FORMATS[self.output].container == 64


@dataclass(frozen=True, kw_only=True)
class XuanTieInstruction(Instruction):
    """One row of the table, with its meaning.

    A word is the first row of the table that it matches: mrelease stands before mcfgi.

    Parameters
    ----------
    kind : what the instruction does.
    size : log2 of the bytes that sizeK must be a multiple of, the element's (pmmaqa's: a byte).
    mma : the multiply-accumulate.
    form, op : of moves and pointwise operations.
    stream : a load or store with the streaming hint.
    registers : registers that a whole-register load or store moves; 0 if it moves M rows of K
        bytes. md must be a multiple of it.
    index, immediate : what a config instruction sets, and whether from uimm7 instead of rs1.
    feature : the bit of xmisa that says whether the instruction is built; None: always.
    """

    kind: XuanTieKind
    size: int = 0
    mma: Mma | None = None
    form: Form | None = None
    op: PointwiseOp | None = None
    stream: bool = False
    registers: int = 0
    index: SizeIndex | None = None
    immediate: bool = False
    feature: str | None = None

    @property
    def writes_back(self) -> bool:
        """The response carries a value for rd."""
        return self.kind is XuanTieKind.CONFIG

    @property
    def is_memory(self) -> bool:
        """Loads or stores."""
        return self.kind in (XuanTieKind.LOAD, XuanTieKind.STORE)


# -- operands --------------------------------------------------------------------------------


def _m(name: str, field: Field) -> Operand:
    return Operand(name, field, OperandKind.MREG)


_MD, _MS1, _MS2 = _m("md", MD), _m("ms1", MS1), _m("ms2", MS2)
_MS3 = _m("ms3", MD)
_BASE = Operand("rs1", RS1, OperandKind.BASE)
_STRIDE = Operand("rs2", RS2, OperandKind.XREG)
_RD = Operand("rd", RD, OperandKind.XREG)
_SCALAR = Operand("rs1", RS1_LOW, OperandKind.XREG_LOW)
_SECOND = {  # by form: operands behind md and ms2
    Form.MM: (_MS1,),
    Form.MV_X: (_MS1, Operand("row", RS1_LOW, OperandKind.ROW_XREG)),
    Form.MV_I: (_MS1, Operand("row", RS1_LOW, OperandKind.ROW)),
    Form.MX: (_SCALAR,),
}
_FORM_NAMES = {Form.MM: "mm", Form.MV_X: "mv.x", Form.MV_I: "mv.i", Form.MX: "mx"}

# -- rows ------------------------------------------------------------------------------------

_FIXED = (OPCODE, FUNCT3, UOP, FUNC)
_BYTES, _HALVES, _WORDS, _DOUBLES = range(4)


def _row(
    name: str,
    func: int,
    uop: int,
    fields: dict[Field, int],
    operands: tuple[Operand, ...],
    **meaning: object,
) -> XuanTieInstruction:
    """A row whose func, uop and `fields` are fixed."""
    match = OPCODE.put(OPCODE_XUANTIE) | FUNC.put(func) | UOP.put(uop)
    mask = 0
    for field in (*_FIXED, *fields):
        mask |= field.mask
    for field, value in fields.items():
        match |= field.put(value)
    return XuanTieInstruction(name, match, mask, operands, **meaning)


def _mma(name: str, func: int, size: int, mma: Mma, feature: str, wide: int = 0, low: int = 0):
    fields = {WIDE_BIT: wide, RS1_LOW: low, SIZE: size}
    return _row(
        name,
        func,
        Uop.MATRIX,
        fields,
        (_MD, _MS2, _MS1),
        kind=XuanTieKind.MMA,
        size=size,
        mma=mma,
        feature=feature,
    )


def _integer_mmas() -> tuple[XuanTieInstruction, ...]:
    signs = (("", True, True), ("u", False, False), ("us", False, True), ("su", True, False))
    rows = []
    for low, (suffix, *signed) in enumerate(signs):
        for name, size, wide, operand, output, feature in (
            ("mmaqa{}.b", _BYTES, 0, "int8", "int32", "i8"),
            ("mmaqa{}.h", _HALVES, 0, "int16", "int64", "i16"),
            ("pmmaqa{}.b", _BYTES, 1, "int4", "int32", "i4"),
        ):
            mma = Mma(operand, output, *signed)
            rows.append(_mma(name.format(suffix), 2, size, mma, feature, wide, low))
    return tuple(rows)


def _mmov(form: Form) -> XuanTieInstruction:
    fields = {SIZE: 0, WIDE_BIT: 0, MS2: 0}
    if form is Form.MM:
        fields[RS1_LOW] = 1
    elif form is Form.MX:
        fields[MS1] = 0
    name = f"mmov.{_FORM_NAMES[form]}"
    return _row(name, 0, form, fields, (_MD, *_SECOND[form]), kind=XuanTieKind.MMOV, form=form)


def _pointwise(op: PointwiseOp, size: int, form: Form) -> XuanTieInstruction:
    fields = {SIZE: size, WIDE_BIT: 0}
    if form is Form.MM:
        fields[RS1_LOW] = 0
    elif form is Form.MX:
        fields[MS1] = 0
    return _row(
        f"{op.name.lower()}.{'bhsd'[size]}.{_FORM_NAMES[form]}",
        op,
        form,
        fields,
        (_MD, _MS2, *_SECOND[form]),
        kind=XuanTieKind.POINTWISE,
        size=size,
        form=form,
        op=op,
        feature={_WORDS: "pointwise32", _DOUBLES: "pointwise64"}[size],
    )


def _memory(size: int) -> tuple[XuanTieInstruction, ...]:
    """Loads and stores of one element size, in every way."""
    letter = "bhwd"[size]
    rows = []
    ways = (
        (XuanTieKind.LOAD, Uop.LOAD, "ld", _MD),
        (XuanTieKind.STORE, Uop.STORE, "st", _MS3),
    )
    for func, stream in ((MemoryFunc.STRIDED, False), (MemoryFunc.STREAM, True)):
        for kind, uop, verb, register in ways:
            rows.append(
                _row(
                    f"m{'s' if stream else ''}{verb}{letter}",
                    func,
                    uop,
                    {SIZE: size},
                    (register, _STRIDE, _BASE),
                    kind=kind,
                    size=size,
                    stream=stream,
                )
            )
    for registers in (1, 2, 4, 8):
        for kind, uop, verb, register in ways:
            rows.append(
                _row(
                    f"m{verb}{registers}m{letter}",
                    MemoryFunc.WHOLE,
                    uop,
                    {SIZE: size, NF: registers - 1, NF_ZERO: 0},
                    (register, _BASE),
                    kind=kind,
                    size=size,
                    registers=registers,
                )
            )
    return tuple(rows)


def _config(index: SizeIndex) -> tuple[XuanTieInstruction, ...]:
    """Both forms: the constant one clears func's top bit, the register one sets it."""
    name = "mcfg" if index is SizeIndex.ALL else f"mcfg{index.name.lower()}"
    meaning = {"kind": XuanTieKind.CONFIG, "index": index}
    constant = Operand("uimm", UIMM7, OperandKind.UIMM)
    register = Operand("rs1", RS1, OperandKind.XREG)
    return (
        _row(
            f"{name}i",
            index,
            Uop.CONFIG,
            {RS1_LOW: 0},
            (_RD, constant),
            immediate=True,
            **meaning,
        ),
        _row(name, 8 | index, Uop.CONFIG, {RS2: 0}, (_RD, register), **meaning),
    )


XUANTIE: tuple[XuanTieInstruction, ...] = (
    XuanTieInstruction(
        "th.mrelease", WORD_RELEASE, 0xFFFFFFFF, kind=XuanTieKind.RELEASE
    ),  # before mcfgi
    *(_mmov(form) for form in Form),
    _mma("fmmacc.h", 1, _HALVES, Mma("fp16", "fp16"), "f16"),
    _mma("fmmacc.s", 1, _WORDS, Mma("fp32", "fp32"), "f32"),
    _mma("fmmacc.d", 1, _DOUBLES, Mma("fp64", "fp64"), "f64"),
    _mma("fwmmacc.h", 1, _HALVES, Mma("fp16", "fp32"), "f16_f32", wide=1),
    _mma("fwmmacc.s", 1, _WORDS, Mma("fp32", "fp64"), "f32_f64", wide=1),
    *_integer_mmas(),
    *(
        _pointwise(op, size, form)
        for op in PointwiseOp
        for size in (_WORDS, _DOUBLES)
        for form in Form
    ),
    *(row for size in range(4) for row in _memory(size)),
    *(row for index in SizeIndex for row in _config(index)),
    _row(
        "mzero",
        10,
        Uop.MATRIX,
        {SIZE: 0, RS1_LOW: 0, MS1: 0, MS2: 0, WIDE_BIT: 0},
        (_MD,),
        kind=XuanTieKind.ZERO,
    ),
)
"""Every instruction of isa.md section 1, built or not; the first row that matches a word is it."""
