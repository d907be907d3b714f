"""Proof that every accepted instruction gets on, so that nothing hangs."""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Mux, Signal, Value

from hdl.config import Config
from hdl.interfaces import InstrKind

from .harness import Proof
from .hazards import LOADS, Pair, rows_wait
from .issue import goes_on, still_to_land
from .stages import Stages
from .task import Task, mutants

__all__ = ["MUTANTS", "TASKS"]

_FAIR = 1
"""Cycles that a unit may take to do what is asked of it, in the model of `progress`."""
_BURST = 1
"""Further uops of a burst, likewise."""
_SKIPS = 1
"""Uops of the MAC that may be skipped while the oldest instruction waits, likewise."""


def _rules(pair: Pair) -> list[Stages]:
    """What is always true of the slots, in checks; the stages of each slot."""
    u, p, inside, slots, cfg = pair.u, pair.p, pair.u.inside, pair.u.slots, pair.cfg
    stages = [Stages(u, n, pair.tile) for n in range(cfg.slots)]
    before = u.program_order()
    goes_on(u, stages, before)
    rows_wait(pair)
    is_mma = [walk.is_kind(InstrKind.MMA) for walk in u.walks]
    board = inside.part("scoreboard")
    for tile in range(cfg.all_tiles):
        flying = [pair.load_out[n] & (pair.load_tile[n] == tile) for n in range(LOADS)]
        flying.append(pair.retired & (pair.retired_tile == tile))
        p.check(f"loads_counted{tile}", board(f"loads{tile}") == sum(flying))
        p.check(f"timer{tile}", board(f"timer{tile}") <= board("to_land"))
    p.check("to_land", board("to_land") < pair.mac_depth - 1)
    for n, slot in enumerate(slots):
        if pair.loop > 2:
            p.check(f"left{n}", slot("left") <= still_to_land(board, pair.mac_depth))

    # Nobody was let near a tile that an older instruction still needs.
    for tile in range(cfg.all_tiles):
        here = [stage.of_tile(Const(tile, cfg.tile_bits)) for stage in stages]
        for n, stage in enumerate(here):
            stage.claims(p, u.valid[n], f"{n}_of{tile}")
            reads, writes = stage.has_won("reads"), stage.has_won("writes")
            adds = Const(0)
            for where, there in stage.passed.items():
                uop = stage.at[where]
                reads = reads | (there & stage.reads(uop))
                writes = writes | (there & stage.writes(uop) & ~is_mma[n])
                adds = adds | (there & stage.writes(uop) & is_mma[n])
            reads, writes, adds = (
                p.signal(value, f"{name}{n}_{tile}")
                for name, value in (("has_reads", reads), ("has_writes", writes), ("adds", adds))
            )
            for number, q in enumerate(q for q in range(cfg.slots) if q != n):
                older = p.signal(u.valid[n] & u.valid[q] & before[n][q], f"o{n}_{q}_{tile}")
                q_reads, q_writes = slots[q]("reads")[tile], slots[q]("writes")[tile]
                meets = (reads & q_writes) | (writes & (q_reads | q_writes)) | (adds & q_reads)
                p.check(f"was_free{n}_{q}_{tile}", ~older | ~meets)
                for where, there in stage.passed.items():
                    register = "to_follow" if where == "check" else "behind"
                    mine = there & stage.writes(stage.at[where]) & is_mma[n]
                    p.check(
                        f"{where}_follows{n}_{q}_{tile}",
                        ~(older & mine & q_writes) | slots[n](register)[number],
                    )
        for n in range(cfg.slots):
            looks = u.valid[n] & ~u.walks[n].begun
            for q in range(cfg.slots):
                if q != n:
                    older = u.valid[q] & before[n][q] & looks
                    sees_reads = ~slots[q]("reads")[tile] | slots[n]("block_write")[tile]
                    by_mma = is_mma[n] & is_mma[q]
                    sees_writes = ~slots[q]("writes")[tile] | (
                        slots[n]("block_read")[tile] & (by_mma | slots[n]("block_write")[tile])
                    )
                    p.check(f"sees{n}_{q}_{tile}", ~older | (sees_reads & sees_writes))
    return stages


def progress(cfg: Config, *, mac_depth: int, loop: int, bound: int | None = None) -> Proof:
    """The oldest instruction issues a uop every `bound` cycles, if the units are fair.

    Walks end (`splits`), so the oldest instruction ends, and every accepted one is the oldest
    in time. Without `bound`, what else is true of the slots is proved; with it, that is given.
    """
    pair = Pair(cfg, mac_depth=mac_depth, loop=loop, walks=True, rules=False)
    u, p, m, inside = pair.u, pair.p, pair.p.m, pair.u.inside
    with p.given(bound is not None):
        stages = _rules(pair)

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
    at_most(pair.row_waits[0] & ~pair.row_read, "row_waits_here", _FAIR)

    # Bursts end.
    for name in ("load", "store", "move"):
        locked = u.locked(name)
        more = u.ports[name].payload.more
        left = Signal(range(_BURST + 1), name=f"{name}_burst_left", init=_BURST)
        grants = u.grants[name].any()
        with m.If(grants):
            m.d.sync += left.eq(Mux(locked.any(), Mux(left == 0, 0, left - 1), _BURST))
        p.assume(f"{name}_burst_ends", ~inside(f"{name}_full") | ~more | (left != 0))

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
    # The walk of a load may have idle cycles; `ldst_split` says which, and that they end.
    idle = Cat(oldest[n] & stages[n].empty & ~u.walks[n].counters.valid for n in range(count))
    is_load = Cat(walk.is_kind(InstrKind.LOAD) for walk in u.walks)
    moves_on = p.signal(steps.any() | (idle & is_load).any() | ~u.valid.any(), "moves_on")
    if bound is None:
        p.cover("all_wait", u.valid.all() & ~steps.any())
        return p
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


_BOUND = 14
_SLOTS = Config(
    tiles=4, rows=4, row_bits=64, bus_bits=64, banks=2, m_par=2, n_par=1, slots=3, addr_bits=16
)

TASKS = (
    Task(
        name="progress_rules",
        about="what `progress` takes as given: nobody was let near what an older one needs",
        parameters="3 slots, 4 tiles, MAC depth 4, loop 3",
        build=lambda: progress(_SLOTS, mac_depth=4, loop=3),
        depth=2,
        cover=8,
        timeout=1500,
    ),
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
        "progress_rules",
        ("a burst is never over", "open_.eq(~next_uop.more)", "open_.eq(0)"),
        ("who comes after a free slot waits for it", "age.eq(age & ~chosen)", "age.eq(age)"),
    ),
    *mutants(
        "hdl/issue/slot.py",
        "progress_rules",
        (
            "who followed another slot waits for ever",
            "Mux(passes, to_follow, 0)) & ~self.leaves",
            "Mux(passes, to_follow, 0))",
        ),
    ),
    *mutants(
        "hdl/issue/slots.py",
        "progress",
        (
            "the youngest goes first",
            "requests[index] & ~(requests & older[index]).any()",
            "requests[index] & ~(requests & ~older[index] & ~(1 << index)).any()",
        ),
    ),
    *mutants(
        "hdl/issue/slot.py",
        "progress",
        (
            "a uop that was blocked is not looked at again",
            "with m.If(again | takes):",
            "with m.If(takes):",
        ),
    ),
    *mutants(
        "hdl/issue/slot.py",
        "progress",
        (
            "an element waits for the tile of its number",
            "uop.writes & has(block_write, uop.write)",
            "has(block_write, uop.write)",
        ),
        depth=30,
    ),
)
