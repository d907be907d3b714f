"""Operands from instruction words, for tools and the architectural model (pure Python)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache, reduce
from operator import and_
from types import MappingProxyType

from .ame import OPCODE
from .fields import Instruction, Operand, OperandKind, once_per_table
from .tables import TABLE

__all__ = ["Decoded", "decode"]


@dataclass(frozen=True)
class Decoded:
    """One word taken apart.

    Parameters
    ----------
    name : mnemonic.
    row : its row of the table.
    operands : values by name, as `encode` takes them (counts of tiles, not their log2; numbers of
        scalar registers).
    canonical : the ignored bits are 0, so that `encode(name, **operands)` gives the word back.
    """

    name: str
    row: Instruction
    operands: Mapping[str, int]
    canonical: bool


Index = dict[int, tuple[int, dict[int, tuple[Instruction, ...]]]]
"""For each opcode: the bits that all its rows fix, and the rows by their values of these."""


@once_per_table
def _index(table: tuple[Instruction, ...]) -> Index:
    of_opcode: dict[int, list[Instruction]] = {}
    for row in table:
        of_opcode.setdefault(OPCODE.get(row.match), []).append(row)
    index = {}
    for opcode, rows in of_opcode.items():
        key = reduce(and_, (row.mask for row in rows))
        found: dict[int, list[Instruction]] = {}
        for row in rows:
            found.setdefault(row.match & key, []).append(row)
        index[opcode] = key, {value: tuple(same) for value, same in found.items()}
    return index


def _value(operand: Operand, word: int) -> int:
    """An operand as `encode` takes it."""
    held = operand.field.get(word)
    return 1 << held if operand.kind is OperandKind.COUNT else operand.lowest + held


def _search(word: int, table: tuple[Instruction, ...]) -> Decoded | None:
    key, rows = _index(table).get(OPCODE.get(word), (0, {}))
    for row in rows.get(word & key, ()):
        if row.matches(word):
            operands = {operand.name: _value(operand, word) for operand in row.operands}
            return Decoded(row.name, row, MappingProxyType(operands), not word & row.ignored)
    return None


@lru_cache(maxsize=4096)
def _decode(word: int) -> Decoded | None:
    return _search(word, TABLE)


def decode(word: int, table: tuple[Instruction, ...] = TABLE) -> Decoded | None:
    """The instruction that `word` is, or None if the table has no such word.

    Names may be those of rows of both front ends (mldb, mstb, mzero): `row` tells.
    """
    return _decode(word) if table is TABLE else _search(word, table)
