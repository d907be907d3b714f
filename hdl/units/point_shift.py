"""The right shifter of a pointwise lane: one element of 64 bits or two of 32."""

from __future__ import annotations

from dataclasses import dataclass

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ..mac.pipeline import register

__all__ = ["PointShifter", "shift_control"]

WIDE = 64
HALF = WIDE // 2


def shift_control() -> data.StructLayout:
    """Control of the shifter. `wide`: one element of 64 bits. `signed`: the sign moves in."""
    return data.StructLayout({"wide": 1, "signed": 1})


@dataclass
class _Parts:
    """Low and high half, and of each the last bit dropped and whether any before it was set."""

    halves: list[Value]
    guards: list[Value]
    stickies: list[Value]


class PointShifter(wiring.Component):
    """Shifts right and tells what was dropped, for rounding.

    Members
    -------
    x : the elements.
    low : bits that the low half's element, or the wide one, is shifted by; below 32 if narrow.
    high : bits that the high half's element is shifted by; the low five bits of `low` if wide.
    control0, control1 : control, with the operands and one cycle later.
    d : the shifted elements.
    guard, sticky : of the elements, low and high: the last bit dropped, and whether any bit below
        that was set. Of a wide element the low ones count.

    Latency: `LATENCY` cycles. Throughput: one word a cycle. Source: isa.md section 1 (msra).
    """

    LATENCY = 2

    STEPS = (((32, 16, 8), "coarse"), ((4, 2, 1), "fine"))
    """Distances between registers."""

    def __init__(self):
        bits = HALF.bit_length() - 1
        super().__init__(
            {
                "x": In(WIDE),
                "low": In(bits + 1),
                "high": In(bits),
                "control0": In(shift_control()),
                "control1": In(shift_control()),
                "d": Out(WIDE),
                "guard": Out(2),
                "sticky": Out(2),
            }
        )

    def elaborate(self, platform):
        m = Module()
        none = Const(0, 1)
        parts = _Parts([self.x[:HALF], self.x[HALF:]], [none, none], [none, none])
        # The step over a whole half moves both halves of a wide element.
        amounts: list[Value] = [self.low, Cat(self.high, self.low[-1])]
        for (steps, name), control in zip(self.STEPS, (self.control0, self.control1), strict=True):
            for step in steps:
                bit = step.bit_length() - 1
                by = [amount[bit] for amount in amounts]
                parts = self._step(m, f"by{step}", parts, step, by, control)
            for field in ("halves", "guards", "stickies"):
                values = getattr(parts, field)
                setattr(
                    parts,
                    field,
                    [register(m, f"{name}_{field}{i}", value) for i, value in enumerate(values)],
                )
            amounts = [register(m, f"{name}_amount{i}", a) for i, a in enumerate(amounts)]
        m.d.comb += [
            self.d.eq(Cat(parts.halves)),
            self.guard.eq(Cat(parts.guards)),
            self.sticky.eq(Cat(parts.stickies)),
        ]
        return m

    def _step(
        self, m: Module, name: str, old: _Parts, step: int, by: list[Value], control: data.View
    ) -> _Parts:
        """One distance, for each half if its bit of `by` is set."""
        fill = [(half[-1] & control.signed).replicate(step) for half in old.halves]
        above = old.halves[1][:step]
        # Only a wide element moves by a whole half.
        enter = [above if step == HALF else Mux(control.wide, above, fill[0]), fill[1]]
        new = _Parts([], [], [])
        for i, half in enumerate(old.halves):
            moved = Signal(HALF, name=f"{name}_half{i}")
            guard = Signal(name=f"{name}_guard{i}")
            sticky = Signal(name=f"{name}_sticky{i}")
            rest = old.guards[i] | half[: step - 1].any()
            m.d.comb += [
                moved.eq(Mux(by[i], Cat(half[step:], enter[i]), half)),
                guard.eq(Mux(by[i], half[step - 1], old.guards[i])),
                sticky.eq(old.stickies[i] | (by[i] & rest)),
            ]
            new.halves.append(moved)
            new.guards.append(guard)
            new.stickies.append(sticky)
        return new
