"""All tasks and mutants, group by group."""

from __future__ import annotations

from hdl.cli import CommandError

from . import (
    control,
    decode,
    hazards,
    issue,
    l2,
    line_cut,
    numerics,
    progress,
    splits,
    tiles,
    word_splits,
)
from .task import Mutant, Task

__all__ = ["GROUPS", "MUTANTS", "TASKS", "task"]

GROUPS = {
    module.__name__.rpartition(".")[2]: module
    for module in (
        control,
        decode,
        hazards,
        issue,
        l2,
        line_cut,
        numerics,
        progress,
        splits,
        tiles,
        word_splits,
    )
}
"""Modules that hold TASKS and MUTANTS, by name."""

TASKS: dict[str, Task] = {t.name: t for group in GROUPS.values() for t in group.TASKS}
"""Every task by name, in order."""

MUTANTS: tuple[Mutant, ...] = tuple(m for group in GROUPS.values() for m in group.MUTANTS)
"""Every mutant, in order."""


def task(name: str) -> Task:
    """The task called `name`. Raises `CommandError` that names the list."""
    try:
        return TASKS[name]
    except KeyError:
        raise CommandError(f"unknown task {name!r}: --list names them") from None
