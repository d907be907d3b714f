"""Names for the corners that a dot product reached, and which of them a pair must reach.

A case is aimed by style, but judged by its exact sums alone: what counts as a tie or as a
cancellation is read off the numbers, whatever the style meant to make.
"""

from __future__ import annotations

from dot_cases import Group
from dot_codes import ROW_BITS, Pair, exponent_range, lead
from naive_mma import (
    DOWN,
    INEXACT,
    NEAREST,
    OVERFLOW,
    SAT_HIT,
    UNDERFLOW,
    UP,
    Dot,
    at,
    floor_code,
    scale,
    top_code,
)

from hdl.formats import Kind, Specials

__all__ = ["group_kinds", "kinds", "required"]


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
            # Powers of two hardly ever come that close to the smallest normal.
            if upwards and src.man and 2 * scale(src) > scale(out) + 4:
                need |= {"tiny, to normal": seldom, "not tiny, to normal": seldom}
    if not out.signed:
        # It cancels only where the products are negated, and C is just as large.
        need |= {"negative into unsigned": often, "cancels to zero": seldom}
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
