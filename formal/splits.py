"""Proofs of the split counters: what an instruction's walk covers, in which order, and its end.

A walk is followed by its uops alone. Of each, the coordinates are recovered; the first must be the
start of the walk, each later one the successor of the one before, by rules written here anew from
architecture.md section 1 and the layouts' contracts. Successors never leave the walk and always
grow, so every block comes exactly once, in order, and the walk ends.
"""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Mux, Signal, Value

from hdl.config import Config
from hdl.interfaces import ldst_fields, mma_fields, move_fields, transpose_parts
from hdl.isa import MoveOp
from hdl.issue.move_split import MoveSplit
from hdl.issue.split import LdStSplit, MmaSplit

from .contracts import BY_TILE, ldst_rules, move_rules
from .harness import Proof
from .task import Task, mutants
from .walk import Walk, grows

__all__ = ["MUTANTS", "TASKS"]


def mma(cfg: Config) -> Proof:
    """The walk of a mma: pairs of tiles, row blocks, chunks of columns."""
    p = Proof()
    layout = mma_fields(cfg)
    w = Walk(p, MmaSplit(cfg), layout)
    m, f, uop, split = p.m, w.fields, w.split.uop, w.split
    tile = cfg.tile_bits

    # Where the uop is. Tiles are counted from the base, modulo the tiles there are.
    i = p.signal((uop.a.tile - f.a)[:tile], "i")
    j = p.signal((uop.b_tile - f.b)[:tile], "j")
    block, column = uop.a.block, uop.b_row
    transposes = uop.transposes if cfg.transposes else Const(0)
    walking = p.signal(w.active & ~transposes, "walking")

    m_last = p.signal(Mux(i == f.i_last, f.m_last, f.m_most), "rows_last")
    n_last = p.signal(Mux(j == f.j_last, f.n_last, f.n_most), "columns_last")
    block_last = p.signal(m_last >> cfg.m_par_log2, "block_last")
    chunk = Signal(range(cfg.n_par + 1), name="chunk")
    with m.Switch(f.width_log2):
        for width in range(4):
            with m.Case(width):
                m.d.comb += chunk.eq(max(1, min(cfg.n_par, cfg.row_bits // (8 << width))))

    here = {"i": i, "j": j, "block": block, "column": column, "rows_last": m_last}
    here |= {"columns_last": n_last, "blocks_last": block_last}
    old = {name: w.held(value, name) for name, value in here.items()}
    first = Signal(name="first", init=1)  # no uop of the walk proper was taken
    with m.If(w.start):
        m.d.sync += first.eq(1)
    with m.Elif(w.step & ~transposes):
        m.d.sync += first.eq(0)

    column_over = old["column"] + chunk > old["columns_last"]
    block_over = old["block"] == old["blocks_last"]
    j_over = old["j"] == f.j_last
    follows = Signal(name="follows")
    with m.If(~column_over):
        m.d.comb += follows.eq(
            (column == old["column"] + chunk)
            & (Cat(i, j, block) == Cat(old["i"], old["j"], old["block"]))
        )
    with m.Elif(~block_over):
        m.d.comb += follows.eq(
            (column == 0) & (block == old["block"] + 1) & (Cat(i, j) == Cat(old["i"], old["j"]))
        )
    with m.Elif(~j_over):
        m.d.comb += follows.eq((column == 0) & (block == 0) & (j == old["j"] + 1) & (i == old["i"]))
    with m.Else():
        m.d.comb += follows.eq((column == 0) & (block == 0) & (j == 0) & (i == old["i"] + 1))

    last = p.signal(
        (i == f.i_last) & (j == f.j_last) & (block == block_last) & (column + chunk > n_last),
        "last",
    )
    p.check("starts_at_zero", ~(walking & first) | (Cat(i, j, block, column) == 0))
    p.check("successor", ~walking | first | follows)
    key = (i, j, block, column)
    p.check("grows", ~walking | first | grows([old[n] for n in ("i", "j", "block", "column")], key))
    p.check(
        "inside",
        ~walking | ((i <= f.i_last) & (j <= f.j_last) & (block <= block_last) & (column <= n_last)),
    )
    p.check("ends_with_the_last", split.done == (w.step & walking & last))

    # Where results go, and which elements count.
    byte = p.signal((column << f.width_log2)[: cfg.rows_log2 + 3], "byte")
    group = p.signal((f.c + i * f.i_stride + j * f.j_stride)[:tile], "group")
    row_bytes = cfg.row_bytes_log2
    p.check(
        "result_place",
        ~walking
        | (
            (uop.c.tile == (group + (byte >> row_bytes))[:tile])
            & (uop.c.block == block)
            & (uop.op.c_byte == byte[:row_bytes])
            & (uop.new_c == (byte[:row_bytes] == 0))
            & (uop.new_a == (column == 0))
        ),
    )
    row = p.const(range(cfg.m_par), "row")
    p.check(
        "rows",
        ~walking | (uop.op.rows.bit_select(row, 1) == ((block << cfg.m_par_log2) + row <= m_last)),
    )
    lane = p.const(range(cfg.n_par), "lane")
    p.check(
        "columns",
        ~walking
        | (uop.op.cols.bit_select(lane, 1) == ((lane < chunk) & (column + lane <= n_last))),
    )
    same = Cat(uop.op.ft, uop.op.out, uop.op.k, uop.op.negate, uop.op.overwrite, uop.op.rnd)
    p.check(
        "operation",
        ~w.active | (same == Cat(f.op.ft, f.op.out, f.op.k, f.op.negate, f.op.overwrite, f.op.rnd)),
    )

    # Tiles are given up once, after their last uop, and no uop needs them later.
    some_i, some_j = p.const(range(4), "some_i"), p.const(range(4), "some_j")
    some_slice = p.const(range(8), "some_slice")
    slice_ = byte >> row_bytes
    for name, mine, freed in (
        ("a", i == some_i, split.free_a),
        ("b", j == some_j, split.free_b),
        ("c", (i == some_i) & (j == some_j) & (slice_ == some_slice), split.free_c),
    ):
        given_up = Signal(name=f"given_up_{name}")
        with m.If(w.step & freed & mine & ~transposes):
            m.d.sync += given_up.eq(1)
        with m.If(w.start):
            m.d.sync += given_up.eq(0)
        p.check(f"not_needed_after_free_{name}", ~(walking & given_up & mine))
        p.check(f"no_free_while_transposing_{name}", ~(w.active & transposes & freed))
        if name == "a":
            wanted = (some_i <= f.i_last) & ~f.shared
            place = (some_i < i) & ~f.shared
        elif name == "b":
            wanted = (some_j <= f.j_last) & ~f.shared
            place = (i == f.i_last) & (some_j < j) & ~f.shared
        else:
            slices = (Mux(some_j == f.j_last, f.n_last, f.n_most) << f.width_log2) >> row_bytes
            wanted = (some_i <= f.i_last) & (some_j <= f.j_last) & (some_slice <= slices)
            before = grows((some_i, some_j), (i, j))
            place = wanted & (
                before
                | ((some_i == i) & (some_j == j) & (block == block_last) & (some_slice < slice_))
            )
        now = given_up | (freed & mine)
        p.check(f"freed_in_time_{name}", ~w.active | (given_up == (place & walking)))
        p.check(f"all_freed_at_the_end_{name}", ~split.done | ~wanted | now)
        p.check(f"shared_is_kept_{name}", (name == "c") | ~(w.active & f.shared & freed))

    one_block, one_chunk = (
        p.signal(Cat((last & ~(size - 1)) == 0 for last in lasts), name)
        for name, size, lasts in (
            ("one_block", Const(cfg.m_par), (f.m_most, f.m_last)),
            ("one_chunk", chunk, (f.n_most, f.n_last)),
        )
    )
    if cfg.transposes:
        _transposes(p, w, first, one_block, one_chunk)

    # What keeps the induction on the track of reachable states.
    inside = w.inside
    p.check(
        "counters",
        ~walking
        | (
            (inside("i") == i)
            & (inside("j") == j)
            & (inside("i_is_last") == (i == f.i_last))
            & (inside("j_is_last") == (j == f.j_last))
            & (inside("block_is_last") == (block == block_last))
            & (inside("column_is_last") == (((column ^ n_last) & ~(chunk - 1)) == 0))
            & (inside("c_row") == (f.c + i * f.i_stride)[:tile])
            & (inside("c_group") == group)
        ),
    )
    p.check(
        "single",
        ~w.active | ((inside("one_block") == one_block) & (inside("one_chunk") == one_chunk)),
    )
    p.check("whole_chunks", ~walking | ((column & (chunk - 1)) == 0))
    p.cover("several_pairs", split.done & (f.i_last == 1) & (f.j_last == 1))
    p.cover("several_blocks", split.done & (block != 0) & (column != 0) & ~w.fresh)
    p.cover("second_walk", p.past(split.done, "was_done") & w.start)
    if cfg.row_bytes < cfg.rows * 8:
        p.cover("second_slice", walking & (slice_ != 0))
    return p


def _transposes(p: Proof, w: Walk, first: Signal, one_block: Signal, one_chunk: Signal) -> None:
    """The walk over transposed operands that goes before."""
    cfg, m, f, uop = w.split.cfg, p.m, w.fields, w.split.uop
    tile = cfg.tile_bits
    parts = transpose_parts(cfg)
    turning = p.signal(w.active & uop.transposes, "turning")
    index = p.signal((uop.a.tile - f.a)[:tile], "index")
    needed = p.signal(f.a_transposed | f.b_transposed, "needed")
    last_tile = p.signal(
        Mux(
            f.a_transposed & (~f.b_transposed | (f.i_last > f.j_last)),
            f.i_last,
            f.j_last,
        ),
        "last_tile",
    )
    here = {"index": index, "word": uop.a.block, "part": uop.part}
    old = {name: w.held(value, name) for name, value in here.items()}
    follows = Signal(name="turning_follows")
    with m.If(old["part"] != parts - 1):
        m.d.comb += follows.eq(
            (Cat(index, uop.a.block) == Cat(old["index"], old["word"]))
            & (uop.part == old["part"] + 1)
        )
    with m.Elif(old["word"] != cfg.blocks - 1):
        m.d.comb += follows.eq(
            (index == old["index"]) & (uop.a.block == old["word"] + 1) & (uop.part == 0)
        )
    with m.Else():
        m.d.comb += follows.eq((index == old["index"] + 1) & (uop.a.block == 0) & (uop.part == 0))
    last = (index == last_tile) & (uop.a.block == cfg.blocks - 1) & (uop.part == parts - 1)
    was_last = w.held(uop.transposes & last, "turning_last")
    p.check("turns_first", ~(w.active & w.fresh) | (uop.transposes == needed))
    p.check("turning_starts", ~(turning & w.fresh) | (Cat(index, uop.a.block, uop.part) == 0))
    p.check("turning_successor", ~turning | w.fresh | follows)
    p.check("turning_inside", ~turning | (index <= last_tile))
    p.check("turning_only_if_needed", ~turning | (needed & first))
    p.check("turning_ends", ~(w.active & ~w.fresh & first) | (turning == ~was_last))
    p.check(
        "turned_tiles",
        ~turning
        | (
            (uop.a_transposed == (f.a_transposed & (index <= f.i_last)))
            & (uop.b_transposed == (f.b_transposed & (index <= f.j_last)))
            & (uop.a_index == index)
            & (uop.b_index == index)
            & (uop.b_tile == (f.b + index)[:tile])
            & (uop.b_row == uop.a.block << cfg.m_par_log2)
            & ~uop.new_c
        ),
    )
    p.check(
        "multiplied_transposed",
        ~w.active
        | uop.transposes
        | ((uop.a_transposed == f.a_transposed) & (uop.b_transposed == f.b_transposed)),
    )
    inside = w.inside
    p.check(
        "turning_counters",
        ~turning | ((inside("j") == index) & (inside("i") == 0) & (inside("column") == 0)),
    )
    p.check(
        "turning_places",
        ~turning
        | (
            (inside("i_is_last") == (f.i_last == 0))
            & (inside("j_is_last") == (f.j_last == 0))
            & (inside("block_is_last") == one_block.bit_select(f.i_last == 0, 1))
            & (inside("column_is_last") == one_chunk.bit_select(f.j_last == 0, 1))
        ),
    )
    p.check("turning_results", ~turning | ((inside("c_row") == f.c) & (inside("c_group") == f.c)))
    p.check("walk_after_turning", ~(w.active & ~uop.transposes) | first | ~w.fresh)
    p.cover("turned", w.split.done & f.a_transposed & ~f.b_transposed)


def ldst(cfg: Config) -> Proof:
    """The walk of a load or store: bytes of rows, and what is zeroed."""
    p = Proof()
    w = Walk(p, LdStSplit(cfg), ldst_fields(cfg))
    m, f, uop, split, inside = p.m, w.fields, w.split.uop, w.split, w.inside
    rb_log2 = cfg.row_bytes_log2
    slices_last = p.signal(((1 << f.slices_log2) - 1)[:3], "slices_last")
    for name, rule in ldst_rules(cfg, f):
        p.assume(f"fields_{name}", ~w.active | rule)

    # Where the walk is.
    group, slice_ = inside("group"), inside("slice_")
    filling, block, fill_more = inside("filling"), inside("block"), inside("fill_more")
    number = p.signal(((group << f.slices_log2) + slice_)[:5], "number")
    moving = p.signal(w.active & ~filling, "moving")
    zeroing = p.signal(w.active & filling, "zeroing")
    advance = p.signal(w.active & w.step, "advance")

    group_bytes = p.signal(
        Mux(~f.down & (group == f.group_last), f.bytes_last, f.bytes_most), "group_bytes"
    )
    slice_last = p.signal((group_bytes >> rb_log2)[:3], "slice_last")
    row_end = p.signal(
        Mux(slice_ == slice_last, group_bytes[:rb_log2], cfg.row_bytes - 1), "row_end"
    )
    rows_last = p.signal(
        Mux(f.down & (group != f.tile_last), f.rows_most, f.rows_last), "rows_last"
    )
    has_rows = Mux(f.down, group <= f.tile_last, group <= f.group_last) & (slice_ <= slice_last)
    has_rows = p.signal(has_rows, "has_rows")

    # -- the rows --------------------------------------------------------------------------
    # Where they lie: rows of memory a stride apart, groups a pitch, slices side by side.
    tile_at, row_at, group_at = (
        Signal(cfg.addr_bits, name=name) for name in ("tile_at", "row_at", "group_at")
    )
    with m.If(w.step & moving & (f.down | (slice_ == slice_last))):
        with m.If(~f.down & (group != f.group_last)):
            m.d.sync += group_at.eq(group_at + f.pitch)
        with m.Elif(uop.row != rows_last):
            m.d.sync += [row_at.eq(row_at + f.stride), group_at.eq(row_at + f.stride)]
        with m.Else():
            below = (tile_at + (f.stride << cfg.rows_log2))[: cfg.addr_bits]
            m.d.sync += [tile_at.eq(below), row_at.eq(below), group_at.eq(below)]
    with m.If(w.start):
        m.d.sync += [at.eq(w.port.base) for at in (tile_at, row_at, group_at)]
    start = p.signal((group_at + (slice_ << rb_log2))[: cfg.addr_bits], "row_start")
    p.check("row_inside", ~moving | (has_rows & (uop.row <= rows_last)))
    end = uop.addr[: cfg.line_bytes_log2] + uop.last
    crosses = moving & (end >= cfg.line_bytes)
    p.check("crosses", ~w.active | (split.crosses == crosses))
    p.check("whole_row", ~moving | ((uop.first == 0) & (uop.last == row_end) & uop.tail))
    p.check("address", ~moving | (uop.addr == start))
    p.check("half", ~moving | (uop.half == f.half))
    p.check("zero", ~w.active | (uop.zero == filling))
    p.check(
        "tile",
        ~w.active | (uop.tile == (f.tile + group * f.group_stride + slice_)[: cfg.tile_bits]),
    )

    here = {"row": uop.row, "group": group, "slice": slice_, "rows_last": rows_last}
    here |= {"slice_last": slice_last, "more": uop.more, "addr": uop.addr, "zero": uop.zero}
    old = {name: w.held(value, name) for name, value in here.items()}
    at = Cat(uop.row, group, slice_)
    follows = Signal(name="follows")
    with m.If(~f.down & (old["slice"] != old["slice_last"])):
        m.d.comb += follows.eq(
            (slice_ == old["slice"] + 1) & (Cat(uop.row, group) == Cat(old["row"], old["group"]))
        )
    with m.Elif(~f.down & (old["group"] != f.group_last)):
        m.d.comb += follows.eq(
            (group == old["group"] + 1) & (uop.row == old["row"]) & (slice_ == 0)
        )
    with m.Elif(old["row"] != old["rows_last"]):
        m.d.comb += follows.eq(
            (uop.row == old["row"] + 1) & (group == Mux(f.down, old["group"], 0)) & (slice_ == 0)
        )
    with m.Else():
        m.d.comb += follows.eq(f.down & (group == old["group"] + 1) & (Cat(uop.row, slice_) == 0))
    follows_zero = (group == old["group"] + 1) & (Cat(uop.row, slice_) == 0)
    p.check("starts_at_zero", ~(moving & w.fresh) | (at == 0))
    p.check("successor", ~moving | w.fresh | Mux(old["zero"], f.down & follows_zero, follows))

    # A promised successor comes, is of a tile that is still needed, and lies just behind.
    promised = p.signal(w.active & ~w.fresh & old["more"], "promised")
    behind = (old["addr"] + cfg.row_bytes)[: cfg.addr_bits]
    p.check("promise_is_kept", ~promised | (moving & split.valid & (uop.addr == behind)))
    p.check("no_promise_of_what_is_given_up", ~w.active | ~uop.more | ~split.free)
    p.check("no_promise_at_the_end", ~w.done | ~uop.more)

    # -- zeroing ---------------------------------------------------------------------------
    fill_row = p.signal(Mux(has_rows, rows_last + 1, 0), "fill_row")
    p.check("zero_only_if_asked", ~zeroing | f.fill)
    p.check("fields_of_a_tile", ~zeroing | (number <= f.tiles))
    p.check("rows_before_zeros", ~zeroing | ~f.down | (slice_ == 0) | has_rows)
    some_tile, some_row = p.const(3, "some_tile"), p.const(cfg.rows_log2, "some_row")
    some_group = p.signal((some_tile >> f.slices_log2)[:3], "some_group")
    some_slice = p.signal((some_tile & slices_last)[:3], "some_slice")
    some_bytes = Mux(~f.down & (some_group == f.group_last), f.bytes_last, f.bytes_most)
    some_rows = Mux(f.down & (some_group != f.tile_last), f.rows_most, f.rows_last)
    holds = Mux(f.down, some_group <= f.tile_last, some_group <= f.group_last)
    holds = p.signal(holds & (some_slice <= (some_bytes >> rb_log2)), "holds")
    needed = p.signal(
        f.fill & (some_tile <= f.tiles) & ~(holds & (some_row <= some_rows)), "needed"
    )
    mine = p.signal(
        (number == some_tile)
        & (uop.row >> cfg.m_par_log2 == some_row >> cfg.m_par_log2)
        & uop.rows.bit_select(some_row[: cfg.m_par_log2], 1),
        "mine",
    )
    zeroed = Signal(name="zeroed")
    with m.If(w.step & split.valid & uop.zero & mine):
        m.d.sync += zeroed.eq(1)
    with m.If(w.start):
        m.d.sync += zeroed.eq(0)
    offered = p.signal(zeroing & split.valid & mine, "offered")
    p.check("zeroed_once", ~(offered & zeroed))
    p.check("zeroed_only_if_needed", ~offered | needed)
    p.check("all_zeroed_at_the_end", ~w.done | ~needed | zeroed | offered)
    p.check("moved_before_it_ends", ~w.done | filling | ~f.fill | f.down)
    in_tile = fill_more & (some_row >> cfg.m_par_log2 < block)
    passed = (some_tile < number) | ((some_tile == number) & in_tile)
    p.check(
        "zeroed_so_far",
        ~w.active
        | (
            zeroed
            == (
                needed
                & Mux(
                    f.down,
                    (some_tile < group) | ((some_tile == group) & filling & in_tile),
                    filling & passed,
                )
            )
        ),
    )

    # -- the end ---------------------------------------------------------------------------
    key = (Mux(f.down, group, 0), filling, Mux(filling, Mux(f.down, 0, number), uop.row))
    key += (Mux(filling, fill_more, group), Mux(filling, block, slice_))
    key = [p.signal(part, f"key{index}") for index, part in enumerate(key)]
    before = [p.past(part, f"key{index}_before") for index, part in enumerate(key)]
    moved = p.past(advance, "advanced")
    p.check("grows", ~(moved & w.active & ~w.fresh) | grows(before, key))
    p.check(
        "waits", moved | ~(w.active & p.past(w.active, "was_active")) | (Cat(before) == Cat(key))
    )
    last_row = moving & (uop.row == rows_last)
    last_row = last_row & Mux(
        f.down,
        (group == f.tiles) & (~f.fill | (fill_row == cfg.rows)),
        (slice_ == slice_last) & (group == f.group_last) & ~f.fill,
    )
    last_zero = (
        zeroing
        & (number == f.tiles)
        & (~split.valid | (uop.row >> cfg.m_par_log2 == cfg.blocks - 1))
    )
    p.check("ends_with_the_last", w.done == (advance & (last_row | last_zero)))
    p.check("idle_only_along", split.valid | ~w.active | (filling & ~f.down))

    # Downwards a tile is given up with its last uop; along the rows none is.
    here_last = (moving & (uop.row == rows_last) & (~f.fill | (fill_row == cfg.rows))) | (
        zeroing & (uop.row >> cfg.m_par_log2 == cfg.blocks - 1)
    )
    p.check("free", ~w.active | (split.free == (f.down & here_last)))

    # What keeps the induction on the track of reachable states.
    places = (inside("row_at") == row_at) & (inside("group_at") == group_at)
    below = (tile_at + (f.stride << cfg.rows_log2))[: cfg.addr_bits]
    p.check("places", ~moving | places)
    p.check("place_below", ~(w.active & f.down) | (inside("tile_next") == below))
    p.check(
        "all_rows",
        ~w.active
        | (
            (inside("all_most") == (f.rows_most == cfg.rows - 1))
            & (inside("all_last") == (f.rows_last == cfg.rows - 1))
            & (inside("pitch_full") == (f.pitch == cfg.row_bytes << f.slices_log2))
        ),
    )
    last_active = Mux(f.down, f.tile_last, f.group_last)

    def place_of(number):
        return Cat(
            number <= last_active,
            number == last_active,
            number == f.tiles >> f.slices_log2,
            ~f.down & (number == last_active),
            ~f.down | (number == last_active),
        )

    p.check(
        "next_group_is",
        ~w.active | (inside("next_group_is") == place_of((group + 1)[: len(group)])),
    )
    group_is = place_of(group)
    p.check("group_is", ~w.active | (inside("group_is") == group_is))
    p.check("last_row", ~moving | (inside("last_row") == (uop.row == rows_last)))
    first_is_last = (inside("one_row_most") == (f.rows_most == 0)) & (
        inside("one_row_last") == (f.rows_last == 0)
    )
    p.check("one_row", ~w.active | first_is_last)
    slice_is = Cat(
        slice_ <= slice_last,
        slice_ == slice_last,
        f.down | ((slice_ == slice_last) & (group == f.group_last)),
        slice_ == slices_last,
        number == f.tiles,
        ~(has_rows & (rows_last == cfg.rows - 1)),
        fill_row >> cfg.m_par_log2 == cfg.blocks - 1,
        f.fill & (~f.down | ~(has_rows & (rows_last == cfg.rows - 1))),
    )
    p.check(
        "whole_walk",
        ~w.active
        | (
            (inside("all_most") == (f.rows_most == cfg.rows - 1))
            & (inside("fill_ends_most") == ((f.rows_most + 1) >> cfg.m_par_log2 == cfg.blocks - 1))
            & (inside("fill_ends_last") == ((f.rows_last + 1) >> cfg.m_par_log2 == cfg.blocks - 1))
            & (inside("last_active") == last_active)
            & (inside("last_named") == f.tiles >> f.slices_log2)
            & (inside("named_slice") == f.tiles & slices_last)
            & (inside("one_slice_most") == (f.bytes_most >> rb_log2 == 0))
            & (inside("one_slice_last") == (f.bytes_last >> rb_log2 == 0))
        ),
    )
    p.check("slice_is", ~w.active | (inside("slice_is") == slice_is))
    past_groups = p.signal(Mux(f.down, 0, group * f.pitch), "past_groups")
    p.check("groups", ~moving | (group_at == (row_at + past_groups)[: cfg.addr_bits]))
    p.check(
        "group_tile",
        ~w.active | (inside("group_tile") == (f.tile + group * f.group_stride)[: cfg.tile_bits]),
    )
    p.check(
        "next_tile",
        ~(zeroing & f.down & (group < f.tile_last))
        | (places & (inside("addr") == tile_at) & (row_at == tile_at) & (group_at == tile_at)),
    )
    p.check("not_filling", ~moving | ~fill_more)
    p.check("row_while_zeroing", ~zeroing | (inside("row") == 0))
    p.check("slice_down", ~(w.active & f.down) | (slice_ == 0))
    p.check(
        "block_is_last",
        ~(zeroing & fill_more) | (inside("block_is_last") == (block == cfg.blocks - 1)),
    )
    p.check("block_to_zero", ~(zeroing & fill_more) | (block > (fill_row >> cfg.m_par_log2)))
    p.check("zeros_wanted", ~(zeroing & f.down) | (fill_row != cfg.rows))
    p.check("slice_inside", ~w.active | (slice_ <= slices_last))

    p.cover("rows_apart", w.step & moving & ~uop.more & (uop.row != rows_last) & f.down)
    p.cover("burst_of_rows", promised & w.step & (uop.row != 0))
    p.cover("loaded_and_zeroed", w.done & ~w.fresh & f.fill & ~f.down & (f.rows_last == 1))
    p.cover("zeroed_down", w.done & f.fill & f.down & (f.tile_last == 1) & (f.tiles == 2))
    p.cover("stored", w.done & ~f.fill & (f.rows_last == 1) & (f.group_last == 1))
    p.cover("idle", zeroing & ~split.valid)
    return p


_MOVES_READ_BY_TILE = (MoveOp.MMOV, MoveOp.MMOV_OTHER)


def _move_fields(p: Proof, w: Walk) -> None:
    """Assume what the decoder promises of a move's fields."""
    for name, rule in move_rules(w.split.cfg, w.fields):
        p.assume(f"fields_{name}", ~w.active | rule)


def move(cfg: Config) -> Proof:
    """The walk of the moves, transposes apart."""
    p = Proof()
    w = Walk(p, MoveSplit(cfg), move_fields(cfg))
    f, uop, split, inside = w.fields, w.split.uop, w.split, w.inside
    _move_fields(p, w)
    p.assume("no_transpose", ~w.active | (f.op != MoveOp.MTRANS))
    tile = inside("tile")
    blocks = cfg.blocks - 1
    many = p.signal(Cat(f.op == op for op in BY_TILE).any(), "many")
    is_row, is_element = f.op == MoveOp.ROW, f.op == MoveOp.ELEMENT
    writes = p.signal(w.active & uop.write, "writes")
    reads = p.signal(w.active & uop.read, "reads")
    p.check(
        "what_reads",
        ~w.active
        | (
            uop.read
            == Cat(
                *(f.op == op for op in _MOVES_READ_BY_TILE),
                f.op == MoveOp.COLUMN,
                is_element,
                is_row & w.fresh,
            ).any()
        ),
    )
    p.check("what_writes", ~w.active | (uop.write == ~(is_element | (is_row & w.fresh))))
    p.check(
        "place",
        ~w.active
        | (
            (uop.dst.tile == (f.dst + tile)[: cfg.tile_bits])
            & (uop.src.tile == (f.src + tile)[: cfg.tile_bits])
            & (uop.op == f.op)
            & (uop.size == f.size)
        ),
    )
    at_block = f.at >> cfg.m_par_log2 + cfg.row_bytes_log2
    p.check(
        "read_word", ~reads | (uop.src.block == Mux(is_row | is_element, at_block, uop.dst.block))
    )
    p.check("byte", ~w.active | (uop.at == f.at[: cfg.m_par_log2 + cfg.row_bytes_log2]))
    old_tile, old_block = w.held(tile, "tile"), w.held(uop.dst.block, "block")
    old_write = w.held(uop.write, "write")
    start = (tile == 0) & (uop.dst.block == 0)
    follows = Mux(
        old_block == blocks,
        (tile == old_tile + 1) & (uop.dst.block == 0),
        (tile == old_tile) & (uop.dst.block == old_block + 1),
    )
    p.check("starts_at_zero", ~(w.active & w.fresh) | start)
    p.check("successor", ~w.active | w.fresh | Mux(old_write, follows, is_row & start))
    p.check("inside", ~w.active | (tile <= f.tiles))
    word_last = uop.dst.block == blocks
    last = p.signal(is_element | (writes & word_last & (tile == f.tiles)), "last")
    p.check("ends_with_the_last", w.done == (w.step & last))
    p.check("given_up", ~w.active | (split.free == Mux(many, word_last, last)))
    p.check("whole", ~w.active | (split.whole == ~many))
    p.check("burst", ~w.active | (uop.more == ~(many | last)))
    p.check("reading", ~w.active | (inside("reading") == (is_row & w.fresh)))
    p.cover("copied", w.done & (f.op == MoveOp.MMOV) & (f.tiles == 2))
    p.cover("row", w.done & is_row)
    p.cover("element", w.done & is_element & p.past(w.start, "was_start"))
    return p


def transpose(cfg: Config) -> Proof:
    """The walk of a transpose: each word read once, written once, read before it is written.

    The walk is one of a few; a stalled one stands still. So walks that never stall, followed to
    their end, are all there are, and the bounded proof is complete.
    """
    p = Proof()
    w = Walk(p, MoveSplit(cfg), move_fields(cfg))
    m, f, uop, split = p.m, w.fields, w.split.uop, w.split
    _move_fields(p, w)
    group = p.signal(f.tiles + 1, "group")
    p.assume("transpose", ~w.active | (f.op == MoveOp.MTRANS))
    was_active = p.past(w.active, "was_active")
    p.assume("no_stall", w.step == w.active)
    words = cfg.blocks * cfg.result_tiles(64)
    age = Signal(range(4 * words), name="age")
    with m.If(w.step):
        m.d.sync += age.eq(age + 1)
    with m.If(w.start):
        m.d.sync += age.eq(0)
    tile, block = p.const(cfg.tiles_log2, "tile"), p.const(range(cfg.blocks), "block")
    src = p.signal((uop.src.tile - f.src)[: cfg.tiles_log2], "src")
    dst = p.signal((uop.dst.tile - f.dst)[: cfg.tiles_log2], "dst")
    got, put = Signal(name="got"), Signal(name="put")
    reads = p.signal(w.active & uop.read, "reads")
    writes = p.signal(w.active & uop.write, "writes")
    read_here = p.signal(reads & (src == tile) & (uop.src.block == block), "read_here")
    write_here = p.signal(writes & (dst == tile) & (uop.dst.block == block), "write_here")
    with m.If(w.step & read_here):
        m.d.sync += got.eq(1)
    with m.If(w.step & write_here):
        m.d.sync += put.eq(1)
    with m.If(w.start):
        m.d.sync += [got.eq(0), put.eq(0)]
    p.check("inside", ~w.active | Mux(uop.read, src < group, dst < group))
    p.check("one_thing", ~w.active | (uop.read ^ uop.write))
    p.check("read_once", ~(read_here & got))
    p.check("written_once", ~(write_here & put))
    p.check("read_before_written", ~write_here | got)
    p.check("all_read", ~w.done | got | (tile >= group))
    p.check("all_written", ~w.done | put | write_here | (tile >= group))
    p.check("ends", ~w.active | (age < 2 * cfg.blocks * group))
    p.check("given_up_at_the_end", ~w.active | (split.free == w.done))
    p.check("burst", ~w.active | (uop.more == ~w.done))
    p.check("whole", ~w.active | split.whole)
    for size in range(4):
        p.cover(f"size{size}", was_active & w.done & (f.size == size))
    return p


def stands_still(cfg: Config) -> Proof:
    """A walk of moves that is not stepped offers the same uop again."""
    p = Proof()
    w = Walk(p, MoveSplit(cfg), move_fields(cfg))
    stalled = p.past(w.active & ~w.step, "stalled")
    outputs = Cat(Value.cast(w.split.uop), w.split.free, w.split.whole)
    p.check("same_uop", ~stalled | (outputs == p.past(outputs, "outputs")))
    p.check("no_end", ~w.active | w.step | ~w.done)
    p.cover("stalled", stalled & w.split.uop.read)
    return p


_SMALL = Config(tiles=8, rows=8, row_bits=64, bus_bits=64, banks=2, m_par=2, n_par=2)
_NARROW = Config(tiles=8, rows=4, row_bits=64, bus_bits=64, banks=2, m_par=2, n_par=1, addr_bits=16)

TASKS = (
    Task(
        name="mma_split",
        about="every block once, in order, tiles given up once, ends",
        parameters="8 tiles, rows 8 x 64 bit, MAC 2 x 2, transposes",
        build=lambda: mma(_SMALL),
        depth=2,
        cover=24,
        quick=True,
    ),
    Task(
        name="mma_split_narrow",
        about="the same where no tile is square",
        parameters="8 tiles, rows 4 x 64 bit, MAC 2 x 1",
        build=lambda: mma(_NARROW),
        depth=2,
        cover=24,
    ),
    Task(
        name="ldst_split",
        about="every byte once, zeros once, ends",
        parameters="8 tiles, rows 4 x 64 bit",
        build=lambda: ldst(_NARROW),
        depth=2,
        cover=24,
        quick=True,
    ),
    Task(
        name="move_split",
        about="every word once, in order, ends",
        parameters="8 tiles, rows 8 x 64 bit, words of 2 rows",
        build=lambda: move(_SMALL),
        depth=2,
        cover=16,
        quick=True,
    ),
    Task(
        name="transpose_split",
        about="every word read once, then written once, ends",
        parameters="8 tiles, rows 8 x 64 bit, words of 2 rows; walks without stall",
        build=lambda: transpose(_SMALL),
        mode="bmc",
        depth=68,
        cover=67,
    ),
    Task(
        name="transpose_stall",
        about="a stalled walk of moves stands still",
        parameters="8 tiles, rows 8 x 64 bit, words of 2 rows",
        build=lambda: stands_still(_SMALL),
        depth=2,
        cover=4,
    ),
)


MUTANTS = (
    *mutants(
        "hdl/issue/split.py",
        "mma_split",
        (
            "the last column is left out",
            "later_column[chunk:] == n_last[chunk:]",
            "later_column[chunk:] == (n_last - 1)[chunk : len(column)]",
        ),
        (
            "every tile of A has as many rows as the last",
            "Mux(i_is_last, fields.m_last, fields.m_most)",
            "fields.m_last",
        ),
        (
            "A is given up before the last B",
            "block_is_last & j_is_last & ~fields.shared",
            "block_is_last & ~fields.shared",
        ),
        (
            "the next A starts at the wrong group of C",
            "c_group.eq(c_row + fields.i_stride)",
            "c_group.eq(c_group + fields.i_stride)",
        ),
        (
            "the walk ends with the first A",
            "block_is_last & i_is_last & j_is_last",
            "block_is_last & j_is_last",
        ),
        (
            "a word is read once too little while transposing",
            "with m.If(part == parts - 1):",
            "with m.If(part == parts - 2):",
        ),
    ),
    *mutants(
        "hdl/issue/split.py",
        "ldst_split",
        (
            "a row of several groups ends with the first",
            "fields.down | (last & group_is.last)",
            "fields.down | last",
        ),
        (
            "the next group lies behind the last slice",
            "next_group.eq(group_at + fields.pitch)",
            "next_group.eq(addr + row_bytes)",
        ),
        (
            "zeroing starts a row late",
            "Mux(group_is.active & slice_is.active, rows_last + 1, 0)",
            "Mux(group_is.active & slice_is.active, rows_last + 2, 0)",
        ),
        (
            "a burst is promised where groups have gaps",
            "[rb_log2:] == slices_last) & pitch_full",
            "[rb_log2:] == slices_last)",
        ),
        (
            "downwards the next tile is one row on",
            "tile_next.eq(tile_next + below(fields.stride, registers))",
            "tile_next.eq(tile_next + fields.stride)",
        ),
        (
            "zeros are cut",
            "            ~filling\n            & addr[rb_log2 : cfg.line_bytes_log2].all()",
            "            addr[rb_log2 : cfg.line_bytes_log2].all()",
        ),
        (
            "a whole row crosses whenever it ends in the last beats",
            "whole = addr[:rb_log2].any()",
            "whole = C(1, 1)",
        ),
        (
            "the rows of the last tile are those of the others",
            "Mux(few_rows, later_row == fields.rows_last, later_row == fields.rows_most)",
            "later_row == fields.rows_most",
        ),
    ),
    *mutants(
        "hdl/issue/walk_start.py",
        "ldst_split",
        ("the last group has the bytes of the others", "~down & last", "down & last"),
        ("a tile of all rows has one left to zero", "last + 1 == rows", "last == rows"),
        ("a tile of one row has a second", "last == 0, rows_of", "last == 1, rows_of"),
    ),
    *mutants(
        "hdl/issue/move_split.py",
        "move_split",
        (
            "a copy ends a tile early",
            "last.eq(block_last & (tile == fields.tiles))",
            "last.eq(block_last & (tile + 1 >= fields.tiles))",
        ),
        (
            "a row is read from the first word",
            "uop.src.block.eq(fields.at[word_bytes_log2:]),\n                        last.eq(~",
            "uop.src.block.eq(0),\n                        last.eq(~",
        ),
        (
            "tiles are given up at the first word",
            "self.free.eq(Mux(by_tile, block_last, last))",
            "self.free.eq(Mux(by_tile, 1, last))",
        ),
    ),
    *mutants(
        "hdl/issue/move_split.py",
        "transpose_split",
        (
            "a square is written where it was read",
            "m.d.sync += [row.eq(column), column.eq(row)]",
            "m.d.sync += [row.eq(row), column.eq(column)]",
        ),
        (
            "the second square of a pair is forgotten",
            "pair_last = (row == column) | second",
            "pair_last = (row == column) | (second == second)",
        ),
    ),
    *mutants(
        "hdl/issue/move_split.py",
        "transpose_stall",
        (
            "the words of a square are counted without a step",
            "            with m.If(self.step):\n                m.d.sync += word.eq(word + 1)\n",
            "            with m.If(1):\n                m.d.sync += word.eq(word + 1)\n",
        ),
        depth=8,
    ),
)
