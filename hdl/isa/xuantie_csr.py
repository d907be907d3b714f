"""Control and status registers of the front end `xuantie` (isa.md section 1), pure Python.

xmcsr, which every build has, is in `csr`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, IntEnum

from .fields import Field

__all__ = [
    "XMISA",
    "XMSIZE",
    "XUANTIE_CSRS",
    "FixedRounding",
    "XCsr",
    "XuanTieAccess",
    "XuanTieCsr",
]


class XCsr(IntEnum):
    """Numbers, absolute: they do not move with `Config.csr_base`."""

    XMRSTART = 0x801
    XMXRM = 0x803
    XMXSAT = 0xCC0
    XMSIZE = 0xCC1
    XMREGSIZE = 0xCC2
    XMLENB = 0xCC3
    XMISA = 0xCC4


class XuanTieAccess(Enum):
    """What a CSR instruction that writes does."""

    STORED = "stored"  # keeps the bits that exist
    CLEARED = "cleared"  # becomes 0, whatever is written
    READ_ONLY = "read only"  # the instruction is illegal


@dataclass(frozen=True)
class XuanTieCsr:
    """One register.

    Parameters
    ----------
    bits : bits that exist; those above read 0 and ignore writes.
    access : what writing does.
    waits : an access waits until all older work is done.
    reset : value after reset, or None for a constant of the Config.
    """

    bits: int
    access: XuanTieAccess
    waits: bool = False
    reset: int | None = 0


XUANTIE_CSRS: dict[XCsr, XuanTieCsr] = {
    XCsr.XMRSTART: XuanTieCsr(64, XuanTieAccess.STORED),
    XCsr.XMXRM: XuanTieCsr(2, XuanTieAccess.STORED),
    XCsr.XMXSAT: XuanTieCsr(1, XuanTieAccess.CLEARED, waits=True),
    XCsr.XMSIZE: XuanTieCsr(32, XuanTieAccess.READ_ONLY),  # mcfg writes it
    XCsr.XMREGSIZE: XuanTieCsr(64, XuanTieAccess.READ_ONLY, reset=None),
    XCsr.XMLENB: XuanTieCsr(64, XuanTieAccess.READ_ONLY, reset=None),
    XCsr.XMISA: XuanTieCsr(64, XuanTieAccess.READ_ONLY, reset=None),
}

XMSIZE = {"m": Field(0, 8), "n": Field(8, 8), "k": Field(16, 16)}
"""Rows of C and A, rows of B, bytes of a row of A and B."""

XMISA = {
    name: Field(bit, 1)
    for bit, name in enumerate(
        ("i4", "i8", "i16", "f16", "f32", "f64", "pointwise64", "pointwise32", "f16_f32", "f32_f64")
    )
}
"""What is built: `XuanTieInstruction.feature` names these."""


class FixedRounding(IntEnum):
    """xmxrm: how msra and mn4clip round what they shift out."""

    RNU = 0  # to nearest, ties up
    RNE = 1  # to nearest, ties to even
    RDN = 2  # down
    ROD = 3  # to odd: a dropped 1 sets the last bit
