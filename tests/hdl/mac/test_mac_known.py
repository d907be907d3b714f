"""Known traps of float arithmetic (numerics.md section 7) on the MAC array."""

from __future__ import annotations

import numpy as np
import pytest
from mac_cases import HPC, build, run_cases

from hdl.formats import FORMATS

INEXACT, SAT_HIT, INVALID, OVERFLOW, UNDERFLOW = (1 << i for i in range(5))
NEAREST, UP, DOWN, TO_ZERO = range(4)
FP32_MAX = 0x7F7FFFFF

# name, operands, output, a, b, c (None: beta = 1), fields, d, flags
KNOWN = [
    ("fma_double_rounding", "fp32", "fp32", [0x45800800], [0x45800800], 0x30800000, {}, 0x4B8010_01,
     INEXACT),
    ("fp32_overflow_to_zero", "fp32", "fp32", [FP32_MAX], [FP32_MAX], None, {"rnd": TO_ZERO},
     FP32_MAX, OVERFLOW | INEXACT),
    ("fp32_overflow_nearest", "fp32", "fp32", [FP32_MAX], [FP32_MAX], None, {}, 0x7F800000,
     OVERFLOW | INEXACT),
    ("no_flush_of_e5m2", "fp8_e5m2", "fp8_e5m2", [0x01], [0x3C], None, {}, 0x01, 0),
    ("int8_into_int16_wraps", "int8", "int16", [0x80] * 2, [0x80] * 2, None, {}, 0x8000, 0),
    ("int8_into_int16_clamps", "int8", "int16", [0x80] * 2, [0x80] * 2, None, {"sat": 1}, 0x7FFF,
     SAT_HIT),
    ("window_of_bf16", "bf16", "bf16", [0x3F80, 0x3B80, 0x2B80], [0x3F80] * 3, None, {}, 0x3F80,
     INEXACT),
    ("window_spares_c", "bf16", "bf16", [0x3F80, 0x3B80], [0x3F80] * 2, 0x2B80, {}, 0x3F81,
     INEXACT),
    ("zero_products_set_no_window", "bf16", "fp32", [0x3F80, 0], [0x2B81, 0x7F00], None, {},
     0x2B810000, 0),
    ("tiny_after_rounding", "fp16", "fp16", [0x1FE0], [0x2010], None, {}, 0x0400, INEXACT),
    ("tiny_before_c", "fp16", "fp16", [0x03EE], [0x3C12], 0x8000, {}, 0x0400, INEXACT | UNDERFLOW),
    ("minus_zero", "fp32", "fp32", [0], [0], None, {"alpha": 1}, 0x80000000, 0),
    ("zero_times_inf", "fp16", "fp32", [0x7C00, 0x7E00], [0, 0x3C00], None, {}, 0x7FC00000,
     INVALID),
    ("inf_minus_inf", "fp16", "fp32", [0x7C00], [0x3C00], 0xFF800000, {}, 0x7FC00000, INVALID),
    ("quiet_nan", "fp16", "fp32", [0x7E00], [0x3C00], 0, {}, 0x7FC00000, 0),
    ("signalling_nan", "fp16", "fp32", [0x7C01], [0x3C00], 0, {}, 0x7FC00000, INVALID),
    ("signalling_c", "fp16", "fp32", [0x3C00], [0x3C00], 0x7F800001, {}, 0x7FC00000, INVALID),
    ("e4m3_tie_at_the_top", "fp8_e4m3", "fp8_e4m3", [0x7E], [0x38], 0x58, {}, 0x7E, INEXACT),
    ("e4m3_above_the_tie", "fp8_e4m3", "fp8_e4m3", [0x7E, 0x38], [0x38, 0x38], 0x58, {}, 0x7F,
     OVERFLOW | INEXACT),
    ("e4m3_saturates", "fp8_e4m3", "fp8_e4m3", [0x7E, 0x38], [0x38, 0x38], 0x58, {"sat": 1}, 0x7E,
     OVERFLOW | INEXACT | SAT_HIT),
    ("negative_c_below_the_frame", "fp8_e4m3", "fp32", [0x38], [0x38], 0x80000001, {"rnd": DOWN},
     0x3F7FFFFF, INEXACT),
    ("negative_c_below_the_frame_up", "fp8_e4m3", "fp32", [0x38], [0x38], 0x80000001, {"rnd": UP},
     0x3F800000, INEXACT),
    ("inf_saturates", "fp8_e5m2", "fp8_e5m2", [0x7C], [0x3C], None, {"sat": 1}, 0x7B, SAT_HIT),
]  # fmt: skip


@pytest.mark.parametrize("case", KNOWN, ids=[case[0] for case in KNOWN])
def test_known(case):
    _, src, out, a, b, c, fields, d, flags = case
    fields = {"rnd": NEAREST, **fields}
    got, got_flags = run_cases(
        build(*HPC), FORMATS[src], FORMATS[out],
        np.array([a], np.uint64), np.array([b], np.uint64), np.array([c or 0], np.uint64),
        k=len(a), beta=int(c is None), **fields,
    )  # fmt: skip
    assert (hex(got[0]), f"{got_flags[0]:05b}") == (hex(d), f"{flags:05b}")
