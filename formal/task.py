"""What there is to prove, and what must not pass: the rows of the tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .harness import Proof

__all__ = ["Mutant", "Task", "mutants"]


@dataclass(frozen=True, kw_only=True)
class Task:
    """One harness and how it is run.

    Parameters
    ----------
    name : unique; `--task` takes it.
    about : what is proved, in a few words.
    parameters : sizes of the design, for the table.
    build : makes the harness.
    mode : "prove" (k-induction, so for any length of run) or "bmc" (runs of up to `depth` cycles).
    depth : k of the induction, or cycles from reset.
    cover : cycles in which every cover statement must be reached.
    quick : part of `--quick`.
    timeout : seconds for each of the two runs.
    """

    name: str
    about: str
    parameters: str
    build: Callable[[], Proof]
    mode: str = "prove"
    depth: int
    cover: int
    quick: bool = False
    timeout: int = 600

    def __post_init__(self) -> None:
        if self.mode not in ("prove", "bmc"):
            raise ValueError(f"task {self.name} has the mode {self.mode!r}: use prove or bmc")


@dataclass(frozen=True, kw_only=True)
class Mutant:
    """One line of the design, broken.

    Parameters
    ----------
    name : what is wrong with it.
    path : source file below the repository.
    old, new : text that stands there exactly once, and what replaces it.
    task : the task that must find a counterexample.
    depth : cycles from reset in which it must be found; 0 for as many as the task looks at.
    """

    name: str
    path: str
    old: str
    new: str
    task: str
    depth: int = 0


def mutants(
    path: str, task: str, *rows: tuple[str, str, str], depth: int = 0
) -> tuple[Mutant, ...]:
    """Mutants of one file that one task must find: what is wrong, the old text, the new."""
    return tuple(
        Mutant(name=name, path=path, old=old, new=new, task=task, depth=depth)
        for name, old, new in rows
    )
