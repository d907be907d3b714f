"""Split counters: how an instruction becomes micro-ops, one walk per unit (seed 001 4.2.1)."""

from __future__ import annotations

from amaranth.hdl import C, Cat, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ..config import Config
from ..interfaces import (
    OPERAND_TILES,
    bits_for,
    column_bits,
    ldst_fields,
    ldst_uop,
    mma_fields,
    mma_uop,
    transpose_parts,
)

__all__ = ["LdStSplit", "MmaSplit"]


class MmaSplit(wiring.Component):
    """Walk of a mma: columns of C fastest, then row blocks, then pairs (A_i, B_j), j before i.

    Before it, transposed operands are walked: parts fastest, then words, then tiles.

    Members
    -------
    start, fields : take a new instruction; its first uop is offered in the next cycle.
    step : the offered uop was taken.
    uop : the next uop, valid until the walk is over.
    free_a, free_b, free_c : after this uop its A, B or C tile is not needed any more.
    done : the last uop is taken in this cycle.

    Throughput: one uop a cycle.
    """

    def __init__(self, cfg: Config):
        self.cfg = cfg
        super().__init__(
            {
                "start": In(1),
                "fields": In(mma_fields(cfg)),
                "step": In(1),
                "uop": Out(mma_uop(cfg)),
                "free_a": Out(1),
                "free_b": Out(1),
                "free_c": Out(1),
                "done": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        cfg = self.cfg
        uop = self.uop
        fields = Signal(mma_fields(cfg), reset_less=True)

        i = Signal(2)
        j = Signal(2)
        block = Signal(max(1, cfg.blocks_log2))
        column = Signal(column_bits(cfg))
        c_row = Signal(cfg.tile_bits, reset_less=True)  # first group of this i
        c_group = Signal(cfg.tile_bits, reset_less=True)

        m_last = Signal(cfg.rows_log2)  # last row of this A tile
        n_last = Signal(column_bits(cfg))
        m.d.comb += [
            m_last.eq(Mux(i == fields.i_last, fields.m_last, fields.m_most)),
            n_last.eq(Mux(j == fields.j_last, fields.n_last, fields.n_most)),
        ]
        block_last = Signal()
        m.d.comb += block_last.eq(block == m_last[cfg.m_par_log2 :])

        # A chunk is as many columns as the array computes and one row of C holds.
        transposing = Signal()  # the walk has not begun
        step_columns = Signal(range(cfg.n_par + 1))
        with m.Switch(fields.width_log2):
            for width_log2 in range(4):
                with m.Case(width_log2):
                    m.d.comb += step_columns.eq(cfg.uop_columns(8 << width_log2))
        next_column = Signal(column_bits(cfg) + 1)
        column_last = Signal()
        m.d.comb += [
            next_column.eq(column + step_columns),
            column_last.eq(next_column > n_last),
        ]

        row_in_block = m_last[: cfg.m_par_log2]
        rows = Signal(cfg.m_par)
        m.d.comb += rows.eq(
            Cat(~block_last | (C(row, cfg.m_par) <= row_in_block) for row in range(cfg.m_par))
        )
        cols = Signal(cfg.n_par)
        m.d.comb += cols.eq(
            Cat((n < step_columns) & (column + n <= n_last) for n in range(cfg.n_par))
        )

        c_byte = Signal(column_bits(cfg) + 3)
        m.d.comb += c_byte.eq(column << fields.width_log2)
        m.d.comb += [
            uop.a.tile.eq(fields.a + i),
            uop.a.block.eq(block),
            uop.new_a.eq(column == 0),
            uop.b_tile.eq(fields.b + j),
            uop.b_row.eq(column),
            uop.c.tile.eq(c_group + c_byte[cfg.row_bytes_log2 :]),
            uop.c.block.eq(block),
            uop.new_c.eq(c_byte[: cfg.row_bytes_log2] == 0),
            uop.op.eq(fields.op),
            uop.op.rows.eq(rows),
            uop.op.cols.eq(cols),
            uop.op.c_byte.eq(c_byte[: cfg.row_bytes_log2]),
        ]

        if cfg.xuantie:
            self._registers(m, fields, block, column, rows, cols, c_group, c_byte)

        next_byte = Signal(column_bits(cfg) + 4)
        word_last = Signal()  # the last chunk of its C word
        m.d.comb += [
            next_byte.eq(next_column << fields.width_log2),
            word_last.eq(column_last | (next_byte[: cfg.row_bytes_log2] == 0)),
            self.free_a.eq(
                ~transposing & column_last & block_last & (j == fields.j_last) & ~fields.shared
            ),
            self.free_b.eq(
                ~transposing & column_last & block_last & (i == fields.i_last) & ~fields.shared
            ),
            self.free_c.eq(~transposing & word_last & block_last),
            self.done.eq(
                self.step
                & ~transposing
                & column_last
                & block_last
                & (i == fields.i_last)
                & (j == fields.j_last)
            ),
        ]

        if cfg.transposes:
            parts = transpose_parts(cfg)
            part = Signal(bits_for(parts))
            in_a, in_b = Signal(), Signal()
            last_tile = Signal()
            next_tile = Signal(range(OPERAND_TILES + 1))
            m.d.comb += [
                in_a.eq(fields.a_transposed & (~transposing | (j <= fields.i_last))),
                in_b.eq(fields.b_transposed & (~transposing | (j <= fields.j_last))),
                next_tile.eq(j + 1),
                last_tile.eq(
                    ~(fields.a_transposed & (next_tile <= fields.i_last))
                    & ~(fields.b_transposed & (next_tile <= fields.j_last))
                ),
                uop.transposes.eq(transposing),
                uop.a_transposed.eq(in_a),
                uop.b_transposed.eq(in_b),
                uop.a_index.eq(Mux(transposing, j, i)),
                uop.b_index.eq(j),
                uop.part.eq(part),
            ]
            with m.If(transposing):
                m.d.comb += [
                    uop.a.tile.eq(fields.a + j),
                    uop.b_row.eq(block << cfg.m_par_log2),
                    uop.new_c.eq(0),
                ]
            with m.If(self.step & transposing):
                m.d.sync += part.eq(part + 1)
                with m.If(part == parts - 1):
                    m.d.sync += [part.eq(0), block.eq(block + 1)]
                    with m.If(block == cfg.blocks - 1):
                        m.d.sync += [block.eq(0), j.eq(j + 1)]
                        with m.If(last_tile):
                            m.d.sync += [j.eq(0), transposing.eq(0)]
            with m.If(self.start):
                m.d.sync += [
                    transposing.eq(self.fields.a_transposed | self.fields.b_transposed),
                    part.eq(0),
                ]

        with m.If(self.step & ~transposing):
            m.d.sync += column.eq(next_column)
            with m.If(column_last):
                m.d.sync += [column.eq(0), block.eq(block + 1)]
                with m.If(block_last):
                    m.d.sync += [
                        block.eq(0),
                        j.eq(j + 1),
                        c_group.eq(c_group + fields.j_stride),
                    ]
                    with m.If(j == fields.j_last):
                        m.d.sync += [
                            j.eq(0),
                            i.eq(i + 1),
                            c_row.eq(c_row + fields.i_stride),
                            c_group.eq(c_row + fields.i_stride),
                        ]
        with m.If(self.start):
            m.d.sync += [
                fields.eq(self.fields),
                i.eq(0),
                j.eq(0),
                block.eq(0),
                column.eq(0),
                c_row.eq(self.fields.c),
                c_group.eq(self.fields.c),
            ]
        return m

    def _registers(self, m, fields, block, column, rows, cols, c_group, c_byte) -> None:
        """Registers of the front end xuantie: what follows in the next one, and the zeros."""
        cfg, uop = self.cfg, self.uop
        in_register = cfg.x_rows.bit_length() - 1
        live_rows, live_cols = Signal(cfg.m_par), Signal(cfg.n_par)
        first_row = Signal(cfg.rows_log2)
        m.d.comb += [
            first_row.eq(block << cfg.m_par_log2),
            live_rows.eq(Cat(first_row + row < fields.m_live for row in range(cfg.m_par))),
            live_cols.eq(Cat(column + n < fields.n_live for n in range(cfg.n_par))),
        ]
        with m.If(fields.registers):
            m.d.comb += [
                uop.b_tile.eq(fields.b + (column >> in_register) * cfg.x_tiles),
                uop.b_row.eq(column[:in_register]),
                uop.c.tile.eq(c_group + (c_byte >> cfg.row_bytes_log2) * cfg.x_tiles),
                uop.op.rows.eq(rows & live_rows),
                uop.op.cols.eq(cols & live_cols),
                uop.op.zero_rows.eq(rows & ~live_rows),
                uop.op.zero_cols.eq(cols & ~live_cols),
            ]


class LdStSplit(wiring.Component):
    """Walk of a load or store: slices of a row, groups, rows; `LineCut` cuts what crosses a line.

    Downwards, tile after tile; loads then zero what the active rows left (`fill`).

    Members
    -------
    start, fields, done : as for `MmaSplit`.
    step : the walk goes on; what is offered was taken.
    valid : `uop` is offered; low for a step where a tile needs no zeroing.
    uop : the next row of a tile, or block to zero. `more` here: the next uop's row starts
        row_bytes after this one's in memory.
    free : after this uop its tile is not needed any more (downwards only; along a row every tile
        is needed until the end).

    Throughput: one uop a step, one idle step for a named tile that needs no zeroing beside
    others that do. Every address there may be next is added up beside the choice among them, and
    what is asked of the group and the slice was found out with them.
    """

    def __init__(self, cfg: Config):
        self.cfg = cfg
        super().__init__(
            {
                "start": In(1),
                "fields": In(ldst_fields(cfg)),
                "step": In(1),
                "valid": Out(1),
                "uop": Out(ldst_uop(cfg)),
                "free": Out(1),
                "done": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        cfg = self.cfg
        uop = self.uop
        fields = Signal(ldst_fields(cfg), reset_less=True)
        row_bytes = cfg.row_bytes
        rb_log2 = cfg.row_bytes_log2

        addr = Signal(cfg.addr_bits, reset_less=True)  # of the next row's first byte
        group_at = Signal(cfg.addr_bits, reset_less=True)  # where its group starts
        row_at = Signal(cfg.addr_bits, reset_less=True)  # and its first group
        tile_next = Signal(cfg.addr_bits, reset_less=True)  # downwards, where the next tile starts
        row = Signal(cfg.rows_log2)
        group = Signal(3)
        slice_ = Signal(3)
        group_tile = Signal(cfg.tile_bits, reset_less=True)
        filling = Signal()
        fill_more = Signal()  # a later block of the tile being zeroed
        block = Signal(max(1, cfg.blocks_log2))

        # -- where we are ------------------------------------------------------------------
        down = fields.down
        tile = Signal(cfg.tile_bits)
        place = data.StructLayout(
            {
                "active": 1,  # it has active bytes (downwards: rows)
                "last": 1,  # no later one has
                "last_named": 1,  # the last of the named tiles is one of its
            }
        )
        group_is = Signal(place, reset_less=True)
        next_group_is = Signal(place)
        # Of the slice: it has active bytes if its group has; no later one of the group has.
        slice_is = Signal(data.StructLayout({"active": 1, "last": 1}), reset_less=True)

        def place_of(number, fields):
            """What is asked of group `number`."""
            last = Mux(fields.down, fields.tile_last, fields.group_last)
            return Cat(number <= last, number == last, number == fields.tiles >> fields.slices_log2)

        def slice_place_of(number, group_place, fields):
            """What is asked of slice `number` of a group."""
            few = ~fields.down & group_place.last
            last = Mux(few, fields.bytes_last, fields.bytes_most)[rb_log2:]
            return Cat(number <= last, number == last)

        slices_last = Signal(3)  # of the group, as named
        few_bytes = Signal()  # the last group has its own number of bytes, the last tile of rows
        few_rows = Signal()
        group_bytes = Signal.like(fields.bytes_most)
        rows_last = Signal(cfg.rows_log2)
        m.d.comb += [
            tile.eq(group_tile + slice_),
            slices_last.eq((1 << fields.slices_log2) - 1),
            few_bytes.eq(~down & group_is.last),
            few_rows.eq(~down | group_is.last),
            group_bytes.eq(Mux(few_bytes, fields.bytes_last, fields.bytes_most)),
            rows_last.eq(Mux(few_rows, fields.rows_last, fields.rows_most)),
        ]

        def by_group(rule):
            """A rule on the bytes of a group, both cases side by side with the choice."""
            return Mux(few_bytes, rule(fields.bytes_last), rule(fields.bytes_most))

        active = Signal()  # this tile has active bytes
        last_slice = Signal()
        last_tile_of_row = Signal()
        last_row = Signal(reset_less=True)  # of the tile, or of its group
        pitch_full = Signal(reset_less=True)  # groups lie side by side
        group_full = Signal()
        m.d.comb += [
            active.eq(group_is.active & slice_is.active),
            last_slice.eq(slice_is.last),
            last_tile_of_row.eq(down | (last_slice & group_is.last)),
            group_full.eq(by_group(lambda most: most[rb_log2:] == slices_last) & pitch_full),
        ]

        # -- zeroing ------------------------------------------------------------------------
        fill_row = Signal(cfg.rows_log2 + 1)  # first row to zero in this tile
        fill_needed = Signal()
        all_most = Signal(reset_less=True)  # tiles have so many rows: all
        all_last = Signal(reset_less=True)  # the last one has
        start_rows: Value | int = cfg.rows
        last_block: Value | int = cfg.blocks - 1
        if cfg.xuantie:
            start_rows = Mux(self.fields.registers, cfg.x_rows, cfg.rows)
            last_block = Mux(fields.registers, cfg.x_blocks - 1, cfg.blocks - 1)
        fill_block = Signal.like(block)
        m.d.comb += [
            fill_row.eq(Mux(active, rows_last + 1, 0)),
            fill_needed.eq(~(active & Mux(few_rows, all_last, all_most))),
            fill_block.eq(Mux(fill_more, block, fill_row[cfg.m_par_log2 : cfg.rows_log2])),
        ]
        fill_first = fill_row[: cfg.m_par_log2]
        fill_last_block = fill_block == last_block if cfg.blocks > 1 else C(1)

        m.d.comb += [
            self.valid.eq(~filling | fill_needed),
            uop.tile.eq(tile),
            uop.addr.eq(addr),
            uop.last.eq(Mux(last_slice, group_bytes[:rb_log2], row_bytes - 1)),
            uop.tail.eq(1),
            uop.half.eq(fields.half),
            uop.more.eq(
                ~filling
                & Mux(last_tile_of_row, fields.contiguous & ~last_row, ~last_slice | group_full)
            ),
            uop.zero.eq(filling),
            uop.row.eq(Mux(filling, fill_block << cfg.m_par_log2, row)),
            uop.rows.eq(Cat(fill_more | (C(r, cfg.m_par) >= fill_first) for r in range(cfg.m_par))),
        ]

        # -- next state --------------------------------------------------------------------
        last_named = group_is.last_named & (slice_ == fields.tiles & slices_last)
        tile_rows_done = Signal()  # downwards: this was the tile's last row
        fill_here = Signal()
        m.d.comb += [
            tile_rows_done.eq(~filling & last_tile_of_row & last_row),
            fill_here.eq(fields.fill & (fill_needed | ~down)),
        ]
        finish = Signal()  # no more work for this tile, downwards
        m.d.comb += finish.eq(
            Mux(filling, ~fill_needed | fill_last_block, tile_rows_done & ~fill_here)
        )
        m.d.comb += self.free.eq(down & finish)
        over = Signal()
        m.d.comb += [
            over.eq(
                Mux(
                    down | filling,
                    finish & last_named,
                    tile_rows_done & ~fields.fill,
                )
            ),
            self.done.eq(over & self.step),
        ]

        def below(stride, registers):
            """From a tile to the one below it in memory."""
            if cfg.xuantie:
                by_rows = stride << cfg.x_rows.bit_length() - 1
                return Mux(registers, by_rows, stride << cfg.rows_log2)
            return stride << cfg.rows_log2

        next_slice = Signal(cfg.addr_bits)
        next_group = Signal(cfg.addr_bits)
        next_row = Signal(cfg.addr_bits)
        next_group_tile = Signal(cfg.tile_bits)
        m.d.comb += [
            next_slice.eq(addr + row_bytes),
            next_group.eq(group_at + fields.pitch),
            next_row.eq(row_at + fields.stride),
            next_group_tile.eq(group_tile + fields.group_stride),
        ]
        registers = fields.registers if cfg.xuantie else None

        later_group = Signal.like(group)
        m.d.comb += [
            later_group.eq(group + 1),
            next_group_is.eq(place_of(later_group, fields)),
        ]
        later_slice = (slice_ + 1)[: len(slice_)]
        to_next_slice = [
            slice_.eq(later_slice),
            slice_is.eq(slice_place_of(later_slice, group_is, fields)),
        ]
        to_next_group = [
            slice_.eq(0),
            slice_is.eq(slice_place_of(0, next_group_is, fields)),
            group.eq(later_group),
            group_is.eq(next_group_is),
            group_tile.eq(next_group_tile),
        ]

        def first_place(fields):
            first = Signal(place, name="first_group_is")
            m.d.comb += first.eq(place_of(0, fields))
            return [
                slice_.eq(0),
                slice_is.eq(slice_place_of(0, first, fields)),
                group.eq(0),
                group_is.eq(first),
                group_tile.eq(fields.tile),
            ]

        # Of the first row of the next group, downwards.
        one_row_most = Signal(reset_less=True)
        one_row_last = Signal(reset_less=True)
        next_few_rows = ~down | next_group_is.last
        to_next_rows = last_row.eq(Mux(next_few_rows, one_row_last, one_row_most))
        later_row = (row + 1)[: len(row)]
        to_first_group = first_place(fields)
        start_at_first_group = first_place(self.fields)
        with m.If(self.step):
            with m.If(filling):
                m.d.sync += [block.eq(fill_block + 1), fill_more.eq(1)]
                with m.If(finish):
                    m.d.sync += fill_more.eq(0)
                    with m.If(down):
                        m.d.sync += [
                            filling.eq(~group_is.active | group_is.last),
                            *to_next_group,
                            to_next_rows,
                        ]
                    with m.Elif(slice_ == slices_last):
                        m.d.sync += to_next_group
                    with m.Else():
                        m.d.sync += to_next_slice
            with m.Elif(~last_tile_of_row):
                m.d.sync += [*to_next_slice, addr.eq(next_slice)]
                with m.If(last_slice):
                    m.d.sync += [*to_next_group, addr.eq(next_group), group_at.eq(next_group)]
            with m.Else():
                m.d.sync += [addr.eq(next_row), group_at.eq(next_row), row_at.eq(next_row)]
                m.d.sync += [
                    row.eq(later_row),
                    last_row.eq(
                        Mux(few_rows, later_row == fields.rows_last, later_row == fields.rows_most)
                    ),
                ]
                with m.If(~down):
                    m.d.sync += to_first_group
                with m.If(last_row):
                    m.d.sync += row.eq(0)
                    with m.If(fill_here):
                        m.d.sync += filling.eq(1)
                    with m.Elif(down):
                        m.d.sync += [
                            *to_next_group,
                            to_next_rows,
                            # Tiles past tile_last have no rows, only zeros to take.
                            filling.eq(group_is.last),
                        ]
                    with m.If(down):
                        m.d.sync += [
                            addr.eq(tile_next),
                            group_at.eq(tile_next),
                            row_at.eq(tile_next),
                            tile_next.eq(tile_next + below(fields.stride, registers)),
                        ]
        with m.If(self.start):
            start_registers = self.fields.registers if cfg.xuantie else None
            one_tile = ~self.fields.down | (self.fields.tile_last == 0)
            start_last_row = Mux(one_tile, self.fields.rows_last, self.fields.rows_most) == 0
            m.d.sync += [
                fields.eq(self.fields),
                addr.eq(self.fields.base),
                group_at.eq(self.fields.base),
                row_at.eq(self.fields.base),
                tile_next.eq(self.fields.base + below(self.fields.stride, start_registers)),
                *start_at_first_group,
                row.eq(0),
                filling.eq(0),
                fill_more.eq(0),
                one_row_most.eq(self.fields.rows_most == 0),
                one_row_last.eq(self.fields.rows_last == 0),
                last_row.eq(start_last_row),
                all_most.eq(self.fields.rows_most + 1 == start_rows),
                all_last.eq(self.fields.rows_last + 1 == start_rows),
                pitch_full.eq(
                    self.fields.pitch
                    == (row_bytes << self.fields.slices_log2)[: len(self.fields.pitch)]
                ),
            ]
        return m
