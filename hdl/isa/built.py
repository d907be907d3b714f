"""What this release builds of the instruction set; the decoder and the model both read it.

An instruction outside these sets answers illegal.
"""

from __future__ import annotations

from ..config import Config
from .ame import CsrFunct3, LdstWhat, MoveOp
from .csr import Csr

__all__ = [
    "INSTRUCTIONS",
    "MOVES",
    "UNIT_CSRS",
    "UNIT_INSTRUCTIONS",
    "built_csrs",
    "built_instructions",
]

MOVES = frozenset({MoveOp.MMOV, MoveOp.MZERO})

INSTRUCTIONS = frozenset(
    {
        "mmacc.t",
        *(f"mld{what.name.lower()}" for what in LdstWhat),
        *(f"mst{what.name.lower()}" for what in LdstWhat),
        *(move.name.lower() for move in MOVES),
        "mfence",
        "mrelease",
        *(funct3.name.lower() for funct3 in CsrFunct3),
    }
)
"""Mnemonics built in every core with the front end `ame`."""

UNIT_INSTRUCTIONS: dict[str, frozenset[str]] = {}
"""Mnemonics that a unit of `Config.units` adds."""

UNIT_CSRS = {Csr.MXSCALE: "mx"}
"""CSRs that exist only with a unit of `Config.units`; all others exist always."""


def built_instructions(cfg: Config) -> frozenset[str]:
    """Mnemonics that a core decodes; every other word is illegal."""
    return INSTRUCTIONS.union(*(UNIT_INSTRUCTIONS.get(unit, frozenset()) for unit in cfg.units))


def built_csrs(cfg: Config) -> tuple[Csr, ...]:
    """CSRs that a core has at its base, xmcsr besides."""
    return tuple(csr for csr in Csr if UNIT_CSRS.get(csr, "") in ("", *cfg.units))
