"""Conversions and products against gfloat, in every rounding mode.

Where gfloat cannot tell, a test of its own shows what it answers and what we do:
`test_gfloat_leaves_*` and `test_gfloat_has_no_*`.
"""

from __future__ import annotations

import os
import zlib

import numpy as np
import pytest
from dot_codes import PAIRS
from gfloat import RoundMode, decode_ndarray, encode_ndarray, round_ndarray
from library_formats import GFLOAT_FORMATS, PUBLISHED, described, gfloat_info, hard_values

from hdl.formats import FORMATS, Format, Kind, Specials
from sim.reference.numerics import convert, from_codes, mma, to_codes

SEED = int(os.environ.get("TEST_SEED", "20250102"))
INEXACT, SAT_HIT, INVALID, OVERFLOW, UNDERFLOW = 1, 2, 4, 8, 16
MODES = (
    RoundMode.TiesToEven,
    RoundMode.TowardPositive,
    RoundMode.TowardNegative,
    RoundMode.TowardZero,
)
"""By RND."""

FLOAT_PAIRS = [p for p in PAIRS if p.src.kind is Kind.FLOAT and p.name != "fp64"]
"""Pairs whose products, of at most 48 bits, float64 holds exactly."""


def generator(*keys) -> np.random.Generator:
    return np.random.default_rng([SEED, zlib.crc32(repr(keys).encode())])


def in_container(codes: np.ndarray, fmt: Format) -> np.ndarray:
    """Codes in the low bits as our containers hold them."""
    return codes << np.uint64(fmt.container - fmt.bits) if fmt.top_aligned else codes


def low_bits(codes: np.ndarray, fmt: Format) -> np.ndarray:
    """The reverse of `in_container`; without sign extension."""
    codes = codes.astype(np.uint64)
    if fmt.top_aligned:
        codes >>= np.uint64(fmt.container - fmt.bits)
    return codes & np.uint64((1 << fmt.bits) - 1)


def as_gfloat(values: np.ndarray, fmt: Format, rnd: int, sat: bool) -> tuple:
    """gfloat's rounded values and its codes of them, every NaN as ours."""
    info = gfloat_info(fmt)
    with np.errstate(all="ignore"):
        rounded = round_ndarray(info, values, MODES[rnd], sat=sat)
        codes = encode_ndarray(info, rounded)
    if fmt.has_nan:
        nan = np.uint64(fmt.canonical_nan)
        nan >>= np.uint64(fmt.container - fmt.bits if fmt.top_aligned else 0)
        codes = np.where(np.isnan(rounded), nan, codes)
    return rounded, codes


def within_gfloat(values: np.ndarray, fmt: Format, rounded: np.ndarray) -> np.ndarray:
    """Which values gfloat rounds into the format; tests of their own show the others."""
    if fmt.specials is Specials.E8M0:
        return (values > 0) & (rounded >= 2.0**-127)
    return np.ones(values.shape, bool) if fmt.signed else ~(values < 0)


def saturations(fmt: Format) -> list[tuple[int, bool]]:
    """Our sat, and gfloat's that means the same for this format."""
    if fmt.kind is not Kind.FLOAT or not fmt.has_nan:
        return [(1, True)]
    if fmt.bits <= 8 or not fmt.signed:
        return [(0, False), (1, True)]
    return [(0, False), (1, False)]


@pytest.mark.parametrize("name", PUBLISHED)
def test_gfloat_describes_our_formats_as_we_do(name):
    ours = vars(described(FORMATS[name]))
    assert vars(PUBLISHED[name]) | {"name": name} == ours


@pytest.mark.parametrize("name", GFLOAT_FORMATS)
def test_decode(name):
    """Every code of up to 19 bits; of the wider, a sample."""
    fmt = FORMATS[name]
    if fmt.bits <= 19:
        codes = np.arange(1 << fmt.bits, dtype=np.uint64)
    else:
        codes = generator(name).integers(0, (1 << fmt.bits) - 1, 50_000, np.uint64, endpoint=True)
    ours = from_codes(in_container(codes, fmt), fmt)
    theirs = decode_ndarray(gfloat_info(fmt), codes)
    wrong = ~((ours == theirs) | (np.isnan(ours) & np.isnan(theirs)))
    if fmt.is_float:
        wrong |= (ours == 0) & (np.signbit(ours) != np.signbit(theirs))
    assert not wrong.any(), [hex(code) for code in codes[wrong][:5]]


def check_conversion(name: str, count: int) -> None:
    fmt = FORMATS[name]
    values = hard_values(fmt, count, generator(name))
    for rnd in range(4):
        for sat, their_sat in saturations(fmt):
            rounded, theirs = as_gfloat(values, fmt, rnd, their_sat)
            ours, flags = convert(values, fmt, rnd, sat)
            within = within_gfloat(values, fmt, rounded)
            wrong = (low_bits(ours, fmt) != theirs) & within
            assert not wrong.any(), (
                f"seed {SEED}: {name} rnd {rnd} sat {sat}: of {values[wrong][:3]} gfloat makes "
                f"{theirs[wrong][:3]}, we {ours[wrong][:3]}"
            )
            finite = np.isfinite(rounded) & np.isfinite(values) & within
            # Floats call what they clamp inexact; integers only what they round.
            clamped = flags & SAT_HIT != 0 if not fmt.is_float else np.zeros(values.shape, bool)
            inexact = flags & INEXACT != 0
            wrong = finite & ~clamped & (inexact != (rounded != values))
            assert not wrong.any(), (SEED, name, rnd, sat, values[wrong][:3])


@pytest.mark.parametrize("name", GFLOAT_FORMATS)
def test_conversion(name):
    check_conversion(name, 256 if FORMATS[name].bits <= 8 else 120)


@pytest.mark.slow
@pytest.mark.parametrize("name", [n for n in GFLOAT_FORMATS if FORMATS[n].bits > 8])
def test_conversion_longer(name):
    """Every code and every tie of two codes of 12 bits; of the wider formats, a sample."""
    check_conversion(name, 1 << 12)


@pytest.mark.parametrize("name", [n for n in GFLOAT_FORMATS if FORMATS[n].bits in (12, 16)])
def test_every_code_is_its_own_conversion(name):
    """gfloat decodes, we encode; narrower formats are in the exhaustive tests."""
    fmt = FORMATS[name]
    codes = np.arange(1 << fmt.bits, dtype=np.uint64)
    values = decode_ndarray(gfloat_info(fmt), codes)
    same = ~np.isnan(values)
    ours, flags = convert(values[same], fmt, sat=0)
    assert (low_bits(ours, fmt) == codes[same]).all() and not flags.any()


def pair_codes(fmt: Format, count: int, rng: np.random.Generator) -> np.ndarray:
    codes = rng.integers(0, 1 << fmt.bits, count, np.uint64)
    if fmt.is_float and fmt.exp > 4:
        # Half of them near 1, so that sums meet.
        field = rng.integers(fmt.bias - 6, fmt.bias + 7, count).astype(np.uint64)
        mask = np.uint64((1 << fmt.exp) - 1 << fmt.man)
        near = codes & ~mask | field << np.uint64(fmt.man)
        codes = np.where(rng.random(count) < 0.5, near, codes)
    return in_container(codes, fmt)


def check_sums(pair, count: int, rng, with_c: bool) -> int:
    """K = 1: products, plus C where their sum is exact in float64, rounded by gfloat.

    Returns how many elements gfloat could judge.
    """
    src, out = pair.src, pair.out
    one = in_container(np.array([src.bias << src.man], np.uint64), src)
    a, b = pair_codes(src, count, rng), np.append(one, pair_codes(src, count, rng))
    value_a, value_b = (decode_ndarray(gfloat_info(src), low_bits(x, src)) for x in (a, b))
    judged = 0
    for rnd in range(4):
        for sat in (0, 1):
            their_sat = bool(sat) and out.bits <= 8  # wider outputs ignore SAT
            alpha = int(rng.integers(2)) if src.signed and out.signed else 0
            with np.errstate(invalid="ignore"):
                exact = value_a[:, None] * value_b[None, :] * (-1) ** alpha
            fields = {"bovf": pair.bovf, "acc": pair.acc, "rnd": rnd, "sat": sat, "alpha": alpha}
            known = np.isfinite(exact)
            if with_c:
                c = pair_codes(out, exact.size, rng).reshape(exact.shape)
                value_c = decode_ndarray(gfloat_info(out), low_bits(c, out))
                with np.errstate(invalid="ignore"):
                    total = exact + value_c
                    back = total - value_c
                    rest = (exact - back) + (value_c - (total - back))  # Knuth's two-sum
                known &= np.isfinite(value_c) & (rest == 0) & (total != 0)
                exact = np.where(known, total, 1.0)
                d, flags = mma(pair.name, a[:, None], b[:, None], c, **fields)
            else:
                exact = np.where(known, exact, 1.0)
                d, flags = mma(pair.name, a[:, None], b[:, None], None, beta=1, **fields)
            rounded, theirs = as_gfloat(exact, out, rnd, their_sat)
            known &= within_gfloat(exact, out, rounded)
            wrong = known & (low_bits(d, out) != theirs)
            overflows = np.abs(exact) > gfloat_info(out).max
            wrong |= known & ~overflows & ((flags & INEXACT != 0) != (rounded != exact))
            wrong |= known & ~overflows & (flags & (OVERFLOW | SAT_HIT | INVALID) != 0)
            beyond = overflows & (
                ~np.isfinite(rounded) | (np.abs(exact) > 1.5 * gfloat_info(out).max)
            )
            wrong |= known & beyond & (flags & (OVERFLOW | INEXACT) != OVERFLOW | INEXACT)
            assert not wrong.any(), (
                f"seed {SEED}: {pair} {fields}: of {exact[wrong][:3]} gfloat makes "
                f"{theirs[wrong][:3]}, we {d[wrong][:3]} flags {flags[wrong][:3]}"
            )
            judged += int(known.sum())
    return judged


@pytest.mark.parametrize("pair", FLOAT_PAIRS, ids=str)
def test_products_and_sums(pair):
    rng = generator(str(pair))
    assert check_sums(pair, 24, rng, with_c=False) > 1000
    assert check_sums(pair, 24, rng, with_c=True) > 200


@pytest.mark.slow
@pytest.mark.parametrize("pair", FLOAT_PAIRS, ids=str)
def test_products_and_sums_longer(pair):
    rng = generator(str(pair), "longer")
    for _ in range(8):
        check_sums(pair, 100, rng, with_c=False)
        check_sums(pair, 100, rng, with_c=True)


# -- where gfloat is wrong, or has no answer -------------------------------------------------------


@pytest.mark.parametrize("name", ["uf4_e2m2", "uf4_e1m3", "uf6_e4m2", "uf16_e8m8"])
def test_gfloat_leaves_negatives_in_unsigned_formats(name):
    """It rounds -1 to -1, saturating or not, and encodes that as no code at all.

    The value set ends at 0: we give code 0, with sat_hit and inexact.
    """
    info = gfloat_info(FORMATS[name])
    for sat in (False, True):
        rounded = round_ndarray(info, np.array([-1.0]), sat=sat)
        assert rounded[0] == -1.0
        assert encode_ndarray(info, rounded)[0] >= 1 << FORMATS[name].bits
        codes, flags = convert(-1.0, name, sat=int(sat))
        assert (int(codes), int(flags)) == (0, SAT_HIT | INEXACT)


def test_gfloat_leaves_e8m0_below_its_range():
    """Without subnormals it has no lowest exponent: 2^-130 stays 2^-130, and 0 stays 0.

    The smallest code is 2^-127: we clamp to it, with sat_hit and inexact.
    """
    info = gfloat_info(FORMATS["ue8m0"])
    for value in (2.0**-128, 2.0**-130):
        rounded = round_ndarray(info, np.array([value]), sat=True)
        assert rounded[0] == value
        assert encode_ndarray(info, rounded)[0] > 0xFF
    assert round_ndarray(info, np.array([0.0]))[0] == 0.0
    for value in (2.0**-128, 2.0**-130, 0.0, -1.0):
        codes, flags = convert(value, "ue8m0")
        assert (int(codes), int(flags)) == (0, SAT_HIT | INEXACT)


def test_gfloat_has_no_overflow_without_nan_or_saturation():
    """Formats without Inf and NaN: it raises where sat is off; we give the largest value."""
    with pytest.raises(ValueError, match="No Infs or NaNs"):
        round_ndarray(gfloat_info(FORMATS["fp4_e2m1"]), np.array([100.0]), sat=False)
    assert int(to_codes(100.0, "fp4_e2m1", sat=0)) == 7


def test_gfloat_has_no_wrap():
    """Integers and fixed point: it raises where sat is off; we wrap, as an mma does."""
    with pytest.raises(ValueError, match="No Infs or NaNs"):
        round_ndarray(gfloat_info(FORMATS["int8"]), np.array([300.0]), sat=False)
    assert int(to_codes(300.0, "int8", sat=0)) == 300 - 256
