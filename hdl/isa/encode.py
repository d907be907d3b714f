"""Instruction words from operands: one encoder for every row of a table (pure Python)."""

from __future__ import annotations

from .ame import AME, BTR_NATIVE, IMM
from .csr import DEFAULT_CSR_BASE, all_csr_numbers
from .fields import Instruction, Operand, OperandKind, once_per_table

__all__ = ["encode", "encode_row", "instruction", "mmacc_imm"]


@once_per_table
def _by_name(table: tuple[Instruction, ...]) -> dict[str, Instruction]:
    return {row.name: row for row in table}


def instruction(name: str, table: tuple[Instruction, ...] = AME) -> Instruction:
    """The row called `name`. Raises ValueError if there is none."""
    try:
        return _by_name(table)[name]
    except KeyError:
        raise ValueError(f"unknown instruction {name!r}") from None


def _field_value(name: str, operand: Operand, value: int | str, csr_base: int) -> int:
    """The operand's field for a value as written: counts to log2, CSR names to numbers."""
    where = f"{name}: {operand.name}"
    if operand.kind is OperandKind.CSR and isinstance(value, str):
        numbers = all_csr_numbers(csr_base)
        if value not in numbers:
            raise ValueError(f"{where} = {value!r} is no CSR: use one of {', '.join(numbers)}")
        return numbers[value]
    if not isinstance(value, int):
        raise ValueError(f"{where} must be a whole number, not {value!r}")
    if operand.kind is OperandKind.COUNT:
        if value < 1 or value & (value - 1) or value.bit_length() - 1 > operand.max:
            raise ValueError(f"{where} = {value}: use a power of two up to {1 << operand.max}")
        return value.bit_length() - 1
    low = operand.lowest
    if not low <= value <= low + operand.max:
        raise ValueError(f"{where} = {value}: use {low} to {low + operand.max}")
    return int(value) - low


def encode(
    name: str,
    *values: int | str,
    table: tuple[Instruction, ...] = AME,
    csr_base: int = DEFAULT_CSR_BASE,
    **named: int | str,
) -> int:
    """The word of the instruction `name`.

    Operands follow in the table's order or by keyword; optional ones may be left out. COUNT
    operands take the number of tiles, CSR operands a name or a number, registers their number, all
    others the field's value. For instructions of the front end `xuantie` give `table` = XUANTIE.
    Raises ValueError that says which operand is wrong and what it may be.
    """
    return encode_row(instruction(name, table), *values, csr_base=csr_base, **named)


def encode_row(
    row: Instruction, /, *values: int | str, csr_base: int = DEFAULT_CSR_BASE, **named: int | str
) -> int:
    """`encode` for a row of a table."""
    name = row.name
    if len(values) > len(row.operands):
        raise ValueError(f"{name} takes at most {len(row.operands)} operands, not {len(values)}")
    given = {operand.name: value for operand, value in zip(row.operands, values, strict=False)}
    for key, value in named.items():
        if key in given:
            raise ValueError(f"{name}: operand {key} is given twice")
        given[key] = value
    word = row.match
    for operand in row.operands:
        if operand.name in given:
            value = _field_value(name, operand, given.pop(operand.name), csr_base)
            word |= operand.field.put(value)
        elif not operand.optional:
            raise ValueError(f"{name} needs operand {operand.name}")
    if given:
        raise ValueError(f"{name} has no operand {', '.join(given)}")
    return word


def mmacc_imm(*, btr: int = BTR_NATIVE, beta: int = 0, alpha: int = 0) -> int:
    """imm of mmacc: bTR as seed 000 writes it, beta 1 overwrites C, alpha 1 subtracts."""
    return (
        IMM["btr"].put(btr ^ BTR_NATIVE) | IMM["beta"].put(int(beta)) | IMM["alpha"].put(int(alpha))
    )
