"""The golden numerics: recorded vectors, an independent reading of the page, its known traps."""

from __future__ import annotations

import os
import random
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from naive_mma import naive_mma

from hdl.config import Config
from hdl.formats import FORMATS, Kind, Specials, acc_mode, by_code, lookup, output_format
from sim.reference.floats import mma_float
from sim.reference.numerics import FLAG_NAMES, convert, from_codes, mma, output, to_codes

SEED = int(os.environ.get("TEST_SEED", "20250102"))
VECTORS = Path(__file__).parents[2] / "data" / "mma_vectors.npz"
INEXACT, SAT_HIT, INVALID, OVERFLOW, UNDERFLOW = 1, 2, 4, 8, 16
NEAREST, UP, DOWN, TO_ZERO = range(4)

PAIRS = [
    (name, bovf, acc)
    for name, fmt in FORMATS.items()
    for bovf, acc in ((1, 0), (0, 0), (0, 1), (0, 2), (0, 3))
    if output_format(fmt, acc_mode(bovf, acc)) is not None
]


def dot(ft, a, b, c=0, **fields):
    """One element: code and flags."""
    d, flags = mma(ft, np.array([a]), np.array([b]), np.array([[c]]), **fields)
    return int(d[0, 0]), int(flags[0, 0])


def code(value, fmt, **options):
    return int(to_codes(value, fmt, **options))


def random_code(fmt, rng):
    """A code of any kind: uniform, near an extreme, special, or with clutter in the container."""
    raw = rng.getrandbits(fmt.bits)
    kind = rng.random()
    if kind < 0.25:
        magnitude_bits = fmt.bits - fmt.signed
        top = (1 << magnitude_bits) - 1
        raw = rng.choice((0, 1, 2, top, top - 1, top // 2, top - (1 << fmt.man), 1 << fmt.man))
        raw &= top
        if fmt.signed and rng.random() < 0.5:
            raw |= 1 << magnitude_bits
    elif kind < 0.5 and fmt.is_float and fmt.specials is not Specials.E8M0:
        # Exponents close to the bias, so that sums cancel and round.
        exponent = min((1 << fmt.exp) - 1, max(0, fmt.bias + rng.randint(-3, 3)))
        raw = rng.getrandbits(fmt.man) | exponent << fmt.man
        raw |= (fmt.signed and rng.getrandbits(1)) << (fmt.bits - 1)
    if fmt.top_aligned:
        return raw << fmt.container - fmt.bits | rng.getrandbits(fmt.container - fmt.bits)
    spare = fmt.container - fmt.bits
    return raw | (rng.getrandbits(spare) << fmt.bits if spare else 0)


# -- recorded vectors ------------------------------------------------------------------------------


@pytest.mark.parametrize("ft", [fmt.code for fmt in FORMATS.values()])
def test_recorded_vectors(ft):
    data = dict(np.load(VECTORS))
    assert tuple(data["flag_names"]) == FLAG_NAMES
    rows = np.flatnonzero(data["ft"] == ft)
    assert len(rows) >= 480
    wrong = []
    for row in rows:
        fields = {name: int(data[name][row]) for name in ("bovf", "acc", "rnd", "sat")}
        fields |= {name: int(data[name][row]) for name in ("alpha", "beta", "k")}
        d, flags = mma(
            ft, data["a"][row : row + 1], data["b"][row : row + 1], data["c"][row].reshape(1, 1),
            **fields,
        )  # fmt: skip
        if (d[0, 0], flags[0, 0]) != (data["d"][row], data["flags"][row]):
            wrong.append((int(row), fields, hex(d[0, 0]), hex(data["d"][row]), int(flags[0, 0])))
    assert not wrong, wrong[:3]


@pytest.mark.parametrize("ft", [fmt.code for fmt in FORMATS.values() if fmt.is_float])
def test_recorded_vectors_rounded_as_arrays(ft):
    data = dict(np.load(VECTORS))
    fmt = by_code(ft)
    for row in np.flatnonzero(data["ft"] == ft)[::5]:
        values = {name: int(data[name][row]) for name in ("bovf", "acc", "sat", "beta", "k")}
        out = output(ft, bovf=values["bovf"], acc=values["acc"])
        d, flags = mma_float(
            fmt,
            out,
            data["a"][row : row + 1, : values["k"]],
            data["b"][row : row + 1, : values["k"]],
            None if values["beta"] else data["c"][row].reshape(1, 1),
            rnd=int(data["rnd"][row]),
            sat=bool(values["sat"] and out.bits <= 8),
            alpha=bool(data["alpha"][row]),
            config=Config(),
            whole_arrays=True,
        )
        assert (d[0, 0], flags[0, 0]) == (data["d"][row], data["flags"][row]), row


# -- independent reading ---------------------------------------------------------------------------


def check_random(name, bovf, acc, count, rng, config=None, **naive_fields):
    fmt = lookup(name)
    out = output(name, bovf=bovf, acc=acc)
    lanes = 128 // fmt.container
    seen = 0
    for _ in range(count):
        rows, columns, k = rng.randint(1, 3), rng.randint(1, 3), rng.choice((1, 2, lanes))
        a = [[random_code(fmt, rng) for _ in range(lanes)] for _ in range(rows)]
        b = [[random_code(fmt, rng) for _ in range(lanes)] for _ in range(columns)]
        c = [[random_code(out, rng) for _ in range(columns)] for _ in range(rows)]
        fields = {"bovf": bovf, "acc": acc, "rnd": rng.randrange(4), "sat": rng.randrange(2)}
        fields |= {"alpha": rng.randrange(2), "beta": rng.randrange(2)}
        arrays = [np.array(values, np.uint64) for values in (a, b, c)]
        d, flags = mma(name, *arrays, k=k, config=config, **fields)
        for i in range(rows):
            for j in range(columns):
                expected = naive_mma(name, a[i][:k], b[j][:k], c[i][j], **fields, **naive_fields)
                got = (int(d[i, j]), int(flags[i, j]))
                assert got == expected, (SEED, name, fields, a[i][:k], b[j][:k], c[i][j])
                seen |= got[1]
    return seen


@pytest.mark.parametrize(("name", "bovf", "acc"), PAIRS)
def test_random_against_fractions(name, bovf, acc):
    rng = random.Random(f"{SEED} {name} {bovf} {acc}")
    seen = check_random(name, bovf, acc, 8 if name == "fp64" else 25, rng)
    if lookup(name).is_float and name not in ("fp4_e1m2", "uf4_e1m3"):
        assert seen & (INEXACT | INVALID)


@pytest.mark.parametrize("limit", [1, 40, 600, 4198])
@pytest.mark.parametrize("name", ["fp8_e4m3", "fp8_e5m2", "fp16", "bf16", "fp32", "fp64"])
def test_exact_limit_and_window_come_from_config(name, limit):
    rng = random.Random(f"{SEED} {name} {limit}")
    window = {"fp32": 50, "fp64": 120}.get(name, 24)
    config = Config(exact_limit=limit, window={name: window})
    fields = {"exact_limit": limit, "window": window}
    check_random(name, 0, 0, 6 if name == "fp64" else 12, rng, config, **fields)


@pytest.mark.parametrize("name", [n for n, fmt in FORMATS.items() if fmt.container == 4])
def test_every_pair_of_4_bit_operands(name):
    codes = np.arange(16).reshape(16, 1)
    for rnd, bovf in ((0, 1), (1, 1), (2, 0), (3, 1)):
        fields = {"rnd": rnd, "bovf": bovf, "beta": 1}
        d, flags = mma(name, codes, codes, None, **fields)
        for i in range(16):
            for j in range(16):
                assert (d[i, j], flags[i, j]) == naive_mma(name, [i], [j], 0, **fields)


@pytest.mark.slow
@pytest.mark.parametrize("rnd", range(4))
@pytest.mark.parametrize("name", [n for n, fmt in FORMATS.items() if fmt.container == 8])
def test_every_pair_of_8_bit_operands(name, rnd):
    codes = np.arange(256).reshape(256, 1)
    fields = {"rnd": rnd, "bovf": 1, "beta": 1, "sat": rnd & 1}
    d, flags = mma(name, codes, codes, None, **fields)
    for i in range(256):
        for j in range(256):
            assert (d[i, j], flags[i, j]) == naive_mma(name, [i], [j], 0, **fields)


def spread_codes(fmt, shape, scale, rng):
    """Codes of normal deviates times 2^`scale`, with some of any kind between them."""
    codes = to_codes(rng.normal(size=shape) * 2.0**scale, fmt).astype(np.uint64)
    picker = random.Random(int(rng.integers(1 << 60)))
    for index in np.argwhere(rng.random(shape) < 0.02):
        codes[tuple(index)] = random_code(fmt, picker)
    return codes


@pytest.mark.parametrize(("name", "bovf", "acc"), [p for p in PAIRS if lookup(p[0]).is_float])
def test_arrays_and_single_elements_round_alike(name, bovf, acc):
    rng = np.random.default_rng([SEED, *name.encode(), bovf, acc])
    fmt, out = lookup(name), output(name, bovf=bovf, acc=acc)
    for rnd in range(4):
        scale = rng.integers(-min(fmt.bias, 200), min(fmt.bias, 200) // 2 + 1)
        a, b = (spread_codes(fmt, (12, 5), scale // 2, rng) for _ in range(2))
        c = None if rnd == 3 else spread_codes(out, (12, 12), scale + rng.integers(-9, 9), rng)
        fields = {"rnd": rnd, "sat": bool(rnd & 1) and out.bits <= 8, "alpha": rnd == 2}
        single, arrays = (
            mma_float(fmt, out, a, b, c, config=Config(), whole_arrays=whole, **fields)
            for whole in (False, True)
        )
        assert (single[0] == arrays[0]).all(), f"seed {SEED}"
        assert (single[1] == arrays[1]).all(), f"seed {SEED}"


INTEGERS = [name for name, fmt in FORMATS.items() if fmt.kind is Kind.INT]


@pytest.mark.parametrize("name", INTEGERS)
def test_whole_integer_matrices_against_python(name):
    rng = random.Random(f"{SEED} {name}")
    fmt = lookup(name)
    low, high = -(1 << (fmt.bits - 1)), (1 << (fmt.bits - 1)) - 1
    for acc, bovf, sat in ((0, 1, 1), (0, 0, 0), (0, 0, 1), (1, 0, 1)):
        if output_format(fmt, acc_mode(bovf, acc)) is None:
            continue
        out = output(name, bovf=bovf, acc=acc)
        a, b = ([[rng.choice((low, high, rng.randint(low, high))) for _ in range(9)]
                 for _ in range(7)] for _ in range(2))  # fmt: skip
        c = [[rng.getrandbits(out.bits) for _ in range(7)] for _ in range(7)]
        signed = np.array(a, f"i{max(1, fmt.container // 8)}")
        d, flags = mma(
            name, signed, np.array(b), np.array(c, np.uint64), bovf=bovf, acc=acc, sat=sat
        )
        assert d.dtype == f"u{out.container // 8}"
        for i in range(7):
            for j in range(7):
                expected = naive_mma(name, a[i], b[j], c[i][j], bovf=bovf, acc=acc, sat=sat)
                assert (d[i, j], flags[i, j]) == expected


# -- other rules that a small slip would break ----------------------------------------------------


def test_invalid_is_set_even_beside_a_nan():
    nan, inf, one = 0x7E00, 0x7C00, 0x3C00
    assert dot("fp16", [nan, inf], [one, 0], beta=1, bovf=1) == (nan, INVALID)
    assert dot("fp16", [nan], [inf], beta=1, bovf=1) == (nan, 0)
    assert dot("fp16", [inf], [one], 0xFC00, bovf=1) == (nan, INVALID)
    assert dot("fp16", [one], [one], 0x7C01, bovf=1) == (nan, INVALID)
    assert dot("fp16", [one], [one], 0x7C01, bovf=1, beta=1) == (one, 0)


def test_lanes_beyond_k_take_no_part():
    a = np.array([[0x3C00, 0x7E00]])
    d, flags = mma("fp16", a, a, None, k=1, beta=1, bovf=1)
    assert (d[0, 0], flags[0, 0]) == (0x3C00, 0)


def test_fixed_point_rounds_the_signed_sum():
    # -1/8 * 1/8 = -1/64, an eighth of the last place.
    for rnd, expected in ((NEAREST, 0), (UP, 0), (DOWN, 0xFF), (TO_ZERO, 0)):
        assert dot("q4_3", [0xFF], [0x01], bovf=1, beta=1, rnd=rnd) == (expected, INEXACT)


def test_q32_32_sums_modulo_2_to_96():
    big = 1 << 63  # -2^31
    d, _ = dot("q32_32", [big, big], [big, big], 5 << 32, bovf=1)
    assert d == (5 << 32)  # 2 * 2^62 wraps out of the value's 64 bits


@pytest.mark.parametrize("sat", [0, 1])
def test_q32_32_wraps_where_rounding_carries_over_its_top(sat):
    top = (1 << 63) - 1
    result = dot("q32_32", [(1 << 32) - 1], [1], top, rnd=UP, sat=sat)
    assert result == (1 << 63, INEXACT)


@pytest.mark.parametrize(
    ("arguments", "fields", "message"),
    [
        (("fp5", [[1]], [[1]], None), {}, "unknown number format"),
        (("int8", [[1]], [[1]], None), {}, "c is missing"),
        (("int8", [[1]], [[1]], [[1, 2]]), {}, r"c must be \(1, 1\)"),
        (("int8", [[1.5]], [[1]], None), {"beta": 1}, "a must hold integer codes"),
        (("int8", [1], [[1]], None), {"beta": 1}, "a must have two dimensions"),
        (("int8", [[1]], [[1]], None), {"beta": 1, "k": 2}, "k = 2 does not fit"),
        (("int8", [[1]], [[1]], None), {"beta": 1, "rnd": 4}, "rnd = 4 is undefined"),
        (("int8", [[1]], [[1]], None), {"beta": 1, "acc": 2}, "int8 has no output for ACC = 2"),
    ],
)
def test_bad_arguments(arguments, fields, message):
    ft, *arrays = arguments
    with pytest.raises(ValueError, match=message):
        mma(ft, *(None if array is None else np.array(array) for array in arrays), **fields)


# -- conversions -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FORMATS)
def test_every_code_survives_the_round_trip(name):
    fmt = lookup(name)
    rng = random.Random(f"{SEED} {name}")
    if fmt.bits <= 8:
        codes = list(range(1 << fmt.bits))
    else:
        codes = [random_code(fmt, rng) for _ in range(500)]
    shift = fmt.container - fmt.bits if fmt.top_aligned else 0
    for raw in codes:
        value = from_codes(np.uint64(raw), fmt)
        back = int(to_codes(value, fmt, sat=0))
        expected = raw & ((1 << fmt.bits) - 1) << shift
        if fmt.kind is not Kind.FLOAT and raw >> (fmt.bits - 1) & 1:
            expected |= (1 << fmt.container) - (1 << fmt.bits)
        if fmt.is_float and np.isnan(value):
            expected = fmt.canonical_nan
        assert back == expected, (hex(raw), value)


def test_conversion_modes_and_saturation():
    assert to_codes(np.array([2.5, -2.5, 3.5, 300]), "int8").tolist() == [2, 0xFE, 4, 127]
    assert to_codes(np.array([2.5, -2.5]), "int8", rnd=UP).tolist() == [3, 0xFE]
    assert code(300, "int8", sat=0) == 300 - 256
    assert code(np.inf, "int8") == 127
    assert code(-np.inf, "fp8_e4m3") == 0xFE
    assert code(-np.inf, "fp8_e5m2", sat=0) == 0xFC
    assert code(1e6, "fp16") == 0x7C00
    assert code(1e6, "fp16", rnd=TO_ZERO) == 0x7BFF
    assert code(1e9, "fp4_e2m1", sat=0) == 7
    assert code(np.inf, "uf16_e8m8") == 0xFEFF
    assert code(np.inf, "uf16_e8m8", sat=0) == 0xFF00
    assert code(3.0, "ue8m0") == 128
    assert code(-0.0, "fp32") == 0x80000000
    assert code(Fraction(1, 3), "fp32") == np.float32(1 / 3).view(np.uint32)
    assert convert(-1.0, "uf4_e2m2")[1] == SAT_HIT | INEXACT
    assert code(Fraction(1, 3) * Fraction(1, 1 << 30), "q32_32") == 1
    assert code((1 << 63) - 1, "int64") == (1 << 63) - 1


def test_conversion_against_numpy():
    rng = np.random.default_rng(SEED)
    values = np.concatenate([rng.normal(size=300) * 10.0 ** rng.integers(-42, 40, 300)])
    with np.errstate(over="ignore"):
        assert (to_codes(values, "fp32") == values.astype(np.float32).view(np.uint32)).all()
        assert (to_codes(values, "fp16") == values.astype(np.float16).view(np.uint16)).all()
    assert (to_codes(values, "fp64") == values.view(np.uint64)).all()


def test_conversion_of_nan_names_the_element():
    with pytest.raises(ValueError, match=r"element \(1, 0\) is NaN, which int8 does not have"):
        to_codes(np.array([[1.0], [np.nan]]), "int8")
    with pytest.raises(ValueError, match="cannot hold without sat"):
        to_codes(np.inf, "int8", sat=0)
    assert code(np.nan, "bf16") == 0x7FC0


def test_unknown_ft_codes_have_no_format():
    assert by_code(0x0A) is None
    with pytest.raises(ValueError, match="reserved"):
        mma(0x0A, np.zeros((1, 1), int), np.zeros((1, 1), int), None, beta=1)
