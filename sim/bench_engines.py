"""Benchmarks of the engines and of what makes them: speed, emission, compilation.

Times are seconds of the processor, of this process and of the tools it runs, so that other work
on the machine changes little; ratios compare engines in one run on one program.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from hdl.config import Config

from .bench_rows import Job, Row, Setting, targets_hold
from .driver import RunResult, SimulationError
from .engines import available, open_engine
from .engines.base import Simulator
from .program import Program

__all__ = ["SPEED_TARGETS", "engine_jobs"]

SPEED_TARGETS = {"verilator": 50.0, "cxxrtl": 15.0}
"""Least speed over that of pysim."""
EMISSION_SECONDS, EMISSION_MEGABYTES = 60.0, 40.0
COMPILE_SECONDS = 180.0

BASE = 0x10_0000
LONG_ENOUGH = 2.0
"""Seconds that an engine's speed is measured over, at least."""


def engine_jobs(setting: Setting) -> list[Job]:
    """Speed, emission and, with `fresh`, compilation of the default core or the one given."""
    cfg = setting.cfg
    jobs = [
        Job("speed", f"speed of the engines on {cfg.name}", lambda: _speed(cfg)),
        Job("emission", f"Verilog of {cfg.name}", lambda: _emission(cfg)),
    ]
    if setting.fresh:
        jobs += [
            Job("compile", f"compiling {cfg.name} for {name}", lambda n=name: _compile(cfg, n))
            for name in SPEED_TARGETS
            if available()[name] is None
        ]
    return jobs


def _seconds() -> float:
    """Processor time of this process and of those it waited for."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def _program(cfg: Config) -> Program:
    """A little of everything: loads, products, a store."""
    tile = cfg.rows * cfg.row_bytes
    half = cfg.tiles // 2
    program = Program(cfg)
    program.set_cfg(cfg.formats[0])
    program.set_tile(1, cfg.rows, cfg.rows)
    program.mld("r", half, BASE, cfg.row_bytes)
    program.mld("r", half + 1, BASE + tile, cfg.row_bytes)
    for _ in range(3):
        program.mmacc(0, half, half + 1)
    program.mst("r", 0, BASE + 2 * tile, cfg.row_bytes)
    program.mfence()
    return program


def _run(engine: Simulator, program: Program) -> RunResult:
    engine.memory.clear()
    engine.memory.add_region(BASE, 3 * engine.cfg.rows * engine.cfg.row_bytes)
    return engine.run(program)


def _rate(engine: Simulator, program: Program) -> tuple[float, int]:
    """Cycles a second on a program, and the cycles of one run."""
    cycles = _run(engine, program).total_cycles  # not measured: whatever happens once
    total, start = 0, _seconds()
    while True:
        total += _run(engine, program).total_cycles
        seconds = _seconds() - start
        if seconds >= LONG_ENOUGH:
            return total / seconds, cycles


def _speed(cfg: Config) -> Iterator[Row]:
    program = _program(cfg)
    rates: dict[str, tuple[float, int]] = {}
    for name in ("pysim", *SPEED_TARGETS):
        if available()[name] is None:
            with open_engine(name, cfg) as engine:
                rates[name] = _rate(engine, program)
    slow, cycles = rates.pop("pysim")
    for name, (rate, found) in rates.items():
        if found != cycles:
            raise SimulationError(f"{name} takes {found} cycles and pysim {cycles}: report it")
        yield Row(
            kind="speed",
            name=f"speed of {name} over pysim",
            preset=cfg.name,
            engine=name,
            measured=rate / slow,
            unit="times",
            target=SPEED_TARGETS[name] if targets_hold(cfg) else None,
            limited_by=f"{rate:,.0f} against {slow:,.0f} cycles/s",
        )


def _emission(cfg: Config) -> Iterator[Row]:
    from hdl.core import Core
    from hdl.emit import verilog_text

    start = _seconds()
    size = len(verilog_text(Core(cfg), "core").encode())
    for name, measured, unit, target in (
        ("time to write the Verilog", _seconds() - start, "s", EMISSION_SECONDS),
        ("size of the Verilog", size / 1e6, "MB", EMISSION_MEGABYTES),
    ):
        yield Row(
            kind="emission",
            name=name,
            preset=cfg.name,
            engine="",
            measured=measured,
            unit=unit,
            target=target if targets_hold(cfg) else None,
            relation="<=",
        )


@contextlib.contextmanager
def _empty_cache() -> Iterator[Path]:
    """A cache of compiled cores that is empty, and forgotten afterwards."""
    before = os.environ.get("OPENMXU_CACHE_DIR")
    with tempfile.TemporaryDirectory(prefix="openmxu-") as folder:
        os.environ["OPENMXU_CACHE_DIR"] = folder
        try:
            yield Path(folder)
        finally:
            if before is None:
                del os.environ["OPENMXU_CACHE_DIR"]
            else:
                os.environ["OPENMXU_CACHE_DIR"] = before


def _compile(cfg: Config, name: str) -> Iterator[Row]:
    with _empty_cache():
        start = _seconds()
        with open_engine(name, cfg):
            seconds = _seconds() - start
    yield Row(
        kind="compile",
        name=f"time to compile for {name}",
        preset=cfg.name,
        engine=name,
        measured=seconds,
        unit="s",
        target=COMPILE_SECONDS if targets_hold(cfg) else None,
        relation="<=",
    )
