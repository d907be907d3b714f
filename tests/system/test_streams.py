"""Load and store streams of the whole core at exact rates (performance.md section 2)."""

import functools
from fractions import Fraction

import pytest

from hdl.config import preset
from sim.engines import available, open_engine
from sim.personality import IDEAL
from sim.program import Program

CFG = preset("ame32-int8")
COMPILED = [name for name in ("verilator", "cxxrtl") if available().get(name, "") is None][:1]
pytestmark = pytest.mark.skipif(not COMPILED, reason="needs a C++ compiler")

BASE, SIZE = 0x10_0000, 0x8000
BEATS = 4096


@functools.cache
def engine():
    return open_engine(COMPILED[0], CFG, progress=False)


def rate(load, *, latency, stride, n=8, down=True, offset=0, rows=BEATS):
    """(rows, beats, requests) each cycle of a long stream, its start and end apart."""

    def run(instructions):
        program = Program(CFG)
        program.mfence()
        for index in range(instructions):
            move = program.mld if load else program.mst
            move("r", index * n % CFG.tiles, BASE + offset, stride, n=n, down=down)
        program.mfence()
        simulator = engine()
        simulator.memory.clear()
        simulator.memory.add_region(BASE, SIZE)
        result = simulator.run(program, personality=IDEAL.replace(latency=latency))
        traffic = result.traffic
        beats = traffic.read_beats if load else traffic.write_beats
        requests = traffic.read_requests if load else traffic.write_requests
        return result.responses[-1].cycle - result.responses[0].cycle, beats, requests

    short, long = 8, 8 + rows // (n * CFG.rows)
    first, more = run(short), run(long)
    cycles, beats, requests = (b - a for a, b in zip(first, more, strict=True))
    return Fraction(rows, cycles), Fraction(beats, cycles), Fraction(requests, cycles)


@pytest.mark.parametrize("latency", [1, 8, 31, 32])
def test_loads_of_one_beat_requests(latency):
    """All 32 ids in flight: a beat every cycle up to latency 31, 32 in 33 cycles at 32."""
    _, beats, requests = rate(True, latency=latency, stride=64)
    assert beats == requests == min(1, Fraction(CFG.l2_ids, latency + 1))


@pytest.mark.parametrize("latency", [1, 8, 31, 32])
def test_stores_of_two_beat_rows(latency):
    """Rows that straddle two beats: a beat every cycle."""
    rows, beats, requests = rate(False, latency=latency, stride=64, offset=8)
    assert (rows, beats, requests) == (Fraction(1, 2), 1, Fraction(1, 2))


@pytest.mark.parametrize("load", [True, False])
def test_neighbouring_rows_share_lines(load):
    """Rows that follow one another: a request of four beats a line."""
    assert rate(load, latency=20, stride=16) == (1, 1, Fraction(1, 4))


@pytest.mark.parametrize("load", [True, False])
def test_tiles_along_a_row_share_lines(load):
    assert rate(load, latency=20, stride=128, n=4, down=False) == (1, 1, Fraction(1, 4))


def test_unaligned_tiles_along_a_row_read_each_beat_once():
    """Four tiles of a row at an odd byte lie in five beats, not eight."""
    rows, beats, _ = rate(True, latency=20, stride=128, n=4, down=False, offset=5)
    assert beats / rows == Fraction(5, 4)
    rows, beats, _ = rate(False, latency=20, stride=128, n=4, down=False, offset=5)
    assert (rows, beats) == (Fraction(4, 5), 1)
