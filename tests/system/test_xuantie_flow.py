"""The front end `xuantie` on the RTL: GEMM loops of vendors, rates, slots, both front ends."""

from __future__ import annotations

import os
import random

import numpy as np
import pytest
from xuantie_designs import BOTH, X128, X256, X512_AT_NIGHT, engine, registers
from xuantie_gemm_cases import Case, half_case, int8_case

from hdl.config import Config
from hdl.mac.pipe import MacTiming
from sim.memory import Memory
from sim.personality import IDEAL, NASTY, STALLING
from sim.program import Program
from sim.program_xuantie import XuanTieBuilder

SEED = int(os.environ.get("TEST_SEED", "1"))
by_design = pytest.mark.parametrize("cfg", [X256, X128, X512_AT_NIGHT], ids=lambda cfg: cfg.name)


def run(case: Case, *, personality=IDEAL) -> int:
    """Run a case from L2 on the RTL; every byte is right. Returns the cycles."""
    simulator = engine(case.program.cfg)
    simulator.memory = case.memory()
    result = simulator.run(case.program, personality=personality, seed=SEED)
    assert not any(response.error for response in result.responses), case.name
    case.check(simulator.memory)
    return result.cycles


def sizes(cfg: Config):
    rows, width = cfg.x_rows, cfg.row_bytes
    rng = random.Random(f"{SEED} {cfg.name}")
    yield 2 * rows, 2 * rows, 2 * width
    yield 1, 1, 1
    yield 2 * rows + 1, 2 * rows - 1, width + 1
    for _ in range(3):
        yield rng.randint(1, 3 * rows), rng.randint(1, 4 * rows), rng.randint(1, 2 * width)


@by_design
@pytest.mark.parametrize("personality", [IDEAL, STALLING, NASTY], ids=str)
def test_int8_gemm_with_requantisation(cfg: Config, personality) -> None:
    """mmaqa into m4 to m7, then mmulh, msra, madd and mn4clip in place."""
    for index, (m, n, k) in enumerate(sizes(cfg)):
        run(int8_case(cfg, m, n, k, SEED + index), personality=personality)


@pytest.mark.parametrize(("cfg", "wide"), [(X256, False), (X256, True), (X128, False)], ids=str)
def test_half_gemm(cfg: Config, wide: bool) -> None:
    for index, (m, n, k) in enumerate(sizes(cfg)):
        run(half_case(cfg, m, n, k, SEED + index, beta=index % 2, wide=wide))


def cycles_of(cfg: Config, products: list[tuple[str, int, int, int]]) -> int:
    """Cycles from one fence's answer to the next one's, with these mma (name, md, ms2, ms1)."""
    builder = XuanTieBuilder.of(cfg)
    builder.sizes(cfg.x_rows, cfg.x_rows, cfg.row_bytes)
    builder.program.mfence()
    start = len(builder.program) - 1
    for name, md, ms2, ms1 in products:
        builder.emit(name, md, ms2, ms1)
    builder.program.mfence()
    simulator = engine(cfg)
    simulator.memory = Memory(cfg.addr_bits)
    result = simulator.run(builder.program)
    assert not any(response.error for response in result.responses)
    return result.responses[-1].cycle - result.responses[start].cycle


def uops(cfg: Config, columns: int) -> int:
    """Of one mma into `columns` columns."""
    return cfg.x_rows // cfg.m_par * (columns // cfg.n_par)


def steady(cfg: Config, name: str, order: list[int]) -> float:
    """Cycles of one mma more, the destinations in turn."""
    few, many = (
        cycles_of(cfg, [(name, order[i % len(order)], 2, 0) for i in range(count)])
        for count in (8 * len(order), 24 * len(order))
    )
    return (many - few) / (16 * len(order))


@pytest.mark.parametrize("name", ["mmaqa.b", "fwmmacc.h", "fmmacc.s", "mmaqau.b", "pmmaqa.b"])
def test_accumulation_without_a_bubble(name: str) -> None:
    """Four destinations of 32-bit results: each word comes back after W cycles or more."""
    count = uops(X256, X256.x_rows)
    assert 4 * count >= MacTiming.of(X256).loop
    assert steady(X256, name, [4, 5, 6, 7]) == count


@pytest.mark.parametrize("name", ["mmaqa.b", "fwmmacc.h"])
def test_one_destination_waits_for_itself_and_no_longer(name: str) -> None:
    """The words of one register come back sooner than W: a mma every W cycles, or its uops."""
    cfg = X128
    if name == "fwmmacc.h":
        assert uops(cfg, cfg.x_rows) < MacTiming.of(cfg).loop
    assert steady(cfg, name, [4]) == max(uops(cfg, cfg.x_rows), MacTiming.of(cfg).loop)


def test_pairs_without_a_bubble() -> None:
    """fmmacc.h fills 2 R columns of one register, mmaqa.h R columns of two."""
    cfg = X256
    assert steady(cfg, "fmmacc.h", [4, 5, 6, 7]) == uops(cfg, 2 * cfg.x_rows)
    assert steady(cfg, "mmaqa.h", [4, 6]) == uops(cfg, cfg.x_rows)


def test_pointwise_takes_a_word_a_cycle() -> None:
    cfg = X256

    def cycles(count: int) -> int:
        builder = XuanTieBuilder.of(cfg)
        builder.sizes(cfg.x_rows, cfg.x_rows, cfg.row_bytes)
        builder.program.mfence()
        start = len(builder.program) - 1
        for index in range(count):
            builder.emit("mmul.s.mm", 4 + index % 4, 0, 1)
        builder.program.mfence()
        simulator = engine(cfg)
        simulator.memory = Memory(cfg.addr_bits)
        result = simulator.run(builder.program)
        return result.responses[-1].cycle - result.responses[start].cycle

    assert cycles(40) - cycles(20) == 20 * cfg.x_blocks


@pytest.mark.slow
def test_more_slots_are_never_slower() -> None:
    """The same programs, the INT8 kernel among them, with 1 to 8 slots."""
    cores = [
        registers(f"slots{slots}", 256, m_par=4, n_par=4, slots=slots, formats=("int8",))
        for slots in (1, 2, 4, 8)
    ]
    for index in range(6):
        rng = random.Random(f"{SEED} {index}")
        shape = [rng.randint(8, 40) for _ in range(3)]
        taken = [run(int8_case(cfg, *shape, SEED + index)) for cfg in cores]
        assert taken == sorted(taken, reverse=True), f"seed {SEED}: {shape} {taken}"


def test_both_front_ends_work_on_one_state() -> None:
    """A register is the first rows of every fourth tile; sizes and flags are one core's."""
    cfg, rng = BOTH, np.random.default_rng(SEED)
    a = rng.integers(-128, 128, (4, 16)).astype(np.int8)
    b = rng.integers(-128, 128, (4, 16)).astype(np.int8)
    program = Program(cfg)
    builder = XuanTieBuilder(program)
    program.mld("r", 0, 0x1000, 16)  # tile 0, whose first rows are m0: A
    program.mld("r", 12, 0x1100, 16)  # tile 12: m3, B
    builder.sizes(4, 4, 16)
    builder.mzero(4)
    builder.mmaqa("b", 4, 3, 0)
    program.mst("r", 16, 0x2000, 16)  # tile 16: m4
    program.mfence()
    simulator = engine(cfg)
    simulator.memory = memory = Memory(cfg.addr_bits)
    image = rng.integers(0, 256, 0x200, dtype=np.uint8)
    image[:64], image[0x100:0x140] = a.view(np.uint8).ravel(), b.view(np.uint8).ravel()
    memory.add_region(0x1000, image)
    memory.add_region(0x2000, 256)
    result = simulator.run(program)
    assert not any(response.error for response in result.responses)
    got = np.frombuffer(memory.read(0x2000, 64), np.int32).reshape(4, 4)
    assert np.array_equal(got, a.astype(int) @ b.T.astype(int))
