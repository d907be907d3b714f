"""Every size and age of the MAC array, worked out from the formats that a Config builds.

Pure Python. Ages are cycles counted from the start of a uop: what has age n is there, usually in a
register, n cycles after `start`.

Number axis. All products of a uop meet on one fixed-point axis. A float product's exponent is the
sum of its operands' biased exponents. Each float format has an axis of its own, whose bit 0 is the
smallest product's lowest bit (exact formats), or has the weight 2^(E-F) of numerics.md section 1
(windowed ones). It is lifted onto the common axis so that the formats' largest exponents stand at
one place: products of all formats enter a shifter alike, and are shifted down by what their
exponent lacks. Integers stand at one place as they are.

Frame. The sum meets C in a frame that has bits below the axis (for a C that is finer than the sum)
and above it (for one that is coarser), as many as rounding can ever see.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from ..config import Config
from ..formats import Format
from .multiply import Multiplier
from .tree import SumTree

__all__ = ["FormatPlan", "MacPlan", "Pair", "Slot", "on_one_axis"]


def _log2_ceil(count: int) -> int:
    return (count - 1).bit_length()


def _signed_bits(low: int, high: int) -> int:
    """Width of a two's complement number from `low` to `high`."""
    return max(high, -low - 1, 0).bit_length() + 1


@dataclass(frozen=True)
class FormatPlan:
    """How one operand format is multiplied and summed.

    Parameters
    ----------
    fmt : its row in the format table.
    index : its place in `Config.format_rows`.
    lanes : elements of a row.
    operand_bits : width of a decoded two's complement significand.
    product_bits, term_bits, sum_bits : widths of a product, of a product on the axis and of the
        sum. A format without a wider output sums modulo 2^sum_bits.
    modular : the sum wraps, so overflow of the output cannot be told.
    windowed : a float whose axis hangs below the largest product.
    offset : place on the format's own axis of the lowest bit of the largest product (the one with
        the largest exponents).
    lift : place on the common axis of bit 0 of the format's own.
    weight : weight (log2) of bit 0 of the common axis; E, as the sum of two biased exponents,
        comes on top for windowed formats.
    """

    fmt: Format
    index: int
    lanes: int
    operand_bits: int
    product_bits: int
    term_bits: int
    sum_bits: int
    modular: bool = False
    windowed: bool = False
    offset: int = 0
    lift: int = 0
    weight: int = 0

    @classmethod
    def of(cls, cfg: Config, index: int, fmt: Format) -> FormatPlan:
        lanes = cfg.lanes(fmt.container)
        growth = _log2_ceil(lanes)
        if not fmt.is_float:
            operand_bits = fmt.bits + 1  # 2^n - 1 where unsigned, and the negative of -2^(n-1)
            product_bits = 2 * fmt.bits + 1  # (2^n - 1)^2 with its sign
            modular = fmt.bits >= 64
            if modular:  # no wider output: sums wrap (numerics.md section 1)
                product_bits = fmt.bits + fmt.frac
            total = product_bits + (0 if modular else growth)
            return cls(fmt, index, lanes, operand_bits, product_bits, product_bits, total, modular)
        significand = fmt.man + 1
        magnitude = 2 * significand if significand > 1 else 1
        windowed = not cfg.is_exact(fmt)
        if windowed:
            window = cfg.window_bits(fmt)
            offset = window - 2 * fmt.man
            weight = -2 * fmt.bias - window
        else:
            offset = 2 * (fmt.exp_max - fmt.exp_min)
            weight = 2 * (fmt.exp_min - fmt.bias - fmt.man)
        term_bits = offset + magnitude + 1
        return cls(
            fmt,
            index,
            lanes,
            operand_bits=significand + 1,
            product_bits=magnitude + 1,
            term_bits=term_bits,
            sum_bits=term_bits + growth,
            windowed=windowed,
            offset=offset,
            weight=weight,
        )

    def lifted(self, lift: int) -> FormatPlan:
        """The same format with its axis `lift` places up on the common one."""
        return replace(self, lift=lift, weight=self.weight - lift)

    @property
    def unit(self) -> int:
        """Place on the format's own axis of a product of two ones with the largest exponents."""
        return self.offset + 2 * self.fmt.man

    @property
    def most_shift(self) -> int:
        """How far a float product is shifted down at most while some of it stays."""
        return self.unit + 1 if self.windowed else self.offset

    @property
    def top(self) -> int:
        """Width of the sum on the common axis."""
        return self.lift + self.sum_bits

    @property
    def anchor(self) -> int:
        """Largest sum of two biased exponents, the constant E of an exact format; 0 for others."""
        return 0 if self.windowed or not self.fmt.is_float else 2 * self.fmt.exp_max


@dataclass(frozen=True)
class Pair:
    """An operand format and one of its outputs.

    Parameters
    ----------
    src : the operand format's plan.
    out : the output format.
    """

    src: FormatPlan
    out: Format

    @property
    def shift(self) -> int:
        """Fraction bits that the output drops (Q), to be rounded off the sum."""
        return 2 * self.src.fmt.frac - self.out.frac

    @property
    def c_place(self) -> int:
        """Place on the axis of the lowest bit of a C whose biased exponent is 0 (floats).

        For windowed formats E, as the sum of two biased exponents, is to be taken off.
        """
        return -self.out.bias - self.out.man - self.src.weight

    @property
    def bits_below(self) -> int:
        """Frame bits below the axis: significand, two guard bits, or what C can reach."""
        if not self.out.is_float:
            return 0
        most = self.out.man + 3 - self.src.lift
        return max(0, most if self.needs_sticky else min(most, self._c_reach))

    @property
    def _c_reach(self) -> int:
        """Places below the axis of the lowest bit of C (not of windowed formats)."""
        return -(self.c_place + self.out.exp_min)

    @property
    def bits_above(self) -> int:
        """Frame bits above the format's sum."""
        if not self.out.is_float:
            return max(1, self.out.bits + self.shift + 1 - self.src.sum_bits)
        most = self.out.man + 4
        if self.src.windowed:
            return most
        top = self.c_place + self.out.exp_max + self.out.man + 1  # first place above C
        return min(most, max(1, top + 2 - self.src.top))

    @property
    def needs_sticky(self) -> bool:
        """Whether C can lie too low for the frame."""
        if not self.out.is_float:
            return False
        return self.src.windowed or self._c_reach >= self.out.man + 3 - self.src.lift

    @property
    def dominated_from(self) -> int:
        """Places on the axis from which on C needs no more of the sum than its sign."""
        return self.src.top + 2


@dataclass(frozen=True)
class Slot:
    """One multiplier's place in a row: the lanes of several formats that start at bit `lsb`.

    Parameters
    ----------
    lsb : in a row.
    formats : those that are multiplied here.
    split : the widest float's products are too wide for the shifter that the other formats need:
        their low half is aligned and summed by another slot, which that format leaves idle.
    guest : the format whose low halves this slot takes.
    """

    lsb: int
    formats: tuple[FormatPlan, ...]
    split: bool = False
    guest: FormatPlan | None = None

    @cached_property
    def operand_bits(self) -> int:
        return max(*(f.operand_bits for f in self.formats), self.significand_bits + 1)

    @cached_property
    def significand_bits(self) -> int:
        """Width of a float's significand; narrower ones stand at its top. 0 without floats."""
        return max((f.fmt.man + 1 for f in self.floats), default=0)

    @cached_property
    def magnitude_bits(self) -> int:
        """Width of the magnitude of a float product."""
        return 2 * self.significand_bits if self.significand_bits > 1 else 1

    @cached_property
    def product_bits(self) -> int:
        """Width of a product, which has its sign on top."""
        integers = [f.product_bits for f in self.formats if not f.fmt.is_float]
        return max([self.magnitude_bits + 1] * bool(self.floats) + integers)

    @cached_property
    def integer_place(self) -> int:
        """Place on the axis of bit 0 of an integer product."""
        return max((f.lift for f in self.formats if not f.fmt.is_float), default=0)

    @cached_property
    def cut(self) -> int:
        """Low bits of a product that are aligned elsewhere."""
        return self.significand_bits if self.split else 0

    @cached_property
    def shifted_bits(self) -> int:
        """Width of the magnitude that is shifted."""
        own = self.magnitude_bits - self.cut
        return own if self.guest is None else max(own, self.guest.fmt.man + 1 + self.guest_gap)

    @cached_property
    def guest_gap(self) -> int:
        """Places by which a guest enters lower than other products: it needs no wider shifts."""
        assert self.guest is not None
        reach = (1 << max(1, *(f.most_shift.bit_length() for f in self.floats))) - 1
        return min(max(0, self.guest.most_shift - reach), self.guest.fmt.man + 1)

    @cached_property
    def float_place(self) -> int:
        """Place on the axis of bit 0 of a float product that is not shifted."""
        top = max(f.lift + f.unit for f in self.floats) + (self.significand_bits > 1)
        return top + 1 - self.shifted_bits

    @cached_property
    def term_low(self) -> int:
        """Place on the axis of the lowest bit that any product has."""
        return min(f.lift for f in (*self.formats, *((self.guest,) if self.guest else ())))

    @cached_property
    def term_bits(self) -> int:
        """Width of a product on the axis."""
        places = [f.lift + f.product_bits for f in self.formats if not f.fmt.is_float]
        if self.floats:
            places.append(self.float_place + self.shifted_bits + 1)
        return max(places)

    @cached_property
    def floats(self) -> tuple[FormatPlan, ...]:
        return tuple(f for f in self.formats if f.fmt.is_float)

    @cached_property
    def windowed(self) -> bool:
        return any(f.windowed for f in self.formats)

    @cached_property
    def has_windows(self) -> bool:
        """Whether terms end at windows."""
        return self.windowed or self.guest is not None

    @cached_property
    def exp_bits(self) -> int:
        """Width of a decoded exponent, 0 without floats."""
        return max((f.fmt.exp_max.bit_length() for f in self.floats), default=0)

    @cached_property
    def tz_bits(self) -> int:
        """Width of the number of trailing zeros of a significand, 0 without windowed floats."""
        return max((max(1, f.fmt.man.bit_length()) for f in self.floats if f.windowed), default=0)

    @cached_property
    def has_integers(self) -> bool:
        return len(self.floats) < len(self.formats)

    @cached_property
    def shift_bits(self) -> int:
        """Width of the aligner's shift amount."""
        guest = 0 if self.guest is None else self.guest.most_shift - self.guest_gap
        return max(guest.bit_length(), 1, *(f.most_shift.bit_length() for f in self.floats))

    def lane(self, f: FormatPlan) -> int:
        """Number of the lane of format `f` that this slot multiplies."""
        return self.lsb // f.fmt.container

    @cached_property
    def windowed_significand_bits(self) -> int:
        """Width of a windowed float's significand, within `significand_bits`."""
        return max(f.fmt.man + 1 for f in self.floats if f.windowed)

    def dropped_from(self, f: FormatPlan) -> int:
        """Most that a product without trailing zeros is shifted without losing bits.

        (Trailing zeros count within `windowed_significand_bits`.)
        """
        return f.unit - 2 * (self.windowed_significand_bits - 1)

    @cached_property
    def limits(self) -> tuple[int, ...]:
        """The different `dropped_from`."""
        return tuple(sorted({self.dropped_from(f) for f in self.floats if f.windowed}))

    @cached_property
    def limit_bits(self) -> int:
        """Width of a signed limit, with room for the trailing zeros of a product."""
        return _signed_bits(self.limits[0], self.limits[-1] + (2 << self.tz_bits))


def on_one_axis(formats: Sequence[FormatPlan]) -> tuple[FormatPlan, ...]:
    """The floats lifted onto a common axis; integers stay at its bit 0."""
    unit = max((f.unit for f in formats if f.fmt.is_float), default=0)
    return tuple(f.lifted(unit - f.unit) if f.fmt.is_float else f for f in formats)


def _with_integers_lifted(formats: Sequence[FormatPlan]) -> tuple[FormatPlan, ...]:
    """Integers as high as the floats of the narrowest lanes, if the sum gets no wider by that.

    The low bits of the terms of slots that only those lanes use are zero then, which makes their
    adders narrower.
    """
    floats = [f for f in formats if f.fmt.is_float]
    integers = [f for f in formats if not f.fmt.is_float]
    narrowest = min(f.fmt.container for f in formats)
    low = min((f.lift for f in floats if f.fmt.container == narrowest), default=0)
    if not low or not integers:
        return tuple(formats)
    place = min(low, max(f.top for f in floats) - max(f.sum_bits for f in integers))
    return tuple(f if f.fmt.is_float else f.lifted(max(0, place)) for f in formats)


class MacPlan:
    """Sizes and latencies of the MAC array of one Config.

    Lanes of all widths share multipliers: a slot stands at every multiple of the narrowest
    container, and a format of a wider container uses every second, fourth, ... slot.
    """

    def __init__(self, cfg: Config):
        self.cfg = cfg
        formats = [FormatPlan.of(cfg, i, f) for i, f in enumerate(cfg.format_rows)]
        self.formats = _with_integers_lifted(on_one_axis(formats))

    @property
    def row_bits(self) -> int:
        """Bits of an operand row."""
        return self.cfg.row_bits

    # -- slots -------------------------------------------------------------------------------

    @cached_property
    def slots(self) -> tuple[Slot, ...]:
        pitch = min(f.fmt.container for f in self.formats)
        slots = [
            Slot(lsb, tuple(f for f in self.formats if lsb % f.fmt.container == 0))
            for lsb in range(0, self.cfg.row_bits, pitch)
        ]
        for i, slot in enumerate(slots):
            wide = max(slot.floats, key=lambda f: f.fmt.man, default=None)
            if wide is None or wide.fmt.container == pitch or slot.guest is not None:
                continue
            half = i + wide.fmt.container // pitch // 2
            others = max((f.fmt.man + 1 for f in slot.floats if f is not wide), default=0)
            # Only what is multiplied in pieces, and so as late as any product, is worth it.
            pieces = Multiplier.pieces_of(wide.operand_bits)
            if wide.windowed and pieces > 1 and slots[half].floats and 2 * others <= wide.fmt.man:
                slots[i] = replace(slot, split=True)
                slots[half] = replace(slots[half], guest=wide)
        return tuple(slots)

    def guest_slot(self, i: int) -> int:
        """Number of the slot that takes the low halves of slot `i`, which is split."""
        pitch = self.slots[1].lsb
        return i + max(f.fmt.container for f in self.slots[i].floats) // pitch // 2

    @cached_property
    def slot_classes(self) -> tuple[Slot, ...]:
        """One slot of every kind: slots with the same formats are alike."""
        return tuple({replace(slot, lsb=0): slot for slot in self.slots}.values())

    def slot_class(self, slot: Slot) -> int:
        kinds = [replace(kind, lsb=0) for kind in self.slot_classes]
        return kinds.index(replace(slot, lsb=0))

    @cached_property
    def has_floats(self) -> bool:
        return any(f.fmt.is_float for f in self.formats)

    @cached_property
    def has_windows(self) -> bool:
        return any(f.windowed for f in self.formats)

    @cached_property
    def has_guests(self) -> bool:
        return any(slot.guest for slot in self.slots)

    @cached_property
    def has_integers(self) -> bool:
        return not all(f.fmt.is_float for f in self.formats)

    @cached_property
    def anchors(self) -> tuple[int, ...]:
        """The different constants `FormatPlan.anchor` of floats."""
        return tuple(sorted({f.anchor for f in self.formats if f.fmt.is_float}))

    @cached_property
    def largest_bits(self) -> int:
        """Width of E and of those constants."""
        return max(self.anchor_bits, self.anchors[-1].bit_length())

    @cached_property
    def anchor_slots(self) -> tuple[int, ...]:
        """Numbers of the slots whose products set E."""
        return tuple(i for i, slot in enumerate(self.slots) if slot.windowed)

    @cached_property
    def anchor_bits(self) -> int:
        """Width of E, the largest sum of two biased exponents; 0 without windowed formats."""
        return max((s.exp_bits + 1 for s in self.slots if s.windowed), default=0)

    @cached_property
    def sum_bits(self) -> int:
        """Width of the sum on the axis."""
        return max(f.top for f in self.formats)

    @cached_property
    def integer_place(self) -> int:
        """Place on the axis of bit 0 of integers."""
        return max((f.lift for f in self.formats if not f.fmt.is_float), default=0)

    @cached_property
    def windows(self) -> tuple[int, ...]:
        """Places on the axis at which windows end, ascending."""
        return tuple(sorted({f.lift for f in self.formats if f.windowed}))

    # -- outputs -----------------------------------------------------------------------------

    @cached_property
    def outputs(self) -> tuple[Format, ...]:
        return self.cfg.output_formats

    @cached_property
    def float_outputs(self) -> tuple[Format, ...]:
        return tuple(out for out in self.outputs if out.is_float)

    @cached_property
    def integer_outputs(self) -> tuple[Format, ...]:
        return tuple(out for out in self.outputs if not out.is_float)

    @cached_property
    def pairs(self) -> tuple[Pair, ...]:
        """Every (operand format, output) once, in table order."""
        found = {}
        for f in self.formats:
            for out in self.cfg.outputs(f.fmt).values():
                found[f.fmt.name, out.name] = Pair(f, out)
        return tuple(found.values())

    @cached_property
    def float_pairs(self) -> tuple[Pair, ...]:
        return tuple(pair for pair in self.pairs if pair.out.is_float)

    @cached_property
    def shifts(self) -> tuple[int, ...]:
        """The different `Pair.shift` of integers and Q, ascending."""
        return tuple(sorted({pair.shift for pair in self.pairs if not pair.out.is_float}))

    @cached_property
    def out_bits(self) -> int:
        """Widest output container."""
        return max(out.container for out in self.outputs)

    @cached_property
    def out_containers(self) -> tuple[int, ...]:
        return tuple(sorted({out.container for out in self.outputs}))

    # -- frame -------------------------------------------------------------------------------

    @cached_property
    def significand_bits(self) -> int:
        """Widest significand of a float output."""
        return max(out.man + 1 for out in self.float_outputs)

    @cached_property
    def frame_low(self) -> int:
        """Frame bits below the axis."""
        low = max(pair.bits_below for pair in self.pairs)
        if self.float_outputs:  # rounding looks at two bits below the significand and at the rest
            low = max(low, self.significand_bits + 4 - self.sum_bits - self.frame_high)
        return low

    @cached_property
    def frame_high(self) -> int:
        """Frame bits above the axis."""
        return max(1, max(p.src.top + p.bits_above for p in self.pairs) - self.sum_bits)

    @cached_property
    def frame_bits(self) -> int:
        """Width of the sum with C: exact, so that overflow of every output can be told.

        An integer-only frame of modular formats alone has nothing above the modulus.
        """
        if not self.has_floats:
            return max(
                p.src.sum_bits if p.src.modular else p.src.sum_bits + p.bits_above
                for p in self.pairs
            )
        return self.frame_low + self.sum_bits + self.frame_high

    @cached_property
    def sticky_bits(self) -> int:
        """Bits below the frame in which a C that is too low ends."""
        return max((p.out.man + 2 for p in self.float_pairs if p.needs_sticky), default=0)

    @cached_property
    def exp_bits(self) -> int:
        """Width of every signed exponent and place in the accumulator."""
        reach = max(2 * f.fmt.exp_max + abs(f.weight) for f in self.formats if f.fmt.is_float)
        reach += max(out.exp_max + out.bias + out.man for out in self.float_outputs)
        reach += self.frame_bits + self.sticky_bits
        return _signed_bits(-reach, reach)

    # -- latency -----------------------------------------------------------------------------

    C_READ_STAGES = 2
    """Stages from a sampled C row to its elements (see chunk.py)."""

    MIN_C_DELAY = 2
    """Cycles that a C read needs from the start of its uop (address, then memory)."""

    ANCHOR_LEVELS_PER_STAGE = 2
    """Levels of the maximum tree between registers."""

    EXP_AGE = 2
    """Age of the sums of exponents: decode, add."""

    @cached_property
    def product_age(self) -> int:
        """Age of products: decode, multiply; the narrow ones wait for the widest."""
        return 1 + max(Multiplier.latency_of(slot.operand_bits) for slot in self.slots)

    @cached_property
    def anchor_age(self) -> int:
        """Age of E."""
        levels = _log2_ceil(max(2, len(self.anchor_slots)))
        return self.EXP_AGE + -(-levels // self.ANCHOR_LEVELS_PER_STAGE)

    @cached_property
    def shift_age(self) -> int:
        """Age of the aligners' shift amounts; products wait for them."""
        return max(self.product_age, self.anchor_age + 1 if self.has_windows else 0)

    @cached_property
    def align_ages(self) -> dict[str, int]:
        """Ages at which the aligners and the tree take the control of their uop, by stage."""
        stages = ("amount", "shift", "term", "sum") if self.has_windows else ("amount", "shift")
        ages = {name: self.shift_age - 1 + i for i, name in enumerate(stages)}
        return {"guest": self.EXP_AGE, **ages} if self.has_guests else ages

    @cached_property
    def term_age(self) -> int:
        """Age of the aligned products."""
        return self.shift_age + (2 if self.has_floats else 0)

    @cached_property
    def carries(self) -> int:
        """Carry-ins of the tree: one for each truncated product that may be negative."""
        return len(self.anchor_slots)

    @cached_property
    def sum_age(self) -> int:
        """Age of the row sum."""
        return self.term_age + SumTree.latency_of(len(self.slots), self.carries)

    @cached_property
    def c_delay(self) -> int:
        """Age at which the C word is sampled."""
        if self.has_floats:
            return max(self.MIN_C_DELAY, self.sum_age - 1)
        return max(self.MIN_C_DELAY, self.sum_age - self.C_READ_STAGES)

    @cached_property
    def c_age(self) -> int:
        """Age of the elements of C."""
        return self.c_delay + self.C_READ_STAGES

    @cached_property
    def control_ages(self) -> dict[str, int]:
        """Ages at which the accumulator takes the control of its uop, by stage."""
        if not self.has_floats:
            return {"add": self.c_age, "round": self.c_age + 1, "out": self.latency - 1}
        stages = (
            "start",
            "decode",
            "fine",
            "coarse",
            "add",
            "count",
            "normal",
            "select",
            "round",
            "out",
        )
        return {name: self.c_age - 1 + i for i, name in enumerate(stages)}

    @cached_property
    def latency(self) -> int:
        """Age of the registered result."""
        if self.has_floats:
            return self.c_age + 9
        return self.c_age + (2 if self.shifts == (0,) else 3)
