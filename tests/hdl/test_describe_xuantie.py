"""hdl.top --describe of cores with the front end xuantie: figures against the RTL, and the text."""

from __future__ import annotations

import functools
import re

import pytest

from hdl import isa, top
from hdl.config import Config, preset
from hdl.describe import PointwiseTiming, describe, mma_rows, result_latency
from hdl.mac.pipe import MacTiming
from sim.engines.pysim import PySimulator
from sim.program_xuantie import XuanTieBuilder

MXU8 = Config(
    name="eight",
    frontends=("xuantie",),
    tiles=8,
    rows=8,
    row_bits=256,
    formats=("int4", "int8", "int16", "fp16", "fp32", "fp64"),
)
LITTLE = Config(
    name="little",
    frontends=("xuantie",),
    tiles=8,
    rows=4,
    row_bits=128,
    m_par=2,
    n_par=1,
    formats=("int8", "int16"),
)
"""For the slow engine; a word of C takes four chunks, the last of which delay the next reader."""

FENCE_ANSWERS = 4  # cycles from the last write to the fence's response


def shown(cfg: Config) -> dict[str, list[tuple[str, ...]]]:
    """Rows of every table but that of the ports, by the first words of its title."""
    tables = describe(cfg, top.BLOCKS["bank"], "bank")[:-1]
    return {table.title.partition(" (")[0]: [*table.rows] for table in tables}


def by_name(cfg: Config):
    return {row.instruction.name: row for row in mma_rows(cfg)}


# -- tables ----------------------------------------------------------------------------------------


def test_every_instruction_has_its_line() -> None:
    """isa.md section 1: which registers each works on, and its rate."""
    rows = by_name(MXU8)
    assert set(rows) == {row.name for row in isa.XUANTIE if row.mma}
    macs = MXU8.m_par * MXU8.n_par * MXU8.row_bits
    for name, operands, output, registers, columns, rate, uops in (
        ("fmmacc.h", "fp16", "fp16", (2, 1), 16, macs // 16, 8),
        ("fmmacc.s", "fp32", "fp32", (1, 1), 8, macs // 32, 4),
        ("fmmacc.d", "fp64", "fp64", (1, 2), 8, macs // 64, 4),
        ("fwmmacc.h", "fp16", "fp32", (1, 1), 8, macs // 16, 4),
        ("fwmmacc.s", "fp32", "fp64", (1, 2), 8, macs // 32, 4),
        ("mmaqa.b", "int8", "int32", (1, 1), 8, macs // 8, 4),
        ("mmaqau.h", "uint16", "int64", (1, 2), 8, macs // 16, 4),
        ("mmaqaus.b", "uint8 x int8", "int32", (1, 1), 8, macs // 8, 4),
        ("pmmaqasu.b", "int4 x uint4", "int32", (1, 1), 8, macs // 4, 4),
    ):
        row = rows[name]
        assert (row.operands, row.output.name) == (operands, output), name
        assert (row.b_registers, row.c_registers) == registers, name
        assert (row.columns, row.macs_per_cycle, row.uop_cycles) == (columns, rate, uops), name
        assert row.latency == result_latency(MXU8, uops), name
    narrow = by_name(MXU8.replace(row_bits=128, rows=4, n_par=4))
    # Rows of 128 bits hold two results of 64: fewer columns a uop.
    assert (narrow["fmmacc.d"].macs_per_cycle, narrow["fmmacc.d"].uop_cycles) == (16, 2)


def test_only_what_is_built_is_shown() -> None:
    cfg = MXU8.replace(formats=("int8", "bf16"), xuantie_bf16=True)
    rows = by_name(cfg)
    assert set(rows) == {
        *(f"mmaqa{sign}.b" for sign in ("", "u", "us", "su")),
        *("fmmacc.h", "fwmmacc.h"),
    }
    assert rows["fmmacc.h"].operands == "bf16"
    facts = dict(shown(cfg)["Front end xuantie"])
    assert facts["xmisa"].split(": ")[1].split(", ") == [
        *("i8", "f16", "pointwise64", "pointwise32", "f16_f32")
    ]
    assert facts["xmisa"].startswith(f"{isa.xmisa_value(cfg):#x}:")


def test_geometry_names_registers_and_csrs() -> None:
    geometry = dict(shown(MXU8)["Geometry"])
    assert geometry["registers"] == "m0 to m7 of 8 rows x 256 bit, the tiles"
    assert geometry["CSRs of xuantie"] == "0x801 to 0x803, 0xcc0 to 0xcc4"
    assert geometry["CSRs"] == "mxstatus 0x7c2"
    both = shown(preset("full"))
    geometry = dict(both["Geometry"])
    assert geometry["registers"].endswith("4 rows x 128 bit, the first rows of tiles 0, 4, 8, ...")
    assert geometry["CSRs"] == "0x7c0 to 0x7c4"
    assert {"Format pairs", "Front end xuantie", "Multiply-accumulate of xuantie"} <= set(both)
    assert "Format pairs" not in shown(MXU8)
    facts = dict(shown(MXU8.replace(mma_destinations=("m0", "m4")))["Front end xuantie"])
    assert facts["destinations of mma"] == "m0, m4"
    assert (facts["R, rows of a register"], facts["bytes of a row"]) == ("8", "32")


def test_nothing_of_it_without_the_front_end() -> None:
    tables = shown(preset("tiny"))
    assert not any("xuantie" in title for title in tables)
    assert not {"registers", "CSRs of xuantie"} & set(dict(tables["Geometry"]))


def test_command(capsys) -> None:
    assert top.main(["--describe", "--preset", "mxu8", "--block", "bank"]) == 0
    out = capsys.readouterr().out
    for row in mma_rows(preset("mxu8")):
        (line,) = re.findall(rf"^ *{re.escape(row.instruction.name)} .*$", out, re.MULTILINE)
        assert [int(word) for word in line.split()[-3:]] == [
            *(row.macs_per_cycle, row.uop_cycles, row.latency)
        ]
    assert "…" not in out and max(map(len, out.splitlines())) <= 120


# -- against the RTL -------------------------------------------------------------------------------


@functools.cache
def simulator() -> PySimulator:
    return PySimulator(LITTLE)


def cycles(*instructions: tuple[str, tuple[int, ...]]) -> int:
    """From the first one's request to the answer of the fence behind them."""
    builder = XuanTieBuilder.of(LITTLE)
    builder.sizes(LITTLE.x_rows, LITTLE.x_rows, LITTLE.row_bytes)
    builder.program.mfence()
    first = len(builder.program)
    for name, operands in instructions:
        builder.emit(name, *operands)
    builder.program.mfence()
    result = simulator().run(builder.program)
    assert not any(response.error for response in result.responses)
    return result.responses[-1].cycle - result.request_cycles[first]


@pytest.mark.parametrize("name", ["mmaqa.b", "mmaqa.h"])
def test_latency_is_what_the_rtl_shows(name: str) -> None:
    row = by_name(LITTLE)[name]
    assert cycles((name, (4, 2, 0))) == row.latency + FENCE_ANSWERS


def steady(instructions: list[tuple[str, tuple[int, ...]]]) -> float:
    """Cycles of one instruction more, these in turn."""
    few, many = (cycles(*instructions * count) for count in (4, 8))
    return (many - few) / (4 * len(instructions))


def test_turns_are_as_few_as_can_be() -> None:
    """With as many destinations the array never waits, with one fewer it does."""
    row = by_name(LITTLE)["mmaqa.b"]
    chunks = LITTLE.lanes(32) // LITTLE.n_par
    assert row.uop_cycles >= MacTiming.of(LITTLE).loop, "W alone would allow one destination"
    assert chunks > 1 and 1 < row.turns <= 6

    def with_turns(count: int) -> float:
        return steady([("mmaqa.b", (2 + index, 1, 0)) for index in range(count)])

    assert with_turns(row.turns) == row.uop_cycles
    assert with_turns(row.turns - 1) > row.uop_cycles
    assert with_turns(1) == MacTiming.of(LITTLE).loop + chunks - 1


def test_pointwise_cycles_are_what_the_rtl_shows() -> None:
    point = PointwiseTiming.of(LITTLE)
    assert cycles(("madd.s.mm", (4, 1, 0))) == point.latency + FENCE_ANSWERS
    for name, operands in (("mmul.s.mm", (1, 0)), ("msra.d.mv.i", (1, 0, 3))):
        assert steady([(name, (4 + index, *operands)) for index in range(4)]) == point.uop_cycles
    assert steady([("madd.s.mm", (4, 4, 4))]) == point.dependent
    for name, operands in (("madd.s.mx", (1, 8)), ("mmov.mx", (8,))):
        assert steady([(name, (4 + index, *operands)) for index in range(4)]) == point.scalar
