"""Proofs of the arithmetic stages."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from amaranth.hdl import Array, Cat, Const, Mux, Signal, Value, signed

from hdl.config import Config
from hdl.formats import FORMATS, Format, Specials, outputs
from hdl.mac.array import MacArray
from hdl.mac.multiply import Multiplier
from hdl.mac.plan import MacPlan
from hdl.mac.tree import SumTree

from .harness import Proof
from .task import Mutant, Task

__all__ = ["MUTANTS", "TASKS"]


def _delayed(p: Proof, value, cycles: int, name: str) -> Value:
    for age in range(1, cycles + 1):
        value = p.past(value, f"{name}_{age}")
    return value


def _ready(p: Proof, cycles: int) -> Signal:
    """What was fed after the reset has come out."""
    age = Signal(range(cycles + 1), name="age")
    with p.m.If(age != cycles):
        p.m.d.sync += age.eq(age + 1)
    return p.signal(age == cycles, "ready")


def tree(
    widths: Sequence[int], sum_bits: int, carries: int = 0, places: Sequence[int] = (0,)
) -> Proof:
    """The pipelined tree against a plain sum, `latency` cycles later."""
    p = Proof()
    dut = SumTree(widths, sum_bits, carries, places)
    p.add("tree", dut, free=True)
    total = Value.cast(0)
    for number, width in enumerate(widths):
        term = getattr(dut, f"term{number}")
        if carries:
            # Terms are zero below the place in use.
            for index, place in enumerate(places):
                if place:
                    p.assume(
                        f"clear{number}_{index}",
                        ~dut.place[index] | ~term[: min(place, width)].any(),
                    )
        total = total + term
    if carries:
        p.assume("one_place", (dut.place & (dut.place - 1)) == 0)
        for bit in range(carries):
            for index, place in enumerate(places):
                total = total + ((dut.carry[bit] & dut.place[index]) << place)
    expected = _delayed(p, p.signal(total[:sum_bits], "plain"), dut.latency, "plain")
    ready = _ready(p, dut.latency)
    p.check("sum", ~ready | (dut.total == expected.as_signed()))
    p.cover(
        "most_negative", ready & (expected == sum(-(1 << w - 1) for w in widths) % (1 << sum_bits))
    )
    p.cover("positive", ready & (dut.total > 0))
    if carries:
        p.cover(
            "every_carry", ready & _delayed(p, dut.carry.all() & dut.place[-1], dut.latency, "all")
        )
    return p


def multiplier(bits: int, product_bits: int) -> Proof:
    """The multiplier against the product of magnitudes, summed bit by bit."""
    p = Proof()
    dut = Multiplier(bits, product_bits)
    p.add("multiplier", dut, free=True)
    a = Signal(bits, name="a_magnitude")
    b = Signal(bits, name="b_magnitude")
    p.m.d.comb += [a.eq(Mux(dut.a < 0, -dut.a, dut.a)), b.eq(Mux(dut.b < 0, -dut.b, dut.b))]
    magnitude = Value.cast(0)
    for bit in range(bits):
        magnitude = magnitude + (Mux(a[bit], b, 0) << bit)
    exact = Signal(signed(2 * bits + 1), name="exact")
    p.m.d.comb += exact.eq(Mux((dut.a < 0) ^ (dut.b < 0), -magnitude, magnitude))
    expected = _delayed(p, exact[:product_bits], dut.latency, "expected")
    ready = _ready(p, dut.latency)
    p.check("product", ~ready | (dut.p == expected.as_signed()))
    p.cover("largest", ready & (expected == (1 << 2 * bits - 2) % (1 << product_bits)))
    p.cover("negative", ready & (dut.p < -1))
    return p


def _one_cell(formats: Sequence[str]) -> Config:
    """An array of one sub-array."""
    return Config(
        tiles=2,
        rows=2,
        row_bits=64,
        bus_bits=64,
        banks=1,
        m_par=1,
        n_par=1,
        formats=tuple(formats),
    )


def _cycles(formats: Sequence[str]) -> int:
    """Cycles from reset that show the first uop's result."""
    return MacPlan(_one_cell(formats)).latency + 3


class _OneUop:
    """One uop in an array of one sub-array, among others.

    Payload registers start anywhere and inputs in other cycles are free, so the uop that enters in
    the first cycle stands for any uop in any traffic: following it to its end proves all.

    Attributes
    ----------
    op, a, b, c : the uop and its operands; only what it selects is constrained.
    d, flags : its results, valid when `over`.
    """

    def __init__(self, formats: Sequence[str]):
        self.p = p = Proof()
        self.cfg = cfg = _one_cell(formats)
        dut = MacArray(cfg)
        p.add("array", dut)
        age = Signal(range(dut.latency + 2), name="age")
        with p.m.If(age <= dut.latency):
            p.m.d.sync += age.eq(age + 1)
        self.op = p.const(dut.op.shape(), "op")
        self.a, self.b, self.c = (p.const(cfg.row_bits, name) for name in "abc")
        for name, port, value, when in (
            ("op", dut.op, self.op, 0),
            ("a", dut.a, self.a, 0),
            ("b", dut.b, self.b, 0),
            ("c", dut.c, self.c, dut.c_delay),
        ):
            port = Value.cast(port)
            others = p.any(len(port), f"other_{name}")
            p.m.d.comb += port.eq(Mux(age == when, Value.cast(value), others))
        p.m.d.comb += dut.start.eq(1)
        self.over = p.signal(age == dut.latency, "over")
        self.d, self.flags = dut.d[0], dut.flags
        p.assume("element", self.op.rows & self.op.cols)
        p.assume("first_column", self.op.c_byte == 0)

    def select(self, src: Format, out: Format) -> Value:
        """The uop multiplies `src` into `out`."""
        ft = [f.name for f in self.cfg.format_rows].index(src.name)
        index = [f.name for f in self.cfg.output_formats].index(out.name)
        return (self.op.ft == ft) & (self.op.out == index)


def _value(fmt: Format, code: int) -> Fraction | None:
    """What a code of a float means; None for Inf and NaN."""
    man, exp = code % (1 << fmt.man), code >> fmt.man & ((1 << fmt.exp) - 1)
    sign = -1 if fmt.signed and code >> fmt.man + fmt.exp else 1
    if fmt.specials is Specials.E8M0:
        return None if exp == 255 else Fraction(2) ** (exp - fmt.bias)
    top = exp == (1 << fmt.exp) - 1
    if top and (
        fmt.specials is Specials.IEEE
        or (fmt.specials is Specials.NAN_TOP and man == (1 << fmt.man) - 1)
    ):
        return None
    if exp == 0:
        return sign * Fraction(man) * Fraction(2) ** (1 - fmt.bias - fmt.man)
    return sign * Fraction((1 << fmt.man) + man) * Fraction(2) ** (exp - fmt.bias - fmt.man)


def _one(fmt: Format) -> int:
    """The code of 1."""
    low = fmt.container - fmt.bits if fmt.top_aligned else 0
    return (fmt.bias << fmt.man if fmt.is_float else 1 << fmt.frac) << low


def _product_with_one(src: Format, out: Format, code: Value) -> Value:
    """What 1 times an element, rounded into `out`, must give."""
    low = src.container - src.bits if src.top_aligned else 0
    value = code[low : low + src.bits]
    if not src.is_float:
        return value.as_signed()
    if src.name == out.name:
        top = value[: src.exp + src.man]
        exp, man = top[src.man :], top[: src.man]
        nan = {
            Specials.NONE: Const(0),
            Specials.IEEE: exp.all() & man.any(),
            Specials.NAN_TOP: top.all(),
            Specials.E8M0: top.all(),
        }[src.specials]
        canonical = (src.canonical_nan or 0) >> low
        return Mux(nan, canonical, value) << low
    # An element of at most 6 bits, by a table made of whole numbers and fractions.
    codes = {_value(out, c): c for c in reversed(range(1 << out.bits))}
    negative_zero = 1 << out.bits - 1
    table = []
    for number in range(1 << src.bits):
        meant = _value(src, number)
        zero_below = meant == 0 and src.signed and number >> src.bits - 1
        table.append(negative_zero if zero_below else codes[meant])
    return Array(Const(code, out.bits) for code in table)[value]


def identity(names: Sequence[str]) -> Proof:
    """An element times 1, with C left out, is the element: decode and encode undo each other."""
    uop = _OneUop(names)
    p, op = uop.p, uop.op
    p.assume("plain", op.overwrite & ~op.negate & (op.k == 1) & ~op.sat)
    p.assume("signed", ~op.a_unsigned & ~op.b_unsigned)
    chosen = []
    for name in names:
        src = FORMATS[name]
        out = outputs(src)["bovf" if src.name == outputs(src)["bovf"].name else "full"]
        selected = p.signal(uop.select(src, out), f"is_{name}")
        chosen.append(selected)
        a = uop.a[: src.container]
        p.assume(f"one_{name}", ~selected | (uop.b[: src.container] == _one(src)))
        expected = Signal(out.container, name=f"expected_{name}")
        p.m.d.comb += expected.eq(_product_with_one(src, out, a))
        here = p.signal(uop.over & selected, f"over_{name}")
        p.check(f"same_{name}", ~here | (uop.d[: out.container] == expected))
        quiet = ~uop.flags.as_value().any()
        if src.has_signalling_nan:
            quiet = quiet | (uop.flags.as_value() == 1 << 2)
        p.check(f"no_flag_{name}", ~here | quiet)
        p.cover(f"largest_{name}", here & (a[: src.bits - 1] == (1 << src.bits - 1) - 2))
    p.assume("format", Cat(chosen).any())
    return p


# Formats that share an array in one proof; windowed ones apart from those with exact sums.
_TOGETHER = {
    "4": ("int4", "fp4_e2m1", "fp4_e1m2", "uf4_e2m2", "uf4_e1m3"),
    "6": ("fp6_e3m2", "fp6_e2m3", "fp6_e4m1", "uf6_e4m2"),
    "8": ("int8", "fp8_e4m3", "fp8_e5m2", "q4_3", "q2_5"),
    "12": ("int12", "fp12_e5m6", "fp12_e4m7", "q4_8", "q5_7"),
    "16": ("int16", "fp16", "q8_8"),
    "bf16": ("ue8m0", "bf16", "uf16_e8m8"),
    "32": ("int32", "fp32", "tf32", "q16_16"),
    "64": ("int64", "fp64", "q32_32"),
}

TASKS = (
    Task(
        name="tree",
        about="adder tree equals the sum",
        parameters="6 terms of 4 to 6 bit",
        build=lambda: tree((6, 4, 5, 6, 4, 6), 9),
        depth=5,
        cover=8,
        quick=True,
    ),
    Task(
        name="tree_modular",
        about="a narrow tree equals the sum modulo",
        parameters="5 terms of 6 bit, sum of 6 bit",
        build=lambda: tree((6, 6, 6, 6, 6), 6),
        depth=5,
        cover=8,
    ),
    Task(
        name="tree_carries",
        about="carries are added at their place",
        parameters="4 terms of 6 bit, 4 carries at bit 0 or 2",
        build=lambda: tree((6, 6, 6, 6), 9, carries=4, places=(0, 2)),
        depth=5,
        cover=8,
        quick=True,
    ),
    *(
        Task(
            name=f"identity_{size}",
            about="decode and encode undo each other, each format",
            parameters=", ".join(names),
            build=lambda names=names: identity(names),
            mode="bmc",
            depth=_cycles(names),
            cover=_cycles(names),
        )
        for size, names in _TOGETHER.items()
    ),
    Task(
        name="multiplier",
        about="multiplier equals shifted additions",
        parameters="6 x 6 bit",
        build=lambda: multiplier(6, 12),
        depth=3,
        cover=4,
        quick=True,
    ),
)

_TREE = "hdl/mac/tree.py"
MUTANTS = (
    Mutant(
        name="an odd term is lost",
        path=_TREE,
        old="            if len(values) % 2:\n                sums.append(values[-1])",
        new="            if len(values) % 2 and level:\n                sums.append(values[-1])",
        task="tree_modular",
        depth=6,
    ),
    Mutant(
        name="sums lose their top bit",
        path=_TREE,
        old="sums.append(total[: self.sum_bits].as_signed())",
        new="sums.append(total[: min(self.sum_bits, len(total) - 1)].as_signed())",
        task="tree",
        depth=6,
    ),
    Mutant(
        name="a carry comes a cycle late",
        path=_TREE,
        old="carry.pop(0)[level], place[level]",
        new="carry.pop(0)[level + 1], place[level]",
        task="tree_carries",
        depth=8,
    ),
    Mutant(
        name="carries are added at every place",
        path=_TREE,
        old="[a[low:high], carry | ~place[i] if high else carry & place[i]]",
        new="[a[low:high], carry if high else carry & place[i]]",
        task="tree_carries",
        depth=8,
    ),
    Mutant(
        name="products are unsigned",
        path="hdl/mac/multiply.py",
        old="product.eq(self.a * self.b)",
        new="product.eq(self.a.as_unsigned() * self.b)",
        task="multiplier",
        depth=3,
    ),
)
