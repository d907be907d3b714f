"""How a GEMM is cut up: exact cover, tile registers, bound, overlap in memory."""

from __future__ import annotations

import random
from dataclasses import dataclass

import numpy as np
import pytest
from gemm_cases import SEED, SIZES

from hdl.config import Config, preset
from hdl.formats import FORMATS
from sim.kernels import (
    BLOCKS,
    TILINGS,
    TRANSPOSES,
    Feed,
    GemmPlan,
    GemmProblem,
    Load,
    Matrix,
    Tiles,
    gemm_program,
    plan_gemm,
)

AME32 = preset("ame32")
SPLIT = preset("ame32-split")
INT8 = FORMATS["int8"]
OUTS = ("int8", "int16", "int32")


def problem(m: int, n: int, k: int, out: str = "int16", **options: int | str) -> GemmProblem:
    """Leading dimensions of a row unless given."""
    fmt = FORMATS[options.pop("ft", "int8")]
    trans = options.setdefault("trans", "nt")
    shapes = {
        "a": (k, m) if trans[0] == "t" else (m, k),
        "b": (n, k) if trans[1] == "t" else (k, n),
        "c": (m, n),
    }
    matrices = {
        name: Matrix(
            name.upper(),
            *shapes[name],
            (FORMATS[out] if name == "c" else fmt).container,
            base,
            options.pop(f"ld{name}", shapes[name][1]),
        )
        for name, base in (("a", 0x10000), ("b", 0x180000), ("c", 0x300000))
    }
    return GemmProblem(fmt=fmt, out=FORMATS[out], **matrices, **options)


PAIRS = [("int8", out) for out in OUTS] + [("bf16", "fp32"), ("fp32", "fp32"), ("fp16", "fp16")]


@pytest.mark.parametrize("cfg", [AME32, SPLIT], ids=lambda cfg: cfg.name)
@pytest.mark.parametrize("trans", TRANSPOSES)
@pytest.mark.parametrize("tiling", BLOCKS)
def test_every_product_once_and_every_result_stored_once(
    tiling: str, trans: str, cfg: Config
) -> None:
    draw = random.Random(SEED)
    done = 0
    for ft, out in PAIRS * 3:
        m, n, k = (draw.choice((*SIZES, 75, 100)) for _ in range(3))
        whole = problem(m, n, k, out, ft=ft, trans=trans)
        whole.check(cfg.addr_bits)
        try:
            plan = GemmPlan(cfg, whole, tiling)
        except ValueError as error:
            assert "does not fit in 32 tiles" in str(error)
            continue
        where = f"seed {SEED}: {m} x {n} x {k}, {ft} to {out}, {trans}, {tiling}"
        done += 1
        macs, stored = np.zeros((m, n), int), np.zeros((m, n), int)
        held: dict[int, Held] = {}
        for step in plan.steps():
            for feed, share in ((step.a, plan.tiles.a), (step.b, plan.tiles.b)):
                if feed is not None:
                    _load(held, feed, share.group, plan, where)
            for pair in step.pairs:
                for i in range(-(-pair.m // cfg.rows)):
                    for j in range(-(-pair.n // cfg.rows)):
                        assert i < pair.macro.a_tiles and j < pair.macro.b_tiles, where
                        a, b = held[pair.a + i], held[pair.b + j]
                        assert a.k == b.k and pair.k == a.length == b.length, where
                        rows = min(cfg.rows, pair.m - cfg.rows * i)
                        columns = min(cfg.rows, pair.n - cfg.rows * j)
                        assert rows <= a.rows and columns <= b.rows, where
                        macs[a.row : a.row + rows, b.row : b.row + columns] += pair.k
            for group in step.stores:
                stored[
                    group.row : group.row + group.rows,
                    group.column : group.column + group.columns,
                ] += 1
        assert (macs == k).all() and (stored == 1).all(), where
    assert done >= 3


@dataclass
class Held:
    """What a tile holds: rows of op(A) or columns of op(B), and `length` elements of K from `k`."""

    row: int
    rows: int
    k: int
    length: int


def _load(held: dict[int, Held], feed: Feed, group: int, plan: GemmPlan, where: str) -> None:
    """Follow a feed's loads and turns, matrix elements in tiles."""
    height = plan.cfg.rows
    raw: dict[int, Load] = {}
    for load in feed.loads:
        for t in range(load.n):
            raw[load.tile + t] = load
            row = load.row + (height * t if load.down else 0)
            rows = min(height, load.rows - height * t) if load.down else load.rows
            column = load.column + (0 if load.down else load.k * t)
            held[load.tile + t] = Held(row, rows, column, load.k)
    for tile in feed.turns:
        source = [held[tile + t] for t in range(group) if tile + t in raw]
        first = source[0]
        assert [part.k for part in source] == [first.k + plan.lanes * t for t in range(len(source))]
        for t in range(group):  # rows and elements of K change places
            length = min(plan.lanes, first.rows - plan.lanes * t)
            if length > 0:
                rows = sum(part.length for part in source)
                held[tile + t] = Held(first.k, rows, first.row + plan.lanes * t, length)
            else:
                held.pop(tile + t, None)
    assert bool(feed.turns) == bool(group), where


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
    for share, count, bank in ((tiles.a, macro.a_tiles, a), (tiles.b, macro.b_tiles, b)):
        buffers = share.buffers
        used = [first + t for first in buffers for t in range(count * share.deep)]
        assert len(buffers) >= 2 and len(used) == len(set(used)) and set(used) <= set(bank)


@pytest.mark.parametrize("cfg", [AME32, SPLIT], ids=lambda cfg: cfg.name)
@pytest.mark.parametrize("trans", TRANSPOSES)
@pytest.mark.parametrize("block", BLOCKS)
def test_transposed_operands_stay_in_their_banks(block: str, trans: str, cfg: Config) -> None:
    """Buffers, with the tiles that a transpose needs, are apart; one operand may have one only."""
    macro, down, across = BLOCKS[block]
    built = 0
    for ft, out in PAIRS:
        in_bits, out_bits = FORMATS[ft].container, FORMATS[out].container
        whole = problem(64, 64, 64, out, ft=ft, trans=trans)
        try:
            tiles = Tiles.of(
                cfg,
                macro,
                out_bits,
                down=down,
                across=across,
                in_bits=in_bits,
                transposed=whole.transposed,
            )
        except ValueError as error:
            assert "does not fit" in str(error)
            continue
        built += 1
        a, b = (range(16), range(16, 32)) if cfg.split else (range(16, 24), range(24, 32))
        sides = (tiles.a, macro.a_tiles * down, a), (tiles.b, macro.b_tiles * across, b)
        for share, count, bank in sides:
            used = [first + t for first in share.buffers for t in range(count * share.deep)]
            assert share.tiles == count and len(used) == len(set(used)) and set(used) <= set(bank)
            assert share.group in (0, in_bits // 8)
        results = [
            first + part + tiles.macro.group_stride(tiles.result) * pair + t
            for first in tiles.c_sets
            for part in tiles.c_parts
            for pair in range(tiles.macro.pairs)
            for t in range(tiles.result)
        ]
        assert len(results) == len(set(results)) and max(results) < (32 if cfg.split else 16)
        assert len(tiles.c_parts) * tiles.macro.pairs == macro.pairs * down * across
    assert built >= 1


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
            for load in (load for feed in step.feeds for load in feed.loads):
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


def test_auto_takes_the_lowest_estimate() -> None:
    """Which for operands in the core's form, and blocks that take turns, is the bound."""
    draw = random.Random(SEED)
    chosen = set()
    for _ in range(60):
        out = draw.choice(OUTS)
        whole = problem(*(draw.choice(SIZES) for _ in range(3)), out)
        plan = plan_gemm(AME32, whole)
        chosen.add(plan.name)
        plans = [GemmPlan(AME32, whole, name) for name in TILINGS]
        assert plan.estimate == min(other.estimate for other in plans if not other.refused)
        if len(plan.tiles.c_sets) > 1:
            assert plan.estimate == plan.bound
    assert chosen == set(TILINGS), f"seed {SEED}"


@pytest.mark.parametrize(
    ("trans", "ft", "out", "unified", "split"),
    [
        # bytes: any macro; two macros that share what is not transposed read and turn least
        *(("nn", "int8", "int16", "4x2", "4x2"), ("tt", "int8", "int16", "2x4", "2x4")),
        # two-byte elements: single tiles of what is transposed
        *(("nn", "bf16", "fp32", "4x1", "4x2"), ("tt", "bf16", "fp32", "1x4", "2x4")),
        *(("tn", "bf16", "fp32", "2x2", "4x2"), ("tn", "fp32", "fp32", "1x1", "2x2")),
    ],
)
def test_auto_for_transposed_operands(trans, ft, out, unified, split) -> None:
    whole = problem(128, 128, 128, out, ft=ft, trans=trans)
    assert plan_gemm(AME32, whole).name == unified
    assert plan_gemm(SPLIT, whole).name == split


def test_block_sizes() -> None:
    """Mb, Nb and Kb as seed 000 section 13.B means them."""
    assert GemmPlan(AME32, problem(64, 64, 64), "2x2").block == (32, 32, 16)
    assert GemmPlan(AME32, problem(64, 64, 64), "1x4").block == (16, 64, 16)
    assert GemmPlan(SPLIT, problem(64, 64, 64), "4x2").block == (64, 32, 16)
    whole = problem(64, 64, 64, "fp32", ft="bf16", trans="tn")
    assert GemmPlan(AME32, whole, "2x2").block == (32, 32, 8)


def test_transposes_are_counted() -> None:
    """A turn reads and writes each of a tile's four words: 4 tiles of A in each of 8 blocks."""
    whole = problem(64, 128, 64, trans="tt")
    plan = GemmPlan(AME32, whole, "2x2")
    assert plan.turned_words == (4 * 2 * 4) * (2 * 4)
    assert plan.estimate == plan.work[0] + 2 * plan.turned_words
    assert GemmPlan(AME32, problem(64, 128, 64), "2x2").turned_words == 0


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
