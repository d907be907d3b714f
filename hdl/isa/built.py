"""What this release builds of the instruction set; the decoder and the model both read it.

An instruction outside these sets answers illegal. An mmacc whose mode is outside `TILINGS`,
`GUARD4X4` and `TRANSPOSES` answers badgeom. Loads and stores do not depend on TILING and follow
isa.md whole, GUARD4x4's C stride included.
"""

from __future__ import annotations

from ..config import Config
from .ame import BTR_NATIVE, CsrFunct3, LdstWhat, MoveOp
from .csr import Csr, Tiling

__all__ = [
    "GUARD4X4",
    "INSTRUCTIONS",
    "MOVES",
    "TILINGS",
    "TRANSPOSES",
    "UNIT_CSRS",
    "UNIT_INSTRUCTIONS",
    "built_csrs",
    "built_instructions",
    "mode_built",
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

TILINGS = frozenset(Tiling)
GUARD4X4 = True
TRANSPOSES = frozenset({BTR_NATIVE})


def built_instructions(cfg: Config) -> frozenset[str]:
    """Mnemonics that a core decodes; every other word is illegal."""
    return INSTRUCTIONS.union(*(UNIT_INSTRUCTIONS.get(unit, frozenset()) for unit in cfg.units))


def built_csrs(cfg: Config) -> tuple[Csr, ...]:
    """CSRs that a core has at its base, xmcsr besides."""
    return tuple(csr for csr in Csr if UNIT_CSRS.get(csr, "") in ("", *cfg.units))


def mode_built(tiling: int, guard4x4: int, btr: int) -> bool:
    """Can an mmacc run in this mode? If not it answers badgeom."""
    return (
        (bool(guard4x4) or tiling in TILINGS) and (not guard4x4 or GUARD4X4) and (btr in TRANSPOSES)
    )
