"""What this release builds of the instruction set; the decoder and the model both read it.

An instruction outside these sets answers illegal.
"""

from __future__ import annotations

from ..config import Config
from .ame import AME, FUNCT3, OPCODE, OPCODE_AME, CsrFunct3, Funct3, LdstWhat
from .csr import Csr
from .fields import Instruction

__all__ = [
    "COMMON_INSTRUCTIONS",
    "INSTRUCTIONS",
    "MOVE_INSTRUCTIONS",
    "SPLIT_INSTRUCTIONS",
    "UNIT_CSRS",
    "UNIT_INSTRUCTIONS",
    "VECTOR_INSTRUCTIONS",
    "built_csrs",
    "built_instructions",
]


def _of(row: Instruction, funct3: Funct3) -> bool:
    """Is it one of the `ame` instructions with this funct3?"""
    return OPCODE.get(row.match) == OPCODE_AME and FUNCT3.get(row.match) == funct3


MOVE_INSTRUCTIONS = frozenset(row.name for row in AME if _of(row, Funct3.MOVE))
VECTOR_INSTRUCTIONS = frozenset(row.name for row in AME if _of(row, Funct3.VECTOR))

SPLIT_INSTRUCTIONS = frozenset({"mmovf"})
"""Mnemonics that need a second file."""

COMMON_INSTRUCTIONS = frozenset({"mfence", *(funct3.name.lower() for funct3 in CsrFunct3)})
"""Mnemonics built in every core."""

INSTRUCTIONS = frozenset(
    {
        "mmacc.t",
        *(f"mld{what.name.lower()}" for what in LdstWhat),
        *(f"mst{what.name.lower()}" for what in LdstWhat),
        *(MOVE_INSTRUCTIONS - SPLIT_INSTRUCTIONS),
        "mrelease",
        *COMMON_INSTRUCTIONS,
    }
)
"""Mnemonics built in every core with the front end `ame`."""

UNIT_INSTRUCTIONS = {"vector": VECTOR_INSTRUCTIONS}
"""Mnemonics that a unit of `Config.units` adds."""

UNIT_CSRS = {Csr.MXSCALE: "mx"}
"""CSRs that exist only with a unit of `Config.units`; all others exist always."""


def built_instructions(cfg: Config) -> frozenset[str]:
    """Mnemonics of the table `AME` that a core decodes; its other words are illegal.

    A core without the front end `ame` still has mfence and the CSR instructions.
    """
    if not cfg.ame:
        return COMMON_INSTRUCTIONS
    units = (UNIT_INSTRUCTIONS.get(unit, frozenset()) for unit in cfg.units)
    return INSTRUCTIONS.union(*units, SPLIT_INSTRUCTIONS if cfg.split else ())


def built_csrs(cfg: Config) -> tuple[Csr, ...]:
    """CSRs that a core has at its base, xmcsr besides."""
    if not cfg.ame:
        return (Csr.MXSTATUS,)
    return tuple(csr for csr in Csr if UNIT_CSRS.get(csr, "") in ("", *cfg.units))
