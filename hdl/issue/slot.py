"""One instruction slot: claims on tiles, the uop that waits for them, and the one on offer."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ..config import Config
from ..interfaces import InstrKind, instr, ldst_uop, mma_uop, move_uop, slot_uop, tile_word
from .counters import SplitCounters, by_words
from .scoreboard import Scoreboard

__all__ = ["CHECKED", "Slot", "mma_waits"]

CHECKED = 2
"""Uops of a slot that are looked at in a cycle, of which one is checked."""


def mma_waits() -> data.StructLayout:
    """Why a mma uop may not issue.

    `operands`: A or B is not there, or an older instruction uses the transposes. `c_tile`: C's
    tile belongs to something else. `c_word`: a result for the word of C is in flight.
    """
    return data.StructLayout({"operands": 1, "c_tile": 1, "c_word": 1})


class Slot(wiring.Component):
    """Holds one instruction until its last uop is issued.

    A tile named by the instruction is *free* for others before dispatch, *claimed* while its bit
    in `reads` or `writes` is set, and *done* as soon as the last uop that needs it was issued;
    what is still in flight then is the scoreboard's business.

    A uop is checked, then offered. The check waits until nothing older needs its tiles. Nothing
    older comes later, so what was found free stays free: the tiles that are blocked may be known
    a cycle late, and a uop on offer may issue in any cycle. Only results are added to in close
    succession: the first uop that adds to those of an older mma is offered as soon as the last one
    of that mma is, and goes after it.

    Parameters
    ----------
    loop : W, see `Scoreboard`.

    Members
    -------
    start, instr : take an instruction (only while not `valid`).
    valid : occupied.
    holds : its claims hold: while it is occupied, and where the scoreboard tells late, until that
        knows of the last uop.
    kinds : one-hot, the unit that its uops want; by `InstrKind`.
    adds : it is a mma that claims its results tile by tile.
    ready : the uop on offer may issue now.
    offers : there is a uop on offer: `mma`, `ldst` or `move`.
    step : it issues in this cycle.
    ends, last : the instruction's last uop is on offer or will be in the next cycle; is on offer.
    reads, writes : claims left, while it `holds` them.
    block_read, block_write : tiles that this slot must not yet read; write. Only the check of the
        next cycle knows them.
    results, older_mma, was_older, turns : for each other slot: what it claimed to write in the
        cycle before; it is an older mma, to whose results this one may add (`block_write` leaves
        them out if `adds`), and was in the cycle before; and it uses the transposes.
    ending, leaves : for each other slot, its last uop is on offer or will be in the next cycle; it
        issues in this cycle.
    word : C's words of the uops that may be checked: the one that waits for it, and the next.
        `word_busy` : it would miss a result in flight; `meets` : or, if it is for the same tile,
        one of each other slot that is ending.
    recent : row blocks that the uops in the check and on offer add to.
    continuing : this slot issued the last mma uop, so held A and C words are its own; `replaced` :
        another slot issues one in this cycle.
    went : a mma uop of this slot reads its operands in this cycle.
    transposes : this slot uses the transposes.

    Latency: the first uop is on offer four cycles after `start`. Throughput: one uop a cycle.

    Attributes
    ----------
    waits : what keeps the next mma uop from issuing (`mma_waits`), beside the ports for those who
        watch the core.
    """

    def __init__(self, cfg: Config, *, loop: int):
        self.cfg = cfg
        self.loop = loop
        self.waits = Signal(mma_waits())
        others = max(1, cfg.slots - 1)  # of a single slot: none, and that never does anything
        super().__init__(
            {
                "start": In(1),
                "instr": In(instr(cfg)),
                "valid": Out(1),
                "holds": Out(1),
                "kinds": Out(len(InstrKind)),
                "adds": Out(1),
                "ready": Out(1),
                "offers": Out(1),
                "mma": Out(mma_uop(cfg)),
                "ldst": Out(ldst_uop(cfg)),
                "move": Out(move_uop(cfg)),
                "step": In(1),
                "ends": Out(1),
                "last": Out(1),
                "reads": Out(cfg.all_tiles),
                "writes": Out(cfg.all_tiles),
                "block_read": In(cfg.all_tiles),
                "block_write": In(cfg.all_tiles),
                "results": In(data.ArrayLayout(cfg.all_tiles, others)),
                "older_mma": In(others),
                "was_older": In(others),
                "turns": In(others),
                "ending": In(others),
                "leaves": In(others),
                "word": Out(data.ArrayLayout(tile_word(cfg), CHECKED)),
                "word_busy": In(CHECKED),
                "meets": In(data.ArrayLayout(others, CHECKED)),
                "recent": Out(cfg.blocks),
                "replaced": In(1),
                "continuing": In(1),
                "went": In(1),
                "transposes": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        cfg = self.cfg
        m.submodules.counters = counters = SplitCounters(cfg)

        valid = Signal()
        kinds = Signal(len(InstrKind), reset_less=True)
        is_mma = kinds[InstrKind.MMA.value]
        adds = Signal(reset_less=True)
        transposes = Signal(reset_less=True)
        reads = Signal(cfg.all_tiles, reset_less=True)
        writes = Signal(cfg.all_tiles, reset_less=True)
        block_read = Signal(cfg.all_tiles, reset_less=True)
        block_write = Signal(cfg.all_tiles, reset_less=True)
        granted = Signal()  # the claim on the current tile (of a whole: on all) was won
        check_full = Signal()
        check = Signal(slot_uop(cfg), reset_less=True)
        # The uop on offer and the one behind it, in two places in turn, so that neither has to move
        # when one issues: that is known late in the cycle, and uops are wide.
        places = [
            Signal(slot_uop(cfg), name=f"place{index}", reset_less=True) for index in range(2)
        ]
        turn = Signal()  # the place of the uop on offer, or of the next one
        offer_full = Signal()
        offer = Signal(slot_uop(cfg))
        spare_full = Signal()  # only while the uop before it is on offer
        spare = Signal(slot_uop(cfg))
        free_place = Signal()
        held_c = Signal(reset_less=True)  # `offer.held_c`, needed first

        # -- from the split counters to the check, and on --------------------------------------
        clear = Signal()  # nothing older needs the tiles of the uop that is checked
        passes = Signal()  # from the check to the offer
        stays = Signal()  # in the check
        takes = Signal()  # from the split counters to the check
        m.d.comb += [
            counters.start.eq(self.start),
            counters.instr.eq(self.instr),
            counters.step.eq(takes),
            passes.eq(check_full & clear & ~spare_full),
            stays.eq(check_full & ~(clear & ~spare_full)),
            takes.eq(counters.valid & ~stays),
        ]
        m.d.sync += check_full.eq(stays | counters.valid)
        with m.If(~stays):
            m.d.sync += check.eq(counters.uop)
        m.d.comb += [
            offer.eq(Mux(turn, places[1], places[0])),
            spare.eq(Mux(turn, places[0], places[1])),
            free_place.eq(turn ^ offer_full),  # unless both are taken
        ]
        for index, place in enumerate(places):
            with m.If(~spare_full & (free_place == index)):
                m.d.sync += place.eq(check)
        with m.If(self.step | ~offer_full):
            m.d.sync += [
                turn.eq(turn ^ offer_full),
                offer_full.eq(passes | spare_full),
                spare_full.eq(0),
                held_c.eq(Mux(spare_full, spare.held_c, check.held_c)),
            ]
        with m.Elif(passes):
            m.d.sync += spare_full.eq(1)

        # -- the check ---------------------------------------------------------------------------
        # Whether the uop stays there or the next one comes is known late. Both are looked at, and
        # the next cycle chooses from what was found.
        finding = data.StructLayout({"tiles": 1, "words": 1, "follows": len(self.ending)})
        of_check = Signal(finding, reset_less=True)
        of_next = Signal(finding, reset_less=True)
        stayed = Signal()
        to_follow = Signal.like(self.ending)  # whose last uop must go before the one checked
        m.d.comb += [
            clear.eq(Mux(stayed, of_check.tiles & of_check.words, of_next.tiles & of_next.words)),
            to_follow.eq(Mux(stayed, of_check.follows, of_next.follows) & self.older_mma),
        ]
        m.d.sync += [
            stayed.eq(stays),
            block_read.eq(self.block_read),
            block_write.eq(self.block_write),
        ]

        def has(tiles, tile):
            return tiles.bit_select(tile, 1)

        others = range(len(self.ending))
        # Of a whole, whose claims stay until its end, known together with what is blocked: whether
        # any tile is, by eighths of them all.
        size = -(-cfg.all_tiles // 8)

        def eighths(tiles):
            return Cat(tiles[n : n + size].any() for n in range(0, cfg.all_tiles, size))

        reads_any = Signal(8, reset_less=True)
        writes_any = Signal(8, reset_less=True)
        m.d.sync += [
            reads_any.eq(eighths(reads & self.block_read)),
            writes_any.eq(eighths(writes & self.block_write)),
        ]

        def blocked(uop):
            """Whether its operands are; whether its target is."""
            return Cat(
                Mux(
                    uop.whole,
                    reads_any.any(),
                    (uop.reads0 & has(block_read, uop.read0))
                    | (uop.reads1 & has(block_read, uop.read1)),
                ),
                Mux(uop.whole, writes_any.any(), uop.writes & has(block_write, uop.write)),
            )

        def adds_to_of(uop):
            """The older mma to whose results it adds, or added up to now."""
            return Cat(adds & self.was_older[q] & has(self.results[q], uop.write) for q in others)

        def word_waits(uop, number):
            """A result for its word of C is on the way."""
            ours = [
                (spare_full | (offer_full & (turn == index))) & self._adds_to(place, number)
                for index, place in enumerate(places)
            ]
            if number == 1:
                ours.append(check_full & self._adds_to(check, number))
            missed = Cat(
                self.word_busy[number], (adds_to_of(uop) & self.meets[number]).any(), *ours
            )
            return uop.new_c & missed.any()

        def look(uop, number, won, name):
            """Why it may not issue, and which older mma it follows."""
            why = Signal(mma_waits(), name=f"{name}_why")
            follows = Signal.like(self.ending, name=f"{name}_follows")
            operands, target = blocked(uop)
            turns = Mux(self.transposes, self.turns, 0)
            m.d.comb += [
                self.word[number].eq(self._mma(uop).c),
                follows.eq((adds_to_of(uop) & self.older_mma) | turns),
                why.operands.eq(operands & ~won),
                why.c_tile.eq((target & ~won) | (follows & ~self.ending).any()),
                why.c_word.eq(word_waits(uop, number)),
            ]
            return why, follows

        # A mma's results go to one tile after another, each in its turn.
        frees = check.free0 | check.free_write
        won = granted & ~adds
        next_won = Mux(check_full, ~frees, granted) & ~adds
        why_check, check_follows = look(check, 0, won, "check")
        why_next, next_follows = look(counters.uncut, 1, next_won, "next")
        # What was found to be clear stays so.
        m.d.sync += [
            of_check.tiles.eq(clear | ~(why_check.operands | why_check.c_tile)),
            of_check.words.eq(clear | ~why_check.c_word),
            of_check.follows.eq(Mux(clear, to_follow, check_follows)),
            of_next.tiles.eq(~(why_next.operands | why_next.c_tile)),
            of_next.words.eq(~why_next.c_word),
            of_next.follows.eq(next_follows),
        ]
        with m.If(passes):
            m.d.sync += granted.eq(~frees)

        # -- the offer -----------------------------------------------------------------------------
        behind = Signal.like(self.ending)  # for each other slot, its last uop must go first
        behind_next = Signal.like(behind)
        is_behind = Signal()
        m.d.comb += behind_next.eq((behind | Mux(passes, to_follow, 0)) & ~self.leaves)
        m.d.sync += [behind.eq(behind_next), is_behind.eq(behind_next.any())]

        # A word that was held is read anew once another slot's uop came between, and not before
        # this slot's own result is in it.
        missed = Signal()
        if self.loop > 2:
            left = Signal(range(self.loop - 1))  # cycles until that
            with m.If(self.went):
                m.d.sync += left.eq(self.loop - 2)
            with m.Elif(left != 0):
                m.d.sync += left.eq(left - 1)
            replaced = self.replaced | (~self.continuing & ~self.step)
            m.d.sync += missed.eq(replaced & (self.went | (left > 1)))

        m.d.comb += [
            self.ready.eq(offer_full & ~(held_c & missed) & ~is_behind),
            self.offers.eq(offer_full),
            self.last.eq(valid & ~counters.busy & ~check_full & offer_full & ~spare_full),
            self.ends.eq(valid & ~counters.busy & ~spare_full & ~stays),
            self.recent.eq(
                Mux(offer_full, 1 << self._mma(offer).c.block, 0)
                | Mux(check_full, 1 << self._mma(check).c.block, 0)
            ),
            self.mma.eq(offer.uop),
            self.ldst.eq(offer.uop),
            self.move.eq(offer.uop),
            self.mma.new_a.eq(self._mma(offer).new_a | ~self.continuing),
            self.mma.new_c.eq(offer.new_c | (held_c & ~self.continuing)),
        ]

        # -- the instruction -----------------------------------------------------------------------
        was_issued = Signal()
        if Scoreboard.tells_late(cfg):
            # A register of its own, as much hangs on it: it is `valid | was_issued`.
            holds = Signal()
            m.d.sync += holds.eq(Mux(valid, offer_full | check_full | counters.busy, self.start))
        else:
            holds = valid
        m.d.comb += [
            self.valid.eq(valid),
            self.holds.eq(holds),
            self.kinds.eq(kinds),
            self.adds.eq(adds),
            self.reads.eq(reads),
            self.writes.eq(writes),
        ]

        # Claims are given up a cycle later, so that the choice among slots ends in few registers.
        issued = Signal(slot_uop(cfg), reset_less=True)
        m.d.sync += [was_issued.eq(self.step), issued.eq(offer)]

        def drop(claims, free, tile):
            with m.If(was_issued & free):
                m.d.sync += claims.bit_select(tile, 1).eq(0)

        drop(reads, issued.free0, issued.read0)
        drop(reads, issued.free1, issued.read1)
        drop(writes, issued.free_write, issued.write)
        # The walk of a load may end with idle cycles, after its last uop.
        with m.If(Mux(offer_full, self.last & self.step, ~counters.busy & ~check_full)):
            m.d.sync += valid.eq(0)
        if cfg.transposes:
            m.d.comb += self.transposes.eq(valid & transposes)
            with m.If(~valid):
                m.d.sync += transposes.eq(
                    (self.instr.kind == InstrKind.MMA)
                    & (self.instr.mma.a_transposed | self.instr.mma.b_transposed)
                )
        with m.If(self.start):
            m.d.sync += [valid.eq(1), granted.eq(0)]
        # What is held beside that is taken while the slot is free, whether or not one comes.
        with m.If(~valid):
            m.d.sync += [
                kinds.eq(1 << Value.cast(self.instr.kind)),
                adds.eq((self.instr.kind == InstrKind.MMA) & ~by_words(self.instr.mma.op, cfg)),
                reads.eq(self.instr.reads),
                writes.eq(self.instr.writes),
            ]

        # -- for those who watch -------------------------------------------------------------------
        # A uop that was blocked is told to wait for that until it issues.
        again = check_full & ~clear
        uop = Signal(slot_uop(cfg))
        why = Signal.like(self.waits)
        free = Signal()
        told = Signal.like(self.waits)
        m.d.comb += [
            uop.eq(Mux(again, check, counters.uncut)),
            why.eq(Mux(again, why_check, why_next)),
            free.eq(~why.as_value().any()),
            self.waits.eq(Mux(is_mma & ~offer_full & again & ~free, why, told)),
        ]
        with m.If(self.step):
            m.d.sync += told.eq(0)
        with m.If(is_mma & (again | takes) & ~free):
            m.d.sync += told.eq(why)
        with m.If(offer_full & held_c & missed):
            m.d.comb += self.waits.c_word.eq(1)
        return m

    def _mma(self, uop):
        """A uop of a slot as one of a mma."""
        layout = mma_uop(self.cfg)
        return layout(uop.uop[: layout.size])

    def _adds_to(self, uop, number):
        """The mma uop's result is for word `number` of C."""
        found = self._mma(uop)
        computes = ~found.transposes if self.cfg.transposes else 1
        return computes & (found.c.as_value() == self.word[number].as_value())
