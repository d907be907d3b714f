"""Multiply-accumulate as numerics.md says it, in whole numbers: what the array is compared with.

Every value is a number of units, the smallest of which any product or C is a multiple. Nothing
here is shared with the design or with the numpy reference.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from amaranth.hdl import Cat, Const, Mux, Signal, Value, signed

from hdl.formats import Format, Specials

from .harness import Proof

__all__ = ["Outcome", "float_mma", "whole_mma"]

NEAREST, UP, DOWN, TO_ZERO = range(4)


@dataclass
class Outcome:
    """Code of the result, and its flags by name."""

    code: Value
    flags: dict[str, Value]


@dataclass
class _Number:
    """A float taken apart: sign, significand, how far it is shifted up, and what it is."""

    sign: Value
    sig: Value
    shift: Value
    nan: Value
    inf: Value
    zero: Value


def _any(bits: Sequence[Value]) -> Value:
    return Cat(*bits).any() if bits else Const(0, 1)


def _take_apart(p: Proof, name: str, code: Value, fmt: Format) -> _Number:
    man, exp = code[: fmt.man], code[fmt.man : fmt.man + fmt.exp]
    sign = code[fmt.man + fmt.exp] if fmt.signed else Const(0, 1)
    top = exp.all()
    nan, inf = Const(0, 1), Const(0, 1)
    if fmt.specials is Specials.IEEE:
        nan, inf = top & man.any(), top & ~man.any()
    elif fmt.specials is Specials.NAN_TOP:
        nan = top & man.all()
    normal = exp != 0
    return _Number(
        sign=p.signal(sign, f"{name}_sign"),
        sig=p.signal(Cat(man, normal), f"{name}_sig"),
        shift=p.signal(Mux(normal, exp - 1, 0)[: fmt.exp], f"{name}_shift"),
        nan=p.signal(nan, f"{name}_nan"),
        inf=p.signal(inf, f"{name}_inf"),
        zero=p.signal(~normal & ~man.any(), f"{name}_zero"),
    )


def _largest(fmt: Format) -> int:
    """Code of the largest finite magnitude."""
    every = (1 << fmt.exp + fmt.man) - 1
    if fmt.specials is Specials.IEEE:
        return every - (1 << fmt.man)
    return every - (fmt.specials is Specials.NAN_TOP)


def float_mma(
    p: Proof,
    src: Format,
    out: Format,
    pairs: Sequence[tuple[Value, Value]],
    c: Value,
    op,
) -> Outcome:
    """Sum of the products of codes, plus C, rounded once into a signed float of at most 8 bits.

    Parameters
    ----------
    pairs : codes of A and B, of which the first `op.k` count.
    c : code of C, left out with `op.overwrite`.
    op : see `mac_op`.
    """
    unit = min(2 * (1 - src.bias - src.man), 1 - out.bias - out.man)
    lowest = 1 - out.bias - out.man - unit  # units of the smallest subnormal, log2
    bits = 2 * (src.exp_max - src.bias + 1) - unit + len(pairs).bit_length() + 2
    bits = max(bits, out.exp_max - out.bias + 2 - unit + 2)

    total = Value.cast(0)
    nans, wrong, pos_inf, neg_inf, nonzero, zeros = [], [], [], [], [], []
    for number, (a_code, b_code) in enumerate(pairs):
        on = p.signal(op.k > number, f"on{number}")
        a = _take_apart(p, f"a{number}", a_code, src)
        b = _take_apart(p, f"b{number}", b_code, src)
        sign = p.signal(a.sign ^ b.sign ^ op.negate, f"sign{number}")
        to_unit = 2 * (1 - src.bias - src.man) - unit
        product = Signal(bits, name=f"product{number}")
        p.m.d.comb += product.eq((a.sig * b.sig) << (a.shift + b.shift + to_unit))
        finite = on & ~(a.nan | b.nan | a.inf | b.inf)
        total = total + Mux(finite, Mux(sign, -product, product), 0)
        inf = on & ((a.inf & ~b.zero & ~b.nan) | (b.inf & ~a.zero & ~a.nan))
        undefined = on & ((a.inf & b.zero) | (b.inf & a.zero))
        nans.append((on & (a.nan | b.nan)) | undefined)
        wrong.append(undefined)
        pos_inf.append(inf & ~sign)
        neg_inf.append(inf & sign)
        nonzero.append(on & ~a.zero & ~b.zero)
        zeros.append((on, sign))
    addend = _take_apart(p, "c", c, out)
    on = ~op.overwrite
    place = addend.shift + lowest
    magnitude = Signal(bits, name="c_units")
    p.m.d.comb += magnitude.eq(addend.sig << place)
    finite = on & ~(addend.nan | addend.inf)
    total = total + Mux(finite, Mux(addend.sign, -magnitude, magnitude), 0)
    nans.append(on & addend.nan)
    pos_inf.append(on & addend.inf & ~addend.sign)
    neg_inf.append(on & addend.inf & addend.sign)
    nonzero.append(on & ~addend.zero)
    zeros.append((on, addend.sign))

    exact = Signal(signed(bits + 1), name="exact")
    p.m.d.comb += exact.eq(total)
    negative = p.signal(exact < 0, "negative")
    size = Signal(bits, name="size")
    p.m.d.comb += size.eq(Mux(negative, -exact, exact))
    clash = p.signal(_any(pos_inf) & _any(neg_inf), "clash")
    is_nan = p.signal(_any(nans) | clash, "is_nan")
    is_inf = p.signal((_any(pos_inf) | _any(neg_inf)) & ~is_nan, "is_inf")

    # Round at the place that the highest bit asks for; `bounded`: no lower than the subnormals'.
    def rounded(bounded: bool) -> tuple[Signal, Signal]:
        name = "bounded" if bounded else "free"
        number = Signal(out.exp + out.man + 8, name=f"{name}_code")
        dropped = Signal(name=f"{name}_dropped")
        for top in range(bits):
            place = max(top - out.man, lowest if bounded else 0)
            here = size[top] & ~size[top + 1 :].any() if top + 1 < bits else size[top]
            kept, rest = size[place:], size[:place]
            half = size[place - 1] if place else Const(0, 1)
            below = size[: place - 1].any() if place > 1 else Const(0, 1)
            up = Mux(
                op.rnd == NEAREST,
                half & (below | kept[0]),
                Mux(op.rnd == UP, rest.any() & ~negative, rest.any() & negative & (op.rnd == DOWN)),
            )
            scale = (place - lowest) if bounded else (place - lowest + bits)
            with p.m.If(here):
                p.m.d.comb += [
                    number.eq((scale << out.man) + kept + up),
                    dropped.eq(rest.any()),
                ]
        return number, dropped

    code, dropped = rounded(True)
    free, _ = rounded(False)
    smallest_normal = ((bits) << out.man) + (1 << out.man)
    tiny = (size != 0) & (free < smallest_normal)
    over = p.signal((code > _largest(out)) & ~is_nan & ~is_inf, "over")

    outward = (op.rnd == NEAREST) | ((op.rnd == UP) & ~negative) | ((op.rnd == DOWN) & negative)
    sign = p.signal(Mux(is_inf, _any(neg_inf), negative), "result_sign")
    everything_zero = ~_any(nonzero)
    has_plus = _any([takes & ~s for takes, s in zeros])
    has_minus = _any([takes & s for takes, s in zeros])
    zero_sign = Mux(everything_zero & ~(has_plus & has_minus), has_minus, op.rnd == DOWN)
    limit = p.signal(is_inf | (over & outward), "to_infinity")
    bits_out = out.exp + out.man
    nan_code = out.canonical_nan
    if out.specials is Specials.IEEE:
        infinite = Cat(Const(_largest(out) + 1, bits_out), sign)
    else:
        infinite = Const(nan_code, bits_out + 1)
    largest = Cat(Const(_largest(out), bits_out), sign)
    result = Signal(bits_out + 1, name="result")
    with p.m.If(is_nan):
        p.m.d.comb += result.eq(nan_code)
    with p.m.Elif((is_inf | over) & op.sat):
        p.m.d.comb += result.eq(largest)
    with p.m.Elif(limit):
        p.m.d.comb += result.eq(infinite)
    with p.m.Elif(over):
        p.m.d.comb += result.eq(largest)
    with p.m.Elif(size == 0):
        p.m.d.comb += result.eq(zero_sign << bits_out)
    with p.m.Else():
        p.m.d.comb += result.eq(Cat(code[:bits_out], negative))
    finite = ~is_nan & ~is_inf
    inexact = finite & (dropped | over)
    return Outcome(
        result,
        {
            "inexact": inexact,
            "sat_hit": (is_inf | over) & op.sat,
            "invalid": _any(wrong) | clash,
            "overflow": over,
            "underflow": tiny & inexact,
        },
    )


def whole_mma(
    p: Proof,
    src: Format,
    out: Format,
    pairs: Sequence[tuple[Value, Value]],
    c: Value,
    op,
) -> Outcome:
    """The same for integers and fixed point: exact, shifted with one rounding, wrapped or clamped.

    Parameters as for `float_mma`; codes of A and B are values, signed or not already.
    """
    total = Value.cast(0)
    shift = 2 * src.frac - out.frac
    for number, (a, b) in enumerate(pairs):
        product = p.signal(a * b, f"product{number}")
        term = Mux(op.negate, -product, product)
        total = total + Mux(op.k > number, term, 0)
    total = total + (Mux(op.overwrite, 0, c.as_signed()) << shift)
    exact = p.signal(total, "exact")
    floor = p.signal(exact >> shift, "floor")
    rest = exact[:shift] if shift else Const(0, 1)
    half = exact[shift - 1] if shift else Const(0, 1)
    below = exact[: shift - 1].any() if shift > 1 else Const(0, 1)
    up = Mux(
        op.rnd == NEAREST,
        half & (below | floor[0]),
        Mux(op.rnd == UP, rest.any(), (op.rnd == TO_ZERO) & (exact < 0) & rest.any()),
    )
    value = p.signal(floor + up, "value")
    low, high = -(1 << out.bits - 1), (1 << out.bits - 1) - 1
    outside = (value < low) | (value > high)
    clamps = p.signal(outside & op.sat, "clamps")
    kept = Mux(clamps, Mux(value < low, low, high), value)[: out.bits].as_signed()
    inexact = rest.any() if shift else Const(0, 1)
    none = Const(0, 1)
    return Outcome(
        kept,
        {
            "inexact": inexact,
            "sat_hit": clamps,
            "invalid": none,
            "overflow": none,
            "underflow": none,
        },
    )
