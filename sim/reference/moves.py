"""What the moves of elements do to whole tiles (isa.md section 2, moves), on numpy arrays.

A tile is uint8 of shape (rows, row bytes). Nothing here changes its arguments.
"""

from __future__ import annotations

import numpy as np

__all__ = [
    "broadcast_column",
    "broadcast_row",
    "broadcast_scalar",
    "element",
    "group_tiles",
    "transposed",
]


def _elements(tiles: np.ndarray, size: int) -> np.ndarray:
    """Elements of `size` bytes, the last axis one row's."""
    return np.ascontiguousarray(tiles).view(f"<u{size}")


def group_tiles(rows: int, row_bytes: int, size: int) -> int:
    """Tiles of a group of rows x rows elements: column slices, one a tile."""
    return max(1, rows * size // row_bytes)


def transposed(group: np.ndarray, size: int) -> np.ndarray:
    """The transpose of a group of rows x rows elements, (tiles, rows, row bytes).

    Elements of wider rows, which lie beside the square, become zero.
    """
    count, rows, row_bytes = group.shape
    lanes = row_bytes // size
    matrix = np.concatenate(list(_elements(group, size)), axis=1)
    result = np.zeros_like(matrix)
    result[:, :rows] = matrix[:, :rows].T
    slices = [result[:, lanes * tile : lanes * (tile + 1)] for tile in range(count)]
    return np.stack([np.ascontiguousarray(part).view(np.uint8) for part in slices])


def broadcast_row(tile: np.ndarray, index: int) -> np.ndarray:
    """Row `index` in every row."""
    return np.repeat(tile[index : index + 1], len(tile), axis=0)


def broadcast_column(tile: np.ndarray, index: int, size: int) -> np.ndarray:
    """The element of column `index` of every row, all along that row."""
    elements = _elements(tile, size)
    return np.repeat(elements[:, index : index + 1], elements.shape[1], axis=1).view(np.uint8)


def broadcast_scalar(rows: int, row_bytes: int, value: int, size: int) -> np.ndarray:
    """The low `size` bytes of `value` in every element."""
    pattern = (value & ((1 << 8 * size) - 1)).to_bytes(size, "little")
    row = np.frombuffer(pattern * (row_bytes // size), np.uint8)
    return np.repeat(row[None, :], rows, axis=0)


def element(tile: np.ndarray, index: int, size: int) -> int:
    """Element `index`, counted along the rows, without sign."""
    return int(_elements(tile, size).reshape(-1)[index])
