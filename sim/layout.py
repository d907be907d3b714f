"""Matrices in L2 memory: put there with guard bytes, read back, checked for stray writes."""

from __future__ import annotations

import numpy as np

from .codes import pack_rows, unpack_rows
from .kernels.problem import Matrix
from .memory import Memory

__all__ = ["GUARD_BYTES", "PlacedMatrix"]

GUARD_BYTES = 256
"""Bytes before and after each matrix that hold noise and that nobody may touch."""


class PlacedMatrix:
    """A matrix in its own region of a memory, noise in front, behind and between its rows.

    The core may touch the rows alone, and these only as `readable` and `writable` say.

    Parameters
    ----------
    memory : where; a region is added to it.
    matrix : place and size.
    codes : unsigned codes, (rows, columns).
    readable, writable : the core may read, may write the rows.
    noise : source of the bytes that belong to nobody.
    """

    def __init__(
        self,
        memory: Memory,
        matrix: Matrix,
        codes: np.ndarray,
        *,
        readable: bool = True,
        writable: bool = False,
        noise: np.random.Generator,
    ):
        self.matrix = matrix
        self._memory = memory
        self._start = matrix.base - GUARD_BYTES
        size = matrix.extent + 2 * GUARD_BYTES
        content = noise.integers(0, 256, size, np.uint8)
        self._rows(content)[...] = pack_rows(codes, matrix.container)
        memory.add_region(self._start, content, readable=False, writable=False)
        if matrix.extent:
            for row in range(matrix.rows):
                memory.allow_read(matrix.address(row, 0), matrix.row_bytes, readable)
                memory.allow_write(matrix.address(row, 0), matrix.row_bytes, writable)
        self._before = content.copy()

    def _rows(self, content: np.ndarray) -> np.ndarray:
        """The rows' bytes inside the region's, (rows, row_bytes), as a view."""
        matrix = self.matrix
        if not matrix.extent:
            return np.empty((matrix.rows, matrix.row_bytes), np.uint8)
        first = content[GUARD_BYTES:]
        return np.lib.stride_tricks.as_strided(
            first, (matrix.rows, matrix.row_bytes), (matrix.stride, 1)
        )

    def _content(self) -> np.ndarray:
        return np.frombuffer(self._memory.read(self._start, len(self._before)), np.uint8)

    def codes(self) -> np.ndarray:
        """What the rows hold now, unsigned codes."""
        rows = self._rows(self._content())
        return unpack_rows(rows, self.matrix.columns, self.matrix.container)

    def holds(self, codes: np.ndarray) -> bool:
        """Do the rows hold exactly these codes, and every other byte what it held at first?"""
        expected = self._before.copy()
        self._rows(expected)[...] = pack_rows(codes, self.matrix.container)
        return bool(np.array_equal(expected, self._content()))
