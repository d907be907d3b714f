"""Measure the core and its engines against their targets, in one run.

Cycles come from the simulated RTL and are exact; L2 latency is 20 unless a row says otherwise.
Where cycles were lost says what MAC issue, or the L2 port, waited for most (hdl/activity.py).

examples:
  python -m sim.bench --quick
  python -m sim.bench --only gemm --only tails --json table.json
  python -m sim.bench --only sweep --sizes 16,32,64,128,256 --plot utilisation.svg
"""

from __future__ import annotations

import csv
import io
import json
import sys
from argparse import Namespace
from collections.abc import Sequence

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from hdl.cli import CommandError, Parser, check_writable, run_command, write_whole
from hdl.config import ConfigError

from .bench_engines import engine_jobs
from .bench_gemm import gemm_jobs, sweep_jobs
from .bench_plot import check_plot, plot_sweep
from .bench_rows import Job, Row, Setting
from .bench_table import tables
from .bench_units import unit_jobs
from .cores import as_config
from .driver import SimulationError
from .engines import ENGINES, EngineMissing, available
from .protocol import ProtocolError
from .recording import add_recording_options, recording

__all__ = ["KINDS", "main", "measure"]

PROGRAM = "sim.bench"

UNITS = ("mmacc", "loads", "stores", "latency", "decode")
ENGINE_KINDS = ("speed", "emission", "compile")
KINDS = (*UNITS, "gemm", "tails", *ENGINE_KINDS, "sweep")
"""What --only takes."""

WIDTH = 132
"""Of tables that go into a file or a pipe."""

COMPILED = ("verilator", "cxxrtl")
"""Engines whose speed is measured against pysim."""

LONG_KINDS = ("speed", "emission", "compile")
"""What --quick leaves out unless asked for by name."""


def _parser() -> Parser:
    parser = Parser(prog=f"python -m {PROGRAM}", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes, few cases, no engines")
    parser.add_argument(
        "--only",
        action="append",
        metavar="KIND",
        help="measure this alone; may be repeated: " + ", ".join(KINDS),
    )
    parser.add_argument("--preset", default="ame32", help="the core (%(default)s)")
    parser.add_argument("--engine", default="auto", help=", ".join(ENGINES))
    parser.add_argument("--csv", metavar="FILE", help="write all figures")
    parser.add_argument("--json", metavar="FILE", help="write all figures")
    parser.add_argument("--plot", metavar="FILE", help="draw GEMMs over sizes, as .png or .svg")
    parser.add_argument(
        "--sizes", default="16,32,64,128", help="of that plot, with commas (%(default)s)"
    )
    parser.add_argument(
        "--fresh", action="store_true", help="measure compiling too, without the cache"
    )
    add_recording_options(parser)
    return parser


def _sizes(text: str) -> list[int]:
    try:
        sizes = sorted({int(part) for part in text.split(",")})
    except ValueError:
        sizes = []
    if not sizes or sizes[0] < 1:
        raise CommandError(f"--sizes takes numbers from 1 with commas between, not {text!r}")
    return sizes


def _jobs(options: Namespace) -> list[Job]:
    """What to measure, in order."""
    kinds = options.only or [
        kind
        for kind in KINDS
        if not (kind == "sweep" and options.plot is None)
        and not (options.quick and kind in LONG_KINDS)
    ]
    for kind in kinds:
        if kind not in KINDS:
            raise CommandError(f"--only {kind} is unknown: use one of {', '.join(KINDS)}")
    if "sweep" in kinds or options.plot is not None:
        kinds = [*kinds, "sweep"]
    fresh = options.fresh or "compile" in (options.only or ())
    cfg = as_config(options.preset)
    if "ame" not in cfg.frontends:
        raise CommandError(f"{cfg.name} has no front end ame, whose programs are measured")
    setting = Setting(cfg, options.engine, quick=options.quick, fresh=fresh)
    jobs = [*unit_jobs(setting), *gemm_jobs(setting), *engine_jobs(setting)]
    if "sweep" in kinds:
        jobs += sweep_jobs(setting, _sizes(options.sizes))
    return [job for job in jobs if job.kind in kinds]


def measure(jobs: Sequence[Job], console: Console) -> list[Row]:
    """Run every job, with a line of progress on `console`."""
    rows: list[Row] = []
    columns = (
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}"),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("", total=len(jobs))
        for job in jobs:
            progress.update(task, description=job.title)
            rows += job.run()
            progress.advance(task)
    return rows


def _csv(rows: Sequence[Row]) -> bytes:
    reports = [row.report() for row in rows]
    text = io.StringIO()
    writer = csv.DictWriter(text, reports[0])
    writer.writeheader()
    writer.writerows(reports)
    return text.getvalue().encode()


def _command(options: Namespace) -> int:
    if options.engine == "model":
        raise CommandError("engine model counts no cycles: use one that simulates hardware")
    if options.engine not in ENGINES:
        raise CommandError(f"unknown engine {options.engine!r}: use one of {', '.join(ENGINES)}")
    for path in (options.csv, options.json, options.plot):
        if path is not None:
            check_writable(path)
    if options.plot is not None:
        check_plot(options.plot)
    try:
        jobs = _jobs(options)
        if not jobs:
            raise CommandError(
                f"{options.preset} has nothing to measure there: choose another --only"
            )
        with recording(options):
            rows = measure(jobs, Console(stderr=True))
    except (ValueError, ConfigError, EngineMissing) as error:
        raise CommandError(str(error)) from None
    except (SimulationError, ProtocolError) as error:
        print(f"{PROGRAM}: the core failed: {error}", file=sys.stderr)
        return 1
    console = Console(highlight=False, width=None if sys.stdout.isatty() else WIDTH)
    for table in tables(rows):
        console.print(table)
    if options.csv is not None:
        write_whole(options.csv, _csv(rows))
    if options.json is not None:
        report = json.dumps([row.report() for row in rows], indent=1)
        write_whole(options.json, f"{report}\n".encode())
    if options.plot is not None:
        points = [row for row in rows if row.kind == "sweep"]
        plot_sweep(points, options.plot, as_config(options.preset).bus_bytes)
    missed = [row for row in rows if row.met is False]
    for row in missed:
        name = " ".join(filter(None, (row.name, row.case)))
        print(f"{PROGRAM}: missed: {name} on {row.preset}", file=sys.stderr)
    for name in sorted(COMPILED if any(job.kind == "speed" for job in jobs) else ()):
        if available()[name] is not None:
            print(f"{PROGRAM}: {name} was not measured: {available()[name]}", file=sys.stderr)
    return 1 if missed else 0


def main(arguments: list[str] | None = None) -> int:
    """Run the command; returns its exit status: 0, 1 for a missed target, 2 for a wrong request."""
    return run_command(PROGRAM, lambda: _command(_parser().parse_args(arguments)))


if __name__ == "__main__":
    sys.exit(main())
