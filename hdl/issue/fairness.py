"""The 15-cycle rule: a starving tile-file request makes the MAC leave one gap."""

from __future__ import annotations

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..config import Config

__all__ = ["PATIENCE", "Fairness"]

PATIENCE = 15
"""Cycles a request may lose before the MAC skips one uop."""


class Fairness(wiring.Component):
    """Counts how long each lower-priority request has waited.

    Parameters
    ----------
    mac_depth : cycles until a skipped uop becomes a gap on the result port; a request still
        waiting that long after its skip gets another.

    Members
    -------
    waiting : one bit a requester, `load`, `store`, `move`: it wants its port and lost it.
    skip, skipped : hold back a mma uop; that happened.
    load_starved : the load write has waited its 15 cycles, and moves must leave it the gap.

    Source: architecture.md section 1, tile register file.
    """

    REQUESTERS = ("load", "store", "move")

    def __init__(self, cfg: Config, *, mac_depth: int):
        self.cfg = cfg
        self.mac_depth = mac_depth
        super().__init__(
            {
                "waiting": In(len(self.REQUESTERS)),
                "skip": Out(1),
                "skipped": In(1),
                "load_starved": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        again = PATIENCE + self.mac_depth
        due = Signal(len(self.REQUESTERS))
        for index, name in enumerate(self.REQUESTERS):
            # Who waits is known late in the cycle, so it counts from the next.
            waited = Signal(name=f"{name}_waited")
            lost = Signal(range(again + 1), name=f"{name}_lost")  # cycles before `waited`
            waiting = self.waiting[index]
            m.d.sync += waited.eq(waiting)
            with m.If(~waited):
                m.d.sync += lost.eq(0)
            with m.Elif(lost == again):
                m.d.sync += lost.eq(PATIENCE)
            with m.Else():
                m.d.sync += lost.eq(lost + 1)
            at_end = Signal(name=f"{name}_at_end")  # due if it waits in this cycle too
            m.d.comb += [
                at_end.eq(waited & ((lost == PATIENCE - 2) | (lost == again - 1))),
                due[index].eq(waiting & at_end),
            ]
            if name == "load":
                m.d.sync += self.load_starved.eq(waiting & waited & (lost >= PATIENCE - 2))
        with m.If(self.skipped):
            m.d.sync += self.skip.eq(0)
        with m.If(due.any()):
            m.d.sync += self.skip.eq(1)
        return m
