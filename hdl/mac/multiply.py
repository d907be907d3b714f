"""The multiplier, and the multiplier block that it is made of.

Each is a component of its own: so a proof can put an abstract multiplier in its place, and a
platform its own block.
"""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Value, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..share import target
from .pipeline import register
from .tree import SumTree

__all__ = ["Multiplier", "MultiplierBlock"]

DSP_BITS = 18
"""Signed operand width that one multiplier block of common FPGAs takes."""

PIECE_BITS = DSP_BITS - 1
"""Width of the unsigned pieces of wider operands."""


class MultiplierBlock(wiring.Component):
    """Signed product of two operands, registers before and behind it.

    The registers are those that the multiplier blocks of FPGAs have inside. Synthesis does not
    find them everywhere, so a platform that has a method `get_multiplier` is asked for the module
    in place of this one: it gets the component, drives `p` and has the same latency. (Amaranth
    asks platforms for synchronizers in the same way.)

    Parameters
    ----------
    a_bits, b_bits : widths of the operands.

    Members
    -------
    a, b : operands.
    p : their product.

    Latency: `LATENCY` cycles. Throughput: one product a cycle. Source: architecture.md section 1.
    """

    LATENCY = 2

    def __init__(self, a_bits: int, b_bits: int):
        super().__init__(
            {"a": In(signed(a_bits)), "b": In(signed(b_bits)), "p": Out(signed(a_bits + b_bits))}
        )

    def elaborate(self, platform):
        get_multiplier = getattr(target(platform), "get_multiplier", None)
        if get_multiplier is not None:
            return get_multiplier(self)
        m = Module()
        a, b = register(m, "a_reg", self.a), register(m, "b_reg", self.b)
        m.d.comb += self.p.eq(register(m, "product", a * b))
        return m


class Multiplier(wiring.Component):
    """Signed product of two lanes, registered.

    Operands too wide for one multiplier block are cut into pieces; the products of the pieces are
    registered and summed.

    Parameters
    ----------
    bits : width of each operand.
    product_bits : width of the product; less than `2 * bits` drops high bits (modular sums).

    Members
    -------
    a, b : operands.
    p : their product.

    Latency: `latency` cycles, up to `DSP_BITS` that of a block. Throughput: one product a cycle.
    Source: architecture.md section 1.
    """

    def __init__(self, bits: int, product_bits: int):
        if bits < 1 or not 1 <= product_bits <= 2 * bits:
            raise ValueError(f"no {product_bits}-bit product of {bits}-bit operands")
        self.bits = bits
        self.product_bits = product_bits
        self.latency = self.latency_of(bits)
        super().__init__(
            {"a": In(signed(bits)), "b": In(signed(bits)), "p": Out(signed(product_bits))}
        )

    @staticmethod
    def pieces_of(bits: int) -> int:
        """Number of pieces that an operand is cut into; only the highest one is signed."""
        return 1 + -(-max(0, bits - DSP_BITS) // PIECE_BITS)

    @classmethod
    def latency_of(cls, bits: int) -> int:
        """Cycles that a product of operands of `bits` bits takes."""
        pieces = cls.pieces_of(bits)
        sums = 0 if pieces == 1 else SumTree.latency_of(2 * pieces - 1)
        return MultiplierBlock.LATENCY + sums

    def elaborate(self, platform):
        m = Module()
        count = self.pieces_of(self.bits)
        if count == 1:
            m.d.comb += self.p.eq(self._product(m, "block", self.a, self.b))
            return m
        # Products of pieces at the same distance do not overlap: they make one term.
        terms = [self._diagonal(m, count, distance) for distance in range(1 - count, count)]
        m.submodules.sum = tree = SumTree([len(term) for term in terms], self.product_bits)
        m.d.comb += [getattr(tree, f"term{i}").eq(term) for i, term in enumerate(terms)]
        m.d.comb += self.p.eq(tree.total)
        return m

    def _product(self, m: Module, name: str, a: Value, b: Value) -> Value:
        m.submodules[name] = block = MultiplierBlock(len(a), len(b))
        m.d.comb += [block.a.eq(a), block.b.eq(b)]
        return block.p

    def _piece(self, operand: Value, i: int, count: int) -> Value:
        """Piece `i` of an operand, as a signed value."""
        low = i * PIECE_BITS
        if i == count - 1:
            return operand[low:].as_signed()
        return Cat(operand[low : low + PIECE_BITS], Const(0, 1)).as_signed()

    def _diagonal(self, m: Module, count: int, distance: int) -> Value:
        """The products of pieces i of a and i - distance of b, side by side, in their place."""
        low = abs(distance) * PIECE_BITS
        parts: list[Value] = [Const(0, low)] if low else []
        for i in range(max(0, distance), count + min(0, distance)):
            j = i - distance
            place = (i + j) * PIECE_BITS
            if place >= self.product_bits:
                continue
            top = max(i, j) == count - 1
            a, b = self._piece(self.a, i, count), self._piece(self.b, j, count)
            product = self._product(m, f"block{i}_{j}", a, b)
            parts.append(product if top else product[: 2 * PIECE_BITS])
        value = Cat(parts)[: self.product_bits + 1]
        return value.as_signed()
