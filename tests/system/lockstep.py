"""Run one program on an engine and on the architectural model, and compare everything."""

from __future__ import annotations

import random

import numpy as np

from sim.engines.base import Simulator
from sim.engines.model import ModelSimulator
from sim.personality import Personality
from sim.random_program import RandomProgram, random_program


def fail_somewhere(program: RandomProgram, rng: random.Random):
    """A function that makes a few ranges of a memory answer with errors, the same each time."""
    ranges = []
    for base, content in program.regions:
        for _ in range(2):
            size = rng.choice([1, 16, 40])
            start = rng.randrange(max(1, len(content) - size))
            ranges.append((base + start, size, rng.random() < 0.5))

    def apply(memory):
        for base, size, read in ranges:
            (memory.fail_read if read else memory.fail_write)(base % (1 << 40), size)

    return apply


def check(
    engine: Simulator,
    program: RandomProgram,
    personality: Personality,
    seed: int,
    *,
    runs: int = 2,
    prepare=lambda memory: None,
) -> int:
    """Every response and every byte of memory (tiles dumped at the end) as the model has them.

    The program runs `runs` times on the same instance, without a reset. Returns the cycles.
    """
    where = f"program seed {seed}, personality {personality.name}, engine {engine.name}"
    model = ModelSimulator(program.cfg)
    cycles = 0
    for run in range(runs):
        expected, memory = program.memory(), program.memory()
        prepare(expected)
        prepare(memory)
        model.memory, engine.memory = expected, memory
        want = model.run(program.program)
        got = engine.run(program.program, personality=personality, seed=seed, patience=20_000)
        cycles += got.total_cycles
        pairs = zip(program.program, got.responses, want.responses, strict=True)
        for index, (request, ours, theirs) in enumerate(pairs):
            assert ours[:5] == theirs[:5], (
                f"{where}, run {run}: response {index} to `{request}` is {ours}, not {theirs}"
            )
        for base, content in program.regions:
            ours = np.frombuffer(memory.read(base, len(content)), np.uint8)
            theirs = np.frombuffer(expected.read(base, len(content)), np.uint8)
            wrong = np.flatnonzero(ours != theirs)
            assert not len(wrong), (
                f"{where}, run {run}: {len(wrong)} bytes differ, the first at "
                f"{base + int(wrong[0]):#x} of the region at {base:#x}"
                + (" (the tile dump)" if base == program.dump else "")
            )
    return cycles


def programs(cfg, seeds, length):
    """(seed, program) for each seed."""
    for seed in seeds:
        yield seed, random_program(cfg, random.Random(seed), length)
