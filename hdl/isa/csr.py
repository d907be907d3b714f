"""Control and status registers: numbers and bit fields (isa.md section 2, seed 000 section 6)."""

from __future__ import annotations

from enum import IntEnum

from .fields import Field
from .xuantie_csr import XCsr

__all__ = [
    "CSR_COUNT",
    "CSR_RESET",
    "DEFAULT_CSR_BASE",
    "MXCFG",
    "MXCFG_BITS",
    "MXINFO",
    "MXSTATUS",
    "MXSTATUS_BITS",
    "MXTILE",
    "MXTILE_BITS",
    "READ_ONLY",
    "XMCSR",
    "XMCSR_FIELDS",
    "XMCSR_RESET",
    "Csr",
    "MsState",
    "Rounding",
    "Tiling",
    "all_csr_numbers",
    "csr_numbers",
]

DEFAULT_CSR_BASE = 0x7C0


class Csr(IntEnum):
    """Offset of a CSR from `Config.csr_base`."""

    MXCFG = 0
    MXTILE = 1
    MXSTATUS = 2
    MXSCALE = 3
    MXINFO = 4


CSR_COUNT = len(Csr)
READ_ONLY = frozenset({Csr.MXINFO})

XMCSR = 0x802
"""Number of xmcsr, absolute: it does not move with the base."""
XMCSR_FIELDS = {"ms": Field(0, 2)}


class MsState(IntEnum):
    """xmcsr's MS: state of the tiles, as seen by an operating system."""

    OFF = 0
    INITIAL = 1
    CLEAN = 2
    DIRTY = 3


XMCSR_RESET = MsState.INITIAL

MXCFG = {
    "ft": Field(0, 8),
    "bovf": Field(8, 1),
    "rnd": Field(9, 3),
    "sat": Field(12, 1),
    "acc": Field(13, 3),
    "reserved": Field(16, 16),
}
MXTILE = {
    "k": Field(0, 8),
    "m": Field(8, 8),
    "tiling": Field(16, 2),
    "guard4x4": Field(18, 1),
    "reserved": Field(19, 5),
    "n": Field(24, 8),
}
MXSTATUS = {
    "guard_fallback": Field(0, 1),
    "badgeom": Field(1, 1),
    "inexact": Field(2, 1),
    "sat_hit": Field(3, 1),
    "invalid": Field(4, 1),
    "overflow": Field(5, 1),
    "underflow": Field(6, 1),
    "bus_error": Field(7, 1),
}
MXINFO = {
    "formats": Field(0, 32),  # one bit a format, in the order of formats.PROFILE_ORDER
    "tiles_log2": Field(32, 4),
    "rows_log2": Field(36, 3),
    "banks_log2": Field(39, 3),
    "vector": Field(42, 1),
    "mx": Field(43, 1),
    "pool": Field(44, 1),
    "symstat": Field(45, 1),
    "split": Field(46, 1),
    "version": Field(47, 8),
}
MXCFG_BITS = MXTILE_BITS = 32
MXSTATUS_BITS = 8
"""Bits that exist; those above read 0 and ignore writes."""


class Rounding(IntEnum):
    """mxcfg's RND (not RISC-V's frm); 4 to 7 are undefined."""

    NEAREST_EVEN = 0
    UP = 1
    DOWN = 2
    TO_ZERO = 3


class Tiling(IntEnum):
    """mxtile's TILING: tiles of A x tiles of B."""

    T1X1 = 0
    T2X2 = 1
    T1X4 = 2
    T4X1 = 3

    @property
    def a_tiles(self) -> int:
        """Tiles of A, the macro's rows."""
        return (1, 2, 1, 4)[self]

    @property
    def b_tiles(self) -> int:
        """Tiles of B, the macro's columns."""
        return (1, 2, 4, 1)[self]


CSR_RESET = {
    Csr.MXCFG: 0,
    Csr.MXTILE: MXTILE["k"].put(16) | MXTILE["m"].put(16) | MXTILE["tiling"].put(Tiling.T2X2),
    Csr.MXSTATUS: 0,
    Csr.MXSCALE: 0,
}
"""Values after reset; mxinfo is a constant of the Config."""


def csr_numbers(base: int = DEFAULT_CSR_BASE) -> dict[str, int]:
    """Number of every CSR of the front end `ame`, by name."""
    return {csr.name.lower(): base + csr for csr in Csr} | {"xmcsr": XMCSR}


def all_csr_numbers(base: int = DEFAULT_CSR_BASE) -> dict[str, int]:
    """Number of every CSR of both front ends, by name."""
    return csr_numbers(base) | {csr.name.lower(): int(csr) for csr in XCsr}
