"""sim.accuracy: its numbers against independent ones, its errors, and the tables of the docs."""

from __future__ import annotations

import importlib.util
import json
import math
import os
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from hdl.cli import CommandError
from hdl.config import Config
from hdl.formats import ACC_MODES, FORMATS, Format, Kind, Specials, output_format
from sim import accuracy, digits
from sim.reference.float_codes import max_finite, place
from sim.reference.numerics import from_codes

SEED = int(os.environ.get("TEST_SEED", "11"), 0)
DOC = Path(__file__).parents[2] / "docs" / "numerics.md"
ALL = accuracy.pairs_of(("all",))


def pair(name: str) -> accuracy.Pair:
    (found,) = accuracy.pairs_of((name,))
    return found


# -- numbers -------------------------------------------------------------------------------------


def test_int8_is_what_plain_integers_give() -> None:
    """Quantise, multiply and clamp once per 16 lanes, by hand."""
    a, b = accuracy.random_matrices("uniform", 6, 5, 40, SEED)
    scale_a, scale_b = 127 / np.abs(a).max(), 127 / np.abs(b).max()
    codes_a, codes_b = np.rint(a * scale_a).astype(int), np.rint(b * scale_b).astype(int)
    clamped, hit = np.zeros((6, 5), int), np.zeros((6, 5), bool)
    for first in (0, 16, 32):
        wide = clamped + codes_a[:, first : first + 16] @ codes_b[:, first : first + 16].T
        clamped = np.clip(wide, -32768, 32767)
        hit |= clamped != wide
    exact, full = a @ b.T, codes_a @ codes_b.T
    peak = np.abs(exact).max()
    assert hit.any() and not hit.all(), f"seed {SEED} shows too little"
    for out, found in (("int16", clamped), ("int32", full)):
        result = accuracy.measure("m", a, b, pair(f"int8:{out}"), Config())
        error = np.abs(found / scale_a / scale_b - exact) / peak
        sums = np.abs(found - full) / (peak * scale_a * scale_b)
        expected = (error.max(), math.sqrt((error**2).mean()))
        expected += (sums.max(), math.sqrt((sums**2).mean()))
        measured = (result.max_error, result.rms_error)
        measured += (result.sums_max_error, result.sums_rms_error)
        assert measured == pytest.approx(expected, rel=1e-9, abs=1e-15), f"{out}, seed {SEED}"
        assert result.sat_hit == (hit.mean() if out == "int16" else 0)
        assert result.inexact == result.not_finite == 0


def test_fp32_is_what_fractions_give() -> None:
    """One rounding per 4 lanes; numpy's float32 rounds float64 to nearest."""
    a, b = accuracy.random_matrices("normal", 3, 2, 10, SEED)
    a32, b32 = a.astype(np.float32), b.astype(np.float32)
    worst, inexact = 0.0, 0
    exact = a @ b.T
    for row in range(3):
        for column in range(2):
            total, dropped = Fraction(0), False
            for first in (0, 4, 8):
                for x, y in zip(a32[row, first:][:4], b32[column, first:][:4], strict=True):
                    total += Fraction(float(x)) * Fraction(float(y))
                rounded = Fraction(float(np.float32(float(total))))
                dropped |= rounded != total
                total = rounded
            worst = max(worst, abs(float(total) - exact[row, column]))
            inexact += dropped
    result = accuracy.measure("m", a, b, pair("fp32"), Config())
    assert result.max_error == pytest.approx(worst / np.abs(exact).max(), rel=1e-6), SEED
    assert result.inexact == inexact / 6
    assert result.arithmetic == "window 64"


def test_window_and_exact_limit_come_from_the_core() -> None:
    a, b = accuracy.random_matrices("wide", 4, 4, 8, SEED)
    narrow = Config(formats=("bf16",), window={"bf16": 16})
    exact = Config(formats=("bf16",), exact_limit=600)
    results = [accuracy.measure("m", a, b, pair("bf16:fp32"), cfg) for cfg in (narrow, exact)]
    assert [result.arithmetic for result in results] == ["window 16", "exact"]
    assert results[0].sums_rms_error > 10 * results[1].sums_rms_error > 0


@pytest.mark.parametrize("kind", accuracy.RANDOM)
@pytest.mark.parametrize("shown", ALL, ids=lambda p: f"{p.fmt.name}-{p.out.name}")
def test_nothing_overflows_unless_sat_shows_it(shown: accuracy.Pair, kind: str) -> None:
    a, b = accuracy.random_matrices(kind, 4, 3, 37, SEED)
    for scale in ("auto", "fit"):
        result = accuracy.measure(kind, a, b, shown, Config(), scale)
        assert result.not_finite == 0, f"seed {SEED}"
        assert result.max_error < 0.7 or result.sat_hit, f"{result}, seed {SEED}"
    assert not result.sat_hit, f"fit: {result}, seed {SEED}"


def test_scales() -> None:
    a, b = np.array([[1.0, -2.0]]), np.array([[4.0, 0.5]])
    assert accuracy.scales(a, b, pair("int8:int32"), 16) == (63.5, 31.75)
    fitted = accuracy.scales(a, b, pair("int8:int8"), 16)
    codes = np.rint(a * fitted[0]) @ np.rint(b * fitted[1]).T
    assert 127 / 4 < abs(codes) <= 127
    assert accuracy.scales(a, b, pair("q4_3:q4_3x2"), 16, "full") == (127 / 16, 127 / 32)
    for factor in accuracy.scales(a, b, pair("fp8_e4m3:fp8_e4m3"), 16):
        assert math.frexp(factor)[0] == 0.5
    zeros = np.zeros((2, 3))
    assert accuracy.measure("m", zeros, zeros, pair("int8:int8"), Config()).max_error == 0


def test_pairs() -> None:
    names = [(p.fmt.name, p.out.name, p.bovf, p.acc) for p in accuracy.pairs_of(("0x29", "int8"))]
    assert names == [
        ("int8", "int8", 1, 0),
        ("int8", "int16", 0, 0),
        ("int8", "int32", 0, 1),
        ("bf16", "bf16", 1, 0),
        ("bf16", "fp32", 0, 0),
        ("bf16", "tf32", 0, 2),
    ]
    expected = {(f.name, o.name) for f in FORMATS.values() for m in ACC_MODES for o in [_out(f, m)]}
    assert {(p.fmt.name, p.out.name) for p in ALL} == {item for item in expected if item[1]}


class _None:
    name = None


def _out(fmt: Format, mode: str) -> Format | type[_None]:
    return output_format(fmt, mode) or _None


# -- command -------------------------------------------------------------------------------------


def test_command_prints_and_writes(capsys, tmp_path) -> None:
    arguments = ["--matrix", "random", "--pairs", "int8,fp16:fp32", "--size", "8", "4", "32"]
    where = tmp_path / "figures.json"
    assert accuracy.main([*arguments, "--json", str(where)]) == 0
    shown = capsys.readouterr()
    assert "uniform, 8 x 4 x 32" in shown.out and "sat_hit %" in shown.out
    assert "…" not in shown.out and "sim.accuracy: wide: fp16 to fp32" in shown.err
    figures = json.loads(where.read_text())
    assert len(figures["results"]) == 12 and figures["seed"] == 0
    assert accuracy.main([*arguments, "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out) == figures


def test_infinities_are_null(capsys) -> None:
    arguments = ["--matrix", "random", "--pairs", "fp16:fp16", "--size", "2", "2", "64"]
    assert accuracy.main([*arguments, "--scale", "full", "--json", "-"]) == 0
    (first, *_) = json.loads(capsys.readouterr().out)["results"]
    assert first["not_finite"] > 0 and first["max_error"] is None


@pytest.mark.parametrize("name", ["x.png", "x.svg", "x.pdf"])
def test_plot(capsys, tmp_path, name: str) -> None:
    pytest.importorskip("matplotlib", reason="needs matplotlib: pip install '.[dev]'")
    where = tmp_path / name
    arguments = ["--matrix", "random", "--pairs", "int8,fp16", "--size", "4", "4", "16"]
    assert accuracy.main([*arguments, "--plot", str(where)]) == 0
    start = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}[where.suffix]
    assert where.read_bytes().startswith(start)


def test_digits(capsys) -> None:
    pytest.importorskip("sklearn", reason="needs scikit-learn: pip install '.[dev]'")
    arguments = ["--matrix", "digits", "--pairs", "int8:int16,int8:int32", "--json", "-"]
    assert accuracy.main([*arguments, "--size", "40", "999", "999"]) == 0
    narrow, wide = json.loads(capsys.readouterr().out)["results"]
    assert (narrow["m"], narrow["n"], narrow["k"]) == (40, 64, 64)
    assert narrow["sat_hit"] > 0.05 and narrow["max_error"] > 10 * wide["max_error"]
    assert wide["sat_hit"] == wide["sums_max_error"] == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--matrix", "photos"], "--matrix is one of digits, random, all, not photos"),
        (["--scale", "half"], "--scale is one of auto, full, fit, not half"),
        (["--pairs", ","], "--pairs names no format: give one, such as int8"),
        (["--pairs", "int9"], "--pairs: unknown number format 'int9'"),
        (["--pairs", "0x0f"], "--pairs: Ft code 0x0f is reserved"),
        (["--pairs", "int8:fp32"], "int8 has no output 'fp32': choose one of int8, int16, int32"),
        (["--size", "0", "1", "1"], "--size takes M, N and K of 1 or more"),
        (["--size", "9999", "9999", "9999"], "M * N * K may be at most"),
        (["--size", "1", "x", "1"], "argument --size: invalid int value: 'x'"),
        (["--seed", "-1"], "--seed must be 0 or more"),
        (["--set", "window=bf16:3"], "window[bf16] = 3 is below"),
        (["--plot", "x.gif"], "--plot x.gif: end it in .png, .svg, .pdf"),
        (["--plot", "nowhere/x.png"], "cannot write nowhere/x.png: make the directory"),
        (["--json", "nowhere/x.json"], "cannot write nowhere/x.json: make the directory"),
    ],
)
def test_wrong_requests_are_one_line(capsys, monkeypatch, arguments, message: str) -> None:
    monkeypatch.setattr(accuracy.importlib.util, "find_spec", lambda name: True)
    assert accuracy.main(arguments) == 2
    shown = capsys.readouterr()
    assert message in shown.err and shown.err.count("\n") == 1 and not shown.out


def test_missing_packages_are_named(capsys, monkeypatch) -> None:
    def missing() -> None:
        raise CommandError("needs scikit-learn: pip install '.[demo]'")

    monkeypatch.setattr(digits, "load_images", missing)
    assert accuracy.main(["--pairs", "int8"]) == 2
    expected = "needs scikit-learn: pip install '.[demo]', or use --matrix random\n"
    assert capsys.readouterr().err == f"sim.accuracy: {expected}"
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert accuracy.main(["--matrix", "random", "--plot", "x.png"]) == 2
    assert "--plot needs matplotlib: pip install '.[demo]'" in capsys.readouterr().err


# -- docs/numerics.md ----------------------------------------------------------------------------


def _line(cells: list[object]) -> str:
    return "| " + " | ".join(str(cell) for cell in cells) + " |"


def _range(fmt: Format) -> tuple[str, str]:
    """Largest and smallest positive value."""
    if not fmt.is_float:
        step = Fraction(1, 1 << fmt.frac)
        values = (((1 << fmt.bits - 1) - 1) * step, step)
        return tuple(f"{float(value):.6g}" for value in values)
    smallest = 0 if fmt.specials is Specials.E8M0 else 1
    codes = (place(code, False, fmt) for code in (max_finite(fmt), smallest))
    return tuple(f"{float(from_codes(code, fmt)):.6g}" for code in codes)


def format_lines() -> list[str]:
    """The table of formats, as the code has it."""
    specials = {
        Specials.NONE: "none",
        Specials.IEEE: "Inf, NaN",
        Specials.NAN_TOP: "NaN",
        Specials.E8M0: "NaN, no zero",
    }
    cfg, lines = Config(), []
    for fmt in FORMATS.values():
        container = f"{fmt.container}, top" if fmt.top_aligned else fmt.container
        if fmt.is_float:
            layout = f"E{fmt.exp}M{fmt.man}, bias {fmt.bias}" + ("" if fmt.signed else ", no sign")
            exact = cfg.is_exact(fmt)
            kind = f"exact, {fmt.sum_bits}" if exact else f"window {cfg.window_bits(fmt)}"
        else:
            layout = f"{fmt.frac} fraction bits" if fmt.kind is Kind.FIXED else "integer"
            kind = "exact"
        nan = "" if fmt.canonical_nan is None else f"0x{fmt.canonical_nan:X}"
        cells = [f"0x{fmt.code:02X}", f"`{fmt.name}`", fmt.bits, container, layout, *_range(fmt)]
        lines.append(_line([*cells, specials[fmt.specials] if fmt.is_float else "none", nan, kind]))
    return lines


def output_lines() -> list[str]:
    """The table of outputs, as the code has it."""
    lines = []
    for fmt in FORMATS.values():
        found = [output_format(fmt, mode) for mode in ACC_MODES]
        lines.append(_line([f"`{fmt.name}`", *(f"`{out.name}`" if out else "" for out in found)]))
    return lines


def window_lines() -> list[str]:
    """What BF16's window costs in FP32: exact, then narrower and narrower."""
    cores = [Config(formats=("bf16",), exact_limit=600)]
    cores += [Config(formats=("bf16",), window={"bf16": bits}) for bits in (32, 24, 16)]
    assert cores[1].window_bits(FORMATS["bf16"]) == Config().window_bits(FORMATS["bf16"])
    lines = []
    for kind in accuracy.RANDOM:
        a, b = accuracy.random_matrices(kind, 64, 64, 64, 0)
        results = [accuracy.measure(kind, a, b, pair("bf16:fp32"), cfg) for cfg in cores]
        lines.append(_line([kind, *(f"{result.sums_rms_error:.1e}" for result in results)]))
    return lines


def int16_lines() -> list[str]:
    """When INT16 is enough for INT8: the random rows of that table."""
    lines, cfg = [], Config()
    for kind in ("normal", "uniform"):
        for k in (16, 64, 256):
            a, b = accuracy.random_matrices(kind, 64, 64, k, 0)
            wide = accuracy.measure(kind, a, b, pair("int8:int32"), cfg)
            full = accuracy.measure(kind, a, b, pair("int8:int16"), cfg)
            fit = accuracy.measure(kind, a, b, pair("int8:int16"), cfg, "fit")
            errors = [f"{result.rms_error:.1e}" for result in (wide, full, fit)]
            lines.append(_line([kind, k, errors[0], f"{100 * full.sat_hit:.1f}", *errors[1:]]))
    return lines


def _table(heading: str) -> list[str]:
    """Rows of the first table under a heading of the doc."""
    text = DOC.read_text().split(f"## {heading}\n", 1)[1]
    lines = text[text.index("\n|") + 1 :].split("\n\n", 1)[0].splitlines()
    return lines[2:]


def test_doc_lists_the_formats() -> None:
    assert _table("Formats") == format_lines()


def test_doc_lists_the_outputs() -> None:
    assert _table("Outputs") == output_lines()


def test_doc_says_what_windows_cost() -> None:
    assert _table("Exact and windowed floats") == window_lines()


def test_doc_says_when_int16_is_enough() -> None:
    """Random rows only; those of the digits depend on how scikit-learn trains."""
    shown = [line for line in _table("When INT16 is enough for INT8") if "digits" not in line]
    assert shown == int16_lines()


def test_doc_examples_run() -> None:
    for block in DOC.read_text().split("```python\n")[1:]:
        exec(compile(block.split("```", 1)[0], str(DOC), "exec"), {})
