"""Every row of performance.md sections 2 and 3, by the benchmark's own measurements.

Cycles are exact and repeatable, so the limits are what was reached: figures may fall, and the
limits with them. Load and store streams on their own have further tests in test_streams.py, GEMMs
of 128^3 in test_gemm_rtl.py.
"""

from __future__ import annotations

import pytest
from gemm_cases import compiled

from hdl.config import preset
from hdl.describe import format_pairs
from sim.bench_engines import engine_jobs
from sim.bench_gemm import TARGETS, gemm_jobs
from sim.bench_rows import Row, Setting
from sim.bench_units import unit_jobs
from sim.cores import shared_core
from sim.engines import available
from sim.gemm import gemm

AME32, INT8 = preset("ame32"), preset("ame32-int8")


def rows(jobs, *kinds: str) -> list[Row]:
    found = [row for job in jobs if job.kind in kinds for row in job.run()]
    assert found, f"nothing was measured of {kinds}"
    for row in found:
        assert row.met is not False, f"missed: {row}"
    return found


def test_mmacc_after_mmacc_in_every_format() -> None:
    """One uop a cycle into the same C, no bubble; every uop counted by MAC issue."""
    found = rows(unit_jobs(Setting(AME32, compiled(), quick=True)), "mmacc")
    assert len(found) == len(format_pairs(AME32))
    for row, pair in zip(found, format_pairs(AME32), strict=True):
        assert row.target == 1
        assert row.cycles == row.bound == row.activity["mac_uop"], row
        slow = 2 if pair.output.container == 64 else 1  # then a uop has half the columns
        assert row.bound == 16 * 16 * slow, row
    assert any(pair.output.container == 64 for pair in format_pairs(AME32))


def test_latency_in_every_format() -> None:
    """What --describe says is what the RTL shows."""
    found = rows(unit_jobs(Setting(AME32, compiled(), quick=True)), "latency")
    assert len(found) == len(format_pairs(AME32))
    assert all(row.target == row.cycles for row in found)


def test_streams_and_decode() -> None:
    """Loads at several latencies, stores, instructions: not one cycle lost."""
    found = rows(unit_jobs(Setting(INT8, compiled(), quick=True)), "loads", "stores", "decode")
    assert {row.kind for row in found} == {"loads", "stores", "decode"}
    for row in found:
        assert row.target is not None
        assert row.bound >= (4096 if row.kind != "decode" else 128)
        if row.case == f"latency {INT8.l2_ids}":
            # 32 ids come back after 33 cycles; the last 32 beats need no further round.
            assert row.cycles == row.bound + row.bound // INT8.l2_ids - 1
            assert row.limited_by.startswith("read ids")
        else:
            assert row.cycles == row.bound, row


@pytest.mark.slow
def test_loads_at_every_latency() -> None:
    found = rows(unit_jobs(Setting(INT8, compiled())), "loads")
    assert [row.case for row in found] == [f"latency {n}" for n in range(1, 33)]
    assert all(row.cycles == row.bound for row in found[:-1])


def test_tails() -> None:
    """In place at every edge: fewer cycles than the same sizes rounded up."""
    limits = {"100 x 100 x 100": 5160, "20 x 20 x 20": 300, "17 x 33 x 65": 705}
    found = rows(gemm_jobs(Setting(INT8, compiled())), "tails")
    for row, (sizes, cycles) in zip(found, limits.items(), strict=True):
        assert sizes in row.name
        assert row.cycles <= min(cycles, row.bound), row


# Cycles of each GEMM with a target, in its order.
LIMITS = (524_794, 1_049_054, 8_670, 1_075_968)


@pytest.mark.slow
@pytest.mark.parametrize("index", range(len(TARGETS)))
def test_gemm_at_the_roofline(index: int) -> None:
    """On the presets that the targets name, with every format that they build."""
    target = TARGETS[index]
    jobs = [job for job in gemm_jobs(Setting(AME32, compiled())) if job.kind == "gemm"]
    for row in rows([jobs[index]], "gemm"):
        assert row.target is not None
        assert target.ft in row.name
        assert row.cycles <= LIMITS[index], row


def test_activity_says_where_cycles_went() -> None:
    """Of a GEMM: the states of MAC issue add up, uops and beats are those of the plan."""
    import numpy as np

    ones = np.ones((64, 64), np.int8)
    result = gemm(ones, ones, preset=INT8, engine=compiled(), tiling="2x2")
    activity = shared_core(INT8, compiled()).last.activity
    assert activity["mac_uop"] == 64**3 // 256
    assert activity["mac_write"] == activity["mac_uop"]
    assert activity["read_beat"] == result.read_beats
    assert activity["write_beat"] == result.write_beats
    lost = sum(activity[name] for name in activity if name.startswith("mac_"))
    assert lost - activity["mac_write"] == result.cycles


@pytest.mark.slow
@pytest.mark.skipif(
    any(available()[name] for name in ("verilator", "cxxrtl")), reason="needs both engines"
)
def test_engines_are_fast() -> None:
    """Speed over pysim, emission and compiling, in processor time of one run each."""
    found = rows(engine_jobs(Setting(AME32, "auto", fresh=True)), "speed", "emission", "compile")
    assert [row.target for row in found] == [50, 15, 60, 40, 180, 180]


@pytest.mark.slow
def test_1024_cubed() -> None:
    """INT8, exact, in minutes."""
    import numpy as np

    noise = np.random.default_rng(1)
    a, b = noise.integers(-128, 128, (2, 1024, 1024), dtype=np.int8)
    result = gemm(a, b, preset=INT8, engine=compiled(), tiling="auto")
    assert result.bit_exact
    assert result.bound_cycles == 1024**3 // 256
    assert result.cycles <= 4_194_700
