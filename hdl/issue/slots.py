"""The slots: dispatch, age order, dependency checks and one uop per unit per cycle."""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ..activity import MAC_STATES
from ..config import Config
from ..interfaces import InstrKind, instr, ldst_uop, mma_uop, move_uop
from ..l2.buffer import StreamBuffer
from .scoreboard import Scoreboard
from .slot import CHECKED, Slot, mma_waits

__all__ = ["Slots"]


def _or_all(masks):
    total = masks[0]
    for mask in masks[1:]:
        total = total | mask
    return total


class Slots(wiring.Component):
    """Instructions in flight and the micro-ops they offer.

    Each unit takes the oldest ready uop, at most one a cycle, the units in parallel. The uop
    passes an issue register, so every output stream is registered. A burst of a load or store,
    or a move that needs the move unit's buffer, is never broken by another slot.

    Parameters
    ----------
    mac_depth, loop : see `Scoreboard`.
    activity : also say what MAC issue does.

    Members
    -------
    instrs : checked instructions, in program order; taken while a slot is free.
    mma, load, store, move : uops to the units. A transfer on `mma` is the operand read.
    mma_offers, mma_coming : what each slot has for `mma`; whose stands at that port in the next
        cycle, one-hot, or of nobody: then none does, or the one that was there. Known late.
    skip, skipped : hold back the next mma uop, so that a starving request finds a gap; done.
    load_retired, load_retired_tile : a load uop's write is done.
    store_reading{0,1}, store_reading_tile{0,1} : the store pipe has a row still to read.
    idle : no instruction waits and nothing is in flight on the tile file, loads apart.
    mac_state : with `activity`, one-hot in the order of `MAC_STATES`.

    Latency: an instruction's first uop leaves its issue register five cycles after dispatch: the
    split counters make it, it is buffered, checked, offered, issued. Who waits for a tile goes
    five cycles after what it waits for (six, where the scoreboard tells late), but a mma that adds
    to the results of another follows without a gap.
    Source: seed 001 section 4.2; architecture.md section 1.
    """

    LATENCY = 5
    """Cycles from an instruction's dispatch to the transfer of its first uop."""

    def __init__(self, cfg: Config, *, mac_depth: int, loop: int, activity: bool = False):
        self.cfg = cfg
        self.activity = activity
        self.mac_depth = mac_depth
        self.loop = loop
        tile = cfg.tile_bits
        members = {
            "instrs": In(stream.Signature(instr(cfg))),
            "mma": Out(stream.Signature(mma_uop(cfg))),
            "mma_offers": Out(data.ArrayLayout(mma_uop(cfg), cfg.slots)),
            "mma_coming": Out(cfg.slots),
            "load": Out(stream.Signature(ldst_uop(cfg))),
            "store": Out(stream.Signature(ldst_uop(cfg))),
            "move": Out(stream.Signature(move_uop(cfg))),
            "skip": In(1),
            "skipped": Out(1),
            "load_retired": In(1),
            "load_retired_tile": In(tile),
            "idle": Out(1),
        }
        for place in range(Scoreboard.STORES - 1):
            members[f"store_reading{place}"] = In(1)
            members[f"store_reading_tile{place}"] = In(tile)
        if activity:
            members["mac_state"] = Out(len(MAC_STATES))
        super().__init__(members)

    def elaborate(self, platform):
        m = Module()
        cfg = self.cfg
        count = cfg.slots
        slots = [Slot(cfg, loop=self.loop) for _ in range(count)]
        for index, slot in enumerate(slots):
            m.submodules[f"slot{index}"] = slot
        m.submodules.scoreboard = board = Scoreboard(
            cfg, mac_depth=self.mac_depth, loop=self.loop, words=CHECKED * count
        )
        valid = Cat(slot.valid for slot in slots)

        # -- dispatch into the lowest free slot; age vectors ---------------------------------
        free = Signal(count)
        chosen = Signal(count)
        m.d.comb += [
            free.eq(~valid),
            chosen.eq(free & ~(free - 1)),
            self.instrs.ready.eq(free.any()),
        ]
        older = []  # older[s][q]: slot q holds an older instruction than slot s
        for index, slot in enumerate(slots):
            start = self.instrs.valid & chosen[index]
            age = Signal(count, name=f"older{index}")
            older.append(age)
            with m.If(start):
                m.d.sync += age.eq(valid)
            with m.Elif(self.instrs.valid & free.any()):
                m.d.sync += age.eq(age & ~chosen)
            m.d.comb += [slot.start.eq(start), slot.instr.eq(self.instrs.payload)]

        # -- one issue register a unit, filled by the oldest ready slot ----------------------
        def pick(name, kind, port, layout, payload_of, *, hold=0, burst=False, places=None):
            wanting = Signal(count, name=f"{name}_wanting")
            offering = Signal(count, name=f"{name}_offering")
            requests = Signal(count, name=f"{name}_requests")
            chosen = Signal(count, name=f"{name}_chosen")
            grants = Signal(count, name=f"{name}_grants")
            locked = Signal(count, name=f"{name}_locked")  # in a burst, whose; `open` out of any
            open_ = Signal(name=f"{name}_open", init=1)
            for index, slot in enumerate(slots):
                turn = open_ | locked[index]
                m.d.comb += [
                    wanting[index].eq(slot.kinds[kind.value]),
                    offering[index].eq(slot.ready & turn),
                ]
            # Who is older and wants the same stands long before there is a uop of either.
            rivals = []
            for index, age in enumerate(older):
                rival = Signal(count, name=f"{name}_rivals{index}", reset_less=True)
                m.d.sync += rival.eq(age & wanting)
                rivals.append(rival)
            m.d.comb += [
                requests.eq(wanting & offering),
                chosen.eq(
                    Cat(
                        requests[index] & ~(offering & rival).any()
                        for index, rival in enumerate(rivals)
                    )
                ),
            ]
            full = Signal(name=f"{name}_full")
            uop = Signal(layout, name=f"{name}_uop", reset_less=places is None)
            space = Signal(name=f"{name}_space")
            m.d.comb += [
                grants.eq(Mux(space & ~hold, chosen, 0)),
                port.valid.eq(full),
                port.payload.eq(uop),
            ]
            next_uop = Signal(layout, name=f"{name}_next")
            m.d.comb += next_uop.eq(
                _or_all(
                    [
                        Mux(chosen[index], payload_of(slot).as_value(), 0)
                        for index, slot in enumerate(slots)
                    ]
                )
            )
            if places is None:
                m.d.comb += space.eq(~full | port.ready)
                with m.If(space):
                    m.d.sync += [full.eq(grants.any()), uop.eq(next_uop)]
            else:
                m.d.comb += [
                    space.eq(places.i.ready),
                    places.i.valid.eq(grants.any()),
                    places.i.payload.eq(next_uop),
                    places.o.ready.eq(port.ready),
                    full.eq(places.o.valid),
                    uop.eq(places.o.payload),
                ]
            if burst:
                with m.If(grants.any()):
                    m.d.sync += [
                        locked.eq(Mux(next_uop.more, grants, 0)),
                        open_.eq(~next_uop.more),
                    ]
            return grants, full, uop, locked

        mma_grants, mma_full, mma_next, mma_locked = pick(
            "mma",
            InstrKind.MMA,
            self.mma,
            mma_uop(cfg),
            lambda s: s.mma,
            hold=self.skip,
            burst=cfg.has_words,
        )
        load_grants, load_full, load_uop, _ = pick(
            "load", InstrKind.LOAD, self.load, ldst_uop(cfg), lambda s: s.ldst, burst=True
        )
        store_grants, store_full, store_uop, _ = pick(
            "store", InstrKind.STORE, self.store, ldst_uop(cfg), lambda s: s.ldst, burst=True
        )
        # Whether a move is read is known late, so it has a second place to wait in.
        m.submodules.moves = moves = StreamBuffer(move_uop(cfg))
        move_grants, move_full, move_next, _ = pick(
            "move",
            InstrKind.MOVE,
            self.move,
            move_uop(cfg),
            lambda s: s.move,
            burst=True,
            places=moves,
        )
        m.d.comb += [
            self.mma_coming.eq(mma_grants),
            *(self.mma_offers[index].eq(slot.mma) for index, slot in enumerate(slots)),
        ]
        mac_go = mma_full & self.mma.ready
        last_mma = Signal(count)
        with m.If(mma_grants.any()):
            m.d.sync += last_mma.eq(mma_grants)
        m.d.comb += self.skipped.eq(self.skip & (~mma_full | self.mma.ready))
        for index, slot in enumerate(slots):
            m.d.comb += [
                slot.step.eq(
                    mma_grants[index]
                    | load_grants[index]
                    | store_grants[index]
                    | move_grants[index]
                ),
                slot.continuing.eq(last_mma[index]),
                slot.went.eq(mac_go & last_mma[index]),
            ]

        # -- claims of older slots and what is in flight -------------------------------------
        # Claims only shrink, so those of the cycle before say at most too much, and whoever is kept
        # back by that looks again.
        claimed = []
        for index, slot in enumerate(slots):
            before = Signal(cfg.all_tiles, name=f"claimed{index}", reset_less=True)
            m.d.sync += before.eq(slot.writes)
            claimed.append(before)
        for index, slot in enumerate(slots):
            others = [q for q in range(count) if q != index]
            before = {q: older[index][q] & slots[q].valid for q in others}
            claims = {q: older[index][q] & slots[q].holds for q in others}
            mma = {q: slots[q].kinds[InstrKind.MMA.value] for q in others}
            writes = Signal(cfg.all_tiles, name=f"older_writes{index}")
            blocks = Signal(cfg.all_tiles, name=f"older_blocks{index}")
            reads = Signal(cfg.all_tiles, name=f"older_reads{index}")
            if others:
                # Results of older mma are the word list's business, not a reason to wait.
                waits = {q: claims[q] & ~(slot.adds & mma[q]) for q in others}
                m.d.comb += [
                    writes.eq(_or_all([Mux(claims[q], slots[q].writes, 0) for q in others])),
                    blocks.eq(_or_all([Mux(waits[q], slots[q].writes, 0) for q in others])),
                    reads.eq(_or_all([Mux(claims[q], slots[q].reads, 0) for q in others])),
                ]
            m.d.comb += [
                slot.block_read.eq(board.writing | board.accumulating | writes),
                slot.block_write.eq(
                    board.writing
                    | board.reading
                    | blocks
                    | reads
                    | Mux(slot.kinds[InstrKind.MMA.value], 0, board.accumulating)
                ),
                *(
                    board.word[CHECKED * index + number].eq(slot.word[number])
                    for number in range(CHECKED)
                ),
                slot.word_busy.eq(board.word_busy.word_select(index, CHECKED)),
                slot.replaced.eq(Cat(mma_grants[q] for q in others).any()),
            ]
            was_older = Signal(max(1, len(others)), name=f"was_older{index}")
            m.d.sync += was_older.eq(Cat(before[q] & mma[q] for q in others))
            for number, q in enumerate(others):
                m.d.comb += [
                    slot.results[number].eq(claimed[q]),
                    slot.older_mma[number].eq(before[q] & mma[q]),
                    slot.was_older[number].eq(was_older[number]),
                    slot.turns[number].eq(before[q] & slots[q].transposes),
                    slot.ending[number].eq(slots[q].ends),
                    slot.leaves[number].eq(mma_grants[q] & slots[q].last),
                    *(
                        slot.meets[which][number].eq(
                            slots[q].recent.bit_select(slot.word[which].block, 1)
                        )
                        for which in range(CHECKED)
                    ),
                ]

        # -- tell the scoreboard what left -----------------------------------------------------
        m.d.comb += [
            board.mac_waiting.eq(mma_full),
            board.mac_writes.eq(~mma_next.transposes if cfg.transposes else 1),
            board.mac_a.eq(mma_next.a.tile),
            board.mac_b.eq(mma_next.b_tile),
            board.mac_c.eq(mma_next.c),
            board.mac_go.eq(mac_go),
            board.load_waiting.eq(load_full),
            board.load_tile.eq(load_uop.tile),
            board.load_go.eq(load_full & self.load.ready),
            board.load_retired.eq(self.load_retired),
            board.load_retired_tile.eq(self.load_retired_tile),
            board.store_waiting0.eq(store_full),
            board.store_tile0.eq(store_uop.tile),
            board.move_go.eq(move_full & self.move.ready),
            self.idle.eq(~valid.any() & board.idle),
        ]
        for place in range(Scoreboard.STORES - 1):
            m.d.comb += [
                getattr(board, f"store_waiting{place + 1}").eq(
                    getattr(self, f"store_reading{place}")
                ),
                getattr(board, f"store_tile{place + 1}").eq(
                    getattr(self, f"store_reading_tile{place}")
                ),
            ]
        for place, (waits, uop) in enumerate(
            [(move_full, move_next), (moves.spare_valid, moves.spare)]
        ):
            m.d.comb += [
                getattr(board, f"move_reading{place}").eq(waits & uop.read),
                getattr(board, f"move_read_tile{place}").eq(uop.src.tile),
                getattr(board, f"move_writing{place}").eq(waits & uop.write),
                getattr(board, f"move_write_tile{place}").eq(uop.dst.tile),
            ]
        if self.activity:
            m.d.comb += self.mac_state.eq(
                self._mac_state(
                    m,
                    slots,
                    older,
                    locked=mma_locked,
                    issued=mma_grants.any(),
                    transposes=Cat(
                        mma_grants[q] & slots[q].mma.transposes if cfg.transposes else Const(0)
                        for q in range(count)
                    ).any(),
                    blocked=mma_full & ~self.mma.ready,
                    free=free.any(),
                )
            )
        return m

    def _mac_state(self, m, slots, older, *, locked, issued, transposes, blocked, free):
        """One-hot, in the order of `MAC_STATES`: what MAC issue does in this cycle."""
        is_mma = Signal(len(slots))
        oldest = Signal(len(slots))
        waits = Signal(mma_waits(), name="mma_waits")
        m.d.comb += [
            is_mma.eq(Cat(slot.valid & slot.kinds[InstrKind.MMA.value] for slot in slots)),
            # A burst that was begun goes before anything older.
            oldest.eq(
                Mux(
                    locked.any(),
                    locked,
                    Cat(
                        mine & ~(is_mma & age).any()
                        for mine, age in zip(is_mma, older, strict=True)
                    ),
                )
            ),
            waits.eq(
                _or_all(
                    [
                        Mux(oldest[index], slot.waits.as_value(), 0)
                        for index, slot in enumerate(slots)
                    ]
                )
            ),
        ]
        holds = {
            "mac_uop": issued & ~transposes,
            "mac_transpose": issued,
            "mac_bank": blocked,
            "mac_operands": waits.operands,
            "mac_c_tile": waits.c_tile,
            "mac_c_word": waits.c_word,
            "mac_skip": self.skip & is_mma.any(),
            "mac_start": is_mma.any(),
            "mac_slots": ~free,
            "mac_instruction": 1,
        }
        states = Signal(len(MAC_STATES))
        m.d.comb += states.eq(Cat(holds[name] for name in MAC_STATES))
        return states & ~(states - 1)  # the first that holds
