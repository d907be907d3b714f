"""Fields of a float's container, for operands and for C alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from amaranth.hdl import Cat, Const, Module, Signal, Value

from ..formats import Format, Specials
from .logic import any_of, mux_one_hot

__all__ = ["Fields", "unpack"]


@dataclass
class Fields:
    """A float taken apart.

    `sign`; `exp`: biased exponent, a subnormal's is 1; `sig`: significand with its hidden bit;
    and what the code is: `zero`, `inf`, `nan` (`snan`: a signalling one).
    Exponent and significand of Inf and NaN mean nothing.
    """

    sign: Value
    exp: Signal
    sig: Signal
    zero: Value
    inf: Value
    nan: Value
    snan: Value


def unpack(
    m: Module,
    name: str,
    container: Value,
    choices: Sequence[tuple[Format, Value]],
    *,
    at_top: bool = False,
) -> Fields:
    """Take a container apart in the chosen format.

    Parameters
    ----------
    m : module to put named signals in.
    name : their prefix.
    container : the element, in the low bits.
    choices : float formats with their one-hot conditions; the last is taken if no other is.
    at_top : the hidden bit is always the highest of `sig`; otherwise the lowest mantissa bit is
        always bit 0.
    """
    formats = [fmt for fmt, _ in choices]
    exp_bits = max(fmt.exp for fmt in formats)
    man_bits = max(fmt.man for fmt in formats)

    def field(fmt: Format) -> tuple[Value, Value, Value]:
        low = fmt.container - fmt.bits if fmt.top_aligned else 0
        man = container[low : low + fmt.man] if fmt.man else Const(0, 1)
        exp = container[low + fmt.man : low + fmt.man + fmt.exp]
        return man, exp, container[low + fmt.bits - 1] if fmt.signed else Const(0, 1)

    parts = [(condition, fmt, *field(fmt)) for fmt, condition in choices]

    def below(fmt: Format) -> int:
        """Bits of `sig` below the format's own."""
        return man_bits - fmt.man if at_top else 0

    def placed(fmt: Format, man: Value) -> Value:
        return Cat(Const(0, below(fmt)), man)

    man = Signal(max(1, man_bits), name=f"{name}_man")
    raw = Signal(exp_bits, name=f"{name}_raw")
    sign = Signal(name=f"{name}_sign")
    m.d.comb += [
        man.eq(mux_one_hot([(c, placed(fmt, man)) for c, fmt, man, _, _ in parts])),
        raw.eq(mux_one_hot([(c, exp) for c, _, _, exp, _ in parts])),
        sign.eq(mux_one_hot([(c, sign) for c, _, _, _, sign in parts])),
    ]
    powers = any_of(c for c, fmt, *_ in parts if fmt.specials is Specials.E8M0)
    lowest = Signal(name=f"{name}_lowest")  # zero or subnormal
    m.d.comb += lowest.eq((raw == 0) & ~powers)
    # The hidden bit stands above the format's own mantissa.
    places: dict[int, list[Value]] = {}
    for c, fmt, *_ in parts:
        places.setdefault(below(fmt) + fmt.man, []).append(c)
    sig = Signal(man_bits + 1, name=f"{name}_sig")
    hidden = mux_one_hot([(any_of(c), Const(1 << n, man_bits + 1)) for n, c in places.items()])
    m.d.comb += sig.eq(man | (hidden & (~lowest).replicate(man_bits + 1)))
    exp = Signal(exp_bits, name=f"{name}_exp")
    m.d.comb += exp.eq(raw | lowest)
    flags = {}
    tests = {
        "inf": [c & exp.all() & (man == 0) for c, fmt, man, exp, _ in parts if fmt.has_inf],
        "nan": [
            c & exp.all() & (man.any() if fmt.has_inf else man.all() if fmt.man else Const(1, 1))
            for c, fmt, man, exp, _ in parts
            if fmt.has_nan
        ],
        "snan": [
            c & exp.all() & man.any() & ~man[-1]
            for c, fmt, man, exp, _ in parts
            if fmt.has_signalling_nan
        ],
    }
    for kind, bits in tests.items():
        flags[kind] = Signal(name=f"{name}_{kind}")
        m.d.comb += flags[kind].eq(any_of(bits))
    zero = Signal(name=f"{name}_zero")
    m.d.comb += zero.eq(lowest & (man == 0))
    return Fields(sign, exp, sig, zero, flags["inf"], flags["nan"], flags["snan"])
