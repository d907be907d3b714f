"""The table of number formats against the profile, written down here a second time."""

from __future__ import annotations

import pytest

from hdl.formats import (
    ACC_MODES,
    FORMATS,
    PROFILE_ORDER,
    Kind,
    Specials,
    acc_mode,
    by_code,
    by_name,
    lookup,
    output_format,
    outputs,
)

# numerics.md section 3 and seed 000 section 4:
# code: name, value bits, container bits, exponent, mantissa, bias, fraction bits
TABLE = {
    0x01: ("int4", 4, 4, 0, 0, 0, 0),
    0x02: ("fp4_e2m1", 4, 4, 2, 1, 1, 0),
    0x03: ("fp4_e1m2", 4, 4, 1, 2, 1, 0),
    0x04: ("uf4_e2m2", 4, 4, 2, 2, 1, 0),
    0x05: ("uf4_e1m3", 4, 4, 1, 3, 1, 0),
    0x06: ("fp6_e3m2", 6, 8, 3, 2, 3, 0),
    0x07: ("fp6_e2m3", 6, 8, 2, 3, 1, 0),
    0x08: ("fp6_e4m1", 6, 8, 4, 1, 7, 0),
    0x09: ("uf6_e4m2", 6, 8, 4, 2, 7, 0),
    0x10: ("int8", 8, 8, 0, 0, 0, 0),
    0x11: ("fp8_e4m3", 8, 8, 4, 3, 7, 0),
    0x12: ("fp8_e5m2", 8, 8, 5, 2, 15, 0),
    0x13: ("ue8m0", 8, 8, 8, 0, 127, 0),
    0x14: ("q4_3", 8, 8, 0, 0, 0, 3),
    0x15: ("q2_5", 8, 8, 0, 0, 0, 5),
    0x18: ("int12", 12, 16, 0, 0, 0, 0),
    0x19: ("fp12_e5m6", 12, 16, 5, 6, 15, 0),
    0x1A: ("fp12_e4m7", 12, 16, 4, 7, 7, 0),
    0x1B: ("q4_8", 12, 16, 0, 0, 0, 8),
    0x1C: ("q5_7", 12, 16, 0, 0, 0, 7),
    0x20: ("int16", 16, 16, 0, 0, 0, 0),
    0x28: ("fp16", 16, 16, 5, 10, 15, 0),
    0x29: ("bf16", 16, 16, 8, 7, 127, 0),
    0x2A: ("uf16_e8m8", 16, 16, 8, 8, 127, 0),
    0x2B: ("q8_8", 16, 16, 0, 0, 0, 8),
    0x40: ("int32", 32, 32, 0, 0, 0, 0),
    0x48: ("fp32", 32, 32, 8, 23, 127, 0),
    0x49: ("tf32", 19, 32, 8, 10, 127, 0),
    0x4A: ("q16_16", 32, 32, 0, 0, 0, 16),
    0x80: ("int64", 64, 64, 0, 0, 0, 0),
    0x88: ("fp64", 64, 64, 11, 52, 1023, 0),
    0x8A: ("q32_32", 64, 64, 0, 0, 0, 32),
}

# numerics.md section 2: bOVF = 1, bOVF = 0, ACC = 1, and what else there is by ACC.
NARROW = ("fp8_e4m3", "fp16", "fp32")
OUTPUTS = {
    "int4": ("int8", "int16", "int32"),
    **dict.fromkeys(("fp4_e2m1", "fp4_e1m2", "uf4_e2m2", "uf4_e1m3"), NARROW),
    **dict.fromkeys(("fp6_e3m2", "fp6_e2m3", "fp6_e4m1", "uf6_e4m2"), NARROW),
    "int8": ("int8", "int16", "int32"),
    "fp8_e4m3": ("fp8_e4m3", "fp16", "fp32"),
    "fp8_e5m2": ("fp8_e5m2", "fp16", "fp32"),
    "ue8m0": ("ue8m0", "bf16", "fp32"),
    "q4_3": ("q4_3", "q4_3x2", None),
    "q2_5": ("q2_5", "q2_5x2", None),
    "int12": ("int16", "int32", None),
    "int16": ("int16", "int32", "int64"),
    "fp12_e5m6": ("fp16", "fp32", "fp32"),
    "fp12_e4m7": ("fp16", "fp32", "fp32"),
    "fp16": ("fp16", "fp32", "fp32"),
    "q4_8": ("q4_8", "q4_8x2", None),
    "q5_7": ("q5_7", "q5_7x2", None),
    "q8_8": ("q8_8", "q16_16", None),
    "bf16": ("bf16", "fp32", "fp32"),
    "uf16_e8m8": ("uf16_e8m8", "fp32", "fp32"),
    "int32": ("int32", "int64", None),
    "q16_16": ("q16_16", "q32_32", None),
    "tf32": ("tf32", "fp32", None),
    "fp32": ("fp32", "fp32", None),
    "int64": ("int64", "int64", None),
    "fp64": ("fp64", "fp64", None),
    "q32_32": ("q32_32", "q32_32", None),
}

NANS = {
    **{"fp8_e4m3": 0x7F, "fp8_e5m2": 0x7F, "fp12_e4m7": 0x7FF, "fp12_e5m6": 0x7E0},
    **{"fp16": 0x7E00, "bf16": 0x7FC0, "tf32": 0x7FC00000, "fp32": 0x7FC00000},
    **{"fp64": 0x7FF8000000000000, "uf16_e8m8": 0xFF80, "ue8m0": 0xFF},
}
UNSIGNED = {"uf4_e2m2", "uf4_e1m3", "uf6_e4m2", "ue8m0", "uf16_e8m8"}


def test_codes_widths_and_biases() -> None:
    found = {
        row.code: (row.name, row.bits, row.container, row.exp, row.man, row.bias, row.frac)
        for row in FORMATS.values()
    }
    assert found == TABLE
    assert list(found) == sorted(found), "the table is in Ft-code order, as mxinfo's bits are"
    assert tuple(FORMATS) == PROFILE_ORDER and len(PROFILE_ORDER) == 32


def test_kinds_signs_and_nans() -> None:
    for row in FORMATS.values():
        letters = row.name.rstrip("0123456789_")
        kind = {"int": Kind.INT, "q": Kind.FIXED}.get(letters, Kind.FLOAT)
        assert row.kind is kind and row.is_float == (kind is Kind.FLOAT), row.name
        assert row.signed == (row.name not in UNSIGNED), row.name
        assert row.canonical_nan == NANS.get(row.name), row.name
        assert row.top_aligned == (row.name == "tf32")
        if row.is_float:
            assert row.bits == row.exp + row.man + row.signed, row.name


def test_specials() -> None:
    for names, specials in (
        (("fp16", "bf16", "tf32", "fp32", "fp64", "fp8_e5m2", "fp12_e5m6"), Specials.IEEE),
        (("uf16_e8m8",), Specials.IEEE),
        (("fp8_e4m3", "fp12_e4m7"), Specials.NAN_TOP),
        (("ue8m0",), Specials.E8M0),
        (("fp4_e2m1", "fp4_e1m2", "uf4_e2m2", "fp6_e3m2", "uf6_e4m2"), Specials.NONE),
    ):
        for name in names:
            assert FORMATS[name].specials is specials, name


@pytest.mark.parametrize("name", FORMATS)
def test_outputs(name: str) -> None:
    row = FORMATS[name]
    for mode, expected in zip(("bovf", "full", "wide"), OUTPUTS[name], strict=True):
        out = output_format(row, mode)
        assert (out and out.name) == expected, mode
    for mode, acc in (("tf32", "bf16"), ("bf16", "ue8m0")):
        out = output_format(row, mode)
        assert (out and out.name) == (mode if name == acc else None), mode
    assert list(outputs(row)) == [mode for mode in ACC_MODES if output_format(row, mode)]


def test_double_width_q_keep_twice_the_fraction() -> None:
    for row in FORMATS.values():
        if row.kind is Kind.FIXED and row.bits < 64:
            wide = output_format(row, "full")
            assert wide.frac == 2 * row.frac and wide.bits == 2 * row.container, row.name


def test_acc_mode_of_mxcfg() -> None:
    assert [acc_mode(0, 0), acc_mode(1, 0)] == ["full", "bovf"]
    for bovf in (0, 1):
        assert [acc_mode(bovf, acc) for acc in range(1, 8)] == ["wide", "tf32", "bf16", *[None] * 4]


def test_lookup_by_name_code_and_text() -> None:
    for row in FORMATS.values():
        assert lookup(row.name) is lookup(row.code) is lookup(hex(row.code)) is row
        assert lookup(row.name.upper()) is by_name(row.name) is by_code(row.code) is row
    assert by_code(0) is lookup("0") is FORMATS["int8"], "0 is the default"
    reserved = set(range(256)) - set(TABLE) - {0}
    assert all(by_code(code) is None for code in reserved)
    for wrong, message in (
        ("int9", "unknown number format 'int9': choose one of int4"),
        ("0xzz", "unknown number format '0xzz': give a name or an Ft code"),
        (0xFF, "Ft code 0xff is reserved"),
    ):
        with pytest.raises(ValueError) as caught:
            lookup(wrong)
        assert message in str(caught.value) and "\n" not in str(caught.value)
