"""What a Config builds, in figures: geometry, speed, storage, latency and ports."""

from __future__ import annotations

import gc
import warnings
from dataclasses import dataclass
from fractions import Fraction

from amaranth.hdl import Shape, UnusedElaboratable
from amaranth.lib import wiring

from .blocks import Block
from .config import Config
from .formats import Format
from .interfaces import OPERAND_TILES, transpose_parts
from .issue.decode import Decode
from .mac.pipe import MacTiming
from .mac.plan import FormatPlan, MacPlan
from .tilefile.bank import READS
from .units.lane_plan import expansion, vector_pairs

__all__ = [
    "Pair",
    "Table",
    "VectorRow",
    "describe",
    "format_pairs",
    "macs_per_cycle",
    "port_rows",
    "storage_rows",
    "vector_rows",
]

DISPATCH_TO_UOP = 2
"""Cycles from an instruction's dispatch to the transfer of its first uop (hdl/issue/slots.py)."""


@dataclass(frozen=True)
class Table:
    """One titled table of texts."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Pair:
    """One operand format with one of its outputs.

    Parameters
    ----------
    operand, output : the formats.
    modes : how software selects it: columns of `formats.ACC_MODES`.
    lanes : operand elements of a tile row, K of a full mma.
    macs_per_cycle : multiply-accumulates a cycle, sustained.
    uop_cycles : cycles of the MAC array for one mmacc of whole tiles, 1x1.
    """

    operand: Format
    output: Format
    modes: tuple[str, ...]
    lanes: int
    macs_per_cycle: int
    uop_cycles: int


_MODE_TEXT = {
    "bovf": "bOVF=1",
    "full": "bOVF=0",
    "wide": "ACC=1",
    "tf32": "ACC=2",
    "bf16": "ACC=3",
    "fp64": "fwmmacc.s",
}


def macs_per_cycle(cfg: Config, operand: Format, output: Format) -> int:
    """Multiply-accumulates a cycle, sustained, of one format pair."""
    return cfg.m_par * cfg.uop_columns(output.container) * cfg.lanes(operand.container)


def format_pairs(cfg: Config) -> tuple[Pair, ...]:
    """Every (operand, output) pair that `cfg` builds, each once, in table order."""
    pairs = []
    for operand in cfg.format_rows:
        modes: dict[Format, list[str]] = {}
        for mode, output in cfg.outputs(operand).items():
            modes.setdefault(output, []).append(mode)
        lanes = cfg.lanes(operand.container)
        for output, names in modes.items():
            macs = macs_per_cycle(cfg, operand, output)
            cycles = cfg.blocks * (cfg.rows // cfg.uop_columns(output.container))
            pairs.append(Pair(operand, output, tuple(names), lanes, macs, cycles))
    return tuple(pairs)


def _geometry(cfg: Config) -> Table:
    rows = (
        ("front ends", ", ".join(cfg.frontends)),
        ("tiles", f"{cfg.tiles} of {cfg.rows} rows x {cfg.row_bits} bit, {cfg.accumulators}"),
        (
            "accumulator tiles",
            f"{cfg.tiles} of the same size in a file of their own" if cfg.split else "of these",
        ),
        ("banks", f"{cfg.all_banks} of {cfg.tiles_per_bank} tiles"),
        ("stored word", f"{cfg.m_par} rows, {cfg.word_bits} bit"),
        ("MAC array", f"{cfg.m_par} x {cfg.n_par} sub-arrays of {cfg.row_bits} bit"),
        ("slots", str(cfg.slots)),
        ("formats", ", ".join(row.name for row in cfg.format_rows)),
        ("units", ", ".join(cfg.units) or "none"),
        (
            "L2 port",
            f"{cfg.bus_bits} bit data, {cfg.addr_bits} bit addresses, {cfg.line_bytes}-byte "
            f"lines, {cfg.l2_ids} ids a direction",
        ),
        ("CSRs", f"{cfg.csr_base:#x} to {cfg.csr_base + 4:#x}"),
    )
    return Table("Geometry", ("what", "value"), rows)


def result_latency(cfg: Config, uop_cycles: int) -> int:
    """Cycles from taking an mmacc whose operands are there to the write of its last result.

    Parameters
    ----------
    uop_cycles : cycles in which its uops start, one after the other.
    """
    return Decode.STAGES + DISPATCH_TO_UOP + MacTiming.of(cfg).depth + uop_cycles - 1


def _latency(cfg: Config) -> Table:
    timing = MacTiming.of(cfg)
    rows = (
        ("from the request to its dispatch", Decode.STAGES),
        ("from the dispatch to the first uop", DISPATCH_TO_UOP),
        ("from a uop to the write of its result, every format", timing.depth),
        ("W, from a read of C until a read sees the new value", timing.loop),
    )
    if cfg.transposes:
        uops = cfg.blocks * transpose_parts(cfg)
        rows += (("bTR, before the uops: for each tile of A or of B, whichever has more", uops),)
    return Table("Latency", ("what", "cycles"), tuple((name, str(count)) for name, count in rows))


def _sum_class(plan: FormatPlan, cfg: Config) -> str:
    """How sums of an operand format are held (numerics.md section 1)."""
    kind = f"window {cfg.window_bits(plan.fmt)}" if plan.windowed else "exact"
    return f"{kind}, {plan.sum_bits} bit"


def _pairs(cfg: Config) -> Table:
    plans = {plan.fmt: plan for plan in MacPlan(cfg).formats}
    rows = tuple(
        (
            pair.operand.name,
            pair.output.name,
            " or ".join(_MODE_TEXT[mode] for mode in pair.modes),
            _sum_class(plans[pair.operand], cfg),
            str(pair.lanes),
            str(pair.macs_per_cycle),
            str(pair.uop_cycles),
            str(result_latency(cfg, pair.uop_cycles)),
        )
        for pair in format_pairs(cfg)
    )
    return Table(
        "Format pairs (uop cycles and issue to result: one mmacc of whole tiles, 1x1)",
        (
            *("operands", "result", "selected by", "sums", "K of a row", "MAC/cycle"),
            *("uop cycles", "issue to result"),
        ),
        rows,
    )


@dataclass(frozen=True)
class VectorRow:
    """Vector mode (isa.md section 2) for one format of x and y with one of z.

    Parameters
    ----------
    operand, output : the formats.
    elements : a cycle, sustained.
    uop_cycles : cycles of one operation on a whole tile of x.
    latency : cycles from taking one to the write of its last result, operands there.
    """

    operand: Format
    output: Format
    elements: Fraction
    uop_cycles: int
    latency: int


def vector_rows(cfg: Config) -> tuple[VectorRow, ...]:
    """The pairs of vector mode: a uop writes one stored word of z."""
    rows = []
    for operand, output in vector_pairs(cfg):
        words = expansion(operand, output)
        cycles = cfg.blocks * words
        elements = Fraction(cfg.m_par * cfg.lanes(operand.container), words)
        rows.append(VectorRow(operand, output, elements, cycles, result_latency(cfg, cycles)))
    return tuple(rows)


def _vector(cfg: Config) -> Table:
    return Table(
        "Vector mode (uop cycles and issue to result: one operation on a whole tile)",
        ("x and y", "z", "elements/cycle", "uop cycles", "issue to result"),
        tuple(
            (
                row.operand.name,
                row.output.name,
                str(row.elements),
                str(row.uop_cycles),
                str(row.latency),
            )
            for row in vector_rows(cfg)
        ),
    )


def storage_rows(cfg: Config) -> tuple[tuple[str, int], ...]:
    """What the core's memories hold, in bits."""
    tile = cfg.rows * cfg.row_bits
    rows = (
        ("tile registers", cfg.all_tiles * tile),
        (f"memories for them ({READS} copies, one a read port)", READS * cfg.all_tiles * tile),
    )
    if cfg.transposes:
        rows += (("memories for transposes of A and of B", 2 * OPERAND_TILES * tile),)
    return rows


def _storage(cfg: Config) -> Table:
    rows = tuple((name, f"{bits:,}", f"{bits // 8:,}") for name, bits in storage_rows(cfg))
    return Table("Storage", ("what", "bits", "bytes"), rows)


def port_rows(item: Block, cfg: Config) -> tuple[tuple[str, str, int], ...]:
    """Name, direction and width of each port of the emitted module, clock and reset first."""
    with warnings.catch_warnings():
        # The component is built for its signature alone, which Amaranth takes for a mistake.
        warnings.simplefilter("ignore", UnusedElaboratable)
        component = item.build(cfg)
        rows = [("clk", "input", 1), ("rst", "input", 1)]
        for path, member, _ in component.signature.flatten(component):
            direction = "input" if member.flow == wiring.In else "output"
            rows.append(("__".join(map(str, path)), direction, Shape.cast(member.shape).width))
        del component
        gc.collect()
    return tuple(rows)


def _ports(item: Block, cfg: Config, name: str) -> Table:
    rows = tuple((port, direction, str(bits)) for port, direction, bits in port_rows(item, cfg))
    return Table(f"Ports of {name}", ("port", "direction", "bits"), rows)


def describe(cfg: Config, item: Block, name: str) -> tuple[Table, ...]:
    """Everything `--describe` shows of a core, with the ports of the block `item` called `name`."""
    return (
        _geometry(cfg),
        _pairs(cfg),
        *((_vector(cfg),) if cfg.has_vector else ()),
        _latency(cfg),
        _storage(cfg),
        _ports(item, cfg, name),
    )
