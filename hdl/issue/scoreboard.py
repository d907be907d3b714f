"""What is in flight behind the slots, by tile, and by stored word for accumulators."""

from __future__ import annotations

from itertools import pairwise

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ..config import Config
from ..interfaces import tile_word
from ..registers import copies

__all__ = ["Scoreboard"]


def _one_hot(valid, tile, tiles):
    return (valid << tile)[:tiles]


class Scoreboard(wiring.Component):
    """Keeps a tile claimed between the issue of its last uop and the end of its effect.

    Parameters
    ----------
    mac_depth : cycles from a mma uop's operand read to its tile-file write.
    loop : W, cycles from a C read until a read sees its result.
    words : accumulator words compared at once.

    Members
    -------
    mac_waiting, mac_a, mac_b, mac_c : the mma uop in the issue register, not yet read.
    mac_writes : it writes C, so it does more than transpose.
    mac_go : it reads its operands in this cycle.
    load_waiting, load_tile : the load uop in the issue register; `load_go` : it leaves it.
    load_retired, load_retired_tile : its write was done.
    store_waiting{0..2}, store_tile{0..2} : store uops whose row was not read yet.
    move_reading{0,1}, move_read_tile{0,1} : move uops not yet read.
    move_writing{0,1}, move_write_tile{0,1} : likewise, that write.
    move_go : the first of these is read in this cycle.
    word, word_busy : C words; checked now, it would miss a result in flight.
    writing : tiles that something in flight will write, mma results apart. This and the next two
        come a cycle later where `tells_late`.
    accumulating : tiles that mma results in flight will write.
    reading : tiles that something issued has still to read.
    idle : nothing is in flight but loads, of which the load pipe knows.

    Source: architecture.md section 1, scoreboard; seed 001 section 4.2.2.
    """

    STORES = 3
    MOVES = 2
    """Move uops that wait for their read."""
    MOVE_STAGES = 3
    """Cycles from that on in which one is told of."""
    WORD_LATENCY = 3
    """Likewise of words."""

    @staticmethod
    def latency(cfg: Config) -> int:
        """Cycles from when a tile is seen to be in flight to the first uop due to that."""
        return 5 if Scoreboard.tells_late(cfg) else 4

    @staticmethod
    def tells_late(cfg: Config) -> bool:
        """Where tiles lie in block RAM, what it says of them takes a register.

        Slots give up a claim a cycle after they issued a uop, so nothing is missed in between.
        """
        return cfg.tile_memory == "block"

    def __init__(self, cfg: Config, *, mac_depth: int, loop: int, words: int):
        self.cfg = cfg
        self.mac_depth = mac_depth
        self.loop = loop
        self.words = words
        tile = cfg.tile_bits
        members = {
            "mac_waiting": In(1),
            "mac_a": In(tile),
            "mac_b": In(tile),
            "mac_c": In(tile_word(cfg)),
            "mac_writes": In(1),
            "mac_go": In(1),
            "load_waiting": In(1),
            "load_tile": In(tile),
            "load_go": In(1),
            "load_retired": In(1),
            "load_retired_tile": In(tile),
            "move_go": In(1),
            "word": In(data.ArrayLayout(tile_word(cfg), words)),
            "word_busy": Out(words),
            "writing": Out(cfg.all_tiles),
            "accumulating": Out(cfg.all_tiles),
            "reading": Out(cfg.all_tiles),
            "idle": Out(1),
        }
        for stage in range(self.STORES):
            members[f"store_waiting{stage}"] = In(1)
            members[f"store_tile{stage}"] = In(tile)
        for place in range(self.MOVES):
            members[f"move_reading{place}"] = In(1)
            members[f"move_read_tile{place}"] = In(tile)
            members[f"move_writing{place}"] = In(1)
            members[f"move_write_tile{place}"] = In(tile)
        super().__init__(members)

    def elaborate(self, platform):
        m = Module()
        cfg = self.cfg
        tiles = cfg.all_tiles

        # A mma result lands a fixed time after its operand read, so a countdown per tile is exact.
        # Slots register what is blocked, whether a uop is, the one on offer and the one issued, so
        # who sees it end in this cycle reads that much later.
        # Whether an operand read is granted is known late in the cycle, so it counts from the next.
        mac_c_waiting = Signal()
        mac_c_gone = Signal()
        mac_c = Signal(tile_word(cfg), reset_less=True)
        m.d.comb += mac_c_waiting.eq(self.mac_waiting & self.mac_writes)
        m.d.sync += [mac_c_gone.eq(self.mac_go & self.mac_writes), mac_c.eq(self.mac_c)]
        timer_most = max(0, self.mac_depth - self.latency(cfg) - 1)
        pending = Signal(tiles)
        for index in range(tiles):
            timer = Signal(range(timer_most + 1), name=f"timer{index}")
            hit = mac_c_gone & (mac_c.tile == index)
            with m.If(hit):
                m.d.sync += timer.eq(timer_most)
            with m.Elif(timer != 0):
                m.d.sync += timer.eq(timer - 1)
            m.d.comb += pending[index].eq(hit | (timer != 0))
        # Whether the last one has landed matters at once to those who wait for all.
        to_land = Signal(range(self.mac_depth - 1))
        landing = mac_c_gone | (to_land != 0)
        with m.If(mac_c_gone):
            m.d.sync += to_land.eq(self.mac_depth - 2)
        with m.Elif(landing):
            m.d.sync += to_land.eq(to_land - 1)
        tells = m.d.sync if self.tells_late(cfg) else m.d.comb
        tells += self.accumulating.eq(pending | _one_hot(mac_c_waiting, self.mac_c.tile, tiles))

        # Loads return in any order: count what is out for each tile (each row in up to two parts).
        loading = Signal(tiles)
        for index in range(tiles):
            count = Signal(range(2 * cfg.rows + 1), name=f"loads{index}")
            up = self.load_go & (self.load_tile == index)
            down = self.load_retired & (self.load_retired_tile == index)
            with m.If(up & ~down):
                m.d.sync += count.eq(count + 1)
            with m.Elif(down & ~up):
                m.d.sync += count.eq(count - 1)
            m.d.comb += loading[index].eq(count != 0)

        moving = [
            _one_hot(
                getattr(self, f"move_writing{place}"),
                getattr(self, f"move_write_tile{place}"),
                tiles,
            )
            for place in range(self.MOVES)
        ]
        # After their read, which is known late, they are kept as sets of tiles.
        ages = range(1, self.MOVE_STAGES + 1)
        move_gone = [Signal(name=f"move_gone{age}") for age in ages]
        moved = [Signal(tiles, name=f"moved{age}", reset_less=True) for age in ages]
        m.d.sync += [move_gone[0].eq(self.move_go & self.move_writing0), moved[0].eq(moving[0])]
        for before, after in [*pairwise(move_gone), *pairwise(moved)]:
            m.d.sync += after.eq(before)
        moving += [Mux(gone, tile, 0) for gone, tile in zip(move_gone, moved, strict=True)]
        reads = [
            _one_hot(self.mac_waiting, self.mac_a, tiles),
            _one_hot(self.mac_waiting, self.mac_b, tiles),
            *(
                _one_hot(
                    getattr(self, f"store_waiting{stage}"),
                    getattr(self, f"store_tile{stage}"),
                    tiles,
                )
                for stage in range(self.STORES)
            ),
            *(
                _one_hot(
                    getattr(self, f"move_reading{place}"),
                    getattr(self, f"move_read_tile{place}"),
                    tiles,
                )
                for place in range(self.MOVES)
            ),
        ]
        busy = Cat(
            self.mac_waiting,
            landing,
            self.load_waiting,
            *(getattr(self, f"store_waiting{stage}") for stage in range(self.STORES)),
            *(getattr(self, f"move_reading{place}") for place in range(self.MOVES)),
            *(getattr(self, f"move_writing{place}") for place in range(self.MOVES)),
            *move_gone,
        )
        writing = loading | _one_hot(self.load_waiting, self.load_tile, tiles)
        for mask in moving:
            writing = writing | mask
        reading = reads[0]
        for mask in reads[1:]:
            reading = reading | mask
        tells += [self.writing.eq(writing), self.reading.eq(reading)]
        m.d.comb += self.idle.eq(~busy.any())

        # The words whose results a C read started now would miss, youngest first (the shift list
        # of seed 001 4.2.2). A uop checked in this cycle reads its operands some cycles later, so
        # results issued that much less than `loop` cycles ago are already safe.
        word_shape = tile_word(cfg)
        stages = []
        valid, word = mac_c_gone, mac_c
        for age in range(1, self.loop - self.WORD_LATENCY):
            if age > 1:
                before = valid, word
                valid = Signal(name=f"flight{age}_valid")
                m.d.sync += valid.eq(before[0])
                if self.tells_late(cfg):  # the MAC pipe has the same, but elsewhere
                    (word,) = copies(m, f"flight{age}_word", before[1].as_value(), 1)
                    word = word_shape(word)
                else:
                    word = Signal(word_shape, name=f"flight{age}_word", reset_less=True)
                    m.d.sync += word.eq(before[1])
            stages.append((valid, word))
        stages.append((mac_c_waiting, self.mac_c))
        for index in range(self.words):
            hits = Signal(len(stages), name=f"hits{index}")
            for number, (valid, word) in enumerate(stages):
                m.d.comb += hits[number].eq(
                    valid & (word.as_value() == self.word[index].as_value())
                )
            m.d.comb += self.word_busy[index].eq(hits.any())
        return m
