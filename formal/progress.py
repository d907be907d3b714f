"""Proof that every accepted instruction gets on, so that nothing hangs."""

from __future__ import annotations

from amaranth.hdl import Cat, Mux, Signal, Value

from hdl.config import Config
from hdl.interfaces import InstrKind

from .harness import Proof
from .hazards import LOADS, any_walks
from .task import Task, mutants

__all__ = ["MUTANTS", "TASKS"]

_FAIR = 1
"""Cycles that a unit may take to do what is asked of it, in the model of `progress`."""
_BURST = 1
"""Further uops of a burst, likewise."""
_SKIPS = 1
"""Uops of the MAC that may be skipped while the oldest instruction waits, likewise."""


def progress(cfg: Config, *, mac_depth: int, loop: int, bound: int) -> Proof:
    """The oldest instruction issues a uop every `bound` cycles, if the units are fair.

    Walks end (`splits`), so the oldest instruction ends, and every accepted one is the oldest
    in time.
    """
    pair = any_walks(cfg, mac_depth=mac_depth, loop=loop)
    u, p, m, inside = pair.u, pair.p, pair.p.m, pair.u.inside

    def at_most(waits: Value, name: str, most: int) -> None:
        """Assume that `waits` holds for so many cycles in a row at most."""
        count = Signal(range(most + 2), name=f"{name}_for")
        with m.If(waits):
            m.d.sync += count.eq(Mux(count > most, count, count + 1))
        with m.Else():
            m.d.sync += count.eq(0)
        p.assume(f"{name}_ends", ~waits | (count < most))

    for name, port in u.ports.items():
        at_most(port.valid & ~u.ready[name], f"{name}_waits", _FAIR)
    for n in range(LOADS):
        at_most(pair.load_out[n] & ~pair.lands[n], f"load{n}_flies", _FAIR)
    at_most(pair.row_waits & ~pair.row_read, "row_waits_here", _FAIR)

    # What `any_walks` says of one tile, of all of them.
    board, load = inside.part("scoreboard"), u.ports["load"].payload
    for tile in range(cfg.all_tiles):
        flying = [pair.load_out[n] & (pair.load_tile[n] == tile) for n in range(LOADS)]
        flying.append(inside("load_full") & (load.tile == tile))
        flying.append(pair.retired & (pair.retired_tile == tile))
        p.check(f"loads_counted{tile}", board(f"loads{tile}") == sum(flying))

    # Nobody has won a tile that an older instruction still claims.
    slots = [inside.part(f"slot{n}") for n in range(cfg.slots)]
    for n, slot in enumerate(slots):
        kind, won = slot("kind"), pair.held[n]
        along, whole = slot("along"), u.walks.move[n].whole
        is_load, is_store = kind == InstrKind.LOAD, kind == InstrKind.STORE
        is_move = kind == InstrKind.MOVE
        tiles = cfg.all_tiles
        one, one_src, one_dst = (
            (1 << tile)[: cfg.all_tiles] for tile in (won.tile, won.src, won.dst)
        )
        writes = Mux(is_load, Mux(along, slot("writes"), one), 0)
        writes = writes | Mux(is_move, slot("writes") & (one_dst | whole.replicate(tiles)), 0)
        reads = Mux(is_store, Mux(along, slot("reads"), one), 0)
        reads = reads | Mux(is_move, Mux(whole, slot("reads"), Mux(won.read, one_src, 0)), 0)
        for q, other in enumerate(slots):
            if q != n:
                older = u.valid[n] & slot("granted") & u.valid[q] & inside(f"older{n}")[q]
                claimed = (writes & (other("reads") | other("writes"))) | (reads & other("writes"))
                p.check(f"won_what_was_free{n}_{q}", ~older | (claimed == 0))

    # Bursts end, and their next uop is there: `age_order` checks it with the design's walks.
    for name in ("load", "store", "move"):
        locked = u.locked(name)
        more = u.ports[name].payload.more
        left = Signal(range(_BURST + 1), name=f"{name}_burst_left", init=_BURST)
        grants = u.grants[name].any()
        with m.If(grants):
            m.d.sync += left.eq(Mux(locked.any(), Mux(left == 0, 0, left - 1), _BURST))
        p.assume(f"{name}_burst_ends", ~inside(f"{name}_full") | ~more | (left != 0))
        p.assume(f"{name}_burst_goes_on", (locked & ~inside(f"{name}_requests")) == 0)

    # The oldest instruction, and how long it has waited.
    count = cfg.slots
    oldest = [
        p.signal(
            u.valid[n]
            & ~Cat(inside(f"older{n}")[q] & u.valid[q] for q in range(count) if q != n).any(),
            f"is_oldest{n}",
        )
        for n in range(count)
    ]
    steps = Cat(oldest) & (
        u.grants["mma"] | u.grants["load"] | u.grants["store"] | u.grants["move"]
    )
    idle = Cat(oldest[n] & ~u.walks.ldst[n].valid for n in range(count))
    is_load = Cat(inside.part(f"slot{n}")("kind") == InstrKind.LOAD for n in range(count))
    moves_on = p.signal(steps.any() | (idle & is_load).any() | ~u.valid.any(), "moves_on")
    waits = Signal(range(bound + 2), name="oldest_waits")
    with m.If(moves_on):
        m.d.sync += waits.eq(0)
    with m.Elif(waits <= bound):
        m.d.sync += waits.eq(waits + 1)
    skipped = Signal(range(_SKIPS + 2), name="skips")
    with m.If(moves_on):
        m.d.sync += skipped.eq(0)
    with m.Elif(u.skip & (skipped <= _SKIPS)):
        m.d.sync += skipped.eq(skipped + 1)
    p.assume("few_skips", ~u.skip | (skipped < _SKIPS))
    p.check("oldest_moves_on", waits <= bound)
    p.cover("waits_long", waits == bound - 4)
    return p


_BOUND = 11
_SLOTS = Config(
    tiles=4, rows=4, row_bits=64, bus_bits=64, banks=2, m_par=2, n_par=1, slots=3, addr_bits=16
)

TASKS = (
    Task(
        name="progress",
        about="the oldest instruction issues in bounded time, with fair units",
        parameters="3 slots, 4 tiles, MAC depth 4, loop 3; units wait 1 cycle, bursts of 2",
        build=lambda: progress(_SLOTS, mac_depth=4, loop=3, bound=_BOUND),
        depth=_BOUND + 2,
        cover=20,
        timeout=1500,
    ),
)
MUTANTS = (
    *mutants(
        "hdl/issue/slots.py",
        "progress",
        (
            "a burst is never over",
            "locked.eq(Mux(more, grants, 0))",
            "locked.eq(grants)",
        ),
        (
            "the youngest goes first",
            "requests[index] & ~(requests & older[index]).any()",
            "requests[index] & ~(requests & ~older[index] & ~(1 << index)).any()",
        ),
        ("who comes after a free slot waits for it", "age.eq(age & ~chosen)", "age.eq(age)"),
    ),
    *mutants(
        "hdl/issue/slot.py",
        "progress",
        (
            "an element waits for the tile of its number",
            "~(writes & self.block_write).bit_select(move.uop.dst.tile, 1)",
            "~self.block_write.bit_select(move.uop.dst.tile, 1)",
        ),
    ),
    *mutants(
        "hdl/issue/scoreboard.py",
        "progress",
        ("a load that lands is not counted", "with m.Elif(down & ~up):", "with m.Elif(0):"),
    ),
)
