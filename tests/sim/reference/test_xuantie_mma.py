"""Multiply-accumulate of the front end `xuantie`, against loops over bytes in Python integers.

Floats are checked against `naive_mma`, which finds each element from exact whole numbers.
"""

from __future__ import annotations

import itertools
import random
from fractions import Fraction

import pytest
from naive_mma import float_dot
from xuantie_core import (
    BOTH,
    CORES,
    ILLEGAL,
    NONE,
    SEED,
    X128,
    X256,
    X512,
    Core,
    codes,
    number,
    row_bytes,
)

from hdl.config import Config
from hdl.formats import FORMATS

by_core = pytest.mark.parametrize("cfg", CORES, ids=lambda cfg: cfg.name)
SIGNS = {"": (True, True), "u": (False, False), "us": (False, True), "su": (True, False)}
FLOATS = {  # name: operand, C, window of a windowed operand
    "fmmacc.h": ("fp16", "fp16"),
    "fmmacc.s": ("fp32", "fp32"),
    "fmmacc.d": ("fp64", "fp64"),
    "fwmmacc.h": ("fp16", "fp32"),
    "fwmmacc.s": ("fp32", "fp64"),
}
WINDOWS = {"fp32": 64, "fp64": 106, "bf16": 32, "fp16": 32}
FLAG_SHIFT = 2


def c_elements(core, md, bits):
    """Columns of C, row by row: of one register, or half in each of a pair."""
    rows = core.cfg.row_bits // 32
    if bits == 64:
        pair = core.register(md), core.register(md + 1)
        return [codes(pair[0][i], 64) + codes(pair[1][i], 64) for i in range(rows)]
    return [codes(row, bits) for row in core.register(md)]


def sizes(rng, rows, columns, width, step):
    """A few M, N, K; the largest and the smallest among them."""
    yield rows, columns, width
    yield 1, 1, step
    for _ in range(3):
        yield (
            rng.randint(1, rows),
            rng.randint(1, columns),
            step * rng.randint(1, width // step),
        )


# -- integers ------------------------------------------------------------------------------------


def check_integers(core, execute, md, ms2, ms1, bits, out, signed, m, n, k):
    """Run one mma; every byte of every register as by hand."""
    before = core.registers()
    a, b = core.register(ms1), core.register(ms2)
    c = c_elements(core, md, out)
    rows = core.cfg.row_bits // 32
    assert core.sizes(m, n, k).error == NONE
    assert execute().error == NONE
    want = [[0] * (core.cfg.row_bits // 32) for _ in range(rows)]
    for i in range(m):
        x = codes(a[i][:k], bits, signed[0])
        for j in range(n):
            y = codes(b[j][:k], bits, signed[1])
            want[i][j] = c[i][j] + sum(p * q for p, q in zip(x, y, strict=True))
    half = len(want[0]) // 2
    if out == 64:
        before[md] = [row_bytes(row[:half], 64) for row in want]
        before[md + 1] = [row_bytes(row[half:], 64) for row in want]
    else:
        before[md] = [row_bytes(row, out) for row in want]
    assert core.registers() == before, f"seed {SEED}, m{m} n{n} k{k}"


@by_core
@pytest.mark.parametrize("signs", SIGNS)
@pytest.mark.parametrize("kind", ["mmaqa.b", "mmaqa.h", "pmmaqa.b"])
def test_integers_of_every_sign(cfg, signs, kind):
    core = Core(cfg)
    rng = random.Random(f"{SEED} {cfg.name} {kind} {signs}")
    rows, width = cfg.row_bits // 32, cfg.row_bits // 8
    bits, out, step = {"mmaqa.b": (8, 32, 1), "mmaqa.h": (16, 64, 2), "pmmaqa.b": (4, 32, 1)}[kind]
    for m, n, k in sizes(rng, rows, rows, width, step):
        md, ms2, ms1 = (0, 2, 3) if out == 64 else rng.sample(range(8), 3)
        name, _, size = kind.partition(".")

        def execute(md=md, ms2=ms2, ms1=ms1, name=name, size=size):
            if name == "pmmaqa":
                return core.pmmaqa(md, ms2, ms1, signs)
            return core.mmaqa(size, md, ms2, ms1, signs)

        check_integers(core, execute, md, ms2, ms1, bits, out, SIGNS[signs], m, n, k)


def test_unsigned_by_signed_and_nibbles_by_hand():
    """A of `us` is unsigned, B signed; the low nibble comes first."""
    core = Core()
    zero = [[0] * 32 for _ in range(8)]
    core.put(1, [[0xFF, 0x21, *[0] * 30], *zero[1:]])
    core.put(2, [[0xFE, 0x43, *[0] * 30], *zero[1:]])
    for signs, by_k1, nibbles in (
        ("", -1 * -2, 3 * 1 + 4 * 2),
        ("u", 255 * 254, 3 * 1 + 4 * 2),
        ("us", 255 * -2, 3 * 1 + 4 * 2),
        ("su", -1 * 254, 3 * 1 + 4 * 2),
    ):
        core.put(0, zero)
        core.sizes(1, 1, 1)
        core.mmaqa("b", 0, 2, 1, signs)
        assert number(core.register(0)[0][:4], signed=True) == by_k1
        core.put(0, zero)
        core.sizes(1, 1, 2)
        core.pmmaqa(0, 2, 1, signs)
        low, high = {"": (-1 * -2, -1 * -1), "u": (15 * 14, 15 * 15)}.get(
            signs, (15 * -2, 15 * -1) if signs == "us" else (-1 * 14, -1 * 15)
        )
        assert number(core.register(0)[0][:4], signed=True) == low + high + nibbles


def test_integers_wrap():
    core = Core()
    core.ready()
    core.put(1, [[0xFF] * 32] * 8)
    core.put(0, [row_bytes([2**31 - 1] * 8, 32)] * 8)
    core.mmaqa("b", 0, 1, 1, "u")
    wrapped = 2**31 - 1 + 32 * 255 * 255 - 2**32
    assert core.register(0) == [row_bytes([wrapped] * 8, 32)] * 8
    for md in (4, 5):
        core.put(md, [row_bytes([2**63 - 1] * 4, 64)] * 8)
    core.mmaqa("h", 4, 1, 1, "u")
    wrapped = 2**63 - 1 + 16 * 65535 * 65535 - 2**64
    assert core.register(4) == core.register(5) == [row_bytes([wrapped] * 4, 64)] * 8
    assert core.read("mxstatus") == 0
    assert core.read("xmxsat") == 0


# -- floats --------------------------------------------------------------------------------------


def float_code(rng, fmt, wild):
    """A code of a float: of moderate size, or where `wild` often special, tiny or huge."""
    top = (1 << fmt.bits) - 1
    kind = rng.random()
    if wild and kind < 0.05:
        return rng.choice((0, 1, top, top >> 1, 1 << fmt.bits - 1, ((1 << fmt.exp) - 1) << fmt.man))
    if wild and kind < 0.1:
        return rng.getrandbits(fmt.bits)
    spread = rng.choice((1, 6, fmt.bias // 2 - 1))
    exponent = fmt.bias + rng.randint(-spread, spread)
    sign = rng.getrandbits(1) << fmt.bits - 1
    return sign | exponent << fmt.man | rng.getrandbits(fmt.man)


def put_floats(core, register, rng, fmt):
    rows, lanes = core.cfg.row_bits // 32, core.cfg.row_bits // fmt.container
    content = []
    for _ in range(rows):
        wild = rng.random() < 0.3
        content.append([float_code(rng, fmt, wild) for _ in range(lanes)])
    core.put(register, [row_bytes(row, fmt.container) for row in content])


def check_floats(core, execute, operand, output, md, ms2, ms1, m, n, k, limit=96):
    """Run one mma; elements and flags one by one, all other registers as they were."""
    fmt, out = FORMATS[operand], FORMATS[output]
    rows, width = core.cfg.row_bits // 32, core.cfg.row_bits // 8
    before = core.registers()
    columns = width * (2 if out.container == 64 else 1) // (out.container // 8)
    a, b, c = before[ms1], before[ms2], c_elements(core, md, out.container)
    if out.container == 16:
        b = b + before[ms2 + 1]
    core.csrrw("mxstatus", 0)
    assert core.sizes(m, n, k).error == NONE
    assert execute().error == NONE
    flags, finite, want = 0, 0, [[0] * columns for _ in range(rows)]
    for i in range(m):
        for j in range(n):
            dot = float_dot(
                fmt,
                out,
                codes(a[i][:k], fmt.container),
                codes(b[j][:k], fmt.container),
                c[i][j],
                0,
                False,
                False,
                limit,
                WINDOWS[operand],
            )
            want[i][j] = dot.code
            flags |= dot.flags
            finite += not dot.special
    assert c_elements(core, md, out.container) == want, f"seed {SEED}, m{m} n{n} k{k}"
    assert core.read("mxstatus") == flags << FLAG_SHIFT
    written = (md, md + 1) if out.container == 64 else (md,)
    now = core.registers()
    for other in set(range(8)) - set(written):
        assert now[other] == before[other]
    return flags, finite


@by_core
@pytest.mark.parametrize("name", FLOATS)
def test_floats(cfg, name):
    core = Core(cfg)
    rng = random.Random(f"{SEED} {cfg.name} {name}")
    operand, output = FLOATS[name]
    fmt, out = FORMATS[operand], FORMATS[output]
    rows, width = cfg.row_bits // 32, cfg.row_bits // 8
    family, _, size = name.partition(".")
    columns = 2 * rows if out.container == 16 else rows
    seen = numbers = 0
    for m, n, k in sizes(rng, rows, columns, width, fmt.container // 8):
        m = min(m, 4)  # one element in Python integers takes a while
        for register, what in ((0, out), (1, out), (2, fmt), (3, fmt), (4, fmt)):
            put_floats(core, register, rng, what)

        def execute():
            return getattr(core, family)(size, 0, 2, 4)

        flags, finite = check_floats(core, execute, operand, output, 0, 2, 4, m, n, k)
        seen, numbers = seen | flags, numbers + finite
    assert seen & 1, f"seed {SEED}: never inexact"
    assert numbers > 10, f"seed {SEED}: nearly all results are special"


def test_columns_from_r_on_come_from_the_second_register_of_b():
    """fmmacc.h: small whole numbers, which FP16 holds exactly."""
    core = Core(X128)
    values = {0.0: 0, 1.0: 0x3C00, 2.0: 0x4000, 3.0: 0x4200}
    one = row_bytes([values[1.0]] + [0] * 7, 16)
    core.put(1, [one] * 4)
    core.put(2, [row_bytes([values[1.0]] + [0] * 7, 16)] * 4)
    core.put(3, [row_bytes([values[2.0]] + [0] * 7, 16)] * 4)
    core.put(0, [row_bytes([values[1.0]] * 8, 16)] * 4)
    core.sizes(4, 7, 16)
    core.fmmacc("h", 0, 2, 1)
    assert core.register(0) == [row_bytes([0x4000] * 4 + [0x4200] * 3 + [0], 16)] * 4


def test_columns_from_half_of_r_on_lie_in_the_second_register_of_c():
    core = Core(X512)
    rng = random.Random(SEED)
    doubles = {Fraction(value): code for value, code in ((1, 0x3FF0 << 48), (2, 0x4000 << 48))}
    core.put(4, [row_bytes([doubles[1]] * 8, 64)] * 16)
    core.put(5, [row_bytes([doubles[rng.choice([1, 2])]] + [0] * 7, 64) for _ in range(16)])
    for md in (2, 3):
        core.put(md, [[0] * 64] * 16)
    core.sizes(16, 16, 8)
    core.fmmacc("d", 2, 5, 4)
    b = [codes(row, 64)[0] for row in core.register(5)]
    assert core.register(2) == [row_bytes(b[:8], 64)] * 16
    assert core.register(3) == [row_bytes(b[8:], 64)] * 16


@pytest.mark.parametrize("name", ["fmmacc.h", "fwmmacc.h"])
def test_bf16_takes_the_place_of_fp16(name):
    cfg = Config(
        frontends=("xuantie",),
        tiles=8,
        rows=4,
        formats=("bf16", "fp32"),
        xuantie_bf16=True,
    )
    core = Core(cfg)
    rng = random.Random(f"{SEED} {name}")
    output = "bf16" if name == "fmmacc.h" else "fp32"
    for m, n, k in ((4, 4, 16), (3, 2, 6)):
        for register in range(5):
            put_floats(core, register, rng, FORMATS[output if register < 2 else "bf16"])
        check_floats(
            core,
            lambda: getattr(core, name[:-2])("h", 0, 2, 4),
            "bf16",
            output,
            0,
            2,
            4,
            m,
            n,
            k,
        )


def test_a_product_of_two_floats_is_exact_in_a_double():
    """fwmmacc.s: (1 + 2^-23)^2, rounded nowhere; and a K of one row rounds once only."""
    core = Core(X128)
    near_one = 0x3F800001
    core.put(2, [row_bytes([near_one] * 4, 32)] * 4)
    for md in (0, 1):
        core.put(md, [[0] * 16] * 4)
    core.sizes(4, 4, 4)
    core.fwmmacc("s", 0, 2, 2)
    exact = Fraction(2**23 + 1, 2**23) ** 2
    assert Fraction(float_of(number(core.register(0)[0][:8]))) == exact
    core.sizes(4, 4, 16)
    core.fwmmacc("s", 0, 2, 2)
    assert Fraction(float_of(number(core.register(0)[0][:8]))) == 5 * exact


def float_of(code):
    """A double by its code."""
    exponent, fraction = code >> 52 & 0x7FF, code & (1 << 52) - 1
    return float(Fraction((1 << 52) + fraction) * Fraction(2) ** (exponent - 1075))


def test_tails_set_no_flags():
    """What lies outside M, N and K may be anything, signalling NaNs too."""
    core = Core()
    for register in (0, 1, 2, 3):
        core.put(register, [row_bytes([0x7C01] * 16, 16)] * 8)
    row = row_bytes([0x3C00] + [0x7C01] * 15, 16)
    core.put(1, [row] + [row_bytes([0x7C01] * 16, 16)] * 7)
    core.put(2, [row] + [row_bytes([0x7C01] * 16, 16)] * 7)
    core.put(0, [row] + [row_bytes([0x7C01] * 16, 16)] * 7)
    core.sizes(1, 1, 2)
    core.fmmacc("h", 0, 2, 1)
    assert core.register(0) == [row_bytes([0x4000] + [0] * 15, 16)] + [[0] * 32] * 7
    assert core.read("mxstatus") == 0


# -- overlap -------------------------------------------------------------------------------------


@pytest.mark.parametrize("cfg", [X128, X256, BOTH], ids=lambda cfg: cfg.name)
def test_a_destination_that_is_an_operand_is_illegal(cfg):
    """C, or its pair, against A and B, or its pair; A and B may be one register."""
    core = Core(cfg)
    core.ready(n=1)
    for md, ms2, ms1 in itertools.product(range(8), repeat=3):
        for execute, b_pair, c_pair in (
            (lambda r=(md, ms2, ms1): core.mmaqa("b", *r), 1, 1),
            (lambda r=(md, ms2, ms1): core.fwmmacc("h", *r), 1, 1),
            (lambda r=(md, ms2, ms1): core.fmmacc("h", *r), 2, 1),
            (lambda r=(md, ms2, ms1): core.mmaqa("h", *r), 1, 2),
        ):
            if md % c_pair or ms2 % b_pair:
                continue
            written = set(range(md, md + c_pair))
            overlap = written & {ms1, *range(ms2, ms2 + b_pair)}
            before = core.registers() if overlap else None
            assert execute().error == (ILLEGAL if overlap else NONE), (md, ms2, ms1)
            if overlap:
                assert core.registers() == before


def test_one_register_may_be_both_operands():
    core = Core(X256)

    def execute():
        return core.mmaqa("h", 2, 1, 1, "us")

    check_integers(core, execute, 2, 1, 1, 16, 64, (False, True), 8, 7, 30)
