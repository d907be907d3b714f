"""Split counters as any walk that keeps their contract, for proofs about what surrounds them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from amaranth.hdl import Cat, Instance, Module, Signal, Value
from amaranth.lib.wiring import Out

from hdl.config import Config
from hdl.interfaces import InstrKind
from hdl.issue import slot as slot_module

from .harness import Inside, Proof

__all__ = ["Walks", "contract", "walks_of_slots"]

_NAMES = ("MmaSplit", "LdStSplit", "MoveSplit")


class Walks:
    """The walks of each slot, in order: `mma[n]`, `ldst[n]`, `move[n]`."""

    def __init__(self):
        self.mma: list = []
        self.ldst: list = []
        self.move: list = []


def _noted(real: type, made: list) -> type:
    """A split counter that is put on a list."""

    class Noted(real):
        def __init__(self, cfg: Config):
            super().__init__(cfg)
            made.append(self)

    return Noted


def _any_walk(real: type, made: list) -> type:
    """A component with the members of a split counter, whose outputs are arbitrary."""

    class AnyWalk(_noted(real, made)):
        def elaborate(self, platform):
            m = Module()
            for path, member, value in self.signature.flatten(self):
                if member.flow is Out:
                    value = Value.cast(value)
                    name = "_".join(map(str, path))
                    m.submodules[name] = Instance("$anyseq", p_WIDTH=len(value), o_Y=value)
            return m

    return AnyWalk


@contextmanager
def walks_of_slots(*, arbitrary: bool) -> Iterator[Walks]:
    """While it lasts, the walks of slots that are elaborated are handed out.

    Parameters
    ----------
    arbitrary : replace them by arbitrary ones.
    """
    walks = Walks()
    originals = {name: getattr(slot_module, name) for name in _NAMES}
    try:
        for (name, real), made in zip(
            originals.items(), (walks.mma, walks.ldst, walks.move), strict=True
        ):
            setattr(slot_module, name, (_any_walk if arbitrary else _noted)(real, made))
        yield walks
    finally:
        for name, real in originals.items():
            setattr(slot_module, name, real)


@dataclass(frozen=True)
class Held:
    """The last uop taken: its tile, of a load or store; of a move what it read and wrote."""

    tile: Signal
    src: Signal
    dst: Signal
    read: Signal


def contract(p: Proof, slot: Inside, walks: Walks, n: int, *, assume: bool) -> Held:
    """What a slot relies on of the walks in slot `n`: assumed, or else checked.

    Uops name tiles that the instruction still claims. Where claims are won tile by tile, the tile
    stays until it is given up; elsewhere nothing is given up before the end. A walk ends with a
    uop, or in an idle cycle of a load; it stands still while its uop is not taken. Returns what
    the uop before named.
    """
    rule = p.assume if assume else p.check
    mma, ldst, move = walks.mma[n], walks.ldst[n], walks.move[n]
    reads, writes, valid = slot("reads"), slot("writes"), slot("valid")
    granted, along = slot("granted"), slot("along")
    kind = Value.cast(slot("kind"))
    is_mma, is_load, is_store, is_move = (
        p.signal(valid & (kind == k.value), f"{k.name.lower()}{n}")
        for k in (InstrKind.MMA, InstrKind.LOAD, InstrKind.STORE, InstrKind.MOVE)
    )

    def has(claims: Value, tile: Value) -> Value:
        return claims.bit_select(tile, 1)

    rule(
        f"mma_claims{n}",
        ~is_mma
        | (has(reads, mma.uop.a.tile) & has(reads, mma.uop.b_tile) & has(writes, mma.uop.c.tile)),
    )
    rule(f"load_claims{n}", ~(is_load & ldst.valid) | has(writes, ldst.uop.tile))
    rule(f"store_claims{n}", ~is_store | has(reads, ldst.uop.tile))
    rule(f"move_reads{n}", ~(is_move & move.uop.read) | has(reads, move.uop.src.tile))
    rule(f"move_writes{n}", ~(is_move & move.uop.write) | has(writes, move.uop.dst.tile))
    rule(f"stores_do_not_idle{n}", ~is_store | ldst.valid)
    for name, walk in (("mma", mma), ("move", move)):
        rule(f"{name}_ends_with_a_uop{n}", ~walk.done | walk.step)
    rule(f"ldst_ends{n}", ~ldst.done | ldst.step | ~ldst.valid)
    for name, whole, walk, active in (
        ("ldst", along, ldst, is_load | is_store),
        ("move", move.whole, move, is_move),
    ):
        rule(f"{name}_whole{n}", ~(active & whole & walk.free) | (walk.done | ~walk.step))
    # A uop that is not taken is offered again.
    for name, walk, active in (
        ("mma", mma, is_mma),
        ("ldst", ldst, (is_load | is_store) & ldst.valid),
        ("move", move, is_move),
    ):
        offers = [
            Value.cast(value)
            for path, member, value in walk.signature.flatten(walk)
            if member.flow is Out and path != ("done",)
        ]
        waits = p.past(active & ~walk.step, f"{name}{n}_waited")
        rule(
            f"{name}_stands_still{n}",
            ~waits | (Cat(offers) == p.past(Cat(offers), f"{name}{n}_offers")),
        )
    # What the uop before named.
    before = [
        Signal(len(tile), name=f"{name}{n}_before")
        for name, tile in (
            ("tile", ldst.uop.tile),
            ("src", move.uop.src.tile),
            ("dst", move.uop.dst.tile),
        )
    ]
    kept = Signal(name=f"kept_whole{n}")
    read = Signal(name=f"read{n}_before")
    with p.m.If(ldst.step):
        p.m.d.sync += before[0].eq(ldst.uop.tile)
    with p.m.If(move.step):
        p.m.d.sync += [
            before[1].eq(move.uop.src.tile),
            before[2].eq(move.uop.dst.tile),
            kept.eq(move.whole),
            read.eq(move.uop.read),
        ]
    same = (
        (move.uop.src.tile == before[1])
        & (move.uop.dst.tile == before[2])
        & (move.uop.read == read)
    )
    rule(
        f"ldst_same_tile{n}",
        ~((is_load | is_store) & granted & ~along) | (ldst.uop.tile == before[0]),
    )
    rule(f"move_same_tiles{n}", ~(is_move & granted & ~move.whole) | same)
    rule(f"move_stays_whole{n}", ~(is_move & granted) | (move.whole == kept))
    return Held(*before, read)
