"""The instruction table of the front end `ame` (isa.md section 2), the only copy of it.

The decoder, the assembler, the architectural model, the tests and the generated documents are all
made from these rows and numbers.
"""

from __future__ import annotations

from enum import IntEnum

from .fields import Field, Instruction, Operand, OperandKind

__all__ = [
    "AME",
    "BTR_NATIVE",
    "FUNCT3",
    "FUNCT7",
    "IMM",
    "LDST",
    "MAX_LOG2_TILES",
    "MOVE",
    "OPCODE",
    "OPCODE_AME",
    "OPCODE_SYSTEM",
    "RD",
    "RS1",
    "RS2",
    "VECTOR",
    "VECTOR_WITHOUT_Z",
    "CsrFunct3",
    "Funct3",
    "LdstWhat",
    "MoveOp",
    "SystemOp",
    "VectorOp",
]

OPCODE_AME = 0x7B  # custom-3
OPCODE_SYSTEM = 0x73

OPCODE = Field(0, 7)
RD = Field(7, 5)
FUNCT3 = Field(12, 3)
RS1 = Field(15, 5)
RS2 = Field(20, 5)
FUNCT7 = Field(25, 7)
CSR_NUMBER = Field(20, 12)


class Funct3(IntEnum):
    """funct3 of the opcode `OPCODE_AME`."""

    MMACC = 0
    MMACC_MX = 1
    MLD = 2
    MST = 3
    MOVE = 4
    VECTOR = 5
    MPOOL = 6
    SYSTEM = 7


class CsrFunct3(IntEnum):
    """funct3 of the opcode `OPCODE_SYSTEM`; bit 2 set: the operand is rs1's number itself."""

    CSRRW = 1
    CSRRS = 2
    CSRRC = 3
    CSRRWI = 5
    CSRRSI = 6
    CSRRCI = 7


# The fields below are relative to f7 = word[31:25].

IMM = {"btr": Field(0, 2), "beta": Field(2, 1), "alpha": Field(3, 1), "zero": Field(4, 3)}
"""mmacc: imm. `btr` holds bTR of seed 000 xor `BTR_NATIVE`; `zero` must be 0."""

BTR_NATIVE = 0b01
"""bTR of A x B^T, B held N x K. Bit 1 transposes A, bit 0 B."""

LDST = {
    "what": Field(0, 2),
    "n_log2": Field(2, 2),
    "down": Field(4, 1),
    "stream": Field(5, 1),
    "cfile": Field(6, 1),
}
"""mld and mst."""


class LdstWhat(IntEnum):
    """What a load or store moves."""

    A = 0
    B = 1
    C = 2
    R = 3


MOVE = {"size": Field(0, 3), "op": Field(3, 3), "cfile": Field(6, 1)}
"""Moves: `size` is log2 of tiles or of element bytes."""


class MoveOp(IntEnum):
    """Moves' f7[5:3]."""

    MMOV = 0
    MZERO = 1
    MTRANS = 2
    ROW = 3
    COLUMN = 4
    SCALAR = 5
    ELEMENT = 6
    MMOV_OTHER = 7


MAX_LOG2_TILES = 5
"""Largest log2 tiles of a move; above it is illegal."""

VECTOR = {"op": Field(0, 3), "wide": Field(3, 1), "zero": Field(4, 2), "cfile": Field(6, 1)}
"""Vector mode: `wide` z has the output format; `zero` must be 0."""


class VectorOp(IntEnum):
    """Vector mode's f7[2:0]."""

    MUL_ADD = 0
    MUL = 1
    ADD_X = 2
    ADD_Y = 3
    MAX = 4
    MIN = 5


VECTOR_WITHOUT_Z = (VectorOp.MUL, VectorOp.MAX, VectorOp.MIN)
"""Operations of the vector mode that the old z takes no part in."""


class SystemOp(IntEnum):
    """funct3 SYSTEM's f7."""

    MFENCE = 0
    MRELEASE = 1
    MSYMSTAT = 2


# -- rows ------------------------------------------------------------------------------------


def _f7(field: Field) -> Field:
    """A field of f7 as a field of the word."""
    return Field(FUNCT7.lo + field.lo, field.width)


def _row(name: str, funct3: int, f7: int, f7_mask: int, *operands: Operand) -> Instruction:
    return Instruction(
        name,
        OPCODE.put(OPCODE_AME) | FUNCT3.put(funct3) | FUNCT7.put(f7),
        OPCODE.mask | FUNCT3.mask | FUNCT7.put(f7_mask),
        operands,
    )


def _tile(name: str, field: Field) -> Operand:
    return Operand(name, field, OperandKind.TILE)


def _x(name: str, field: Field) -> Operand:
    return Operand(name, field, OperandKind.XREG)


def _flag(name: str, field: Field) -> Operand:
    return Operand(name, _f7(field), OperandKind.FLAG)


def _mmacc(name: str, funct3: int) -> Instruction:
    imm = Operand("imm", Field(FUNCT7.lo, 4), OperandKind.UIMM)
    tiles = (_tile("tc", RD), _tile("ta", RS1), _tile("tb", RS2))
    return _row(name, funct3, 0, IMM["zero"].mask, *tiles, imm)


def _ldst(name: str, funct3: int, what: LdstWhat) -> Instruction:
    return _row(
        name,
        funct3,
        LDST["what"].put(what),
        LDST["what"].mask,
        _tile("tile", RD),
        Operand("base", RS1, OperandKind.BASE),
        _x("stride", RS2),
        Operand("n", _f7(LDST["n_log2"]), OperandKind.COUNT),
        _flag("down", LDST["down"]),
        _flag("stream", LDST["stream"]),
        _flag("cfile", LDST["cfile"]),
    )


def _move(name: str, op: MoveOp, *operands: Operand) -> Instruction:
    """A move of whole tiles: the size field counts tiles."""
    count = Operand("n", _f7(MOVE["size"]), OperandKind.COUNT, MAX_LOG2_TILES)
    f7 = MOVE["op"].put(op)
    return _row(
        name, Funct3.MOVE, f7, MOVE["op"].mask, *operands, count, _flag("cfile", MOVE["cfile"])
    )


def _element_moves(name: str, op: MoveOp, *operands: Operand) -> tuple[Instruction, ...]:
    """A move of elements: the size field, a suffix of the name, is log2 of their bytes."""
    mask = MOVE["op"].mask | MOVE["size"].mask
    return tuple(
        _row(
            f"{name}.{suffix}",
            Funct3.MOVE,
            MOVE["op"].put(op) | MOVE["size"].put(size),
            mask,
            *operands,
            _flag("cfile", MOVE["cfile"]),
        )
        for size, suffix in enumerate("bhwd")
    )


def _vector(name: str, op: VectorOp) -> Instruction:
    return _row(
        name,
        Funct3.VECTOR,
        VECTOR["op"].put(op),
        VECTOR["op"].mask | VECTOR["zero"].mask,
        *(_tile("tz", RD), _tile("tx", RS1), _tile("ty", RS2)),
        _flag("wide", VECTOR["wide"]),
        _flag("cfile", VECTOR["cfile"]),
    )


def _csr(funct3: CsrFunct3) -> Instruction:
    if funct3 >= CsrFunct3.CSRRWI:
        source = Operand("uimm", RS1, OperandKind.UIMM)
    else:
        source = _x("rs1", RS1)
    return Instruction(
        funct3.name.lower(),
        OPCODE.put(OPCODE_SYSTEM) | FUNCT3.put(funct3),
        OPCODE.mask | FUNCT3.mask,
        (_x("rd", RD), Operand("csr", CSR_NUMBER, OperandKind.CSR), source),
    )


_TD, _TS, _INDEX = _tile("td", RD), _tile("ts", RS1), _x("index", RS2)

AME: tuple[Instruction, ...] = (
    _mmacc("mmacc.t", Funct3.MMACC),
    _mmacc("mmacc.mx", Funct3.MMACC_MX),
    *(_ldst(f"mld{what.name.lower()}", Funct3.MLD, what) for what in LdstWhat),
    *(_ldst(f"mst{what.name.lower()}", Funct3.MST, what) for what in LdstWhat),
    _move("mmov", MoveOp.MMOV, _TD, _TS),
    _move("mzero", MoveOp.MZERO, _TD),
    *_element_moves("mtrans", MoveOp.MTRANS, _TD, _TS),
    *_element_moves("mbcrow", MoveOp.ROW, _TD, _TS, _INDEX),
    *_element_moves("mbccol", MoveOp.COLUMN, _TD, _TS, _INDEX),
    *_element_moves("mbcast", MoveOp.SCALAR, _TD, _x("value", RS1)),
    *_element_moves("mget", MoveOp.ELEMENT, _x("rd", RD), _TS, _INDEX),
    _move("mmovf", MoveOp.MMOV_OTHER, _TD, _TS),
    _vector("mvmadd", VectorOp.MUL_ADD),
    _vector("mvmul", VectorOp.MUL),
    _vector("mvaddx", VectorOp.ADD_X),
    _vector("mvaddy", VectorOp.ADD_Y),
    _vector("mvmax", VectorOp.MAX),
    _vector("mvmin", VectorOp.MIN),
    _row("mpool", Funct3.MPOOL, 0, FUNCT7.max, _TD, _tile("ta", RS1), _tile("tb", RS2)),
    *(_row(op.name.lower(), Funct3.SYSTEM, op, FUNCT7.max) for op in SystemOp),
    *(_csr(funct3) for funct3 in CsrFunct3),
)
"""Every instruction of isa.md section 2, built or not."""
