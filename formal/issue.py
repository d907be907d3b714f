"""Proofs of the scoreboard, of split counters in a slot, and of the order among slots."""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Mux, Signal, Value

from hdl.config import Config
from hdl.interfaces import InstrKind, instr, ldst_uop
from hdl.isa import MoveOp
from hdl.issue.counters import SplitCounters
from hdl.issue.scoreboard import Scoreboard
from hdl.issue.slots import Slots
from hdl.issue.walk_start import start_of

from .any_walk import Walk, more_of, seen_as, walks_of_slots
from .harness import Inside, Proof
from .stages import Stages
from .task import Task, mutants

__all__ = ["MUTANTS", "TASKS", "Units", "goes_on", "still_to_land"]


def _delay(p: Proof, value: Value, cycles: int, name: str) -> Value:
    for age in range(1, cycles + 1):
        value = p.past(value, f"{name}_{age}")
    return value


def kind_of(kinds: Value) -> Value:
    """The number of the kind of an instruction whose `kinds` are one-hot."""
    return Cat(kinds[1] | kinds[3], kinds[2] | kinds[3])


# -- the scoreboard ---------------------------------------------------------------------------


def scoreboard(cfg: Config, *, mac_depth: int, loop: int) -> Proof:
    """A tile stays claimed until its last write has landed; a word until a read would see it."""
    p = Proof()
    dut = Scoreboard(cfg, mac_depth=mac_depth, loop=loop, words=1)
    inside = p.add("board", dut, free=True)
    m = p.m
    latency, word_latency = Scoreboard.latency(cfg), Scoreboard.WORD_LATENCY
    tile = p.const(cfg.tile_bits, "tile")
    p.assume("go_waits", ~dut.mac_go | dut.mac_waiting)

    def told(value, name):
        """`value` when the scoreboard tells of it."""
        return p.past(value, f"{name}_before") if Scoreboard.tells_late(cfg) else value

    # Results land mac_depth cycles after the operand read. Who sees a tile free now reads it
    # LATENCY cycles later at the earliest, which must be after them.
    goes = p.signal(dut.mac_go & dut.mac_writes & (dut.mac_c.tile == tile), "goes")
    landing = [goes] + [_delay(p, goes, n, f"goes{n}") for n in range(1, mac_depth)]
    waits = dut.mac_waiting & dut.mac_writes & (dut.mac_c.tile == tile)
    busy = waits | Cat(landing[1:]).any()
    blocks = waits | Cat(landing[age] for age in range(1, mac_depth) if age + latency <= mac_depth)
    blocks = told(blocks.any(), "blocks")
    p.check("accumulating", dut.accumulating.bit_select(tile, 1) == blocks)
    any_goes = p.signal(dut.mac_go & dut.mac_writes, "any_goes")
    any_landing = [_delay(p, any_goes, n, f"any_goes{n}") for n in range(1, mac_depth)]

    # Loads: as many as have gone and not retired. Each row comes in two parts at most.
    out = Signal(range(2 * cfg.rows + 1), name="out")
    p.assume("load_go_waits", ~dut.load_go | dut.load_waiting)
    load_waits = dut.load_waiting & (dut.load_tile == tile)
    up = p.signal(dut.load_go & (dut.load_tile == tile), "up")
    down = p.signal(dut.load_retired & (dut.load_retired_tile == tile), "down")
    m.d.sync += out.eq(out + up - down)
    p.assume("loads_come_back_once", ~down | (out != 0))
    p.assume("loads_of_a_tile", ~up | down | (out != 2 * cfg.rows))
    counts = Cat(inside(f"loads{n}") for n in range(cfg.all_tiles))
    p.check("counted", counts.word_select(tile, len(inside("loads0"))) == out)
    moving = Value.cast(0)
    for place in range(Scoreboard.MOVES):
        here = getattr(dut, f"move_write_tile{place}") == tile
        moving = moving | (getattr(dut, f"move_writing{place}") & here)
    moves = p.signal(dut.move_go & dut.move_writing0, "moves")
    moves_here = p.signal(moves & (dut.move_write_tile0 == tile), "moves_here")
    stages = range(1, Scoreboard.MOVE_STAGES + 1)
    moved = Cat(_delay(p, moves, n, f"moves{n}") for n in stages)
    moving = moving | Cat(_delay(p, moves_here, n, f"moves_here{n}") for n in stages).any()
    writes = told((out != 0) | load_waits | moving, "writes")
    p.check("writing", dut.writing.bit_select(tile, 1) == writes)

    reading = dut.mac_waiting & ((dut.mac_a == tile) | (dut.mac_b == tile))
    for stage in range(Scoreboard.STORES):
        here = getattr(dut, f"store_tile{stage}") == tile
        reading = reading | (getattr(dut, f"store_waiting{stage}") & here)
    for place in range(Scoreboard.MOVES):
        here = getattr(dut, f"move_read_tile{place}") == tile
        reading = reading | (getattr(dut, f"move_reading{place}") & here)
    p.check("reading", dut.reading.bit_select(tile, 1) == told(reading, "reads"))
    p.check(
        "idle_is_quiet",
        ~dut.idle | ~(busy | load_waits | moving | reading | Cat(any_landing).any()),
    )
    others = Cat(moved, *(getattr(dut, f"move_writing{n}") for n in range(Scoreboard.MOVES)))
    others = Cat(others, *(getattr(dut, f"move_reading{n}") for n in range(Scoreboard.MOVES)))
    others = Cat(others, dut.mac_waiting, dut.load_waiting)
    others = Cat(others, *(getattr(dut, f"store_waiting{n}") for n in range(Scoreboard.STORES)))
    p.check("quiet_is_idle", dut.idle | others.any() | Cat(any_landing).any())
    for n in range(cfg.all_tiles):
        most = Mux(Cat(any_landing).any(), max(0, mac_depth - latency - 1), 0)
        p.check(f"timer{n}_while_landing", inside(f"timer{n}") <= most)
    p.check("gone", inside("mac_c_gone") == any_landing[0])
    to_land = Value.cast(0)
    for age in reversed(range(2, mac_depth)):
        to_land = Mux(any_landing[age - 1], mac_depth - age, to_land)
    p.check("to_land", inside("to_land") == to_land)

    # A C read of what is checked now happens WORD_LATENCY cycles later at the earliest, and sees
    # what left `loop` cycles before it.
    ages = range(1, max(1, loop - word_latency))
    word = dut.word[0].as_value()
    words = [p.signal(dut.mac_c.as_value(), "c_now")]
    valid = [p.signal(dut.mac_go & dut.mac_writes, "c_goes")]
    for age in ages:
        words.append(p.past(words[-1], f"c_{age}"))
        valid.append(p.past(valid[-1], f"c_valid{age}"))
    missed = dut.mac_waiting & dut.mac_writes & (dut.mac_c.as_value() == word)
    for age in ages:
        missed = missed | (valid[age] & (words[age] == word))
    p.check("word_busy", dut.word_busy[0] == missed)
    p.cover("results_and_loads", busy & (out == 3))
    p.cover("free_again", _delay(p, goes, mac_depth + 1, "long_ago") & ~busy)
    p.cover("word_free_again", ~missed & p.past(valid[-1] & (words[-1] == word), "was_missed"))
    return p


def still_to_land(board: Inside, mac_depth: int) -> Value:
    """Cycles until the last result has landed, by the scoreboard's count."""
    return Mux(board("mac_c_gone"), mac_depth - 1, board("to_land"))


# -- instructions as the decoder makes them -------------------------------------------------------


def _tiles(cfg: Config, first: Value, last: Value, most: int, p: Proof, name: str) -> Signal:
    """The tiles from `first` to `first + last`, as a set."""
    mask = Value.cast(0)
    for number in range(most):
        mask = mask | Mux(last >= number, (1 << number), 0)
    return p.signal((mask << first)[: cfg.all_tiles], name)


def _instruction(p: Proof, cfg: Config) -> Signal:
    """Any instruction that the decoder may make, short ones; claims cover what is walked."""
    payload = p.any(instr(cfg), "instruction")
    kind = payload.kind
    f, ls, v = payload.mma, payload.ldst, payload.move
    is_mma, is_move = kind == InstrKind.MMA, kind == InstrKind.MOVE
    is_load, is_store = kind == InstrKind.LOAD, kind == InstrKind.STORE
    p.assume("start", Value.cast(ls.start) == start_of(cfg, ls))

    # mma: one A, one or two B, results side by side and apart from the operands.
    a = _tiles(cfg, f.a, Const(0, 1), 1, p, "a_tiles")
    b = _tiles(cfg, f.b, f.j_last, 2, p, "b_tiles")
    slices = p.signal(
        (Mux(f.j_last != 0, f.n_most | f.n_last, f.n_last) << f.width_log2) >> cfg.row_bytes_log2,
        "c_slices",
    )
    c_last = p.signal(f.j_last * f.j_stride + slices, "c_last")
    c = _tiles(cfg, f.c, c_last, cfg.all_tiles, p, "c_tiles")
    for name, rule in (
        ("one_a", f.i_last == 0),
        ("two_b", f.j_last <= 1),
        ("apart", (f.j_last == 0) | (slices < f.j_stride)),
        ("c_inside", f.c + c_last < cfg.all_tiles),
        ("b_inside", f.b + f.j_last < cfg.all_tiles),
        ("c_alone", (c & (a | b)) == 0),
        ("shared", f.shared == (a & b).any()),
        ("reads", payload.reads == a | b),
        ("writes", payload.writes == c),
    ):
        p.assume(f"mma_{name}", ~is_mma | rule)

    # Loads and stores: two tiles at most, side by side or downwards.
    named = _tiles(cfg, ls.tile, ls.tiles, 2, p, "named_tiles")
    for name, rule in (
        ("two", ls.tiles <= 1),
        ("inside", ls.tile + ls.tiles < cfg.all_tiles),
        ("single_slices", (ls.slices_log2 == 0) & (ls.group_stride == 1)),
        ("bytes", (ls.bytes_most < cfg.row_bytes) & (ls.bytes_last < cfg.row_bytes)),
        ("pitch", ls.pitch == cfg.row_bytes),
        ("groups", Mux(ls.down, ls.tile_last <= ls.tiles, ls.group_last <= ls.tiles)),
        ("no_fill", ls.fill | ((Mux(ls.down, ls.tile_last, ls.group_last)) == ls.tiles)),
        ("contiguous", ~ls.contiguous),
        ("fill_is_of_loads", ~(ls.fill & is_store)),
        ("reads", payload.reads == Mux(is_store, named, 0)),
        ("writes", payload.writes == Mux(is_load, named, 0)),
    ):
        p.assume(f"ldst_{name}", ~(is_load | is_store) | rule)

    # Moves: one or two tiles, not transposed.
    src = _tiles(cfg, v.src, v.tiles, 2, p, "src_tiles")
    dst = _tiles(cfg, v.dst, v.tiles, 2, p, "dst_tiles")
    many = Cat(v.op == op for op in (MoveOp.MMOV, MoveOp.MMOV_OTHER, MoveOp.MZERO)).any()
    no_source = (v.op == MoveOp.MZERO) | (v.op == MoveOp.SCALAR)
    for name, rule in (
        ("no_transpose", v.op != MoveOp.MTRANS),
        ("two", v.tiles <= many),
        ("inside", (v.src + v.tiles < cfg.all_tiles) & (v.dst + v.tiles < cfg.all_tiles)),
        ("apart", (v.src == v.dst) | ((src & dst) == 0)),
        ("reads", payload.reads == Mux(no_source, 0, src)),
        ("writes", payload.writes == Mux(v.op == MoveOp.ELEMENT, 0, dst)),
    ):
        p.assume(f"move_{name}", ~is_move | rule)
    return payload


def counters(cfg: Config) -> Proof:
    """The split counters of a slot keep the contract that proofs about slots rely on."""
    p = Proof()
    dut = SplitCounters(cfg)
    p.add("counters", dut)
    instruction = _instruction(p, cfg)
    valid, kind = Signal(name="valid"), Signal(InstrKind, name="kind", reset_less=True)
    start = p.signal(p.any(1, "begins") & ~valid, "start")
    p.m.d.comb += [
        Value.cast(dut.instr).eq(Value.cast(instruction)),
        dut.start.eq(start),
        dut.step.eq(dut.valid & p.any(1, "takes")),
    ]
    with p.m.If(~dut.busy):
        p.m.d.sync += valid.eq(0)
    with p.m.If(start):
        p.m.d.sync += [valid.eq(1), kind.eq(instruction.kind)]
    walk = Walk(
        p,
        cfg,
        dut,
        0,
        kind=kind,
        valid=valid,
        start=start,
        reads=instruction.reads,
        writes=instruction.writes,
    )
    walk.contract(assume=False)
    over = p.signal(valid & ~walk.fresh & ~dut.busy, "over")
    for name in InstrKind:
        p.cover(f"over_{name.name.lower()}", over & walk.is_kind(name))
    ldst = seen_as(ldst_uop(cfg), dut.uop)
    is_ldst = walk.is_kind(InstrKind.LOAD, InstrKind.STORE)
    p.cover("second_part", walk.step & is_ldst & (ldst.first != 0) & dut.uop.free_write)
    p.cover("idle", valid & dut.busy & ~dut.valid & ~walk.fresh)
    p.cover("zeros_end_idle", over & walk.is_kind(InstrKind.LOAD) & ~p.past(walk.step, "stepped"))
    return p


class Units:
    """Slots, and the units around them as models that work at any pace.

    Parameters
    ----------
    walks : the split counters are replaced by arbitrary walks that keep their contract; without
        it the contract is checked.

    Attributes
    ----------
    dut, inside : the slots; `slots`, `walks` : each one, and its walk.
    dispatched : an instruction enters; `chosen` says which slot.
    grants, ports : of each unit, by name.
    """

    KINDS = ("mma", "load", "store", "move")

    def __init__(self, cfg: Config, *, mac_depth: int, loop: int, walks: bool = False):
        self.cfg, self.mac_depth, self.loop = cfg, mac_depth, loop
        self.p = p = Proof()
        self.dut = dut = Slots(cfg, mac_depth=mac_depth, loop=loop)
        with walks_of_slots(arbitrary=walks) as counters:
            self.inside = inside = p.add("slots", dut)
        self.slots = [inside.part(f"slot{n}") for n in range(cfg.slots)]
        self.instruction = p.any(instr(cfg), "instruction") if walks else _instruction(p, cfg)
        m = p.m
        valid = p.any(1, "instruction_valid")
        self.ready = {name: p.any(1, f"{name}_ready") for name in self.KINDS}
        skip = p.any(1, "skip")
        m.d.comb += [
            dut.instrs.valid.eq(valid),
            Value.cast(dut.instrs.payload).eq(Value.cast(self.instruction)),
            dut.skip.eq(skip),
        ]
        self.skip = skip
        held = p.past(valid & ~dut.instrs.ready, "instruction_held")
        before = p.past(Value.cast(self.instruction), "instruction_before")
        p.assume(
            "instruction_holds",
            ~held | (valid & (Value.cast(self.instruction) == before)),
        )
        self.dispatched = p.signal(valid & dut.instrs.ready, "dispatched")
        self.chosen = inside("chosen")
        self.grants = {name: inside(f"{name}_grants") for name in self.KINDS}
        self.ports = {name: getattr(dut, name) for name in self.KINDS}
        self.goes = {
            name: p.signal(port.valid & port.ready, f"{name}_goes")
            for name, port in self.ports.items()
        }
        self.valid = p.signal(Cat(slot("valid") for slot in self.slots), "valids")
        self.walks = [
            Walk(
                p,
                cfg,
                counters[n],
                n,
                kind=kind_of(slot("kinds")),
                valid=slot("valid"),
                start=self.dispatched & self.chosen[n],
                reads=self.instruction.reads,
                writes=self.instruction.writes,
            )
            for n, slot in enumerate(self.slots)
        ]
        for walk in self.walks:
            walk.contract(assume=walks)

    def locked(self, name: str) -> Value:
        """The slot whose burst is under way, one-hot."""
        bursts = name != "mma" or self.cfg.has_words
        return self.inside(f"{name}_locked") if bursts else Const(0, self.cfg.slots)

    def program_order(self) -> list[Signal]:
        """Check that the age vectors are the order of dispatch, and that each unit takes one uop.

        Returns, for each slot, the slots that were occupied when it was taken and still are.
        """
        p, m, count = self.p, self.p.m, self.cfg.slots
        before = [Signal(count, name=f"before{n}") for n in range(count)]
        for n in range(count):
            with m.If(self.dispatched & self.chosen[n]):
                m.d.sync += before[n].eq(self.valid)
            with m.Elif(self.dispatched):
                m.d.sync += before[n].eq(before[n] & ~self.chosen)
            p.check(f"not_before_itself{n}", ~before[n][n] & ~self.inside(f"older{n}")[n])
            for q in range(count):
                both = self.valid[n] & self.valid[q]
                if q != n:
                    older = self.inside(f"older{n}")[q]
                    p.check(f"age{n}_{q}", ~both | (older == before[n][q]))
                if q > n:
                    p.check(f"one_is_older{n}_{q}", ~both | (before[n][q] ^ before[q][n]))
                for r in range(count):
                    if len({n, q, r}) == 3:
                        chain = both & self.valid[r] & before[n][q] & before[q][r]
                        p.check(f"transitive{n}_{q}_{r}", ~chain | before[n][r])
        for name in self.KINDS:
            grants, locked = self.grants[name], self.locked(name)
            p.check(f"{name}_one", (grants & (grants - 1)) == 0)
            p.check(f"{name}_one_lock", (locked & (locked - 1)) == 0)
        return before

    def drive_ready(self, **limits: Value) -> None:
        """Let the units take uops when they like, where `limits` allows."""
        for name, port in self.ports.items():
            self.p.m.d.comb += port.ready.eq(self.ready[name] & limits.get(name, 1))


def moves_wait(u: Units) -> None:
    """Check that the second place of moves is behind the first, and that its room is known."""
    spare_valid = u.inside.part("moves")("spare_valid")
    u.p.check("spare_waits", ~spare_valid | u.inside("move_full"))
    u.p.check("spare_ready", u.inside.part("moves")("ready") == ~spare_valid)


def goes_on(u: Units, stages: list[Stages], before: list[Signal]) -> None:
    """Check that bursts go on by themselves, and that who follows another one follows an older one.

    Parameters
    ----------
    before : for each slot, the older ones (`Units.program_order`).
    """
    p, cfg, inside, slots, count = u.p, u.cfg, u.inside, u.slots, u.cfg.slots
    is_mma = [walk.is_kind(InstrKind.MMA) for walk in u.walks]
    kinds = dict(
        zip(u.KINDS, (InstrKind.MMA, InstrKind.LOAD, InstrKind.STORE, InstrKind.MOVE), strict=True)
    )
    for name in u.KINDS:
        locked, requests = u.locked(name), inside(f"{name}_requests")
        if name != "mma" or cfg.has_words:
            p.check(f"{name}_open", inside(f"{name}_open") == ~locked.any())
        for n in range(count):
            # A lock is of a burst that goes on.
            kind = kind_of(slots[n]("kinds"))
            p.check(
                f"{name}_lock{n}",
                ~locked[n] | (u.valid[n] & (Value.cast(kind) == kinds[name].value)),
            )
            # Its next uop is on its way, and nothing keeps it.
            stage, walk = stages[n], u.walks[n]
            coming = requests[n] | stage.passed["check"] | (stage.empty & walk.counters.valid)
            p.check(f"{name}_lock_moves{n}", ~locked[n] | coming)
            p.check(
                f"{name}_lock_of_last{n}",
                ~(locked[n] & stage.empty) | more_of(cfg, walk.kind, walk.taken),
            )
            blocked = stage.full["check"] & ~stage.passed["check"]
            p.check(f"{name}_lock_is_free{n}", ~(locked[n] & blocked) | stage.full["offer"])
            # Of slots with uops on offer it is known who is older and wants the same.
            for q in range(count):
                rival = inside(f"older{n}")[q] & u.walks[q].is_kind(kinds[name])
                p.check(
                    f"{name}_rival{n}_{q}",
                    ~(stage.full["offer"] & stages[q].full["offer"])
                    | (inside(f"{name}_rivals{n}")[q] == rival),
                )
    # Who follows another one is a mma, and that one is older and has still to go.
    for n in range(count):
        walk, stage = u.walks[n], stages[n]
        for register in ("to_follow", "behind"):
            follows = slots[n](register)
            for number, q in enumerate(q for q in range(count) if q != n):
                there = u.valid[q] & is_mma[q] & (~u.valid[n] | before[n][q])
                p.check(f"{register}{n}_{q}", ~follows[number] | there)
        follows = slots[n]("behind")
        p.check(f"behind_in_slot{n}", (follows == 0) | (u.valid[n] & is_mma[n]))
        follows = slots[n]("to_follow")
        p.check(
            f"to_follow_of_mma{n}",
            ~(u.valid[n] & stage.full["check"]) | is_mma[n] | (follows == 0),
        )
        is_load = walk.is_kind(InstrKind.LOAD)
        p.check(f"ends_with_its_last{n}", ~u.valid[n] | walk.counters.busy | is_load | ~stage.empty)
        # What a uop promises is not blocked.
        blocked = u.valid[n] & stage.full["check"] & ~stage.passed["check"] & ~is_mma[n]
        for where, last in (
            ("spare", stage.full["spare"]),
            ("offer", stage.full["offer"] & ~stage.full["spare"]),
        ):
            promises = more_of(cfg, walk.kind, stage.at[where])
            p.check(f"promised_{where}{n}", ~(blocked & last & promises))


def order(cfg: Config, *, mac_depth: int, loop: int) -> Proof:
    """Each unit takes the oldest instruction that may go, unless a burst is under way; and the
    oldest of all is never kept waiting by anything but work in flight.

    With split counters that end (`splits`) and units that finish what they take, the second rule
    means that every accepted instruction retires. The walks are any that keep their contract.
    """
    u = Units(cfg, mac_depth=mac_depth, loop=loop, walks=True)
    p, m, dut, inside = u.p, u.p.m, u.dut, u.inside
    count = cfg.slots
    m.d.comb += [
        dut.load_retired.eq(p.any(1, "load_retired")),
        dut.load_retired_tile.eq(p.any(cfg.tile_bits, "load_retired_tile")),
    ]
    for place in range(Scoreboard.STORES - 1):
        m.d.comb += [
            getattr(dut, f"store_reading{place}").eq(p.any(1, f"store_reading{place}")),
            getattr(dut, f"store_reading_tile{place}").eq(
                p.any(cfg.tile_bits, f"store_reading_tile{place}")
            ),
        ]
    u.drive_ready()
    before = u.program_order()
    p.check("dispatched_to_free", ~u.dispatched | ((u.chosen & u.valid) == 0) & u.chosen.any())

    slots = [inside.part(f"slot{n}") for n in range(count)]
    tile = p.const(cfg.tile_bits, "tile")
    stages = [Stages(u, n, tile) for n in range(count)]
    oldest = [
        p.signal(u.valid[n] & ((before[n] & u.valid) == 0), f"oldest{n}") for n in range(count)
    ]
    for name in u.KINDS:
        locked = u.locked(name)
        requests = inside(f"{name}_requests")
        grants = u.grants[name]
        p.check(f"{name}_only_ready", (grants & ~requests) == 0)
        for n in range(count):
            older_ready = (requests & before[n] & u.valid).any()
            p.check(f"{name}_oldest{n}", ~grants[n] | ~older_ready | locked[n])
        # A burst is not broken by another slot.
        last = Signal(count, name=f"{name}_last")
        with m.If(grants.any()):
            m.d.sync += last.eq(grants)
        if name != "mma":
            more = Signal(name=f"{name}_last_more")
            with m.If(grants.any()):
                offered = [
                    more_of(cfg, u.walks[n].kind, stages[n].at["offer"]) & grants[n]
                    for n in range(count)
                ]
                m.d.sync += more.eq(Cat(offered).any())
            p.check(f"{name}_lock_is_of_burst", (last == 0) | (locked == Mux(more, last, 0)))
            p.check(
                f"{name}_burst_is_whole",
                ~grants.any() | (last == 0) | ~more | (grants == last),
            )

    goes_on(u, stages, before)

    # Nothing in flight, nothing in the issue registers: the oldest goes, once that is known.
    board = inside.part("scoreboard")
    quiet = p.signal(
        board("idle")
        & ~Cat(inside(f"{name}_full") for name in u.KINDS).any()
        & ~Cat(board(f"loads{n}") for n in range(cfg.all_tiles)).any(),
        "quiet",
    )
    was_quiet = p.past(quiet, "was_quiet")
    for n in range(count):
        stage = stages[n]
        alone = p.signal(
            quiet & was_quiet & oldest[n] & p.past(oldest[n], f"was_oldest{n}"), f"alone{n}"
        )
        offered = stage.full["offer"]
        p.check(f"oldest_may_go{n}", ~(alone & offered) | slots[n]("ready"))
        first = ~offered & (stage.checked | ~stage.full["check"])
        p.check(f"oldest_is_free{n}", ~(alone & stage.looks & first) | stage.found)
        if loop > 2:
            p.check(f"left{n}", slots[n]("left") <= still_to_land(board, mac_depth))
    # The next mma uop is announced.
    mma = u.dut.mma
    waits = p.signal(mma.valid & ~mma.ready, "mma_waits")
    told = u.dut.mma_coming
    p.check("announced_one", ((told & (told - 1)) == 0) & (~waits | (told == 0)))
    p.check("announced", mma.valid == p.past(waits | told.any(), "mma_told"))
    for n in range(count):
        offered = p.past(Value.cast(u.dut.mma_offers[n]), f"mma_offered{n}")
        came = p.past(told[n], f"mma_came{n}")
        p.check(f"announced_uop{n}", ~came | (Value.cast(mma.payload) == offered))
    p.cover("three_kinds", u.valid.all() & quiet)
    p.cover("younger_first", (u.grants["load"] & ~Cat(oldest)).any())
    p.cover("burst", inside("load_locked").any() & u.valid.all())
    p.cover("follows", Cat(slot("behind").any() & slot("offer_full") for slot in slots).any())
    return p


_SLOTS = Config(
    tiles=4, rows=4, row_bits=64, bus_bits=64, banks=2, m_par=2, n_par=1, slots=2, addr_bits=16
)
_PARAMETERS = "{} slots, 4 tiles, rows 4 x 64 bit, words of 2 rows, MAC depth {}, loop {}"

TASKS = (
    Task(
        name="scoreboard",
        about="tiles and words are claimed as long as they must be, no longer",
        parameters="4 tiles of 2 words, MAC depth 8, loop 6",
        build=lambda: scoreboard(_SLOTS, mac_depth=8, loop=6),
        depth=9,
        cover=14,
        quick=True,
    ),
    Task(
        name="scoreboard_block",
        about="the same where it tells of tiles a cycle late",
        parameters="4 tiles of 2 words in block RAM, MAC depth 8, loop 6",
        build=lambda: scoreboard(_SLOTS.replace(tile_memory="block"), mac_depth=8, loop=6),
        depth=10,
        cover=15,
        quick=True,
    ),
    Task(
        name="counters",
        about="the split counters of a slot keep the contract of walks",
        parameters="4 tiles, rows 4 x 64 bit, words of 2 rows; instructions of two tiles",
        build=lambda: counters(_SLOTS),
        mode="bmc",
        depth=18,
        cover=20,
        timeout=1500,
    ),
    Task(
        name="age_order",
        about="oldest first; the oldest waits for work in flight alone; any walks",
        parameters=_PARAMETERS.format(3, 4, 3),
        build=lambda: order(_SLOTS.replace(slots=3), mac_depth=4, loop=3),
        depth=2,
        cover=12,
    ),
)
MUTANTS = (
    *mutants(
        "hdl/issue/scoreboard.py",
        "scoreboard",
        (
            "a result lands a cycle too soon",
            "max(0, self.mac_depth - self.latency(cfg) - 1)",
            "max(0, self.mac_depth - self.latency(cfg) - 2)",
        ),
        (
            "idle before the last result has landed",
            "to_land.eq(self.mac_depth - 2)",
            "to_land.eq(self.mac_depth - 3)",
        ),
        (
            "a load in the issue register does not claim its tile",
            "loading | _one_hot(self.load_waiting, self.load_tile, tiles)",
            "loading",
        ),
        ("a load that lands is not counted", "with m.Elif(down & ~up):", "with m.Elif(0):"),
        (
            "a move is told of a cycle too short",
            "ages = range(1, self.MOVE_STAGES + 1)",
            "ages = range(1, self.MOVE_STAGES)",
        ),
        ("a result never lands", "timer.eq(timer - 1)", "timer.eq(timer)"),
        (
            "a load that leaves as another lands counts twice",
            "with m.If(up & ~down):",
            "with m.If(up):",
        ),
        (
            "a row to be stored does not claim its tile",
            "                for stage in range(self.STORES)\n",
            "                for stage in range(self.STORES - 1)\n",
        ),
        (
            "the list of words is too short",
            "range(1, self.loop - self.WORD_LATENCY)",
            "range(1, self.loop - self.WORD_LATENCY - 1)",
        ),
        (
            "the uop that waits is not on the list of words",
            "stages.append((mac_c_waiting, self.mac_c))",
            "stages.append((mac_c_gone, self.mac_c))",
        ),
    ),
    *mutants(
        "hdl/issue/slots.py",
        "age_order",
        ("who comes after a slot was taken anew is older", "age.eq(age & ~chosen)", "age.eq(age)"),
        (
            "the lowest slot goes first",
            "requests[index] & ~(offering & rival).any()",
            "requests[index] & ~requests[:index].any()",
        ),
        ("another slot breaks a burst", "open_.eq(~next_uop.more)", "open_.eq(1)"),
        (
            "dispatch into a full slot",
            "self.instrs.ready.eq(free.any())",
            "self.instrs.ready.eq(1)",
        ),
        (
            "the oldest waits for readers behind it",
            "Mux(claims[q], slots[q].reads, 0) for q in others",
            "slots[q].reads for q in others",
        ),
    ),
    *mutants(
        "hdl/issue/slot.py",
        "age_order",
        (
            "a slot follows one that has left",
            "of_next.follows) & self.older_mma",
            "of_next.follows)",
        ),
        (
            "the first uop of a burst alone has won",
            "with m.If(passes):\n            m.d.sync += granted",
            "with m.If(passes & ~offer_full):\n            m.d.sync += granted",
        ),
        (
            "a word is waited for while nothing is in flight",
            "return uop.new_c & missed.any()",
            "return uop.new_c & (valid | missed.any())",
        ),
    ),
)
