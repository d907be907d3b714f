"""The last stages of a sub-array: add C, round once, clamp or wrap."""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ..formats import Format
from ..interfaces import mac_flags
from .pipeline import register
from .plan import MacPlan

__all__ = ["IntegerAccumulator", "accumulate_control"]

NEAREST, UP, DOWN, TO_ZERO = range(4)
"""RND codes (isa.md section 2)."""


def accumulate_control(plan: MacPlan) -> data.StructLayout:
    """Control of an accumulator, from `op` (see control.py).

    `out`: one-hot, in order of `Config.output_formats`. `shift`: one-hot, in order of
    `MacPlan.shifts`. `negate`, `sat`, `rnd`: as in `mac_op`.
    """
    return data.StructLayout(
        {"out": len(plan.outputs), "shift": len(plan.shifts), "negate": 1, "sat": 1, "rnd": 2}
    )


class IntegerAccumulator(wiring.Component):
    """Adds C to an exact integer or fixed-point sum and brings it to the output format.

    Parameters
    ----------
    plan : sizes.

    Members
    -------
    total : sum of the products.
    c : the element of C, sign-extended, or zero.
    control_add, control_round, control_out : control of the uop that is in that stage.
    d : the result's container in the low bits, sign-extended.
    flags : its flags.

    Latency: `latency` cycles, `control_add` in the first, `control_round` in the second where
    outputs are rounded at all, `control_out` with the result. Throughput: one a cycle. Source:
    numerics.md sections 1 and 4.
    """

    def __init__(self, plan: MacPlan):
        self.plan = plan
        self.rounds = plan.shifts != (0,)
        self.latency = plan.accumulate_latency
        control = accumulate_control(plan)
        super().__init__(
            {
                "total": In(signed(plan.sum_bits)),
                "c": In(signed(plan.out_bits)),
                "control_add": In(control),
                "control_round": In(control),
                "control_out": In(control),
                "d": Out(plan.out_bits),
                "flags": Out(mac_flags()),
            }
        )

    def elaborate(self, platform):
        m = Module()
        plan = self.plan
        aligned = self._by_shift(self.control_add.shift, [self.c << n for n in plan.shifts])
        frame = Signal(signed(plan.frame_bits), name="frame", reset_less=True)
        flip = self.control_add.negate
        total = self.total ^ flip.replicate(len(self.total)).as_signed()
        # The lowest bit carries in the one that completes a negation, in a single carry chain.
        carried = Cat(flip, aligned).as_signed() + Cat(flip, total).as_signed()
        m.d.sync += frame.eq(carried[1:].as_signed())
        value, inexact = frame, Const(0, 1)
        if self.rounds:
            value, inexact = self._round(m, frame)
        self._encode(m, value, inexact)
        return m

    def _by_shift(self, select: Value, options: list[Value]) -> Value:
        value = options[0]
        for i, option in enumerate(options[1:], 1):
            value = Mux(select[i], option, value)
        return value if value.shape().signed else value.as_signed()

    def _round(self, m: Module, frame: Signal) -> tuple[Signal, Signal]:
        """`frame` without the fraction bits that the output drops, rounded, registered."""
        control = self.control_round
        kept = self._by_shift(control.shift, [frame >> n for n in self.plan.shifts])
        guard = self._by_bit(control.shift, [frame[n - 1] if n else 0 for n in self.plan.shifts])
        rest = self._by_bit(
            control.shift, [frame[: n - 1].any() if n > 1 else 0 for n in self.plan.shifts]
        )
        up = round_up(control.rnd, negative=frame[-1], lsb=kept[0], guard=guard, rest=rest)
        value = Signal(signed(len(frame)), name="rounded", reset_less=True)
        m.d.sync += value.eq(kept + Cat(up, 0).as_signed())
        return value, register(m, "dropped", guard | rest)

    def _by_bit(self, select: Value, bits: list) -> Value:
        value: Value = Const(0, 1)
        for i, bit in enumerate(bits):
            value = value | (select[i] & bit)
        return value

    def _encode(self, m: Module, value: Signal, inexact: Value) -> None:
        control, outputs = self.control_out, self.plan.outputs
        overflow: Value = Const(0, 1)
        limit: Value = Const(0, self.plan.out_bits)
        for i, out in enumerate(outputs):
            if out.bits < len(value):
                high = value[out.bits - 1 :]
                overflow = overflow | (control.out[i] & (high.any() & ~high.all()))
            limit = Mux(control.out[i], _largest(out, self.plan.out_bits), limit)
        clamp = Signal(name="clamp")
        m.d.comb += [
            clamp.eq(overflow & control.sat),
            self.d.eq(Mux(clamp, limit ^ value[-1].replicate(len(limit)), self._wrap(value))),
            self.flags.sat_hit.eq(clamp),
            self.flags.inexact.eq(inexact),
        ]

    def _wrap(self, value: Signal) -> Value:
        """Low bits of `value` sign-extended from the output's width into its container."""
        result: Value = value[: self.plan.out_bits]
        for i, out in enumerate(self.plan.outputs):
            if out.bits < out.container:
                wrapped = value[: out.bits].as_signed()
                missing = self.plan.out_bits - out.bits
                result = Mux(
                    self.control_out.out[i], Cat(wrapped, wrapped[-1].replicate(missing)), result
                )
        return result


def _largest(out: Format, bits: int) -> Const:
    return Const((1 << (out.bits - 1)) - 1, bits)


def round_up(rnd: Value, *, negative: Value, lsb: Value, guard: Value, rest: Value) -> Value:
    """Whether a truncated two's complement value must be raised by one.

    `guard` is the first dropped bit, `rest` whether any later one is set.
    """
    dropped = guard | rest
    return (
        ((rnd == NEAREST) & guard & (lsb | rest))
        | ((rnd == UP) & dropped)
        | ((rnd == TO_ZERO) & negative & dropped)
    )
