"""Split counters as any walk that keeps their contract, for proofs about what surrounds them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from amaranth.hdl import Cat, Instance, Module, Mux, Signal, Value
from amaranth.lib import data

from hdl.config import Config
from hdl.interfaces import InstrKind, ldst_uop, mma_uop, move_uop, slot_uop
from hdl.issue import slot as slot_module

from .harness import Proof

__all__ = ["Walk", "more_of", "seen_as", "walks_of_slots"]

_NAME = "SplitCounters"


def _noted(real: type, made: list) -> type:
    """Split counters that are put on a list."""

    class Noted(real):
        def __init__(self, cfg: Config):
            super().__init__(cfg)
            made.append(self)

    return Noted


def _any_walk(real: type, made: list) -> type:
    """A component with the members of split counters, whose outputs are arbitrary."""

    class AnyWalk(_noted(real, made)):
        def elaborate(self, platform):
            m = Module()
            for name in ("valid", "uop", "busy"):
                value = Value.cast(getattr(self, name))
                m.submodules[name] = Instance("$anyseq", p_WIDTH=len(value), o_Y=value)
            m.d.comb += self.uncut.eq(self.uop)
            return m

    return AnyWalk


@contextmanager
def walks_of_slots(*, arbitrary: bool) -> Iterator[list]:
    """While it lasts, the split counters of slots that are elaborated are put on a list.

    Parameters
    ----------
    arbitrary : replace them by arbitrary walks.
    """
    walks: list = []
    real = getattr(slot_module, _NAME)
    try:
        setattr(slot_module, _NAME, (_any_walk if arbitrary else _noted)(real, walks))
        yield walks
    finally:
        setattr(slot_module, _NAME, real)


def seen_as(layout: data.StructLayout, uop: data.View) -> data.View:
    """A slot's uop as its unit sees it."""
    return layout(Value.cast(uop.uop)[: layout.size])


def more_of(cfg: Config, kind: Value, uop: data.View) -> Value:
    """Whether the uop promises that the next one is to go to the unit right after it."""
    kind = Value.cast(kind)
    of_mma = seen_as(mma_uop(cfg), uop).more if cfg.has_words else 0
    of_move = seen_as(move_uop(cfg), uop).more
    of_ldst = seen_as(ldst_uop(cfg), uop).more
    is_mma, is_move = kind == InstrKind.MMA.value, kind == InstrKind.MOVE.value
    return Mux(is_mma, of_mma, Mux(is_move, of_move, of_ldst))


class Walk:
    """What a slot relies on of its split counters: assumed of arbitrary ones, or else checked.

    - The first uop comes in the second cycle after the start at the soonest. A uop waits without a
      change until it is taken. `busy` lasts from the start until the last uop was taken; only a
      load may end with idle cycles, and only there, or before the first uop, may one be missing.
    - A uop names only tiles that the instruction claims and that no uop before gave up. How it
      names them depends on its kind alone; the unit sees the same tiles.
    - Loads, stores and moves tile by tile stay with a tile until they give it up. A walk that
      needs all its tiles does so from the first uop to the last.
    - A promised uop comes, and what it needs is not given up before.
    - A word of C that is held is that of the uop before.

    Parameters
    ----------
    counters : the split counters; `n` : their slot's number.
    kind, valid : of the slot's instruction; there is one.
    start, reads, writes : an instruction enters, with these claims.

    Attributes
    ----------
    left_reads, left_writes : claims that no uop that was taken has given up.
    taken : the uop taken last; `fresh` : none was.
    begun : the cycle right after the start.
    """

    def __init__(
        self,
        p: Proof,
        cfg: Config,
        counters,
        n: int,
        *,
        kind: Value,
        valid: Value,
        start: Value,
        reads: Value,
        writes: Value,
    ):
        self.p, self.cfg, self.counters, self.n = p, cfg, counters, n
        m = p.m
        self.left_reads = Signal(cfg.all_tiles, name=f"left_reads{n}")
        self.left_writes = Signal(cfg.all_tiles, name=f"left_writes{n}")
        self.taken = Signal(slot_uop(cfg), name=f"taken{n}")
        self.fresh = Signal(name=f"fresh{n}")
        self.begun = p.past(start, f"begun{n}")
        self.kind, self.valid = Value.cast(kind), valid
        self.step = p.signal(counters.valid & counters.step, f"takes{n}")
        uop = counters.uop

        def without(claims: Value, *given_up: tuple[Value, Value]) -> Value:
            for free, tile in given_up:
                claims = claims & ~Mux(free, (1 << tile)[: cfg.all_tiles], 0)
            return claims

        with m.If(self.step):
            m.d.sync += [
                self.taken.eq(uop),
                self.fresh.eq(0),
                self.left_reads.eq(
                    without(self.left_reads, (uop.free0, uop.read0), (uop.free1, uop.read1))
                ),
                self.left_writes.eq(without(self.left_writes, (uop.free_write, uop.write))),
            ]
        with m.If(start):
            m.d.sync += [
                self.fresh.eq(1),
                self.left_reads.eq(reads),
                self.left_writes.eq(writes),
            ]

    def is_kind(self, *kinds: InstrKind) -> Value:
        """The slot's instruction is of one of these kinds."""
        return Cat(self.kind == kind.value for kind in kinds).any()

    def frees(self, uop: data.View) -> Value:
        """It gives a tile up."""
        return Cat(uop.free0, uop.free1, uop.free_write).any()

    def of_kind(self, uop: data.View) -> list[tuple[str, Value]]:
        """How a uop of this slot names tiles, by its kind."""
        cfg = self.cfg
        mma, ldst, move = (seen_as(layout(cfg), uop) for layout in (mma_uop, ldst_uop, move_uop))
        flags = Cat(uop.reads0, uop.reads1, uop.writes)
        whole_mma = ~uop.whole | int(cfg.has_words)
        return [
            (
                "mma",
                ~self.is_kind(InstrKind.MMA)
                | (
                    flags.all()
                    & (
                        Cat(mma.a.tile, mma.b_tile, mma.c.tile)
                        == Cat(uop.read0, uop.read1, uop.write)
                    )
                    & ~(uop.new_c & uop.held_c)
                    & (~uop.new_c | mma.new_c)
                    & (~uop.held_c | ~mma.new_c)
                    & whole_mma
                ),
            ),
            (
                "load",
                ~self.is_kind(InstrKind.LOAD)
                | ((flags == 0b100) & (ldst.tile == uop.write) & ~uop.free0 & ~uop.free1),
            ),
            (
                "store",
                ~self.is_kind(InstrKind.STORE)
                | ((flags == 0b001) & (ldst.tile == uop.read0) & ~uop.free1 & ~uop.free_write),
            ),
            (
                "move",
                ~self.is_kind(InstrKind.MOVE)
                | (
                    (uop.reads0 == move.read)
                    & (uop.writes == move.write)
                    & ~uop.reads1
                    & (move.src.tile == uop.read0)
                    & (move.dst.tile == uop.write)
                    & ~uop.free1
                    & (uop.free0 == uop.free_write)
                ),
            ),
            ("c", self.is_kind(InstrKind.MMA) | ~(uop.new_c | uop.held_c)),
            ("more", ~more_of(cfg, self.kind, uop) | ~self.frees(uop)),
        ]

    def contract(self, *, assume: bool) -> None:
        """Assume the rules, or else check them."""
        p, n, cfg, counters = self.p, self.n, self.cfg, self.counters
        uop, taken = counters.uop, self.taken
        valid, busy = counters.valid, counters.busy

        def rule(name: str, condition: Value) -> None:
            (p.assume if assume else p.check)(f"walk_{name}{n}", condition)

        for name, condition in self.of_kind(uop):
            rule(name, ~valid | condition)
        # When there is a uop.
        is_load = self.is_kind(InstrKind.LOAD)
        was = {
            name: p.past(value, f"{name}{n}_before")
            for name, value in (
                ("busy", busy),
                ("step", self.step),
                ("waits", valid & ~counters.step),
                ("uop", Value.cast(uop)),
            )
        }
        rule("valid_is_busy", ~valid | busy)
        rule("busy_in_slot", ~busy | self.valid)
        rule("begins", ~self.begun | (busy & ~valid))
        rule("waits", ~was["waits"] | (valid & (Value.cast(uop) == was["uop"])))
        rule("ends_once", ~busy | self.begun | was["busy"])
        rule("ends_with_a_uop", busy | ~was["busy"] | was["step"] | is_load)
        rule("no_gap", valid | ~busy | self.begun | is_load)
        # What it names.
        rule("reads0", ~(valid & uop.reads0) | self.left_reads.bit_select(uop.read0, 1))
        rule("reads1", ~(valid & uop.reads1) | self.left_reads.bit_select(uop.read1, 1))
        rule("writes", ~(valid & uop.writes) | self.left_writes.bit_select(uop.write, 1))
        # What the uop before tells.
        later = valid & ~self.fresh
        one_tile = ~self.is_kind(InstrKind.MMA) & ~taken.whole & ~self.frees(taken)
        rule("same_tiles", ~(later & one_tile) | self.same_tiles(uop, taken))
        rule("stays_whole", ~later | (uop.whole == taken.whole))
        rule("whole_to_the_end", self.fresh | ~busy | ~(taken.whole & self.frees(taken)))
        c, c_before = (seen_as(mma_uop(cfg), of).c.as_value() for of in (uop, taken))
        rule(
            "held_c",
            ~(valid & uop.held_c) | (~self.fresh & (taken.new_c | taken.held_c) & (c == c_before)),
        )
        promised = self.valid & ~self.fresh & more_of(cfg, self.kind, taken)
        rule("promise", ~promised | valid)
        if not assume:
            row = counters.uncut
            is_ldst = self.is_kind(InstrKind.LOAD, InstrKind.STORE)
            p.check(f"uncut{n}", ~valid | is_ldst | (Value.cast(row) == Value.cast(uop)))
            kept = ("read0", "read1", "write", "reads0", "reads1", "writes", "whole")
            kept += ("new_c", "held_c")
            p.check(f"uncut_tiles{n}", ~valid | Cat(row[f] == uop[f] for f in kept).all())

    def same_tiles(self, uop: data.View, other: data.View) -> Value:
        """Both name the same tiles, those of mma apart."""
        return (
            (Cat(uop.reads0, uop.writes) == Cat(other.reads0, other.writes))
            & (~uop.reads0 | (uop.read0 == other.read0))
            & (~uop.writes | (uop.write == other.write))
        )
