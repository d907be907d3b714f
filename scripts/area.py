"""Measures what each number format costs on an ECP5, and writes docs/area.md.

Each format alone, each profile, everything, exact and windowed; and the clock of some. Results are
cached, so only what changed is measured again. With --formats or --set it prints a table of
those alone and writes docs/area.md only if -o names it.

examples:
  python -m scripts.area
  python -m scripts.area --formats int8,fp16,common --set m_par=1 n_par=1
  python -m scripts.area --formats fp16 --set exact_limit=48 --json -
"""

from __future__ import annotations

import json
import os
import sys
from argparse import Namespace
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict
from pathlib import Path

from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from hdl.cli import CommandError, Parser, check_writable, run_command, write_whole
from hdl.config import ConfigError, preset
from hdl.settings import apply_settings
from sim.engines.build import package_version

from .area_table import (
    CLOCK_NAMES,
    COLUMNS,
    DEFAULT,
    REFERENCE,
    Results,
    Row,
    cells,
    document,
    every_row,
    rows_of,
    table,
)
from .synthesis import NEXTPNR, YOSYS, measure_area, measure_clock, need

__all__ = ["main"]

PROGRAM = "scripts.area"
DOCUMENT = Path(__file__).resolve().parents[1] / "docs" / "area.md"
_PIPE_WIDTH = 160
"""Columns of a table that does not go to a terminal."""


def _parser() -> Parser:
    parser = Parser(prog="python -m scripts.area", description=__doc__)
    parser.add_argument(
        "--formats", metavar="NAME,...", help="formats, profiles or presets, one row each (all)"
    )
    parser.add_argument(
        "--set",
        metavar="FIELD=VALUE",
        dest="settings",
        action="extend",
        nargs="+",
        default=[],
        help=f"change the array of {DEFAULT}, such as m_par=1 exact_limit=48",
    )
    parser.add_argument(
        "--clock", action="store_true", help="with --formats: place and route as well, 1 x 1"
    )
    parser.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1), help="at once")
    parser.add_argument("-o", metavar="FILE", dest="output", help="Markdown (docs/area.md)")
    parser.add_argument("--json", metavar="FILE", help="write the figures, - for stdout, no table")
    return parser


def _all_done(jobs: dict[str, Callable[[], object]], count: int, title: str) -> dict[str, object]:
    """Results of all jobs, in their order, with progress on stderr."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    console = Console(stderr=True)
    found = {}
    with (
        Progress(*columns, TimeElapsedColumn(), console=console, transient=True) as progress,
        ThreadPoolExecutor(count) as pool,
    ):
        task = progress.add_task(title, total=len(jobs))
        running = {pool.submit(job): name for name, job in jobs.items()}
        try:
            for future in as_completed(running):
                found[running[future]] = future.result()
                progress.update(task, advance=1, description=f"{title}, {running[future]}")
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return {name: found[name] for name in jobs}


def _measure(rows: Iterable[Row], clocks: Iterable[Row], jobs: int) -> Results:
    clocks = tuple(clocks)
    need(YOSYS, *((NEXTPNR,) if clocks else ()))
    areas = _all_done({row.key: lambda cfg=row.cfg: measure_area(cfg) for row in rows}, jobs,
                      "synthesis")  # fmt: skip
    mhz = {}
    if clocks:
        one = {row.key: row.cfg.replace(m_par=1, n_par=1) for row in clocks}
        mhz = _all_done(
            {key: lambda cfg=cfg: measure_clock(cfg) for key, cfg in one.items()}, jobs, "clock"
        )
    return Results(package_version(YOSYS), package_version(NEXTPNR), areas, mhz)


def _report(rows: Iterable[Row], results: Results) -> dict[str, object]:
    """All figures, for --json."""
    found = []
    for row in rows:
        area = results.areas[row.key]
        found.append(
            {
                "name": row.name,
                "formats": list(row.formats),
                "exact_limit": row.cfg.exact_limit,
                "macs_per_cycle": row.macs,
                **asdict(area),
                "comb": area.comb,
            }
        )
    clocks = {name: asdict(clock) for name, clock in results.clocks.items()}
    return {"yosys": results.yosys, "nextpnr": results.nextpnr, "areas": found, "clocks": clocks}


def _print(rows: Iterable[Row], results: Results) -> None:
    console = Console(width=None if sys.stdout.isatty() else _PIPE_WIDTH, highlight=False)
    reference = results.areas.get(REFERENCE)
    shown = Table(box=box.SIMPLE_HEAD)
    for i, column in enumerate((*COLUMNS, *([f"COMB / {REFERENCE}"] if reference else []))):
        shown.add_column(column, justify="left" if i < 2 else "right")
    for row in rows:
        shown.add_row(
            *(text.replace("`", "") for text in cells(row, results.areas[row.key], reference))
        )
    console.print(shown)
    for name, clock in results.clocks.items():
        console.print(
            f"{name}: {clock.mhz:.1f} MHz, from {clock.source} to {clock.sink}, "
            f"{clock.logic_ns} ns logic, {clock.routing_ns} ns routing"
        )


def _run(options: Namespace) -> int:
    partial = options.formats is not None or bool(options.settings)
    names = [name.strip().lower() for name in (options.formats or "").split(",") if name.strip()]
    if options.formats is not None and not names:
        raise CommandError("--formats names no format: give one, such as int8")
    if any(setting.partition("=")[0].strip() == "formats" for setting in options.settings):
        raise CommandError("--set formats: name them with --formats, one row each")
    if options.jobs < 1:
        raise CommandError("--jobs must be 1 or more")
    try:
        base = apply_settings(preset(DEFAULT), options.settings)
        rows = rows_of(names, base) if names else every_row(base)
    except ConfigError as error:
        raise CommandError(str(error)) from None
    output = options.output or (None if partial else DOCUMENT)
    for path in (output, options.json):
        if path not in (None, "-"):
            check_writable(path)
    clocks = rows if partial and options.clock else ()
    if not partial:
        clocks = rows_of(CLOCK_NAMES, base)
    results = _measure(rows, clocks, options.jobs)
    if output is not None:
        text = table(rows, results.areas) + "\n" if partial else document(base, results)
        write_whole(output, text.encode())
        print(f"{PROGRAM}: wrote {output}", file=sys.stderr)
    if options.json is not None:
        text = json.dumps(_report(rows, results), indent=2) + "\n"
        if options.json == "-":
            sys.stdout.write(text)
        else:
            write_whole(options.json, text.encode())
    else:
        _print(rows, results)
    return 0


def main(arguments: list[str] | None = None) -> int:
    """Run the command; returns its exit status: 0, or 2 for a request that is wrong."""
    return run_command(PROGRAM, lambda: _run(_parser().parse_args(arguments)))


if __name__ == "__main__":
    sys.exit(main())
