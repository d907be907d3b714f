"""The MAC array on integers and Q formats against plain Python arithmetic."""

from __future__ import annotations

import os
import random

import pytest
from mac_bench import Uop, run

from hdl.config import Config
from hdl.emit import verilog_text
from hdl.formats import outputs
from hdl.mac.array import MacArray
from hdl.mac.plan import MacPlan

SEED = int(os.environ.get("TEST_SEED", "20250919"))
INEXACT, SAT_HIT = 1, 2


def code_to_int(code: int, bits: int, *, is_unsigned: bool = False) -> int:
    code &= (1 << bits) - 1
    return code if is_unsigned or not code >> (bits - 1) else code - (1 << bits)


def shift_right(value: int, n: int, rnd: int) -> int:
    """value / 2^n rounded by RND code: nearest even, up, down, to zero."""
    low = value >> n
    rest = value - (low << n)
    if rest == 0:
        return low
    half = 1 << (n - 1)
    if rnd == 0:
        return low + (rest > half or (rest == half and low & 1))
    if rnd == 3:
        return low + (value < 0)
    return low + (rnd == 1)


def expect(src, out, op, a_row: int, b_row: int, c_code: int) -> tuple[int, int]:
    """Container and flags of one element."""
    w = src.container
    total = 0
    for i in range(op["k"]):
        a = code_to_int(a_row >> (i * w), src.bits, is_unsigned=bool(op["a_unsigned"]))
        b = code_to_int(b_row >> (i * w), src.bits, is_unsigned=bool(op["b_unsigned"]))
        total += a * b
    if op["negate"]:
        total = -total
    shift = 2 * src.frac - out.frac
    if not op["overwrite"]:
        total += code_to_int(c_code, out.bits) << shift
    if src.bits == 64:
        total = code_to_int(total, 64 + shift)
    flags = INEXACT if total & ((1 << shift) - 1) else 0
    value = shift_right(total, shift, op["rnd"]) if shift else total
    low, high = -(1 << (out.bits - 1)), (1 << (out.bits - 1)) - 1
    if op["sat"] and not low <= value <= high:
        value = low if value < low else high
        flags |= SAT_HIT
    value = code_to_int(value, out.bits)
    return value & ((1 << out.container) - 1), flags


def random_row(rng: random.Random, bits: int, row_bits: int) -> int:
    """A row whose codes are random, or extreme, or all alike."""
    style = rng.randrange(5)
    lanes = row_bits // bits
    top = 1 << (bits - 1)
    row = 0
    for i in range(lanes):
        if style < 2:
            code = rng.getrandbits(bits)
        elif style == 2:
            code = rng.choice((top, top - 1, 0, (1 << bits) - 1, 1))
        elif style == 3:
            code = top
        else:
            code = rng.getrandbits(bits) >> rng.randrange(bits)
        row |= code << (i * bits)
    return row


def random_uop(rng: random.Random, cfg: Config) -> tuple[Uop, object, object]:
    src = rng.choice(cfg.format_rows)
    out = rng.choice(list(outputs(src).values()))
    columns = cfg.uop_columns(out.container)
    chunk_bytes = columns * out.container // 8
    may_be_unsigned = src.is_integer and src.bits in (4, 8, 16)
    op = {
        "ft": cfg.format_rows.index(src),
        "out": cfg.output_formats.index(out),
        "k": rng.choice((1, cfg.lanes(src.container), rng.randint(1, cfg.lanes(src.container)))),
        "negate": rng.getrandbits(1),
        "overwrite": rng.random() < 0.25,
        "sat": rng.getrandbits(1) if src.bits < 64 else 0,
        "rnd": rng.randrange(4),
        "a_unsigned": may_be_unsigned and rng.random() < 0.3,
        "b_unsigned": may_be_unsigned and rng.random() < 0.3,
        "rows": rng.getrandbits(cfg.m_par),
        "cols": rng.getrandbits(columns),
        "c_byte": rng.randrange(cfg.row_bytes // chunk_bytes) * chunk_bytes,
    }
    rows = [[random_row(rng, src.container, cfg.row_bits) for _ in range(n)]
            for n in (cfg.m_par, cfg.n_par)]  # fmt: skip
    c = [random_row(rng, out.container, cfg.row_bits) for _ in range(cfg.m_par)]
    return Uop(op, *rows, c), src, out


def check(dut, cases, results) -> None:
    for number, ((uop, src, out), (d, flags)) in enumerate(zip(cases, results, strict=True)):
        cfg, op = dut.cfg, uop.op
        columns = cfg.uop_columns(out.container)
        where = f"seed {SEED} uop {number} {src.name} -> {out.name} {op}"
        flags_expected = 0
        for i in range(cfg.m_par):
            for j in range(columns):
                if not (op["rows"] >> i & op["cols"] >> j & 1):
                    continue
                c_code = uop.c[i] >> (8 * op["c_byte"] + j * out.container)
                value, bits = expect(src, out, op, uop.a[i], uop.b[j], c_code)
                flags_expected |= bits
                for copy in range(cfg.row_bits // (columns * out.container)):
                    at = (copy * columns + j) * out.container
                    got = d[i] >> at & ((1 << out.container) - 1)
                    assert got == value, f"{where}: row {i} column {j} copy {copy}"
        assert flags == flags_expected, where


CONFIGS = {
    "narrow": Config(m_par=2, n_par=2, formats=("int4", "q2_5", "int12", "q4_8")),
    "wide": Config(m_par=4, n_par=4, formats=("int16", "int32", "q16_16")),
    "int64": Config(m_par=4, n_par=4, formats=("int64", "q32_32")),
    "int8": Config(),
    "int8_2x1": Config(m_par=2, n_par=1),
    "int8_2x2_64": Config(m_par=2, n_par=2, row_bits=64, bus_bits=64, line_bytes=32),
    "int8_1x1_256": Config(m_par=1, n_par=1, row_bits=256),
    "int8_1x1_64": Config(m_par=1, n_par=1, row_bits=64, bus_bits=64, line_bytes=32),
}


@pytest.mark.parametrize("name", CONFIGS)
@pytest.mark.parametrize("gaps", [0.0, 0.4])
def test_random_uops(name, gaps):
    cfg = CONFIGS[name]
    rng = random.Random(f"{SEED} {name} {gaps}")
    dut = MacArray(cfg)
    count = 60 if cfg.m_par * cfg.n_par > 4 else 250
    cases = [random_uop(rng, cfg) for _ in range(count)]
    check(dut, cases, run(dut, [case[0] for case in cases], rng, gaps))


def test_sizes_are_stated():
    for cfg in CONFIGS.values():
        plan = MacPlan(cfg)
        assert plan.c_delay >= plan.MIN_C_DELAY
        assert plan.latency - plan.c_delay <= 11
    assert (MacPlan(Config()).c_delay, MacPlan(Config()).latency) == (5, 9)


def test_verilog_has_no_empty_wires():
    cfg = Config(m_par=1, n_par=1, formats=("ue8m0", "fp4_e1m2", "int16"))
    assert "[-1:0]" not in verilog_text(MacArray(cfg), "top")
