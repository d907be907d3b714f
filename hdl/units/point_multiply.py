"""The multiplier of a pointwise lane: one product of 64 bits or two of 32."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Signal, Value, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..mac.pipeline import DelayLine, register

__all__ = ["PointMultiplier"]

WIDE = 64
HALF = WIDE // 2
PIECE = HALF // 2
"""Bits of a piece: with its sign it fits the 18-bit multiplier block of common FPGAs."""


class PointMultiplier(wiring.Component):
    """Signed product of two 64-bit operands, or of their low and of their high halves.

    Both operands are cut into four pieces. Their 16 products make four products of halves; the two
    across the halves take part in the wide product only, and the other two are the narrow ones. So
    the low halves are signed in a narrow product, unsigned in a wide one.

    Members
    -------
    a, b : operands.
    wide : one product of 64 bits, else two of 32.
    p : the products, 128 bits, or twice 64.

    Latency: `LATENCY` cycles. Throughput: one product a cycle. Size: 16 multiplier blocks.
    Source: isa.md section 1 (mmul, mmulh).
    """

    LATENCY = 3
    """Products of pieces, products of halves, their sum."""

    def __init__(self):
        super().__init__({"a": In(WIDE), "b": In(WIDE), "wide": In(1), "p": Out(2 * WIDE)})

    def elaborate(self, platform):
        m = Module()
        wide = DelayLine(m, "wide", self.wide)
        a, b = self._pieces(m, "a", self.a), self._pieces(m, "b", self.b)
        pieces = [
            [register(m, f"product{i}_{j}", a[i] * b[j]) for j in range(len(b))]
            for i in range(len(a))
        ]
        halves: dict[tuple[int, int], Signal] = {}
        for i in range(2):
            for j in range(2):
                product = Signal(signed(WIDE), name=f"half{i}_{j}", reset_less=True)
                own = [row[2 * j : 2 * j + 2] for row in pieces[2 * i : 2 * i + 2]]
                m.d.sync += product.eq(self._product(m, f"middle{i}_{j}", own))
                if i != j:
                    with m.If(~wide[1]):
                        m.d.sync += product.eq(0)
                halves[i, j] = product

        # Neither product of narrow operands reaches into the other's half.
        across = Signal(signed(WIDE + 1), name="across")
        upper = Signal(2 * WIDE - HALF, name="upper", reset_less=True)
        m.d.comb += across.eq(halves[0, 1] + halves[1, 0])
        m.d.sync += upper.eq(Cat(halves[0, 0][HALF:], halves[1, 1]).as_signed() + across)
        m.d.comb += self.p.eq(Cat(register(m, "lower", halves[0, 0][:HALF]), upper))
        return m

    def _pieces(self, m: Module, name: str, operand: Value) -> list[Signal]:
        """Pieces with a sign bit each, lowest first."""
        signs = (0, ~self.wide & operand[HALF - 1], 0, operand[WIDE - 1])
        pieces = []
        for i, sign in enumerate(signs):
            piece = Signal(signed(PIECE + 1), name=f"{name}{i}")
            m.d.comb += piece.eq(Cat(operand.word_select(i, PIECE), sign))
            pieces.append(piece)
        return pieces

    def _product(self, m: Module, name: str, products: list[list[Signal]]) -> Value:
        """Product of two halves, modulo 2^WIDE, from those of their pieces."""
        (low, right), (left, high) = products
        middle = Signal(signed(2 * PIECE + 2), name=name)
        m.d.comb += middle.eq(left + right)
        # That of the low pieces, which have no sign, leaves room for the high ones'.
        upper = Cat(low[PIECE : 2 * PIECE], high[:HALF]).as_signed() + middle
        return Cat(low[:PIECE], upper[: WIDE - PIECE])
