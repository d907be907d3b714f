"""What a benchmark measures: rows with a target, and what held the core back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from hdl.activity import ACTIVITY, MAC_ISSUE, MAC_LOST, MAC_STATES
from hdl.config import Config, preset

__all__ = [
    "LATENCY",
    "Job",
    "Row",
    "Setting",
    "counts",
    "limit",
    "mac_limit",
    "moments",
    "targets_hold",
]

LATENCY = 20
"""Of L2, in cycles, unless a row says otherwise (performance.md section 2)."""

NEGLIGIBLE = 0.005
"""A share of the cycles below which nothing is said to have limited a figure."""

SHORT = {
    "mac_transpose": "transposes",
    "mac_bank": "the operands' bank",
    "mac_operands": "operands",
    "mac_c_tile": "C's tile",
    "mac_c_word": "C's word in the array",
    "mac_skip": "gaps for starving requests",
    "mac_slots": "slots full of other work",
    "mac_instruction": "instructions",
    "load_bank": "the bank of loads",
    "store_bank": "the bank of stores",
    "read_ids": "read ids",
    "read_request_wait": "L2 read requests",
    "read_beat_wait": "L2 read data",
    "write_ids": "write ids",
    "write_request_wait": "L2 write requests",
    "write_beat_wait": "L2 write data",
}
"""What was waited for, in a word or two, by the bit of `ACTIVITY` that counts it."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """One figure and what it must be.

    Parameters
    ----------
    kind : which benchmark, as --only names it.
    name, case : what was done; rows that differ in `case` alone are shown as one.
    preset, engine : on what.
    measured, unit : the figure.
    target : what it must be by `relation`, ">=", "<=" or "=="; None has no target.
    bound, cycles : where the figure is their quotient.
    limited_by : what the cycles above the bound were waited for.
    activity : cycles in which each bit of `hdl.activity.ACTIVITY` was set.
    """

    kind: str
    name: str
    case: str = ""
    preset: str
    engine: str
    measured: float
    unit: str = "of bound"
    target: float | None = None
    relation: str = ">="
    bound: int | None = None
    cycles: int | None = None
    limited_by: str = ""
    activity: Mapping[str, int] = field(default_factory=dict)

    @property
    def met(self) -> bool | None:
        """Is the target met? None without one."""
        if self.target is None:
            return None
        if self.relation == "<=":
            return self.measured <= self.target
        if self.relation == "==":
            return self.measured == self.target
        return self.measured >= self.target

    def report(self) -> dict[str, object]:
        """Everything, under the keys of --json and the columns of --csv."""
        keys = ("kind", "name", "case", "preset", "engine", "bound", "cycles", "measured", "unit")
        keys += ("relation", "target", "met", "limited_by")
        activity = {name: self.activity.get(name) for name in ACTIVITY}
        return {**{key: getattr(self, key) for key in keys}, **activity}


@dataclass(frozen=True)
class Setting:
    """How to measure.

    Parameters
    ----------
    cfg : the core; C of its own is measured on the same with a C file.
    engine : what simulates it.
    quick : small sizes and few cases.
    fresh : measure how long compiling takes, apart from the cache.
    """

    cfg: Config
    engine: str
    quick: bool = False
    fresh: bool = False

    @property
    def split(self) -> Config:
        """The core with a C file of its own."""
        if self.cfg.split:
            return self.cfg
        return self.cfg.replace(name=f"{self.cfg.name}-split", accumulators="split")


@dataclass(frozen=True)
class Job:
    """A step of the benchmark: what to say while it runs, and what gives its rows."""

    kind: str
    title: str
    run: Callable[[], Iterable[Row]]


def targets_hold(cfg: Config) -> bool:
    """Is this the geometry that the targets were set for? Formats and accumulators are free."""
    base = preset("ame32")
    free = {name: getattr(base, name) for name in ("name", "formats", "accumulators", "window")}
    return cfg.replace(**free) == base


def moments(values: np.ndarray, name: str) -> np.ndarray:
    """The cycles in which one bit of recorded activity was set, ascending."""
    return np.flatnonzero(values >> np.uint64(list(ACTIVITY).index(name)) & np.uint64(1))


def counts(values: np.ndarray) -> dict[str, int]:
    """Cycles in which each bit was set, of recorded activity."""
    return {name: len(moments(values, name)) for name in ACTIVITY}


def limit(activity: Mapping[str, int], names: Sequence[str], cycles: int) -> str:
    """The one of `names` that was set most often, with its share; "nothing" when hardly any was."""
    if not activity or not cycles:
        return "unknown"
    worst = max(names, key=lambda name: activity[name])
    share = activity[worst] / cycles
    if share < NEGLIGIBLE:
        return "nothing"
    return f"{SHORT[worst]}, {100 * share:.1f} %"


def mac_limit(activity: Mapping[str, int]) -> str:
    """What MAC issue waited for most, and when the read bus was full the whole time, that."""
    if not activity:
        return "unknown"
    cycles = sum(activity[name] for name in MAC_STATES)
    text = limit(activity, MAC_LOST, cycles)
    reads = activity["read_beat"] / cycles
    if reads > 0.9 > activity[MAC_ISSUE] / cycles:
        text += f" (read bus {100 * reads:.0f} % full)"
    return text
