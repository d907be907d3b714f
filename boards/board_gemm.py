"""A GEMM on a board: operands into its memory, the program, and every bit compared."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from hdl import isa
from hdl.describe import macs_per_cycle
from hdl.formats import Format
from sim.codes import pack_rows, random_codes, row_bytes, unpack_rows
from sim.gemm_reference import reference_gemm
from sim.kernels import GemmProblem, Matrix, gemm_program, plan_gemm
from sim.options import choose, format_pair
from sim.program import Program
from sim.reference.numerics import FLAG_NAMES

from .device import Board, BoardError

__all__ = ["BoardGemm", "gemm"]

_ALIGN = 64
_GUARD = 64
"""Bytes of noise around C, which nobody may touch."""
_ERRORS = ("none", "illegal", "badgeom", "bus")


@dataclass(frozen=True)
class BoardGemm:
    """What a GEMM gave and took.

    Parameters
    ----------
    c : unsigned codes of C, (M, N).
    out : their format.
    bit_exact : C, the flags and every byte of A, of B and around C are as the reference has them.
    cycles, instructions : of the program; see `device.RunReport`.
    peak : MACs of the array in a cycle.
    clock_hz : of the core.
    seconds : all of it, mostly the serial line's.
    """

    c: np.ndarray
    out: Format
    tiling: str
    bit_exact: bool
    cycles: int
    instructions: int
    macs: int
    peak: int
    clock_hz: int
    seconds: float

    @property
    def gmacs(self) -> float:
        """10**9 MACs in a second of the core's clock."""
        return self.macs / max(1, self.cycles) * self.clock_hz / 1e9


def gemm(
    board: Board,
    m: int,
    n: int,
    k: int,
    *,
    ft: str | int = "int8",
    bovf: int = 0,
    acc: int = 0,
    sat: int = 0,
    rnd: int = 0,
    alpha: int = 1,
    beta: int = 0,
    tiling: str = "auto",
    seed: int = 0,
) -> BoardGemm:
    """alpha * A x B + beta * C of random numbers, A M x K and B held N x K, on a board.

    Parameters
    ----------
    board : with its memory, all of which may be overwritten.
    m, n, k : sizes.
    ft, bovf, acc, sat, rnd, alpha, beta, tiling : see `sim.gemm_call.gemm`.
    seed : of the random numbers.

    Raises `ValueError` for a problem that is none, `BoardError` if the board fails.
    """
    started = time.monotonic()
    cfg = board.info.config
    fmt, out = format_pair(cfg, ft, bovf, acc)
    choose("sat", sat, (0, 1))
    choose("rnd", rnd, (0, 1, 2, 3))
    if min(m, n, k) < 1:
        raise ValueError(f"sizes {m} {n} {k}: use 1 or more")
    noise = np.random.default_rng(seed)
    forms = (fmt, fmt, out)
    shapes = ((m, k), (n, k), (m, n))
    codes = [random_codes(noise, shape, form) for shape, form in zip(shapes, forms, strict=True)]
    base, matrices = 0, []
    for name, (rows, columns), form in zip("ABC", shapes, forms, strict=True):
        ld = columns + columns * form.container % 8 // 4  # 4-bit rows start on a byte
        base += _GUARD if name == "C" else 0
        matrices.append(Matrix(name, rows, columns, form.container, base, ld))
        base = -(-(base + matrices[-1].extent) // _ALIGN) * _ALIGN
    size = base + _GUARD
    if size > board.info.l2_bytes:
        raise ValueError(
            f"A, B and C need {size} bytes, but the board has {board.info.l2_bytes}: use a smaller "
            "M, N or K"
        )
    a, b, c = matrices
    fields = {"bovf": bovf, "acc": acc, "sat": sat, "rnd": rnd, "alpha": alpha, "beta": beta}
    problem = GemmProblem(fmt=fmt, out=out, a=a, b=b, c=c, trans="nt", **fields)
    problem.check(cfg.addr_bits)
    plan = plan_gemm(cfg, problem, tiling)

    content = noise.integers(0, 256, size, np.uint8)
    for matrix, values in zip(matrices, codes, strict=True):
        _rows(content, matrix)[...] = pack_rows(values, matrix.container)
    board.write(0, content.tobytes())
    requests = [
        *_clear_flags(cfg).requests,
        *gemm_program(plan).requests,
        *_read_flags(cfg).requests,
    ]
    report = board.run(requests)
    for index, result in enumerate(report.results):
        if result.error:
            raise BoardError(
                f"request {index} of {len(requests)}, {requests[index]}, answered "
                f"{_ERRORS[result.error]}"
            )
    status = report.results[-1].data
    flags = {name: bool(field.get(status)) for name, field in isa.MXSTATUS.items()}
    found = np.frombuffer(board.read(0, size), np.uint8)

    expected, wanted = reference_gemm(cfg, fmt.name, *codes, lanes=plan.lanes, **fields)
    _rows(content, c)[...] = pack_rows(expected, c.container)
    exact = np.array_equal(found, content) and all(flags[f] == wanted[f] for f in FLAG_NAMES)
    return BoardGemm(
        c=unpack_rows(_rows(found, c), n, c.container),
        out=out,
        tiling=plan.name,
        bit_exact=bool(exact),
        cycles=report.cycles,
        instructions=len(requests),
        macs=m * n * k,
        peak=macs_per_cycle(cfg, fmt, out),
        clock_hz=board.info.clock_hz,
        seconds=time.monotonic() - started,
    )


def _rows(content: np.ndarray, matrix: Matrix) -> np.ndarray:
    """A matrix's rows in memory from address 0 on, (rows, row bytes), as a view."""
    size = row_bytes(matrix.columns, matrix.container)
    shape, strides = (matrix.rows, size), (matrix.stride, 1)
    return np.lib.stride_tricks.as_strided(content[matrix.base :], shape, strides)


def _clear_flags(cfg) -> Program:
    program = Program(cfg)
    program.csrrw("mxstatus", 0)
    return program


def _read_flags(cfg) -> Program:
    program = Program(cfg)
    program.csrr("mxstatus")
    return program
