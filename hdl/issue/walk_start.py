"""What is asked of where the walk of a load or store is, and all that of its start."""

from __future__ import annotations

from typing import NamedTuple

from amaranth.hdl import C, Cat, Mux, Value
from amaranth.lib import data

from ..config import Config
from ..interfaces import group_place

__all__ = ["Whole", "fill_of", "first_slice_of", "group_of", "start_of", "whole_of"]


class Whole(NamedTuple):
    """What is asked of a whole walk, from its fields; pairs are of most groups and of the last."""

    last_active: Value  # group
    last_named: Value  # group
    slices: Value  # last of a group, as named
    named_slice: Value  # where the last named tile lies in its group
    one_slice: tuple[Value, Value]  # groups have one active slice
    full: tuple[Value, Value]  # tiles have all rows
    fill_ends: tuple[Value, Value]  # behind so many rows is the tile's last block
    one_row: tuple[Value, Value]  # tiles have one row


def whole_of(cfg: Config, fields: data.View) -> Whole:
    """All that of `ldst_fields`."""
    rows: Value | int = cfg.rows
    last_block: Value | int = cfg.blocks - 1
    if cfg.xuantie:
        rows = Mux(fields.registers, cfg.x_rows, cfg.rows)
        last_block = Mux(fields.registers, cfg.x_blocks - 1, cfg.blocks - 1)
    slices = ((1 << fields.slices_log2) - 1)[:3]
    bytes_of = (fields.bytes_most, fields.bytes_last)
    rows_of = (fields.rows_most, fields.rows_last)

    def both(rule, lasts) -> tuple[Value, Value]:
        return rule(lasts[0]), rule(lasts[1])

    return Whole(
        last_active=Mux(fields.down, fields.tile_last, fields.group_last),
        last_named=(fields.tiles >> fields.slices_log2)[:3],
        slices=slices,
        named_slice=fields.tiles & slices,
        one_slice=both(lambda last: last[cfg.row_bytes_log2 :] == 0, bytes_of),
        full=both(lambda last: last + 1 == rows, rows_of),
        fill_ends=both(lambda last: (last + 1)[cfg.m_par_log2 :] == last_block, rows_of),
        one_row=both(lambda last: last == 0, rows_of),
    )


def group_of(number: Value, down: Value, last_active: Value, last_named: Value) -> Value:
    """`group_place` of group `number`."""
    last = number == last_active
    named = number == last_named
    return Cat(number <= last_active, last, named, ~down & last, ~down | last)


def fill_of(cfg: Config, fields, group: data.View, active: Value, full, fill_ends):
    """Of a slice that is active: `needs_fill`, `fill_ends` and `zeroed`."""
    active = group.active & active
    needs = ~(active & Mux(group.few_rows, full[1], full[0]))
    ends = Mux(group.few_rows, fill_ends[1], fill_ends[0])
    return (
        needs,
        Mux(active, ends, cfg.blocks == 1),
        fields.fill & (needs | ~fields.down),
    )


def first_slice_of(
    cfg: Config, fields, group: data.View, slices, named, one_slice, full, fill_ends
) -> Value:
    """`slice_place` of a group's first slice; pairs as in `Whole`."""
    last = Mux(group.few_bytes, one_slice[1], one_slice[0])
    return Cat(
        C(1, 1),
        last,
        fields.down | (last & group.last),
        slices == 0,
        (named == 0) & group.last_named,
        *fill_of(cfg, fields, group, C(1, 1), full, fill_ends),
    )


def start_of(cfg: Config, fields: data.View) -> Value:
    """`ldst_start` of the other fields."""
    whole = whole_of(cfg, fields)
    group, next_group = (
        group_of(C(number, 3), fields.down, whole.last_active, whole.last_named)
        for number in range(2)
    )
    first = group_place()(group)
    return Cat(
        group,
        next_group,
        first_slice_of(
            cfg,
            fields,
            first,
            whole.slices,
            whole.named_slice,
            whole.one_slice,
            whole.full,
            whole.fill_ends,
        ),
        Mux(first.few_rows, whole.one_row[1], whole.one_row[0]),
    )
