"""Proofs that no instruction reads or writes a tile too early for an older one.

Of two instructions, X and the younger Y, every access to one stored word is followed to the cycle
in which the tile file sees it. X must never read the word once Y has written it, nor write it once
Y has read or written it, nor in the same cycle. X, Y, the tile and the word are any.
"""

from __future__ import annotations

from amaranth.hdl import Cat, Mux, Signal, Value

from hdl.config import Config
from hdl.interfaces import InstrKind, tile_word
from hdl.issue.scoreboard import Scoreboard

from .harness import Proof
from .issue import Units
from .stages import Stages
from .task import Task, mutants

__all__ = ["LOADS", "MUTANTS", "TASKS", "Pair", "any_walks", "rows_wait"]

ISSUE_AGE = 3
"""Cycles from a check that finds a uop free to its earliest place in the issue register."""

_X, _Y = 0, 1
_WHO = "xy"
LOADS = 3
"""Loads in flight, in the model of the load pipe."""
ROWS = Scoreboard.STORES - 1
"""Rows that wait for their read, in the model of the store pipe."""


class _Chain:
    """A bit for every cycle since something happened, up to `length` cycles."""

    def __init__(self, p: Proof, now: Value, length: int, name: str):
        self.at = [p.signal(now, f"{name}_0")]
        for age in range(1, length + 1):
            self.at.append(p.past(self.at[-1], f"{name}_{age}"))

    def any(self, first: int, last: int) -> Value:
        """It happened from `first` to `last` cycles ago."""
        return Cat(*self.at[first : last + 1]).any() if last >= first else Value.cast(0)


class Pair:
    """The slots, the units behind them, and two instructions whose accesses are followed.

    Parameters
    ----------
    walks : see `Units`.
    rules : check that no access of X comes too late for one of Y.

    Attributes
    ----------
    reads, writes : X's and Y's accesses to the word in this cycle.
    slot : one-hot, where each of the two waits; clear before and after.
    owner : whether the uop in an issue register is of X, of Y.
    """

    def __init__(self, cfg: Config, *, mac_depth: int, loop: int, walks: bool, rules: bool = True):
        self.cfg, self.mac_depth, self.loop = cfg, mac_depth, loop
        self.u = u = Units(cfg, mac_depth=mac_depth, loop=loop, walks=walks)
        self.p = p = u.p
        self.tile = p.const(cfg.tile_bits, "tile")
        self.block = p.const(cfg.blocks_log2, "block")
        self.reads: list[list[Value]] = [[], []]
        self.writes: list[list[Value]] = [[], []]
        self._mark()
        self._mma()
        room = self._loads()
        row = self._stores()
        self._moves()
        u.drive_ready(load=room, store=row)
        self._plain()
        if rules:
            self._rules()

    def _here(self, word) -> Value:
        return (word.tile == self.tile) & (word.block == self.block)

    def _of_row(self, tile: Value, row: Value) -> Value:
        return (tile == self.tile) & (row >> self.cfg.m_par_log2 == self.block)

    def _mark(self) -> None:
        u, p, m = self.u, self.p, self.p.m
        self.mark = now = p.any(2, "mark")
        self.seen = [Signal(name=f"seen_{who}") for who in _WHO]
        self.slot = [Signal(self.cfg.slots, name=f"slot_of_{who}") for who in _WHO]
        begins = (
            p.signal(u.dispatched & now[0] & ~self.seen[_X], "begins_x"),
            p.signal(u.dispatched & now[1] & self.seen[_X] & ~self.seen[_Y], "begins_y"),
        )
        for who in (_X, _Y):
            slot = self.slot[who]
            with m.If(begins[who]):
                m.d.sync += [self.seen[who].eq(1), slot.eq(u.chosen)]
            with m.Else():
                # A slot that is free, or taken anew, holds neither.
                m.d.sync += slot.eq(slot & u.valid & ~Mux(u.dispatched, u.chosen, 0))
        self.owner = {}
        for name in u.KINDS:
            self.owner[name] = [Signal(name=f"{name}_of_{who}") for who in _WHO]
            with m.If(u.grants[name].any()):
                m.d.sync += [
                    self.owner[name][who].eq((u.grants[name] & self.slot[who]).any())
                    for who in (_X, _Y)
                ]

    def _mma(self) -> None:
        """Operands are read when the uop goes, C later, the result is written later still."""
        u, p = self.u, self.p
        uop = u.dut.mma.payload
        self.c_late = self.mac_depth + 1 - self.loop
        operands = (self._here(uop.a) & uop.new_a) | self._of_row(uop.b_tile, uop.b_row)
        self.tile_gone, self.word_gone, self.read_gone = [], [], []
        for who in (_X, _Y):
            mine = u.goes["mma"] & self.owner["mma"][who]
            to_tile = mine & (uop.c.tile == self.tile)
            to_word = mine & self._here(uop.c)
            name = _WHO[who]
            length = self.mac_depth
            self.tile_gone.append(_Chain(p, to_tile, length, f"{name}_tile_gone"))
            self.word_gone.append(_Chain(p, to_word, length, f"{name}_word_gone"))
            self.read_gone.append(_Chain(p, to_word & uop.new_c, length, f"{name}_read_gone"))
            self.reads[who] += [mine & operands, self.read_gone[who].at[self.c_late]]
            self.writes[who].append(self.word_gone[who].at[self.mac_depth])

    def _loads(self) -> Value:
        """Some loads are out; any of them is written next, and told a cycle later."""
        u, p, m, cfg = self.u, self.p, self.p.m, self.cfg
        uop = u.dut.load.payload
        self.load_out = out = [Signal(name=f"load{n}_out") for n in range(LOADS)]
        self.load_tile = [Signal(cfg.tile_bits, name=f"load{n}_tile") for n in range(LOADS)]
        here = [Signal(name=f"load{n}_here") for n in range(LOADS)]
        self.load_of = [[Signal(name=f"load{n}_of_{w}") for w in _WHO] for n in range(LOADS)]
        self.lands = lands = p.any(LOADS, "lands")
        p.assume("one_lands", ((lands & (lands - 1)) == 0) & ((lands & ~Cat(out)) == 0))
        entry = p.signal((~Cat(out) & (Cat(out) + 1))[:LOADS], "load_entry")
        touches = Mux(
            uop.zero,
            (uop.tile == self.tile) & (uop.row >> cfg.m_par_log2 == self.block),
            self._of_row(uop.tile, uop.row),
        )
        retired_tile = Value.cast(0)
        for n in range(LOADS):
            with m.If(lands[n]):
                m.d.sync += out[n].eq(0)
            with m.If(u.goes["load"] & entry[n]):
                m.d.sync += [out[n].eq(1), self.load_tile[n].eq(uop.tile), here[n].eq(touches)]
                m.d.sync += [self.load_of[n][w].eq(self.owner["load"][w]) for w in (_X, _Y)]
            retired_tile = retired_tile | Mux(lands[n], self.load_tile[n], 0)
            for who in (_X, _Y):
                self.writes[who].append(lands[n] & here[n] & self.load_of[n][who])
        self.load_here = here
        self.retired = p.past(lands.any(), "retired")
        self.retired_tile = p.past(retired_tile, "retired_tile")
        m.d.comb += [
            u.dut.load_retired.eq(self.retired),
            u.dut.load_retired_tile.eq(self.retired_tile),
        ]
        return ~Cat(out).all()

    def _stores(self) -> Value:
        """Some rows wait for their read, in order."""
        u, p, m = self.u, self.p, self.p.m
        uop = u.dut.store.payload
        self.row_waits = waits = [Signal(name=f"row{n}_waits") for n in range(ROWS)]
        self.row_tile = tile = [
            Signal(self.cfg.tile_bits, name=f"row{n}_tile") for n in range(ROWS)
        ]
        self.row_here = here = [Signal(name=f"row{n}_here") for n in range(ROWS)]
        self.row_of = of = [[Signal(name=f"row{n}_of_{w}") for w in _WHO] for n in range(ROWS)]
        self.row_read = read = p.signal(waits[0] & p.any(1, "row_granted"), "row_read")
        goes = u.goes["store"]
        new = [uop.tile, self._of_row(uop.tile, uop.row)]
        new += [self.owner["store"][w] for w in (_X, _Y)]
        rows = [[tile[n], here[n], *of[n]] for n in range(ROWS)]
        left = [*waits[1:], 0]  # who waits when one was read
        for n in range(ROWS):
            still = Mux(read, left[n], waits[n])
            before = Mux(read, waits[n], waits[n - 1]) if n else 1  # the place before is taken
            m.d.sync += waits[n].eq(still | (goes & before))
            with m.If(read & left[n]):
                m.d.sync += [a.eq(b) for a, b in zip(rows[n], rows[(n + 1) % ROWS], strict=True)]
            with m.Elif(read | ~waits[n]):
                m.d.sync += [a.eq(b) for a, b in zip(rows[n], new, strict=True)]
            m.d.comb += [
                getattr(u.dut, f"store_reading{n}").eq(waits[n]),
                getattr(u.dut, f"store_reading_tile{n}").eq(tile[n]),
            ]
        for who in (_X, _Y):
            self.reads[who].append(read & here[0] & of[0][who])
        return ~waits[-1]

    def _moves(self) -> None:
        """Read when the uop goes, written some cycles later."""
        u, p, m = self.u, self.p, self.p.m
        uop = u.dut.move.payload
        stages = Scoreboard.MOVE_STAGES - 1
        going = _Chain(p, u.goes["move"] & uop.write, stages, "moving")
        tile = uop.dst.tile
        self.move_gone = []
        for stage in range(stages):
            tile = p.past(tile, f"moving_tile{stage}")
            m.d.comb += [
                getattr(u.dut, f"move_writing{stage}").eq(going.at[stage + 1]),
                getattr(u.dut, f"move_write_tile{stage}").eq(tile),
            ]
        self.move_word = []
        for who in (_X, _Y):
            mine = u.goes["move"] & self.owner["move"][who]
            to_tile = mine & uop.write & (uop.dst.tile == self.tile)
            self.move_gone.append(_Chain(p, to_tile, stages, f"{_WHO[who]}_moving"))
            to_word = mine & uop.write & self._here(uop.dst)
            self.move_word.append(_Chain(p, to_word, stages, f"{_WHO[who]}_moving_word"))
            self.reads[who].append(mine & uop.read & self._here(uop.src))
            self.writes[who].append(self.move_word[who].at[stages])
        self.moving_here = [
            going.at[stage + 1] & (getattr(u.dut, f"move_write_tile{stage}") == self.tile)
            for stage in range(stages)
        ]

    def _plain(self) -> None:
        """In some runs only X and Y are there, of a uop each, and nothing is held up.

        Cover statements ask for such a run, which is found sooner; proofs look at all of them.
        """
        u, p = self.u, self.p
        self.plain = plain = p.const(1, "plain")
        dispatches = Signal(2, name="dispatches")
        with p.m.If(u.dispatched):
            p.m.d.sync += dispatches.eq(dispatches + 1)
        p.assume("plain_units", ~plain | (Cat(u.ready.values()).all() & ~u.skip))
        p.assume("plain_order", ~plain | ~u.dispatched | (dispatches < 2))
        p.assume("plain_pair", ~plain | ~u.dispatched | (self.mark == dispatches + 1))
        for n, walk in enumerate(u.walks):
            p.assume(f"plain_walk{n}", ~plain | walk.fresh | ~walk.counters.busy)

    def _rules(self) -> None:
        p, m = self.p, self.p.m
        reads = [p.signal(Cat(self.reads[w]).any(), f"{_WHO[w]}_reads") for w in (_X, _Y)]
        writes = [p.signal(Cat(self.writes[w]).any(), f"{_WHO[w]}_writes") for w in (_X, _Y)]
        has_read = [Signal(name=f"{who}_has_read") for who in _WHO]
        has_written = [Signal(name=f"{who}_has_written") for who in _WHO]
        for w in (_X, _Y):
            m.d.sync += [
                has_read[w].eq(has_read[w] | reads[w]),
                has_written[w].eq(has_written[w] | writes[w]),
            ]
        y_read, y_written = has_read[_Y] | reads[_Y], has_written[_Y] | writes[_Y]
        p.check("raw", ~(writes[_X] & y_read))
        # An instruction's own results, too, are there before it reads their word.
        too_soon = self.word_gone[_X].any(1, self.loop - 1)
        p.check("own_raw", ~(self.read_gone[_X].at[0] & too_soon))
        p.check("waw", ~(writes[_X] & y_written))
        p.check("war", ~(reads[_X] & y_written))
        for name, met in (
            ("read_after_write", has_written[_X] & reads[_Y]),
            ("write_after_write", has_written[_X] & writes[_Y]),
            ("write_after_read", has_read[_X] & writes[_Y]),
            (
                "accumulated_twice",
                has_written[_X] & writes[_Y] & self.read_gone[_Y].at[self.mac_depth],
            ),
        ):
            p.cover(name, self.plain & met)
        missed = self.word_gone[_X].any(self.loop, self.mac_depth)
        p.cover("own_word_again", self.read_gone[_X].at[0] & missed)
        self.has_read, self.has_written = has_read, has_written


def rows_wait(pair: Pair) -> None:
    """Check that rows that the store pipe has still to read wait one behind the other."""
    for n in range(ROWS):
        pair.p.check(f"row{n}_in_order", ~pair.row_waits[n] | Cat(pair.row_waits[:n]).all())


def bounded(cfg: Config, *, mac_depth: int, loop: int) -> Proof:
    """With the design's split counters, runs of a few cycles; they keep the contract."""
    return Pair(cfg, mac_depth=mac_depth, loop=loop, walks=False).p


def unbounded(cfg: Config, *, mac_depth: int, loop: int) -> Proof:
    """With any walks that keep the contract which `splits` proves, runs of any length."""
    return any_walks(cfg, mac_depth=mac_depth, loop=loop).p


def any_walks(cfg: Config, *, mac_depth: int, loop: int) -> Pair:
    """The harness of `unbounded`, with its invariants."""
    pair = Pair(cfg, mac_depth=mac_depth, loop=loop, walks=True)
    u, p, m, tile = pair.u, pair.p, pair.p.m, pair.tile
    inside, count, depth = u.inside, cfg.slots, mac_depth
    slots = u.slots
    stages = pair.stages = [Stages(u, n, tile) for n in range(count)]
    uops = {name: getattr(u.dut, name).payload for name in u.KINDS}
    full = {name: inside(f"{name}_full") for name in u.KINDS}

    def bit(mask: Value) -> Value:
        return mask.bit_select(tile, 1)

    def in_slots(who: int, of_slot) -> Value:
        """Whether it holds of the slot of X or Y."""
        return Cat(pair.slot[who][n] & u.valid[n] & of_slot(n) for n in range(count)).any()

    u.program_order()

    # -- the harness's own state --------------------------------------------------------------
    for who in (_X, _Y):
        slot = pair.slot[who]
        p.check(f"{_WHO[who]}_in_one_slot", (slot & (slot - 1)) == 0)
        p.check(f"{_WHO[who]}_was_seen", pair.seen[who] | ~slot.any())
    both = (pair.slot[_X] & pair.slot[_Y]).any()
    p.check("two_slots", ~both)
    p.check("x_first", pair.seen[_X] | ~pair.seen[_Y])
    for n in range(count):
        for q in range(count):
            if n != q:
                pair_here = pair.slot[_Y][n] & u.valid[n] & pair.slot[_X][q] & u.valid[q]
                p.check(f"older{n}_{q}", ~pair_here | inside(f"older{n}")[q])
    for name in u.KINDS:
        x, y = pair.owner[name]
        p.check(f"{name}_of_one", ~(x & y & full[name]))
        p.check(f"{name}_of_seen", ~(full[name] & y) | pair.seen[_Y])
        p.check(f"{name}_of_seen_x", ~(full[name] & x) | pair.seen[_X])

    # -- the scoreboard knows what is in flight ------------------------------------------------
    board = inside.part("scoreboard")
    everyone = _Chain(p, u.goes["mma"] & (uops["mma"].c.tile == tile), depth, "any_tile_gone")
    anyone = _Chain(p, u.goes["mma"] & pair._here(uops["mma"].c), depth, "any_word_gone")
    timers = Cat(board(f"timer{n}") for n in range(cfg.all_tiles))
    timer = p.signal(timers.word_select(tile, len(board("timer0"))), "timer")
    told = depth - Scoreboard.latency(cfg)  # for so many cycles the scoreboard tells of a result
    gone = board("mac_c", tile_word(cfg))
    p.check("timer1", everyone.at[1] == (board("mac_c_gone") & (gone.tile == tile)))
    for age in range(2, told + 1):
        p.check(f"timer{age}", ~everyone.at[age] | (timer >= told + 1 - age))
    for age in range(1, loop - Scoreboard.WORD_LATENCY):
        if age == 1:
            flight = gone
        elif Scoreboard.tells_late(cfg):
            flight = tile_word(cfg)(board.copies(f"flight{age}_word")[0])
        else:
            flight = board(f"flight{age}_word", tile_word(cfg))
        valid = board(f"flight{age}_valid" if age > 1 else "mac_c_gone")
        here = valid & pair._here(flight)
        p.check(f"flight{age}", here == anyone.at[age])
    for who in (_X, _Y):
        for age in range(1, depth + 1):
            p.check(
                f"{_WHO[who]}_gone{age}",
                (~pair.tile_gone[who].at[age] | everyone.at[age])
                & (~pair.word_gone[who].at[age] | (anyone.at[age] & pair.tile_gone[who].at[age]))
                & (~pair.read_gone[who].at[age] | pair.word_gone[who].at[age]),
            )
    out = [pair.load_out[n] & (pair.load_tile[n] == tile) for n in range(LOADS)]
    retired = pair.retired & (pair.retired_tile == tile)
    counts = Cat(board(f"loads{n}") for n in range(cfg.all_tiles))
    loads = counts.word_select(tile, len(board("loads0")))
    total = Value.cast(retired)
    for entry in out:
        total = total + entry
    p.check("loads_counted", loads == total)
    for n in range(LOADS):
        p.check(f"load{n}_here", ~pair.load_here[n] | (pair.load_tile[n] == tile))
    for n in range(ROWS):
        p.check(f"row{n}_is_here", ~pair.row_here[n] | (pair.row_tile[n] == tile))
    rows_wait(pair)
    for who in (_X, _Y):
        for age in range(1, Scoreboard.MOVE_STAGES):
            p.check(
                f"{_WHO[who]}_moving{age}",
                (~pair.move_gone[who].at[age] | pair.moving_here[age - 1])
                & (~pair.move_word[who].at[age] | pair.move_gone[who].at[age]),
            )

    # -- what X may still do to the tile --------------------------------------------------------
    def of_x(name: str) -> Value:
        return full[name] & pair.owner[name][_X]

    def rows_of(who: int) -> Value:
        """A row of the tile waits for its read."""
        return Cat(
            pair.row_waits[n] & pair.row_of[n][who] & (pair.row_tile[n] == tile)
            for n in range(ROWS)
        ).any()

    claims_read = in_slots(_X, lambda n: bit(slots[n]("reads")))
    claims_write = in_slots(_X, lambda n: bit(slots[n]("writes")))
    mma, load, store, move = (uops[name] for name in u.KINDS)
    early_reads = p.signal(
        (of_x("mma") & ((mma.a.tile == tile) | (mma.b_tile == tile)))
        | (of_x("store") & (store.tile == tile))
        | rows_of(_X)
        | (of_x("move") & move.read & (move.src.tile == tile)),
        "x_early_reads",
    )
    late_writes = p.signal(
        (of_x("load") & (load.tile == tile))
        | Cat(out[n] & pair.load_of[n][_X] for n in range(LOADS)).any()
        | (of_x("move") & move.write & (move.dst.tile == tile))
        | pair.move_gone[_X].any(1, Scoreboard.MOVE_STAGES - 1),
        "x_late_writes",
    )
    waits_mma = p.signal(of_x("mma") & (mma.c.tile == tile), "x_mma_waits")

    if Scoreboard.tells_late(cfg):
        # What is in an issue register is told of, or the slot still claims it.
        told_of = {name: bit(board(name)) for name in ("accumulating", "writing", "reading")}

        def held(claims: str) -> Value:
            return Cat(
                pair.slot[_X][n] & (u.valid[n] | slots[n]("was_issued")) & bit(slots[n](claims))
                for n in range(count)
            ).any()

        for age in range(1, told + 2):
            p.check(f"told_of{age}", ~everyone.at[age] | told_of["accumulating"])
        for n in range(LOADS):
            p.check(f"load{n}_told_of", ~out[n] | told_of["writing"])
        p.check("retired_told_of", ~retired | told_of["writing"])
        p.check("moving_told_of", ~Cat(pair.moving_here).any() | told_of["writing"])
        for waits, of_row in zip(pair.row_waits, pair.row_tile, strict=True):
            p.check(f"{of_row.name}_told_of", ~(waits & (of_row == tile)) | told_of["reading"])
        for name, issued, claims in (
            ("accumulating", of_x("mma") & (mma.c.tile == tile), "writes"),
            (
                "writing",
                (of_x("load") & (load.tile == tile))
                | (of_x("move") & move.write & (move.dst.tile == tile)),
                "writes",
            ),
            (
                "reading",
                (of_x("mma") & ((mma.a.tile == tile) | (mma.b_tile == tile)))
                | (of_x("store") & (store.tile == tile))
                | (of_x("move") & move.read & (move.src.tile == tile)),
                "reads",
            ),
        ):
            p.check(f"x_told_of_{name}", ~issued | told_of[name] | held(claims))

    # -- and once Y was let near the tile, does not --------------------------------------------
    is_mma = [walk.is_kind(InstrKind.MMA) for walk in u.walks]
    x_claims_results = p.signal(
        in_slots(_X, lambda n: is_mma[n] & bit(slots[n]("writes"))), "x_claims_results"
    )
    x_claims_writes = p.signal(claims_write & ~x_claims_results, "x_claims_writes")
    x_claims_reads = p.signal(claims_read, "x_claims_reads")
    gone = pair.tile_gone[_X]

    # The tiles that are blocked are known a cycle late, and what X still does only gets less.
    for n in range(count):
        is_y = p.signal(pair.slot[_Y][n] & u.valid[n] & ~u.walks[n].begun, f"y_looks{n}")
        blocks_read = slots[n]("block_read").bit_select(tile, 1)
        blocks_write = slots[n]("block_write").bit_select(tile, 1)
        under_way = x_claims_results | waits_mma | gone.any(1, told + 1)
        p.check(f"blocks_read{n}", ~is_y | blocks_read | ~(claims_write | late_writes | under_way))
        p.check(
            f"blocks_write{n}",
            ~is_y
            | blocks_write
            | ~(x_claims_writes | x_claims_reads | early_reads | late_writes)
            & ~(under_way & ~is_mma[n]),
        )

    def since(event: Value, name: str, most: int) -> Signal:
        """Cycles since the first event, 0 before it."""
        age = Signal(range(most + 1), name=name)
        with m.If(age != 0):
            m.d.sync += age.eq(Mux(age == most, most, age + 1))
        with m.Elif(event):
            m.d.sync += age.eq(1)
        return age

    # Cycles since Y was first found free to do something to the tile; to read the word of C.
    found = {
        name: p.signal(in_slots(_Y, lambda n, does=does: does(stages[n])), f"y_may_{name}")
        for name, does in (
            ("read", lambda s: s.found & s.reads(s.uop)),
            ("write", lambda s: s.found & s.writes(s.uop) & ~s.walk.is_kind(InstrKind.MMA)),
            ("add", lambda s: s.found & s.writes(s.uop) & s.walk.is_kind(InstrKind.MMA)),
            ("see", lambda s: s.found & s.sees(s.uop, pair.block)),
        )
    }
    age_of = {name: since(event, f"y_{name}_age", ISSUE_AGE) for name, event in found.items()}

    def reached(name: str, does, after: int) -> None:
        """What Y's uop does there was found free at least so many cycles ago."""
        for where, at_least in (("check", 1), ("spare", 2), ("offer", 2)):
            there = in_slots(
                _Y, lambda n, where=where: stages[n].passed[where] & does(stages[n], where)
            )
            p.check(f"y_{name}_{where}", ~there | (age_of[name] >= at_least))

    def uop_of(s: Stages, where: str):
        return s.at[where]

    of_mma = InstrKind.MMA
    reached("read", lambda s, w: s.reads(uop_of(s, w)), 1)
    reached("write", lambda s, w: s.writes(uop_of(s, w)) & ~s.walk.is_kind(of_mma), 1)
    reached("add", lambda s, w: s.writes(uop_of(s, w)) & s.walk.is_kind(of_mma), 1)
    reached("see", lambda s, w: s.sees(uop_of(s, w), pair.block), 1)
    for name, claims in (("read", "reads"), ("write", "writes")):
        won = in_slots(_Y, lambda n, claims=claims: stages[n].has_won(claims))
        p.check(f"y_{name}_won", ~won | (age_of[name] >= 2))
    for n in range(count):
        is_y = pair.slot[_Y][n] & u.valid[n] & ~u.walks[n].fresh
        taken, blocked = u.walks[n].taken, slots[n]("check_full") & ~slots[n]("clear")
        p.check(
            f"y_saw_before_holding{n}",
            ~(is_y & stages[n].sees(taken, pair.block))
            | (age_of["see"] >= 1)
            | (blocked & taken.new_c),
        )

    # What X has done by then.
    may = {name: p.signal(age != 0, f"y_may_have_{name}") for name, age in age_of.items()}
    p.check("y_may_is_seen", pair.seen[_Y] | ~Cat(may.values()).any())
    p.check("x_wrote_before_y_reads", ~may["read"] | ~(claims_write | late_writes | waits_mma))
    p.check(
        "x_is_done_before_y_writes",
        ~may["write"] | ~(claims_write | claims_read | early_reads | late_writes | waits_mma),
    )
    p.check(
        "x_is_done_before_y_adds",
        ~may["add"] | ~(x_claims_writes | claims_read | early_reads | late_writes),
    )
    for name in ("read", "write"):
        for age in range(1, depth + 1):
            landed = age_of[name] + (depth - ISSUE_AGE) < age
            p.check(f"x_landed_before_y_{name}{age}", ~gone.at[age] | ~may[name] | landed)
    x_sees = p.signal(
        in_slots(_X, lambda n: is_mma[n] & stages[n].anywhere(pair.block)), "x_has_word_in_slot"
    )
    x_goes_on = p.signal(
        in_slots(_X, lambda n: is_mma[n] & bit(slots[n]("writes")) & u.walks[n].counters.busy),
        "x_goes_on",
    )
    p.check("x_ends_before_y_adds", ~may["add"] | ~x_goes_on)
    waits_word = p.signal(of_x("mma") & pair._here(mma.c), "x_word_waits")
    p.check("x_left_before_y_sees", ~may["see"] | ~(waits_word | x_sees | x_goes_on))
    for age in range(1, depth + 1):
        left = age_of["see"] + (loop - 1 - ISSUE_AGE) < age
        p.check(f"x_landed_before_y_sees{age}", ~pair.word_gone[_X].at[age] | ~may["see"] | left)

    # Who adds to X's results goes after X's last uop.
    for n in range(count):
        for number, q in enumerate(q for q in range(count) if q != n):
            meets = pair.slot[_Y][n] & u.valid[n] & pair.slot[_X][q] & u.valid[q]
            meets = p.signal(meets & is_mma[n] & is_mma[q] & bit(slots[q]("writes")), f"m{n}_{q}")
            passed, at = stages[n].passed, stages[n].at
            for where, register in (
                ("check", "to_follow"),
                ("spare", "behind"),
                ("offer", "behind"),
            ):
                there = passed[where] & stages[n].writes(at[where])
                p.check(
                    f"y_{where}_follows_x{n}_{q}",
                    ~(meets & there) | slots[n](register)[number],
                )

    # X's own results are in a word before X reads it: for the first time, and if another slot's
    # uop came between.
    own = pair.word_gone[_X]
    own_waits = p.signal(of_x("mma") & pair._here(mma.c), "x_own_waits")
    for n in range(count):
        is_x = pair.slot[_X][n] & u.valid[n]
        s = stages[n]
        ahead = own_waits
        for where, most in (("offer", loop - 2), ("spare", loop - 2), ("check", loop - 3)):
            uop = s.at[where]
            reads_word = is_x & s.passed[where] & s.sees(uop, pair.block) & uop.new_c
            p.check(f"x_own_{where}{n}", ~reads_word | ~(ahead | own.any(1, most)))
            ahead = ahead | (s.full[where] & s.names_word(uop, pair.block))
        p.check(f"x_goes_on{n}", ~(is_x & of_x("mma")) | inside("last_mma")[n])
        p.check(f"x_own_later{n}", ~(is_x & u.walks[n].begun) | ~own.any(1, depth))
        p.check(f"x_own_mma{n}", ~(is_x & (own.any(1, depth) | of_x("mma"))) | is_mma[n])
        if loop > 2:
            last_mma = inside("last_mma")[n]
            left, missed = slots[n]("left"), slots[n]("missed")
            for age in range(1, loop - 1):
                p.check(f"x_left{age}_{n}", ~(is_x & own.at[age]) | (left >= loop - 1 - age))
            p.check(f"x_missed{n}", ~(is_x & ~last_mma & ~missed) | ~own.any(1, loop - 2))
    p.check("x_own_is_seen", pair.seen[_X] | ~own.any(1, depth))
    p.check("x_own_waiting", ~(own_waits & mma.new_c) | ~own.any(1, loop - 1))

    near = {}
    for name, condition in (
        (
            "read",
            lambda s: s.step & s.reads(s.at["offer"], whole=False),
        ),
        (
            "write",
            lambda s: s.step & s.writes(s.at["offer"], whole=False) & ~s.walk.is_kind(of_mma),
        ),
        (
            "add",
            lambda s: s.step & s.writes(s.at["offer"], whole=False) & s.walk.is_kind(of_mma),
        ),
    ):
        was = Signal(name=f"y_was_near_{name}")
        with m.If(in_slots(_Y, lambda n, condition=condition: condition(stages[n]))):
            m.d.sync += was.eq(1)
        near[name] = was
        p.check(f"y_near_{name}", ~was | (age_of[name] == ISSUE_AGE))
    adds = near["add"]
    p.check("x_is_done_before_y_is_near", ~adds | ~(claims_write | waits_mma))

    # Results of both may be under way to one tile: X's left first, and Y's reads of C come after.
    y_gone = since(pair.tile_gone[_Y].at[0], "y_gone_since", depth)
    read = since(pair.read_gone[_Y].at[0], "y_read_since", depth)
    y_waits = full["mma"] & pair.owner["mma"][_Y] & pair._here(mma.c) & mma.new_c
    for age in range(1, depth + 1):
        p.check(f"x_left_first{age}", ~pair.tile_gone[_X].at[age] | (y_gone < age))
        p.check(
            f"x_left_long_before{age}",
            ~pair.word_gone[_X].at[age] | (read == 0) | (read + loop <= age),
        )
        p.check(
            f"x_left_before_waiting{age}", ~(pair.word_gone[_X].at[age] & y_waits) | (age >= loop)
        )
        p.check(f"y_gone_is_old{age}", ~pair.tile_gone[_Y].at[age] | (y_gone >= age))
        p.check(f"y_read_is_old{age}", ~pair.read_gone[_Y].at[age] | (read >= age))
    p.check("since_inside", (y_gone <= depth) & (read <= depth))
    p.check("y_gone_was_near", (y_gone == 0) | adds)
    p.check("y_read_has_gone", (read == 0) | (y_gone >= read))
    p.check("y_waiting_sees", ~y_waits | (age_of["see"] == ISSUE_AGE))
    y_mma = full["mma"] & pair.owner["mma"][_Y]
    p.check("y_waiting_adds", ~(y_mma & (mma.c.tile == tile)) | adds)
    p.check(
        "y_waiting_reads", ~(y_mma & ((mma.a.tile == tile) | (mma.b_tile == tile))) | near["read"]
    )
    y_store = full["store"] & pair.owner["store"][_Y] & (store.tile == tile)
    y_row = rows_of(_Y)
    p.check("y_storing_reads", ~(y_store | y_row) | near["read"])
    y_move = full["move"] & pair.owner["move"][_Y]
    p.check("y_moving_reads", ~(y_move & move.read & (move.src.tile == tile)) | near["read"])
    y_writes = (
        (full["load"] & pair.owner["load"][_Y] & (load.tile == tile))
        | Cat(out[n] & pair.load_of[n][_Y] for n in range(LOADS)).any()
        | (y_move & move.write & (move.dst.tile == tile))
        | pair.move_gone[_Y].any(1, Scoreboard.MOVE_STAGES - 1)
    )
    p.check("y_writing_writes", ~y_writes | near["write"])
    p.check("y_near_is_seen", pair.seen[_Y] | ~(near["read"] | near["write"] | adds))
    p.check(
        "y_has_read_before",
        ~pair.has_read[_Y] | near["read"] | (read > pair.c_late) | (read == depth),
    )
    p.check("y_has_written_before", ~pair.has_written[_Y] | near["write"] | (y_gone == depth))
    return pair


_SLOTS = Config(
    tiles=4, rows=4, row_bits=64, bus_bits=64, banks=2, m_par=2, n_par=1, slots=2, addr_bits=16
)
_PARAMETERS = "{} slots, 4 tiles, rows 4 x 64 bit, words of 2 rows, MAC depth {}, loop {}"

TASKS = (
    Task(
        name="hazards",
        about="no RAW, WAR, WAW: any two instructions, any word, any walks",
        parameters=_PARAMETERS.format(2, 6, 5),
        build=lambda: unbounded(_SLOTS, mac_depth=6, loop=5),
        depth=2,
        cover=18,
        quick=True,
    ),
    Task(
        name="hazards_three",
        about="the same with a third instruction between",
        parameters=_PARAMETERS.format(3, 8, 5),
        build=lambda: unbounded(_SLOTS.replace(slots=3), mac_depth=8, loop=5),
        depth=2,
        cover=20,
    ),
    Task(
        name="hazards_block",
        about="the same where tiles lie in block RAM",
        parameters=_PARAMETERS.format(2, 7, 5),
        build=lambda: unbounded(_SLOTS.replace(tile_memory="block"), mac_depth=7, loop=5),
        depth=2,
        cover=20,
    ),
    Task(
        name="hazards_split",
        about="the same with the design's split counters",
        parameters=_PARAMETERS.format(2, 4, 3),
        build=lambda: bounded(_SLOTS, mac_depth=4, loop=3),
        mode="bmc",
        depth=13,
        cover=16,
        timeout=1500,
    ),
)
MUTANTS = (
    *mutants(
        "hdl/issue/slot.py",
        "hazards_block",
        (
            "claims end with the slot, before the scoreboard knows",
            "holds = (valid | was_issued) if",
            "holds = valid if",
        ),
    ),
    *mutants(
        "hdl/issue/slots.py",
        "hazards",
        (
            "writers do not wait for reads under way",
            "                    | board.reading\n",
            "",
        ),
        (
            "younger instructions are waited for",
            "older[index][q] & slots[q].valid for q in others",
            "older[q][index] & slots[q].valid for q in others",
        ),
        (
            "writers do not wait for readers in slots",
            "                    | reads\n",
            "",
        ),
        (
            "readers do not wait for what lands",
            "board.writing | board.accumulating | writes | results",
            "board.accumulating | writes | results",
        ),
        (
            "a load does not wait for results that land",
            "Mux(slot.kinds[InstrKind.MMA.value], 0, board.accumulating)",
            "0",
        ),
        (
            "a load is told when it lands",
            "board.load_go.eq(load_full & self.load.ready)",
            "board.load_go.eq(self.load_retired)",
        ),
        (
            "who adds does not wait until the older one ends",
            "slot.ending[number].eq(slots[q].ends)",
            "slot.ending[number].eq(1)",
        ),
        (
            "who adds does not look at the words of the older one's last uops",
            "slots[q].recent.bit_select(slot.word[which].block, 1)",
            "0",
        ),
    ),
    *mutants(
        "hdl/issue/slot.py",
        "hazards",
        (
            "claims are given up when the uop is offered",
            "was_issued.eq(self.step), issued.eq(offer)",
            "was_issued.eq(passes), issued.eq(check)",
        ),
        (
            "B is not looked at",
            "                    | (uop.reads1 & has(block_read, uop.read1)),\n",
            "",
        ),
        (
            "a word under way is read",
            "self.word_busy[number],",
            "",
        ),
        (
            "a load along rows looks at its first tile only",
            "Mux(uop.whole, writes_any, uop.writes & has(block_write, uop.write))",
            "uop.writes & has(block_write, uop.write)",
        ),
        (
            "a copy does not look at what it writes",
            "uop.writes & has(block_write, uop.write)",
            "uop.writes & ~uop.reads0 & has(block_write, uop.write)",
        ),
        (
            "who adds does not stay behind",
            "~(held_c & missed) & ~is_behind",
            "~(held_c & missed)",
        ),
        (
            "a held word is read again before its result is there",
            "~(held_c & missed) & ~is_behind",
            "~is_behind",
        ),
        (
            "a claim won once is won for all tiles",
            "sync += granted.eq(~(check.free0 | check.free_write))",
            "sync += granted.eq(1)",
        ),
    ),
    *mutants(
        "hdl/issue/counters.py",
        "counters",
        ("C is given up at the first word", "mma.free_c & ~words", "1"),
        (
            "a tile is given up with the first part of its last row",
            "row.free_write & line_cut.last",
            "row.free_write",
        ),
        (
            "over when the walk is",
            "self.busy.eq(walking | buffer.o.valid)",
            "self.busy.eq(walking)",
        ),
        ("a load is checked as a store", "uop.reads0.eq(~loads)", "uop.reads0.eq(loads)"),
        (
            "the row that follows a cut is lost",
            "self.step & (~is_ldst | line_cut.last)",
            "self.step",
        ),
    ),
)
