"""Benchmarks of whole GEMMs, operands and results in L2 memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from hdl.config import Config
from hdl.formats import lookup

from .bench_rows import LATENCY, Job, Row, Setting, mac_limit, targets_hold
from .codes import random_codes
from .cores import shared_core
from .driver import SimulationError
from .gemm import GemmResult, gemm
from .reference.numerics import output

__all__ = ["SWEEP_FORMATS", "SWEEP_TILINGS", "TARGETS", "gemm_jobs", "sweep_jobs"]


@dataclass(frozen=True)
class Target:
    """One GEMM of performance.md section 2.

    Parameters
    ----------
    size : of M, N and K.
    ft, acc : operand format, and the field of mxcfg that chooses the result.
    split : on a core with a C file of its own.
    of_bound, of_peak : the least share of the bound and, if not None, of the MAC array's peak.
    """

    size: int
    ft: str
    acc: int
    split: bool
    tiling: str
    of_bound: float
    of_peak: float | None = None


TARGETS = (
    Target(512, "int8", 0, True, "4x4", 0.93, 0.90),
    Target(512, "bf16", 0, True, "2x2", 0.95),
    Target(128, "int8", 1, True, "2x2", 0.90),
    Target(512, "bf16", 0, False, "2x2", 0.92),
)

TAILS = ((100, 100, 100), (20, 20, 20), (17, 33, 65))
TAIL_COST = 1.10
"""Most cycles of sizes that are no multiple of a tile, over those of the same rounded up."""

QUICK_SIZE = 64
SWEEP_FORMATS = ("int8", "bf16", "fp32")
SWEEP_TILINGS = ("1x1", "2x2", "4x4")


def gemm_jobs(setting: Setting) -> list[Job]:
    """The GEMMs with targets, and those with tails."""
    jobs = []
    for target in TARGETS:
        if target.ft in setting.cfg.formats:
            size = min(target.size, QUICK_SIZE) if setting.quick else target.size
            title = f"GEMM {size}^3 {target.ft}, {target.tiling}"
            jobs.append(Job("gemm", title, lambda t=target, s=size: _target(setting, t, s)))
    if "int8" in setting.cfg.formats:
        for sizes in TAILS:
            title = f"GEMM {_times(sizes)} int8, tails"
            jobs.append(Job("tails", title, lambda s=sizes: _tails(setting, s)))
    return jobs


def _times(sizes: Sequence[int]) -> str:
    return " x ".join(map(str, sizes))


@lru_cache(maxsize=4)
def _operands(sizes: tuple[int, int, int], ft: str) -> tuple[np.ndarray, np.ndarray]:
    m, n, k = sizes
    noise = np.random.default_rng(0)
    fmt = lookup(ft)
    return random_codes(noise, (m, k), fmt), random_codes(noise, (k, n), fmt)


def _gemm(
    cfg: Config, engine: str, sizes: tuple[int, int, int], ft: str, **options: object
) -> tuple[GemmResult, dict[str, int]]:
    """A GEMM and its activity. Raises `SimulationError` if a bit differs from the reference."""
    a, b = _operands(sizes, ft)
    result = gemm(a, b, ft=ft, preset=cfg, engine=engine, latency=LATENCY, **options)
    if not result.bit_exact:
        raise SimulationError(
            f"GEMM {_times(sizes)} {ft} on {cfg.name} differs from the reference: report it"
        )
    if not result.cycles:
        raise ValueError("engine model counts no cycles: use one that simulates hardware")
    last = shared_core(cfg, engine).last
    assert last is not None
    return result, last.activity


def _target(setting: Setting, target: Target, size: int) -> Iterator[Row]:
    cfg = setting.split if target.split else setting.cfg
    result, activity = _gemm(
        cfg, setting.engine, (size,) * 3, target.ft, acc=target.acc, tiling=target.tiling
    )
    holds = targets_hold(cfg) and size == target.size
    out = output(target.ft, bovf=0, acc=target.acc)
    name = f"GEMM {size}^3 {target.ft} to {out.name}, {result.tiling}"
    common = {
        "kind": "gemm",
        "preset": cfg.name,
        "engine": result.engine,
        "cycles": result.cycles,
        "limited_by": mac_limit(activity),
        "activity": activity,
    }
    yield Row(
        name=name,
        measured=result.utilisation,
        target=target.of_bound if holds else None,
        bound=result.bound_cycles,
        **common,
    )
    if target.of_peak is not None:
        yield Row(
            name=f"{name}, MAC array",
            measured=result.mac_utilisation,
            unit="of peak",
            target=target.of_peak if holds else None,
            bound=-(-result.macs // result.peak_macs_per_cycle),
            **common,
        )


def _tails(setting: Setting, sizes: tuple[int, int, int]) -> Iterator[Row]:
    """In place at every edge, no padding in memory: against the sizes rounded up to tiles."""
    cfg = setting.split
    tile = cfg.rows
    rounded = tuple(-(-size // tile) * tile for size in sizes)
    whole, _ = _gemm(cfg, setting.engine, rounded, "int8", tiling="4x4")
    result, activity = _gemm(cfg, setting.engine, sizes, "int8", tiling="4x4")
    yield Row(
        kind="tails",
        name=f"GEMM {_times(sizes)} int8 to int16, 4x4",
        preset=cfg.name,
        engine=result.engine,
        measured=result.cycles / whole.cycles,
        unit=f"of {_times(rounded)}",
        target=TAIL_COST if targets_hold(cfg) else None,
        relation="<=",
        bound=whole.cycles,
        cycles=result.cycles,
        limited_by=mac_limit(activity),
        activity=activity,
    )


def sweep_jobs(setting: Setting, sizes: Sequence[int]) -> list[Job]:
    """GEMMs over sizes, formats and tilings, for the plot; without targets."""
    cfg = setting.split
    return [
        Job(
            "sweep",
            f"GEMM {size}^3 {ft}, {tiling}",
            lambda s=size, f=ft, t=tiling: _point(setting, s, f, t),
        )
        for ft in SWEEP_FORMATS
        if ft in cfg.formats
        for tiling in SWEEP_TILINGS
        for size in sizes
    ]


def _point(setting: Setting, size: int, ft: str, tiling: str) -> Iterator[Row]:
    cfg = setting.split
    result, activity = _gemm(cfg, setting.engine, (size,) * 3, ft, tiling=tiling)
    if result.tiling != tiling:
        return  # the guard refused it
    yield Row(
        kind="sweep",
        name=f"GEMM {ft}, {tiling}",
        case=str(size),
        preset=cfg.name,
        engine=result.engine,
        measured=result.mac_utilisation,
        unit="of peak",
        bound=result.bound_cycles,
        cycles=result.cycles,
        limited_by=mac_limit(activity),
        activity=activity,
    )
