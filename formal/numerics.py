"""Proofs of the arithmetic stages."""

from __future__ import annotations

from collections.abc import Sequence

from amaranth.hdl import Mux, Signal, Value, signed

from hdl.mac.multiply import Multiplier
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
