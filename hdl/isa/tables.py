"""All instructions of all front ends in one table (pure Python)."""

from __future__ import annotations

from .ame import AME
from .fields import Instruction
from .xuantie import XUANTIE

__all__ = ["TABLE"]

TABLE: tuple[Instruction, ...] = (*AME, *XUANTIE)
"""No word is in both parts, which have different opcodes; a few names are."""
