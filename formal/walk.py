"""A split counter and the walk that it makes: what proofs of all of them share."""

from __future__ import annotations

from amaranth.hdl import Signal, Value
from amaranth.lib import data

from .harness import Inside, Proof

__all__ = ["Walk", "grows"]


class Walk:
    """A split counter under any stepping, one walk after another.

    Attributes
    ----------
    fields : of the walk under way; the port changes after the start.
    active : a walk is under way.
    fresh : it has offered no uop that was taken.
    step, start, done : see `MmaSplit`; `done` means nothing while no walk is under way.
    """

    def __init__(self, p: Proof, split, layout: data.Layout):
        self.p = p
        self.split = split
        self.inside: Inside = p.add("split", split)
        port = p.any(layout, "fields")
        self.port = port
        self.start = p.any(1, "start")
        self.step = p.any(1, "step")
        self.fields = Signal(layout, name="walked", reset_less=True)
        self.active = Signal(name="active")
        self.fresh = Signal(name="fresh")
        p.m.d.comb += [
            Value.cast(split.fields).eq(Value.cast(port)),
            split.start.eq(self.start),
            split.step.eq(self.step),
        ]
        with p.m.If(self.step):
            p.m.d.sync += self.fresh.eq(0)
        self.done = p.signal(self.active & split.done, "ends")
        with p.m.If(self.done):
            p.m.d.sync += self.active.eq(0)
        with p.m.If(self.start):
            p.m.d.sync += [self.active.eq(1), self.fresh.eq(1), self.fields.eq(port)]
        p.assume("start_when_idle", ~self.start | ~self.active)
        p.assume("step_when_active", ~self.step | self.active)
        p.check(
            "fields_are_kept",
            ~self.active | (Value.cast(self.inside("fields")) == Value.cast(self.fields)),
        )

    def held(self, value, name: str) -> Signal:
        """`value` as it was when the last uop was taken."""
        value = Value.cast(value)
        before = Signal(value.shape(), name=f"last_{name}")
        with self.p.m.If(self.step):
            self.p.m.d.sync += before.eq(value)
        return before


def grows(old, new) -> Value:
    """Whether tuples of numbers, highest first, grow."""
    more, equal = Value.cast(0), Value.cast(1)
    for a, b in zip(old, new, strict=True):
        more = more | (equal & (a < b))
        equal = equal & (a == b)
    return more
