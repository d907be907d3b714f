"""How a GEMM is cut up: exact cover, tile registers, bound, overlap in memory."""

from __future__ import annotations

import random

import numpy as np
import pytest
from gemm_cases import SEED, SIZES

from hdl.config import Config, preset
from hdl.formats import FORMATS
from sim.kernels import TILINGS, GemmPlan, GemmProblem, Matrix, Tiles, gemm_program, plan_gemm

AME32 = preset("ame32")
SPLIT = preset("ame32-split")
INT8 = FORMATS["int8"]
OUTS = ("int8", "int16", "int32")


def problem(m: int, n: int, k: int, out: str = "int16", **options: int) -> GemmProblem:
    a = Matrix("A", m, k, 8, 0x10000, options.pop("lda", k))
    b = Matrix("B", n, k, 8, 0x80000, options.pop("ldb", k))
    c = Matrix("C", m, n, FORMATS[out].container, 0x100000, options.pop("ldc", n))
    return GemmProblem(fmt=INT8, out=FORMATS[out], a=a, b=b, c=c, **options)


@pytest.mark.parametrize("cfg", [AME32, SPLIT], ids=lambda cfg: cfg.name)
@pytest.mark.parametrize("tiling", TILINGS)
def test_every_product_once_and_every_result_stored_once(tiling: str, cfg: Config) -> None:
    draw = random.Random(SEED)
    for _ in range(30):
        m, n, k = (draw.choice((*SIZES, 75, 100)) for _ in range(3))
        plan = GemmPlan(cfg, problem(m, n, k, draw.choice(OUTS)), tiling)
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
                for i in range(-(-pair.m // AME32.rows)):
                    for j in range(-(-pair.n // AME32.rows)):
                        assert i < pair.macro.a_tiles and j < pair.macro.b_tiles
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


# C sets by tiling and width, in one file and with a file of its own.
SETS = {
    ("1x1", 8): (16, 32),
    ("1x1", 16): (8, 16),
    ("1x1", 32): (4, 8),
    ("1x1", 64): (2, 4),
    **{(name, 8): (4, 8) for name in ("2x2", "1x4", "4x1")},
    **{(name, 16): (2, 4) for name in ("2x2", "1x4", "4x1")},
    **{(name, 32): (1, 2) for name in ("2x2", "1x4", "4x1")},
    ("4x4", 8): (1, 2),
    ("4x4", 16): (0, 1),
}


@pytest.mark.parametrize("cfg", [AME32, SPLIT], ids=lambda cfg: cfg.name)
@pytest.mark.parametrize("out_bits", [8, 16, 32, 64])
@pytest.mark.parametrize("tiling", TILINGS)
def test_tile_registers_are_apart_and_in_their_banks(tiling, out_bits, cfg) -> None:
    macro = TILINGS[tiling]
    sets = SETS.get((tiling, out_bits), (0, 0))[cfg.split]
    if not sets:
        with pytest.raises(ValueError, match=f"{tiling} with {out_bits}-bit results does not fit"):
            Tiles.of(cfg, macro, out_bits)
        return
    tiles = Tiles.of(cfg, macro, out_bits)
    stride = out_bits // 8 if tiling == "4x4" else 4
    used = [
        first + stride * pair + part
        for first in tiles.c_sets
        for pair in range(macro.pairs)
        for part in range(tiles.result)
    ]
    assert len(used) == len(set(used)) and max(used) < (32 if cfg.split else 16)
    assert len(tiles.c_sets) == sets
    a, b = (range(16), range(16, 32)) if cfg.split else (range(16, 24), range(24, 32))
    for buffers, count, bank in (
        (tiles.a_buffers, macro.a_tiles, a),
        (tiles.b_buffers, macro.b_tiles, b),
    ):
        used = [first + t for first in buffers for t in range(count * tiles.deep)]
        assert len(buffers) >= 2 and len(used) == len(set(used)) and set(used) <= set(bank)


@pytest.mark.parametrize(
    ("out", "cfg", "granted"),
    [
        *(("int8", AME32, True), ("int16", AME32, False), ("int32", AME32, False)),
        *(("int8", SPLIT, True), ("int16", SPLIT, True), ("int32", SPLIT, False)),
    ],
)
def test_asking_for_4x4(out: str, cfg: Config, granted: bool) -> None:
    """What the guard will refuse is planned as the 2x2 that the core will run, still asking."""
    plan = plan_gemm(cfg, problem(64, 64, 16, out), "4x4")
    assert (plan.name, plan.refused) == (("4x4", False) if granted else ("2x2", True))
    values = [request.rs1 for request in gemm_program(plan) if request.inst & 0x7F == 0x73]
    assert any(value >> 18 & 1 for value in values[1:])


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
        ((64, 64, 16), "int8", "4x4", (256, 128, 256)),
        ((16, 64, 16), "int16", "1x4", (64, 80, 128)),
        ((64, 16, 16), "int16", "4x1", (64, 80, 128)),
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
    for _ in range(40):
        out = draw.choice(OUTS)
        whole = problem(*(draw.choice(SIZES) for _ in range(3)), out)
        plan = plan_gemm(AME32, whole)
        chosen.add(plan.name)
        plans = [GemmPlan(AME32, whole, name) for name in TILINGS]
        assert plan.bound == min(other.bound for other in plans if not other.refused)
    assert chosen == set(TILINGS), f"seed {SEED}"


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
