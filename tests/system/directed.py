"""Directed programs on the RTL against the model: all responses, mxstatus and every tile."""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np
from gemm_cases import compiled

from hdl.config import Config
from sim.driver import RunResult
from sim.engines import open_engine
from sim.engines.base import Simulator
from sim.engines.model import ModelSimulator
from sim.memory import Memory
from sim.personality import IDEAL, Personality
from sim.program import Program

__all__ = ["INIT", "SPARE", "compare", "engine", "fenced_cycles"]

INIT, DUMP, SPARE = 0x10_0000, 0x20_0000, 0x30_0000
SPARE_BYTES = 0x4000


@functools.cache
def engine(cfg: Config) -> Simulator:
    """The core of `cfg`, compiled once."""
    return open_engine(compiled(), cfg, progress=False)


def compare(
    cfg: Config,
    body: Callable[[Program], None],
    *,
    seed: int,
    tiles: np.ndarray | None = None,
    personality: Personality = IDEAL,
) -> RunResult:
    """Run `body(program)` on random tiles (or on `tiles`); everything as the model has it.

    Memory from `SPARE` on holds random bytes, for loads and stores of the body.
    """
    rng = np.random.default_rng(seed)
    program = Program(cfg)
    content = rng.integers(0, 256, program.file_bytes, dtype=np.uint8) if tiles is None else tiles
    spare = rng.integers(0, 256, SPARE_BYTES, dtype=np.uint8)
    program.load_tiles(INIT)
    program.csrrw("mxstatus", 0)
    program.set_cfg("int8")  # the engine's core comes from another test
    program.set_tile(16, 16)
    body(program)
    program.csrr("mxstatus")
    program.mfence()
    program.store_tiles(DUMP)
    program.mfence()
    results, memories = [], []
    for simulator in (ModelSimulator(cfg), engine(cfg)):
        memory = Memory(cfg.addr_bits)
        memory.add_region(INIT, content.ravel().copy())
        memory.add_region(DUMP, content.size)
        memory.add_region(SPARE, spare.copy())
        simulator.memory = memory
        results.append(simulator.run(program, personality=personality, seed=seed))
        memories.append(memory)
    want, got = results
    where = f"seed {seed}, personality {personality.name}"
    for request, theirs, ours in zip(program, want.responses, got.responses, strict=True):
        assert ours[:5] == theirs[:5], f"{where}: `{request}` answers {ours}, not {theirs}"
    for base, size in ((DUMP, content.size), (SPARE, SPARE_BYTES)):
        theirs, ours = (np.frombuffer(memory.read(base, size), np.uint8) for memory in memories)
        wrong = np.flatnonzero(ours != theirs)
        tile, byte = divmod(int(wrong[0]), program.tile_bytes) if len(wrong) else (0, 0)
        assert not len(wrong), f"{where}: byte {byte} of tile {tile} from {base:#x} on differs"
    return got


def fenced_cycles(cfg: Config, prepare: Callable, body: Callable) -> int:
    """Cycles from one fence's answer to the next one's, with `body(program)` between them."""
    program = Program(cfg)
    prepare(program)
    program.mfence()
    start = len(program) - 1
    body(program)
    program.mfence()
    simulator = engine(cfg)
    simulator.memory.clear()
    result = simulator.run(program)
    assert not any(response.error for response in result.responses)
    return result.responses[-1].cycle - result.responses[start].cycle
