"""Dot products aimed at the corners of rounding, and names for the corners that each reached.

A case is aimed by style, and then judged by its exact sums alone: what counts as a tie or as a
cancellation is read off the numbers, whatever the style meant to make.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from naive_mma import (
    DOWN,
    INEXACT,
    LISTED_WIDTH,
    NEAREST,
    OVERFLOW,
    SAT_HIT,
    UNDERFLOW,
    UP,
    Dot,
    at,
    default_window,
    float_sum,
    floor_code,
    naive_dot,
    number,
    packed,
    scale,
    top_code,
    unit_of,
)

from hdl.formats import FORMATS, Format, Kind, Specials, acc_mode, output_format

__all__ = ["PAIRS", "Group", "Pair", "group_kinds", "kinds", "make_group", "required", "styles"]

ROW_BITS = 128
EXACT_LIMIT = 96


@dataclass(frozen=True)
class Pair:
    """Operand format and the mxcfg fields that choose its output."""

    name: str
    bovf: int
    acc: int
    src: Format = field(init=False)
    out: Format = field(init=False)
    unit: int = field(init=False)

    def __post_init__(self):
        src = FORMATS[self.name]
        out = output_format(src, acc_mode(self.bovf, self.acc))
        for name, value in (("src", src), ("out", out), ("unit", unit_of(src, out))):
            object.__setattr__(self, name, value)

    def __str__(self):
        return f"{self.name}-{self.out.name}-bovf{self.bovf}-acc{self.acc}"

    @property
    def lanes(self) -> int:
        return ROW_BITS // self.src.container

    @property
    def window(self) -> int:
        """F where the default core cuts this pair's products, or 0."""
        if self.src.kind is not Kind.FLOAT or LISTED_WIDTH[self.name] <= EXACT_LIMIT:
            return 0
        return default_window(self.src)


PAIRS = [
    Pair(name, bovf, acc)
    for name, fmt in FORMATS.items()
    for bovf, acc in ((1, 0), (0, 0), (0, 1), (0, 2), (0, 3))
    if output_format(fmt, acc_mode(bovf, acc)) is not None
]


@dataclass
class Group:
    """Elements that share one row of B and their fields."""

    style: str
    fields: dict[str, int]
    k: int
    a: list[list[int]]
    b: list[int]
    c: list[int]
    dots: list[Dot]


# -- codes -----------------------------------------------------------------------------------------


def lead(value: int) -> int:
    """Place of the highest 1 of a magnitude."""
    return abs(value).bit_length() - 1


def trailing(value: int) -> int:
    return (value & -value).bit_length() - 1


def exponent_range(fmt: Format) -> tuple[int, int]:
    """Exponents of a format's smallest and largest normal value."""
    return fmt.exp_min - fmt.bias, fmt.exp_max - fmt.bias


def cluttered(code: int, fmt: Format, rng: random.Random) -> int:
    """`code` with its container's unused bits set at random."""
    spare = fmt.container - fmt.bits
    return code | rng.getrandbits(spare) << (0 if fmt.top_aligned else fmt.bits) if spare else code


def any_code(fmt: Format, rng: random.Random) -> int:
    code = rng.getrandbits(fmt.bits)
    return code << fmt.container - fmt.bits if fmt.top_aligned else code


def float_code(negative: bool, exponent: int, mantissa: int, fmt: Format) -> int:
    """A finite code with this exponent, or the nearest that there is; below the normal ones, a
    subnormal of about that size."""
    low, high = exponent_range(fmt)
    negative = negative and fmt.signed
    if exponent < low and fmt.specials is not Specials.E8M0:
        return packed(((1 << fmt.man) + mantissa) >> min(low - exponent, 64), negative, fmt)
    field_bits = min(max(exponent, low), high) + fmt.bias
    return packed(min(field_bits << fmt.man | mantissa, top_code(fmt)), negative, fmt)


def exact_code(value: int, fmt: Format, unit: int) -> int | None:
    """The code of this value, or None where there is none."""
    if value == 0:
        return None if fmt.specials is Specials.E8M0 else 0
    if value < 0 and not fmt.signed:
        return None
    code = floor_code(abs(value), fmt, unit)
    if not 0 <= code <= top_code(fmt) or at(code, fmt, unit) != abs(value):
        return None
    return packed(code, value < 0, fmt)


def near_code(value: int, fmt: Format, unit: int, up: int) -> int:
    """The finite code next to this value: away from zero if `up`."""
    code = floor_code(abs(value), fmt, unit) + up if value else 0
    return packed(min(max(code, 0), top_code(fmt)), value < 0 and fmt.signed, fmt)


def mantissa_bits(fmt: Format, rng: random.Random, few: bool) -> int:
    """All sorts of mantissas; `few`: one bit at most."""
    if fmt.man == 0:
        return 0
    if few:
        return rng.choice((0, 1)) << rng.randrange(fmt.man)
    kind = rng.randrange(4)
    if kind == 0:
        return rng.choice((0, (1 << fmt.man) - 1))
    return rng.getrandbits(fmt.man)


def product_exponents(pair: Pair, target: int, rng: random.Random) -> tuple[int, int]:
    """Exponents of two operands whose product is about 2^target."""
    low, high = exponent_range(pair.src)
    target = min(max(target, 2 * low), 2 * high)
    first = rng.randint(max(low, target - high), min(high, target - low))
    return first, target - first


# -- float rows ------------------------------------------------------------------------------------


class FloatMaker:
    """Rows and C of one group of a float pair.

    Parameters
    ----------
    style : what to aim at, one of `FLOAT_STYLES`.
    k : lanes that take part.
    fields : of mxcfg, with alpha and beta.
    """

    def __init__(self, pair: Pair, style: str, k: int, fields: dict, rng: random.Random):
        self.pair, self.style, self.k, self.fields, self.rng = pair, style, k, fields, rng
        low, high = exponent_range(pair.src)
        out_low, out_high = exponent_range(pair.out)
        first, last = max(2 * low, out_low), min(2 * high, out_high)
        if style == "small":
            target = out_low + rng.randint(-pair.out.man - 3, 2)
        elif style == "edge":
            half = out_high - pair.out.man - 1
            target = rng.choice((half, half, half + 1, rng.randint(half - 2, out_high)))
        elif style in ("tie", "inner tie", "cancel") and rng.random() < 0.5:
            target = rng.randint(-3, 3)
        else:
            target = rng.randint(first, last) if first <= last else 0
        self.exponent_a, self.exponent_b = product_exponents(pair, target, rng)
        few = 0.6 if style == "edge" else 0.2
        self.few = style in ("tie", "inner tie") or rng.random() < few
        self.width = 0 if style == "edge" and self.few else rng.choice((0, 1, 2, 4))
        self.zero_rate = {"zeros": 0.7, "cancel": 0.2}.get(style, 0.0)
        if style == "small" and 2 * (low - pair.src.man) > out_low:
            # No product is as small as this output's subnormals: C has to be.
            self.zero_rate = 1.0 if rng.random() < 0.5 else 0.5
        if style == "edge":
            # No sum at all leaves C itself at the edge.
            self.zero_rate = rng.choice((0.0, 0.0, 0.7, 0.9, 1.0))

    def sign(self) -> bool:
        return self.rng.random() < 0.5

    def operand(self, exponent: int) -> int:
        """A code as the style likes them, of about this exponent."""
        fmt, rng = self.pair.src, self.rng
        low, high = exponent_range(fmt)
        if self.style == "any":
            return any_code(fmt, rng)
        if self.style == "special" and rng.random() < 0.2:
            return self.special(fmt)
        if rng.random() < self.zero_rate:
            return packed(0, self.sign() and fmt.signed, fmt)
        if self.style == "wide" or (self.style == "zeros" and rng.random() < 0.5):
            exponent = rng.randint(low - fmt.man, high)
        else:
            exponent += rng.randint(-self.width, self.width)
        return float_code(self.sign(), exponent, mantissa_bits(fmt, rng, self.few), fmt)

    def special(self, fmt: Format) -> int:
        """NaN of either kind, Inf, zero, or one of the largest values."""
        rng = self.rng
        top = top_code(fmt)
        last = (1 << fmt.exp + fmt.man) - 1
        magnitude = rng.choice((0, top, min(top + 1, last), rng.randint(top, last), last))
        return packed(magnitude, self.sign() and fmt.signed, fmt)

    def row_b(self) -> list[int]:
        row = [self.operand(self.exponent_b) for _ in range(self.k)]
        if self.style == "cancel":
            for lane in range(1, self.k, 2):
                row[lane] = row[lane - 1]
        if self.style in ("tie", "inner tie"):
            if self.rng.random() < 0.5:
                row[0] = float_code(self.sign(), self.exponent_b, 0, self.pair.src)
            # The last lane is kept for a bit far below; the one before it fills up to a tie.
            row[-1] = float_code(self.sign(), self.exponent_b, 0, self.pair.src)
            if self.k > 2:
                exponent = self.exponent_b - self.rng.randrange(self.pair.src.man + 2)
                row[-2] = float_code(False, exponent, 0, self.pair.src)
        return row

    def row_a(self, b: list[int]) -> list[int]:
        fmt, rng = self.pair.src, self.rng
        row = [self.operand(self.exponent_a) for _ in range(self.k)]
        if self.style == "cancel" and fmt.signed:
            flip = packed(0, True, fmt)
            for lane in range(1, self.k, 2):
                row[lane] = row[lane - 1] ^ flip
            if rng.random() < 0.7:
                # One lane is left over, or one off by a last place.
                lane = rng.randrange(self.k)
                place = fmt.container - fmt.bits if fmt.top_aligned else 0
                row[lane] = rng.choice((0, row[lane] ^ 1 << place))
        ties = self.style in ("tie", "inner tie")
        if ties or (self.style == "edge" and self.few):
            used = rng.choice((1, 1, 2, self.k))
            for lane in range(used, self.k):
                row[lane] = packed(0, False, fmt)
        if ties:
            if self.k > 1:
                row[-1] = packed(0, False, fmt)
            if self.style == "inner tie" and self.k > 2:
                self.fill_lane(row, b)
        return row

    def total(self, row: list[int], b: list[int]) -> int | None:
        """Exact sum of the products, None where it is no number."""
        src, out = self.pair.src, self.pair.out
        alpha = self.fields["alpha"]
        dot = float_sum(src, out, row, b, None, False, alpha, EXACT_LIMIT, default_window(src))
        return None if dot.special else dot.total

    def fill_lane(self, row: list[int], b: list[int]) -> None:
        """Complete the products to a tie of the output, where a lane can."""
        pair = self.pair
        row[-2] = packed(0, False, pair.src)
        total = self.total(row, b)
        if not total:
            return
        wanted = self.tie_next_to(total) - total
        operand = at(b[-2] >> (pair.src.container - pair.src.bits if pair.src.top_aligned else 0),
                     pair.src, scale(pair.src))  # fmt: skip
        if self.fields["alpha"]:
            wanted = -wanted
        shift = pair.unit - scale(pair.src)
        if operand and wanted % operand == 0:
            row[-2] = exact_code(wanted // operand, pair.src, shift) or row[-2]

    def tie_next_to(self, total: int) -> int:
        """The tie of two output codes that encloses a sum."""
        out, unit = self.pair.out, self.pair.unit
        code = floor_code(abs(total), out, unit)
        middle = at(code, out, unit) + at(code + 1, out, unit) >> 1
        return -middle if total < 0 else middle

    def break_tie(self, row: list[int], total: int, addend: int) -> None:
        """Put a small product into the last lane: any, or some places below the half."""
        fmt, rng = self.pair.src, self.rng
        c = number(addend, self.pair.out)
        at_half = total + (-1) ** c.negative * (c.whole << self.pair.unit - scale(self.pair.out))
        low, _ = exponent_range(fmt)
        if at_half == 0 or rng.random() < 0.3:
            exponent = rng.randint(min(low - fmt.man, self.exponent_a), self.exponent_a)
        else:
            below = rng.randint(3, fmt.man + 4)
            exponent = trailing(at_half) - self.pair.unit - below - self.exponent_b
        row[-1] = float_code(self.sign(), exponent, 0, fmt)

    # -- C ------------------------------------------------------------------------------------

    def c_code(self, total: int | None) -> int:
        out, rng = self.pair.out, self.rng
        if total is None or self.style == "any":
            return any_code(out, rng)
        if self.style == "special":
            if rng.random() < 0.4 or not self.pair.src.has_nan:
                return self.special(out)
            return any_code(out, rng)
        if self.style == "zeros":
            return self.c_for_zeros(total)
        aim = {"tie": self.c_tie, "inner tie": self.c_below_tie, "cancel": self.c_cancel,
               "edge": self.c_edge, "small": self.c_small, "C dominates": self.c_dominates,
               "C negligible": self.c_negligible}.get(self.style, self.c_close)  # fmt: skip
        return aim(total)

    def c_zero(self, total: int) -> int:
        return packed(0, self.sign() and self.pair.out.signed, self.pair.out)

    def c_below_tie(self, total: int) -> int:
        """No C, or one that breaks a tie of the products from far below."""
        if self.rng.random() < 0.4:
            return self.c_zero(total)
        low, _ = exponent_range(self.pair.out)
        if self.rng.random() < 0.5:
            return self.c_negligible(total)
        return self.c_at(self.rng.randint(low, max(low, lead(total) - self.pair.unit)))

    def c_for_zeros(self, total: int) -> int:
        if self.rng.random() < 0.7:
            return self.c_zero(total)
        return self.c_cancel(total)

    def c_at(self, exponent: int, few: bool = False) -> int:
        out = self.pair.out
        return float_code(self.sign(), exponent, mantissa_bits(out, self.rng, few), out)

    def c_close(self, total: int) -> int:
        reach = self.pair.out.man + 2
        return self.c_at(lead(total) - self.pair.unit + self.rng.randint(-reach, reach))

    def c_dominates(self, total: int) -> int:
        out, rng = self.pair.out, self.rng
        far = rng.choice((2, 2, 3, rng.randint(2, 40), rng.randint(2, 400)))
        exponent = lead(total) - self.pair.unit + out.man + far
        _, high = exponent_range(out)
        # Next to a power of two the places below are half as wide.
        return self.c_at(min(exponent, max(high - 1, 0)), rng.random() < 0.4)

    def c_negligible(self, total: int) -> int:
        rng = self.rng
        far = rng.choice((2, 2, 3, rng.randint(2, 40), rng.randint(2, 400)))
        return self.c_at(lead(total) - self.pair.unit - self.pair.out.man - far)

    def c_small(self, total: int) -> int:
        out, unit = self.pair.out, self.pair.unit
        low, _ = exponent_range(out)
        kind = self.rng.random()
        if kind < 0.3:
            return self.c_cancel(total) if kind < 0.15 else self.c_zero(total)
        if kind < 0.7 and out.specials is not Specials.E8M0:
            normal = at(1 << out.man, out, unit) * self.rng.choice((1, -1))
            return near_code(normal - total, out, unit, self.rng.randint(0, 1))
        return self.c_at(low - self.rng.randint(-2, self.pair.out.man + 1))

    def c_cancel(self, total: int) -> int:
        """-S, or the code next to it."""
        out, rng = self.pair.out, self.rng
        magnitude = floor_code(abs(total), out, self.pair.unit) if total else 0
        magnitude += rng.choice((0, 0, 1, -1))
        negative = total > 0 and out.signed
        return packed(min(max(magnitude, 0), top_code(out)), negative, out)

    def c_tie(self, total: int) -> int:
        """C that makes C + S a tie, where one does."""
        out, unit, rng = self.pair.out, self.pair.unit, self.rng
        if not total:
            return self.c_zero(total)
        place = trailing(total)
        smallest = unit - scale(out) - 1
        tries = [self.tie_next_to(total)]
        if place >= smallest:
            tie = (2 << out.man) + 2 * rng.getrandbits(out.man) + 1
            if place == smallest and out.man and rng.random() < 0.5:
                tie = 2 * rng.getrandbits(out.man) + 1
            tie <<= place
            tries += rng.sample((tie, -tie), 2) if out.signed else [tie]
        if rng.random() < 0.8:
            tries.reverse()
        for tie in tries:
            code = exact_code(tie - total, out, unit)
            if code is not None:
                return code
        return self.c_close(total)

    def c_edge(self, total: int) -> int:
        """C that takes C + S to the largest values and over them."""
        out, unit, rng = self.pair.out, self.pair.unit, self.rng
        top, beyond = (at(top_code(out) + step, out, unit) for step in (0, 1))
        middle = top + beyond >> 1
        step = 1 << trailing(total) if total else 1
        edge = rng.choice((top, middle, middle, middle - step, middle + step, beyond))
        if out.signed and rng.random() < 0.5:
            edge = -edge
        code = exact_code(edge - total, out, unit)
        if code is not None:
            return code
        return near_code(edge - total, out, unit, rng.randint(0, 1))


def float_group(pair: Pair, style: str, k: int, fields: dict, size: int, rng) -> tuple:
    maker = FloatMaker(pair, style, k, fields, rng)
    b = maker.row_b()
    rows, c = [], []
    for _ in range(size):
        row = maker.row_a(b)
        total = maker.total(row, b)
        c.append(maker.c_code(total))
        if style in ("tie", "inner tie") and k > 1 and total is not None and rng.random() < 0.5:
            maker.break_tie(row, total, c[-1])
        rows.append(row)
    return rows, b, c


# -- integer rows ----------------------------------------------------------------------------------


def integer_operand(fmt: Format, style: str, rng: random.Random) -> int:
    low, high = -(1 << fmt.bits - 1), (1 << fmt.bits - 1) - 1
    if style in ("extremes", "edge") and rng.random() < 0.8:
        return rng.choice((low, low, high, high, -1, 0, 1))
    if style == "small":
        return rng.randint(-3, 3)
    if style == "zeros" and rng.random() < 0.8:
        return 0
    value = rng.randint(low, high)
    return value >> rng.randrange(fmt.bits) if style == "wide" else value


def integer_tie(pair: Pair, row: list[int], b: list[int], place: int, rng: random.Random) -> None:
    """Make the products of fixed-point lanes whole places of the output, and a half in the first.

    `place`: the bit below which the output is cut off, split between the lane's two factors.
    """
    top = 1 << pair.src.bits - 2
    low = b[0].bit_length() - 1
    row[0] = rng.choice((1, -1, 3, rng.randrange(-top, top) | 1)) << max(0, place - 1 - low)
    if abs(row[0]) > top:
        row[0] = 1 << place - 1 - low
    for lane in range(1, len(row)):
        zeros = place - (b[lane] & -b[lane]).bit_length() + 1
        row[lane] = rng.randrange(-top, top) >> max(0, zeros) << max(0, zeros)


def integer_group(pair: Pair, style: str, k: int, fields: dict, size: int, rng) -> tuple:
    src, out = pair.src, pair.out
    low, high = -(1 << out.bits - 1), (1 << out.bits - 1) - 1
    one = 1 << 2 * src.frac - out.frac
    b = [integer_operand(src, style, rng) for _ in range(k)]
    place = one.bit_length() - 1
    if style == "tie" and place:
        b = [1 << rng.randrange(min(place, src.bits - 1)) for _ in range(k)]
    rows, c = [], []
    for _ in range(size):
        row = [integer_operand(src, style, rng) for _ in range(k)]
        if style == "tie" and place:
            integer_tie(pair, row, b, place, rng)
        if style == "cancel":
            for lane in range(1, k, 2):
                row[lane], b[lane] = -row[lane - 1], b[lane - 1]
        rows.append(row)
    for row in rows:
        total = sum(x * y for x, y in zip(row, b, strict=True)) * (-1) ** fields["alpha"]
        if style == "edge":
            addend = rng.choice((low, high)) - total // one + rng.randint(-2, 2)
        elif style == "cancel":
            addend = -(total // one) + rng.choice((0, 0, -1, 1))
        elif style == "small":
            addend = rng.randint(-3, 3)
        elif style == "zeros":
            addend = rng.choice((0, 0, low, high, -1))
        else:
            addend = rng.choice((low, high, rng.randint(low, high), rng.randint(-9, 9)))
        c.append(addend)
    mask = (1 << src.bits) - 1
    return [[x & mask for x in row] for row in rows], [x & mask for x in b], [
        x & (1 << out.bits) - 1 for x in c
    ]  # fmt: skip


# -- groups ----------------------------------------------------------------------------------------

# Ties are aimed at twice: they must be met at every place.
FLOAT_STYLES = (
    *("any", "wide", "close", "tie", "tie", "inner tie", "cancel"),
    *("small", "edge", "special", "C dominates", "C negligible", "zeros"),
)
INTEGER_STYLES = ("any", "wide", "extremes", "tie", "cancel", "small", "edge", "zeros")


def styles(pair: Pair) -> tuple[str, ...]:
    """What groups of a pair can aim at."""
    return FLOAT_STYLES if pair.src.kind is Kind.FLOAT else INTEGER_STYLES


def make_group(pair: Pair, style: str, rnd: int, size: int, rng: random.Random) -> Group:
    """`size` elements of a style, with what the oracle says of each."""
    lanes = pair.lanes
    k = rng.choice((1, min(3, lanes), lanes, lanes, rng.randint(1, lanes), 4 * lanes))
    if style == "edge" and pair.src.specials is Specials.E8M0:
        k = rng.randint(1, 3)  # no lane is zero: a few are an edge, many are not
    fields = {"bovf": pair.bovf, "acc": pair.acc, "rnd": rnd, "sat": rng.randrange(2)}
    fields |= {"alpha": rng.randrange(2), "beta": int(rng.random() < 0.2)}
    make = float_group if pair.src.kind is Kind.FLOAT else integer_group
    rows, b, c = make(pair, style, k, fields, size, rng)
    # Lanes beyond K and unused bits of containers hold anything.
    width = k if k >= lanes or rng.random() < 0.2 else rng.randint(k + 1, lanes)
    clutter = rng.random() < 0.5
    for row in (*rows, b):
        if clutter:
            row[:] = [cluttered(code, pair.src, rng) for code in row]
        row += [any_code(pair.src, rng) for _ in range(width - k)]
    if clutter:
        c = [cluttered(code, pair.out, rng) for code in c]
    dots = [
        naive_dot(pair.name, row[:k], b[:k], addend, **fields)
        for row, addend in zip(rows, c, strict=True)
    ]
    return Group(style, fields, k, rows, b, c, dots)


# -- what was reached ------------------------------------------------------------------------------


def rounding_kinds(dot: Dot, pair: Pair) -> set[str]:
    """Where a float sum lies between two codes, and how its bits get there."""
    out, unit = pair.out, pair.unit
    value, products = abs(dot.total), dot.total - dot.addend
    found = set()
    code = floor_code(value, out, unit)
    low, high = at(code, out, unit), at(code + 1, out, unit)
    half = high - low >> 1
    if value == low:
        found.add("exact")
    off = abs(value - low - half)
    if off == 0:
        found.add("tie")
        if products:
            found.add(f"tie {lead(products) - lead(half)}")
    elif off < half >> 2:
        found |= {"near tie", f"near tie {lead(half) - lead(off)}"}
        if dot.addend and abs(products) % (2 * half) == half:
            found.add("C breaks a tie")
    top = top_code(out)
    last, beyond = at(top, out, unit), at(top + 1, out, unit)
    if value == last:
        found.add("largest")
    if last + beyond == 2 * value:
        found.add("overflow tie")
    elif 2 * last - beyond < value < 2 * beyond - last:
        found.add("overflow edge, over" if dot.flags & OVERFLOW else "overflow edge, under")
    return found


def kinds(dot: Dot, pair: Pair) -> set[str]:
    """Names of the corners that an element reached, by its exact sums."""
    found = {name for name, bit in (("inexact", INEXACT), ("sat_hit", SAT_HIT),
             ("overflow", OVERFLOW), ("underflow", UNDERFLOW)) if dot.flags & bit}  # fmt: skip
    if dot.special:
        return found | {"special"}
    out = pair.out
    products = dot.total - dot.addend
    if not dot.terms:
        return found | {"zeros"}
    biggest = max(map(abs, dot.terms))
    if len(dot.terms) > 1 and dot.total == 0:
        found.add("cancels to zero")
    if pair.src.kind is not Kind.FLOAT:
        return found | integer_kinds(dot, pair, biggest)
    if len(dot.terms) > 1 and 0 < abs(dot.total) <= 1 << max(0, lead(biggest) - out.man):
        found.add("cancels to one ulp")
    if dot.spread > wide_spread(pair):
        found.add("wide exponents")
    if sum(dot.terms) != dot.total:
        found.add("window")
    if dot.addend and products:
        if 2 * abs(products) < 1 << max(0, lead(dot.addend) - out.man):
            found.add("C dominates")
        if 2 * abs(dot.addend) < 1 << max(0, lead(products) - out.man):
            found.add("C negligible")
    if dot.total < 0 and not out.signed:
        return found | {"negative into unsigned"}
    if dot.total:
        found |= rounding_kinds(dot, pair)
        magnitude = dot.code >> (out.container - out.bits if out.top_aligned else 0)
        magnitude &= (1 << out.exp + out.man) - 1
        if 0 < magnitude < 1 << out.man and out.specials is not Specials.E8M0:
            found.add("subnormal")
        if magnitude == 0 and out.specials is not Specials.E8M0:
            found.add("rounds to zero")
        if magnitude == 1 << out.man and abs(dot.total) < at(magnitude, out, pair.unit):
            found.add("tiny, to normal" if dot.flags & UNDERFLOW else "not tiny, to normal")
    return found


def group_kinds(group: Group, pair: Pair) -> set[str]:
    """What all elements of a group have in common."""
    found = {f"{name} {group.fields[name]}" for name in ("sat", "alpha", "beta")}
    if group.k < len(group.b):
        found.add("tail of K")
    if group.k > pair.lanes:
        found.add("K of a wide row")
    if group.k == 1:
        found.add("K = 1")
    return found


def largest_product(pair: Pair) -> int:
    """In 2^-unit."""
    return at(top_code(pair.src), pair.src, scale(pair.src)) ** 2 << pair.unit - 2 * scale(pair.src)


def required(pair: Pair, rnd: int) -> dict[str, int]:
    """Corners that 20,000 elements of a pair in one rounding mode must reach, and how often.

    Left out is what the formats rule out, each time by the condition that stands there.
    """
    src, out = pair.src, pair.out
    often, seldom = 20, 5
    need = dict.fromkeys(
        ("sat 0", "sat 1", "alpha 0", "alpha 1", "beta 0", "beta 1", "K = 1", "K of a wide row",
         "tail of K", "cancels to zero", "cancels to one ulp", "overflow",
         "overflow edge, under"), often,
    )  # fmt: skip
    if src.container > ROW_BITS // 2:
        del need["tail of K"]
    if src.kind is not Kind.FLOAT:
        need |= {"overflow edge, over": seldom, "zeros": often}
        return need | ({"tie": often} if 2 * src.frac > out.frac else {})
    need |= dict.fromkeys(("tie", "near tie", "special", "C dominates", "C negligible"), often)
    need |= {f"tie {place}": 1 for place in range(min(out.man + 1, 2 * src.man + 1) + 1)}
    need |= {f"near tie {place}": 1 for place in range(3, src.man + 3)}
    need["largest"] = seldom
    low, high = exponent_range(src)
    if 2 * (high - low) > out.man + 3:
        need["C breaks a tie"] = seldom
    if low < high:
        need["wide exponents"] = often
    if pair.window:
        need["window"] = often
    if src.specials is not Specials.E8M0:
        need["zeros"] = often
    if out.specials is not Specials.E8M0:
        need["subnormal"] = often
        if 2 * scale(src) > scale(out) + 1:
            need["underflow"] = seldom
            if out.signed or rnd != UP:
                need["rounds to zero"] = seldom
            upwards = rnd in (NEAREST, UP) or (rnd == DOWN and out.signed)
            if upwards and 2 * scale(src) > scale(out) + 4:
                need |= {"tiny, to normal": seldom, "not tiny, to normal": seldom}
    if not out.signed:
        need["negative into unsigned"] = often
    last, beyond = (at(top_code(out) + step, out, pair.unit) for step in (0, 1))
    if largest_product(pair) > beyond - last:
        need |= {"overflow edge, over": seldom, "overflow tie": seldom}
    else:
        # Sums far below the last place of the largest value: only a mode can carry over it.
        del need["overflow"]
        if rnd == UP:
            need["overflow edge, over"] = seldom
    return need


def wide_spread(pair: Pair) -> int:
    """Exponents of products further apart than this are wide."""
    low, high = exponent_range(pair.src)
    return pair.window or 3 * (high - low) // 2


def integer_kinds(dot: Dot, pair: Pair, biggest: int) -> set[str]:
    out = pair.out
    one = 1 << 2 * pair.src.frac - out.frac
    found = set()
    if len(dot.terms) > 1 and 0 < abs(dot.total) <= one < biggest:
        found.add("cancels to one ulp")
    if dot.total % one * 2 == one:
        found.add("tie")
    low, high = -(1 << out.bits - 1), (1 << out.bits - 1) - 1
    whole = sum(dot.terms) // one  # before anything wraps
    if not low <= whole <= high:
        found.add("overflow")
    elif min(whole - low, high - whole) <= 1:
        found.add("overflow edge, under")
    if low - 3 <= whole < low or high < whole <= high + 3:
        found.add("overflow edge, over")
    return found
