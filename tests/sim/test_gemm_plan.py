"""How a GEMM is cut up: exact cover, tile registers, bound, overlap in memory."""

from __future__ import annotations

import random

import numpy as np
import pytest
from gemm_cases import SEED, SIZES

from hdl.config import preset
from hdl.formats import FORMATS
from hdl.isa import Tiling
from sim.kernels import GemmPlan, GemmProblem, Matrix, gemm_program, plan_gemm
from sim.kernels.plan import GROUP_STRIDE, Tiles

AME32 = preset("ame32")
INT8 = FORMATS["int8"]
OUTS = ("int8", "int16", "int32")


def problem(m: int, n: int, k: int, out: str = "int16", **options: int) -> GemmProblem:
    a = Matrix("A", m, k, 8, 0x10000, options.pop("lda", k))
    b = Matrix("B", n, k, 8, 0x80000, options.pop("ldb", k))
    c = Matrix("C", m, n, FORMATS[out].container, 0x100000, options.pop("ldc", n))
    return GemmProblem(fmt=INT8, out=FORMATS[out], a=a, b=b, c=c, **options)


@pytest.mark.parametrize("tiling", ["1x1", "2x2"])
def test_every_product_once_and_every_result_stored_once(tiling: str) -> None:
    draw = random.Random(SEED)
    for _ in range(30):
        m, n, k = (draw.choice(SIZES) for _ in range(3))
        plan = GemmPlan(AME32, problem(m, n, k, draw.choice(OUTS)), tiling)
        macs = np.zeros((m, n), int)
        stored = np.zeros((m, n), int)
        held: dict[int, tuple[int, int, int]] = {}  # tile: first row, first element of K, how many
        for step in plan.steps():
            for load in step.loads:
                for t in range(load.n):
                    row = load.row + (AME32.rows * t if load.down else 0)
                    column = load.column + (0 if load.down else load.k * t)
                    held[load.tile + t] = (row, column, load.k)
            for pair in step.pairs:
                for i in range(pair.tiling.a_tiles):
                    for j in range(pair.tiling.b_tiles):
                        row, at, length = held[pair.a + i]
                        column, at_b, _ = held[pair.b + j]
                        assert at == at_b and pair.k == length
                        rows = min(AME32.rows, pair.m - AME32.rows * i)
                        columns = min(AME32.rows, pair.n - AME32.rows * j)
                        macs[row : row + rows, column : column + columns] += length
            for group in step.stores:
                stored[
                    group.row : group.row + group.rows,
                    group.column : group.column + group.columns,
                ] += 1
        where = f"seed {SEED}: {m} x {n} x {k}, {tiling}"
        assert (macs == k).all() and (stored == 1).all(), where


@pytest.mark.parametrize("tiling", list(Tiling)[:2])
@pytest.mark.parametrize("out_bits", [8, 16, 32, 64])
def test_tile_registers_are_apart_and_in_their_banks(tiling: Tiling, out_bits: int) -> None:
    if tiling is Tiling.T2X2 and out_bits == 64:
        with pytest.raises(ValueError, match=r"2x2 with 64-bit results does not fit"):
            Tiles.of(AME32, tiling, out_bits)
        return
    tiles = Tiles.of(AME32, tiling, out_bits)
    pairs = tiling.a_tiles * tiling.b_tiles
    used = [
        first + GROUP_STRIDE * pair + part
        for first in tiles.c_sets
        for pair in range(pairs)
        for part in range(tiles.result)
    ]
    assert len(used) == len(set(used)) and max(used) < 16
    assert len(tiles.c_sets) == 16 // (pairs * tiles.result)
    for buffers, count, bank in (
        (tiles.a_buffers, tiling.a_tiles, range(16, 24)),
        (tiles.b_buffers, tiling.b_tiles, range(24, 32)),
    ):
        used = [first + t for first in buffers for t in range(count * tiles.deep)]
        assert len(buffers) >= 2 and len(used) == len(set(used)) and set(used) <= set(bank)


@pytest.mark.parametrize(
    ("size", "out", "tiling", "work"),
    [
        # performance.md section 1: of a macro step, 1x1 reads 32 beats for 16 uops, 2x2 64 for 64
        ((16, 16, 16), "int16", "1x1", (16, 32, 32)),
        ((32, 32, 16), "int16", "2x2", (64, 64, 128)),
        ((64, 64, 64), "int16", "2x2", (1024, 1024, 512)),
        ((64, 64, 64), "int32", "2x2", (1024, 1024, 1024)),
        ((64, 64, 64), "int8", "1x1", (1024, 2048, 256)),
        ((512, 512, 512), "int16", "2x2", (524288, 524288, 32768)),
        ((17, 5, 33), "int16", "1x1", (3 * 2 * 5, 82, 17 + 6)),
    ],
)
def test_bound(size, out: str, tiling: str, work) -> None:
    plan = GemmPlan(AME32, problem(*size, out), tiling)
    if size == (17, 5, 33):  # K tails and rows of 33 bytes: counted byte by byte below
        work = (work[0], _touched(plan, "loads"), _touched(plan, "stores"))
    assert plan.work == work
    assert plan.bound == max(work)


def _touched(plan: GemmPlan, kind: str) -> int:
    """Beats counted from the bytes of every row of every load or store."""
    total = 0
    for step in plan.steps():
        parts = []
        if kind == "loads":
            for load in step.loads:
                columns = load.k * (1 if load.down else load.n)
                parts.append((plan.matrix(load.what), load.row, load.rows, load.column, columns))
        else:
            c = plan.problem.c
            parts += [(c, g.row, g.rows, g.column, g.columns) for g in step.stores]
        for matrix, row, rows, column, columns in parts:
            for r in range(row, row + rows):
                first = matrix.address(r, column)
                size = columns * matrix.container // 8
                total += len({byte // 16 for byte in range(first, first + size)})
    return total


def test_64_bit_results_count_two_cycles_a_uop() -> None:
    a = Matrix("A", 16, 2, 64, 0x1000, 2)
    c = Matrix("C", 16, 16, 64, 0x3000, 16)
    b = Matrix("B", 16, 2, 64, 0x2000, 2)
    whole = GemmProblem(fmt=FORMATS["int64"], out=FORMATS["int64"], a=a, b=b, c=c)
    assert GemmPlan(AME32, whole, "1x1").work[0] == 32


def test_auto_takes_the_lowest_bound() -> None:
    draw = random.Random(SEED)
    chosen = set()
    for _ in range(20):
        whole = problem(*(draw.choice(SIZES) for _ in range(3)))
        plan = plan_gemm(AME32, whole)
        chosen.add(plan.name)
        assert plan.bound == min(GemmPlan(AME32, whole, name).bound for name in ("1x1", "2x2"))
    assert chosen == {"1x1", "2x2"}


def test_mxtile_is_written_only_when_it_changes() -> None:
    program = gemm_program(plan_gemm(AME32, problem(64, 64, 64), "2x2"))
    csrs = [request for request in program if request.inst & 0x7F == 0x73]
    # mxcfg; mxtile for the first load of A, of B, and for the first product: K, M, N, TILING
    assert len(csrs) == 1 + 3
    assert len(program) == len(csrs) + 4 * (4 * 3 + 2) + 1


def _bytes(matrix: Matrix) -> set[int]:
    size = matrix.columns * matrix.container // 8
    return {matrix.address(row, 0) + byte for row in range(matrix.rows) for byte in range(size)}


def test_overlap_is_what_shared_bytes_are() -> None:
    draw = random.Random(SEED)
    seen = {True: 0, False: 0}
    for _ in range(600):
        first, second = (
            Matrix(
                name,
                draw.randrange(5),
                columns := draw.randrange(5),
                draw.choice((8, 16)),
                draw.randrange(30),
                columns + draw.randrange(6),
            )
            for name in "AB"
        )
        shared = bool(_bytes(first) & _bytes(second))
        assert first.overlaps(second) == second.overlaps(first) == shared, (first, second)
        seen[shared] += 1
    assert min(seen.values()) > 100


def test_overlapping_c_is_refused_by_name() -> None:
    good = problem(16, 16, 16)
    good.check(40)
    for name in "ab":
        victim = getattr(good, name)
        moved = Matrix("C", 16, 16, 16, victim.address(15, 15), 16)
        bad = GemmProblem(fmt=INT8, out=good.out, a=good.a, b=good.b, c=moved)
        with pytest.raises(ValueError, match=f"C overlaps {victim.name} in memory"):
            bad.check(40)


def test_rows_between_bytes_are_refused() -> None:
    with pytest.raises(ValueError, match=r"lda = 3 puts rows between bytes"):
        Matrix("A", 2, 3, 4, 0, 3).check(40)
