"""Codes of number formats: as arrays of numbers, and as bytes of rows, low nibble first."""

from __future__ import annotations

import numpy as np

from hdl.formats import Format

from .reference.numerics import from_codes, to_codes

__all__ = [
    "as_codes",
    "code_dtype",
    "pack_rows",
    "random_codes",
    "row_bytes",
    "unpack_rows",
    "values_like",
]


def code_dtype(container: int) -> np.dtype:
    """Smallest unsigned numpy type that holds a code of `container` bits."""
    return np.dtype(f"<u{max(1, container // 8)}")


def row_bytes(columns: int, container: int) -> int:
    """Bytes of a row of `columns` elements of `container` bits."""
    return -(-columns * container // 8)


def pack_rows(codes: np.ndarray, container: int) -> np.ndarray:
    """Bytes of each row, (rows, `row_bytes`); a spare nibble is zero.

    Parameters
    ----------
    codes : unsigned codes that fit their container, (rows, columns).
    container : bits of an element, 4 or a multiple of 8.
    """
    codes = np.asarray(codes)
    rows, columns = codes.shape
    if container == 4:
        nibbles = np.zeros((rows, columns + columns % 2), np.uint8)
        nibbles[:, :columns] = codes
        return nibbles[:, 0::2] | nibbles[:, 1::2] << 4
    whole = np.ascontiguousarray(codes.astype(code_dtype(container), casting="unsafe"))
    return whole.view(np.uint8).reshape(rows, row_bytes(columns, container))


def unpack_rows(content: np.ndarray, columns: int, container: int) -> np.ndarray:
    """Codes of rows of bytes, (rows, columns), the reverse of `pack_rows`."""
    content = np.ascontiguousarray(content, np.uint8)
    if container == 4:
        nibbles = np.stack([content & 15, content >> 4], axis=-1)
        return nibbles.reshape(len(content), -1)[:, :columns].copy()
    return content.view(code_dtype(container))[:, :columns].copy()


def random_codes(noise: np.random.Generator, shape: tuple[int, int], fmt: Format) -> np.ndarray:
    """Random codes of a format, one in eight of them an extreme of its container."""
    codes = noise.integers(0, 1 << fmt.bits, shape, np.uint64)
    top = 1 << fmt.bits - 1
    extremes = np.array([0, 1, top - 1, top, 2 * top - 1], np.uint64)
    chosen = extremes[noise.integers(0, len(extremes), shape)]
    codes = np.where(noise.random(shape) < 1 / 8, chosen, codes)
    if fmt.top_aligned:
        codes <<= np.uint64(fmt.container - fmt.bits)
    return codes.astype(code_dtype(fmt.container))


def as_codes(name: str, array: np.ndarray, fmt: Format, rnd: int = 0) -> np.ndarray:
    """Unsigned codes of what a user gave: codes, two's complement numbers, or floats.

    Parameters
    ----------
    name : of the array, for messages.
    array : integers are codes, negative ones in two's complement; floats are converted, rounded
        in mode `rnd` and saturated.
    fmt : their format.

    Raises `ValueError` for another dtype and for an integer beyond the container.
    """
    array = np.asarray(array)
    if array.dtype.kind == "f":
        return to_codes(array, fmt, rnd)
    if array.dtype.kind not in "iu":
        raise ValueError(f"{name} must hold integers or floats, not {array.dtype}")
    low, high = -(1 << fmt.container - 1), (1 << fmt.container) - 1
    if array.size and (int(array.min()) < low or int(array.max()) > high):
        raise ValueError(
            f"{name} holds {int(array.min())} to {int(array.max())}: a code of {fmt.name} is "
            f"{low} to {high}"
        )
    mask = np.uint64(high)
    codes = array.astype(np.uint64 if array.dtype.kind == "u" else np.int64).view(np.uint64)
    return (codes & mask).astype(code_dtype(fmt.container))


def values_like(codes: np.ndarray, fmt: Format, given: np.dtype) -> np.ndarray:
    """Codes in the manner of an array of dtype `given`: floats, signed numbers, or codes."""
    if given.kind == "f":
        return from_codes(codes, fmt).astype(np.float64)
    if given.kind == "i" and fmt.is_integer and fmt.container >= 8:
        return codes.view(np.dtype(f"<i{fmt.container // 8}"))
    return codes
