"""What a table of instructions is made of: bit fields, operands and rows (pure Python)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from functools import wraps
from typing import NamedTuple, TypeVar

__all__ = ["LOW_XREG", "Field", "Instruction", "Operand", "OperandKind", "once_per_table"]

Result = TypeVar("Result")

LOW_XREG = 8
"""A scalar register's number in a field of 3 bits counts from x8."""


class Field(NamedTuple):
    """A bit field of a word: `width` bits from bit `lo`."""

    lo: int
    width: int

    @property
    def max(self) -> int:
        """Largest value the field holds."""
        return (1 << self.width) - 1

    @property
    def mask(self) -> int:
        """The field's bits in the word."""
        return self.max << self.lo

    def get(self, word: int) -> int:
        """The field's value in `word`."""
        return word >> self.lo & self.max

    def put(self, value: int) -> int:
        """A word that holds `value` in this field. Raises ValueError if it does not fit."""
        if not 0 <= value <= self.max:
            raise ValueError(f"{value} does not fit in a field of {self.width} bits")
        return value << self.lo


class OperandKind(Enum):
    """How an operand is written in assembly text."""

    TILE = "tile"  # tr0..tr31
    MREG = "m"  # m0..m7
    XREG = "x"  # a scalar register
    XREG_LOW = "x8..x15"  # one of the scalar registers x8 to x15
    ROW_XREG = "[x]"  # one of x8 to x15 in brackets, right behind a register
    ROW = "[n]"  # a number in brackets, right behind a register
    BASE = "base"  # a scalar register in parentheses
    UIMM = "uimm"  # a number
    CSR = "csr"  # a CSR by name or number
    COUNT = "count"  # name=N, a power of two held as its log2; left out when 1
    FLAG = "flag"  # the bare name sets the bit; left out when clear


@dataclass(frozen=True)
class Operand:
    """One operand of an instruction.

    Parameters
    ----------
    name : keyword of the encoder, and of the assembly text for COUNT and FLAG.
    field : where it lies in the word.
    kind : `OperandKind`.
    limit : largest legal field value, where it is below what the field holds.
    """

    name: str
    field: Field
    kind: OperandKind
    limit: int | None = None

    @property
    def in_brackets(self) -> bool:
        """Written in brackets, right behind the operand before it."""
        return self.kind in (OperandKind.ROW_XREG, OperandKind.ROW)

    @property
    def lowest(self) -> int:
        """The value that the field holds as 0; not for COUNT, which is held as its log2."""
        low = self.kind in (OperandKind.XREG_LOW, OperandKind.ROW_XREG)
        return LOW_XREG if low else 0

    @property
    def optional(self) -> bool:
        """May be left out of the text; it is then 0."""
        return self.kind in (OperandKind.COUNT, OperandKind.FLAG)

    @property
    def max(self) -> int:
        """Largest legal field value."""
        return self.field.max if self.limit is None else self.limit


@dataclass(frozen=True)
class Instruction:
    """One row of an instruction table.

    A word is this instruction iff `word & mask == match` and no operand is above its `max`. Bits
    outside `mask` and the operands are ignored by the decoder and encoded as 0.

    Parameters
    ----------
    name : mnemonic.
    match, mask : the fixed bits.
    operands : in the order of the assembly text, optional ones last.
    """

    name: str
    match: int
    mask: int
    operands: tuple[Operand, ...] = ()

    def __post_init__(self) -> None:
        taken = self.mask
        for operand in self.operands:
            if taken & operand.field.mask:
                raise ValueError(f"{self.name}: operand {operand.name} overlaps another field")
            taken |= operand.field.mask
        if self.match & ~self.mask:
            raise ValueError(f"{self.name}: match has bits outside mask")

    def matches(self, word: int) -> bool:
        """Is `word` this instruction?"""
        return word & self.mask == self.match and all(
            operand.field.get(word) <= operand.max for operand in self.operands
        )

    @property
    def ignored(self) -> int:
        """Bits of the word that have no meaning here."""
        used = self.mask
        for operand in self.operands:
            used |= operand.field.mask
        return ~used & 0xFFFFFFFF


Table = tuple[Instruction, ...]


def once_per_table(function: Callable[[Table], Result]) -> Callable[[Table], Result]:
    """A cache by a table's identity: to hash a whole table takes longer than most uses of it."""
    results: dict[int, tuple[Table, Result]] = {}  # a table that is held keeps its identity

    @wraps(function)
    def cached(table: Table) -> Result:
        held = results.get(id(table))
        if held is None:
            held = results[id(table)] = table, function(table)
        return held[1]

    return cached
