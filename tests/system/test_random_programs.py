"""Random instruction programs on the RTL against the architectural model."""

import functools
import os
import random
from collections import Counter

import pytest
from lockstep import check, fail_somewhere, programs

from hdl.activity import MAC_STATES
from hdl.config import Config, preset
from sim.engines import available, open_engine
from sim.personality import FAST, IDEAL, JITTERY, NASTY, SLOW, STALLING
from sim.program import Program

SEED = int(os.environ.get("TEST_SEED", "1"))
PERSONALITIES = (IDEAL, SLOW, JITTERY, STALLING, FAST, NASTY)
LENGTH = 28

COMPILED = [name for name in ("verilator", "cxxrtl") if available().get(name, "") is None][:1]
needs_compiled = pytest.mark.skipif(not COMPILED, reason="needs a C++ compiler")

# Kinds that a set of programs must really have met.
POINTS = (
    *("error none", "error illegal", "error badgeom", "error bus"),
    *(f"mmacc tiling {mode}" for mode in ("1x1", "2x2", "1x4", "4x1", "4x4")),
    *(f"ragged {mode}" for mode in ("2x2", "1x4", "4x1", "4x4")),
    *(f"mmacc bTR {btr:02b}" for btr in range(4)),
    *("mmacc alpha", "mmacc beta", "mmacc accumulates", "guard falls back", "M total", "N total"),
    *("K tail", "M tail", "N tail", "N differs from M", "N from M", "sat_hit"),
    *("stride negative", "stride zero", "stride unaligned", "stride below a row"),
    *("base unaligned", "access near the wrap of addresses", "mfence", "mmov", "mzero"),
    *(f"{what} n={n} {way}" for what in "abcr" for n in (1, 2, 4, 8) for way in ("along", "down")),
    *(f"{move}.{size}" for move in ("mtrans", "mbccol", "mbcast", "mget") for size in "bhwd"),
    *("mbcrow.b", "move in place", "move of several tiles"),
)

# Likewise in each kind of core with INT8 alone.
INT8 = preset("ame32-int8")
SPLIT = INT8.replace(name="ame32-int8-split", accumulators="split")
OWN_POINTS = {
    INT8: ("illegal: load or store of the C file", "badgeom: C over A", "badgeom: C over B"),
    SPLIT: (
        *(f"{what} in the C file" for what in ("move", *"abcr")),
        "mmacc 4x4 of 16 bit",
        "mmovf",
    ),
}


def run_set(engine, cfg, seeds, *, errors=False, length=LENGTH, runs=2):
    coverage = Counter()
    for number, (seed, program) in enumerate(programs(cfg, seeds, length)):
        personality = PERSONALITIES[number % len(PERSONALITIES)]
        prepare = fail_somewhere(program, random.Random(seed)) if errors else lambda memory: None
        check(engine, program, personality, seed, runs=runs, prepare=prepare)
        coverage += program.coverage
    return coverage


@pytest.mark.parametrize("name", ["icepi_zero", pytest.param("tiny", marks=pytest.mark.slow)])
def test_on_pysim(name):
    """Without any compiler: programs in each personality, one after the other in one core."""
    cfg = preset(name)
    seeds = range(1000 * SEED, 1000 * SEED + 2 * len(PERSONALITIES))
    run_set(open_engine("pysim", cfg), cfg, seeds, length=20, runs=1)


@needs_compiled
@pytest.mark.parametrize("cfg", OWN_POINTS, ids=lambda cfg: cfg.name)
def test_both_accumulators_on_a_compiled_engine(cfg):
    """150 programs one after the other, in six personalities; every named kind occurs."""
    engine = open_engine(COMPILED[0], cfg, progress=False)
    coverage = run_set(engine, cfg, range(10_000 * SEED, 10_000 * SEED + 150), runs=1)
    missing = [point for point in (*POINTS, *OWN_POINTS[cfg]) if not coverage[point]]
    assert not missing, f"seed {SEED}: never happened: {missing}"


@needs_compiled
def test_ame32_on_a_compiled_engine():
    """Every format of the default core."""
    cfg = preset("ame32")
    engine = open_engine(COMPILED[0], cfg, progress=False)
    run_set(engine, cfg, range(70_000 * SEED, 70_000 * SEED + 40))


@needs_compiled
def test_bus_errors_on_a_compiled_engine():
    """Failing beats and writes: zeros, the sticky bit, the next mfence."""
    cfg = SPLIT
    engine = open_engine(COMPILED[0], cfg, progress=False)
    first = 20_000 * SEED
    run_set(engine, cfg, range(first, first + 40), errors=True)


@needs_compiled
@pytest.mark.slow
def test_every_format():
    """The whole format table through the core: one sub-array, so that it compiles soon."""
    cfg = Config(name="formats", formats=("all",), m_par=1, n_par=1)
    engine = open_engine(COMPILED[0], cfg, progress=False)
    run_set(engine, cfg, range(60_000 * SEED, 60_000 * SEED + 300))


# Other shapes of the same generator: eight wide registers, one row a word, one slot, few ids.
SHAPES = {
    "registers": Config(name="registers", tiles=8, rows=8, row_bits=256, m_par=4, n_par=2, slots=4),
    "narrow": Config(name="narrow", m_par=1, n_par=1, banks=2, slots=1, l2_ids=2),
    "small": Config(
        name="small",
        tiles=16,
        rows=8,
        row_bits=64,
        bus_bits=64,
        m_par=2,
        n_par=2,
        slots=3,
        formats=("int8", "fp16"),
        accumulators="split",
    ),
    "block_memory": preset("ulx3s"),
    "bus64": Config(name="bus64", bus_bits=64, line_bytes=32, m_par=8, n_par=4, slots=2, banks=8),
}


@needs_compiled
@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
def test_other_shapes(shape):
    """No preset's constant is baked in."""
    cfg = SHAPES[shape]
    engine = open_engine(COMPILED[0], cfg, progress=False)
    run_set(engine, cfg, range(30_000 * SEED, 30_000 * SEED + 100))


@needs_compiled
@pytest.mark.slow
@pytest.mark.parametrize("name", ["ame32", "ame32-split"])
def test_many_programs(name):
    """Two thousand, and every named kind among them."""
    cfg = preset(name)
    engine = open_engine(COMPILED[0], cfg, progress=False)
    coverage = run_set(engine, cfg, range(40_000 * SEED, 40_000 * SEED + 1000))
    missing = [point for point in POINTS if not coverage[point]]
    assert not missing, f"seed {SEED}: never happened: {missing}"


def outcome(engine, program, personality, seed):
    """All that a run says, and what it leaves in memory."""
    engine.memory = memory = program.memory()
    result = engine.run(program.program, personality=personality, seed=seed, patience=20_000)
    return result, [memory.read(base, len(content)) for base, content in program.regions]


def outcomes(name, core):
    """Of two programs one after the other."""
    cfg = preset(core)
    first = 80_000 * SEED
    with open_engine(name, cfg, progress=False) as engine:
        return [
            outcome(engine, program, personality, seed)
            for personality, (seed, program) in zip(
                (NASTY, IDEAL), programs(cfg, range(first, first + 2), 8), strict=True
            )
        ]


@functools.cache
def pysim_outcomes(core):
    return outcomes("pysim", core)


@needs_compiled
@pytest.mark.parametrize("name", [n for n in ("verilator", "cxxrtl") if available()[n] is None])
@pytest.mark.parametrize("core", ["icepi_zero", pytest.param("tiny", marks=pytest.mark.slow)])
def test_engines_agree(core, name):
    """Cycles, responses, memory and activity of each run, on pysim and on a compiled engine."""
    pairs = zip(pysim_outcomes(core), outcomes(name, core), strict=True)
    for number, (expected, found) in enumerate(pairs):
        assert found == expected, f"seed {SEED}, program {number}: {name} differs from pysim"
        result = found[0]
        assert sum(result.activity[state] for state in MAC_STATES) == result.cycles


@pytest.mark.slow
@pytest.mark.skipif(any(available()[name] for name in ("verilator", "cxxrtl")), reason="needs both")
@pytest.mark.parametrize("name", ["tiny", "ame32"])
def test_compiled_engines_agree(name):
    """The same of the two fast engines, on many programs and on the default core."""
    cfg = preset(name)
    engines = [open_engine(each, cfg, progress=False) for each in ("verilator", "cxxrtl")]
    start = 90_000 * SEED
    for number, (seed, program) in enumerate(programs(cfg, range(start, start + 60), LENGTH)):
        personality = PERSONALITIES[number % len(PERSONALITIES)]
        first, second = (outcome(engine, program, personality, seed) for engine in engines)
        assert first == second, f"program seed {seed}, {personality.name}"


def test_reset_in_mid_flight():
    """Whatever was under way when reset came, the next program finds a fresh core."""
    cfg = preset("tiny")
    engine = open_engine("pysim", cfg)
    rng = random.Random(SEED)
    for seed, program in programs(cfg, range(50_000 * SEED, 50_000 * SEED + 4), 12):
        engine.memory = program.memory()
        stop = rng.randrange(20, 900)
        engine.run(program.program, personality=JITTERY, seed=seed, stop_after=stop)
        engine.reset()
        probe = Program(cfg)
        for csr in ("mxcfg", "mxtile", "mxstatus", "xmcsr"):
            probe.csrr(csr)
        values = [response.data for response in engine.run(probe).responses]
        assert values == [0, 16 | 16 << 8 | 1 << 16, 0, 1], f"seed {SEED}, reset after {stop}"
    check(engine, program, IDEAL, seed, runs=1)
