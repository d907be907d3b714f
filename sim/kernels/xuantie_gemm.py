"""GEMM loops for the front end `xuantie`, in the shape of vendors' kernels.

A in m0 and m1, B in m2 and m3, accumulators in m4 to m7. R is the number of rows of a register.
Each step along K takes one whole row of bytes; sizes at the edges come from mcfg, so there is no
padding in memory. B lies as N x K.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hdl import isa
from hdl.config import Config

from ..program import Program
from ..program_xuantie import XuanTieBuilder, xmsize_value
from .problem import Matrix

__all__ = ["Requantise", "half_gemm_program", "int8_gemm_program"]

A_REGISTERS, B_REGISTERS, C_REGISTERS = (0, 1), (2, 3), (4, 5, 6, 7)
INT32_BYTES = 4


@dataclass(frozen=True)
class Requantise:
    """How sums of INT8 products become INT8 again, column by column.

    A sum, the bias included, is multiplied by the multiplier, of which the high half is kept, then
    shifted right and rounded; then the zero point is added and the result clipped to 8 bits.

    Parameters
    ----------
    biases, multipliers, shifts : addresses of N numbers of 32 bits; shifts are 0 to 31.
    zero_point : added at last.
    rounding : of the shift.
    """

    biases: int
    multipliers: int
    shifts: int
    zero_point: int = 0
    rounding: isa.FixedRounding = isa.FixedRounding.RNU


@dataclass(frozen=True)
class _Part:
    """Some rows or columns of a block: those that one register, or pair, holds."""

    index: int
    first: int
    count: int


def _parts(first: int, total: int, size: int) -> list[_Part]:
    """At most two parts of `size` rows or columns from `first` on."""
    starts = (first, first + size)
    return [
        _Part(index, start, min(size, total - start))
        for index, start in enumerate(starts)
        if start < total
    ]


class _Kernel:
    """What all the loops share.

    Parameters
    ----------
    cfg : the core.
    a, b, c : the matrices, (M, K), (N, K) and (M, N).
    columns : columns of C that one register holds.
    """

    def __init__(self, cfg: Config, a: Matrix, b: Matrix, c: Matrix, columns: int):
        if (a.columns, a.rows, b.rows) != (b.columns, c.rows, c.columns):
            raise ValueError(
                f"A {a.rows}x{a.columns}, B {b.rows}x{b.columns} and C {c.rows}x{c.columns} "
                f"are no product: A is M x K, B N x K, C M x N"
            )
        for matrix in (a, b, c):
            matrix.check(cfg.addr_bits)
        self.cfg, self.a, self.b, self.c = cfg, a, b, c
        self.columns = columns
        self.x = XuanTieBuilder(Program(cfg))
        self._sizes = {"m": 0, "n": 0, "k": 0}
        self.x.mcfg(0)

    def sizes(self, **wanted: int) -> None:
        """Set what differs: all at once, or the one field."""
        changed = {name: value for name, value in wanted.items() if self._sizes[name] != value}
        self._sizes |= changed
        if len(changed) == 1:
            ((name, value),) = changed.items()
            if value <= isa.UIMM7.max:
                getattr(self.x, f"mcfg{name}i")(value)
            else:
                getattr(self.x, f"mcfg{name}")(value)
        elif changed:
            self.x.mcfg(xmsize_value(**self._sizes))

    def load(
        self, register: int, matrix: Matrix, row: int, rows: int, byte: int, count: int
    ) -> None:
        """`count` bytes of some rows, from `byte` on."""
        self.sizes(m=rows, k=count)
        self.x.mld("b", register, matrix.address(row, 0) + byte, matrix.stride)

    def vector(self, register: int, address: int, part: _Part) -> None:
        """The 32-bit numbers of some columns, into row 0."""
        self.sizes(m=1, k=INT32_BYTES * part.count)
        self.x.mld("w", register, address + INT32_BYTES * part.first, 0)

    def blocks(self) -> Iterator[tuple[list[_Part], list[_Part]]]:
        """Parts of the rows, and of the columns, of each block of C."""
        rows = self.cfg.x_rows
        for row in range(0, self.c.rows, 2 * rows):
            for column in range(0, self.c.columns, 2 * self.columns):
                yield (
                    _parts(row, self.c.rows, rows),
                    _parts(column, self.c.columns, self.columns),
                )

    def steps(self) -> Iterator[tuple[int, int]]:
        """(first byte, bytes) of each step along K."""
        total, step = self.a.row_bytes, self.cfg.row_bytes
        for first in range(0, total, step):
            yield first, min(step, total - first)

    @staticmethod
    def accumulator(i: _Part, j: _Part) -> int:
        """Register of C for a part of the rows and one of the columns."""
        return C_REGISTERS[2 * i.index + j.index]

    def load_a(self, rows: list[_Part], first: int, count: int) -> None:
        """A's rows of a block."""
        for i in rows:
            self.load(A_REGISTERS[i.index], self.a, i.first, i.count, first, count)

    def store_c(self, i: _Part, j: _Part) -> None:
        """A register of C to memory."""
        self.sizes(m=i.count, k=j.count * self.c.container // 8)
        address = self.c.address(i.first, j.first)
        self.x.mst("b", self.accumulator(i, j), address, self.c.stride)

    def finish(self) -> Program:
        """Wait for the last store."""
        self.x.program.mfence()
        return self.x.program


def int8_gemm_program(
    cfg: Config, a: Matrix, b: Matrix, c: Matrix, requantise: Requantise, *, signs: str = ""
) -> Program:
    """C = requantised(A x B^T + bias), all of 8 bits, from mcfg to the mfence after all stores.

    Blocks of 2R x 2R; the bias is what the accumulators start from, and what follows the last step
    works in place. `signs` says how A and B are read (`XuanTieBuilder.mmaqa`); C is signed.
    Raises ValueError for matrices that are no product or do not fit the address space.
    """
    kernel = _Kernel(cfg, a, b, c, cfg.x_rows)
    x = kernel.x
    x.program.csrrwi("xmxrm", int(requantise.rounding))
    for rows, columns in kernel.blocks():
        for j in columns:
            kernel.vector(B_REGISTERS[j.index], requantise.biases, j)
        for i in rows:
            for j in columns:
                x.mmov_rowi(kernel.accumulator(i, j), B_REGISTERS[j.index], 0)
        for first, count in kernel.steps():
            kernel.load_a(rows, first, count)
            for j in columns:
                kernel.load(B_REGISTERS[j.index], b, j.first, j.count, first, count)
            for i in rows:
                for j in columns:
                    kernel.sizes(m=i.count, n=j.count, k=count)
                    md, ms2, ms1 = (
                        kernel.accumulator(i, j),
                        B_REGISTERS[j.index],
                        A_REGISTERS[i.index],
                    )
                    x.mmaqa("b", md, ms2, ms1, signs)
        for j in columns:
            kernel.vector(A_REGISTERS[j.index], requantise.multipliers, j)
            kernel.vector(B_REGISTERS[j.index], requantise.shifts, j)
        for i in rows:
            for j in columns:
                sums = kernel.accumulator(i, j)
                kernel.sizes(m=i.count, k=INT32_BYTES * j.count)
                x.mmulh("s", sums, sums, A_REGISTERS[j.index], rowi=0)
                x.msra("s", sums, sums, B_REGISTERS[j.index], rowi=0)
                x.madd("s", sums, sums, value=requantise.zero_point)
                x.mn4clip("s", sums, sums, value=0)
        for i in rows:
            for j in columns:
                kernel.store_c(i, j)
    return kernel.finish()


def half_gemm_program(
    cfg: Config, a: Matrix, b: Matrix, c: Matrix, *, beta: int = 0, wide: bool = False
) -> Program:
    """C = A x B^T (+ C with `beta` 1) in FP16, or BF16 where the core has that instead.

    Narrow: fmmacc.h, C of 16 bits, blocks of 2R x 4R; each accumulator takes both registers of B.
    `wide`: fwmmacc.h, C of 32 bits, blocks of 2R x 2R. A step along K rounds once.
    Raises ValueError for matrices that are no product or do not fit the address space.
    """
    kernel = _Kernel(cfg, a, b, c, cfg.x_rows if wide else 2 * cfg.x_rows)
    x, half = kernel.x, cfg.x_rows
    for rows, columns in kernel.blocks():
        for i in rows:
            for j in columns:
                if beta:
                    size = j.count * c.container // 8
                    byte = j.first * c.container // 8
                    kernel.load(kernel.accumulator(i, j), c, i.first, i.count, byte, size)
                else:
                    x.mzero(kernel.accumulator(i, j))
        for first, count in kernel.steps():
            kernel.load_a(rows, first, count)
            for j in columns:
                if wide:
                    ms2 = B_REGISTERS[j.index]
                    kernel.load(ms2, b, j.first, j.count, first, count)
                else:
                    ms2 = B_REGISTERS[0]
                    for part in _parts(j.first, j.first + j.count, half):
                        register = B_REGISTERS[part.index]
                        kernel.load(register, b, part.first, part.count, first, count)
                for i in rows:
                    kernel.sizes(m=i.count, n=j.count, k=count)
                    multiply = x.fwmmacc if wide else x.fmmacc
                    multiply("h", kernel.accumulator(i, j), ms2, A_REGISTERS[i.index])
        for i in rows:
            for j in columns:
                kernel.store_c(i, j)
    return kernel.finish()
