"""One GEMM as it lies in L2 memory, checked before anything runs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hdl.formats import Format

from ..codes import row_bytes

__all__ = ["TRANSPOSES", "GemmProblem", "Matrix"]

TRANSPOSES = ("nn", "nt", "tn", "tt")
"""Forms of a product: for A and for B, n as it is or t transposed."""


@dataclass(frozen=True)
class Matrix:
    """A row-major matrix in memory.

    Parameters
    ----------
    name : for messages.
    rows, columns : its size in elements.
    container : bits of an element.
    base : address of its first byte.
    ld : elements from the start of a row to the start of the next.
    """

    name: str
    rows: int
    columns: int
    container: int
    base: int
    ld: int

    @property
    def stride(self) -> int:
        """Bytes from the start of a row to the start of the next."""
        return self.ld * self.container // 8

    @property
    def row_bytes(self) -> int:
        """Bytes of a row."""
        return row_bytes(self.columns, self.container)

    @property
    def extent(self) -> int:
        """Bytes from the first to the last, both included; 0 without elements."""
        if not self.rows or not self.columns:
            return 0
        return (self.rows - 1) * self.stride + self.row_bytes

    def address(self, row: int, column: int) -> int:
        """Address of an element, which must start on a byte."""
        return self.base + row * self.stride + column * self.container // 8

    def check(self, addr_bits: int) -> None:
        """Raise ValueError unless the rows are apart, start on bytes and have addresses."""
        if self.ld < self.columns:
            raise ValueError(
                f"ld{self.name.lower()} = {self.ld} is below a row of {self.name}, "
                f"{self.columns} elements"
            )
        if self.ld * self.container % 8:
            raise ValueError(
                f"ld{self.name.lower()} = {self.ld} puts rows between bytes: use an even number"
            )
        if self.base < 0 or self.base + self.extent > 1 << addr_bits:
            raise ValueError(
                f"{self.name} does not fit in {addr_bits} address bits from {self.base:#x} on"
            )

    def overlaps(self, other: Matrix) -> bool:
        """Does any row share a byte with a row of `other`?"""
        if not self.extent or not other.extent:
            return False
        starts = self.base + np.arange(self.rows, dtype=np.int64) * self.stride
        others = other.base + np.arange(other.rows, dtype=np.int64) * other.stride
        # The last row of `other` that starts before the end of each row, if it reaches the row.
        last = np.searchsorted(others, starts + self.row_bytes) - 1
        found = last >= 0
        return bool(np.any(others[last[found]] + other.row_bytes > starts[found]))


@dataclass(frozen=True, kw_only=True)
class GemmProblem:
    """C = alpha * op(A) x op(B) + beta * C, all three row-major in memory.

    op(A) is M x K and op(B) K x N, so "n" means A held M x K and B held K x N, "t" A held K x M
    and B held N x K. The core's own form is "nt": both operands with K along the row.

    Parameters
    ----------
    fmt, out : operand and output format.
    a, b, c : the matrices as they lie in memory.
    trans : one of `TRANSPOSES`.
    bovf, acc, sat, rnd : fields of mxcfg; they select `out`.
    alpha : 1 or -1.
    beta : 0, when C is not read, or 1.
    """

    fmt: Format
    out: Format
    a: Matrix
    b: Matrix
    c: Matrix
    trans: str = "nt"
    bovf: int = 0
    acc: int = 0
    sat: int = 0
    rnd: int = 0
    alpha: int = 1
    beta: int = 0

    @property
    def m(self) -> int:
        return self.c.rows

    @property
    def n(self) -> int:
        return self.c.columns

    @property
    def k(self) -> int:
        return self.a.rows if self.trans[0] == "t" else self.a.columns

    @property
    def transposed(self) -> tuple[bool, bool]:
        """Must A, must B be transposed to have K along the row?"""
        return self.trans[0] == "t", self.trans[1] == "n"

    def check(self, addr_bits: int) -> None:
        """Raise ValueError unless the parts fit each other and a bus of `addr_bits`."""
        if self.trans not in TRANSPOSES:
            raise ValueError(
                f"trans = {self.trans!r} is unknown: use one of {', '.join(TRANSPOSES)}"
            )
        if self.alpha not in (1, -1):
            raise ValueError(f"alpha = {self.alpha} is not built: use 1 or -1")
        if self.beta not in (0, 1):
            raise ValueError(f"beta = {self.beta} is not built: use 0 or 1")
        self._check_sizes()
        for matrix, turned in zip((self.a, self.b), self.transposed, strict=True):
            if turned and self.fmt.container < 8:
                raise ValueError(
                    f"{matrix.name} of {self.fmt.name} cannot be transposed in place, its elements "
                    f"share bytes: pack it, so that K runs along its rows"
                )
        for matrix in (self.a, self.b, self.c):
            matrix.check(addr_bits)
        for matrix in (self.a, self.b):
            if self.c.overlaps(matrix):
                raise ValueError(f"C overlaps {matrix.name} in memory: give it bytes of its own")

    def _check_sizes(self) -> None:
        containers = ((self.a, self.fmt), (self.b, self.fmt), (self.c, self.out))
        for matrix, fmt in containers:
            if matrix.container != fmt.container:
                raise ValueError(
                    f"{matrix.name} has elements of {matrix.container} bits, but {fmt.name} takes "
                    f"{fmt.container}"
                )
            if min(matrix.rows, matrix.columns) < 0:
                raise ValueError(
                    f"{matrix.name} is {matrix.rows} x {matrix.columns}: sizes are 0 or more"
                )
        wanted = (
            (self.k, self.m) if self.trans[0] == "t" else (self.m, self.k),
            (self.n, self.k) if self.trans[1] == "t" else (self.k, self.n),
        )
        held = ((self.a.rows, self.a.columns), (self.b.rows, self.b.columns))
        if held != wanted:
            raise ValueError(
                f"A {self.a.rows} x {self.a.columns}, B {self.b.rows} x {self.b.columns} and "
                f"C {self.m} x {self.n} do not fit each other with trans = {self.trans}"
            )
