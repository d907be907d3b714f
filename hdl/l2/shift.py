"""Byte-wise building blocks of the pipes: a rotator, masks and where a row lies in its beats."""

from __future__ import annotations

from dataclasses import dataclass

from amaranth.hdl import C, Cat, Module, Mux, Signal, Value
from amaranth.lib import data

from ..config import Config

__all__ = [
    "Beats",
    "beats_of",
    "bytes_from",
    "bytes_upto",
    "bytes_wrapped",
    "rotate_left",
    "rotate_right",
]


def _rotate(m: Module, value: Value, amount: Value, unit: int, name: str, left: bool) -> Signal:
    steps = len(value) // unit
    for stage in range(steps.bit_length() - 1):
        moved = (steps - (1 << stage) if left else 1 << stage) * unit
        turned = Signal(len(value), name=f"{name}_{stage}")
        m.d.comb += turned.eq(Mux(amount[stage], Cat(value[moved:], value[:moved]), value))
        value = turned
    return value


def rotate_left(m: Module, value: Value, amount: Value, *, unit: int = 8, name: str) -> Signal:
    """`value` with unit i moved to unit i + amount, modulo its size (a power of two of units)."""
    return _rotate(m, value, amount, unit, name, True)


def rotate_right(m: Module, value: Value, amount: Value, *, unit: int = 8, name: str) -> Signal:
    """`value` with unit i moved to unit i - amount, modulo its size (a power of two of units)."""
    return _rotate(m, value, amount, unit, name, False)


def _mask(first: Value, count: int) -> list[Value]:
    """Bits of `bytes_from`, as gates: a small LUT each where comparisons take a carry chain."""
    bits: list[Value] = [C(1, 1)]
    for upper in first[: count.bit_length() - 1]:
        # Twice as many bytes: `upper` says in which half the mask begins.
        bits = [bit & ~upper for bit in bits] + [bit | ~upper for bit in bits]
    return bits


def bytes_from(first: Value, count: int) -> Value:
    """Mask of `count` bytes, a power of two, with those at `first` and above set."""
    return Cat(_mask(first, count))


def bytes_upto(last: Value, count: int) -> Value:
    """Mask of `count` bytes, a power of two, with those up to `last`, inclusive, set."""
    return Cat(reversed(_mask(~last, count)))


def bytes_wrapped(offset: Value, count: int) -> Value:
    """Mask of `count` bytes, a power of two, with the highest `offset` of them set."""
    return Cat(~bit for bit in reversed(_mask(offset, count)))


@dataclass(frozen=True)
class Beats:
    """Where a part lies, in beats counted from the one in which its row starts.

    `offset`: byte of that beat where the row starts, so how far bytes are rotated on the bus.
    `first`, `last`: beats of the part's first and last byte; `last` is the row's beats only when
    an unaligned row ends in the beat where the next row of a burst starts.
    """

    offset: Signal
    first: Signal
    last: Signal


def beats_of(m: Module, cfg: Config, uop: data.View, *, name: str = "part") -> Beats:
    """The beats of a `ldst_uop`."""
    bus_log2 = cfg.bus_bytes_log2
    count = cfg.row_bytes // cfg.bus_bytes
    beats = Beats(
        Signal(bus_log2, name=f"{name}_offset"),
        Signal(range(count + 1), name=f"{name}_first"),
        Signal(range(count + 1), name=f"{name}_last"),
    )
    # One subtraction gives both: the row starts in the beat before if there is a borrow.
    distance = Signal(bus_log2 + 1, name=f"{name}_distance")
    m.d.comb += [
        distance.eq(uop.addr[:bus_log2] - uop.first[:bus_log2]),
        beats.offset.eq(distance),
        beats.first.eq((uop.first >> bus_log2) + distance[-1]),
        beats.last.eq((beats.offset + uop.last) >> bus_log2),
    ]
    return beats
