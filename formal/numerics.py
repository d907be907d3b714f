"""Proofs of the arithmetic stages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, signed

from hdl.config import Config
from hdl.formats import FORMATS, Format, Specials, outputs
from hdl.mac import multiply
from hdl.mac.array import MacArray
from hdl.mac.multiply import Multiplier
from hdl.mac.plan import MacPlan
from hdl.mac.tree import SumTree

from .harness import Proof
from .naive import float_mma, whole_mma
from .task import Task, mutants

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


@contextmanager
def _small_blocks(bits: int) -> Iterator[None]:
    """While it lasts, a multiplier block takes operands of so few bits."""
    before = multiply.DSP_BITS, multiply.PIECE_BITS
    multiply.DSP_BITS, multiply.PIECE_BITS = bits, bits - 1
    try:
        yield
    finally:
        multiply.DSP_BITS, multiply.PIECE_BITS = before


def multiplier_pieces(bits: int, block: int, product_bits: int) -> Proof:
    """The same of operands that are cut into pieces, for multiplier blocks of `block` bits."""
    with _small_blocks(block):
        return multiplier(bits, product_bits)


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
    return MacPlan(_one_cell(formats)).latency + 4


class _OneUop:
    """One uop in an array of one sub-array, among others.

    Payload registers start anywhere and inputs in other cycles are free, so the uop whose `op`
    comes in the first cycle stands for any uop in any traffic: following it to its end proves all.

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
        over = 1 + dut.latency
        age = Signal(range(over + 2), name="age")
        with p.m.If(age <= over):
            p.m.d.sync += age.eq(age + 1)
        self.op = p.const(dut.op.shape(), "op")
        self.a, self.b, self.c = (p.const(cfg.row_bits, name) for name in "abc")
        for name, port, value, when in (
            ("op", dut.op, self.op, 0),
            ("a", dut.a, self.a, 1),
            ("b", dut.b, self.b, 1),
            ("c", dut.c, self.c, 1 + dut.c_delay),
        ):
            port = Value.cast(port)
            others = p.any(len(port), f"other_{name}")
            p.m.d.comb += port.eq(Mux(age == when, Value.cast(value), others))
        p.m.d.comb += dut.start.eq(1)
        self.over = p.signal(age == over, "over")
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


def _code(src: Format, out: Format, number: int) -> int:
    """The code in `out`, an IEEE format that holds it exactly, of a code of `src`."""
    infinite = ((1 << out.exp) - 1) << out.man
    negative = src.signed and number >> src.bits - 1
    sign = 1 << out.bits - 1 if negative else 0
    value = _value(src, number)
    if value is None:
        is_inf = src.has_inf and number % (1 << src.man) == 0
        return sign | infinite if is_inf else out.canonical_nan
    value = abs(value)
    exp = 1 - out.bias
    while value >= Fraction(2) ** (exp + 1):
        exp += 1
    units = value / Fraction(2) ** (exp - out.man)
    # The leading 1 of a normal number adds 1 to its exponent field.
    return sign | (exp - 1 + out.bias << out.man) + int(units)


def _one(fmt: Format) -> int:
    """The code of 1."""
    low = fmt.container - fmt.bits if fmt.top_aligned else 0
    return (fmt.bias << fmt.man if fmt.is_float else 1 << fmt.frac) << low


def _product_with_one(m: Module, src: Format, out: Format, code: Value) -> Value:
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
    # Most keep their fields; the lowest and the highest exponent by tables of fractions.
    man, exp, sign = value[: src.man], value[src.man :][: src.exp], value[src.man + src.exp :]
    result = Signal(out.bits, name="product_with_one")
    shifted = Cat(Const(0, out.man - src.man), man)
    normal = Cat(shifted, (exp + (out.bias - src.bias))[: out.exp], sign)
    m.d.comb += result.eq(normal)
    for special in (0, (1 << src.exp) - 1):
        with m.If(exp == special), m.Switch(Cat(man, sign)):
            for number in range(1 << src.bits - src.exp):
                low, high = number % (1 << src.man), number >> src.man
                with m.Case(number):
                    bits = (high << src.exp | special) << src.man | low
                    m.d.comb += result.eq(_code(src, out, bits))
    return result


def identity(names: Sequence[str], name: str) -> Proof:
    """An element times 1, with C left out, is the element: decode and encode undo each other.

    Parameters
    ----------
    names : formats of the array.
    name : the one that is multiplied.
    """
    uop = _OneUop(names)
    p, op = uop.p, uop.op
    src = FORMATS[name]
    out = outputs(src)["bovf" if src.name == outputs(src)["bovf"].name else "full"]
    a, b = (operand[: src.container] for operand in (uop.a, uop.b))
    p.assume("plain", op.overwrite & ~op.negate & (op.k == 1) & ~op.sat)
    p.assume("signed", ~op.a_unsigned & ~op.b_unsigned)
    p.assume("format", uop.select(src, out))
    p.assume("one", b == _one(src))
    expected = Signal(out.container, name="expected")
    p.m.d.comb += expected.eq(_product_with_one(p.m, src, out, a))
    p.check("same", ~uop.over | (uop.d[: out.container] == expected))
    flags = uop.flags.as_value()
    signals = (flags == 1 << 2) if src.has_signalling_nan else 0
    p.check("no_flag", ~uop.over | ~flags.any() | signals)
    p.cover("largest", uop.over & (a[: src.bits - 1] == (1 << src.bits - 1) - 2))
    return p


def accumulate(
    src: Format,
    out: Format,
    lanes: int,
    *,
    b_bits: int | None = None,
    unsigned: bool = False,
    never: Sequence[str] = (),
) -> Proof:
    """A row product plus C, rounded once, against numerics.md in whole numbers; flags too.

    Parameters
    ----------
    src, out : formats.
    lanes : most elements of a row that take part; what the others hold does not matter.
    b_bits : B holds integers of so few bits, or floats with so few bits of mantissa, no
        subnormals (products of wide numbers are hard to compare).
    unsigned : A and B may be unsigned integers.
    never : flags that cannot occur.
    """
    uop = _OneUop([src.name])
    p, op = uop.p, uop.op
    p.assume("formats", uop.select(src, out))
    p.assume("lanes", (op.k != 0) & (op.k <= lanes))
    bits = src.container
    codes = [
        (uop.a[n * bits : (n + 1) * bits], uop.b[n * bits : (n + 1) * bits]) for n in range(lanes)
    ]
    c = uop.c[: out.container]
    if src.is_float:
        p.assume("signed", ~op.a_unsigned & ~op.b_unsigned)
        pairs = [(a[: src.bits], b[: src.bits]) for a, b in codes]
        if b_bits is not None:
            for number, (_, b) in enumerate(pairs):
                none = ~b[: src.man - b_bits].any() & (b[src.man :][: src.exp].any() | (b == 0))
                p.assume(f"short{number}", none)
        expected = float_mma(p, src, out, pairs, c[: out.bits], op)
    else:
        if not unsigned:
            p.assume("signed", ~op.a_unsigned & ~op.b_unsigned)
        pairs = []
        for number, (a, b) in enumerate(codes):
            values = []
            for code, plain in ((a, op.a_unsigned), (b, op.b_unsigned)):
                value = Cat(code[: src.bits], code[src.bits - 1] & ~plain).as_signed()
                values.append(p.signal(value, f"value{number}_{len(values)}"))
            if b_bits:
                small = values[1][:b_bits].as_signed()
                p.assume(f"small{number}", values[1] == small)
                values[1] = small
            pairs.append(tuple(values))
        expected = whole_mma(p, src, out, pairs, c[: out.bits], op)
    code = p.signal(expected.code, "expected_code")
    got = uop.d[: out.container]
    p.check("code", ~uop.over | (got[: out.bits] == code[: out.bits]))
    for name, flag in expected.flags.items():
        flag = p.signal(flag, f"expected_{name}")
        p.check(name, ~uop.over | (uop.flags[name] == flag))
        if name in never:
            p.check(f"never_{name}", ~uop.over | ~flag)
        elif not isinstance(expected.flags[name], Const):
            p.cover(f"is_{name}", uop.over & flag)
    p.cover("exact", uop.over & ~uop.flags.as_value().any() & (code != 0) & ~op.overwrite)
    return p


# Formats that share an array in one proof; windowed ones apart from those with exact sums.
_TOGETHER = (
    ("int4", "fp4_e2m1", "fp4_e1m2", "uf4_e2m2", "uf4_e1m3"),
    ("fp6_e3m2", "fp6_e2m3", "fp6_e4m1", "uf6_e4m2"),
    ("int8", "fp8_e4m3", "fp8_e5m2", "q4_3", "q2_5"),
    ("int12", "fp12_e5m6", "fp12_e4m7", "q4_8", "q5_7"),
    ("int16", "fp16", "q8_8"),
    ("ue8m0", "bf16", "uf16_e8m8"),
    ("int32", "fp32", "tf32", "q16_16"),
    ("int64", "fp64", "q32_32"),
)

# Name, operands, output, elements of a row, bits of B if fewer than it has, flags that never rise.
_ACCUMULATED = (
    ("int4", "int4", "int8", 1, None, ()),
    ("q4_3", "q4_3", "q4_3", 1, 4, ()),
    ("fp4", "fp4_e2m1", "fp8_e4m3", 1, None, ("invalid", "underflow")),
    ("fp8_e4m3", "fp8_e4m3", "fp8_e4m3", 1, 0, ("invalid",)),
    ("fp8_e5m2", "fp8_e5m2", "fp8_e5m2", 1, 0, ()),
)

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
            name=f"accumulate_{name}",
            about="row product plus C, rounded once: code and flags, all modes",
            parameters=f"{src} into {out}, K up to {lanes}"
            + {None: "", 0: ", B a power of two"}.get(small, f", B of {small} bit"),
            build=lambda src=src, out=out, lanes=lanes, small=small, never=never: accumulate(
                FORMATS[src],
                FORMATS[out],
                lanes,
                b_bits=small,
                unsigned=src == "int4",
                never=never,
            ),
            mode="bmc",
            depth=_cycles([src]),
            cover=_cycles([src]),
        )
        for name, src, out, lanes, small, never in _ACCUMULATED
    ),
    *(
        Task(
            name=f"identity_{name}",
            about=f"decode and encode of {name} undo each other",
            parameters="any element, in an array of " + ", ".join(names),
            build=lambda names=names, name=name: identity(names, name),
            mode="bmc",
            depth=_cycles(names),
            cover=_cycles(names),
        )
        for names in _TOGETHER
        for name in names
    ),
    Task(
        name="multiplier",
        about="multiplier equals shifted additions",
        parameters="6 x 6 bit",
        build=lambda: multiplier(6, 12),
        depth=4,
        cover=5,
        quick=True,
    ),
    Task(
        name="multiplier_pieces",
        about="the same of operands in pieces",
        parameters="7 x 7 bit, multiplier blocks of 3 x 3 bit",
        build=lambda: multiplier_pieces(7, 3, 14),
        depth=7,
        cover=7,
    ),
)

MUTANTS = (
    *mutants(
        "hdl/mac/tree.py",
        "tree_modular",
        (
            "an odd term is lost",
            "            if len(values) % 2:\n                sums.append(values[-1])",
            "            if len(values) % 2 and level:\n                sums.append(values[-1])",
        ),
    ),
    *mutants(
        "hdl/mac/tree.py",
        "tree",
        (
            "sums lose their top bit",
            "sums.append(total[: self.sum_bits].as_signed())",
            "sums.append(total[: min(self.sum_bits, len(total) - 1)].as_signed())",
        ),
    ),
    *mutants(
        "hdl/mac/tree.py",
        "tree_carries",
        (
            "a carry comes a cycle late",
            "carry.pop(0)[level], place[level]",
            "carry.pop(0)[level + 1], place[level]",
        ),
        (
            "carries are added at every place",
            "[a[low:high], carry | ~place[i] if high else carry & place[i]]",
            "[a[low:high], carry if high else carry & place[i]]",
        ),
    ),
    *mutants(
        "hdl/mac/multiply.py",
        "multiplier",
        (
            "products are unsigned",
            '"product", a * b',
            '"product", a.as_unsigned() * b',
        ),
    ),
    *mutants(
        "hdl/mac/multiply.py",
        "multiplier_pieces",
        (
            "lower pieces are signed",
            "Cat(operand[low : low + PIECE_BITS], Const(0, 1)).as_signed()",
            "operand[low : low + PIECE_BITS].as_signed()",
        ),
        (
            "a sum of products loses its sign",
            "product if top else product[: 2 * PIECE_BITS]",
            "product[: 2 * PIECE_BITS]",
        ),
        (
            "the crossed products lie a bit too low",
            "low = abs(distance) * PIECE_BITS",
            "low = max(0, abs(distance) * PIECE_BITS - 1)",
        ),
    ),
    *mutants(
        "hdl/mac/float_accumulate.py",
        "accumulate_fp4",
        (
            "ties go away from zero",
            "source.nearest & guard & (any_lower | source.value[0])",
            "source.nearest & guard",
        ),
        ("bits far below are forgotten", "result.rest.eq(chosen[0])", "result.rest.eq(0)"),
        (
            "negative sums round as positive ones",
            "Mux(negative, rnd == DOWN, rnd == UP)",
            "rnd == UP",
        ),
        ("the largest number overflows", "end = out.man if out.has_inf else 0", "end = out.man"),
        ("a negative C is one short", "negative[0] & ~c_lost", "0 & negative[0]"),
        ("C below the axis does not carry", "completes & ~any_of(below_axis)", "completes"),
        (
            "what is raised beyond the range is not told",
            "Mux(up, raised, any_of(beyond))",
            "any_of(beyond)",
        ),
    ),
    *mutants(
        "hdl/mac/float_accumulate.py",
        "accumulate_fp8_e5m2",
        (
            "tiny before rounding",
            "source.subnormal & ~source.zero & ~becomes_normal",
            "source.subnormal & ~source.zero",
        ),
    ),
    *mutants(
        "hdl/mac/encode.py",
        "accumulate_fp4",
        ("rounding up limits both signs", '("neg_to_inf", DOWN)', '("neg_to_inf", UP)'),
        (
            "zeros of one sign lose it when rounding down",
            '((control.rnd == DOWN) & ~(all_zero & ~both["neg"]))',
            "(control.rnd == DOWN)",
        ),
        ("zeros keep the sign of their sum", "found.zero_sign, self.negative", "self.negative, 0"),
    ),
    *mutants(
        "hdl/mac/encode.py",
        "accumulate_fp8_e5m2",
        (
            "Inf that saturates is not told",
            "(early.inf | limited) & control.sat",
            "limited & control.sat",
        ),
        ("Inf minus Inf is Inf", 'nan = both["nan"] | clash', 'nan = both["nan"]'),
    ),
    *mutants(
        "hdl/mac/special.py",
        "accumulate_fp8_e5m2",
        (
            "zero times Inf is no number but tells nothing",
            "self.b.snan, *undefined]",
            "self.b.snan]",
        ),
        (
            "products have the sign of A",
            "negative.eq(a.negative ^ b.negative)",
            "negative.eq(a.negative)",
        ),
        (
            "elements beyond K are zeros",
            'found["pos"].append(a.active & ~negative)',
            'found["pos"].append(~negative)',
        ),
    ),
    *mutants(
        "hdl/mac/rounding.py",
        "accumulate_q4_3",
        ("ties go up", "guard & (lsb | rest)", "guard"),
        ("rounding up looks at one bit", "(rnd == UP) & dropped", "(rnd == UP) & guard"),
        (
            "negative numbers round away from zero",
            "(rnd == TO_ZERO) & negative & dropped",
            "(rnd == TO_ZERO) & ~negative & dropped",
        ),
    ),
    *mutants(
        "hdl/mac/integer_accumulate.py",
        "accumulate_int4",
        (
            "a negation is one short",
            "Cat(flip, aligned).as_signed()",
            "Cat(0 & flip, aligned).as_signed()",
        ),
        ("sums clamp to the wrong side", "limit[bit] ^ value[-1]", "limit[bit]"),
        (
            "sums that may wrap are clamped",
            "limited = control.sat & any_of(control.out[i] for i in narrower)",
            "limited = any_of(control.out[i] for i in narrower)",
        ),
    ),
    *mutants(
        "hdl/mac/operand.py",
        "identity_bf16",
        (
            "negative significands are one too low",
            "result.eq((wide ^ flip) + negate)",
            "result.eq(wide ^ flip)",
        ),
        ("elements beyond K take part", "m.d.sync += reg.eq(0)", "m.d.sync += reg.eq(decoded)"),
    ),
    *mutants(
        "hdl/mac/operand.py",
        "identity_int12",
        (
            "integers have no sign",
            "Cat(bits, bits[-1] & ~self.control.unsigned)",
            "Cat(bits, Const(0, 1))",
        ),
    ),
    *mutants(
        "hdl/mac/fields.py",
        "identity_fp16",
        ("subnormals lie a place too low", "exp.eq(raw | lowest)", "exp.eq(raw)"),
        (
            "the highest exponent is a number",
            "top.eq((raw | Cat(unused)).all())",
            "top.eq(0)",
        ),
        (
            "subnormals have a hidden bit",
            "man | (hidden & (~lowest).replicate(man_bits + 1))",
            "man | hidden",
        ),
    ),
    *mutants(
        "hdl/mac/align.py",
        "identity_tf32",
        ("E is the lowest exponent", "Mux(a > b, a, b)", "Mux(a > b, b, a)"),
        (
            "trailing zeros are bits too",
            "place.eq(self.limit + self.tz)",
            "place.eq(self.limit)",
        ),
    ),
    *mutants(
        "hdl/mac/align.py",
        "identity_fp8_e4m3",
        (
            "large shifts are halved",
            'shift_right(m, "coarse", fine, coarse, 1 << fine_bits)',
            'shift_right(m, "coarse", fine, coarse, 1 << fine_bits - 1)',
        ),
    ),
    *mutants(
        "hdl/mac/align.py",
        "identity_int12",
        ("integers are dropped", "bypass.eq(self.p)", "bypass.eq(0)"),
    ),
)
