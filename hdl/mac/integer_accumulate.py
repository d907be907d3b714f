"""The last stages of a sub-array that has integer formats only."""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..interfaces import mac_flags
from .accumulate_control import accumulate_control
from .logic import any_of, mux_one_hot
from .pipeline import register
from .plan import MacPlan
from .rounding import round_integer

__all__ = ["IntegerAccumulator"]


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

    Latency: `MacPlan.latency - 1 - MacPlan.c_age` cycles, `control_add` in the first,
    `control_round` in the second where outputs are rounded at all, `control_out` with the result.
    Throughput: one a cycle. Source: numerics.md sections 1 and 4.
    """

    def __init__(self, plan: MacPlan):
        self.plan = plan
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
        choose = self.control_add.shift
        aligned = mux_one_hot([(choose[i], self.c << n) for i, n in enumerate(plan.shifts)])
        frame = Signal(signed(plan.frame_bits), name="frame", reset_less=True)
        flip = self.control_add.negate
        total = self.total ^ flip.replicate(len(self.total)).as_signed()
        # The lowest bit carries in the one that completes a negation, in a single carry chain.
        carried = Cat(flip, aligned).as_signed() + Cat(flip, total).as_signed()
        m.d.sync += frame.eq(carried[1:].as_signed())
        value, inexact = frame, Const(0, 1)
        if plan.shifts != (0,):
            value, inexact = self._round(m, frame)
        self._encode(m, value, inexact)
        return m

    def _round(self, m: Module, frame: Signal) -> tuple[Signal, Signal]:
        """`frame` without the fraction bits that the output drops, rounded, registered."""
        control = self.control_round
        shifts = list(enumerate(self.plan.shifts))
        kept = mux_one_hot([(control.shift[i], frame >> n) for i, n in shifts])
        guard = any_of(control.shift[i] & frame[n - 1] for i, n in shifts if n)
        rest = any_of(control.shift[i] & frame[: n - 1].any() for i, n in shifts if n > 1)
        up = round_integer(control.rnd, negative=frame[-1], lsb=kept[0], guard=guard, rest=rest)
        value = Signal(signed(len(frame)), name="rounded", reset_less=True)
        m.d.sync += value.eq(kept + Cat(up, Const(0, 1)).as_signed())
        return value, register(m, "dropped", guard | rest)

    def _encode(self, m: Module, value: Signal, inexact: Value) -> None:
        control, outputs, bits = self.control_out, self.plan.outputs, self.plan.out_bits
        # Widest output first: what overflows it overflows the narrower ones too.
        overflows = []
        beyond: Value = Const(0, 1)
        top = len(value) - 1
        for i, out in sorted(enumerate(outputs), key=lambda item: -item[1].bits):
            if out.bits < len(value):
                below = value[out.bits - 1 : top]
                step = Signal(name=f"beyond_{out.name}")
                m.d.comb += step.eq(beyond | (below ^ value[-1].replicate(len(below))).any())
                overflows.append(control.out[i] & step)
                beyond, top = step, out.bits - 1
        largest = mux_one_hot(
            [(control.out[i], Const((1 << (o.bits - 1)) - 1, bits)) for i, o in enumerate(outputs)]
        )
        limit = largest ^ value[-1].replicate(bits)
        clamp = Signal(name="clamp")
        m.d.comb += [
            clamp.eq(any_of(overflows) & control.sat),
            self.d.eq(Mux(clamp, limit, self._wrap(value))),
            self.flags.sat_hit.eq(clamp),
            self.flags.inexact.eq(inexact),
        ]

    def _wrap(self, value: Signal) -> Value:
        """Low bits of `value` sign-extended from the output's width into its container."""
        bits = self.plan.out_bits
        result: Value = value[:bits]
        for i, out in enumerate(self.plan.outputs):
            if out.bits < out.container:
                extended = Cat(value[: out.bits], value[out.bits - 1].replicate(bits - out.bits))
                result = Mux(self.control_out.out[i], extended, result)
        return result
