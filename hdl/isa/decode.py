"""Operands from instruction words, for tools and the architectural model (pure Python)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from types import MappingProxyType

from .ame import AME, FUNCT3, OPCODE
from .fields import Instruction, OperandKind

__all__ = ["Decoded", "decode"]


@dataclass(frozen=True)
class Decoded:
    """One word taken apart.

    Parameters
    ----------
    name : mnemonic.
    row : its row of the table.
    operands : values by name, as `encode` takes them (counts of tiles, not their log2).
    canonical : the ignored bits are 0, so that `encode(name, **operands)` gives the word back.
    """

    name: str
    row: Instruction
    operands: Mapping[str, int]
    canonical: bool


@cache
def _index(table: tuple[Instruction, ...]) -> dict[int, tuple[Instruction, ...]]:
    """Rows by opcode and funct3, which every row of a table fixes."""
    key = OPCODE.mask | FUNCT3.mask
    found: dict[int, list[Instruction]] = {}
    for row in table:
        found.setdefault(row.match & key, []).append(row)
    return {value: tuple(rows) for value, rows in found.items()}


@lru_cache(maxsize=4096)
def decode(word: int, table: tuple[Instruction, ...] = AME) -> Decoded | None:
    """The instruction that `word` is, or None if the table has no such word."""
    for row in _index(table).get(word & (OPCODE.mask | FUNCT3.mask), ()):
        if row.matches(word):
            operands = {}
            for operand in row.operands:
                value = operand.field.get(word)
                operands[operand.name] = 1 << value if operand.kind is OperandKind.COUNT else value
            return Decoded(row.name, row, MappingProxyType(operands), not word & row.ignored)
    return None
