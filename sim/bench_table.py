"""Benchmark rows as tables for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from rich import box
from rich.table import Table

from .bench_rows import Row

__all__ = ["tables"]

TITLES = {
    "cycles": "The core: cycles of the simulated RTL",
    "sweep": "GEMM over sizes",
    "engines": "The engines and what makes them",
}
ENGINE_KINDS = ("speed", "emission", "compile")
DIGITS = {"cycles": 0, "times": 0, "s": 1, "MB": 1}
RELATIONS = {">=": "at least", "<=": "at most", "==": "exactly"}


def tables(rows: Sequence[Row]) -> Iterator[Table]:
    """One table for each sort of row; rows that differ in their case alone are one line."""
    for sort, title in TITLES.items():
        some = [row for row in rows if _sort(row) == sort]
        if some:
            yield _table(title, some, cycles=sort != "engines", merge=sort != "sweep")


def _sort(row: Row) -> str:
    if row.kind in ENGINE_KINDS:
        return "engines"
    return "sweep" if row.kind == "sweep" else "cycles"


def _table(title: str, rows: Sequence[Row], *, cycles: bool, merge: bool) -> Table:
    table = Table(title=title, box=box.SIMPLE_HEAD, title_justify="left", title_style="bold")
    table.add_column("work")
    table.add_column("core")
    if cycles:
        table.add_column("bound", justify="right")
        table.add_column("cycles", justify="right")
    table.add_column("measured", justify="right")
    table.add_column("target")
    table.add_column("met")
    table.add_column("limited by" if cycles else "")
    key = _merged if merge else lambda row: (*_merged(row), row.case)
    for _, group in groupby(rows, key):
        table.add_row(*_line(list(group), cycles=cycles, merge=merge))
    return table


def _merged(row: Row) -> tuple[str, ...]:
    return row.kind, row.name, row.preset, row.engine


def _margin(row: Row) -> float:
    """How far a row is from its target; the lowest is the worst."""
    if row.target is None:
        return row.measured
    if row.relation == "==":
        return -abs(row.measured - row.target)
    return row.measured - row.target if row.relation == ">=" else row.target - row.measured


def _line(rows: list[Row], *, cycles: bool, merge: bool) -> list[str]:
    worst = min(rows, key=lambda row: (row.met is not False, _margin(row)))
    alike = len({row.measured for row in rows}) == 1
    own = len({row.target for row in rows}) > 1
    name = worst.name
    if len(rows) > 1:
        name += f" ({len(rows)} cases" + ("" if alike or own else f", worst: {worst.case}") + ")"
    elif not merge or worst.case not in ("", *name.rsplit(", ", 1)):
        name += f", {worst.case}" if worst.case else ""
    if own:
        low, high = min(row.measured for row in rows), max(row.measured for row in rows)
        measured = f"{low:,.0f} to {_figure(high, worst.unit)}"
        target, bound = "each its own", ""
        taken = ""
    else:
        measured = _figure(worst.measured, worst.unit)
        target = _target(worst)
        bound = "" if worst.bound is None else f"{worst.bound:,}"
        taken = "" if worst.cycles is None else f"{worst.cycles:,}"
    met = {None: "", True: "yes", False: "MISSED"}[worst.met]
    figures = [bound, taken] if cycles else []
    return [name, worst.preset, *figures, measured, target, met, worst.limited_by]


def _figure(value: float, unit: str) -> str:
    if unit.startswith("of "):
        return f"{100 * value:.2f} % {unit}"
    return f"{value:,.{DIGITS.get(unit, 3)}f} {unit}"


def _target(row: Row) -> str:
    if row.target is None:
        return ""
    return f"{RELATIONS[row.relation]} {_short(row)}"


def _short(row: Row) -> str:
    if row.unit.startswith("of "):
        return f"{100 * row.target:g} %"
    return f"{row.target:g}"
