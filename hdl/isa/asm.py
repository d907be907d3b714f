"""Assembly text to words and back (isa.md section 2, last paragraphs), for both front ends.

One instruction a line, `#` comments. Where a name is one of both front ends, the first operand
tells: tiles are tr0 to tr31, registers of `xuantie` m0 to m7. Operands in the table's order; `n=4`
counts tiles; `down`, `stream`, `cfile` and `wide` are bare words. `.word 0x...` stands for any
word, and `.insn r` lines of GNU as are taken as well (`insn`). csrr, csrw, csrs, csrc and their
immediate forms are accepted as the usual short forms.
"""

from __future__ import annotations

import re

from .csr import DEFAULT_CSR_BASE, all_csr_numbers
from .decode import decode
from .encode import encode_row
from .fields import LOW_XREG, Instruction, Operand, OperandKind, once_per_table
from .insn import parse_insn
from .tables import TABLE
from .xuantie import MREGS

__all__ = ["AsmError", "assemble", "assemble_program", "disassemble", "format_word"]

WORD_MAX = 0xFFFFFFFF

_ABI = (
    *("zero", "ra", "sp", "gp", "tp", "t0", "t1", "t2", "s0", "s1"),
    *(f"a{i}" for i in range(8)),
    *(f"s{i}" for i in range(2, 12)),
    *("t3", "t4", "t5", "t6"),
)
_XREGS = (
    {name: number for number, name in enumerate(_ABI)}
    | {f"x{number}": number for number in range(32)}
    | {"fp": 8}
)
_TILES = {f"tr{number}": number for number in range(32)}
_MREGS = {f"m{number}": number for number in range(MREGS)}
_LOW_XREGS = range(LOW_XREG, LOW_XREG + 8)

# Short forms: name -> (full name, operands with {i} for what was written).
_SHORT = {
    "csrr": ("csrrs", ("{0}", "{1}", "x0"), 2),
    **{f"csr{op}": (f"csrr{op}", ("x0", "{0}", "{1}"), 2) for op in "wsc"},
    **{f"csr{op}i": (f"csrr{op}i", ("x0", "{0}", "{1}"), 2) for op in "wsc"},
}


class AsmError(ValueError):
    """Text that is no instruction: one line that says where and why."""


def _number(text: str, what: str) -> int:
    try:
        return int(text, 0)
    except ValueError:
        raise AsmError(f"{what} must be a number, not {text!r}") from None


def _parse_operand(operand: Operand, text: str) -> int | str:
    """The value of a required operand, as `encode` takes it."""
    if operand.kind is OperandKind.TILE:
        if text not in _TILES:
            raise AsmError(f"{operand.name} must be a tile tr0 to tr31, not {text!r}")
        return _TILES[text]
    if operand.kind is OperandKind.MREG:
        if text not in _MREGS:
            raise AsmError(f"{operand.name} must be a register m0 to m7, not {text!r}")
        return _MREGS[text]
    if operand.in_brackets:
        inner = re.fullmatch(r"\[\s*(\w+)\s*\]", text)
        if inner is None:
            raise AsmError(f"{operand.name} must be in brackets behind a register, not {text!r}")
        text = inner[1]
    if operand.kind in (OperandKind.XREG_LOW, OperandKind.ROW_XREG):
        if _XREGS.get(text) not in _LOW_XREGS:
            raise AsmError(f"{operand.name} must be a scalar register x8 to x15, not {text!r}")
        return _XREGS[text]
    if operand.kind is OperandKind.BASE:
        inner = re.fullmatch(r"\(\s*(\w+)\s*\)", text)
        if inner is None or inner[1] not in _XREGS:
            raise AsmError(f"{operand.name} must be a register in parentheses, not {text!r}")
        return _XREGS[inner[1]]
    if operand.kind is OperandKind.XREG:
        if text not in _XREGS:
            raise AsmError(f"{operand.name} must be a scalar register, not {text!r}")
        return _XREGS[text]
    if operand.kind is OperandKind.CSR and not text[:1].isdigit():
        return text
    return _number(text, operand.name)


def _parse_options(row: Instruction, texts: list[str]) -> dict[str, int]:
    options = {operand.name: operand for operand in row.operands if operand.optional}
    found: dict[str, int] = {}
    for text in texts:
        name, equals, value = (part.strip() for part in text.partition("="))
        operand = options.get(name)
        if operand is None or bool(equals) != (operand.kind is OperandKind.COUNT):
            raise AsmError(f"{row.name} has no operand {text!r}")
        if name in found:
            raise AsmError(f"{row.name}: {name} is given twice")
        found[name] = _number(value, name) if equals else 1
    return found


@once_per_table
def _by_name(table: tuple[Instruction, ...]) -> dict[str, tuple[Instruction, ...]]:
    """Rows by name, at most one of each front end."""
    found: dict[str, tuple[Instruction, ...]] = {}
    for row in table:
        found[row.name] = (*found.get(row.name, ()), row)
    return found


def _chosen(rows: tuple[Instruction, ...], texts: list[str]) -> Instruction:
    """Among rows of one name, the one whose first operand is of the kind that is written."""
    if len(rows) == 1:
        return rows[0]
    first = texts[0] if texts else ""
    kind = next(
        (
            kind
            for kind, names in ((OperandKind.TILE, _TILES), (OperandKind.MREG, _MREGS))
            if first in names
        ),
        None,
    )
    for row in rows:
        if row.operands[0].kind is kind:
            return row
    raise AsmError(
        f"{rows[0].name} starts with a tile tr0 to tr31 or a register m0 to m7, not {first!r}"
    )


def assemble(
    text: str, table: tuple[Instruction, ...] = TABLE, csr_base: int = DEFAULT_CSR_BASE
) -> int:
    """The word of one line of assembly text. Raises AsmError."""
    name, rest = (*text.partition("#")[0].split(None, 1), "", "")[:2]
    # What is in brackets is an operand of its own.
    rest = re.sub(r"(\w)\s*(\[[^],]*\])", r"\1,\2", rest)
    texts = [part.strip() for part in rest.split(",")] if rest.strip() else []
    if name == ".word":
        word = _number(rest.strip(), ".word")
        if not 0 <= word <= WORD_MAX:
            raise AsmError(f".word {word:#x} does not fit in 32 bits")
        return word
    if name == ".insn":
        try:
            return parse_insn(rest)
        except ValueError as error:
            raise AsmError(str(error)) from None
    if name in _SHORT:
        full, pattern, count = _SHORT[name]
        if len(texts) != count:
            raise AsmError(f"{name} takes {count} operands, not {len(texts)}")
        name, texts = full, [part.format(*texts) for part in pattern]
    rows = _by_name(table).get(name)
    if rows is None:
        raise AsmError(f"unknown instruction {name!r}")
    row = _chosen(rows, texts)
    required = [operand for operand in row.operands if not operand.optional]
    if len(texts) < len(required):
        raise AsmError(f"{name} needs operand {required[len(texts)].name}")
    values = {
        operand.name: _parse_operand(operand, part)
        for operand, part in zip(required, texts, strict=False)
    }
    values |= _parse_options(row, texts[len(required) :])
    try:
        return encode_row(row, csr_base=csr_base, **values)
    except ValueError as error:
        raise AsmError(str(error)) from None


def assemble_program(
    text: str, table: tuple[Instruction, ...] = TABLE, csr_base: int = DEFAULT_CSR_BASE
) -> list[int]:
    """The words of a text of many lines. Raises AsmError that names the line."""
    words = []
    for number, line in enumerate(text.splitlines(), 1):
        if line.partition("#")[0].strip():
            try:
                words.append(assemble(line, table, csr_base))
            except AsmError as error:
                raise AsmError(f"line {number}: {error}") from None
    return words


def format_word(word: int) -> str:
    """A word as files hold it."""
    return f"0x{word:08x}"


def _operand_text(operand: Operand, value: int, csr_names: dict[int, str]) -> str:
    match operand.kind:
        case OperandKind.TILE:
            return f"tr{value}"
        case OperandKind.MREG:
            return f"m{value}"
        case OperandKind.XREG | OperandKind.XREG_LOW:
            return f"x{value}"
        case OperandKind.ROW_XREG:
            return f"[x{value}]"
        case OperandKind.ROW:
            return f"[{value}]"
        case OperandKind.BASE:
            return f"(x{value})"
        case OperandKind.CSR:
            return csr_names.get(value, f"{value:#x}")
        case OperandKind.COUNT:
            return f"{operand.name}={value}"
        case OperandKind.FLAG:
            return operand.name
        case OperandKind.UIMM:
            return str(value)


def disassemble(
    word: int, table: tuple[Instruction, ...] = TABLE, csr_base: int = DEFAULT_CSR_BASE
) -> str:
    """Text that `assemble` turns back into `word`.

    A word with bits set that its instruction ignores becomes a `.word` with the instruction as a
    comment; a word the table does not have, a `.word` alone.
    """
    decoded = decode(word, table)
    if decoded is None:
        return f".word {format_word(word)}"
    csr_names = {number: name for name, number in all_csr_numbers(csr_base).items()}
    neutral = {OperandKind.COUNT: 1, OperandKind.FLAG: 0}
    texts = [
        _operand_text(operand, decoded.operands[operand.name], csr_names)
        for operand in decoded.row.operands
        if decoded.operands[operand.name] != neutral.get(operand.kind)
    ]
    text = f"{decoded.name} {', '.join(texts)}".replace(", [", "[").strip()
    return text if decoded.canonical else f".word {format_word(word)}  # {text}"
