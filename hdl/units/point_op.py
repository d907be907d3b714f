"""What a pointwise instruction of the front end "xuantie" does, as its uops carry it."""

from __future__ import annotations

from enum import IntEnum

from amaranth.hdl import unsigned
from amaranth.lib import data

from ..config import Config

__all__ = ["PointOp", "PointSource", "Rounding", "point_op"]


class PointOp(IntEnum):
    """Operations, in the order of `func` from 3 on: what becomes of elements x and y.

    `MULH`: the high half of the signed product. `SRA`: x shifted right by y, rounded. `CLIP`,
    `CLIPU`: shifted and rounded, then clamped to a quarter of the element's width; `CLIPU` takes x
    as unsigned.
    """

    ADD = 0
    SUB = 1
    SRA = 2
    CLIP = 3
    CLIPU = 4
    MUL = 5
    MULH = 6


class PointSource(IntEnum):
    """Where y comes from: the word itself, one of its rows for all rows, or the scalar."""

    WORD = 0
    ROW = 1
    SCALAR = 2


class Rounding(IntEnum):
    """Rounding of what a shift drops, as xmxrm codes it.

    To nearest with halves up, to nearest with halves to even, down, to odd.
    """

    RNU = 0
    RNE = 1
    RDN = 2
    ROD = 3


def point_op(cfg: Config) -> data.StructLayout:
    """One pointwise uop; it computes a stored word from a word of x and one of y.

    `kind`: `PointOp`. `wide`: elements have 64 bits, else 32. `rnd`: `Rounding`. `source`:
    `PointSource`. `row`: the row of y's word that `PointSource.ROW` means. `k`: active bytes of a
    row of x, a multiple of the element's. `rows`: active rows.
    """
    return data.StructLayout(
        {
            "kind": 3,
            "wide": 1,
            "rnd": 2,
            "source": 2,
            "row": unsigned(max(1, cfg.m_par_log2)),
            "k": unsigned(cfg.row_bytes.bit_length()),
            "rows": cfg.m_par,
        }
    )
