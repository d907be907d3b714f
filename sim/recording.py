"""Waveforms and activity traces of whatever runs on the shared cores, for the commands.

A command takes both options with `add_recording_options(parser)` and runs its work inside
`with recording(options):`; nothing between there and the engine needs to know.
"""

from __future__ import annotations

import contextlib
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from contextvars import ContextVar
from typing import TYPE_CHECKING

import numpy as np

from hdl.activity import ACTIVITY
from hdl.cli import CommandError, check_writable, write_whole

if TYPE_CHECKING:
    from hdl.config import Config

    from .driver import RunResult
    from .engines.base import Simulator

__all__ = ["Recording", "activity_csv", "add_recording_options", "current", "recording"]

_current: ContextVar[Recording | None] = ContextVar("recording", default=None)


class Recording:
    """What is written of the runs inside one `recording`.

    Parameters
    ----------
    vcd : file for the waveform of the one core that runs, or None.
    activity : file for the activity of every run, or None.
    """

    def __init__(self, vcd: str | None, activity: str | None):
        self.vcd = vcd
        self.activity = activity
        self._runs: list[np.ndarray] = []
        self._core: tuple[Config, str, Simulator] | None = None

    def simulator(self, cfg: Config, engine: str) -> Simulator:
        """The core that writes the waveform. Raises `CommandError` for a second one."""
        from .engines import open_engine

        if self._core is None:
            self._core = cfg, engine, open_engine(engine, cfg, vcd=self.vcd)
        if self._core[:2] != (cfg, engine):
            raise CommandError(
                f"--vcd takes one core, not {self._core[0].name} and {cfg.name}: run less at once"
            )
        return self._core[2]

    def add(self, result: RunResult) -> None:
        """Keep a run's activity. Raises `CommandError` where there is none."""
        if "activity" not in result.probes:
            raise CommandError("--activity needs an engine that simulates hardware, not the model")
        self._runs.append(result.probes["activity"])

    def close(self) -> None:
        """Finish the waveform and write the trace."""
        if self._core is not None:
            self._core[2].close()
        if self.activity is not None:
            write_whole(self.activity, activity_csv(self._runs))


def activity_csv(runs: list[np.ndarray]) -> bytes:
    """One line a cycle: the run, the cycle in it, then 1 or 0 for each name of `ACTIVITY`.

    Parameters
    ----------
    runs : values of the output `activity` in each cycle of each run.
    """
    lines = [b",".join(name.encode() for name in ("run", "cycle", *ACTIVITY))]
    shifts = np.arange(len(ACTIVITY), dtype=np.uint64)
    for number, values in enumerate(runs):
        cells = np.full((len(values), 2 * len(ACTIVITY)), ord(","), np.uint8)
        cells[:, 1::2] = ord("0") + (values[:, None] >> shifts & np.uint64(1)).astype(np.uint8)
        lines += [b"%d,%d%b" % (number, cycle, row) for cycle, row in enumerate(map(bytes, cells))]
    return b"\n".join((*lines, b""))


def add_recording_options(parser: ArgumentParser) -> None:
    """Add --vcd and --activity."""
    parser.add_argument("--vcd", metavar="FILE", help="write a waveform of the core")
    parser.add_argument(
        "--activity", metavar="FILE.csv", help="write what every unit did in each cycle"
    )


def current() -> Recording | None:
    """The recording that runs belong to now."""
    return _current.get()


@contextlib.contextmanager
def recording(options: Namespace) -> Iterator[None]:
    """Record what runs on shared cores as --vcd and --activity say.

    Raises `CommandError` before anything runs when a file cannot be written.
    """
    if options.vcd is None and options.activity is None:
        yield
        return
    for path in (options.vcd, options.activity):
        if path is not None:
            check_writable(path)
    record = Recording(options.vcd, options.activity)
    token = _current.set(record)
    try:
        yield
    finally:  # the waveform of a run that fails is wanted most
        _current.reset(token)
        record.close()
