"""The vector unit against the reference: every format, output, operation, mode and part."""

from __future__ import annotations

import os

import numpy as np
import pytest
from vector_cases import build, check, random_case, settings

from hdl.config import Config
from hdl.formats import FORMATS
from hdl.isa import VectorOp
from hdl.mac.plan import MacPlan
from hdl.units.lane_plan import lane_classes, start_age

SEED = int(os.environ.get("TEST_SEED", "1"))
HPC = ("int8", "fp8_e4m3", "fp8_e5m2", "int16", "fp16", "bf16", "tf32", "fp32")


def config(*formats, m_par=1, **fields):
    return Config(formats=formats, m_par=m_par, n_par=1, units=("vector",), **fields)


def random_cases(cfg, rounds, seed):
    rng = np.random.default_rng(seed)
    cases = [
        random_case(rng, cfg, fmt, op, setting)
        for fmt in cfg.format_rows
        for setting in settings(fmt)
        for op in VectorOp
        for _ in range(rounds)
    ]
    rng.shuffle(cases)
    return cases


@pytest.mark.parametrize(
    "formats",
    [("int4", "int8"), ("fp8_e4m3", "fp8_e5m2", "int8"), ("fp4_e2m1", "uf4_e1m3", "fp6_e4m1")],
    ids="-".join,
)
def test_narrow_formats(formats):
    cfg = config(*formats, m_par=2)
    check(build(cfg), random_cases(cfg, 20, SEED), SEED)


@pytest.mark.slow
def test_profile_formats():
    cfg = config(*HPC)
    check(build(cfg), random_cases(cfg, 40, SEED), SEED)


@pytest.mark.slow
@pytest.mark.parametrize("fmt", FORMATS)
def test_one_format_alone(fmt):
    """Sizes that other formats usually hide."""
    cfg = config(fmt, row_bits=64, bus_bits=64)
    check(build(cfg), random_cases(cfg, 40, SEED), SEED)


@pytest.mark.slow
def test_every_format():
    cfg = config("all")
    check(build(cfg), random_cases(cfg, 30, SEED), SEED)


@pytest.mark.parametrize("name", [*FORMATS, "all"])
@pytest.mark.parametrize("row_bits", [64, 128, 512])
def test_lanes_are_never_slower_than_the_array(name, row_bits):
    cfg = config(name, row_bits=row_bits, bus_bits=64)
    assert start_age(cfg) >= 0
    assert {plan.c_delay for plan in lane_classes(cfg)} == {MacPlan(cfg).c_delay}
