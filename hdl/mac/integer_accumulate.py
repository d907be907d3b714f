"""The last stages of a sub-array that has integer formats only."""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import data, wiring
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
    inverted : `total` comes with its bits inverted where it is to be negated.

    Members
    -------
    total : sum of the products.
    c : the element of C, sign-extended, or zero.
    control_add, control_round, control_out : control of the uop that is in that stage.
    d : the result's container in the low bits; those above are undefined.
    flags : its flags.

    Latency: `MacPlan.latency - 1 - MacPlan.c_age` cycles, `control_add` in the first,
    `control_round` in the second where outputs are rounded at all, `control_out` with the result.
    Throughput: one a cycle. Source: numerics.md sections 1 and 4.
    """

    def __init__(self, plan: MacPlan, *, inverted: bool = False):
        self.plan = plan
        self.inverted = inverted
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
        total = self.total
        if not self.inverted:
            total = total ^ flip.replicate(len(total)).as_signed()
        # The lowest bit carries in the one that completes a negation, in a single carry chain.
        carried = Cat(flip, aligned).as_signed() + Cat(flip, total).as_signed()
        with_c = Signal(signed(plan.frame_bits), name="with_c")
        m.d.comb += with_c.eq(carried[1:].as_signed())
        m.d.sync += frame.eq(with_c)
        if plan.shifts == (0,):
            self._encode(m, frame, self._clamp(m, with_c, self.control_add), Const(0, 1))
        else:
            value, before, inexact = self._round(m, frame)
            self._encode(m, value, self._clamp(m, before, self.control_round), inexact)
        return m

    def _round(self, m: Module, frame: Signal) -> tuple[Signal, Signal, Signal]:
        """`frame` without the fraction bits that the output drops, rounded.

        Registered, before its register, and whether bits were dropped.
        """
        control = self.control_round
        shifts = list(enumerate(self.plan.shifts))
        kept = mux_one_hot([(control.shift[i], frame >> n) for i, n in shifts])
        guard = any_of(control.shift[i] & frame[n - 1] for i, n in shifts if n)
        rest = any_of(control.shift[i] & frame[: n - 1].any() for i, n in shifts if n > 1)
        up = round_integer(control.rnd, negative=frame[-1], lsb=kept[0], guard=guard, rest=rest)
        rounded = Signal(signed(len(frame)), name="with_carry")
        m.d.comb += rounded.eq(kept + Cat(up, Const(0, 1)).as_signed())
        value = Signal(signed(len(frame)), name="rounded", reset_less=True)
        m.d.sync += value.eq(rounded)
        return value, rounded, register(m, "dropped", guard | rest)

    COMPARED_BITS = 4
    """Neighbouring bits that are compared at once: inputs of a LUT."""

    def _clamp(self, m: Module, value: Value, control: data.View) -> dict[int, Signal]:
        """Whether `value`, which is in the stage of `control`, is clamped a cycle later.

        By width: it is beyond that width, but not beyond a wider one, and the output is no wider.
        So what is clamped is so by some width from the output's on.

        A number fits if its sign and all bits above the output's width are equal. Sums of narrow
        outputs do not reach the top, so few bits are compared, and in the stage that makes them.
        """
        clamps: dict[int, Signal] = {}
        top = len(value)
        for bits in sorted({out.bits for out in self.plan.outputs}, reverse=True):
            if bits >= len(value):
                continue
            top = min(top, self._reach(bits))
            differ = []
            for low in range(bits - 1, top - 1, self.COMPARED_BITS - 1):
                part = value[low : min(low + self.COMPARED_BITS, top)]
                differ.append(part.any() & ~part.all())
            # What overflows a width overflows the narrower ones too.
            narrower = [i for i, out in enumerate(self.plan.outputs) if out.bits <= bits]
            limited = control.sat & any_of(control.out[i] for i in narrower)
            clamps[bits] = register(m, f"clamp_to{bits}", any_of(differ) & limited)
            top = bits
        return clamps

    def _reach(self, bits: int) -> int:
        """Width of the sums whose output has up to `bits` bits."""
        pairs = [p for p in self.plan.pairs if not p.out.is_float and p.out.bits <= bits]
        if any(pair.src.modular for pair in pairs):
            return self.plan.frame_bits
        return max(pair.src.sum_bits + pair.bits_above for pair in pairs)

    def _encode(self, m: Module, value: Signal, clamps: dict[int, Signal], inexact: Value) -> None:
        outputs, out_is = self.plan.outputs, self.control_out.out
        wrapped = self._wrap(value)
        limit, clamped = [], []
        for bit in range(self.plan.out_bits):
            # A bit that only wide containers have asks for nothing that concerns narrower ones.
            reached = [(i, out) for i, out in enumerate(outputs) if bit < out.container]
            narrowest = min(out.bits for _, out in reached)
            clamped.append(any_of(clamp for width, clamp in clamps.items() if width >= narrowest))
            # Of the largest number in each format.
            ones = [out_is[i] for i, out in reached if bit < out.bits - 1]
            limit.append(any_of(ones) if len(ones) < len(reached) else Const(1, 1))
        m.d.comb += [
            self.d.eq(
                Cat(
                    Mux(clamped[bit], limit[bit] ^ value[-1], wrapped[bit])
                    for bit in range(self.plan.out_bits)
                )
            ),
            self.flags.sat_hit.eq(any_of(clamps.values())),
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
