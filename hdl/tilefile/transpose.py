"""bTR: transposed copies of operand tiles, made before the uops that multiply them."""

from __future__ import annotations

from functools import reduce
from operator import or_

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from ..config import Config
from ..interfaces import (
    OPERAND_TILES,
    ReadPort,
    bits_for,
    mma_uop,
    operand_reads,
    tile_word,
    transpose_parts,
)
from ..l2.shift import rotate_left, rotate_right
from ..registers import copies
from .file import choose, word_parts

__all__ = ["OperandPath", "TransposedTiles"]


class TransposedTiles(wiring.Component):
    """Holds the transposes of up to four square tiles of bytes.

    Word i of a tile holds its rows i * m_par and on, so it has m_par columns of every word of the
    transpose. A write puts those columns into `step` of the words; `blocks / step` writes, one a
    part, take all of them. To write `step` words at once, the squares of m_par x m_par bytes lie
    in as many memories: square i of word j in memory (i + j) mod step.

    Members
    -------
    write, index, word, part, data : write some squares of word `word` of tile `index`. With block
        RAM `data` come a cycle after the others.
    read, read_index, read_word : look a word of a transpose up.
    read_data : the word, one cycle later. Nothing orders a read and a write of one word in one
        cycle.

    Latency: 1 cycle from address to data. `write_latency` cycles from a write to the memory: words
    of block RAM come from far, so what is chosen of them takes a register on the way.
    """

    def __init__(self, cfg: Config):
        self.cfg = cfg
        self.write_latency = 2 if cfg.tile_memory == "block" else 0
        self.parts = transpose_parts(cfg)
        self.step = cfg.blocks // self.parts
        index, block = bits_for(OPERAND_TILES), bits_for(cfg.blocks)
        super().__init__(
            {
                "write": In(1),
                "index": In(index),
                "word": In(block),
                "part": In(bits_for(self.parts)),
                "data": In(cfg.word_bits),
                "read": In(1),
                "read_index": In(index),
                "read_word": In(block),
                "read_data": Out(cfg.word_bits),
            }
        )

    def elaborate(self, platform):
        m = Module()
        cfg = self.cfg
        side, step, slots = cfg.m_par, self.step, self.parts  # squares of a memory's word
        square = 8 * side * side

        # squares[j]: what the word has of the transpose's word j.
        squares = [
            Cat(
                self.data.word_select(row * cfg.row_bytes + j * side + column, 8)
                for column in range(side)
                for row in range(side)
            )
            for j in range(cfg.blocks)
        ]
        write, index, word, part = self.write, self.index, self.word, self.part
        parts = [part]  # the same, for pieces of what is chosen
        if self.write_latency:
            parts = copies(m, "part", part, word_parts(cfg, step * square))
            write = self._later(m, "write", write, reset_less=False)
            index, word, part = (
                self._later(m, name, value)
                for name, value in (("index", index), ("word", word), ("part", part))
            )
        options = [Cat(squares[first : first + step]) for first in range(0, cfg.blocks, step)]
        bits = step * square // len(parts)
        chosen = Cat(
            choose([option.word_select(piece, bits) for option in options], select)
            for piece, select in enumerate(parts)
        )
        low = step.bit_length() - 1  # of a word's number: which memory
        turned = rotate_left(m, chosen, word[:low], unit=square, name="turned")
        slot = Signal(slots)
        m.d.comb += slot.eq(Mux(write, 1 << (word[: cfg.blocks_log2] >> low), 0))
        if self.write_latency:
            turned = self._later(m, "turned", turned)
            slot = self._later(m, "slot", slot, reset_less=False)

        read_word = Signal(max(1, cfg.blocks_log2), reset_less=True)
        with m.If(self.read):
            m.d.sync += read_word.eq(self.read_word)
        banks = []
        for number in range(step):
            memory = Memory(shape=slots * square, depth=OPERAND_TILES * cfg.blocks, init=[])
            m.submodules[f"memory{number}"] = memory
            write_port, read = memory.write_port(granularity=square), memory.read_port()
            # This memory's square belongs to word part * step + (number - word) mod step.
            lane = Signal(max(1, low), name=f"lane{number}")
            write_addr = Cat(lane[:low], part[: cfg.blocks_log2 - low], index)
            if self.write_latency:
                write_addr = self._later(m, f"write_addr{number}", write_addr)
            m.d.comb += [
                lane.eq(number - word),
                write_port.addr.eq(write_addr),
                write_port.data.eq(turned.word_select(number, square).replicate(slots)),
                write_port.en.eq(slot),
                read.en.eq(self.read),
                read.addr.eq(Cat(self.read_word[: cfg.blocks_log2], self.read_index)),
            ]
            banks.append(read.data)

        words = []  # squares of the word, in order
        for number in range(slots):
            row = Cat(bank.word_select(number, square) for bank in banks)
            words.append(
                rotate_right(m, row, read_word[:low], unit=square, name=f"columns{number}")
            )
        ordered = Cat(words)
        m.d.comb += self.read_data.eq(
            Cat(
                ordered[8 * side * (i * side + row) : 8 * side * (i * side + row + 1)]
                for row in range(side)
                for i in range(cfg.blocks)
            )
        )
        return m

    @staticmethod
    def _later(m: Module, name: str, value: Value, *, reset_less: bool = True) -> Signal:
        register = Signal(len(value), name=f"{name}_q", reset_less=reset_less)
        m.d.sync += register.eq(value)
        return register


class OperandPath(wiring.Component):
    """Stands between the slots and the MAC pipe, and makes and serves the transposes.

    Uops that transpose read their words here and go no further. Those behind them that multiply a
    transposed tile find it in place of the tile itself.

    Members
    -------
    uops : mma uops of the slots; a transfer is the operand read.
    mac, hold : those that multiply, to the MAC pipe, which must not take one while `hold`.
    mac_a, mac_b : the MAC pipe's reads.
    a, b : reads of the tile file; A is always granted, and B is ready whenever it is not read.
    offers, grants : uops that may stand at `uops` in the next cycle; which one does, one-hot, or
        none; none beside one that waits. Only that is known late, so all of them are looked at.
    reads_next, reads_chosen : what they read, and what the one at `uops` would if it waits; which
        of these is read in the next cycle, one-hot, or none.
    a_wanted : `a.valid`, from a register.

    Latency: none for uops; data of `mac_a` and `mac_b` come `Config.read_latency` cycles after
    their request was granted. Throughput: a uop a cycle; a transposed tile takes blocks *
    `transpose_parts` uops, 16 or fewer, and both operands' tiles are transposed side by side.
    Source: seed 000 section 12; isa.md section 2, bTR.
    """

    def __init__(self, cfg: Config):
        self.cfg = cfg
        word = ReadPort(tile_word(cfg), cfg.word_bits)
        super().__init__(
            {
                "uops": In(stream.Signature(mma_uop(cfg))),
                "mac": Out(stream.Signature(mma_uop(cfg))),
                "hold": Out(1),
                "mac_a": In(word),
                "mac_b": In(word),
                "a": Out(word),
                "b": Out(word),
                "offers": In(data.ArrayLayout(mma_uop(cfg), cfg.slots)),
                "grants": In(cfg.slots),
                "reads_next": Out(data.ArrayLayout(operand_reads(cfg), cfg.slots + 1)),
                "reads_chosen": Out(cfg.slots + 1),
                "a_wanted": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        cfg = self.cfg
        uop = self.uops.payload
        self._announce(m)
        if not cfg.transposes:
            wiring.connect(m, wiring.flipped(self.uops), wiring.flipped(self.mac))
            for mac, port in ((self.mac_a, self.a), (self.mac_b, self.b)):
                m.d.comb += [
                    port.valid.eq(mac.valid),
                    port.addr.eq(mac.addr),
                    mac.ready.eq(port.ready),
                    mac.data.eq(port.data),
                ]
            return m

        step = cfg.blocks // transpose_parts(cfg)
        step_log2 = step.bit_length() - 1
        makes = self.uops.valid & uop.transposes
        go = Signal()  # a word is read that will be written when it has come
        early = Signal()  # the uop would read what is still to be written; known before it comes
        m.d.comb += [
            go.eq(makes & self.b.ready),
            self.mac.payload.eq(uop),
            self.mac.valid.eq(self.uops.valid & ~uop.transposes),
            # Apart from `valid`, on which other readers of the tile file wait.
            self.hold.eq(early),
            # Only B ever waits, so what the MAC pipe says is right for both kinds of uops.
            self.uops.ready.eq(self.mac.ready),
        ]
        # Where it goes; the last of these is the write.
        write_layout = data.StructLayout(
            {
                "on": 1,
                "a": 1,
                "b": 1,
                "a_index": uop.a_index.shape(),
                "b_index": uop.b_index.shape(),
                "part": uop.part.shape(),
                "source": max(1, cfg.blocks_log2),
            }
        )
        now = Signal(write_layout)
        m.d.comb += [
            now.on.eq(go),
            now.a.eq(go & uop.a_transposed),
            now.b.eq(go & uop.b_transposed),
            now.a_index.eq(uop.a_index),
            now.b_index.eq(uop.b_index),
            now.part.eq(uop.part),
            now.source.eq(uop.a.block),
        ]
        late = cfg.read_latency - 1
        write_age = cfg.read_latency
        writes = [now]
        for stage in range(1, write_age + 1):
            later = Signal(write_layout, name=f"write{stage}")
            m.d.sync += later.eq(writes[-1])
            writes.append(later)
        now = writes[-1]
        tiles_of = {name: TransposedTiles(cfg) for name in "ab"}
        # A lookup starts so much later than its uop; the writes that are not over by then meet it.
        # Parts being written: who meets one of them waits.
        written = write_age + tiles_of["a"].write_latency - late
        busy_next = Signal(transpose_parts(cfg))
        m.d.comb += busy_next.eq(reduce(or_, (Mux(w.on, 1 << w.part, 0) for w in writes[:written])))

        def clashes(uop):
            """Whether it would read one of those in the next cycle."""
            blocks = (
                (uop.a_transposed, uop.a.block),
                (uop.b_transposed, uop.b_row[cfg.m_par_log2 :]),
            )
            parts = [(on, block[step_log2 : cfg.blocks_log2]) for on, block in blocks]
            return (
                ~uop.transposes
                & Cat(on & busy_next.bit_select(part, 1) for on, part in parts).any()
            )

        clashing = Cat(clashes(option) for option in self._options())
        m.d.sync += early.eq((self.reads_chosen & clashing).any())
        for name, mac, port, block in (
            ("a", self.mac_a, self.a, uop.a.block),
            ("b", self.mac_b, self.b, uop.b_row[cfg.m_par_log2 :]),
        ):
            m.submodules[f"tiles_{name}"] = tiles = tiles_of[name]
            transposed = uop[f"{name}_transposed"]
            served = copies(
                m,
                f"{name}_served",
                self._delayed(m, transposed & ~uop.transposes),
                word_parts(cfg, cfg.word_bits),
            )
            bits = cfg.word_bits // len(served)
            m.d.comb += [
                port.valid.eq(Mux(uop.transposes, makes & transposed, mac.valid & ~transposed)),
                port.addr.eq(Mux(uop.transposes, self._word(uop, name), mac.addr)),
                mac.ready.eq(port.ready),
                mac.data.eq(
                    Cat(
                        Mux(
                            one,
                            tiles.read_data.word_select(number, bits),
                            port.data.word_select(number, bits),
                        )
                        for number, one in enumerate(served)
                    )
                ),
                tiles.write.eq(now[name]),
                tiles.index.eq(now[f"{name}_index"]),
                tiles.word.eq(now.source),
                tiles.part.eq(now.part),
                tiles.data.eq(self._registered(m, port.data) if late else port.data),
                # As late as the tile file's data come; what is written later comes later still.
                tiles.read.eq(self._delayed(m, mac.valid & transposed)),
                tiles.read_index.eq(self._delayed(m, uop[f"{name}_index"])),
                tiles.read_word.eq(self._delayed(m, block)),
            ]
        return m

    def _options(self) -> list:
        """The uops of which one may stand at `uops` in the next cycle, as `reads_chosen` says."""
        return [*(self.offers[index] for index in range(self.cfg.slots)), self.uops.payload]

    def _announce(self, m: Module) -> None:
        """Say what is read in the next cycle, as the tile file knows requests by registers."""

        def wants(uop):
            """Whether a uop that comes reads A, B."""
            a, b = uop.new_a, ~uop.op.point.held if self.cfg.xuantie else Const(1)
            if self.cfg.transposes:
                a = Mux(uop.transposes, uop.a_transposed, a & ~uop.a_transposed)
                b = Mux(uop.transposes, uop.b_transposed, b & ~uop.b_transposed)
            return a, b

        uop = self.uops.payload
        # A's read is not asked for again, unless it was in vain.
        in_vain = self.hold | (uop.transposes if self.cfg.transposes else 0)
        wanted = [wants(option) for option in self._options()[:-1]]
        wanted.append((self.a.valid & in_vain, self.b.valid))
        for index, (option, (a, b)) in enumerate(zip(self._options(), wanted, strict=True)):
            reads = self.reads_next[index]
            m.d.comb += [
                reads.a.eq(a),
                reads.a_tile.eq(option.a.tile),
                reads.b.eq(b),
                reads.b_tile.eq(option.b_tile),
            ]
        waits = self.uops.valid & ~self.uops.ready
        m.d.comb += self.reads_chosen.eq(Cat(self.grants, waits))
        m.d.sync += self.a_wanted.eq((self.reads_chosen & Cat(a for a, _ in wanted)).any())

    def _registered(self, m: Module, value: Value) -> Value:
        later = Signal(len(value), reset_less=True)
        m.d.sync += later.eq(value)
        return later

    def _delayed(self, m: Module, value: Value) -> Value:
        """`value`, later by what a read takes beyond one cycle."""
        for _ in range(1, self.cfg.read_latency):
            value = self._registered(m, value)
        return value

    def _word(self, uop, name):
        """The word that a transposing uop reads of A, or of B."""
        if name == "a":
            return uop.a.as_value()
        return Cat(uop.b_tile, uop.b_row[self.cfg.m_par_log2 :])
