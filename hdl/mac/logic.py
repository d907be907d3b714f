"""Small combinational helpers of the MAC array."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value

__all__ = [
    "any_of",
    "leading_zeros",
    "mux_one_hot",
    "pick",
    "pick_bits",
    "shift_left",
    "shift_left_top",
    "shift_right",
    "trailing_zeros",
]


def any_of(bits: Iterable[Value]) -> Value:
    """OR of single bits; 0 of none."""
    bits = list(bits)
    return Cat(bits).any() if bits else Const(0, 1)


def mux_one_hot(options: Sequence[tuple[Value, Value | int]]) -> Value:
    """The value whose (one-hot) condition holds; the last one if none of the others does.

    Conditions of equal values should be merged by the caller.
    """
    result = Value.cast(options[-1][1])
    for condition, value in reversed(options[:-1]):
        value = Value.cast(value)
        is_signed = result.shape().signed or value.shape().signed
        result = Mux(condition, value, result)
        if is_signed and not result.shape().signed:
            result = result.as_signed()
    return result


def pick(values: Sequence[Value], index: Value) -> Value:
    """`values[index]`, a tree of multiplexers: no decoder, as a `Switch` would give.

    Parameters
    ----------
    values : as many as there are values of `index`, all of one width.
    index : as wide as that takes.
    """
    values = list(values)
    for bit in index:
        values = [Mux(bit, high, low) for low, high in zip(values[::2], values[1::2], strict=True)]
    (value,) = values
    return value


def pick_bits(
    value: Value, choices: Sequence[tuple[Value, Sequence[int | None]]], width: int
) -> Value:
    """Bits of `value` in the order of the choice whose (one-hot) condition holds; 0 if none does.

    Parameters
    ----------
    value : where bits come from.
    choices : conditions, with the numbers of the bits that they take, lowest first; None is 0.
    width : of the result; choices that are shorter give 0 above.
    """
    bits = []
    for i in range(width):
        # Choices that find this bit in the same place share an input.
        sources: dict[int, list[Value]] = {}
        for condition, numbers in choices:
            if i < len(numbers) and numbers[i] is not None:
                sources.setdefault(numbers[i], []).append(condition)
        if len(choices) == 1 and sources:
            bits.append(value[next(iter(sources))])
        else:
            bits.append(any_of(any_of(c) & value[n] for n, c in sources.items()))
    return Cat(bits)


# Amaranth writes an expression out wherever it is used: what is used twice must be a signal, or
# the text doubles with every level.


def shift_left(m: Module, name: str, value: Value, amount: Value, unit: int = 1) -> Value:
    """`value << (amount * unit)` in the width of `value`; `name` is a prefix of new signals."""
    bits = len(value)
    for i in range(len(amount)):
        step = min(unit << i, bits)
        stage = Signal(bits, name=f"{name}_by{unit << i}")
        m.d.comb += stage.eq(Mux(amount[i], Cat(Const(0, step), value[: bits - step]), value))
        value = stage
    return value


def shift_left_top(
    m: Module, name: str, value: Value, amount: Value, unit: int, keep: int
) -> tuple[Value, Value]:
    """Top `keep` bits of `value << (amount * unit)`, and whether any bit below them is set.

    What no later step can lift into the top is left out of the next one.
    """
    below = []
    for i in reversed(range(len(amount))):
        bits, step = len(value), min(unit << i, len(value))
        needed = min(bits, keep + (unit << i) - unit)
        spare = bits - needed
        stage = Signal(needed, name=f"{name}_by{unit << i}")
        moved = Cat(Const(0, step), value[: bits - step])
        m.d.comb += stage.eq(Mux(amount[i], moved[spare:], value[spare:]))
        if spare:
            rest = Signal(name=f"{name}_below{unit << i}")
            m.d.comb += rest.eq(Mux(amount[i], moved[:spare].any(), value[:spare].any()))
            below.append(rest)
        value = stage
    return value, any_of(below)


def shift_right(m: Module, name: str, value: Value, amount: Value, unit: int = 1) -> Value:
    """Arithmetic `value >> (amount * unit)` in the width of `value`; its top bit is the sign."""
    bits = len(value)
    for i in range(len(amount)):
        step = min(unit << i, bits)
        moved = Cat(value[step:], value[-1].replicate(step))
        stage = Signal(bits, name=f"{name}_by{unit << i}")
        m.d.comb += stage.eq(Mux(amount[i], moved, value))
        value = stage
    return value


def leading_zeros(m: Module, name: str, value: Value) -> Value:
    """Zeros above the highest set bit; any number of at least `len(value) - 1` if there is none."""
    bits = 1 << (len(value) - 1).bit_length()
    # Ones below the value: the count of an empty value is its length.
    padded = Cat(Const(-1, bits - len(value)), value) if bits > len(value) else value
    return _leading_zeros(m, name, padded)[1]


def _leading_zeros(m: Module, name: str, value: Value) -> tuple[Value, Value]:
    """Whether `value`, of 2^n bits, is empty, and its leading zeros, in n bits, if not."""
    if len(value) == 1:
        return ~value, Const(0, 0)
    half = len(value) // 2
    low_empty, low = _leading_zeros(m, f"{name}l", value[:half])
    high_empty, high = _leading_zeros(m, f"{name}h", value[half:])
    empty = Signal(name=f"{name}_empty")
    count = Signal(half.bit_length(), name=f"{name}_count")
    m.d.comb += [
        empty.eq(low_empty & high_empty),
        count.eq(Cat(Mux(high_empty, low, high), high_empty) if half > 1 else high_empty),
    ]
    return empty, count


def trailing_zeros(m: Module, name: str, value: Value) -> Value:
    """Zeros below the lowest set bit; undefined if there is none."""
    return leading_zeros(m, name, Cat(value[i] for i in reversed(range(len(value)))))
