"""Split counters: how an instruction becomes micro-ops, one walk per unit (seed 001 4.2.1)."""

from __future__ import annotations

from amaranth.hdl import C, Cat, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..config import Config
from ..interfaces import (
    OPERAND_TILES,
    bits_for,
    column_bits,
    group_place,
    ldst_fields,
    ldst_uop,
    mma_fields,
    mma_uop,
    slice_place,
    transpose_parts,
)
from .walk_start import fill_of, first_slice_of, group_of, whole_of

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

        # Whether each is the last is known with it, as much hangs on that: also for a walk's first.
        i_is_last = Signal(reset_less=True)
        j_is_last = Signal(reset_less=True)
        block_is_last = Signal(reset_less=True)
        column_is_last = Signal(reset_less=True)
        one_block = Signal(2, reset_less=True)  # A tiles have a single one: most, the last
        one_chunk = Signal(2, reset_less=True)  # B tiles have
        m_last = Signal(cfg.rows_log2)  # last row of this A tile
        n_last = Signal(column_bits(cfg))
        m.d.comb += [
            m_last.eq(Mux(i_is_last, fields.m_last, fields.m_most)),
            n_last.eq(Mux(j_is_last, fields.n_last, fields.n_most)),
        ]
        row_in_block = m_last[: cfg.m_par_log2]
        rows = Signal(cfg.m_par)
        m.d.comb += rows.eq(
            Cat(~block_is_last | (C(row, cfg.m_par) <= row_in_block) for row in range(cfg.m_par))
        )

        # A chunk is as many columns as the array computes and one row of C holds: a power of two,
        # so that the bits above it tell chunks apart, and whole words of C.
        transposing = Signal()  # the walk has not begun
        later_column = Signal(column_bits(cfg))
        later_column_is_last = Signal()
        start_one_chunk = Signal.like(one_chunk)
        word_ends = Signal()  # the chunk is the last of a whole C word
        cols = Signal(cfg.n_par)
        for width_log2 in range(4):
            columns = cfg.uop_columns(8 << width_log2)
            chunk = columns.bit_length() - 1
            with m.If(fields.width_log2 == width_log2):
                m.d.comb += [
                    later_column.eq(column + columns),
                    later_column_is_last.eq(later_column[chunk:] == n_last[chunk:]),
                    word_ends.eq(column[chunk : cfg.row_bytes_log2 - width_log2].all()),
                    cols.eq(
                        Cat(
                            ~column_is_last | (C(n, chunk + 1) <= n_last[:chunk])
                            for n in range(columns)
                        )
                    ),
                ]
            with m.If(self.fields.width_log2 == width_log2):
                lasts = (self.fields.n_most, self.fields.n_last)
                m.d.comb += start_one_chunk.eq(Cat(last[chunk:] == 0 for last in lasts))

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

        word_last = Signal()  # the last chunk of its C word
        m.d.comb += [
            word_last.eq(column_is_last | word_ends),
            self.free_a.eq(
                ~transposing & column_is_last & block_is_last & j_is_last & ~fields.shared
            ),
            self.free_b.eq(
                ~transposing & column_is_last & block_is_last & i_is_last & ~fields.shared
            ),
            self.free_c.eq(~transposing & word_last & block_is_last),
            self.done.eq(
                self.step & ~transposing & column_is_last & block_is_last & i_is_last & j_is_last
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

        later_i, later_j = (i + 1)[: len(i)], (j + 1)[: len(j)]
        later_block = (block + 1)[: len(block)]
        later_j_is_last = Signal()
        m.d.comb += later_j_is_last.eq(Mux(j_is_last, fields.j_last == 0, later_j == fields.j_last))
        first_column_is_last = Mux(j_is_last, one_chunk[1], one_chunk[0])
        first_block_is_last = Mux(i_is_last, one_block[1], one_block[0])
        with m.If(self.step & ~transposing):
            m.d.sync += [column.eq(later_column), column_is_last.eq(later_column_is_last)]
            with m.If(column_is_last):
                m.d.sync += [
                    column.eq(0),
                    column_is_last.eq(first_column_is_last),
                    block.eq(later_block),
                    block_is_last.eq(later_block == m_last[cfg.m_par_log2 :]),
                ]
                with m.If(block_is_last):
                    m.d.sync += [
                        column_is_last.eq(Mux(later_j_is_last, one_chunk[1], one_chunk[0])),
                        block.eq(0),
                        block_is_last.eq(first_block_is_last),
                        j.eq(later_j),
                        j_is_last.eq(later_j_is_last),
                        c_group.eq(c_group + fields.j_stride),
                    ]
                    with m.If(j_is_last):
                        later_i_is_last = later_i == fields.i_last
                        m.d.sync += [
                            block_is_last.eq(Mux(later_i_is_last, one_block[1], one_block[0])),
                            j.eq(0),
                            i.eq(later_i),
                            i_is_last.eq(later_i_is_last),
                            c_row.eq(c_row + fields.i_stride),
                            c_group.eq(c_row + fields.i_stride),
                        ]
        with m.If(self.start):
            coming = self.fields
            start_one_block = [
                last[cfg.m_par_log2 :] == 0 for last in (coming.m_most, coming.m_last)
            ]
            start_i_is_last, start_j_is_last = coming.i_last == 0, coming.j_last == 0
            m.d.sync += [
                fields.eq(coming),
                one_block.eq(Cat(start_one_block)),
                one_chunk.eq(start_one_chunk),
                i.eq(0),
                i_is_last.eq(start_i_is_last),
                j.eq(0),
                j_is_last.eq(start_j_is_last),
                block.eq(0),
                block_is_last.eq(Mux(start_i_is_last, start_one_block[1], start_one_block[0])),
                column.eq(0),
                column_is_last.eq(Mux(start_j_is_last, start_one_chunk[1], start_one_chunk[0])),
                c_row.eq(coming.c),
                c_group.eq(coming.c),
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
    crosses : it is a row that crosses a cache line.
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
                "crosses": Out(1),
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
        # What is asked of where the walk is, known with it: `group_is` of the group.
        place = group_place()
        group_is = Signal(place, reset_less=True)
        next_group_is = Signal(place, reset_less=True)  # of the group behind it
        # And of the slice in it.
        slice_is = Signal(slice_place(), reset_less=True)

        # The same for a whole walk: of the groups, and of the first slice of any group.
        last_active = Signal(3, reset_less=True)  # group
        last_named = Signal(3, reset_less=True)
        named_slice = Signal(3, reset_less=True)  # where the last named tile lies in its group
        all_most = Signal(reset_less=True)  # tiles have so many rows: all
        all_last = Signal(reset_less=True)  # the last one has
        fill_ends_most = Signal(reset_less=True)  # behind so many rows is the tile's last block
        fill_ends_last = Signal(reset_less=True)  # behind those of the last one
        one_slice_most = Signal(reset_less=True)  # groups have so many active slices: one
        one_slice_last = Signal(reset_less=True)  # the last one has

        def slice_place_of(number):
            """What is asked of slice `number` of this group."""
            last_bytes = Mux(group_is.few_bytes, fields.bytes_last, fields.bytes_most)[rb_log2:]
            active = number <= last_bytes
            last = number == last_bytes
            return Cat(
                active,
                last,
                fields.down | (last & group_is.last),
                number == slices_last,
                (number == named_slice) & group_is.last_named,
                *fill_of(cfg, fields, group_is, active, (all_most, all_last), fill_ends),
            )

        fill_ends = (fill_ends_most, fill_ends_last)

        slices_last = Signal(3)  # of the group, as named
        few_bytes, few_rows = group_is.few_bytes, group_is.few_rows
        group_bytes = Signal.like(fields.bytes_most)
        rows_last = Signal(cfg.rows_log2)
        m.d.comb += [
            tile.eq(group_tile + slice_),
            slices_last.eq((1 << fields.slices_log2) - 1),
            group_bytes.eq(Mux(few_bytes, fields.bytes_last, fields.bytes_most)),
            rows_last.eq(Mux(few_rows, fields.rows_last, fields.rows_most)),
        ]

        def by_group(rule):
            """A rule on the bytes of a group, both cases side by side with the choice."""
            return Mux(few_bytes, rule(fields.bytes_last), rule(fields.bytes_most))

        last_row = Signal(reset_less=True)  # of the tile, or of its group
        pitch_full = Signal(reset_less=True)  # groups lie side by side
        group_full = Signal()
        m.d.comb += group_full.eq(by_group(lambda most: most[rb_log2:] == slices_last) & pitch_full)

        # -- zeroing ------------------------------------------------------------------------
        fill_row = Signal(cfg.rows_log2 + 1)  # first row to zero in this tile
        last_block: Value | int = cfg.blocks - 1
        if cfg.xuantie:
            last_block = Mux(fields.registers, cfg.x_blocks - 1, cfg.blocks - 1)
        fill_block = Signal.like(block)
        m.d.comb += [
            fill_row.eq(Mux(group_is.active & slice_is.active, rows_last + 1, 0)),
            fill_block.eq(Mux(fill_more, block, fill_row[cfg.m_par_log2 : cfg.rows_log2])),
        ]
        fill_first = fill_row[: cfg.m_par_log2]
        block_is_last = Signal(reset_less=True)
        fill_last_block = Mux(fill_more, block_is_last, slice_is.fill_ends)

        m.d.comb += [
            self.valid.eq(~filling | slice_is.needs_fill),
            uop.tile.eq(tile),
            uop.addr.eq(addr),
            uop.last.eq(Mux(slice_is.last, group_bytes[:rb_log2], row_bytes - 1)),
            uop.tail.eq(1),
            uop.half.eq(fields.half),
            uop.more.eq(
                ~filling
                & Mux(slice_is.ends_row, fields.contiguous & ~last_row, ~slice_is.last | group_full)
            ),
            uop.zero.eq(filling),
            uop.row.eq(Mux(filling, fill_block << cfg.m_par_log2, row)),
            uop.rows.eq(Cat(fill_more | (C(r, cfg.m_par) >= fill_first) for r in range(cfg.m_par))),
        ]

        # Without adding up, and for every length that the row may have.
        def carries(last):
            """From the row's bytes into those of the line."""
            carry = C(0, 1)
            for one, two in zip(addr[:rb_log2], last, strict=False):
                carry = (one & two) | ((one | two) & carry)
            return carry

        whole = addr[:rb_log2].any()
        m.d.comb += self.crosses.eq(
            ~filling
            & addr[rb_log2 : cfg.line_bytes_log2].all()
            & Mux(slice_is.last, by_group(carries), whole)
        )

        # -- next state --------------------------------------------------------------------
        tile_rows_done = Signal()  # downwards: this was the tile's last row
        m.d.comb += tile_rows_done.eq(~filling & slice_is.ends_row & last_row)
        finish = Signal()  # no more work for this tile, downwards
        m.d.comb += finish.eq(
            Mux(filling, ~slice_is.needs_fill | fill_last_block, tile_rows_done & ~slice_is.zeroed)
        )
        m.d.comb += self.free.eq(down & finish)
        over = Signal()
        m.d.comb += [
            over.eq(
                Mux(
                    down | filling,
                    finish & slice_is.last_named,
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

        later_group = (group + 1)[: len(group)]
        second_next = (group + 2)[: len(group)]
        later_slice = (slice_ + 1)[: len(slice_)]
        to_next_slice = [slice_.eq(later_slice), slice_is.eq(slice_place_of(later_slice))]
        first_slice = (
            slices_last,
            named_slice,
            (one_slice_most, one_slice_last),
            (all_most, all_last),
            fill_ends,
        )
        to_next_group = [
            slice_.eq(0),
            slice_is.eq(first_slice_of(cfg, fields, next_group_is, *first_slice)),
            group.eq(later_group),
            group_is.eq(next_group_is),
            next_group_is.eq(group_of(second_next, down, last_active, last_named)),
            group_tile.eq(next_group_tile),
        ]
        first_group_is = Signal(place)
        second_group_is = Signal(place)
        m.d.comb += [
            first_group_is.eq(group_of(C(0, 3), down, last_active, last_named)),
            second_group_is.eq(group_of(C(1, 3), down, last_active, last_named)),
        ]
        to_first_group = [
            slice_.eq(0),
            slice_is.eq(first_slice_of(cfg, fields, first_group_is, *first_slice)),
            group.eq(0),
            group_is.eq(first_group_is),
            next_group_is.eq(second_group_is),
            group_tile.eq(fields.tile),
        ]

        # Of the first row of the next group, downwards.
        one_row_most = Signal(reset_less=True)
        one_row_last = Signal(reset_less=True)
        to_next_rows = last_row.eq(Mux(next_group_is.few_rows, one_row_last, one_row_most))
        later_row = (row + 1)[: len(row)]
        with m.If(self.step):
            with m.If(filling):
                later_block = (fill_block + 1)[: len(block)]
                m.d.sync += [
                    block.eq(later_block),
                    block_is_last.eq(later_block == last_block),
                    fill_more.eq(1),
                ]
                with m.If(finish):
                    m.d.sync += fill_more.eq(0)
                    with m.If(down):
                        m.d.sync += [
                            filling.eq(~group_is.active | group_is.last),
                            *to_next_group,
                            to_next_rows,
                        ]
                    with m.Elif(slice_is.ends_group):
                        m.d.sync += to_next_group
                    with m.Else():
                        m.d.sync += to_next_slice
            with m.Elif(~slice_is.ends_row):
                m.d.sync += [*to_next_slice, addr.eq(next_slice)]
                with m.If(slice_is.last):
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
                    with m.If(slice_is.zeroed):
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
            coming = self.fields
            start_registers = coming.registers if cfg.xuantie else None
            whole, first = whole_of(cfg, coming), coming.start
            m.d.sync += [
                fields.eq(coming),
                addr.eq(coming.base),
                group_at.eq(coming.base),
                row_at.eq(coming.base),
                tile_next.eq(coming.base + below(coming.stride, start_registers)),
                last_active.eq(whole.last_active),
                last_named.eq(whole.last_named),
                named_slice.eq(whole.named_slice),
                Cat(one_slice_most, one_slice_last).eq(Cat(whole.one_slice)),
                Cat(all_most, all_last).eq(Cat(whole.full)),
                Cat(fill_ends).eq(Cat(whole.fill_ends)),
                Cat(one_row_most, one_row_last).eq(Cat(whole.one_row)),
                slice_.eq(0),
                slice_is.eq(first.slice),
                group.eq(0),
                group_is.eq(first.group),
                next_group_is.eq(first.next_group),
                group_tile.eq(coming.tile),
                row.eq(0),
                filling.eq(0),
                fill_more.eq(0),
                last_row.eq(first.last_row),
                pitch_full.eq(
                    coming.pitch == (row_bytes << coming.slices_log2)[: len(coming.pitch)]
                ),
            ]
        return m
