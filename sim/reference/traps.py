"""How an instruction answers, and the ways in which it may trap (isa.md sections 2 and 3)."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = [
    "ERROR_BADGEOM",
    "ERROR_BUS",
    "ERROR_ILLEGAL",
    "ERROR_NONE",
    "BusTrapError",
    "IllegalError",
    "Response",
]

ERROR_NONE, ERROR_ILLEGAL, ERROR_BADGEOM, ERROR_BUS = range(4)


@dataclass(frozen=True)
class Response:
    """The answer to one instruction; `rd` and `data` have a meaning only with `wb`."""

    wb: int = 0
    rd: int = 0
    data: int = 0
    error: int = ERROR_NONE


class IllegalError(Exception):
    """The instruction answers illegal."""


class BusTrapError(Exception):
    """The instruction answers bus."""
