"""Fields of a float's container, for operands and for C alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from amaranth.hdl import Cat, Const, Module, Signal, Value

from ..formats import Format, Specials
from .logic import any_of, mux_one_hot, pick_bits

__all__ = ["Fields", "unpack"]


@dataclass
class Fields:
    """A float taken apart.

    `sign`; `exp`: biased exponent, a subnormal's is 1: that is `raw`, its code, or where this is
    `lowest` (of zeros and subnormals) 1; `sig`: significand with its hidden bit;
    and what the code is: `zero`, `inf`, `nan` (`snan`: a signalling one).
    Exponent and significand of Inf and NaN mean nothing.
    """

    sign: Value
    exp: Signal
    raw: Signal
    lowest: Signal
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
    choices : float formats with their one-hot conditions.
    at_top : the hidden bit is always the highest of `sig`; otherwise the lowest mantissa bit is
        always bit 0.
    """
    formats = [fmt for fmt, _ in choices]
    exp_bits = max(fmt.exp for fmt in formats)
    man_bits = max(fmt.man for fmt in formats)

    def below(fmt: Format) -> int:
        """Bits of `sig` below the format's own."""
        return man_bits - fmt.man if at_top else 0

    def places(fmt: Format) -> tuple[list[int | None], list[int | None], list[int | None]]:
        """Where the container holds mantissa, exponent and sign."""
        low = fmt.container - fmt.bits if fmt.top_aligned else 0
        top = low + fmt.man + fmt.exp
        return (
            [*[None] * below(fmt), *range(low, low + fmt.man)],
            [*range(low + fmt.man, top)],
            [top if fmt.signed else None],
        )

    def field(numbers: Sequence[int | None]) -> Value:
        return Cat(container[n] for n in numbers if n is not None)

    man = Signal(max(1, man_bits), name=f"{name}_man")
    raw = Signal(exp_bits, name=f"{name}_raw")
    sign = Signal(name=f"{name}_sign")
    where = [(condition, places(fmt)) for fmt, condition in choices]
    for i, (signal, width) in enumerate(((man, man_bits), (raw, exp_bits), (sign, 1))):
        m.d.comb += signal.eq(pick_bits(container, [(c, three[i]) for c, three in where], width))

    def all_of(bits: Value) -> Value:
        return bits.all() if len(bits) else Const(1, 1)

    parts = [
        (condition, fmt, field(three[0]), field(three[1]))
        for (condition, three), fmt in zip(where, formats, strict=True)
    ]
    powers = any_of(c for c, fmt, *_ in parts if fmt.specials is Specials.E8M0)
    lowest = Signal(name=f"{name}_lowest")  # zero or subnormal
    m.d.comb += lowest.eq((raw == 0) & ~powers)
    # The hidden bit stands above the format's own mantissa.
    hidden_places: dict[int, list[Value]] = {}
    for c, fmt, *_ in parts:
        hidden_places.setdefault(below(fmt) + fmt.man, []).append(c)
    sig = Signal(man_bits + 1, name=f"{name}_sig")
    hidden = mux_one_hot(
        [(any_of(c), Const(1 << n, man_bits + 1)) for n, c in hidden_places.items()]
    )
    m.d.comb += sig.eq(man | (hidden & (~lowest).replicate(man_bits + 1)))
    exp = Signal(exp_bits, name=f"{name}_exp")
    m.d.comb += exp.eq(raw | lowest)
    top = Signal(name=f"{name}_top")  # the highest exponent of the format
    man_zero = Signal(name=f"{name}_man_zero")
    unused = [any_of(c for c, fmt, *_ in parts if fmt.exp <= bit) for bit in range(exp_bits)]
    m.d.comb += [top.eq((raw | Cat(unused)).all()), man_zero.eq(man == 0)]
    flags = {
        "inf": top & man_zero & any_of(c for c, fmt, *_ in parts if fmt.has_inf),
        "nan": (top & ~man_zero & any_of(c for c, fmt, *_ in parts if fmt.has_inf))
        | any_of(
            c & all_of(man) & all_of(exp)
            for c, fmt, man, exp in parts
            if fmt.has_nan and not fmt.has_inf
        ),
        "snan": top
        & ~man_zero
        & any_of(c & ~man[-1] for c, fmt, man, _ in parts if fmt.has_signalling_nan),
    }
    bits = {kind: Signal(name=f"{name}_{kind}") for kind in flags}
    m.d.comb += [bits[kind].eq(value) for kind, value in flags.items()]
    zero = Signal(name=f"{name}_zero")
    m.d.comb += zero.eq(lowest & man_zero)
    return Fields(sign, exp, raw, lowest, sig, zero, **bits)
