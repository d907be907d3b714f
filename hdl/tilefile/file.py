"""The tile register file: four read ports and two write ports over 2R/1W banks."""

from __future__ import annotations

from functools import reduce
from operator import or_

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In

from ..config import Config
from ..interfaces import ReadPort, operand_reads, result_write, row_write, tile_row, tile_word
from ..registers import copies
from .bank import Bank

__all__ = ["TileFile", "choose", "word_parts"]

PART_BITS = 16
"""Bits of a word that one register decides on, with block RAM."""


def word_parts(cfg: Config, bits: int) -> int:
    """Parts of a word of `bits` that each get a control register of their own.

    Block RAM lies all over an FPGA, and so does a word of it.
    """
    return max(1, bits // PART_BITS) if cfg.tile_memory == "block" else 1


def choose(values: list[Value], index: Value) -> Value:
    """One of a power of two of values."""
    while len(values) > 1:
        pairs = zip(values[::2], values[1::2], strict=True)
        values = [Mux(index[0], odd, even) for even, odd in pairs]
        index = index[1:]
    return values[0]


class TileFile(wiring.Component):
    """Banked storage of every tile of every file; the bank is the tile number's high bits.

    Reads of one bank in one cycle are served C, then A, then B, then store, then move, two at
    most; writes result, then load, one at most. A loser keeps its request and waits: C, A and the
    result port never lose. A move takes what A's read leaves, so it must not come beside one.

    Members
    -------
    a, b, c : reads of words, for the operands and the accumulator. `b.ready` is a register, and low
        only where B is read in vain.
    move : reads of words, for moves; its data are those of `a`.
    store : reads of single rows.
    result : write of any bytes of a word; always taken.
    load : write of one row's bytes to some rows of a word.
    reads_next, reads_chosen : what A and B may read in the next cycle; which of these they do,
        one-hot, or none. Only that is known late, so the banks are found for each.
    c_next, c_next_tile : C is read in the next cycle, and where.
    result_next, result_next_tile : likewise of the result's write.

    Latency: data `Config.read_latency` cycles after a granted read; a write is seen by reads of the
    next cycle. Source: architecture.md section 1.
    """

    def __init__(self, cfg: Config):
        self.cfg = cfg
        word = ReadPort(tile_word(cfg), cfg.word_bits)
        super().__init__(
            {
                "a": In(word),
                "b": In(word),
                "c": In(word),
                "move": In(word),
                "store": In(ReadPort(tile_row(cfg), cfg.row_bits)),
                "result": In(result_write(cfg)),
                "load": In(stream.Signature(row_write(cfg))),
                "reads_next": In(data.ArrayLayout(operand_reads(cfg), cfg.slots + 1)),
                "reads_chosen": In(cfg.slots + 1),
                "c_next": In(1),
                "c_next_tile": In(cfg.tile_bits),
                "result_next": In(1),
                "result_next_tile": In(cfg.tile_bits),
            }
        )

    def elaborate(self, platform):
        m = Module()
        banks = [Bank(self.cfg) for _ in range(self.cfg.all_banks)]
        for index, bank in enumerate(banks):
            m.submodules[f"bank{index}"] = bank
        self._reads(m, banks)
        self._writes(m, banks)
        return m

    # -- which bank, and which word of it ------------------------------------------------------

    @property
    def _tile_low(self) -> int:
        return self.cfg.tiles_log2 - self.cfg.banks_log2

    def _bank_of(self, tile: Value) -> Value:
        return tile[self._tile_low :]

    def _word_of(self, tile: Value, block: Value) -> Value:
        return Cat(block[: self.cfg.blocks_log2], tile[: self._tile_low])

    def _at_memory(self, m: Module, name: str, value: Value, *, reset_less: bool = True) -> Value:
        """`value` beside the memories: block RAM is far, so there are registers before it."""
        if self.cfg.tile_memory != "block":
            return value
        register = Signal(len(value), name=f"{name}_q", reset_less=reset_less)
        m.d.sync += register.eq(value)
        return register

    def _hits(self, m: Module, name: str, valid: Value, tile: Value) -> Signal:
        """The bank of a request, if it is one."""
        hits = Signal(self.cfg.all_banks, name=name)
        m.d.comb += hits.eq(valid << self._bank_of(tile))
        return hits

    # -- reads ---------------------------------------------------------------------------------

    def _reads(self, m: Module, banks: list[Bank]) -> None:
        cfg = self.cfg
        ports = {"a": self.a, "b": self.b, "c": self.c, "move": self.move, "store": self.store}
        words = {}
        places = {}  # places[name][bank]: the request is for this bank, if it is one
        hits = {}
        for name, port in ports.items():
            addr = port.addr
            block = addr.row[cfg.m_par_log2 :] if name == "store" else addr.block
            words[name] = self._at_memory(m, f"{name}_word", self._word_of(addr.tile, block))
            places[name] = Signal(cfg.all_banks, name=f"place_{name}")
            m.d.comb += places[name].eq(1 << self._bank_of(addr.tile))
            hits[name] = Mux(port.valid, places[name], 0)
        for name in "abc":
            hits[name] = Signal(cfg.all_banks, name=f"{name}_hits")
        a, b, c, store = (hits[name] for name in ("a", "b", "c", "store"))
        b_loses = Signal()
        c_next = self._hits(m, "c_coming", self.c_next, self.c_next_tile)
        options = []
        for index in range(cfg.slots + 1):
            reads = self.reads_next[index]
            a_next = self._hits(m, f"a_coming{index}", reads.a, reads.a_tile)
            b_next = self._hits(m, f"b_coming{index}", reads.b, reads.b_tile)
            option = Cat(a_next, b_next, (a_next & b_next & c_next).any())
            options.append(Mux(self.reads_chosen[index], option, 0))
        m.d.sync += [Cat(a, b, b_loses).eq(reduce(or_, options)), c.eq(c_next)]

        # Two ports a bank: C and A always fit; B loses to both, the store to any two of these, a
        # move to any two others. Whether there is a request is known late; `ready` does not ask.
        def two_of(x, y, z):
            return (x & y) | (x & z) | (y & z)

        full = two_of(a, b, c)
        m.d.comb += [
            self.c.ready.eq(1),
            self.a.ready.eq(1),
            self.b.ready.eq(~b_loses),
            self.store.ready.eq(~(places["store"] & full).any()),
            self.move.ready.eq(~(places["move"] & two_of(b, c, store)).any()),
        ]

        # C reads port 0 and the store port 1. A takes port 1 only beside C, B only beside C or A, a
        # move only beside C or B, so two requests of a bank never share a port, and none asks who
        # of lower rank is there. Whoever lost may be read all the same; nobody looks.
        for index, bank in enumerate(banks):
            a_here, b_here, c_here, move_here, store_here = (hit[index] for hit in hits.values())
            some = a_here | b_here | move_here
            selects = {
                "read0_en": c_here | some,
                "read1_en": store_here | some,
                "on_0_high": c_here | a_here,
                "on_0_low": Mux(c_here | a_here, c_here, b_here),
                "on_1_high": full[index],
                "on_1_low": Mux(full[index], a_here & c_here, store_here),
            }
            at = {
                name: self._at_memory(m, f"bank{index}_{name}", value)
                for name, value in selects.items()
            }
            m.d.comb += [
                bank.read0_en.eq(at["read0_en"]),
                bank.read1_en.eq(at["read1_en"]),
                bank.read0_addr.eq(
                    Mux(
                        at["on_0_high"],
                        Mux(at["on_0_low"], words["c"], words["a"]),
                        Mux(at["on_0_low"], words["b"], words["move"]),
                    )
                ),
                bank.read1_addr.eq(
                    Mux(
                        at["on_1_high"],
                        Mux(at["on_1_low"], words["a"], words["b"]),
                        Mux(at["on_1_low"], words["store"], words["move"]),
                    )
                ),
            ]

        # -- where each requester's data come from, when the banks give them
        first = [bank.read0_data for bank in banks]
        second = [bank.read1_data for bank in banks]
        either = [data for pair in zip(first, second, strict=True) for data in pair]
        a_from = Cat((places["a"] & c).any(), self._bank_of(self.a.addr.tile))
        b_from = Cat((places["b"] & (a | c)).any(), self._bank_of(self.b.addr.tile))
        move_from = Cat((places["move"] & (b | c)).any(), self._bank_of(self.move.addr.tile))
        # A's or a move's: that is decided as late as can be.
        age = cfg.read_latency - 1
        a_from = Mux(
            self._later(m, "a_reads", self.a.valid, age),
            self._later(m, "a_from", a_from, age),
            self._later(m, "move_from", move_from, age),
        )
        row = self.store.addr.row[: cfg.m_par_log2]
        rows = [data.word_select(i, cfg.row_bits) for data in second for i in range(cfg.m_par)]
        for name, sources, source, port, done in (
            ("c", first, self._bank_of(self.c.addr.tile), self.c, 0),
            ("a", either, a_from, self.a, age),
            ("b", either, b_from, self.b, 0),
            ("store", rows, Cat(row, self._bank_of(self.store.addr.tile)), self.store, 0),
        ):
            source = self._later(m, f"{name}_from", source, cfg.read_latency - 1 - done)
            count = word_parts(cfg, len(port.data))
            selects = copies(m, f"{name}_source", source, count)
            bits = len(port.data) // count
            m.d.comb += port.data.eq(
                Cat(
                    choose([data.word_select(part, bits) for data in sources], select)
                    for part, select in enumerate(selects)
                )
            )
        m.d.comb += self.move.data.eq(self.a.data)

    @staticmethod
    def _later(m: Module, name: str, value: Value, cycles: int) -> Value:
        for stage in range(cycles):
            register = Signal(len(value), name=f"{name}{stage}", reset_less=True)
            m.d.sync += register.eq(value)
            value = register
        return value

    # -- writes --------------------------------------------------------------------------------

    def _writes(self, m: Module, banks: list[Bank]) -> None:
        cfg = self.cfg
        result, load = self.result, self.load.payload
        result_hits = Signal(cfg.all_banks)
        m.d.sync += result_hits.eq(
            self._hits(m, "result_coming", self.result_next, self.result_next_tile)
        )
        load_place = Signal(cfg.all_banks)
        load_hits = Mux(self.load.valid, load_place, 0)
        m.d.comb += [
            load_place.eq(1 << self._bank_of(load.tile)),
            self.load.ready.eq(~(result_hits & load_place).any()),
        ]
        result_word = self._word_of(result.addr.tile, result.addr.block)
        load_word = self._word_of(load.tile, load.block)
        load_mask = Cat(load.mask & row.replicate(cfg.row_bytes) for row in load.rows)
        # Both kinds of data come to the memories before it is said whose are written.
        result_data = self._at_memory(m, "result_data", result.data)
        load_data = self._at_memory(m, "load_data", load.data).replicate(cfg.m_par)
        result_mask = self._at_memory(m, "result_mask", result.mask)
        load_mask = self._at_memory(m, "load_mask", load_mask)
        parts = word_parts(cfg, cfg.word_bits)
        bits = cfg.word_bits // parts
        for index, bank in enumerate(banks):
            by_result, by_load = (
                self._at_memory(m, f"bank{index}_by_{name}", hits[index], reset_less=False)
                for name, hits in (("result", result_hits), ("load", load_hits))
            )
            takes_result = [by_result]
            if cfg.tile_memory == "block":
                takes_result = copies(m, f"bank{index}_result", result_hits[index], parts)
            write_addr = Mux(result_hits[index], result_word, load_word)
            m.d.comb += [
                bank.write_addr.eq(self._at_memory(m, f"bank{index}_write_addr", write_addr)),
                bank.write_data.eq(
                    Cat(
                        Mux(
                            select,
                            result_data.word_select(part, bits),
                            load_data.word_select(part, bits),
                        )
                        for part, select in enumerate(takes_result)
                    )
                ),
                bank.write_mask.eq(Mux(by_result, result_mask, Mux(by_load, load_mask, 0))),
            ]
