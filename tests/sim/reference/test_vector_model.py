"""Vector mode of the reference: against mma with K = 1, and against tables of values."""

from __future__ import annotations

import os
from fractions import Fraction

import numpy as np
import pytest

from hdl.formats import FORMATS, Specials, acc_mode, output_format
from hdl.isa import VectorOp
from sim.reference.float_codes import INEXACT, INVALID, OVERFLOW, SAT_HIT, split
from sim.reference.numerics import mma
from sim.reference.vector import reads_z, saturates, vector

SEED = int(os.environ.get("TEST_SEED", "1"))
COUNT = 40
MODES = [(bovf, acc) for acc in range(4) for bovf in range(2) if bovf == 0 or acc == 0]
PAIRS = [
    (name, bovf, acc)
    for name in FORMATS
    for bovf, acc in MODES
    if output_format(FORMATS[name], acc_mode(bovf, acc))
]
NARROW = [f for f in FORMATS.values() if output_format(f, "bovf") is not f]
"""Formats that are no output of their own mma."""


def random_codes(rng, fmt, count):
    """Codes, extreme ones among them."""
    codes = rng.integers(0, 1 << fmt.container, count, dtype=np.uint64)
    top = (1 << fmt.bits) - 1
    special = [0, 1, top, top >> 1, (top >> 1) + 1, (top >> 1) - 1]
    if fmt.is_float:
        exponents = ((1 << fmt.exp) - 1) << fmt.man
        special += [exponents, exponents | 1, exponents - 1, fmt.bias << fmt.man, 1 << fmt.man]
        special += [value | 1 << fmt.bits - 1 for value in special]
    shift = fmt.container - fmt.bits if fmt.top_aligned else 0
    special = (np.array(special, np.uint64) & np.uint64(top)) << np.uint64(shift)
    return np.where(rng.random(count) < 0.3, rng.choice(special, count), codes)


def one_of(fmt):
    if not fmt.is_float:
        return 1 << fmt.frac
    return fmt.bias << fmt.man + (fmt.container - fmt.bits if fmt.top_aligned else 0)


def diagonal(fmt, a, b, c, fields):
    d, flags = mma(
        fmt.name,
        a[:, None],
        b[:, None],
        None if c is None else np.repeat(c[:, None], len(a), axis=1),
        beta=int(c is None),
        **fields,
    )
    return np.diagonal(d), np.diagonal(flags)


@pytest.mark.parametrize(("name", "bovf", "acc"), PAIRS)
def test_products_and_sums_are_mma_with_one_lane(name, bovf, acc):
    fmt = FORMATS[name]
    out = output_format(fmt, acc_mode(bovf, acc))
    rng = np.random.default_rng([SEED, fmt.code, bovf, acc])
    for rnd in range(4):
        for sat in range(2):
            fields = {"bovf": bovf, "acc": acc, "rnd": rnd, "sat": sat}
            x, y = random_codes(rng, fmt, COUNT), random_codes(rng, fmt, COUNT)
            z = random_codes(rng, out, COUNT)
            ones = np.full(COUNT, one_of(fmt), np.uint64)
            resolved = saturates(fmt, out, bovf=bovf, acc=acc, sat=sat)
            for op, a, b, c in (
                (VectorOp.MUL_ADD, x, y, z),
                (VectorOp.MUL, x, y, None),
                (VectorOp.ADD_X, x, ones, z),
                (VectorOp.ADD_Y, y, ones, z),
            ):
                got = vector(fmt, out, op, x, y, z, rnd=rnd, sat=resolved)
                want = diagonal(fmt, a, b, c, fields)
                where = f"seed {SEED}, {op.name}, rnd {rnd}, sat {sat}"
                assert (got[0] == want[0]).all() and (got[1] == want[1]).all(), where
                assert got[0].dtype.itemsize * 8 == max(8, out.container)


def value_of(code, fmt):
    """A finite code as a fraction, -0 as the pair's second member."""
    parts = split(np.array([code]), fmt)
    value = Fraction(int(parts.significand[0])) * Fraction(2) ** int(parts.exponent[0] - fmt.man)
    return -value if parts.sign[0] else value


@pytest.mark.parametrize("fmt", [f for f in NARROW if f.is_float], ids=lambda f: f.name)
@pytest.mark.parametrize("rnd", range(4))
def test_results_in_formats_without_mma_outputs(fmt, rnd):
    """Nearest value by search; the largest finite one where the value is beyond it."""
    rng = np.random.default_rng([SEED, fmt.code, rnd])
    codes = list(range(1 << fmt.bits))
    if fmt.specials is Specials.IEEE or fmt.specials is Specials.NAN_TOP:
        top = split(np.array(codes), fmt)
        codes = [c for c in codes if not top.nan[c] and not top.inf[c]]
    values = sorted({value_of(c, fmt) for c in codes})
    largest = values[-1]
    x, y, z = (rng.choice(codes, 120) for _ in range(3))
    got, flags = vector(fmt, fmt, VectorOp.MUL_ADD, x, y, z, rnd=rnd, sat=True)
    for index in range(len(x)):
        exact = value_of(x[index], fmt) * value_of(y[index], fmt) + value_of(z[index], fmt)
        result, flag = value_of(got[index], fmt), int(flags[index])
        where = f"seed {SEED}: {x[index]} * {y[index]} + {z[index]}"
        if abs(exact) <= largest and exact >= values[0]:
            below = max(v for v in values if v <= exact)
            above = min(v for v in values if v >= exact)
            allowed = {
                0: {
                    v for v in (below, above) if abs(v - exact) == min(exact - below, above - exact)
                },
                1: {above},
                2: {below},
                3: {below if exact > 0 else above},
            }[rnd]
            assert result in allowed, where
            assert bool(flag & INEXACT) == (result != exact), where
            assert not flag & (OVERFLOW | SAT_HIT), where
        elif exact < values[0] and not fmt.signed:
            assert (result, flag) == (0, SAT_HIT | INEXACT), where
        else:
            assert abs(result) == largest and (result > 0) == (exact > 0), where
            assert flag & INEXACT


def test_no_inf_and_no_nan_stays_finite():
    """FP4: the largest value whatever the mode; SAT only adds its flag."""
    fmt = FORMATS["fp4_e2m1"]
    x, y = np.array([7, 15]), np.array([7, 7])
    for sat in (False, True):
        got, flags = vector(fmt, fmt, VectorOp.MUL, x, y, x, rnd=0, sat=sat)
        assert list(got) == [7, 15]
        assert list(flags) == [OVERFLOW | INEXACT | (SAT_HIT if sat else 0)] * 2


@pytest.mark.parametrize("name", FORMATS)
def test_larger_and_smaller(name):
    """Against sorting by value; -0 below +0; any NaN wins."""
    fmt = FORMATS[name]
    rng = np.random.default_rng([SEED, fmt.code])
    x, y = random_codes(rng, fmt, 200), random_codes(rng, fmt, 200)
    zero = np.zeros(200, np.uint64)
    for op, best in ((VectorOp.MAX, max), (VectorOp.MIN, min)):
        got, flags = vector(fmt, fmt, op, x, y, zero)
        assert not reads_z(op)
        for index in range(len(x)):
            where = f"seed {SEED}: {op.name} of {x[index]:#x} and {y[index]:#x}"
            if not fmt.is_float:
                values = [int(v) & ((1 << fmt.bits) - 1) for v in (x[index], y[index])]
                half = 1 << fmt.bits - 1
                want = best((v ^ half) - half for v in values)
                assert int(got[index]) == want & ((1 << fmt.container) - 1), where
                continue
            pair = [split(np.array([code]), fmt) for code in (x[index], y[index])]
            if any(part.nan[0] for part in pair):
                signals = any(part.signalling[0] for part in pair)
                assert got[index] == fmt.canonical_nan, where
                assert flags[index] == (INVALID if signals else 0), where
                continue
            keys = []
            for part, code in zip(pair, (x[index], y[index]), strict=True):
                value = Fraction(10**400) if part.inf[0] else abs(value_of(code, fmt))
                keys.append((-value if part.sign[0] else value, not part.sign[0]))
            low = fmt.container - fmt.bits if fmt.top_aligned else 0
            mask = (1 << fmt.bits) - 1 << low
            want = int((x, y)[keys.index(best(keys))][index]) & mask
            assert int(got[index]) == want and not flags[index], where
