"""The multiplier, a component of its own so that a proof can put an abstract one in its place."""

from __future__ import annotations

from amaranth.hdl import Module, Signal, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["Multiplier"]


class Multiplier(wiring.Component):
    """Signed product of two lanes, registered.

    Parameters
    ----------
    bits : width of each operand.
    product_bits : width of the product; less than `2 * bits` drops high bits (modular sums).

    Members
    -------
    a, b : operands.
    p : their product.

    Latency: 1 cycle. Throughput: one product a cycle. Source: architecture.md section 1.
    """

    latency = 1

    def __init__(self, bits: int, product_bits: int):
        if bits < 1 or not 1 <= product_bits <= 2 * bits:
            raise ValueError(f"no {product_bits}-bit product of {bits}-bit operands")
        self.bits = bits
        self.product_bits = product_bits
        super().__init__(
            {"a": In(signed(bits)), "b": In(signed(bits)), "p": Out(signed(product_bits))}
        )

    def elaborate(self, platform):
        m = Module()
        product = Signal(signed(self.product_bits), reset_less=True)
        m.d.sync += product.eq(self.a * self.b)
        m.d.comb += self.p.eq(product)
        return m
