"""The GEMM kernel's programs on the architectural model: every size, tail, stride and option."""

from __future__ import annotations

import numpy as np
import pytest
from gemm_cases import OUTPUTS, SEED, Case, product

from hdl.config import preset
from hdl.formats import ACC_MODES, FORMATS, outputs
from sim.codes import random_codes
from sim.gemm import gemm
from sim.kernels import TILINGS, Matrix
from sim.layout import GUARD_BYTES, PlacedMatrix
from sim.memory import READ, Memory


@pytest.mark.parametrize("name", ["ame32", "ame32-split", "tiny"])
def test_random_cases(name: str) -> None:
    for index in range(150):
        case = Case(SEED + index)
        result = gemm(case.a, case.b, case.c, preset=name, engine="model", **case.options)
        assert np.array_equal(result.c, case.expected()), case
        assert result.bit_exact, case


@pytest.mark.parametrize(
    "changes",
    [
        {"rows": 8},
        {"row_bits": 256},
        {"row_bits": 64, "bus_bits": 64, "line_bytes": 32},
        {"tiles": 16, "banks": 2},
        {"tiles": 8, "banks": 1},
        {"addr_bits": 20},
        {"accumulators": "split"},
        {"accumulators": "split", "tiles": 16, "banks": 2},
    ],
    ids=str,
)
def test_other_geometries(changes: dict) -> None:
    cfg = preset("ame32").replace(**changes)
    done = 0
    for index in range(40):
        case = Case(SEED + index, options={"tiling": "auto"})
        try:
            result = gemm(case.a, case.b, case.c, preset=cfg, engine="model", **case.options)
        except ValueError as error:
            assert "does not fit" in str(error), case
            continue
        assert np.array_equal(result.c, case.expected(cfg.row_bits // 8)), case
        assert result.bit_exact, case
        done += 1
    assert done >= 20


@pytest.mark.parametrize("tiling", TILINGS)
@pytest.mark.parametrize("bits", list(OUTPUTS))
def test_accumulating_blocks_in_turn(bits: int, tiling: str) -> None:
    """beta = 1 over many short blocks: C of the next is loaded while older ones are in work."""
    noise = np.random.default_rng(SEED)
    a = noise.integers(-128, 128, (128, 16)).astype(np.int8)
    b = noise.integers(-128, 128, (16, 128)).astype(np.int8)
    c = noise.integers(-(1 << bits - 1), 1 << bits - 1, (128, 128))
    result = gemm(a, b, c, beta=1, tiling=tiling, engine="model", **OUTPUTS[bits])
    expected = product(a, b, c, bits=bits)
    assert np.array_equal(result.c, (expected & (1 << bits) - 1).astype(result.c.dtype))


@pytest.mark.parametrize(
    ("ft", "out", "modes", "granted"),
    [
        ("int8", "int8", {"bovf": 1}, {"ame32", "ame32-split"}),
        ("int8", "int16", {}, {"ame32-split"}),
        ("fp8_e4m3", "fp16", {}, {"ame32-split"}),
        ("int8", "int32", {"acc": 1}, set()),
        ("fp16", "fp32", {}, set()),
    ],
)
@pytest.mark.parametrize("name", ["ame32", "ame32-split"])
def test_the_guard_decides_a_4x4(name: str, ft: str, out: str, modes: dict, granted: set) -> None:
    """Seed 000's allowed pairs pass where C fits; what is refused runs as 2x2 and says so."""
    noise = np.random.default_rng(SEED)
    a, b = random_codes(noise, (70, 40), FORMATS[ft]), random_codes(noise, (40, 90), FORMATS[ft])
    result = gemm(a, b, ft=ft, tiling="4x4", preset=name, engine="model", **modes)
    assert result.bit_exact and result.out.name == out
    assert result.tiling == ("4x4" if name in granted else "2x2")
    assert result.flags["guard_fallback"] == (name not in granted)


@pytest.mark.parametrize("pack", [True, False])
@pytest.mark.parametrize("trans", ["nn", "nt", "tn", "tt"])
def test_transposes(trans: str, pack: bool) -> None:
    noise = np.random.default_rng(SEED)
    a = noise.integers(-128, 128, (19, 37)).astype(np.int8)
    b = noise.integers(-128, 128, (37, 23)).astype(np.int8)
    given_a = a.T if trans[0] == "t" else a
    given_b = b.T if trans[1] == "t" else b
    result = gemm(given_a, given_b, trans=trans, pack=pack, acc=1, engine="model")
    assert np.array_equal(result.c.view(np.int32), a.astype(int) @ b)


@pytest.mark.parametrize(
    "changes",
    [
        {"rows": 8},
        {"row_bits": 256},
        {"row_bits": 64, "bus_bits": 64, "line_bytes": 32},
        {"tiles": 16, "banks": 2},
        {"accumulators": "split", "tiles": 16, "banks": 2},
    ],
    ids=str,
)
@pytest.mark.parametrize("trans", ["nn", "tn", "tt"])
@pytest.mark.parametrize("ft", ["int8", "int16", "int32", "int64"])
def test_transposes_in_other_geometries(ft: str, trans: str, changes: dict) -> None:
    """Groups that fill a part of a tile, one tile or eight; integers that wrap, so any order."""
    cfg = preset("ame32").replace(formats=(ft,), **changes)
    bits = FORMATS[ft].container
    noise, done = np.random.default_rng(SEED), 0
    for m, n, k in ((17, 40, 70), (33, 16, 9), (1, 2, 31)):
        a = noise.integers(0, 256, (m, k)).astype(object) * (3 << bits - 8)
        b = noise.integers(0, 256, (k, n)).astype(object) * (5 << bits - 8)
        a, b = ((x % (1 << bits)).astype(f"u{bits // 8}") for x in (a + 1, b + 1))
        given = (a.T if trans[0] == "t" else a, b.T if trans[1] == "t" else b)
        try:
            result = gemm(
                *given, ft=ft, trans=trans, pack=False, bovf=1, preset=cfg, engine="model"
            )
        except ValueError as error:
            assert "a GEMM does not fit" in str(error)
            continue
        exact = a.astype(object) @ b.astype(object) % (1 << bits)
        assert result.bit_exact and np.array_equal(result.c, exact.astype(a.dtype))
        done += 1
    assert done == 3 or bits == 64


@pytest.mark.parametrize(("m", "n", "k"), [(0, 5, 5), (5, 0, 5), (5, 5, 0), (0, 0, 0)])
@pytest.mark.parametrize("beta", [0, 1])
def test_sizes_of_zero(m: int, n: int, k: int, beta: int) -> None:
    a, b = np.ones((m, k), np.int8), np.ones((k, n), np.int8)
    c = np.full((m, n), 7, np.int16)
    result = gemm(a, b, c, beta=beta, engine="model")
    assert result.bit_exact
    assert np.array_equal(result.c, c if beta else np.zeros((m, n)))


def test_an_identity_gives_its_factor() -> None:
    a = np.random.default_rng(SEED).integers(-128, 128, (45, 33)).astype(np.int8)
    result = gemm(a, np.eye(33, dtype=np.int8), engine="model")
    assert np.array_equal(result.c.view(np.int16), a)


def test_c_is_read_only_for_beta() -> None:
    """The memory refuses reads of C with beta = 0, and of anything but the rows."""
    memory = Memory()
    noise = np.random.default_rng(SEED)
    matrix = Matrix("C", 2, 16, 8, 0x1000, 32)
    codes = np.zeros((2, 16), np.uint8)
    PlacedMatrix(memory, matrix, codes, readable=False, writable=True, noise=noise)
    assert not any(memory.read_beat(0x1000 + 16 * beat, 16)[1] & READ for beat in range(-1, 5))
    assert memory.forbidden_byte(0x1000, 0xFFFF, 16) is None
    assert memory.forbidden_byte(0x1010, 1, 16) == 0x1010


def test_flags_are_those_of_this_job_alone() -> None:
    full = np.full((16, 16), -128, np.int8)
    hit = gemm(full, full, sat=1, engine="model")
    assert hit.flags["sat_hit"] and (hit.c == 0x7FFF).all()
    assert not any(gemm(full, np.zeros_like(full), sat=1, engine="model").flags.values())


def test_codes_and_numbers_are_the_same() -> None:
    a = np.array([[-128, -1], [1, 127]], np.int8)
    signed = gemm(a, a, engine="model").c
    assert np.array_equal(signed, gemm(a.view(np.uint8), a.view(np.uint8), engine="model").c)
    assert np.array_equal(signed, gemm(a.astype(float), a.astype(float), engine="model").c)


ONES = np.ones((4, 4), np.int8)
WRONG = [
    ({"a": np.ones((4, 5), np.int8)}, "K must be equal"),
    ({"a": np.ones(4, np.int8)}, "A must have two dimensions, not 1"),
    ({"b": ONES.astype(bool)}, "B must hold integers or floats, not bool"),
    ({"b": ONES.astype(int) * 256}, "B holds 256 to 256: a code of int8 is -128 to 255"),
    ({"c": np.ones((4, 3), int), "beta": 1}, "C must be 4 x 4, not 4 x 3"),
    ({"beta": 1}, "beta = 1 needs C"),
    ({"beta": 2, "c": ONES}, "beta = 2 is not built: use 0 or 1"),
    ({"alpha": 0}, "alpha = 0 is not built: use 1 or -1"),
    ({"lda": 3}, "lda = 3 is below a row of A, 4 elements"),
    ({"ldb": 3}, "ldb = 3 is below a row of B, 4 elements"),
    ({"ldc": 3}, "ldc = 3 is below a row of C, 4 elements"),
    ({"trans": "nc"}, "trans = 'nc' is unknown"),
    (
        {"ft": "int4", "preset": "full", "pack": False},
        "B of int4 cannot be transposed in place, its elements share",
    ),
    (
        {"ft": "int4", "preset": "full", "pack": False, "trans": "tt"},
        "A of int4 cannot be transposed in place",
    ),
    ({"pack": False, "ldb": 3}, "ldb = 3 is below a row of B, 4 elements"),
    ({"tiling": "3x3"}, "unknown tiling '3x3': use auto, 1x1 or 2x2"),
    ({"ft": "int64"}, "ame32 does not build int64"),
    ({"ft": "int9"}, "unknown number format 'int9'"),
    ({"acc": 2}, "acc = 2 is undefined"),
    ({"sat": 2}, "sat = 2 is undefined"),
    ({"rnd": 4}, "rnd = 4 is undefined"),
    ({"preset": "ame33"}, "unknown preset 'ame33'"),
    ({"preset": preset("ame32").replace(addr_bits=16), "lda": 30000}, "A does not fit in 16"),
    ({"latency": 0}, "latency = 0 is not possible"),
    ({"engine": "fpga"}, "unknown engine 'fpga'"),
]


@pytest.mark.parametrize(("changes", "message"), WRONG, ids=lambda value: str(value)[:30])
def test_wrong_arguments(changes: dict, message: str) -> None:
    arguments = {"a": ONES, "b": ONES, "engine": "model", **changes}
    with pytest.raises(ValueError) as caught:
        gemm(**arguments)
    assert message in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize("offset", [-1, 3, 4, GUARD_BYTES])
def test_a_stray_byte_is_found(offset: int) -> None:
    """One byte before, between and behind the rows of a matrix of three bytes a row, ld 5."""
    memory = Memory()
    codes = np.arange(6, dtype=np.uint8).reshape(2, 3)
    matrix = Matrix("C", 2, 3, 8, 0x1000, 5)
    place = PlacedMatrix(memory, matrix, codes, writable=True, noise=np.random.default_rng(SEED))
    assert place.holds(codes) and np.array_equal(place.codes(), codes)
    other = bytes([memory.read(0x1000 + offset, 1)[0] ^ 1])
    memory.write(0x1000 + offset, other)
    assert not place.holds(codes)


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_pair(name: str) -> None:
    """Containers of 4 to 64 bits, results of 8 to 64: packing, K of a row, tiles of a result."""
    cfg = preset("ame32").replace(formats=(name,))
    noise = np.random.default_rng(SEED)
    a, b = (random_codes(noise, shape, FORMATS[name]) for shape in ((19, 37), (37, 18)))
    for mode, out in outputs(FORMATS[name]).items():
        c = random_codes(noise, (19, 18), out)
        selected = {"bovf": 1} if mode == "bovf" else {"acc": ACC_MODES.index(mode) - 1}
        result = gemm(a, b, c, ft=name, beta=1, preset=cfg, engine="model", **selected)
        assert result.bit_exact and result.out == out, mode
        assert result.c.dtype.itemsize * 8 == out.container, mode
