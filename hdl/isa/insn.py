"""The same words as lines for GNU as, which does not know the instructions: `.insn` (pure Python).

What lies in the fields of scalar registers appears as these, whatever it is (a tile, in `xuantie`
parts of several operands). CSR instructions are standard ones, with the CSR as a number.
"""

from __future__ import annotations

import re

from .ame import FUNCT3, FUNCT7, OPCODE, OPCODE_AME, RD, RS1, RS2
from .decode import decode
from .fields import Field, OperandKind
from .xuantie import OPCODE_XUANTIE

__all__ = ["insn_line", "parse_insn"]

_R_FIELDS = (OPCODE, FUNCT3, FUNCT7, RD, RS1, RS2)
_REGISTERS = (RD, RS1, RS2)
_CUSTOM = (OPCODE_AME, OPCODE_XUANTIE)


def insn_line(word: int) -> str:
    """A line of GNU as that assembles to `word`."""
    if OPCODE.get(word) in _CUSTOM:
        values = [
            f"x{field.get(word)}" if field in _REGISTERS else f"{field.get(word):#x}"
            for field in _R_FIELDS
        ]
        return f".insn r {', '.join(values)}"
    decoded = decode(word)
    if decoded is None or not decoded.canonical:
        return f".word 0x{word:08x}"
    texts = []
    for operand in decoded.row.operands:
        value = decoded.operands[operand.name]
        kinds = {OperandKind.XREG: f"x{value}", OperandKind.CSR: f"{value:#x}"}
        texts.append(kinds.get(operand.kind, str(value)))
    return f"{decoded.name} {', '.join(texts)}"


def parse_insn(text: str) -> int:
    """The word of what follows `.insn`: an R-type line as above. Raises ValueError."""
    kind, _, rest = text.strip().partition(" ")
    parts = [part.strip() for part in rest.split(",")]
    if kind != "r" or len(parts) != len(_R_FIELDS):
        raise ValueError(".insn takes: r opcode, funct3, funct7, rd, rs1, rs2")
    word = 0
    for field, part in zip(_R_FIELDS, parts, strict=True):
        word |= field.put(_value(field, part))
    return word


def _value(field: Field, text: str) -> int:
    if field not in _REGISTERS:
        try:
            value = int(text, 0)
        except ValueError:
            raise ValueError(f".insn: {text!r} is not a number") from None
    else:
        found = re.fullmatch(r"x(\d+)", text)
        if found is None:
            raise ValueError(f".insn: {text!r} is not a register x0 to x31")
        value = int(found[1])
    if not 0 <= value <= field.max:
        raise ValueError(f".insn: {text} does not fit in {field.width} bits")
    return value
