"""One GEMM on a simulated core: lay it out in memory, run it, compare every bit."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from hdl.config import Config
from hdl.describe import macs_per_cycle
from hdl.formats import Format

from .codes import as_codes, random_codes
from .cores import as_config, shared_core
from .gemm_reference import reference_gemm
from .kernels import GemmPlan, GemmProblem, Matrix, gemm_program, plan_gemm
from .layout import GUARD_BYTES, PlacedMatrix
from .memory import IDEAL, Memory
from .options import choose, format_pair
from .reference.numerics import FLAG_NAMES

__all__ = ["DEFAULT_LATENCY", "TRANSPOSES", "GemmResult", "gemm"]

DEFAULT_LATENCY = IDEAL.latency
TRANSPOSES = ("nn", "nt", "tn", "tt")
_FIRST_BASE = 0x1000
_ALIGN = 64
_MAX_CYCLES = 1 << 31


@dataclass(frozen=True)
class GemmResult:
    """What a GEMM gave and took.

    Parameters
    ----------
    c : unsigned codes of C, (M, N).
    out : format of C.
    flags : the sticky bits of mxstatus.
    bit_exact : C, the flags and every byte around C are as the reference has them.
    cycles : from the first request to the answer of the last mfence; 0 on the model.
    bound_cycles : see `GemmPlan.bound`.
    read_beats, write_beats : beats of `beat_bytes` bytes on the L2 channels.
    seconds : of simulation.
    """

    c: np.ndarray
    out: Format
    flags: dict[str, bool]
    m: int
    n: int
    k: int
    ft: str
    preset: str
    tiling: str
    engine: str
    latency: int
    cycles: int
    peak_macs_per_cycle: int
    bound_cycles: int
    read_beats: int
    write_beats: int
    beat_bytes: int
    bit_exact: bool
    seconds: float

    @property
    def macs(self) -> int:
        """Multiply-accumulates of the problem, tails not rounded up."""
        return self.m * self.n * self.k

    @property
    def utilisation(self) -> float | None:
        """Bound over cycles; None on an engine without cycles."""
        return self.bound_cycles / self.cycles if self.cycles else None

    @property
    def mac_utilisation(self) -> float | None:
        """Share of the MAC array's peak; None on an engine without cycles."""
        return self.macs / (self.peak_macs_per_cycle * self.cycles) if self.cycles else None

    def report(self) -> dict[str, object]:
        """The figures under the keys of --json."""
        keys = (
            *("m", "n", "k", "ft", "preset", "tiling", "engine", "latency", "cycles", "macs"),
            *("peak_macs_per_cycle", "bound_cycles", "utilisation", "mac_utilisation"),
            *("read_beats", "write_beats", "bit_exact", "seconds"),
        )
        return {key: getattr(self, key) for key in keys}


def _layout(
    sizes: tuple[int, int, int],
    fmt: Format,
    out: Format,
    lds: tuple[int | None, int | None, int | None],
    offsets: tuple[int, int, int],
) -> tuple[Matrix, Matrix, Matrix]:
    """A, B and C one behind the other in memory, `offsets` bytes after a line's start."""
    m, n, k = sizes
    shapes = (("A", m, k, fmt.container), ("B", n, k, fmt.container), ("C", m, n, out.container))
    base, found = _FIRST_BASE, []
    for (name, rows, columns, container), ld, offset in zip(shapes, lds, offsets, strict=True):
        if ld is None:
            ld = max(1, columns)
            ld += ld * container % 8 // 4  # 4-bit rows start on a byte
        matrix = Matrix(name, rows, columns, container, base + GUARD_BYTES + offset, ld)
        end = matrix.base + matrix.extent + GUARD_BYTES
        base = -(-end // _ALIGN) * _ALIGN
        found.append(matrix)
    return found[0], found[1], found[2]


def _operand(name: str, array: np.ndarray, fmt: Format, rnd: int, transposed: bool) -> np.ndarray:
    array = np.asarray(array)
    if array.ndim != 2:
        raise ValueError(f"{name} must have two dimensions, not {array.ndim}")
    codes = as_codes(name, array, fmt, rnd)
    return np.ascontiguousarray(codes.T) if transposed else codes


def gemm(
    a: np.ndarray,
    b: np.ndarray,
    c: np.ndarray | None = None,
    *,
    ft: str | int = "int8",
    bovf: int = 0,
    acc: int = 0,
    sat: int = 0,
    rnd: int = 0,
    alpha: int = 1,
    beta: int = 0,
    trans: str = "nn",
    pack: bool = True,
    lda: int | None = None,
    ldb: int | None = None,
    ldc: int | None = None,
    offsets: tuple[int, int, int] = (0, 0, 0),
    tiling: str = "auto",
    preset: str | Config = "ame32",
    engine: str = "auto",
    latency: int = DEFAULT_LATENCY,
    seed: int = 0,
) -> GemmResult:
    """alpha * op(a) x op(b) + beta * c on a simulated core, compared with the reference.

    Parameters
    ----------
    a, b : op(a) is (M, K), op(b) is (K, N). Integers are codes, unsigned or two's complement;
        floats are converted, rounded in mode `rnd` and saturated.
    c : (M, N), as `a` but in the output format; only read with `beta` = 1, where it is needed.
    ft : operand format, by name or Ft code.
    bovf, acc, sat, rnd : fields of mxcfg.
    alpha, beta : 1 or -1, and 0 or 1.
    trans : for A and for B, n as given or t transposed.
    pack : lay the operands out as the core wants them; else they must be so already ("nt").
    lda, ldb, ldc : elements from row to row in memory, of A (M x K), B (N x K) and C; default: a
        row.
    offsets : bytes by which A, B and C miss the start of a line.
    tiling : "auto" or a name of `sim.kernels.TILINGS`; a 4x4 that the guard refuses runs as 2x2.
    preset, engine : the core (a name or a Config) and what simulates it.
    latency : of L2, in cycles.
    seed : of the noise around the matrices.

    Raises `ValueError` for arguments that do not fit, `SimulationError` if the core fails.
    """
    cfg = as_config(preset)
    fmt, out = format_pair(cfg, ft, bovf, acc)
    choose("sat", sat, (0, 1))
    choose("rnd", rnd, (0, 1, 2, 3))
    if trans not in TRANSPOSES:
        raise ValueError(f"trans = {trans!r} is unknown: use one of {', '.join(TRANSPOSES)}")
    if not pack and trans != "nt":
        raise ValueError(f"trans = {trans} without packing is not built yet: use nt, or pack")
    if beta and c is None:
        raise ValueError("beta = 1 needs C: give it")
    a_codes = _operand("A", a, fmt, rnd, trans[0] == "t")
    b_codes = _operand("B", b, fmt, rnd, trans[1] == "n")
    sizes = (a_codes.shape[0], b_codes.shape[0], a_codes.shape[1])
    m, n, k = sizes
    if b_codes.shape[1] != k:
        raise ValueError(f"op(A) is {m} x {k} and op(B) {b_codes.shape[1]} x {n}: K must be equal")
    noise = np.random.default_rng(seed)
    if c is None:
        c_codes = random_codes(noise, (m, n), out)  # shows that it is not read
    else:
        c_codes = _operand("C", c, out, rnd, False)
    matrices = _layout(sizes, fmt, out, (lda, ldb, ldc), offsets)
    problem = GemmProblem(
        fmt=fmt,
        out=out,
        a=matrices[0],
        b=matrices[1],
        c=matrices[2],
        bovf=bovf,
        acc=acc,
        sat=sat,
        rnd=rnd,
        alpha=alpha,
        beta=beta,
    )
    if c_codes.shape != (m, n):
        raise ValueError(f"C must be {m} x {n}, not {' x '.join(map(str, c_codes.shape))}")
    problem.check(cfg.addr_bits)
    plan = plan_gemm(cfg, problem, tiling)
    return _run(plan, (a_codes, b_codes, c_codes), noise, engine, latency)


def _run(
    plan: GemmPlan,
    operands: tuple[np.ndarray, np.ndarray, np.ndarray],
    noise: np.random.Generator,
    engine: str,
    latency: int,
) -> GemmResult:
    """Run a plan on its operands and compare."""
    cfg, problem = plan.cfg, plan.problem
    memory = Memory(cfg.addr_bits)
    places = [
        PlacedMatrix(memory, problem.a, operands[0], noise=noise),
        PlacedMatrix(memory, problem.b, operands[1], noise=noise),
        PlacedMatrix(
            memory,
            problem.c,
            operands[2],
            readable=bool(problem.beta),
            writable=True,
            noise=noise,
        ),
    ]
    core = shared_core(cfg, engine)
    requests = gemm_program(plan).requests
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
    expected, expected_flags = reference_gemm(
        cfg,
        problem.fmt.name,
        *operands,
        bovf=problem.bovf,
        acc=problem.acc,
        sat=problem.sat,
        rnd=problem.rnd,
        alpha=problem.alpha,
        beta=problem.beta,
        lanes=plan.lanes,
    )
    exact = all(place.holds(codes) for place, codes in zip(places[:2], operands[:2], strict=True))
    exact &= places[2].holds(expected)
    exact &= all(flags[name] == expected_flags[name] for name in FLAG_NAMES)
    return GemmResult(
        c=places[2].codes(),
        out=problem.out,
        flags=flags,
        m=problem.m,
        n=problem.n,
        k=problem.k,
        ft=problem.fmt.name,
        preset=cfg.name,
        tiling=plan.name,
        engine=core.engine,
        latency=latency,
        cycles=result.cycles,
        peak_macs_per_cycle=macs_per_cycle(cfg, problem.fmt, problem.out),
        bound_cycles=plan.bound,
        read_beats=result.read_beats,
        write_beats=result.write_beats,
        beat_bytes=cfg.bus_bytes,
        bit_exact=bool(exact),
        seconds=seconds,
    )
