"""Known traps of float arithmetic, each under its name: what others get wrong, worked by hand.

The traps come in groups: double rounding, ties, overflow by mode, smallest values and integer
extremes, the window, tininess, zero signs. Traps between formats that are no pair of an mma test
the conversion.
"""

from __future__ import annotations

import numpy as np
import pytest

from sim.reference.numerics import convert, from_codes, mma

INEXACT, SAT_HIT, INVALID, OVERFLOW, UNDERFLOW = 1, 2, 4, 8, 16
NEAREST, UP, DOWN, TO_ZERO = range(4)

BF16_LARGE = float(from_codes(0x5BF8, "bf16"))

# name, value, format, rnd, sat, code, flags
CONVERSIONS = [
    # 1.0625 in float32 is a tie, and would go down to 1.
    ("double_rounding: 1.0625001 into E4M3 is 1.125", 1.0625001, "fp8_e4m3", NEAREST, 1, 0x39,
     INEXACT),
    ("double_rounding: 1.0625 + 2^-40 into E4M3 is 1.125", 1.0625 + 2.0**-40, "fp8_e4m3", NEAREST,
     1, 0x39, INEXACT),
    ("double_rounding: -431.99999999999994 into E4M3 is -416", -431.99999999999994, "fp8_e4m3",
     NEAREST, 1, 0xFD, INEXACT),
    ("tie: 9 into E5M2 is 8", 9, "fp8_e5m2", NEAREST, 1, 0x48, INEXACT),
    ("tie: 0.25 into E2M1 is 0", 0.25, "fp4_e2m1", NEAREST, 1, 0, INEXACT | UNDERFLOW),
    ("tie: 0.75 into E2M1 is 1", 0.75, "fp4_e2m1", NEAREST, 1, 2, INEXACT | UNDERFLOW),
    ("tie: 1.25 into E2M1 is 1", 1.25, "fp4_e2m1", NEAREST, 1, 2, INEXACT),
    ("tie: 1.75 into E2M1 is 2", 1.75, "fp4_e2m1", NEAREST, 1, 4, INEXACT),
    ("tie: 2.5 into E2M1 is 2", 2.5, "fp4_e2m1", NEAREST, 1, 4, INEXACT),
    ("tie: 3.5 into E2M1 is 4", 3.5, "fp4_e2m1", NEAREST, 1, 6, INEXACT),
    ("tie: 5 into E2M1 is 4", 5, "fp4_e2m1", NEAREST, 1, 6, INEXACT),
    ("tie: 464 into E4M3 is 448", 464, "fp8_e4m3", NEAREST, 0, 0x7E, INEXACT),
    ("tie: 464 into E4M3 with SAT is 448", 464, "fp8_e4m3", NEAREST, 1, 0x7E, INEXACT),
    ("tie: 465 into E4M3 is NaN", 465, "fp8_e4m3", NEAREST, 0, 0x7F, OVERFLOW | INEXACT),
    ("tie: 465 into E4M3 with SAT is 448", 465, "fp8_e4m3", NEAREST, 1, 0x7E,
     OVERFLOW | INEXACT | SAT_HIT),
    ("tie: 61440 into E5M2 is Inf", 61440, "fp8_e5m2", NEAREST, 0, 0x7C, OVERFLOW | INEXACT),
    ("tie: 61440 into E5M2 with SAT is 57344", 61440, "fp8_e5m2", NEAREST, 1, 0x7B,
     OVERFLOW | INEXACT | SAT_HIT),
    ("tie: 256 into E4M3 is 0x78", 256, "fp8_e4m3", NEAREST, 1, 0x78, 0),
    ("overflow: BF16 0x5BF8 into E4M3 to zero is 448", BF16_LARGE, "fp8_e4m3", TO_ZERO, 0, 0x7E,
     OVERFLOW | INEXACT),
    ("overflow: BF16 0x5BF8 into E4M3 to nearest is NaN", BF16_LARGE, "fp8_e4m3", NEAREST, 0, 0x7F,
     OVERFLOW | INEXACT),
    ("smallest: 2^-16 into E5M2 is 0x01", 2.0**-16, "fp8_e5m2", NEAREST, 1, 0x01, 0),
]  # fmt: skip

FLT_MAX = 0x7F7FFFFF
BIG_FP8 = 0x7E  # 448

# name, operands, fields of mxcfg and alpha, a, b, c (None: beta = 1), code, flags
DOTS = [
    ("double_rounding: 4097 x 4097 + 2^-30 in FP32 is 16785410", "fp32", {"bovf": 1},
     [0x45800800], [0x45800800], 0x30800000, 0x4B801001, INEXACT),
    ("tie: 8 x 1 + 1 in E5M2 is 8", "fp8_e5m2", {"bovf": 1}, [0x48], [0x3C], 0x3C, 0x48, INEXACT),
    ("tie: 448 x 1 + 16 in E4M3 is 448", "fp8_e4m3", {"bovf": 1}, [BIG_FP8], [0x38], 0x58, 0x7E,
     INEXACT),
    ("tie: 448 x 1 + 1 x 1 + 16 in E4M3 is NaN", "fp8_e4m3", {"bovf": 1}, [BIG_FP8, 0x38],
     [0x38, 0x38], 0x58, 0x7F, OVERFLOW | INEXACT),
    ("tie: 448 x 1 + 1 x 1 + 16 in E4M3 with SAT is 448", "fp8_e4m3", {"bovf": 1, "sat": 1},
     [BIG_FP8, 0x38], [0x38, 0x38], 0x58, 0x7E, OVERFLOW | INEXACT | SAT_HIT),
    ("tie: 57344 x 1 + 4096 in E5M2 is Inf", "fp8_e5m2", {"bovf": 1}, [0x7B], [0x3C], 0x6C, 0x7C,
     OVERFLOW | INEXACT),
    ("tie: 57344 x 1 + 4096 in E5M2 with SAT is 57344", "fp8_e5m2", {"bovf": 1, "sat": 1}, [0x7B],
     [0x3C], 0x6C, 0x7B, OVERFLOW | INEXACT | SAT_HIT),
    ("tie: 16 x 16 in E4M3 is 0x78", "fp8_e4m3", {"bovf": 1}, [0x58], [0x58], None, 0x78, 0),
    ("overflow: FLT_MAX^2 to zero is FLT_MAX", "fp32", {"bovf": 1, "rnd": TO_ZERO}, [FLT_MAX],
     [FLT_MAX], None, FLT_MAX, OVERFLOW | INEXACT),
    ("overflow: FLT_MAX^2 to nearest is Inf", "fp32", {"bovf": 1}, [FLT_MAX], [FLT_MAX], None,
     0x7F800000, OVERFLOW | INEXACT),
    ("smallest: 2^-8 x 2^-8 in E5M2 is 0x01", "fp8_e5m2", {"bovf": 1}, [0x1C], [0x1C], None, 0x01,
     0),
    ("smallest: UE8M0 code 0 x 1 is 2^-127 in FP32", "ue8m0", {"acc": 1}, [0], [127], None,
     0x00400000, 0),
    ("smallest: UE8M0 code 0 x 1 is 2^-127 in BF16", "ue8m0", {}, [0], [127], None, 0x0040, 0),
    ("smallest: UE8M0 code 0 x 1 is code 0", "ue8m0", {"bovf": 1}, [0], [127], None, 0, 0),
    ("extreme: 2 x (-128)^2 wraps in INT16", "int8", {}, [0x80] * 2, [0x80] * 2, None, 0x8000, 0),
    ("extreme: 2 x (-128)^2 is 32767 in INT16 with SAT", "int8", {"sat": 1}, [0x80] * 2,
     [0x80] * 2, None, 0x7FFF, SAT_HIT),
    ("extreme: 32 x (-128)^2 is 524288", "int8", {"acc": 1}, [0x80] * 32, [0x80] * 32, None, 524288,
     0),
    ("window: BF16 products 1, 2^-8 and 2^-40 are 1", "bf16", {"bovf": 1},
     [0x3F80, 0x3B80, 0x2B80], [0x3F80] * 3, None, 0x3F80, INEXACT),
    ("window: with 2^-40 in C they are more", "bf16", {"bovf": 1}, [0x3F80, 0x3B80], [0x3F80] * 2,
     0x2B80, 0x3F81, INEXACT),
    ("window: 0 x 2^127 does not move it", "bf16", {}, [0x3F80, 0], [0x2B81, 0x7F00], None,
     0x2B810000, 0),
    ("tininess: FP16 0x1FE0 x 0x2010 is 0x0400 without underflow", "fp16", {"bovf": 1}, [0x1FE0],
     [0x2010], None, 0x0400, INEXACT),
    ("tininess: FP16 0x03EE x 0x3C12 - 0 is 0x0400 with underflow", "fp16", {"bovf": 1}, [0x03EE],
     [0x3C12], 0x8000, 0x0400, INEXACT | UNDERFLOW),
    ("zero: -(+0 x +0) without C is -0", "fp32", {"bovf": 1, "alpha": 1}, [0], [0], None,
     0x80000000, 0),
]  # fmt: skip


@pytest.mark.parametrize("trap", CONVERSIONS, ids=[trap[0] for trap in CONVERSIONS])
def test_conversion(trap):
    _, value, fmt, rnd, sat, code, flags = trap
    got, got_flags = convert(value, fmt, rnd, sat)
    assert (hex(int(got)), f"{int(got_flags):05b}") == (hex(code), f"{flags:05b}")


@pytest.mark.parametrize("trap", DOTS, ids=[trap[0] for trap in DOTS])
def test_dot_product(trap):
    _, ft, fields, a, b, c, code, flags = trap
    addend = None if c is None else np.array([[c]], np.uint64)
    columns = (np.array([codes], np.uint64) for codes in (a, b))
    d, got = mma(ft, *columns, addend, beta=int(c is None), **fields)
    assert (hex(int(d[0, 0])), f"{int(got[0, 0]):05b}") == (hex(code), f"{flags:05b}")


@pytest.mark.parametrize("whole_arrays", [False, True])
def test_the_same_in_many_copies(whole_arrays):
    """Rounded singly and as arrays; the traps above are single elements."""
    for _, ft, fields, a, b, c, code, flags in DOTS:
        size = 12 if whole_arrays else 3
        rows, columns = (np.array([codes] * size, np.uint64) for codes in (a, b))
        addend = None if c is None else np.full((size, size), c, np.uint64)
        d, got = mma(ft, rows, columns, addend, beta=int(c is None), **fields)
        assert (d == code).all() and (got == flags).all()
