"""Pointwise operations of the front end `xuantie`, against Fractions rounded by definition."""

from __future__ import annotations

import random
from fractions import Fraction
from math import floor

import pytest
from xuantie_core import BOTH, CORES, NONE, SEED, X128, X256, Core, codes, row_bytes

from hdl import isa

by_core = pytest.mark.parametrize("cfg", CORES, ids=lambda cfg: cfg.name)
OPS = ("madd", "msub", "msra", "mn4clip", "mn4clipu", "mmul", "mmulh")
FORMS = ("mm", "mv.x", "mv.i", "mx")
RNU, RNE, RDN, ROD = range(4)


def rounded(value: Fraction, mode: int) -> int:
    """To a whole number as xmxrm says: nearest ties up, nearest ties even, down, odd."""
    below = floor(value)
    rest = value - below
    if mode == RNU:
        return below + (rest >= Fraction(1, 2))
    if mode == RNE:
        return round(value)  # Python's own ties go to even
    if mode == RDN or rest == 0:
        return below
    return below if below % 2 else below + 1


def expected(op: str, x: int, y: int, bits: int, mode: int) -> tuple[int, bool]:
    """Result of codes x and y, and whether it was clipped."""

    def signed(code):
        return code - (1 << bits) if code >= 1 << bits - 1 else code

    shifted = Fraction(signed(x) if op != "mn4clipu" else x, 2 ** (y % bits))
    if op == "madd":
        return signed(x) + signed(y), False
    if op == "msub":
        return signed(x) - signed(y), False
    if op == "mmul":
        return signed(x) * signed(y), False
    if op == "mmulh":
        return floor(Fraction(signed(x) * signed(y), 2**bits)), False
    value = rounded(shifted, mode)
    if op == "msra":
        return value, False
    quarter = bits // 4
    low, high = (
        (0, 2**quarter - 1) if op == "mn4clipu" else (-(2 ** (quarter - 1)), 2 ** (quarter - 1) - 1)
    )
    clipped = min(max(value, low), high)
    return clipped, clipped != value


def operand_register(rng, rows, width, bits):
    """Elements of all sizes, near powers of two, and ends of the range."""

    def code():
        kind = rng.random()
        if kind < 0.3:
            return rng.getrandbits(bits)
        if kind < 0.4:
            return rng.choice((0, 1, 2**bits - 1, 2 ** (bits - 1), 2 ** (bits - 1) - 1))
        near = (1 << rng.randrange(bits)) + rng.choice((-1, 0, 1, rng.getrandbits(6)))
        return rng.choice((near, -near)) % (1 << bits)

    return [row_bytes([code() for _ in range(8 * width // bits)], bits) for _ in range(rows)]


def check(core, op, form, bits, md, ms2, ms1, m, k, mode, scalar=0, row=0):
    """One operation: every byte of every register, and xmxsat, as by hand."""
    rows, width = core.cfg.row_bits // 32, core.cfg.row_bits // 8
    before = core.registers()
    core.csrrwi("xmxrm", mode)
    core.csrrwi("xmxsat", 0)
    assert core.sizes(m, 0, k).error == NONE
    second = {
        "mm": {"ms1": ms1},
        "mv.x": {"ms1": ms1, "row": row},
        "mv.i": {"ms1": ms1, "rowi": row},
        "mx": {"value": scalar},
    }[form]
    size = {32: "s", 64: "d"}[bits]
    assert getattr(core, op)(size, md, ms2, **second).error == NONE
    out = bits // 4 if op.startswith("mn4") else bits
    want, saturated = [[0] * width for _ in range(rows)], False
    for i in range(m):
        results = []
        x_row = codes(before[ms2][i][:k], bits)
        y_row = codes(before[ms1][i if form == "mm" else row][:k], bits)
        for x, y in zip(x_row, y_row, strict=True):
            y = scalar % (1 << bits) if form == "mx" else y
            value, clipped = expected(op, x, y, bits, mode)
            results.append(value)
            saturated |= clipped
        content = row_bytes(results, out)
        want[i][: len(content)] = content
    before[md] = want
    where = f"seed {SEED}: {op}.{size}.{form} m{md} m{ms2} m{ms1}, M {m} K {k} xmxrm {mode}"
    assert core.registers() == before, where
    assert core.read("xmxsat") == saturated, where
    assert core.read("mxstatus") == 0
    return saturated


@by_core
@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("op", OPS)
def test_every_form_rounding_and_place(cfg, op, bits):
    """All four forms, all four roundings, md apart from, at and both of its operands."""
    core = Core(cfg)
    rng = random.Random(f"{SEED} {cfg.name} {op} {bits}")
    rows, width = cfg.row_bits // 32, cfg.row_bits // 8
    step = bits // 8
    places = ((3, 5, 6), (5, 5, 6), (6, 5, 6), (5, 5, 5), (2, 5, 5))
    clipped = set()
    for form in FORMS:
        for mode in range(4):
            for md, ms2, ms1 in rng.sample(places, 2 if cfg.row_bits > 128 else 5):
                for register in (ms1, ms2):
                    core.put(register, operand_register(rng, rows, width, bits))
                whole = rng.random() < 0.4
                m = rows if whole else rng.randint(1, rows)
                k = width if whole else step * rng.randint(1, width // step)
                row = rng.randrange(min(rows, 8))
                scalar = rng.choice((rng.getrandbits(64), rng.getrandbits(5), -1, 0))
                clipped.add(check(core, op, form, bits, md, ms2, ms1, m, k, mode, scalar, row))
    assert clipped == ({False} if not op.startswith("mn4") else clipped)
    assert True in clipped or not op.startswith("mn4")


def one(core, line, x, y=0, bits=32):
    """Result code of one element of m0 op m1 by a line of text, in the first bytes of m2."""
    width = core.cfg.row_bits // 8
    zero = [[0] * width for _ in range(core.cfg.row_bits // 32)]
    for register, value in ((0, x), (1, y)):
        content = [row[:] for row in zero]
        content[0][: bits // 8] = row_bytes([value], bits)
        core.put(register, content)
    core.sizes(1, 1, bits // 8)
    assert core.line(line, rs1=y & (1 << 64) - 1).error == NONE
    return core.register(2)[0]


@pytest.mark.parametrize(
    ("mode", "results"),
    [
        # 5/2 = 2.5, 7/2 = 3.5, 9/4 = 2.25, 11/4 = 2.75, -5/2 = -2.5, -7/2 = -3.5, -9/4 = -2.25
        (RNU, (3, 4, 2, 3, -2, -3, -2)),
        (RNE, (2, 4, 2, 3, -2, -4, -2)),
        (RDN, (2, 3, 2, 2, -3, -4, -3)),
        (ROD, (3, 3, 3, 3, -3, -3, -3)),
    ],
)
def test_roundings_by_hand(mode, results):
    core = Core(X128)
    core.csrrwi("xmxrm", mode)
    cases = ((5, 1), (7, 1), (9, 2), (11, 2), (-5, 1), (-7, 1), (-9, 2))
    for (x, shift), result in zip(cases, results, strict=True):
        assert one(core, "msra.s.mm m2, m0, m1", x, shift)[:4] == row_bytes([result], 32)
        assert one(core, "msra.d.mx m2, m0, a0", x, shift, 64)[:8] == row_bytes([result], 64)
        assert one(core, "mn4clip.s.mm m2, m0, m1", x, shift)[:4] == row_bytes([result, 0, 0, 0], 8)


def test_rounding_comes_before_saturation():
    """255/2 rounds up to 128, which is clipped; rounded down it fits."""
    core = Core(X128)
    for mode, result, saturated in ((RNU, 127, 1), (RNE, 127, 1), (RDN, 127, 0), (ROD, 127, 0)):
        core.csrrwi("xmxrm", mode)
        core.csrrwi("xmxsat", 0)
        assert one(core, "mn4clip.s.mm m2, m0, m1", 255, 1)[0] == result
        assert core.read("xmxsat") == saturated
    core.csrrwi("xmxrm", RNU)
    core.csrrwi("xmxsat", 0)
    assert one(core, "mn4clipu.s.mm m2, m0, m1", 511, 1)[0] == 255
    assert core.read("xmxsat") == 1


def test_xmxsat_stays_until_it_is_written():
    core = Core(X128)
    one(core, "mn4clip.s.mm m2, m0, m1", 1000)
    one(core, "mn4clip.s.mm m2, m0, m1", 1)
    one(core, "msra.s.mm m2, m0, m1", 1000)
    assert core.read("xmxsat") == 1
    assert core.read("mxstatus") == 0


def test_unsigned_clips_by_hand():
    core = Core(X128)
    core.csrrwi("xmxrm", RDN)
    for line, x, bits, result in (
        ("mn4clip.s.mm", -1, 32, -1),
        ("mn4clip.s.mm", -129, 32, -128),
        ("mn4clipu.s.mm", -1, 32, 255),
        ("mn4clipu.s.mm", 255, 32, 255),
        ("mn4clip.d.mm", 40000, 64, 32767),
        ("mn4clip.d.mm", -40000, 64, -32768),
        ("mn4clipu.d.mm", 65535, 64, 65535),
        ("mn4clipu.d.mm", -1, 64, 65535),
    ):
        got = one(core, f"{line} m2, m0, m1", x, 0, bits)
        assert got[: bits // 8] == row_bytes([result], bits // 4) + [0] * (bits * 3 // 32)


def test_shift_amounts_are_the_low_bits():
    core = Core(X128)
    for shift in (33, 32 + 64, 31, -31):
        y = shift % 32
        assert one(core, "msra.s.mm m2, m0, m1", 2**31 - 2**8, shift) == one(
            core, "msra.s.mm m2, m0, m1", 2**31 - 2**8, y
        )
    assert one(core, "msra.d.mx m2, m0, a0", 1 << 62, 64 + 61, 64)[:8] == row_bytes([2], 64)
    assert one(core, "msra.s.mx m2, m0, a0", 1 << 30, (1 << 40) + 29)[:4] == row_bytes([2], 32)


def test_products_by_hand():
    core = Core(X128)
    for x, y in ((-(2**31), -(2**31)), (-1, 2**31 - 1), (123456789, -987654321), (-1, -1)):
        low = one(core, "mmul.s.mm m2, m0, m1", x, y)[:4]
        high = one(core, "mmulh.s.mm m2, m0, m1", x, y)[:4]
        assert low + high == row_bytes([x * y], 64)
    x, y = -(2**63), 2**63 - 1
    low = one(core, "mmul.d.mx m2, m0, a0", x, y, 64)[:8]
    high = one(core, "mmulh.d.mx m2, m0, a0", x, y, 64)[:8]
    assert low + high == row_bytes([x * y], 128)
    # .s takes the low half of the scalar, as a signed number
    assert one(core, "mmulh.s.mx m2, m0, a0", 1 << 30, 0x1_FFFF_FFFC)[:4] == row_bytes([-1], 32)
    assert one(core, "madd.s.mx m2, m0, a0", 5, 0x7_FFFF_FFFF)[:4] == row_bytes([4], 32)


def test_results_of_a_clip_lie_in_the_first_quarter():
    core = Core(X256)
    core.put(1, [row_bytes(list(range(8)), 32)] * 8)
    core.sizes(5, 1, 24)
    core.mn4clip("s", 1, 1, value=0)
    assert core.register(1) == [[*range(6)] + [0] * 26] * 5 + [[0] * 32] * 3


def test_a_row_at_or_above_m_may_be_taken():
    core = Core(BOTH)
    core.put(1, [row_bytes([i + 1] * 4, 32) for i in range(4)])
    core.sizes(2, 1, 16)
    core.madd("s", 0, 1, 1, rowi=3)
    assert core.register(0)[:2] == [row_bytes([5] * 4, 32), row_bytes([6] * 4, 32)]
    core.madd("s", 1, 1, 1, row=3)  # in place
    assert core.register(1) == [*core.register(0)[:2], [0] * 16, [0] * 16]


def test_all_operations_are_tested():
    assert {op.name.lower() for op in isa.PointwiseOp} == set(OPS)
