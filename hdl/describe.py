"""What a Config builds, in figures: geometry, speed, storage, latency and ports."""

from __future__ import annotations

import gc
import warnings
from dataclasses import dataclass
from fractions import Fraction

from amaranth.hdl import Shape, UnusedElaboratable
from amaranth.lib import wiring

from . import isa
from .blocks import Block
from .config import REGISTERS, Config
from .formats import Format
from .interfaces import OPERAND_TILES, transpose_parts
from .issue.decode import Decode
from .issue.slots import Slots
from .mac.pipe import MacPipe, MacTiming
from .mac.plan import FormatPlan, MacPlan
from .tilefile.bank import READS
from .units.lane_plan import expansion, vector_pairs

__all__ = [
    "MmaRow",
    "Pair",
    "PointwiseTiming",
    "Table",
    "VectorRow",
    "describe",
    "format_pairs",
    "macs_per_cycle",
    "mma_rows",
    "port_rows",
    "result_latency",
    "storage_rows",
    "vector_rows",
]


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
    csrs = isa.built_csrs(cfg)
    rows = (
        ("front ends", ", ".join(cfg.frontends)),
        ("tiles", f"{cfg.tiles} of {cfg.rows} rows x {cfg.row_bits} bit, {cfg.accumulators}"),
        (
            "accumulator tiles",
            f"{cfg.tiles} of the same size in a file of their own" if cfg.split else "of these",
        ),
        *((("registers", _register_text(cfg)),) if cfg.xuantie else ()),
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
        (
            "CSRs",
            f"{cfg.csr_base:#x} to {cfg.csr_base + 4:#x}"
            if cfg.ame
            else ", ".join(f"{csr.name.lower()} {cfg.csr_base + csr:#x}" for csr in csrs),
        ),
        *((("CSRs of xuantie", _register_csrs(cfg)),) if cfg.xuantie else ()),
    )
    return Table("Geometry", ("what", "value"), rows)


def _register_text(cfg: Config) -> str:
    text = f"m0 to m{REGISTERS - 1} of {cfg.x_rows} rows x {cfg.row_bits} bit"
    if (cfg.x_tiles, cfg.x_rows) == (1, cfg.rows):
        return f"{text}, the tiles"
    return f"{text}, the first rows of tiles 0, {cfg.x_tiles}, {2 * cfg.x_tiles}, ..."


def _register_csrs(cfg: Config) -> str:
    """Numbers of the CSRs, xmcsr among them, as ranges."""
    ranges: list[list[int]] = []
    for number in sorted({*isa.built_xuantie_csrs(cfg), isa.XMCSR}):
        if ranges and number == ranges[-1][1] + 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    return ", ".join(f"{first:#x} to {last:#x}" for first, last in ranges)


def result_latency(cfg: Config, uop_cycles: int) -> int:
    """Cycles from taking an mmacc whose operands are there to the write of its last result.

    Parameters
    ----------
    uop_cycles : cycles in which its uops start, one after the other.
    """
    return Decode.STAGES + Slots.LATENCY + MacTiming.of(cfg).depth + uop_cycles - 1


def _latency(cfg: Config) -> Table:
    timing = MacTiming.of(cfg)
    rows = (
        ("from the request to its dispatch", Decode.STAGES),
        ("from the dispatch to the first uop", Slots.LATENCY),
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


@dataclass(frozen=True)
class MmaRow:
    """A multiply-accumulate of the front end "xuantie" (isa.md section 1), on whole registers.

    Parameters
    ----------
    instruction : its row of `isa.XUANTIE`.
    operand, output : formats of A and B, and of C.
    b_registers, c_registers : registers that hold B, and C.
    lanes : elements of a row of A and B, the largest K.
    columns : columns of C, the largest N.
    macs_per_cycle : multiply-accumulates a cycle, sustained.
    uop_cycles : cycles of the MAC array. The whole of C is walked, whatever the sizes.
    latency : cycles from taking one to the write of its last result, operands there.
    turns : fewest destinations that instructions must take in turn for an array that never waits.
    """

    instruction: isa.XuanTieInstruction
    operand: Format
    output: Format
    b_registers: int
    c_registers: int
    lanes: int
    columns: int
    macs_per_cycle: int
    uop_cycles: int
    latency: int
    turns: int

    @property
    def operands(self) -> str:
        """Formats of A and B, with their signs."""
        mma, name = self.instruction.mma, self.operand.name
        a, b = (name if signed else f"u{name}" for signed in (mma.a_signed, mma.b_signed))
        return a if a == b else f"{a} x {b}"


def mma_rows(cfg: Config) -> tuple[MmaRow, ...]:
    """Every multiply-accumulate that `cfg` builds for the front end, in the table's order."""
    loop = MacTiming.of(cfg).loop
    rows = []
    for row in isa.built_xuantie(cfg):
        if row.mma is None:
            continue
        operand, output = isa.mma_formats(row, cfg)
        step = cfg.uop_columns(output.container)
        columns = cfg.x_rows * (1 + row.mma.b_pair)
        cycles = cfg.x_blocks * columns // step
        # The next one reads a word of C with its first chunk, W after this one's last chunk.
        again = loop + cfg.lanes(output.container) // step - 1
        rows.append(
            MmaRow(
                instruction=row,
                operand=operand,
                output=output,
                b_registers=1 + row.mma.b_pair,
                c_registers=1 + row.mma.c_pair,
                lanes=cfg.lanes(operand.container),
                columns=columns,
                macs_per_cycle=macs_per_cycle(cfg, operand, output),
                uop_cycles=cycles,
                latency=result_latency(cfg, cycles),
                turns=-(-again // cycles),
            )
        )
    return tuple(rows)


def _mmas(cfg: Config) -> Table:
    plans = {plan.fmt: plan for plan in MacPlan(cfg).formats}
    return Table(
        "Multiply-accumulate of xuantie (B, C: registers of each; latency: issue to result)",
        (
            *("instruction", "operands", "result", "sums", "B", "C"),
            *("K", "N", "MAC/cycle", "uops", "latency"),
        ),
        tuple(
            (
                row.instruction.name,
                row.operands,
                row.output.name,
                _sum_class(plans[row.operand], cfg),
                str(row.b_registers),
                str(row.c_registers),
                str(row.lanes),
                str(row.columns),
                str(row.macs_per_cycle),
                str(row.uop_cycles),
                str(row.latency),
            )
            for row in mma_rows(cfg)
        ),
    )


@dataclass(frozen=True)
class PointwiseTiming:
    """Cycles of the pointwise instructions of the front end "xuantie".

    Parameters
    ----------
    uop_cycles : of one instruction; a uop writes one stored word.
    latency : from taking one to the write of its last result, operands there.
    dependent : from the start of one to that of one that uses its destination.
    scalar : from the start of one with a scalar operand to that of the next such, moves included.
    """

    uop_cycles: int
    latency: int
    dependent: int
    scalar: int

    @classmethod
    def of(cls, cfg: Config) -> PointwiseTiming:
        words = cfg.x_blocks
        return cls(
            uop_cycles=words,
            latency=result_latency(cfg, words),
            dependent=MacTiming.of(cfg).depth + words,
            scalar=Slots.LATENCY + words + MacPipe.operand_stages(cfg),
        )


def _frontend_xuantie(cfg: Config) -> Table:
    point = PointwiseTiming.of(cfg)
    value = isa.xmisa_value(cfg)
    features = [name for name, field in isa.XMISA.items() if field.get(value)]
    rows = (
        ("registers", _register_text(cfg)),
        ("R, rows of a register", str(cfg.x_rows)),
        ("bytes of a row", str(cfg.row_bytes)),
        ("bytes of a register", str(cfg.x_rows * cfg.row_bytes)),
        ("words of a register", f"{cfg.x_blocks} of {cfg.m_par} rows"),
        ("destinations of mma", ", ".join(cfg.mma_destinations)),
        ("xmisa", f"{value:#x}: {', '.join(features)}"),
        (
            "pointwise, elements a cycle",
            f"{cfg.m_par * cfg.lanes(32)} of 32 bit, {cfg.m_par * cfg.lanes(64)} of 64 bit",
        ),
        ("pointwise, uops", str(point.uop_cycles)),
        ("pointwise, issue to result", str(point.latency)),
    )
    return Table("Front end xuantie", ("what", "value"), rows)


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
        *((_pairs(cfg),) if cfg.ame else ()),
        *((_frontend_xuantie(cfg), _mmas(cfg)) if cfg.xuantie else ()),
        *((_vector(cfg),) if cfg.has_vector else ()),
        _latency(cfg),
        _storage(cfg),
        _ports(item, cfg, name),
    )
