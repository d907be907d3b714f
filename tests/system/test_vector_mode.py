"""The vector mode through the whole core: every operation, overlaps, hazards, rates, programs."""

from __future__ import annotations

import os
from collections import Counter

import pytest
from directed import SPARE, compare, engine, fenced_cycles
from lockstep import check, programs

from hdl.config import Config
from hdl.describe import vector_rows
from hdl.formats import FORMATS
from sim.personality import FAST, IDEAL, JITTERY, NASTY, SLOW, STALLING
from sim.program import Program
from sim.random_moves import MOVE_POINTS, VECTOR_NAMES, VECTOR_POINTS

SEED = int(os.environ.get("TEST_SEED", "7"))
SMALL = Config(
    name="vector-small",
    m_par=2,
    n_par=1,
    slots=4,
    formats=("int4", "int8", "fp8_e4m3"),
    units=("vector",),
)
SPLIT = SMALL.replace(name="vector-split", accumulators="split")
EVERY = Config(name="vector-formats", m_par=1, n_par=1, formats=("all",), units=("vector",))
PERSONALITIES = (IDEAL, SLOW, JITTERY, STALLING, FAST, NASTY)


def every_operation(fmt, *, cfg, lanes):
    """All operations, z as wide as x and wider, apart and on top of x, y or both."""

    def body(p):
        for index, name in enumerate(VECTOR_NAMES):
            for bovf, acc in ((0, 0), (1, 0), (0, 1)):
                p.set_cfg(fmt, bovf=bovf, acc=acc, sat=index % 2, rnd=index % 4)
                p.set_tile(lanes - index, 16 - 3 * acc)
                p.vector(name, 8, 1, 2)
                p.vector(name, 12, 1, 2, wide=True)
                p.vector(name, 3, 3, 4)  # z on x
                p.vector(name, 5, 4, 5)  # z on y
                p.vector(name, 6, 6, 6)  # z on both
                p.vector(name, 20, 21, 22, wide=True)  # a wider z over both
                p.vector(name, 24, 27, 24, wide=True)
                if cfg.split:
                    p.vector(name, 1, 1, 2, wide=True, cfile=True)
                    p.vector(name, 9, 1, 2, cfile=True)
                p.csrr("mxstatus", 5)

    return body


@pytest.mark.parametrize("fmt", SMALL.formats)
@pytest.mark.parametrize("cfg", [SMALL, SPLIT], ids=lambda cfg: cfg.name)
def test_every_operation(fmt, cfg):
    body = every_operation(fmt, cfg=cfg, lanes=cfg.lanes(FORMATS[fmt].container))
    compare(cfg, body, seed=SEED)


@pytest.mark.slow
@pytest.mark.parametrize("fmt", FORMATS)
def test_every_operation_of_every_format(fmt):
    lanes = EVERY.lanes(FORMATS[fmt].container)

    def body(p):
        for index, name in enumerate(VECTOR_NAMES):
            for rnd in range(4):
                p.set_cfg(fmt, bovf=rnd % 2, sat=index % 2, rnd=rnd)
                p.set_tile(max(1, lanes - index), 16)
                p.vector(name, 8, 1, 2, wide=rnd > 1)
                p.vector(name, 20, 21, 22, wide=True)
                p.csrr("mxstatus", 5)

    compare(EVERY, body, seed=SEED)


@pytest.mark.parametrize("cfg", [SMALL, SPLIT], ids=lambda cfg: cfg.name)
@pytest.mark.parametrize("personality", PERSONALITIES, ids=str)
def test_between_loads_mmacc_moves_and_stores(cfg, personality):
    """The epilogue of a GEMM without fences: bias, activation, residual, in both files."""
    in_c = {"cfile": cfg.split}

    def body(p):
        p.set_cfg("int8", sat=1)  # 16-bit outputs
        p.set_tile(16, 16)
        p.mzero(30)
        for step in range(3):
            p.mld("r", 16, SPARE + 0x400 * step, 16, n=2, down=True)
            p.vector("mvmax", 17, 17, 30)  # what was just loaded
            p.mmacc(0, 16, 17)
            p.vector("mvaddx", 0, 16, 17, wide=True, **in_c)  # onto what was just computed
            p.mmacc(0, 17, 16, alpha=1)
            p.vector("mvmadd", 0, 16, 17, wide=True, **in_c)
            p.vector("mvmadd", 0, 17, 17, wide=True, **in_c)  # again, before that is written
            p.mtrans("h", 0, 0, **in_c)
            p.vector("mvmul", 16, 16, 17)  # in place, while mmacc have just read it
            p.mmacc(4, 16, 17)
            p.mst("r", 0, SPARE + 0x1000 + 0x200 * step, 16, n=2, down=True, **in_c)
            p.vector("mvmin", 0, 16, 30, **in_c)  # stored before
            p.mget("h", 6, 0, step, **in_c)

    compare(cfg, body, seed=SEED, personality=personality)


def test_flags_gather_and_traps_leave_everything_alone():
    def body(p):
        p.set_cfg("fp8_e4m3", sat=1)
        p.set_tile(16, 16)
        for name in VECTOR_NAMES:
            p.csrrw("mxstatus", 0)
            p.vector(name, 8, 1, 2, wide=True)
            p.csrr("mxstatus", 5)
            p.vector(name, 31, 1, 2, wide=True)  # one tile too many
            p.csrr("mxstatus", 6)
        for k, m in ((17, 1), (0, 1), (1, 17), (1, 0)):
            p.set_tile(k, m)
            p.vector("mvmul", 8, 1, 2)
        p.set_tile(8, 16, 200)  # N is nobody's business here
        p.vector("mvmul", 31, 1, 2, wide=True)  # 8 elements of 16 bit: one tile
        p.set_tile(1, 1)
        p.set_cfg("fp8_e4m3", acc=2)
        p.vector("mvmul", 8, 1, 2)
        p.csrrw("mxcfg", 4 << 9)
        p.vector("mvmul", 8, 1, 2)
        p.word(0x7B | 5 << 12 | 6 << 25)  # no such operation
        p.word(0x7B | 5 << 12 | 1 << 31)  # no C file

    compare(SMALL, body, seed=SEED)


# z's words for each row block of x; every one takes one cycle.
RATES = {
    ("int8", "same"): 1,
    ("int8", "int16"): 2,
    ("int8", "int32"): 4,
    ("int4", "same"): 1,
    ("int4", "int32"): 8,
    ("fp8_e4m3", "fp16"): 2,
}


@pytest.mark.parametrize(("fmt", "out"), RATES)
@pytest.mark.parametrize("name", ["mvmadd", "mvmul"])
def test_one_word_of_z_every_cycle(fmt, out, name):
    """Operations one after the other, z not the same for as long as a result takes."""
    words = RATES[fmt, out]

    def prepare(p):
        p.set_cfg(fmt, acc=int(out == "int32"))
        p.set_tile(SMALL.lanes(FORMATS[fmt].container), 16)
        p.mzero(0, 32)

    def repeat(count):
        def body(p):
            for index in range(count):
                z = 8 + words * (index % (24 // words))
                p.vector(name, z, index % 4, 4 + index % 4, wide=out != "same")

        return body

    few, many = (fenced_cycles(SMALL, prepare, repeat(count)) for count in (8, 20))
    assert many - few == 12 * words * SMALL.blocks


@pytest.mark.parametrize(("fmt", "out"), RATES)
def test_one_operation_takes_what_describe_says(fmt, out):
    """From its request to the last result, with the operands there, and the fence behind it."""
    wide = out != "same"
    z = FORMATS[fmt if out == "same" else out]
    stated = next(
        row for row in vector_rows(SMALL) if (row.operand, row.output) == (FORMATS[fmt], z)
    )

    prepare, program = Program(SMALL), Program(SMALL)
    prepare.set_cfg(fmt, acc=int(out == "int32"))
    prepare.set_tile(SMALL.lanes(FORMATS[fmt].container), 16)
    prepare.mzero(0, 32)
    program.vector("mvmadd", 8, 1, 2, wide=wide)
    program.mfence()
    simulator = engine(SMALL)
    simulator.memory.clear()
    simulator.run(prepare)
    result = simulator.run(program)
    fence_answers = 4  # cycles from the last write to the fence's response
    taken = result.last_response_cycle - result.first_request_cycle
    assert taken == stated.latency + fence_answers
    assert stated.uop_cycles == RATES[fmt, out] * SMALL.blocks


def test_mmacc_and_vector_uops_share_the_issue_without_loss():
    """A stream of both takes the sum of what each takes."""

    def prepare(p):
        p.set_cfg("int8", bovf=1)
        p.set_tile(16, 16)
        p.mzero(0, 32)

    def mixed(count, vectors):
        def body(p):
            for index in range(count):
                p.mmacc(index % 4, 16, 20)
                if vectors:
                    p.vector("mvmadd", 8 + index % 4, 24, 25)

        return body

    def steady(vectors):
        few, many = (fenced_cycles(SMALL, prepare, mixed(n, vectors)) for n in (6, 18))
        return many - few

    assert steady(True) == steady(False) + 12 * SMALL.blocks


def run_programs(cfg, count, *, runs):
    """Random programs with everything; how often each named kind occurred."""
    simulator, coverage = engine(cfg), Counter()
    first = 1000 * SEED
    for number, (seed, program) in enumerate(programs(cfg, range(first, first + count), 40)):
        personality = PERSONALITIES[number % len(PERSONALITIES)]
        check(simulator, program, personality, seed, runs=runs)
        coverage += program.coverage
    return coverage


def missing(coverage, cfg):
    points = [*MOVE_POINTS, *VECTOR_POINTS, "vector int"]
    if cfg.split:
        points += ["vector in the C file", "mmovf", "move in the C file"]
    else:
        points += ["vector over its own operand", "illegal: vector mode in the C file"]
    return [point for point in points if not coverage[point]]


def test_random_programs():
    coverage = run_programs(SPLIT, 50, runs=1)
    operations = [f"{name} {kind}" for name in VECTOR_NAMES for kind in ("same", "wide")]
    rare = [point for point in operations if not coverage[point]]
    assert not rare, f"seed {SEED}: never happened: {rare}"


@pytest.mark.slow
@pytest.mark.parametrize("cfg", [SMALL, SPLIT, EVERY], ids=lambda cfg: cfg.name)
def test_many_random_programs(cfg):
    """Each program twice; every named kind of move and operation occurs."""
    coverage = run_programs(cfg, 300, runs=2)
    rare = missing(coverage, cfg)
    assert not rare, f"seed {SEED}: never happened: {rare}"
