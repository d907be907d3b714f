"""Rows of A, B and C of float pairs, aimed at the corners of rounding."""

from __future__ import annotations

import random

from dot_codes import (
    EXACT_LIMIT,
    Pair,
    any_code,
    exact_code,
    exponent_range,
    float_code,
    lead,
    near_code,
    trailing,
)
from naive_mma import (
    at,
    default_window,
    float_sum,
    floor_code,
    number,
    packed,
    scale,
    top_code,
)

from hdl.formats import Format, Specials

__all__ = ["FLOAT_STYLES", "float_group"]

# Ties are aimed at twice: they must be met at every place.
FLOAT_STYLES = (
    *("any", "wide", "close", "tie", "tie", "inner tie", "cancel"),
    *("small", "edge", "special", "C dominates", "C negligible", "zeros"),
)


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
        self.half_place = False
        low, high = exponent_range(pair.src)
        out_low, out_high = exponent_range(pair.out)
        first, last = max(2 * low, out_low), min(2 * high, out_high)
        if style == "small":
            target = out_low + rng.randint(-pair.out.man - 3, 2)
        elif style == "edge":
            half = out_high - pair.out.man - 1
            target = rng.choice((half, half + 1, rng.randint(half - 2, out_high)))
            # One power of two, half a last place: with the largest value it makes a tie.
            self.half_place = rng.random() < 0.4
            if self.half_place:
                target = half
        elif style in ("tie", "inner tie", "cancel") and rng.random() < 0.5:
            target = rng.randint(-3, 3)
        else:
            target = rng.randint(first, last) if first <= last else 0
        self.exponent_a, self.exponent_b = product_exponents(pair, target, rng)
        few = 0.6 if style == "edge" else 0.2
        self.few = style in ("tie", "inner tie") or self.half_place or rng.random() < few
        self.width = 0 if style == "edge" and self.few else rng.choice((0, 1, 2, 4))
        self.zero_rate = {"zeros": 0.7, "cancel": 0.2}.get(style, 0.0)
        if style == "small" and 2 * (low - pair.src.man) > out_low:
            # No product is as small as this output's subnormals: C has to be.
            self.zero_rate = 1.0 if rng.random() < 0.5 else 0.5
        if style == "edge":
            # No sum at all leaves C itself at the edge.
            self.zero_rate = 0.0 if self.half_place else rng.choice((0.0, 0.0, 0.7, 0.9, 1.0))

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
        mantissa = 0 if self.half_place else mantissa_bits(fmt, rng, self.few)
        return float_code(self.sign(), exponent, mantissa, fmt)

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
            used = 1 if self.half_place else rng.choice((1, 1, 2, self.k))
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
