"""Random programs of the front end `xuantie` on the RTL against the architectural model."""

from __future__ import annotations

import os
import random
from collections import Counter

import pytest
from lockstep import check, fail_somewhere
from xuantie_designs import BOTH, DESIGNS, LITTLE, NIGHTLY, X256, engine

from hdl import isa
from hdl.config import Config, preset
from sim.engines import open_engine
from sim.engines.base import Simulator
from sim.personality import FAST, IDEAL, JITTERY, NASTY, SLOW, STALLING
from sim.random_xuantie import XUANTIE_POINTS, random_xuantie_program
from sim.random_xuantie_traps import xuantie_trap_points

SEED = int(os.environ.get("TEST_SEED", "1"))
PERSONALITIES = (IDEAL, SLOW, JITTERY, STALLING, FAST, NASTY)
LENGTH = 50


def run_set(simulator: Simulator, cfg: Config, count: int, *, errors: bool = False) -> Counter:
    """Each program twice without a reset between; how often each named kind occurred."""
    coverage = Counter()
    for number in range(count):
        seed = f"{SEED} {cfg.name} {number}"
        program = random_xuantie_program(cfg, random.Random(seed), LENGTH)
        prepare = fail_somewhere(program, random.Random(seed)) if errors else lambda memory: None
        personality = PERSONALITIES[number % len(PERSONALITIES)]
        check(simulator, program, personality, 1000 * SEED + number, prepare=prepare)
        coverage += program.coverage
    return coverage


def missing(coverage: Counter) -> list[str]:
    """What 256-bit rows must have met."""
    rows = [f"xuantie {row.name}" for row in isa.XUANTIE]
    return [p for p in (*rows, *XUANTIE_POINTS, *xuantie_trap_points(X256)) if not coverage[p]]


@pytest.mark.parametrize("cfg", DESIGNS, ids=lambda cfg: cfg.name)
def test_random_programs(cfg: Config) -> None:
    coverage = run_set(engine(cfg), cfg, 60)
    assert coverage["error illegal"] and coverage["error none"], f"seed {SEED}"
    assert cfg is not BOTH or (coverage["mmacc.t"] and coverage["error badgeom"]), f"seed {SEED}"


def test_bus_errors() -> None:
    """Failing beats and writes: zeros, the sticky bit, the next mfence."""
    run_set(engine(X256), X256, 20, errors=True)


def test_on_pysim() -> None:
    run_set(open_engine("pysim", LITTLE), LITTLE, 3)


@pytest.mark.slow
def test_every_kind_occurs() -> None:
    absent = missing(run_set(engine(X256), X256, 400))
    assert not absent, f"seed {SEED}: never happened: {absent}"


@pytest.mark.slow
@pytest.mark.parametrize("cfg", [*NIGHTLY, BOTH], ids=lambda cfg: cfg.name)
def test_other_shapes(cfg: Config) -> None:
    run_set(engine(cfg), cfg, 300)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mxu8", "full"])
def test_presets(name: str) -> None:
    cfg = preset(name)
    run_set(engine(cfg), cfg, 300)
