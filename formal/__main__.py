"""Proofs of the design by SymbiYosys: `python -m formal`."""

from __future__ import annotations

import os
import signal
import sys
import threading
from argparse import Namespace
from collections import Counter
from pathlib import Path

from rich.console import Console
from rich.table import Table

from hdl.cli import CommandError, Parser, run_command

from . import registry
from .jobs import in_order
from .mutation import mutate
from .sby import SOLVERS, Result, Tools, find_tools, run
from .task import Task

_EPILOG = """\
Every task is run twice: its properties are proved, and its cover statements are reached, so that no
property holds for want of a run. Exit status 1 if anything is not proved or not reached, or a
mutant survives; 2 if the command or the tools are wrong.
"""


def _parser() -> Parser:
    parser = Parser(prog="python -m formal", description=__doc__, epilog=_EPILOG)
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--list", action="store_true", help="list the tasks and stop")
    what.add_argument("--quick", action="store_true", help="only the tasks of the quick subset")
    parser.add_argument(
        "--task", action="append", metavar="NAME", help="only this task (may be given again)"
    )
    parser.add_argument("--mutate", action="store_true", help="break the design, expect failures")
    parser.add_argument("--depth", type=int, metavar="N", help="another depth for every proof")
    parser.add_argument(
        "--bmc", action="store_true", help="look for counterexamples alone: no induction, no covers"
    )
    parser.add_argument("--solver", choices=SOLVERS, help="default: the first that is installed")
    parser.add_argument("--timeout", type=int, metavar="S", help="seconds for each run")
    parser.add_argument(
        "--jobs",
        type=int,
        default=os.cpu_count() or 1,
        metavar="N",
        help="runs at a time (%(default)s)",
    )
    parser.add_argument(
        "-o",
        dest="folder",
        type=Path,
        default=Path("build/formal"),
        help="working folder (%(default)s)",
    )
    return parser


def _chosen(names: list[str] | None, quick: bool) -> list[Task]:
    tasks = [registry.task(name) for name in names] if names else list(registry.TASKS.values())
    return [task for task in tasks if task.quick or not quick]


def _list(console: Console, tasks: list[Task]) -> None:
    table = Table(
        "task", "mode", "depth", "cover", "quick", "mutants", "what", "parameters", box=None
    )
    mutants = Counter(mutant.task for mutant in registry.MUTANTS)
    for task in tasks:
        table.add_row(
            task.name,
            task.mode,
            str(task.depth),
            str(task.cover),
            "quick" if task.quick else "",
            str(mutants[task.name] or ""),
            task.about,
            task.parameters,
        )
    console.print(table)


def _runs(task: Task, *, depth: int | None, bmc: bool) -> list[tuple[str, int]]:
    """Modes and depths to run a task in."""
    if bmc:
        return [("bmc", depth or task.depth)]
    return [(task.mode, depth or task.depth), ("cover", task.cover)]


_ELABORATES = threading.Lock()
"""Harnesses put other parts into the design while they are made: one at a time."""


def _run(tools: Tools, task: Task, mode: str, depth: int, args: Namespace) -> Result:
    with _ELABORATES:
        text = task.build().rtlil()
    folder = args.folder / f"{task.name}_{mode}"
    timeout = args.timeout or task.timeout
    return run(tools, text, folder, mode=mode, depth=depth, timeout=timeout)


def _prove(console: Console, tools: Tools, tasks: list[Task], args: Namespace) -> int:
    table = Table("task", "mode", "engine", "depth", "result", "seconds", "parameters", box=None)
    notes: list[str] = []
    failures = 0
    runs = [(t, mode, n) for t in tasks for mode, n in _runs(t, depth=args.depth, bmc=args.bmc)]
    for (task, mode, depth), result in in_order(
        lambda one: _run(tools, *one, args), runs, args.jobs
    ):
        good = result.status == "pass"
        failures += not good
        line = f"{task.name} {mode} {depth}: {result.status}"
        if result.detail:
            line += f" ({result.detail})"
        console.print(f"{line}, {result.seconds:.1f} s", highlight=False, soft_wrap=True)
        if result.trace:
            notes.append(f"{task.name}: {result.detail}: {result.trace}")
        table.add_row(
            task.name,
            mode,
            tools.engine,
            str(depth),
            f"[{'green' if good else 'red'}]{result.status}[/]",
            f"{result.seconds:.1f}",
            task.parameters,
        )
    console.print(table)
    for note in notes:
        console.print(f"counterexample of {note}", highlight=False, soft_wrap=True)
    console.print(f"{failures} of {len(runs)} runs failed" if failures else f"{len(runs)} passed")
    return 1 if failures else 0


def _main(argv: list[str] | None) -> int:
    args = _parser().parse_args(argv)
    for name in ("depth", "timeout", "jobs"):
        value = getattr(args, name)
        if value is not None and value < 1:
            raise CommandError(f"--{name} {value}: use 1 or more")
    tasks = _chosen(args.task, args.quick)
    console = Console(width=None if sys.stdout.isatty() else 160)
    if args.list:
        _list(console, tasks)
        return 0
    tools = find_tools(args.solver)
    if args.mutate:
        return mutate(
            console, tools, {task.name for task in tasks}, args.folder / "mutants", args.jobs
        )
    return _prove(console, tools, tasks, args)


def main(argv: list[str] | None = None) -> int:
    """Run the command. Returns its exit status."""
    # So that a command that is told to end ends its solver too.
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    return run_command("python -m formal", lambda: _main(argv))


if __name__ == "__main__":
    sys.exit(main())
