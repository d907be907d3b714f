"""Inputs on which public GEMM libraries and accelerators went wrong, each by its name, on the RTL.

The matrices lie in memory as a user would put them; what is not theirs holds a filler, which must
be there afterwards, and which the core must neither read nor write.
"""

from __future__ import annotations

import numpy as np
import pytest
from gemm_cases import compiled
from gemm_edges import UNIFIED

from hdl.formats import FORMATS
from sim.codes import pack_rows, unpack_rows
from sim.gemm import GemmProblem, Matrix, run_gemm
from sim.memory import Memory
from sim.options import format_pair
from sim.reference.numerics import from_codes, to_codes

NAN = 0xFF
"""A byte that makes NaNs, of FP8 E4M3, BF16 and FP32 alike."""
LINE = 64
FORMS = ("nn", "nt", "tn", "tt")
SMALL = range(-4, 5)
"""Numbers whose products and sums every format here holds exactly."""


def multiply(
    a: np.ndarray,
    b: np.ndarray,
    c: np.ndarray | None = None,
    *,
    ft: str = "int8",
    trans: str = "nn",
    beta: int = 0,
    lds: tuple[int | None, int | None, int | None] = (None, None, None),
    offsets: tuple[int, int, int] = (0, 0, 0),
    filler: int = NAN,
    room: int = LINE,
    tiling: str = "auto",
) -> np.ndarray:
    """a x b + beta * c, numbers in and out; `a` is (M, K) and `b` (K, N), stored as `trans` says.

    `room` bytes lie before and behind each matrix; with 0 the buffer ends with the last element.
    C holds the filler where it is not given.
    """
    fmt, out = format_pair(UNIFIED, ft, 0, 1 if ft == "int8" else 0)
    m, n = a.shape[0], b.shape[1]
    stored = [a.T if trans[0] == "t" else a, b.T if trans[1] == "t" else b]
    shapes = [*(array.shape for array in stored), (m, n)]
    memory, matrices, regions, base = Memory(), [], [], 0x10000
    for index, (name, form) in enumerate(zip("ABC", (fmt, fmt, out), strict=True)):
        rows, columns = shapes[index]
        ld = columns if lds[index] is None else lds[index]
        first = base + offsets[index]
        matrix = Matrix(name, rows, columns, form.container, first, ld)
        array = stored[index] if index < 2 else c
        content = np.full(matrix.extent + 2 * room, filler, np.uint8)
        if array is not None and array.size:
            codes = _codes(array, form)
            for row, line in enumerate(pack_rows(codes, form.container)):
                at = room + row * matrix.stride
                content[at : at + len(line)] = line
        if len(content):
            memory.add_region(first - room, content)
        base += -(-(len(content) + 2 * LINE) // LINE) * LINE + LINE
        matrices.append(matrix)
        regions.append((first - room, content.copy()))
    problem = GemmProblem(
        fmt=fmt,
        out=out,
        a=matrices[0],
        b=matrices[1],
        c=matrices[2],
        trans=trans,
        acc=1 if ft == "int8" else 0,
        beta=beta,
    )
    run_gemm(memory, problem, preset=UNIFIED, engine=compiled(), tiling=tiling)

    for start, before in regions[:2]:
        if len(before):
            assert memory.read(start, len(before)) == before.tobytes(), "an operand was written"
    start, before = regions[2]
    if not matrices[2].extent:
        return np.zeros((m, n))
    after = np.frombuffer(memory.read(start, len(before)), np.uint8).copy()
    size = matrices[2].row_bytes
    lines = []
    for row in range(m):
        at = room + row * matrices[2].stride
        lines.append(after[at : at + size].copy())
        after[at : at + size] = before[at : at + size]
    assert np.array_equal(after, before), "a byte outside C was written"
    codes = unpack_rows(np.array(lines), n, out.container)
    return _numbers(codes, out)


def _codes(array: np.ndarray, form) -> np.ndarray:
    if form.is_integer:
        return array.astype(f"i{form.container // 8}").view(f"u{form.container // 8}")
    return to_codes(array.astype(float), form, 0)


def _numbers(codes: np.ndarray, form) -> np.ndarray:
    if form.is_integer:
        return codes.view(f"i{form.container // 8}")
    return from_codes(codes, form)


def draw(seed: int, m: int, n: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    noise = np.random.default_rng(seed)
    return noise.choice(SMALL, (m, k)), noise.choice(SMALL, (k, n))


@pytest.mark.parametrize("trans", FORMS)
@pytest.mark.parametrize("ft", ["int8", "fp32"])
def test_2x1x1_with_ld_1_gives_two_numbers(ft: str, trans: str) -> None:
    a, b = np.array([[1], [1]]), np.array([[2]])
    lds = (2 if trans[0] == "t" else 1, 1, 1)
    assert multiply(a, b, ft=ft, trans=trans, lds=lds).tolist() == [[2], [2]]


@pytest.mark.parametrize("trans", FORMS)
@pytest.mark.parametrize("ft", ["int8", "fp8_e4m3", "bf16", "fp32"])
def test_1x1x1_in_buffers_of_one_element(ft: str, trans: str) -> None:
    for offset in (0, 4, 12, 60):
        c = multiply(
            *(np.array([[3]]), np.array([[-2]]), np.array([[5]])),
            **{"ft": ft, "trans": trans, "beta": 1, "room": 0, "offsets": (offset,) * 3},
        )
        assert c.tolist() == [[-1]]


def test_126x1x126_with_ldb_31509() -> None:
    a, b = draw(1, 126, 1, 126)
    assert np.array_equal(multiply(a, b, lds=(None, 31509, None)), a @ b)


@pytest.mark.parametrize("ft", ["int8", "bf16"])
def test_64x239x64_with_ld_64_240_240(ft: str) -> None:
    a, b = draw(2, 64, 239, 64)
    assert np.array_equal(multiply(a, b, ft=ft, lds=(64, 240, 240)), a @ b)


@pytest.mark.parametrize("trans", FORMS)
@pytest.mark.parametrize("ft", ["int8", "fp32"])
def test_3x4x2_is_not_zero(ft: str, trans: str) -> None:
    a = np.array([[1, 2], [3, 4], [5, 6]])
    b = np.array([[1, 2, 3, 4], [5, 6, 7, 8]])
    expected = [[11, 14, 17, 20], [23, 30, 37, 44], [35, 46, 57, 68]]
    assert multiply(a, b, ft=ft, trans=trans).tolist() == expected


@pytest.mark.parametrize("trans", FORMS)
@pytest.mark.parametrize("ft", ["int8", "bf16"])
def test_45x33_by_the_identity_gives_a(ft: str, trans: str) -> None:
    a, _ = draw(3, 45, 1, 33)
    assert np.array_equal(multiply(a, np.eye(33, dtype=int), ft=ft, trans=trans), a)


@pytest.mark.parametrize("trans", ["nn", "nt"])
def test_1x512x544_with_b_4_bytes_off_and_c_full_of_nan(trans: str) -> None:
    a, b = draw(4, 1, 512, 544)
    c = multiply(a, b, ft="fp32", trans=trans, offsets=(0, 4, 0), filler=NAN)
    assert np.array_equal(c, a @ b)


@pytest.mark.parametrize("ft", ["int8", "bf16"])
def test_2x0_by_0x2_keeps_beta_c(ft: str) -> None:
    a, b, c = np.zeros((2, 0), int), np.zeros((0, 2), int), np.array([[1, 2], [3, 4]])
    assert multiply(a, b, c, ft=ft, beta=1).tolist() == [[1, 2], [3, 4]]
    assert multiply(a, b, c, ft=ft).tolist() == [[0, 0], [0, 0]]
    assert multiply(a, b, ft=ft, filler=NAN).tolist() == [[0, 0], [0, 0]]


@pytest.mark.parametrize("trans", FORMS)
@pytest.mark.parametrize("ft", ["fp8_e4m3", "bf16", "fp32"])
def test_k_33_with_lda_40_and_nan_in_the_padding(ft: str, trans: str) -> None:
    a, b = draw(5, 20, 18, 33)
    c = multiply(a, b, ft=ft, trans=trans, lds=(40, 40, None), filler=NAN)
    assert np.array_equal(c, a @ b)


@pytest.mark.parametrize("canary", [0xA5, 0x5A])
@pytest.mark.parametrize("ldc", [9, 16, 17])
def test_n_9_leaves_the_canaries(ldc: int, canary: int) -> None:
    """`multiply` compares every byte that is not C's."""
    a, b = draw(6, 21, 9, 20)
    c = multiply(a, b, ft="bf16", lds=(None, None, ldc), offsets=(0, 0, 4), filler=canary)
    assert np.array_equal(c, a @ b)


@pytest.mark.parametrize("trans", FORMS)
@pytest.mark.parametrize("ft", ["int8", "bf16"])
@pytest.mark.parametrize("k", [1, 7, 17])
def test_odd_k_at_the_end_of_a_buffer(k: int, ft: str, trans: str) -> None:
    """The last element of each buffer is the last byte of a beat: one more would be a violation."""
    a, b = draw(k, 3, 5, k)
    size = FORMATS[ft].container // 8
    offsets = tuple(-rows * columns * size % LINE for rows, columns in ((3, k), (k, 5)))
    c = multiply(a, b, ft=ft, trans=trans, room=0, offsets=(*offsets, 0))
    assert np.array_equal(c, a @ b)


@pytest.mark.parametrize("trans", FORMS)
@pytest.mark.parametrize("tiling", ["auto", "2x2", "4x1", "1x4"])
@pytest.mark.parametrize(("m", "n"), [(40, 80), (80, 40), (17, 64), (65, 16)])
def test_m_tail_with_more_or_fewer_row_tiles_than_column_tiles(m, n, tiling, trans) -> None:
    a, b = draw(m, m, n, 20)
    c = np.random.default_rng(n).integers(-1000, 1000, (m, n))
    result = multiply(a, b, c, beta=1, trans=trans, tiling=tiling)
    assert np.array_equal(result, a @ b + c)
