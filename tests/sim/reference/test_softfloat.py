"""K = 1 against Berkeley SoftFloat's fused multiply-add: codes and flags, in every mode.

A mma with K = 1 is an IEEE fused multiply-add, and one without C an IEEE product. IEEE leaves open,
and numerics.md fixes, what a NaN looks like (canonical), when a result is tiny (after rounding) and
whether 0 x Inf beside a quiet NaN is invalid (it is). SoftFloat is set up, and built, to agree.
Its "infinite" flag is of divisions only. SAT and windows play no part: these outputs are wider than
8 bits, and a window keeps a single product whole.
"""

from __future__ import annotations

import os
import zlib
from dataclasses import dataclass

import numpy as np
import pytest
import softfloatpy as sf

from hdl.formats import FORMATS, Format, acc_mode, output_format
from sim.reference.numerics import mma

SEED = int(os.environ.get("TEST_SEED", "20250102"))
INEXACT, SAT_HIT, INVALID, OVERFLOW, UNDERFLOW = 1, 2, 4, 8, 16
NEAREST, UP, DOWN, TO_ZERO = range(4)
MODES = (
    sf.RoundingMode.NEAR_EVEN,
    sf.RoundingMode.MAX,
    sf.RoundingMode.MIN,
    sf.RoundingMode.MIN_MAG,
)
"""By RND."""


@dataclass(frozen=True)
class Machine:
    """SoftFloat's type and functions of an output format."""

    kind: type
    mul_add: callable
    mul: callable


MACHINES = {
    "fp16": Machine(sf.Float16, sf.f16_mul_add, sf.f16_mul),
    "fp32": Machine(sf.Float32, sf.f32_mul_add, sf.f32_mul),
    "fp64": Machine(sf.Float64, sf.f64_mul_add, sf.f64_mul),
}

CASES = [
    *(("fp16", 1), ("fp32", 1), ("fp64", 1)),
    # Operands that FP32 holds exactly, and so SoftFloat's FP32 multiply-add serves them too.
    *(("fp16", 0), ("bf16", 0), ("tf32", 0)),
]
"""Operand format and bOVF."""


def our_flags(flags: int) -> int:
    """SoftFloat's flags in the places of ours."""
    ours = 0
    for theirs, bit in (
        (sf.ExceptionFlag.INEXACT, INEXACT),
        (sf.ExceptionFlag.INVALID, INVALID),
        (sf.ExceptionFlag.OVERFLOW, OVERFLOW),
        (sf.ExceptionFlag.UNDERFLOW, UNDERFLOW),
    ):
        ours |= bit if flags & theirs else 0
    assert not flags & sf.ExceptionFlag.INFINITE
    return ours


def widened(codes: np.ndarray, src: Format, out: Format) -> np.ndarray:
    """Operand codes in the output format: the same values, and a signalling NaN stays one."""
    if src.name == out.name:
        return codes
    if src.name == "tf32":
        return codes & np.uint64(0xFFFFE000)
    if src.name == "bf16":
        return codes << np.uint64(16)
    values = codes.astype(np.uint16).view(np.float16).astype(np.float32)
    wide = values.view(np.uint32).astype(np.uint64)
    signalling = ((codes & np.uint64(0x7E00)) == 0x7C00) & (codes & np.uint64(0x1FF) != 0)
    return np.where(signalling, wide & ~np.uint64(1 << 22) | np.uint64(1), wide)


def float_codes(fmt: Format, shape: tuple, style: str, rng: np.random.Generator) -> np.ndarray:
    """Random codes: any, with exponents near 1, with few mantissa bits, or special."""
    bits = np.uint64(fmt.container - fmt.bits if fmt.top_aligned else 0)
    codes = rng.integers(0, (1 << fmt.bits) - 1, shape, np.uint64, endpoint=True)
    man, exp = np.uint64(fmt.man), np.uint64((1 << fmt.exp) - 1)
    if style in ("near", "few"):
        field = rng.integers(fmt.bias - 5, fmt.bias + 6, shape).astype(np.uint64)
        codes = codes & ~(exp << man) | field << man
    if style == "few":
        keep = (rng.random(shape) < 0.5) * (np.uint64(1) << rng.integers(0, fmt.man, shape, "u8"))
        codes = codes >> man << man | keep.astype(np.uint64)
    if style == "special":
        top = (1 << fmt.exp) - 1 << fmt.man
        low = 1 << fmt.man
        choices = [
            0,
            1,
            low - 1,
            low,
            low + 1,
            top - 1,
            top,
            top + 1,
            top | low >> 1,
            top + low - 1,
        ]
        sign = rng.integers(0, 2, shape, np.uint64) << np.uint64(fmt.bits - 1)
        codes = rng.choice(np.array(choices, np.uint64), shape) | sign
    return codes << bits


def addends(products: np.ndarray, out: Format, rng: np.random.Generator) -> np.ndarray:
    """C codes, most of them where they matter to these products, given rounded."""
    shape = products.shape
    magnitude_bits = np.uint64((1 << out.bits - 1) - 1)
    sign = np.uint64(1 << out.bits - 1)
    place = rng.integers(-out.man - 3, out.man + 4, shape) << out.man
    moved = (products & magnitude_bits).astype(np.int64) + place + rng.integers(-1, 2, shape)
    moved = np.clip(moved, 0, int(magnitude_bits)).astype(np.uint64)
    moved |= rng.integers(0, 2, shape, np.uint64) << np.uint64(out.bits - 1)
    round_one = moved >> np.uint64(out.man) << np.uint64(out.man)
    near = (products ^ sign) + rng.integers(0, 3, shape).astype(np.uint64) - np.uint64(1)
    near &= magnitude_bits | sign
    choices = (
        near,
        products ^ sign,
        moved,
        round_one,
        float_codes(out, shape, "any", rng),
        float_codes(out, shape, "special", rng),
        float_codes(out, shape, "few", rng),
    )
    return np.choose(rng.integers(0, len(choices), shape), choices).astype(np.uint64)


class SoftFloat:
    """SoftFloat in one rounding mode, on arrays of codes."""

    def __init__(self, out: Format, rnd: int):
        self.machine, self.size = MACHINES[out.name], out.bits // 8
        sf.set_tininess_mode(sf.TininessMode.AFTER_ROUNDING)
        sf.set_rounding_mode(MODES[rnd])

    def numbers(self, codes: np.ndarray) -> list:
        data = codes.astype(f">u{self.size}").tobytes()
        make, size = self.machine.kind.from_bytes, self.size
        return [make(data[at : at + size]) for at in range(0, len(data), size)]

    def run(self, operation, *columns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Codes and flags, in our places, of an operation on columns of codes."""
        results, flags = [], []
        for operands in zip(*(self.numbers(codes.ravel()) for codes in columns), strict=True):
            sf.set_exception_flags(0)
            results.append(operation(*operands).to_bytes())
            flags.append(sf.get_exception_flags())
        codes = np.frombuffer(b"".join(results), f">u{self.size}").astype(np.uint64)
        places = {value: our_flags(value) for value in set(flags)}
        ours = np.array([places[value] for value in flags], np.uint8)
        shape = columns[0].shape
        return codes.reshape(shape), ours.reshape(shape)


def check(src: Format, out: Format, bovf: int, rnd: int, count: int, rng) -> int:
    """count x count products, with C and without. Returns the flags that were seen."""
    styles = ("any", "near", "few", "special")
    a, b = (float_codes(src, (count,), rng.choice(styles), rng) for _ in range(2))
    alpha = int(rng.integers(2))
    fields = {"bovf": bovf, "rnd": rnd, "alpha": alpha, "sat": int(rng.integers(2))}
    columns = a[:, None], b[:, None]
    bare, bare_flags = mma(src.name, *columns, None, beta=1, **fields)
    c = addends(bare.astype(np.uint64), out, rng)
    d, flags = mma(src.name, *columns, c, **fields)

    softfloat = SoftFloat(out, rnd)
    sign = np.uint64(alpha << out.bits - 1)
    wide_a = np.repeat((widened(a, src, out) ^ sign)[:, None], count, 1)
    wide_b = np.repeat(widened(b, src, out)[None, :], count, 0)
    machine = softfloat.machine
    for what, got, got_flags, theirs in (
        ("a b", bare, bare_flags, softfloat.run(machine.mul, wide_a, wide_b)),
        ("a b + c", d, flags, softfloat.run(machine.mul_add, wide_a, wide_b, c)),
    ):
        wrong = (got != theirs[0]) | (got_flags != theirs[1])
        if wrong.any():
            i, j = np.argwhere(wrong)[0]
            raise AssertionError(
                f"seed {SEED}: {wrong.sum()} wrong: {src.name} -> {out.name} {fields} {what}: "
                f"a {a[i]:#x} b {b[j]:#x} c {c[i, j]:#x}: got {got[i, j]:#x} flags "
                f"{got_flags[i, j]:05b}, SoftFloat {theirs[0][i, j]:#x} {theirs[1][i, j]:05b}"
            )
    return int(np.bitwise_or.reduce(flags, axis=None))


def check_many(name: str, bovf: int, rnd: int, groups: int, count: int) -> None:
    rng = np.random.default_rng([SEED, zlib.crc32(f"{name} {bovf} {rnd} {groups}".encode())])
    src = FORMATS[name]
    out = output_format(src, acc_mode(bovf, 0))
    seen = 0
    for _ in range(groups):
        seen |= check(src, out, bovf, rnd, count, rng)
    expected = INEXACT | INVALID
    if src.exp == out.exp:
        expected |= OVERFLOW | UNDERFLOW  # products of FP16 are far from both in FP32
    assert seen & expected == expected, f"seed {SEED}"


@pytest.mark.parametrize("rnd", range(4))
@pytest.mark.parametrize(("name", "bovf"), CASES)
def test_fused_multiply_add(name, bovf, rnd):
    check_many(name, bovf, rnd, groups=30, count=18)


@pytest.mark.slow
@pytest.mark.parametrize("rnd", range(4))
@pytest.mark.parametrize(("name", "bovf"), CASES)
def test_fused_multiply_add_longer(name, bovf, rnd):
    check_many(name, bovf, rnd, groups=120, count=50)


# -- what IEEE leaves open, or has only one way for ------------------------------------------------


def one(name: str, a: int, b: int, c: int | None, rnd: int = NEAREST, **fields):
    """An element of ours, code and flags."""
    columns = [np.array([[code]], np.uint64) for code in (a, b)]
    addend = None if c is None else np.array([[c]], np.uint64)
    d, flags = mma(name, *columns, addend, bovf=1, rnd=rnd, beta=int(c is None), **fields)
    return int(d[0, 0]), int(flags[0, 0])


def theirs(name: str, a: int, b: int, c: int | None, rnd: int = NEAREST):
    """The same of SoftFloat: a fused multiply-add, or a product without C."""
    softfloat = SoftFloat(FORMATS[name], rnd)
    operation = softfloat.machine.mul if c is None else softfloat.machine.mul_add
    columns = [np.array([code], np.uint64) for code in (a, b) + (() if c is None else (c,))]
    d, flags = softfloat.run(operation, *columns)
    return int(d[0]), int(flags[0])


def test_nan_is_canonical_and_loses_its_payload():
    """IEEE only recommends that payloads live on; SoftFloat's default NaN is ours."""
    for a in (0x7E05, 0xFE05):
        assert one("fp16", a, 0x3C00, 0) == theirs("fp16", a, 0x3C00, 0) == (0x7E00, 0)


def test_zero_times_inf_beside_a_quiet_nan_is_invalid():
    """IEEE 754-2019, 7.2 c leaves this to the implementation."""
    expected = 0x7E00, INVALID
    assert one("fp16", 0x7C00, 0, 0x7E00) == theirs("fp16", 0x7C00, 0, 0x7E00) == expected


def test_tininess_before_rounding_would_differ():
    """IEEE allows either; with the other, SoftFloat signals where we do not."""
    a, b = 0x1FE0, 0x2010
    assert one("fp16", a, b, None) == theirs("fp16", a, b, None) == (0x0400, INEXACT)
    softfloat = SoftFloat(FORMATS["fp16"], NEAREST)
    sf.set_tininess_mode(sf.TininessMode.BEFORE_ROUNDING)
    d, flags = softfloat.run(sf.f16_mul, np.array([a], np.uint64), np.array([b], np.uint64))
    assert (int(d[0]), int(flags[0])) == (0x0400, INEXACT | UNDERFLOW)


def test_a_product_alone_is_no_multiply_add_of_zero():
    """Without C a zero product keeps its sign, where adding +0 would lose it."""
    assert one("fp32", 0x80000000, 0x3F800000, None) == (0x80000000, 0)
    assert theirs("fp32", 0x80000000, 0x3F800000, None) == (0x80000000, 0)
    assert theirs("fp32", 0x80000000, 0x3F800000, 0) == (0, 0)
    assert one("fp32", 0x80000000, 0x3F800000, 0) == (0, 0)


@pytest.mark.parametrize(("rnd", "zero"), [(NEAREST, 0), (UP, 0), (DOWN, 0x8000), (TO_ZERO, 0)])
def test_a_sum_that_cancels_has_the_sign_of_its_mode(rnd, zero):
    for a, c in ((0x3C00, 0xBC00), (0x0000, 0x8000), (0x8000, 0x0000)):
        assert one("fp16", a, 0x3C00, c, rnd) == theirs("fp16", a, 0x3C00, c, rnd) == (zero, 0)


def test_a_second_product_is_beyond_ieee():
    """Two lanes in a narrow window lose bits that two fused multiply-adds would keep."""
    wide, one_code, tiny = 0x5F000000, 0x3F800000, 0x3F800000
    a = np.array([[wide, wide ^ 0x80000000, tiny]], np.uint64)
    b = np.array([[wide, wide, one_code]], np.uint64)
    d, flags = mma("fp32", a, b, None, bovf=1, beta=1)
    # 2^126 - 2^126 + 1: the 1 lies below 2^(126 - 64).
    assert (int(d[0, 0]), int(flags[0, 0])) == (0, INEXACT)
    total = theirs("fp32", wide, wide, None)[0]
    total = theirs("fp32", wide ^ 0x80000000, wide, total)[0]
    assert theirs("fp32", tiny, one_code, total) == (one_code, 0)
