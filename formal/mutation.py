"""Mutation check: does a proof notice when the design is broken?

Each mutant is the source tree with one line replaced. Its task is run on it without induction, so
only a counterexample that starts from reset counts.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.table import Table

from hdl.cli import CommandError

from . import registry
from .jobs import in_order
from .sby import Result, Tools, run
from .task import Mutant

__all__ = ["ROOT", "broken", "mutate", "try_one"]

ROOT = Path(__file__).resolve().parent.parent
_PACKAGES = ("hdl", "formal")
_WRITE = "from formal import registry; print(registry.TASKS[{name!r}].build().rtlil())"


def broken(mutant: Mutant) -> str:
    """Source text of the mutant's file, broken. Raises `CommandError` if it cannot be."""
    source = (ROOT / mutant.path).read_text()
    count = source.count(mutant.old)
    if count != 1:
        raise CommandError(
            f"mutant {mutant.name!r}: {mutant.path} holds {mutant.old!r} {count} times, not once:"
            " write the mutant anew"
        )
    return source.replace(mutant.old, mutant.new)


def _harness(mutant: Mutant) -> str:
    """RTLIL of the mutant's task, made from a copy of the sources."""
    with tempfile.TemporaryDirectory() as folder:
        for package in _PACKAGES:
            shutil.copytree(
                ROOT / package,
                Path(folder) / package,
                ignore=shutil.ignore_patterns("__pycache__"),
            )
        (Path(folder) / mutant.path).write_text(broken(mutant))
        made = subprocess.run(
            [sys.executable, "-c", _WRITE.format(name=mutant.task)],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )
    if made.returncode:
        lines = made.stderr.strip().splitlines() or ["no message"]
        raise CommandError(f"mutant {mutant.name!r} cannot be built: {lines[-1]}")
    return made.stdout


def try_one(tools: Tools, mutant: Mutant, folder: Path) -> Result:
    """Look for a counterexample of one mutant: its result must be "fail"."""
    task = registry.TASKS[mutant.task]
    return run(
        tools,
        _harness(mutant),
        folder,
        mode="bmc",
        depth=mutant.depth or max(task.depth, task.cover),
        timeout=task.timeout,
    )


def mutate(console: Console, tools: Tools, tasks: set[str], folder: Path, jobs: int) -> int:
    """Try every mutant of `tasks`, `jobs` at a time; 1 if one survives, else 0."""
    table = Table("mutant", "file", "task", "result", "property", "seconds", box=None)
    survivors = 0
    chosen = [m for m in registry.MUTANTS if m.task in tasks]
    if not chosen:
        raise CommandError("no mutant is of these tasks: --list shows how many each has")
    folders = {id(m): folder / f"{m.task}_{number}" for number, m in enumerate(chosen)}
    for mutant, result in in_order(lambda m: try_one(tools, m, folders[id(m)]), chosen, jobs):
        killed = result.status == "fail"
        survivors += not killed
        verdict = "killed" if killed else f"survived ({result.status})"
        seconds = f"{result.seconds:.1f}"
        console.print(
            f"{mutant.task}: {mutant.name}: {verdict} {result.detail}, {seconds} s",
            highlight=False,
            soft_wrap=True,
        )
        table.add_row(
            mutant.name,
            mutant.path,
            mutant.task,
            f"[{'green' if killed else 'red'}]{verdict}[/]",
            result.detail,
            seconds,
        )
    console.print(table)
    console.print(
        f"{survivors} of {len(chosen)} mutants survived"
        if survivors
        else f"all {len(chosen)} mutants were killed"
    )
    return 1 if survivors else 0
