"""A GEMM on matrices that lie in L2 memory already, as a driver on the host would start it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from hdl.config import Config

from .cores import as_config, shared_core
from .kernels import GemmPlan, GemmProblem, Matrix, gemm_program, plan_gemm
from .memory import Memory
from .personality import IDEAL

__all__ = ["DEFAULT_LATENCY", "GemmRun", "run_gemm"]

DEFAULT_LATENCY = IDEAL.latency
_MAX_CYCLES = 1 << 31


@dataclass(frozen=True)
class GemmRun:
    """What a GEMM took; its result is in memory.

    Parameters
    ----------
    plan : how it was cut up.
    engine : what simulated it.
    flags : the sticky bits of mxstatus.
    cycles : from the first request to the answer of the last mfence; 0 on the model.
    read_beats, write_beats : of the L2 channels.
    seconds : of simulation.
    """

    plan: GemmPlan
    engine: str
    flags: dict[str, bool]
    cycles: int
    read_beats: int
    write_beats: int
    seconds: float


def _allow(memory: Memory, matrix: Matrix, mark) -> None:
    if matrix.extent:
        try:
            for row in range(matrix.rows):
                mark(matrix.address(row, 0), matrix.row_bytes)
        except ValueError as error:
            raise ValueError(f"{matrix.name} is not all in memory: {error}") from None


@contextmanager
def _only(memory: Memory, problem: GemmProblem) -> Iterator[None]:
    """Let the core touch what the product needs and nothing else; what was allowed comes back."""
    before = [(region, region.perms.copy()) for region in memory.regions]
    memory.forbid_all()
    try:
        _allow(memory, problem.a, memory.allow_read)
        _allow(memory, problem.b, memory.allow_read)
        _allow(memory, problem.c, memory.allow_write)
        if problem.beta:
            _allow(memory, problem.c, memory.allow_read)
        yield
    finally:
        for region, perms in before:
            region.perms[:] = perms


def run_gemm(
    memory: Memory,
    problem: GemmProblem,
    *,
    preset: str | Config = "ame32",
    tiling: str = "auto",
    engine: str = "auto",
    latency: int = DEFAULT_LATENCY,
) -> GemmRun:
    """C = alpha * op(A) x op(B) + beta * C in place: no copy, no scratch memory, no packing.

    While it runs, the core may read the rows of A and B (and of C with beta = 1) and write the
    rows of C; any other access ends the run. Rows are all that a matrix is: bytes between them
    belong to somebody else.

    Parameters
    ----------
    memory : holds A, B and C, and C afterwards.
    problem : the product and where its matrices lie.
    preset, engine : the core (a name or a Config) and what simulates it.
    tiling : "auto" or a name of `sim.kernels.BLOCKS`.
    latency : of L2, in cycles.

    Raises `ValueError` for a problem that cannot be computed (`GemmProblem.check`) or that does
    not lie in memory, `SimulationError` if the core fails.
    """
    cfg = as_config(preset)
    problem.check(cfg.addr_bits)
    plan = plan_gemm(cfg, problem, tiling)
    core = shared_core(cfg, engine)
    requests = gemm_program(plan).requests
    with _only(memory, problem):
        core.clear_flags(memory)
        started = time.perf_counter()
        result = core.run(
            memory,
            requests,
            personality=IDEAL.replace(name=f"latency {latency}", latency=latency),
            max_cycles=_MAX_CYCLES,
        )
        seconds = time.perf_counter() - started
        flags = core.flags(memory)
    return GemmRun(
        plan,
        core.engine,
        flags,
        result.cycles,
        result.read_beats,
        result.write_beats,
        seconds,
    )
