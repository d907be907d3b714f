"""What ECP5 FPGAs have that synthesis does not find by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amaranth.hdl import Cat, ClockSignal, Const, Instance, Module, Signal

if TYPE_CHECKING:
    from hdl.mac.multiply import MultiplierBlock
    from hdl.registers import KeptRegister

__all__ = ["Ecp5"]

BITS = 18
"""Operands of a MULT18X18D."""


class Ecp5:
    """A platform, or a base class of one, that says what yosys would do otherwise.

    It maps multiplications to MULT18X18D but leaves the registers round them outside: far from the
    block, in slices. And it makes one register of two that hold the same.

    Source: Lattice, "ECP5 and ECP5-5G sysDSP Usage Guide" (TN1267).
    """

    def get_multiplier(self, multiplier: MultiplierBlock) -> Module:
        """A MULT18X18D in place of `multiplier`: registered operands, registered product."""
        m = Module()
        a, b, p = Signal(BITS), Signal(BITS), Signal(2 * BITS)
        # At the top of the block's operands: low bits are constants, and signs need no copies.
        spare_a, spare_b = BITS - len(multiplier.a), BITS - len(multiplier.b)
        m.d.comb += [
            a.eq(Cat(Const(0, spare_a), multiplier.a)),
            b.eq(Cat(Const(0, spare_b), multiplier.b)),
            multiplier.p.eq(p[spare_a + spare_b :]),
        ]
        registers = {
            f"p_REG_{place}_{kind}": f"{kind}0"
            for place in ("INPUTA", "INPUTB", "OUTPUT")
            for kind in ("CLK", "CE", "RST")
        }
        m.submodules.block = Instance(
            "MULT18X18D",
            p_GSR="DISABLED",
            **registers,
            i_CLK0=ClockSignal(),
            i_CE0=Const(1),
            i_RST0=Const(0),
            i_SIGNEDA=Const(1),
            i_SIGNEDB=Const(1),
            i_SOURCEA=Const(0),
            i_SOURCEB=Const(0),
            **{f"i_A{i}": a[i] for i in range(BITS)},
            **{f"i_B{i}": b[i] for i in range(BITS)},
            **{f"o_P{i}": p[i] for i in range(2 * BITS)},
        )
        return m

    def get_register(self, register: KeptRegister) -> Module:
        """Flip-flops in place of `register` that are not joined with others."""
        m = Module()
        for bit in range(len(register.d)):
            m.submodules += Instance(
                "TRELLIS_FF",
                a_keep=1,
                p_GSR="DISABLED",
                p_CEMUX="1",
                p_CLKMUX="CLK",
                p_LSRMUX="LSR",
                p_REGSET="RESET",
                i_CLK=ClockSignal(),
                i_LSR=Const(0),
                i_DI=register.d[bit],
                o_Q=register.q[bit],
            )
        return m
