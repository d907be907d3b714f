"""The move unit: copies, zeroes, transposes and broadcasts through the A read and result port."""

from __future__ import annotations

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
    result : tile-file write, `LATENCY` cycles after the read.
    a_busy, result_busy : the MAC reads A in this cycle; writes a result when this move would.
    yield_ : a load has starved; leave it the next gap of the result port.
    scalar, scalar_done : what a scalar broadcast writes; it is not needed any more.
    element_valid, element : an element that was asked for.
    writing{0..2}, write_tile{0..2} : moves read but not written yet.

    Latency: `LATENCY` cycles from the read to the write, or to the element. Throughput: one word
    a cycle; transposes and rows read every word once and write every word once.
    Source: architecture.md section 1, tile register file; isa.md section 2, moves.
    """

    LATENCY = 3

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
        }
        for stage in range(self.LATENCY):
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
        read_valid, make_valid, write_valid = Signal(), Signal(), Signal()
        read = Signal(move_uop(cfg), reset_less=True)
        make = Signal(move_uop(cfg), reset_less=True)
        write_dst = Signal(tile_word(cfg), reset_less=True)
        word = Signal(cfg.word_bits, reset_less=True)
        m.d.sync += [
            read_valid.eq(go),
            read.eq(uop),
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
            with m.If(read_valid & read.read & (read.slot == index)):
                m.d.sync += slot.eq(self.a.data)

        # -- elements of each row, as patterns of 64 bit ---------------------------------------
        first = slots[0]
        rows = [first[i * cfg.row_bits : (i + 1) * cfg.row_bits] for i in range(cfg.m_par)]
        is_scalar = Signal()
        column = Signal(cfg.row_bytes_log2)
        m.d.comb += [
            is_scalar.eq(make.op == MoveOp.SCALAR),
            column.eq(Mux(is_scalar, 0, make.at)),
        ]
        patterns = [
            self._pattern(m, f"row{i}", row, column, make.size, is_scalar)
            for i, row in enumerate(rows)
        ]
        row_of_word = make.at[cfg.row_bytes_log2 :]

        # -- what is written: one of a few words, numbered one stage before --------------------
        repeat = cfg.row_bits // VALUE_BITS
        copy, row, pattern = range(3)
        choices = {
            copy: first,
            row: self._select(rows, row_of_word).replicate(cfg.m_par),
            pattern: Cat(value.replicate(repeat) for value in patterns),
        }
        transposes = {}
        for size in SIZES_LOG2:
            squares = Squares.of(cfg, size)
            for pick in range(squares.words):
                transposes[size, pick] = len(choices)
                choices[len(choices)] = self._transposed(squares, slots, pick)
        choice = Signal(range(len(choices)), reset_less=True)
        with m.Switch(read.op):
            with m.Case(MoveOp.MMOV, MoveOp.MMOV_OTHER):
                m.d.sync += choice.eq(copy)
            with m.Case(MoveOp.ROW):
                m.d.sync += choice.eq(row)
            with m.Case(MoveOp.COLUMN, MoveOp.SCALAR):
                m.d.sync += choice.eq(pattern)
            with m.Case(MoveOp.MTRANS), m.Switch(Cat(read.pick, read.size)):
                for (size, pick), number in transposes.items():
                    with m.Case(pick | size << len(read.pick)):
                        m.d.sync += choice.eq(number)
        with m.Switch(choice):
            for number, value in choices.items():
                with m.Case(number):
                    m.d.sync += word.eq(value)
        with m.If(make.op == MoveOp.MZERO):
            m.d.sync += word.eq(0)  # a register reset
        m.d.comb += [
            self.scalar_done.eq(make_valid & is_scalar & ~make.more),
            self.result.valid.eq(write_valid),
            self.result.addr.eq(write_dst),
            self.result.data.eq(word),
            self.result.mask.eq(~0),
            self.writing0.eq(read_valid & read.write),
            self.write_tile0.eq(read.dst.tile),
            self.writing1.eq(make_valid & make.write),
            self.write_tile1.eq(make.dst.tile),
            self.writing2.eq(write_valid),
            self.write_tile2.eq(write_dst.tile),
        ]

        # -- the element that is answered ------------------------------------------------------
        element = Signal(VALUE_BITS, name="element_reg", reset_less=True)
        mask = Signal(VALUE_BITS)
        with m.Switch(make.size):
            for size in SIZES_LOG2:
                with m.Case(size):
                    m.d.comb += mask.eq((1 << (8 << size)) - 1)
        m.d.sync += [
            element.eq(self._select(patterns, row_of_word) & mask),
            self.element_valid.eq(make_valid & (make.op == MoveOp.ELEMENT)),
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
        self, m: Module, name: str, row: Value, byte: Value, size: Value, is_scalar: Value
    ) -> Signal:
        """The element of `row` (or of the scalar) that starts at `byte`, repeated over 64 bits."""
        piece = row.word_select(byte[3:], VALUE_BITS) if len(row) > VALUE_BITS else row
        value = Signal(VALUE_BITS, name=f"{name}_piece")
        m.d.comb += value.eq(Mux(is_scalar, self.scalar, piece))
        # Halve what is left of it until it is the element, and repeat that.
        for log2 in reversed(range(max(SIZES_LOG2))):
            bits = 8 << log2
            halved = Signal(VALUE_BITS, name=f"{name}_of{bits}")
            high = byte[log2]
            parts = []
            for at in range(0, VALUE_BITS, 2 * bits):
                low_half, high_half = value[at : at + bits], value[at + bits : at + 2 * bits]
                parts += [
                    Mux((size <= log2) & high, high_half, low_half),
                    Mux((size <= log2) & ~high, low_half, high_half),
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
