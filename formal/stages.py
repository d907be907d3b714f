"""The uops of a slot between its split counters and issue, for proofs about slots."""

from __future__ import annotations

from copy import copy

from amaranth.hdl import Cat, Mux, Value

from hdl.interfaces import InstrKind, mma_uop, slot_uop
from hdl.issue.scoreboard import Scoreboard

from .any_walk import seen_as
from .harness import Proof

__all__ = ["Stages"]


class Stages:
    """The uops of one slot on their way from the split counters to issue, and one tile.

    What they are is checked here: each is like those of its kind and names only tiles that the
    slot still claims and that no uop before it gives up.

    Attributes
    ----------
    walk : of the slot; `uop` : the one whose check is made if the slot `looks`, `found` : that
        finds it free. `checked` : it was blocked before.
    at : the uops that were taken, by name; `passed` : whether it is there and was found free.
    step : the one on offer is issued; `empty` : none waits here.
    """

    ORDER = ("issued", "offer", "spare", "check")

    def __init__(self, u, n: int, tile: Value):
        p, cfg, slot = u.p, u.cfg, u.slots[n]
        self.walk = walk = u.walks[n]
        self.slot, self.tile, self.cfg = slot, tile, cfg
        layout = slot_uop(cfg)
        self.at = at = {name: slot(name, layout) for name in self.ORDER}
        full = {name: slot(f"{name}_full") for name in self.ORDER[1:]}
        full["issued"] = slot("was_issued")
        self.full = full
        clear = slot("clear")
        self.passed = {"check": full["check"] & clear} | {n: full[n] for n in ("spare", "offer")}
        self.uop = slot("uop", layout)
        self.checked = full["check"] & ~clear
        self.looks = p.signal(slot("takes") | self.checked, f"looks{n}")
        self.found = p.signal(self.looks & slot("free"), f"found{n}")
        self.empty = ~Cat(full[name] for name in self.ORDER[1:]).any()
        self.step = p.signal(Cat(u.grants[name][n] for name in u.KINDS).any(), f"steps{n}")
        granted, taken = slot("granted"), walk.taken
        is_mma = walk.is_kind(InstrKind.MMA)
        waiting = Cat(full[name] for name in self.ORDER[1:]).any()
        p.check(f"empty_while_free{n}", u.valid[n] | ~waiting)
        p.check(f"issued_while_valid{n}", u.valid[n] | ~(walk.begun & full["issued"]))
        p.check(f"spare_behind_offer{n}", ~full["spare"] | full["offer"])
        p.check(f"held_c{n}", ~full["offer"] | (slot("held_c") == at["offer"].held_c))
        p.check(f"fresh_is_empty{n}", ~u.valid[n] | ~walk.fresh | ~(waiting | granted))
        p.check(f"begun_is_fresh{n}", ~walk.begun | (walk.fresh & u.valid[n] & ~full["issued"]))
        p.check(f"kinds{n}", ~u.valid[n] | (slot("kinds") == (1 << walk.kind)[:4]))
        p.check(
            f"adds{n}",
            ~u.valid[n] | (slot("adds") == walk.is_kind(InstrKind.MMA)),
        )
        if Scoreboard.tells_late(cfg):
            p.check(f"holds{n}", slot("holds") == (u.valid[n] | full["issued"]))
        p.check(f"is_behind{n}", slot("is_behind") == slot("behind").any())
        # The last one taken, and whether the claim that it won lasts.
        behind = self.ORDER[1:]
        newest = Mux(full["check"], at["check"].as_value(), taken.as_value())
        newest = Mux(full["spare"] & ~full["check"], at["spare"].as_value(), newest)
        newest = Mux(
            full["offer"] & ~full["spare"] & ~full["check"], at["offer"].as_value(), newest
        )
        p.check(f"newest_is_taken{n}", ~u.valid[n] | walk.fresh | (newest == taken.as_value()))
        for name, after in zip(behind, (("spare", "check"), ("check",), ()), strict=True):
            p.check(f"{name}_is_whole{n}", ~full[name] | (at[name].whole == taken.whole))
            is_last = full[name] & ~Cat(full[other] for other in after if other != "check").any()
            if name != "check":
                p.check(
                    f"granted_{name}{n}", ~is_last | is_mma | (granted == ~walk.frees(at[name]))
                )
        idle = u.valid[n] & ~walk.fresh & ~full["check"]
        p.check(f"granted{n}", ~idle | is_mma | (granted == ~walk.frees(taken)))
        one_tile = ~walk.is_kind(InstrKind.MMA) & ~taken.whole
        kept = u.valid[n] & granted & one_tile & full["check"]
        for name in ("spare", "offer"):
            last = full[name] & (~full["spare"] if name == "offer" else 1)
            p.check(f"same_tile_{name}{n}", ~(kept & last) | walk.same_tiles(taken, at[name]))
        # Claims, and who names them.
        for name in behind:
            for rule, condition in walk.of_kind(at[name]):
                p.check(f"{name}_{rule}{n}", ~full[name] | condition)
        self.claims(p, u.valid[n], n)

    def of_tile(self, tile: Value) -> Stages:
        """The same, seen from another tile."""
        other = copy(self)
        other.tile = tile
        return other

    def claims(self, p: Proof, valid: Value, n: int | str) -> None:
        """Check that what is named is claimed, and was not given up by a uop before."""
        at, full, tile, walk = self.at, self.full, self.tile, self.walk
        for claims, left in (("reads", walk.left_reads), ("writes", walk.left_writes)):
            mine = self.slot(claims).bit_select(tile, 1)
            names = {name: self._names(at[name], claims) for name in self.ORDER}
            frees = {name: self._frees(at[name], claims) for name in self.ORDER}
            p.check(f"{claims}_left{n}", ~(valid & left.bit_select(tile, 1)) | mine)
            for index, name in enumerate(self.ORDER):
                later = self.ORDER[index + 1 :]
                gives_up = valid & full[name] & frees[name]
                p.check(f"{claims}_{name}_left{n}", ~(gives_up & left.bit_select(tile, 1)))
                for other in later:
                    p.check(f"{claims}_{name}_{other}{n}", ~(gives_up & full[other] & names[other]))
                if name != "issued":
                    p.check(f"{claims}_{name}_claimed{n}", ~(full[name] & names[name]) | mine)

    def _names(self, uop, claims: str) -> Value:
        if claims == "writes":
            return uop.writes & (uop.write == self.tile)
        return (uop.reads0 & (uop.read0 == self.tile)) | (uop.reads1 & (uop.read1 == self.tile))

    def _frees(self, uop, claims: str) -> Value:
        if claims == "writes":
            return uop.free_write & (uop.write == self.tile)
        return (uop.free0 & (uop.read0 == self.tile)) | (uop.free1 & (uop.read1 == self.tile))

    def _needs(self, uop, claims: str, whole: bool) -> Value:
        mine = self.slot(claims).bit_select(self.tile, 1)
        return self._names(uop, claims) | (int(whole) & uop.whole & mine)

    def reads(self, uop, *, whole: bool = True) -> Value:
        """It needs the tile, or, if it needs all of its instruction, the instruction does."""
        return self._needs(uop, "reads", whole)

    def writes(self, uop, *, whole: bool = True) -> Value:
        return self._needs(uop, "writes", whole)

    def names_word(self, uop, block: Value) -> Value:
        c = seen_as(mma_uop(self.cfg), uop).c
        return self.walk.is_kind(InstrKind.MMA) & (c.tile == self.tile) & (c.block == block)

    def sees(self, uop, block: Value) -> Value:
        """It reads the word of C, or holds it."""
        return self.names_word(uop, block) & (uop.new_c | uop.held_c)

    def anywhere(self, block: Value) -> Value:
        """A uop for the word of C waits in the slot."""
        return Cat(self.full[n] & self.names_word(self.at[n], block) for n in self.ORDER[1:]).any()

    def has_won(self, claims: str) -> Value:
        """The claim on the tile was won, and lasts until given up."""
        taken = self.walk.taken
        mine = self.slot(claims).bit_select(self.tile, 1)
        won = self.slot("granted") & ~self.walk.is_kind(InstrKind.MMA) & ~self.walk.fresh
        return won & mine & (taken.whole | self._names(taken, claims))
