"""Seed 000 section 11 on the RTL, line by line: which pair of tiles lands where in C.

Also what every mode owes its edges: rows and columns outside M x N keep their value, elements
beyond K take no part, and results come and go through memory a whole line at a time. Everything
expected is computed here with numpy.
"""

from __future__ import annotations

import functools
import os

import numpy as np
import pytest
from gemm_cases import compiled

from hdl.config import Config, preset
from sim.engines import open_engine
from sim.personality import IDEAL, Personality
from sim.program import Program

SEED = int(os.environ.get("TEST_SEED", "11"))
UNIFIED = preset("ame32-int8")
SPLIT = UNIFIED.replace(name="ame32-int8-split", accumulators="split")
CONFIGS = {"unified": UNIFIED, "split": SPLIT}
OUTPUTS = {8: {"bovf": 1}, 16: {}, 32: {"acc": 1}}
INIT, DUMP, MATRIX = 0x10000, 0x20000, 0x80000
C, A, B = 0, 16, 20

# mode: TILING, GUARD4x4, and the seed's lines: (tile of A, tile of B, first tile of C's group).
MODES = {
    "1x1": (0, 0, [(0, 0, 0)]),
    "2x2": (1, 0, [(0, 0, 0), (0, 1, 4), (1, 0, 8), (1, 1, 12)]),
    "1x4": (2, 0, [(0, 0, 0), (0, 1, 4), (0, 2, 8), (0, 3, 12)]),
    "4x1": (3, 0, [(0, 0, 0), (1, 0, 4), (2, 0, 8), (3, 0, 12)]),
}
PACKED = {
    width: (1, 1, [(i, j, (4 * i + j) * width // 8) for i in range(4) for j in range(4)])
    for width in (8, 16)
}
CASES = [(name, width, kind) for kind in CONFIGS for name in MODES for width in OUTPUTS]
CASES += [("4x4", 8, "unified"), ("4x4", 8, "split"), ("4x4", 16, "split")]


@functools.cache
def engine(cfg: Config):
    return open_engine(compiled(), cfg, progress=False)


def mode_of(name: str, width: int):
    return PACKED[width] if name == "4x4" else MODES[name]


def state(cfg: Config) -> np.ndarray:
    """Random bytes of every tile."""
    noise = np.random.default_rng(SEED)
    return noise.integers(0, 256, (cfg.all_tiles, cfg.rows, cfg.row_bytes), dtype=np.uint8)


def run(
    cfg: Config,
    before: np.ndarray,
    body,
    *,
    matrix: np.ndarray | None = None,
    personality: Personality = IDEAL,
):
    """Tiles (and a matrix in memory) after `body(program)`, and the responses to it."""
    program = Program(cfg)
    program.load_tiles(INIT)
    program.csrrw("mxstatus", 0)
    body(program)
    program.csrr("mxstatus")
    status = len(program) - 1
    program.store_tiles(DUMP)
    program.mfence()
    simulator = engine(cfg)
    simulator.memory.clear()
    simulator.memory.add_region(INIT, before.ravel().copy())
    simulator.memory.add_region(DUMP, before.size)
    if matrix is not None:
        simulator.memory.add_region(MATRIX, matrix.ravel().copy())
    result = simulator.run(program, personality=personality)
    assert not any(response.error for response in result.responses)
    after = np.frombuffer(simulator.memory.read(DUMP, before.size), np.uint8)
    return after.reshape(before.shape), result.responses[status].data


def rows_of(total: int, index: int) -> int:
    """Rows of one tile of a macro, by isa.md: M itself, or its share of a total above 16."""
    return total if total <= 16 else min(16, max(0, total - 16 * index))


def expected(cfg, before, lines, width, m, n, k, *, beta=0, alpha=0, btr=1) -> np.ndarray:
    """The tiles after one mmacc, line by line and element by element of C's layout."""
    after = before.copy()
    file = cfg.tiles if cfg.accumulators == "split" else 0
    per_tile = 128 // width  # columns of C in one tile
    for i, j, group in lines:
        rows, columns = rows_of(m, i), rows_of(n, j)
        a, b = before[A + i].view(np.int8), before[B + j].view(np.int8)
        a = a.T if btr & 2 else a
        b = b if btr & 1 else b.T
        product = a[:, :k].astype(np.int64) @ b[:, :k].astype(np.int64).T
        for column in range(columns):
            tile = file + C + group + column // per_tile
            old = before[tile].view(f"<i{width // 8}")[:rows, column % per_tile].astype(np.int64)
            new = (-1 if alpha else 1) * product[:rows, column] + (0 if beta else old)
            view = after[tile].view(f"<i{width // 8}")
            view[:rows, column % per_tile] = new.astype(f"i{width // 8}")
    return after


def mmacc(width, tiling, guard, m, n, k, **options):
    def body(program: Program) -> None:
        program.set_cfg("int8", **OUTPUTS[width])
        program.set_tile(k, m, n, tiling=tiling, guard4x4=guard)
        program.mmacc(C, A, B, **options)

    return body


@pytest.mark.parametrize(("name", "width", "kind"), CASES)
def test_every_line_of_the_mapping(name: str, width: int, kind: str) -> None:
    """Each product in the first tiles of its group; the rest of the group as it was."""
    cfg = CONFIGS[kind]
    tiling, guard, lines = mode_of(name, width)
    before = state(cfg)
    after, status = run(cfg, before, mmacc(width, tiling, guard, 16, 16, 16))
    assert status & 1 == 0, "no fallback"
    want = expected(cfg, before, lines, width, 16, 16, 16)
    file = cfg.tiles if kind == "split" else 0
    for i, j, group in lines:
        for part in range(width // 8):
            tile = file + C + group + part
            assert (after[tile] == want[tile]).all(), (
                f"seed {SEED}: A{i} x B{j} -> C{group}.., slice {part}"
            )
    assert (after == want).all(), f"seed {SEED}: a tile outside the groups has changed"
    changed = {t - file for t in range(len(after)) if (after[t] != before[t]).any()}
    assert changed == {C + g + part for _, _, g in lines for part in range(width // 8)}


@pytest.mark.parametrize(("name", "width", "kind"), CASES)
def test_edges_keep_their_value(name: str, width: int, kind: str) -> None:
    """M, N and K below a tile and between the tiles of a macro, all different, all modes."""
    cfg = CONFIGS[kind]
    tiling, guard, lines = mode_of(name, width)
    a_tiles, b_tiles = (1 + max(line[side] for line in lines) for side in (0, 1))
    noise = np.random.default_rng(SEED + 1)
    before = state(cfg)
    for _ in range(6):
        m, n = (
            int(noise.integers(1, 16 * tiles + 1)) if tiles > 1 else int(noise.integers(1, 17))
            for tiles in (a_tiles, b_tiles)
        )
        k = int(noise.integers(1, 17))
        options = {"beta": int(noise.integers(2)), "alpha": int(noise.integers(2))}
        after, _ = run(cfg, before, mmacc(width, tiling, guard, m, n, k, **options))
        want = expected(cfg, before, lines, width, m, n, k, **options)
        assert (after == want).all(), f"seed {SEED}: M {m}, N {n}, K {k}, {options}"


@pytest.mark.parametrize("btr", [0, 2, 3])
@pytest.mark.parametrize(("name", "width", "kind"), CASES)
def test_transposes(name: str, width: int, kind: str, btr: int) -> None:
    """A x B, A^T x B and A^T x B^T of square tiles, in every mode, twice in a row."""
    cfg = CONFIGS[kind]
    tiling, guard, lines = mode_of(name, width)
    before = state(cfg)

    def body(program: Program) -> None:
        mmacc(width, tiling, guard, 16, 16, 16, btr=btr)(program)
        program.mmacc(C, A, B, btr=3 - btr, alpha=1)

    after, _ = run(cfg, before, body)
    first = expected(cfg, before, lines, width, 16, 16, 16, btr=btr)
    want = expected(cfg, first, lines, width, 16, 16, 16, btr=3 - btr, alpha=1)
    assert (after == want).all(), f"seed {SEED}"


@pytest.mark.parametrize(
    ("width", "kind"), [(16, "unified"), (32, "unified"), (32, "split")], ids=str
)
def test_refused_4x4_is_2x2(width: int, kind: str) -> None:
    """The same tiles as 2x2 and the sticky bit, whatever TILING says."""
    cfg = CONFIGS[kind]
    before = state(cfg)
    for tiling in range(4):
        after, status = run(cfg, before, mmacc(width, tiling, 1, 16, 16, 16))
        assert status & 1 == 1
        want = expected(cfg, before, MODES["2x2"][2], width, 16, 16, 16)
        assert (after == want).all(), f"seed {SEED}: TILING {tiling}"


def test_4x4_in_one_file_over_its_operands_is_2x2() -> None:
    """INT8 -> INT8 with A inside C's sixteen tiles, but outside those of 2x2."""
    before = state(UNIFIED)

    def body(program: Program) -> None:
        program.set_cfg("int8", bovf=1)
        program.set_tile(16, 16, guard4x4=1)
        program.mmacc(C, 13, B)

    after, status = run(UNIFIED, before, body)
    assert status & 1 == 1
    moved = before.copy()
    moved[A : A + 2] = before[13:15]
    want = expected(UNIFIED, moved, MODES["2x2"][2], 8, 16, 16, 16)
    want[A : A + 2] = before[A : A + 2]
    assert (after == want).all()


def test_transposes_wait_for_the_mma_that_still_reads_others() -> None:
    """A 2x2 hangs on its last group's load; the transposes it uses must outlive the wait."""
    cfg = UNIFIED
    before = state(cfg)
    matrix = np.random.default_rng(SEED).integers(0, 256, (2, 16, 16), dtype=np.uint8)
    other_c, other_a, other_b = 2, 24, 28  # in the gaps of C, and elsewhere

    def body(program: Program) -> None:
        program.mfence()
        program.mld("r", C + 12, MATRIX, 16, n=2, down=True)
        program.set_cfg("int8")
        program.set_tile(16, 16, tiling=1)
        program.mmacc(C, A, B, btr=2)
        program.mmacc(other_c, other_a, other_b, btr=2)

    slow = IDEAL.replace(name="slow", latency=300)
    after, _ = run(cfg, before, body, matrix=matrix, personality=slow)
    start = before.copy()
    start[C + 12 : C + 14] = matrix
    want = expected(cfg, start, MODES["2x2"][2], 16, 16, 16, 16, btr=2)
    moved = want.copy()
    groups = [group for _, _, group in MODES["2x2"][2]]
    pieces = [(A, other_a), (B, other_b), *((C + g, other_c + g) for g in groups)]
    for here, there in pieces:
        moved[here : here + 2] = want[there : there + 2]
    moved = expected(cfg, moved, MODES["2x2"][2], 16, 16, 16, 16, btr=2)
    for group in groups:
        want[other_c + group : other_c + group + 2] = moved[C + group : C + group + 2]
    assert (after == want).all(), f"seed {SEED}"


# -- C in memory -----------------------------------------------------------------------------------


def placed(width: int, n: int, packed: bool, count: int):
    """(tile, first column) of each of `count` tiles of a C access along the row."""
    slices = width // 8
    stride = slices if packed else 4
    return [(stride * (t // slices) + t % slices, 128 // width * t) for t in range(count)]


@pytest.mark.parametrize("kind", CONFIGS)
@pytest.mark.parametrize(
    ("width", "n_tiles", "n", "guard"),
    [
        (8, 4, 16, 0),
        (8, 4, 64, 1),
        (8, 8, 16, 1),
        (16, 4, 32, 0),
        (16, 4, 25, 0),
        (16, 8, 64, 1),
        (16, 8, 50, 1),
        (32, 4, 16, 0),
        (32, 8, 32, 0),
        (32, 8, 21, 1),  # too wide to be packed
    ],
)
def test_c_through_memory(width, n_tiles, n, guard, kind) -> None:
    """mldc fills what it names, mstc writes back what is active, and whole lines in one request."""
    cfg = CONFIGS[kind]
    before = state(cfg)
    groups = max(1, n_tiles // (width // 8))
    columns = n * groups if n <= 16 else n
    stride = -(-columns * width // 8 // 64) * 64
    m = 13
    noise = np.random.default_rng(SEED)
    matrix = noise.integers(0, 256, (2, m, stride), dtype=np.uint8)
    in_c = kind == "split"

    def body(program: Program) -> None:
        program.set_cfg("int8", **OUTPUTS[width])
        program.set_tile(16, m, n, guard4x4=guard)
        program.mld("c", C, MATRIX, stride, n=n_tiles, cfile=in_c)
        program.mst("c", C, MATRIX + m * stride, stride, n=n_tiles, cfile=in_c)

    simulator = engine(cfg)
    after, _ = run(cfg, before, body, matrix=matrix)
    want = before.copy()
    size = columns * width // 8
    for tile, column in placed(width, n, bool(guard and width <= 16), n_tiles):
        if n <= 16:  # as many columns in each group, whose rows lie one behind the other
            group, inside = divmod(column, 16)
            active = max(0, min(128 // width, n - inside))
            first = group * 2 * width + inside * width // 8
        else:
            active = max(0, min(128 // width, n - column))
            first = column * width // 8
        place = want[(cfg.tiles if in_c else 0) + C + tile]
        place[...] = 0
        bytes_ = active * width // 8
        place[:m, :bytes_] = matrix[0][:, first : first + bytes_]
    assert (after == want).all(), f"seed {SEED}"
    if n >= 16:
        stored = np.frombuffer(simulator.memory.read(MATRIX + m * stride, m * stride), np.uint8)
        stored = stored.reshape(m, stride)
        assert (stored[:, :size] == matrix[0][:, :size]).all()
        assert (stored[:, size:] == matrix[1][:, size:]).all(), "a byte outside C was written"


@pytest.mark.parametrize("kind", CONFIGS)
@pytest.mark.parametrize(("width", "guard"), [(8, 0), (8, 1), (16, 0), (16, 1), (32, 0)])
def test_full_lines_are_one_request(width: int, guard: int, kind: str) -> None:
    """Rows of C of whole lines: one request a line, with fullline; a row at a time, in order."""
    cfg = CONFIGS[kind]
    n_tiles = 4 if width == 8 else 8
    line_rows = 16 * n_tiles * 16 // 64

    def body(program: Program) -> None:
        program.set_cfg("int8", **OUTPUTS[width])
        program.set_tile(16, 16, 16, guard4x4=guard)
        program.mst("c", C, MATRIX, 16 * n_tiles, n=n_tiles, cfile=kind == "split")
        program.mld("c", C, MATRIX, 16 * n_tiles, n=n_tiles, cfile=kind == "split")

    simulator = engine(cfg)
    program = Program(cfg)
    body(program)
    program.mfence()
    simulator.memory.clear()
    simulator.memory.add_region(MATRIX, 16 * 16 * n_tiles)
    traffic = simulator.run(program).traffic
    assert traffic.fullline_requests == traffic.write_requests == line_rows
    assert traffic.read_requests == line_rows
    assert traffic.write_beats == traffic.read_beats == 4 * line_rows


@pytest.mark.parametrize("kind", CONFIGS)
def test_whole_tiles_save_and_restore_a_context(kind: str) -> None:
    """mstr and mldr take everything, whatever mxcfg and mxtile say; mrelease between."""
    cfg = CONFIGS[kind]
    before = state(cfg)

    def body(program: Program) -> None:
        program.set_tile(0, 0)  # legal for nothing that looks at it
        program.store_tiles(MATRIX)
        program.mfence()
        program.mrelease()
        program.mzero(0, 32)
        if cfg.split:
            program.mzero(0, 32, cfile=True)
        program.load_tiles(MATRIX)

    after, _ = run(cfg, before, body, matrix=np.zeros_like(before))
    assert (after == before).all()
