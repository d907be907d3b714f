"""What the decoder promises of the fields that the split counters walk.

`splits` assumes these rules, `decode` proves them.
"""

from __future__ import annotations

from amaranth.hdl import Cat, Mux, Value
from amaranth.lib import data

from hdl.config import Config
from hdl.isa import MoveOp
from hdl.issue.walk_start import start_of

__all__ = ["BY_TILE", "ldst_rules", "move_rules"]

BY_TILE = (MoveOp.MMOV, MoveOp.MMOV_OTHER, MoveOp.MZERO)
"""Moves of several whole tiles."""


def ldst_rules(cfg: Config, f: data.View) -> list[tuple[str, Value]]:
    """Rules of `ldst_fields`, by name."""
    slices_last = ((1 << f.slices_log2) - 1)[:3]
    group_bytes = cfg.row_bytes << f.slices_log2
    last_slice = f.bytes_last >> cfg.row_bytes_log2
    walked = Mux(f.down, 0, f.group_last * f.pitch + last_slice * cfg.row_bytes) + cfg.row_bytes
    holding = Mux(f.down, f.tile_last, (f.group_last << f.slices_log2) + last_slice)
    return [
        ("slices", group_bytes <= cfg.group_bytes),
        ("bytes_fit", (f.bytes_most < group_bytes) & (f.bytes_last < group_bytes)),
        ("bytes_in_pitch", (f.bytes_most < f.pitch) & (f.pitch <= group_bytes)),
        ("no_slices_down", ~f.down | (f.slices_log2 == 0)),
        (
            "whole_groups",
            f.down | (((f.tiles + 1) & slices_last) == 0) | (f.tiles < slices_last),
        ),
        ("named", Mux(f.fill, holding <= f.tiles, ~f.down | (holding == f.tiles))),
        ("start", Value.cast(f.start) == start_of(cfg, f)),
        ("contiguous", ~f.contiguous | (f.stride == walked[: cfg.addr_bits])),
    ]


def move_rules(cfg: Config, f: data.View) -> list[tuple[str, Value]]:
    """Rules of `move_fields`, by name."""
    group = Value.cast(cfg.result_tiles(8))
    for size in range(1, 4):
        group = Mux(f.size == size, cfg.result_tiles(8 << size), group)
    many = Cat(f.op == op for op in BY_TILE).any()
    return [("tiles", many | (f.tiles == Mux(f.op == MoveOp.MTRANS, group - 1, 0)))]
