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
    a : tile-file read on the A port; the MAC goes first.
    result : tile-file write, `Config.move_latency` cycles after the read.
    a_busy, result_busy : the MAC reads A in this cycle; writes a result when this move would.
    yield_ : a load has starved; leave it the next gap of the result port.
    scalar, scalar_done : what a scalar broadcast writes; it is not needed any more.
    element_valid, element : an element that was asked for.
    writing{0..2}, write_tile{0..2} : moves that were read one, two, three cycles ago.
    idle : no move is between its read and its write.

    Latency: `Config.move_latency` cycles from the read to the write, one more to the element.
    Throughput: one word a cycle; transposes and rows read and write every word once.
    Source: architecture.md section 1, tile register file; isa.md section 2, moves.
    """

    TOLD = 3
    """Cycles from its read on that a move is told of; who waits for it comes after its write."""

    def __init__(self, cfg: Config):
        self.cfg = cfg
        members = {
            "uops": In(stream.Signature(move_uop(cfg))),
            "a": Out(ReadPort(tile_word(cfg), cfg.word_bits)),
            "result": Out(result_write(cfg)),
            "a_busy": In(1),
            "result_busy": In(1),
            "yield_": In(1),
            "scalar": In(VALUE_BITS),
            "scalar_done": Out(1),
            "element_valid": Out(1),
            "element": Out(VALUE_BITS),
            "idle": Out(1),
        }
        for stage in range(self.TOLD):
            members[f"writing{stage}"] = Out(1)
            members[f"write_tile{stage}"] = Out(cfg.tile_bits)
        super().__init__(members)

    def elaborate(self, platform):
        m = Module()
        cfg = self.cfg
        uop = self.uops.payload
        go = Signal()
        may = Signal()
        m.d.comb += [
            may.eq(~(uop.read & self.a_busy) & ~(uop.write & (self.result_busy | self.yield_))),
            self.uops.ready.eq(may & self.a.ready),
            go.eq(self.uops.valid & self.uops.ready),
            self.a.valid.eq(self.uops.valid & may & uop.read),
            self.a.addr.eq(uop.src),
        ]

        # -- stages: read, make, write ---------------------------------------------------------
        going = [(go, uop)]  # and then one cycle after the other, until its word is here
        for stage in range(cfg.read_latency):
            valid_q = Signal(name=f"read{stage}_valid")
            uop_q = Signal(move_uop(cfg), name=f"read{stage}", reset_less=True)
            m.d.sync += [valid_q.eq(going[-1][0]), uop_q.eq(going[-1][1])]
            going.append((valid_q, uop_q))
        read_valid, read = going[-1]
        make_valid, write_valid = Signal(), Signal()
        make = Signal(move_uop(cfg), reset_less=True)
        write_dst = Signal(tile_word(cfg), reset_less=True)
        word = Signal(cfg.word_bits, reset_less=True)
        m.d.sync += [
            make_valid.eq(read_valid),
            make.eq(read),
            write_valid.eq(make_valid & make.write),
            write_dst.eq(make.dst),
        ]
        slots = [
            Signal(cfg.word_bits, name=f"slot{index}", reset_less=True)
            for index in range(buffer_words(cfg))
        ]
        behind = second_slot(cfg)
        for index, slot in enumerate(slots):
            if index < behind:
                with m.If(make_valid & make.shift):
                    m.d.sync += slot.eq(slots[index + behind])
            # Known one stage before, as words are wide.
            fills = Signal(name=f"fills{index}")
            valid, by = going[-2]
            m.d.sync += fills.eq(valid & by.read & (by.slot == index))
            with m.If(fills):
                m.d.sync += slot.eq(self.a.data)

        # -- elements of each row, as patterns of 64 bit ---------------------------------------
        first = slots[0]
        rows = [first[i * cfg.row_bits : (i + 1) * cfg.row_bits] for i in range(cfg.m_par)]
        is_scalar = Signal(reset_less=True)
        column = Signal(cfg.row_bytes_log2, reset_less=True)
        # For each half of a piece: it is the element, or holds it.
        low = Signal(max(SIZES_LOG2), reset_less=True)
        high = Signal(max(SIZES_LOG2), reset_less=True)
        scalar = read.op == MoveOp.SCALAR
        at = Mux(scalar, 0, read.at)
        m.d.sync += [
            is_scalar.eq(scalar),
            column.eq(at),
            low.eq(Cat((read.size <= log2) & ~at[log2] for log2 in range(len(low)))),
            high.eq(Cat((read.size <= log2) & at[log2] for log2 in range(len(high)))),
        ]
        patterns = []
        for i, row in enumerate(rows):
            pattern = Signal(VALUE_BITS, name=f"pattern{i}", reset_less=True)
            m.d.sync += pattern.eq(self._pattern(m, f"row{i}", row, column, low, high, is_scalar))
            patterns.append(pattern)
        row_of_word = make.at[cfg.row_bytes_log2 :]

        # -- what is written: a word, a row of it, a transposed word or the patterns; what it is not
        # -- is zero, and which transposed word is known one stage before
        is_copy, is_row, is_pattern, is_transpose = Signal(), Signal(), Signal(), Signal()
        m.d.comb += [
            is_copy.eq((make.op == MoveOp.MMOV) | (make.op == MoveOp.MMOV_OTHER)),
            is_row.eq(make.op == MoveOp.ROW),
            is_pattern.eq(is_scalar | (make.op == MoveOp.COLUMN)),
            is_transpose.eq(make.op == MoveOp.MTRANS),
        ]
        by_pattern = Signal(reset_less=True)
        turned = Signal(cfg.word_bits, reset_less=True)
        m.d.sync += [
            by_pattern.eq(is_pattern),
            word.eq(Mux(is_row, self._select(rows, row_of_word).replicate(cfg.m_par), first)),
        ]
        choices = [
            (size, pick, Squares.of(cfg, size))
            for size in SIZES_LOG2
            for pick in range(Squares.of(cfg, size).words)
        ]
        chosen = Signal(len(choices), reset_less=True)
        terms = []
        for number, (size, pick, squares) in enumerate(choices):
            m.d.sync += chosen[number].eq((read.size == size) & (read.pick == pick))
            terms.append(Mux(chosen[number], self._transposed(squares, slots, pick), 0))
        m.d.sync += turned.eq(reduce(or_, terms))
        # Resets of registers, which cost no logic.
        with m.If(~(is_copy | is_row)):
            m.d.sync += word.eq(0)
        with m.If(~is_transpose):
            m.d.sync += turned.eq(0)
        repeat = cfg.row_bits // VALUE_BITS
        pattern_word = Cat(value.replicate(repeat) for value in patterns)
        m.d.comb += [
            self.scalar_done.eq(make_valid & is_scalar & ~make.more),
            self.result.valid.eq(write_valid),
            self.result.addr.eq(write_dst),
            self.result.data.eq(word | turned | Mux(by_pattern, pattern_word, 0)),
            self.result.mask.eq(~0),
        ]
        writes = [(valid & by.write, by.dst.tile) for valid, by in [*going[1:], (make_valid, make)]]
        writes.append((write_valid, write_dst.tile))
        for stage, (valid, tile) in enumerate(writes[: self.TOLD]):
            m.d.comb += [
                getattr(self, f"writing{stage}").eq(valid),
                getattr(self, f"write_tile{stage}").eq(tile),
            ]
        m.d.comb += self.idle.eq(~Cat(valid for valid, _ in writes).any())

        # -- the element that is answered ------------------------------------------------------
        element = Signal(VALUE_BITS, name="element_reg", reset_less=True)
        element_row = Signal.like(row_of_word, reset_less=True)
        element_size = Signal.like(make.size, reset_less=True)
        answers = Signal()
        mask = Signal(VALUE_BITS)
        with m.Switch(element_size):
            for size in SIZES_LOG2:
                with m.Case(size):
                    m.d.comb += mask.eq((1 << (8 << size)) - 1)
        m.d.sync += [
            element_row.eq(row_of_word),
            element_size.eq(make.size),
            answers.eq(make_valid & (make.op == MoveOp.ELEMENT)),
            element.eq(self._select(patterns, element_row) & mask),
            self.element_valid.eq(answers),
        ]
        m.d.comb += self.element.eq(element)
        return m

    @staticmethod
    def _select(values: list[Value], index: Value) -> Value:
        """One of a power of two of equally wide values."""
        if len(values) == 1:
            return values[0]
        return Cat(values).word_select(index, len(values[0]))

    def _pattern(
        self,
        m: Module,
        name: str,
        row: Value,
        byte: Value,
        low: Value,
        high: Value,
        is_scalar: Value,
    ) -> Signal:
        """The element of `row` (or of the scalar) that starts at `byte`, repeated over 64 bits."""
        piece = row.word_select(byte[3:], VALUE_BITS) if len(row) > VALUE_BITS else row
        value = Signal(VALUE_BITS, name=f"{name}_piece")
        m.d.comb += value.eq(Mux(is_scalar, self.scalar, piece))
        # Halve what is left of it until it is the element, and repeat that.
        for log2 in reversed(range(max(SIZES_LOG2))):
            bits = 8 << log2
            halved = Signal(VALUE_BITS, name=f"{name}_of{bits}")
            parts = []
            for at in range(0, VALUE_BITS, 2 * bits):
                low_half, high_half = value[at : at + bits], value[at + bits : at + 2 * bits]
                parts += [
                    Mux(high[log2], high_half, low_half),
                    Mux(low[log2], low_half, high_half),
                ]
            m.d.comb += halved.eq(Cat(parts))
            value = halved
        return value

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
