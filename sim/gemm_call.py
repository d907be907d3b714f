"""One GEMM on a simulated core: lay it out in memory, run it, compare every bit."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hdl.config import Config
from hdl.describe import macs_per_cycle
from hdl.formats import Format

from .codes import as_codes, random_codes
from .cores import as_config
from .gemm_reference import reference_gemm
from .gemm_run import DEFAULT_LATENCY, run_gemm
from .kernels import TRANSPOSES, GemmProblem, Matrix
from .layout import GUARD_BYTES, PlacedMatrix
from .memory import Memory
from .options import choose, format_pair
from .reference.numerics import FLAG_NAMES

__all__ = ["DEFAULT_LATENCY", "TRANSPOSES", "GemmResult", "gemm"]

_FIRST_BASE = 0x1000
_ALIGN = 64


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
    shapes: tuple[tuple[int, int], ...],
    fmt: Format,
    out: Format,
    lds: tuple[int | None, int | None, int | None],
    offsets: tuple[int, int, int],
) -> tuple[Matrix, Matrix, Matrix]:
    """A, B and C one behind the other in memory, `offsets` bytes after a line's start."""
    base, found = _FIRST_BASE, []
    for name, (rows, columns), form, ld, offset in zip(
        "ABC", shapes, (fmt, fmt, out), lds, offsets, strict=True
    ):
        container = form.container
        if ld is None:
            ld = max(1, columns)
            ld += ld * container % 8 // 4  # 4-bit rows start on a byte
        matrix = Matrix(name, rows, columns, container, base + GUARD_BYTES + offset, ld)
        end = matrix.base + matrix.extent + GUARD_BYTES
        base = -(-end // _ALIGN) * _ALIGN
        found.append(matrix)
    return found[0], found[1], found[2]


def _codes(name: str, array: np.ndarray, fmt: Format, rnd: int) -> np.ndarray:
    array = np.asarray(array)
    if array.ndim != 2:
        raise ValueError(f"{name} must have two dimensions, not {array.ndim}")
    return as_codes(name, array, fmt, rnd)


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
    pack : lay A out M x K and B N x K, the core's own form, whatever `trans` says; else they lie
        in memory as `a` and `b` are given, and the core transposes what must be.
    lda, ldb, ldc : elements from row to row in memory, of A and B as `pack` lays them, and of C;
        default: a row.
    offsets : bytes by which A, B and C miss the start of a line.
    tiling : "auto" or a name of `sim.kernels.BLOCKS`; a 4x4 that the guard refuses runs as 2x2.
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
    if beta and c is None:
        raise ValueError("beta = 1 needs C: give it")
    given = [_codes("A", a, fmt, rnd), _codes("B", b, fmt, rnd)]
    a_codes = given[0].T if trans[0] == "t" else given[0]
    b_codes = given[1] if trans[1] == "t" else given[1].T
    (m, k), (n, b_k) = a_codes.shape, b_codes.shape
    if b_k != k:
        raise ValueError(f"op(A) is {m} x {k} and op(B) {b_k} x {n}: K must be equal")
    if pack:
        given, trans = [a_codes, b_codes], "nt"
    noise = np.random.default_rng(seed)
    if c is None:
        c_codes = random_codes(noise, (m, n), out)  # shows that it is not read
    else:
        c_codes = _codes("C", c, out, rnd)
    if c_codes.shape != (m, n):
        raise ValueError(f"C must be {m} x {n}, not {' x '.join(map(str, c_codes.shape))}")
    held = (*given, c_codes)
    matrices = _layout(tuple(codes.shape for codes in held), fmt, out, (lda, ldb, ldc), offsets)
    fields = {"bovf": bovf, "acc": acc, "sat": sat, "rnd": rnd, "alpha": alpha, "beta": beta}
    problem = GemmProblem(
        fmt=fmt, out=out, a=matrices[0], b=matrices[1], c=matrices[2], trans=trans, **fields
    )
    problem.check(cfg.addr_bits)

    memory = Memory(cfg.addr_bits)
    places = [
        PlacedMatrix(
            memory,
            matrix,
            codes,
            readable=matrix is not problem.c or bool(beta),
            writable=matrix is problem.c,
            noise=noise,
        )
        for matrix, codes in zip(matrices, held, strict=True)
    ]
    run = run_gemm(memory, problem, preset=cfg, tiling=tiling, engine=engine, latency=latency)
    expected, expected_flags = reference_gemm(
        cfg, fmt.name, a_codes, b_codes, c_codes, lanes=run.plan.lanes, **fields
    )
    exact = all(place.holds(codes) for place, codes in zip(places, (*given, expected), strict=True))
    exact &= all(run.flags[name] == expected_flags[name] for name in FLAG_NAMES)
    return GemmResult(
        c=places[2].codes(),
        out=out,
        flags=run.flags,
        m=m,
        n=n,
        k=k,
        ft=fmt.name,
        preset=cfg.name,
        tiling=run.plan.name,
        engine=run.engine,
        latency=latency,
        cycles=run.cycles,
        peak_macs_per_cycle=macs_per_cycle(cfg, fmt, out),
        bound_cycles=run.plan.bound,
        read_beats=run.read_beats,
        write_beats=run.write_beats,
        beat_bytes=cfg.bus_bytes,
        bit_exact=bool(exact),
        seconds=run.seconds,
    )
