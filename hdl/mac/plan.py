"""Every size of the MAC array, worked out from the formats that a Config builds (pure Python)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from ..config import Config
from ..formats import Format, Kind, outputs
from .tree import SumTree

__all__ = ["FormatPlan", "MacPlan", "Pair", "Slot"]


def _log2_ceil(count: int) -> int:
    return (count - 1).bit_length()


@dataclass(frozen=True)
class FormatPlan:
    """How one operand format is multiplied and summed.

    Parameters
    ----------
    fmt : its row in the format table.
    index : its place in `Config.format_rows`.
    lanes : elements of a row.
    operand_bits : width of a decoded two's complement operand.
    product_bits, sum_bits : widths of a product and of the sum; a format without a wider output
        sums modulo 2^sum_bits.
    modular : the sum wraps, so overflow of the output cannot be told.
    """

    fmt: Format
    index: int
    lanes: int
    operand_bits: int
    product_bits: int
    sum_bits: int
    modular: bool = False

    @classmethod
    def of(cls, cfg: Config, index: int, fmt: Format) -> FormatPlan:
        lanes = cfg.lanes(fmt.container)
        modular_bits = _modular_bits(fmt)
        operand_bits = fmt.bits + 1  # 2^n - 1 where operands may be unsigned
        product_bits = 2 * fmt.bits + 1  # (2^n - 1)^2 with its sign
        sum_bits = product_bits + _log2_ceil(lanes)
        if modular_bits:
            product_bits = min(product_bits, modular_bits)
            sum_bits = modular_bits
        return cls(fmt, index, lanes, operand_bits, product_bits, sum_bits, bool(modular_bits))


def _modular_bits(fmt: Format) -> int:
    """Width of the modular sum of a format without a wider output (numerics.md 1), or 0."""
    if fmt.kind is Kind.FLOAT or fmt.bits < 64:
        return 0
    return fmt.bits + fmt.frac


@dataclass(frozen=True)
class Pair:
    """An operand format and one of its outputs.

    Parameters
    ----------
    src : the operand format's plan.
    out : the output format.
    shift : fraction bits that the output drops (Q), to be rounded off the sum.
    """

    src: FormatPlan
    out: Format
    shift: int


@dataclass(frozen=True)
class Slot:
    """One multiplier's place in a row: the lanes of several formats that start at bit `lsb`."""

    lsb: int
    formats: tuple[FormatPlan, ...]

    @property
    def operand_bits(self) -> int:
        return max(f.operand_bits for f in self.formats)

    @property
    def product_bits(self) -> int:
        return max(f.product_bits for f in self.formats)

    def lane(self, f: FormatPlan) -> int:
        """Number of the lane of format `f` that this slot multiplies."""
        return self.lsb // f.fmt.container


class MacPlan:
    """Sizes and latencies of the MAC array of one Config.

    Lanes of all widths share multipliers: a slot stands at every multiple of the narrowest
    container, and a format of a wider container uses every second, fourth, ... slot.
    """

    def __init__(self, cfg: Config):
        self.cfg = cfg
        self.formats = tuple(FormatPlan.of(cfg, i, f) for i, f in enumerate(cfg.format_rows))

    # -- slots -------------------------------------------------------------------------------

    @cached_property
    def slots(self) -> tuple[Slot, ...]:
        pitch = min(f.fmt.container for f in self.formats)
        return tuple(
            Slot(lsb, tuple(f for f in self.formats if lsb % f.fmt.container == 0))
            for lsb in range(0, self.cfg.row_bits, pitch)
        )

    @cached_property
    def sum_bits(self) -> int:
        return max(f.sum_bits for f in self.formats)

    # -- outputs -----------------------------------------------------------------------------

    @cached_property
    def outputs(self) -> tuple[Format, ...]:
        return self.cfg.output_formats

    @cached_property
    def pairs(self) -> tuple[Pair, ...]:
        """Every (operand format, output) once, in table order."""
        found = {}
        for f in self.formats:
            for out in outputs(f.fmt).values():
                found[f.fmt.name, out.name] = Pair(f, out, 2 * f.fmt.frac - out.frac)
        return tuple(found.values())

    @cached_property
    def shifts(self) -> tuple[int, ...]:
        """The different `Pair.shift`, ascending."""
        return tuple(sorted({pair.shift for pair in self.pairs}))

    @cached_property
    def out_bits(self) -> int:
        """Widest output container."""
        return max(out.container for out in self.outputs)

    @cached_property
    def out_containers(self) -> tuple[int, ...]:
        return tuple(sorted({out.container for out in self.outputs}))

    @cached_property
    def frame_bits(self) -> int:
        """Width of the sum with C: exact, so that overflow of every output can be told."""
        widths = []
        for pair in self.pairs:
            if pair.src.modular:
                widths.append(pair.src.sum_bits)
            else:
                widths.append(max(pair.src.sum_bits, pair.out.bits + pair.shift) + 1)
        return max(widths)

    # -- latency -----------------------------------------------------------------------------

    C_READ_STAGES = 2
    """Stages from a sampled C row to its elements (see chunk.py)."""

    MIN_C_DELAY = 2
    """Cycles that a C read needs from the start of its uop (address, then memory)."""

    @cached_property
    def sum_latency(self) -> int:
        """Cycles from start to the row sum: decode, multiply, tree."""
        return 1 + 1 + SumTree.latency_of(len(self.slots))

    @cached_property
    def sum_wait(self) -> int:
        """Cycles that the sum waits for C, so that C is never read too early."""
        return max(0, self.MIN_C_DELAY + self.C_READ_STAGES - self.sum_latency)

    @cached_property
    def accumulate_age(self) -> int:
        """Cycle, counted from start, in which the sum meets C."""
        return self.sum_latency + self.sum_wait

    @cached_property
    def c_delay(self) -> int:
        """Cycles from start until the C word is sampled."""
        return self.accumulate_age - self.C_READ_STAGES

    @cached_property
    def accumulate_latency(self) -> int:
        """Cycles from the sum to its unregistered result: add C, and round where outputs are."""
        return 1 if self.shifts == (0,) else 2

    @cached_property
    def latency(self) -> int:
        """Cycles from start to the registered result."""
        return self.accumulate_age + self.accumulate_latency + 1
