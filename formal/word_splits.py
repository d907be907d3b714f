"""Proofs of the split counters of whole words: vector mode, pointwise instructions."""

from __future__ import annotations

from amaranth.hdl import Mux

from hdl.config import Config
from hdl.interfaces import mma_fields
from hdl.issue.point_split import PointSplit
from hdl.issue.vector_split import VectorSplit
from hdl.units.point_op import PointSource

from .harness import Proof
from .task import Task, mutants
from .walk import Walk, grows

__all__ = ["MUTANTS", "TASKS"]


def vector(cfg: Config) -> Proof:
    """The walk of the vector mode: the words of z that come of one word of x and y, then rows."""
    p = Proof()
    w = Walk(p, VectorSplit(cfg), mma_fields(cfg))
    f, uop = w.fields, w.split.uop
    part = p.signal((uop.c.tile - f.c)[: cfg.tile_bits], "part")
    block = uop.c.block
    parts = p.signal(f.part_last + 1, "parts")
    p.assume("fields_first_part", ~w.active | (f.part_first <= f.part_last))
    # Parts come in a circle that starts anywhere: how far the walk is in it.
    place = p.signal(
        Mux(part >= f.part_first, part - f.part_first, part + parts - f.part_first), "place"
    )
    old_part, old_block = w.held(part, "part"), w.held(block, "block")
    old_place = w.held(place, "place")
    block_last = p.signal(f.m_last >> cfg.m_par_log2, "block_last")
    circle_over = old_place == f.part_last
    follows = Mux(
        circle_over,
        (part == f.part_first) & (block == old_block + 1),
        (part == Mux(old_part == f.part_last, 0, old_part + 1)) & (block == old_block),
    )
    p.check("starts_at_zero", ~(w.active & w.fresh) | ((part == f.part_first) & (block == 0)))
    p.check("successor", ~w.active | w.fresh | follows)
    p.check("grows", ~w.active | w.fresh | grows((old_block, old_place), (block, place)))
    p.check("inside", ~w.active | ((part <= f.part_last) & (block <= block_last)))
    last = (place == f.part_last) & (block == block_last)
    p.check("ends_with_the_last", w.done == (w.step & last))
    p.check("burst", ~w.active | (uop.more == (place != f.part_last)))
    p.check("new_x", ~w.active | (uop.new_a == (place == 0)))
    p.check(
        "operands",
        ~w.active
        | (
            (uop.a.tile == f.a)
            & (uop.a.block == block)
            & (uop.b_tile == f.b)
            & (uop.b_row == block << cfg.m_par_log2)
            & uop.new_c
        ),
    )
    row = p.const(range(cfg.m_par), "row")
    p.check(
        "rows",
        ~w.active
        | (uop.op.rows.bit_select(row, 1) == ((block << cfg.m_par_log2) + row <= f.m_last)),
    )
    p.check("elements", ~w.active | (uop.op.k == Mux(part == f.part_last, f.k_last, f.op.k)))
    p.check("part_of_x", ~w.active | (uop.op.vector.eighth == (part * f.part_step)[:3]))
    inside = w.inside
    p.check("counters", ~w.active | (inside("left") == f.part_last - place))
    p.check("part_counter", ~w.active | (inside("part") == part))
    p.cover("circle", w.done & (f.part_first == 1) & (f.part_last == 3) & (block == 1))
    p.cover("one_part", w.done & (f.part_last == 0) & (block == 1))
    return p


def point(cfg: Config) -> Proof:
    """The walk of a pointwise instruction: the words of its register, one burst."""
    p = Proof()
    w = Walk(p, PointSplit(cfg), mma_fields(cfg))
    f, uop = w.fields, w.split.uop
    block, last = uop.c.block, cfg.x_blocks - 1
    old_block = w.held(block, "block")
    by_row = f.op.point.source == PointSource.ROW
    by_scalar = f.op.point.source == PointSource.SCALAR
    p.check("starts_at_zero", ~(w.active & w.fresh) | (block == 0))
    p.check("successor", ~w.active | w.fresh | (block == old_block + 1))
    p.check("grows", ~w.active | w.fresh | grows((old_block,), (block,)))
    p.check("inside", ~w.active | (block <= last))
    p.check("ends_with_the_last", w.done == (w.step & (block == last)))
    p.check("burst", ~w.active | (uop.more == (block != last)))
    p.check("last_is_told", ~w.active | (uop.op.point.last == (block == last)))
    p.check(
        "operands",
        ~w.active
        | (
            (uop.a.tile == f.a)
            & (uop.a.block == block)
            & uop.new_a
            & (uop.b_tile == f.b)
            & (uop.c.tile == f.c)
        ),
    )
    # A row that is the second operand is read with the first word, and held.
    read_row = Mux(by_row, f.op.point.row >> cfg.m_par_log2 << cfg.m_par_log2, block * cfg.m_par)
    p.check("second_operand", ~w.active | (uop.b_row == read_row))
    p.check("held", ~w.active | (uop.op.point.held == (by_scalar | (by_row & ~w.fresh))))
    row = p.const(range(cfg.m_par), "row")
    lives = block * cfg.m_par + row < f.m_live
    p.check("rows", ~w.active | (uop.op.rows.bit_select(row, 1) == lives))
    p.check("rows_beyond_are_zeroed", ~w.active | (uop.op.zero_rows.bit_select(row, 1) == ~lives))
    p.cover("whole", w.done & (block == last) & (f.m_live == 2))
    p.cover("by_row", w.done & by_row & uop.op.point.held)
    return p


_WORDS = Config(
    tiles=8, rows=8, row_bits=64, bus_bits=64, banks=2, m_par=2, n_par=2, units=("vector",)
)
_REGISTERS = Config(
    frontends=("xuantie",), tiles=8, rows=4, row_bits=128, bus_bits=64, m_par=2, n_par=1
)

TASKS = (
    Task(
        name="vector_split",
        about="every word of z once, in order, ends",
        parameters="8 tiles, rows 8 x 64 bit, words of 2 rows",
        build=lambda: vector(_WORDS),
        depth=2,
        cover=12,
        quick=True,
    ),
    Task(
        name="point_split",
        about="every word of a register once, in order, ends",
        parameters="registers 4 x 128 bit, words of 2 rows",
        build=lambda: point(_REGISTERS),
        depth=2,
        cover=8,
        quick=True,
    ),
)
MUTANTS = (
    *mutants(
        "hdl/issue/vector_split.py",
        "vector_split",
        (
            "the circle of parts starts at the first part",
            "part.eq(self.fields.part_first)",
            "part.eq(0)",
        ),
        ("one part too many", "Mux(part == fields.part_last, 0, part + 1)", "part + 1"),
        (
            "the last block is left out",
            "block_last.eq(block == fields.m_last[cfg.m_par_log2 :])",
            "block_last.eq(block + 1 >= fields.m_last[cfg.m_par_log2 :])",
        ),
        (
            "the last part has all its elements",
            "Mux(part == fields.part_last, fields.k_last, fields.op.k)",
            "fields.op.k",
        ),
    ),
    *mutants(
        "hdl/issue/point_split.py",
        "point_split",
        (
            "the last word is left out",
            "last.eq(block == cfg.x_blocks - 1)",
            "last.eq(block == cfg.x_blocks - 2)",
        ),
        (
            "rows beyond the active ones keep their bytes",
            "uop.op.zero_rows.eq(~live)",
            "uop.op.zero_rows.eq(0)",
        ),
        (
            "the row is read again for every word",
            "(by_row & (block != 0))",
            "(by_row & (block == 0))",
        ),
        (
            "the first active row counts one less",
            "first_row + row < fields.m_live",
            "first_row + row + 1 < fields.m_live",
        ),
    ),
)
