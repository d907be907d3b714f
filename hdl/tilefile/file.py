"""The tile register file: four read ports and two write ports over 2R/1W banks."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In

from ..config import Config
from ..interfaces import ReadPort, result_write, row_write, tile_row, tile_word
from .bank import Bank

__all__ = ["TileFile"]


class TileFile(wiring.Component):
    """Banked storage of every tile of every file; the bank is the tile number's high bits.

    Reads of one bank in one cycle are served C, then A, then B, then store, then move, two at
    most; writes result, then load, one at most. A loser keeps its request and waits: C, A and the
    result port never lose. A move takes what A's read leaves, so it waits for A in any bank.

    Members
    -------
    a, b, c : reads of words, for the operands and the accumulator. `b.ready` depends on these
        three alone.
    move : reads of words, for moves.
    store : reads of single rows.
    result : write of any bytes of a word; always taken.
    load : write of one row's bytes to some rows of a word.

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
            }
        )

    def elaborate(self, platform):
        m = Module()
        cfg = self.cfg
        tile_low = cfg.tiles_log2 - cfg.banks_log2

        def bank_of(tile):
            return tile[tile_low:]

        def word_of(tile, block):
            return Cat(block[: cfg.blocks_log2], tile[:tile_low])

        reads = {"a": self.a, "b": self.b, "c": self.c, "move": self.move, "store": self.store}
        store_block = self.store.addr.row[cfg.m_par_log2 :]
        words = {
            name: word_of(p.addr.tile, p.addr.block) for name, p in reads.items() if name != "store"
        }
        words["store"] = word_of(self.store.addr.tile, store_block)

        # hits[name][bank]: the request is for this bank.
        hits = {}
        for name, port in reads.items():
            hits[name] = Signal(cfg.all_banks, name=f"hit_{name}")
            m.d.comb += hits[name].eq(port.valid << bank_of(port.addr.tile))

        # Two ports a bank: C and A always fit; B loses to both, the store to any two of these, a
        # move to any two others.
        def two_of(*masks):
            pairs = [one & two for i, one in enumerate(masks) for two in masks[:i]]
            total = pairs[0]
            for pair in pairs[1:]:
                total = total | pair
            return total

        b_lost = (hits["b"] & hits["c"] & hits["a"]).any()
        store_lost = (hits["store"] & two_of(hits["a"], hits["b"], hits["c"])).any()
        others = two_of(hits["b"], hits["c"], hits["store"])
        move_lost = self.a.valid | (hits["move"] & others).any()
        # What is read beside B and C: for A, or else for a move.
        hits_of_a = hits["a"]
        hits["a"] = Signal(cfg.all_banks, name="hit_a_or_move")
        m.d.comb += hits["a"].eq(hits_of_a | Mux(move_lost, 0, hits.pop("move")))
        move_word = words.pop("move")
        words["a"] = Mux(self.a.valid, words["a"], move_word)
        with_ca = hits["c"] & hits["a"]
        m.d.comb += [
            self.c.ready.eq(1),
            self.a.ready.eq(1),
            self.b.ready.eq(~b_lost),
            self.move.ready.eq(~move_lost),
            self.store.ready.eq(~store_lost),
        ]

        # C reads port 0 and the store port 1; A (or a move) takes port 1 only beside C, B port 0
        # only beside the store, so two requests of a bank never share a port.
        a_on_1 = Signal()
        b_on_0 = Signal()
        store_hits = Signal(cfg.all_banks)
        m.d.comb += [
            store_hits.eq(Mux(store_lost, 0, hits["store"])),
            a_on_1.eq(with_ca.any()),
            b_on_0.eq((hits["b"] & store_hits).any()),
        ]

        result_hits = Signal(cfg.all_banks)
        load_hits = Signal(cfg.all_banks)
        m.d.comb += [
            result_hits.eq(self.result.valid << bank_of(self.result.addr.tile)),
            load_hits.eq(self.load.valid << bank_of(self.load.payload.tile)),
            self.load.ready.eq(~(result_hits & load_hits).any()),
        ]
        load = self.load.payload
        load_mask = Cat(load.mask & row.replicate(cfg.row_bytes) for row in load.rows)

        datas: dict[str, list] = {"c": [], "a0": [], "a1": [], "b0": [], "b1": [], "store": []}
        for index in range(cfg.all_banks):
            bank = Bank(cfg)
            m.submodules[f"bank{index}"] = bank
            here = {name: hit[index] for name, hit in hits.items()}
            m.d.comb += [
                bank.read0_en.eq(here["c"] | here["a"] | here["b"]),
                bank.read0_addr.eq(
                    Mux(here["c"], words["c"], Mux(here["a"], words["a"], words["b"]))
                ),
                bank.read1_en.eq(here["store"] | here["b"] | here["a"]),
                bank.read1_addr.eq(
                    Mux(
                        store_hits[index],
                        words["store"],
                        Mux(here["b"] & ~(with_ca[index]), words["b"], words["a"]),
                    )
                ),
                bank.write_addr.eq(
                    Mux(
                        result_hits[index],
                        word_of(self.result.addr.tile, self.result.addr.block),
                        word_of(load.tile, load.block),
                    )
                ),
                bank.write_data.eq(
                    Mux(result_hits[index], self.result.data, load.data.replicate(cfg.m_par))
                ),
                bank.write_mask.eq(
                    Mux(
                        result_hits[index],
                        self.result.mask,
                        Mux(load_hits[index], load_mask, 0),
                    )
                ),
            ]
            datas["c"].append(bank.read0_data)
            datas["a0"].append(bank.read0_data)
            datas["a1"].append(bank.read1_data)
            datas["b0"].append(bank.read0_data)
            datas["b1"].append(bank.read1_data)
            datas["store"].append(bank.read1_data)

        # Which bank and port each requester's data come from, when the banks give them.
        def with_data(value, name):
            for stage in range(cfg.read_latency):
                later = Signal(len(value), name=f"{name}{stage}", reset_less=True)
                m.d.sync += later.eq(value)
                value = later
            return value

        def select(sources, index):
            value = sources[0]
            for number, source in enumerate(sources[1:], start=1):
                value = Mux(index == number, source, value)
            return value

        for name, port, alternate in (
            ("c", self.c, None),
            ("a", self.a, a_on_1),
            ("b", self.b, ~b_on_0),
        ):
            bank = bank_of(port.addr.tile)
            if name == "a":
                bank = Mux(self.a.valid, bank, bank_of(self.move.addr.tile))
            bank = with_data(bank, f"{name}_bank")
            if alternate is None:
                sources = datas[name]
            else:
                on_1 = with_data(alternate, f"{name}_on_1")
                sources = [
                    Mux(on_1, one, zero)
                    for zero, one in zip(datas[f"{name}0"], datas[f"{name}1"], strict=True)
                ]
            m.d.comb += port.data.eq(select(sources, bank))

        m.d.comb += self.move.data.eq(self.a.data)

        store_bank = with_data(bank_of(self.store.addr.tile), "store_bank")
        store_row = with_data(self.store.addr.row[: cfg.m_par_log2], "store_row")
        store_word = select(datas["store"], store_bank)
        m.d.comb += self.store.data.eq(
            store_word.word_select(store_row, cfg.row_bits) if cfg.m_par > 1 else store_word
        )
        return m
