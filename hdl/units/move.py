"""The move unit: copies, zeroes, transposes and broadcasts through the A read and result port."""

from __future__ import annotations

from functools import reduce
from operator import or_

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ..config import Config
from ..interfaces import ReadPort, move_uop, result_write, tile_word
from ..isa import MoveOp
from ..registers import copies
from ..tilefile.file import choose, word_parts
from .squares import SIZES_LOG2, Squares, buffer_words, second_slot

__all__ = ["MoveUnit"]

VALUE_BITS = 64
"""Bits of a scalar register, and of the widest element."""


class MoveUnit(wiring.Component):
    """Takes a move uop whenever the MAC leaves it the A read now and the result port then.

    Words that are read go to a small buffer; what is written is made from it. Transposes need all
    words of a square at once, everything else only the first slot.

    Members
    -------
    uops : move uops; a transfer is the read.
    a : tile-file read on the A port; not beside one of the MAC.
    mac, mac_next, mac_next_tile : results of the MAC, which go first; there is one in the next
        cycle, and where.
    result : tile-file write: the MAC's, or a move's `Config.move_latency` cycles after its read.
    result_next, result_next_tile : there is one in the next cycle, and where.
    a_busy, result_busy : the MAC may read A in this cycle; writes a result when this move would.
    yield_ : a load has starved; leave it the next gap of the result port.
    scalar, scalar_done : what a scalar broadcast writes; it is not needed any more.
    element_valid, element : an element that was asked for.
    idle : no move is between its read and its write.

    Latency: `Config.move_latency` cycles from the read to the write, one more to the element.
    Throughput: one word a cycle; transposes and rows read and write every word once.
    Source: architecture.md section 1, tile register file; isa.md section 2, moves.
    """

    def __init__(self, cfg: Config):
        self.cfg = cfg
        members = {
            "uops": In(stream.Signature(move_uop(cfg))),
            "a": Out(ReadPort(tile_word(cfg), cfg.word_bits)),
            "mac": In(result_write(cfg)),
            "mac_next": In(1),
            "mac_next_tile": In(cfg.tile_bits),
            "result": Out(result_write(cfg)),
            "result_next": Out(1),
            "result_next_tile": Out(cfg.tile_bits),
            "a_busy": In(1),
            "result_busy": In(1),
            "yield_": In(1),
            "scalar": In(VALUE_BITS),
            "scalar_done": Out(1),
            "element_valid": Out(1),
            "element": Out(VALUE_BITS),
            "idle": Out(1),
        }
        super().__init__(members)

    def elaborate(self, platform):
        m = Module()
        cfg = self.cfg
        block = cfg.tile_memory == "block"
        uop = self.uops.payload
        go = Signal()
        may = Signal()
        m.d.comb += [
            may.eq(~(uop.write & (self.result_busy | self.yield_))),
            self.uops.ready.eq(may & ~self.a_busy & (self.a.ready | ~uop.read)),
            go.eq(self.uops.valid & self.uops.ready),
            self.a.valid.eq(self.uops.valid & may & uop.read & ~self.a_busy),
            self.a.addr.eq(uop.src),
        ]

        # -- stages: read, make, write ---------------------------------------------------------
        # With block RAM a word meets a register before the buffer and one after it is made, and
        # what decides on words is held several times.
        data = self.a.data
        if block:
            data = Signal(cfg.word_bits, name="data_q", reset_less=True)
            m.d.sync += data.eq(self.a.data)
        going = [(go, uop)]  # and then one cycle after the other, until its word is here
        for stage in range(cfg.read_latency + block):
            valid_q = Signal(name=f"read{stage}_valid")
            uop_q = Signal(move_uop(cfg), name=f"read{stage}", reset_less=True)
            m.d.sync += [valid_q.eq(going[-1][0]), uop_q.eq(going[-1][1])]
            going.append((valid_q, uop_q))
        read_valid, read = going[-1]
        make_valid = Signal()
        make = Signal(move_uop(cfg), reset_less=True)
        m.d.sync += [make_valid.eq(read_valid), make.eq(read)]
        slots = self._buffer(m, data, going)
        writing = [(make_valid & make.write, make.dst)]
        for stage in range(1 + block):
            valid_q = Signal(name=f"write{stage}_valid")
            dst_q = Signal(tile_word(cfg), name=f"write{stage}_dst", reset_less=True)
            m.d.sync += [valid_q.eq(writing[-1][0]), dst_q.eq(writing[-1][1])]
            writing.append((valid_q, dst_q))
        write_valid, write_dst = writing[-1]

        # -- what is written: words of the buffer, rows of one or transposed ones, or patterns.
        # -- All are made, and but the right one are zero.
        patterns, scalar = self._patterns(m, slots[0], read)
        made = [*self._words(m, slots, read), self._repeated(patterns), self._repeated([scalar])]
        word = Signal(cfg.word_bits, reset_less=True)
        if block:
            m.d.sync += word.eq(reduce(or_, made))
        else:
            m.d.comb += word.eq(reduce(or_, made))

        # -- the result port -------------------------------------------------------------------
        count = word_parts(cfg, cfg.word_bits)
        by_move = copies(m, "by_move", writing[-2][0], count + 1) if block else [write_valid] * 2
        *own, rest = by_move
        bits = cfg.word_bits // count
        m.d.comb += [
            self.result_next.eq(writing[-2][0] | self.mac_next),
            self.result_next_tile.eq(Mux(writing[-2][0], writing[-2][1].tile, self.mac_next_tile)),
            self.result.valid.eq(write_valid | self.mac.valid),
            self.result.addr.eq(Mux(rest, write_dst, self.mac.addr)),
            self.result.mask.eq(self.mac.mask | rest.replicate(len(self.mac.mask))),
            self.result.data.eq(
                Cat(
                    Mux(one, word.word_select(part, bits), self.mac.data.word_select(part, bits))
                    for part, one in enumerate(own)
                )
            ),
            self.scalar_done.eq(make_valid & (make.op == MoveOp.SCALAR) & ~make.more),
        ]
        writes = [valid & by.write for valid, by in going[1:]] + [valid for valid, _ in writing]
        m.d.comb += self.idle.eq(~Cat(writes).any())

        # -- the element that is answered ------------------------------------------------------
        answers = make_valid & (make.op == MoveOp.ELEMENT)
        row, size = make.at[cfg.row_bytes_log2 :], make.size
        answers, row, size = self._later(m, "element0", answers, row, size)
        element = choose(patterns, row)
        if block:
            answers, size, element = self._later(m, "element1", answers, size, element)
        mask = Signal(VALUE_BITS)
        with m.Switch(size):
            for size_log2 in SIZES_LOG2:
                with m.Case(size_log2):
                    m.d.comb += mask.eq((1 << (8 << size_log2)) - 1)
        answers, element = self._later(m, "element", answers, element & mask)
        m.d.comb += [self.element_valid.eq(answers), self.element.eq(element)]
        return m

    @staticmethod
    def _later(m: Module, name: str, valid: Value, *values: Value) -> list[Signal]:
        """Registers of `valid` and of values, which are not reset."""
        found = [Signal(name=f"{name}_valid")]
        for number, value in enumerate(values):
            found.append(Signal(len(value), name=f"{name}_{number}", reset_less=True))
        m.d.sync += Cat(found).eq(Cat(valid, *values))
        return found

    def _decided(self, m: Module, name: str, value: Value, bits: int) -> list[Value]:
        """Registers of `value`, one for each part of `bits` that it decides on."""
        return copies(m, name, value, word_parts(self.cfg, bits))

    def _buffer(self, m: Module, data: Value, going: list[tuple]) -> list[Signal]:
        """The words that were read; those of the second square move up when they are asked to."""
        cfg = self.cfg
        (early_valid, early), (read_valid, read) = going[-2:]
        behind = second_slot(cfg)
        count = buffer_words(cfg)
        slots = [
            Signal(cfg.word_bits, name=f"slot{index}", reset_less=True) for index in range(count)
        ]
        for index, slot in enumerate(slots):
            # Known one stage before, as words are wide. None is read while they move up.
            fills = early_valid & early.read & (early.slot == index)
            takes = self._decided(m, f"fills{index}", fills, len(slot))
            moves = index < behind
            changes = takes
            if moves:
                fills = fills | (read_valid & read.shift)
                changes = self._decided(m, f"changes{index}", fills, len(slot))
            bits = len(slot) // len(takes)
            for part, (change, take) in enumerate(zip(changes, takes, strict=True)):
                piece = data.word_select(part, bits)
                if moves:
                    piece = Mux(take, piece, slots[index + behind].word_select(part, bits))
                with m.If(change):
                    m.d.sync += slot.word_select(part, bits).eq(piece)
        return slots

    def _words(self, m: Module, slots: list[Signal], read: Value) -> list[Signal]:
        """A word of the buffer, of rows or of a transposed square, or 0: registers to be ORed."""
        cfg = self.cfg
        first = slots[0]
        copy = (read.op == MoveOp.MMOV) | (read.op == MoveOp.MMOV_OTHER)
        choices = [(copy, first)]
        for row in range(cfg.m_par):
            is_it = (read.op == MoveOp.ROW) & (read.at[cfg.row_bytes_log2 :] == row)
            choices.append((is_it, first.word_select(row, cfg.row_bits).replicate(cfg.m_par)))
        for size in SIZES_LOG2:
            squares = Squares.of(cfg, size)
            for pick in range(squares.words):
                is_it = (read.op == MoveOp.MTRANS) & (read.size == size) & (read.pick == pick)
                choices.append((is_it, self._transposed(squares, slots, pick)))
        chosen = self._decided(m, "chosen", Cat(is_it for is_it, _ in choices), cfg.word_bits)
        bits = cfg.word_bits // len(chosen)
        # As many choices as one level of logic takes, where a register may follow.
        most = 4 if cfg.tile_memory == "block" else len(choices)
        words = []
        for start in range(0, len(choices), most):
            word = Signal(cfg.word_bits, name=f"word{start}", reset_less=True)
            for part, select in enumerate(chosen):
                terms = [
                    Mux(select[number], Value.cast(choices[number][1]).word_select(part, bits), 0)
                    for number in range(start, min(start + most, len(choices)))
                ]
                m.d.sync += word.word_select(part, bits).eq(reduce(or_, terms))
            words.append(word)
        return words

    # -- elements, repeated over 64 bits -------------------------------------------------------

    def _patterns(self, m: Module, word: Signal, read: Value) -> tuple[list[Signal], Signal]:
        """Of an element in each row of `word`, and of the scalar; 0 if it is not asked for."""
        cfg = self.cfg
        is_scalar = Signal(reset_less=True)
        of_rows = Signal(reset_less=True)
        scalar = read.op == MoveOp.SCALAR
        at = Mux(scalar, 0, read.at[: cfg.row_bytes_log2])
        m.d.sync += [
            is_scalar.eq(scalar),
            of_rows.eq((read.op == MoveOp.COLUMN) | (read.op == MoveOp.ELEMENT)),
        ]
        # Which byte of a row each byte of a pattern is.
        bytes_ = []
        for byte in range(VALUE_BITS // 8):
            source = Signal(cfg.row_bytes_log2, name=f"byte{byte}", reset_less=True)
            m.d.sync += source.eq(
                Cat(
                    Mux(read.size > bit, byte >> bit & 1, at[bit]) if bit in SIZES_LOG2 else at[bit]
                    for bit in range(cfg.row_bytes_log2)
                )
            )
            bytes_.append(source)

        def pattern(name, row, wanted):
            value = Signal(VALUE_BITS, name=name, reset_less=True)
            octets = [row.word_select(number, 8) for number in range(len(row) // 8)]
            m.d.sync += value.eq(Cat(choose(octets, source) for source in bytes_))
            # Resets of registers, which cost no logic.
            with m.If(~wanted):
                m.d.sync += value.eq(0)
            return value

        rows = [word.word_select(row, cfg.row_bits) for row in range(cfg.m_par)]
        patterns = [pattern(f"pattern{i}", row, of_rows) for i, row in enumerate(rows)]
        return patterns, pattern("scalar_pattern", self.scalar, is_scalar)

    def _repeated(self, patterns: list[Value]) -> Value:
        """A word whose rows hold patterns; of a single one, all of them."""
        cfg = self.cfg
        rows = [value.replicate(cfg.row_bits // VALUE_BITS) for value in patterns]
        return Cat(rows).replicate(cfg.m_par // len(rows))

    def _transposed(self, squares: Squares, slots: list[Signal], pick: int) -> Value:
        """Word `pick` of the transpose of the square in `slots`."""
        cfg = self.cfg
        down = squares.blocks > 1
        bits = 8 * squares.size
        elements = []
        for row in range(cfg.m_par):
            for column in range(cfg.row_bits // bits):
                if column >= squares.columns:  # wider rows: beside the group
                    elements.append(Const(0, bits))
                    continue
                # Its place in the transposed square, hence, swapped, in the square itself.
                from_column = row + (pick * cfg.m_par if down else 0)
                from_row = column + (0 if down else pick * squares.columns)
                slot = slots[from_row // cfg.m_par if down else from_column // squares.columns]
                at = (from_row % cfg.m_par) * cfg.row_bits + (from_column % squares.columns) * bits
                elements.append(slot[at : at + bits])
        return Cat(elements)
