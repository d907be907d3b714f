"""What the load pipe notes of a request, to make rows of its beats when they come."""

from __future__ import annotations

from amaranth.lib import data

from ..config import Config
from ..interfaces import ldst_uop, row_write

__all__ = [
    "beat_ends",
    "beat_note",
    "beat_parts",
    "burst_rows",
    "part",
    "placed_uop",
    "read_burst",
    "read_request",
    "tail_part",
    "write_target",
    "zeroing",
]


def placed_uop(cfg: Config) -> data.StructLayout:
    """A part of a row and where it lies, see `shift.Beats`."""
    beat = (cfg.row_bytes // cfg.bus_bytes).bit_length()
    return data.StructLayout(
        {
            "uop": ldst_uop(cfg),
            "offset": cfg.bus_bytes_log2,
            "first": beat,
            "last": beat,
            "one_beat": 1,
        }
    )


def read_burst(cfg: Config) -> data.StructLayout:
    """A read request without its id: number of its first beat in memory, beats - 1."""
    return data.StructLayout({"beat": cfg.addr_bits - cfg.bus_bytes_log2, "len": cfg.len_bits})


def read_request(cfg: Config) -> data.StructLayout:
    """A read request: number of its first beat in memory, beats - 1, id."""
    return data.StructLayout(
        {
            "beat": cfg.addr_bits - cfg.bus_bytes_log2,
            "len": cfg.len_bits,
            "id": cfg.id_bits,
        }
    )


def part(cfg: Config) -> data.StructLayout:
    """Bytes `first`..`last` of a tile row; `tail`: the bytes after them are zero; `half`: so is the
    high nibble of the last one.
    """
    return data.StructLayout(
        {
            "tile": cfg.tile_bits,
            "row": cfg.rows_log2,
            "first": cfg.row_bytes_log2,
            "last": cfg.row_bytes_log2,
            "tail": 1,
            "half": 1,
        }
    )


def tail_part(cfg: Config) -> data.StructLayout:
    """A part that starts inside a burst, so with the row's byte 0."""
    return data.StructLayout(
        {
            "tile": cfg.tile_bits,
            "row": cfg.rows_log2,
            "last": cfg.row_bytes_log2,
            "tail": 1,
            "half": 1,
        }
    )


def beat_ends(cfg: Config) -> data.StructLayout:
    """How many parts end in a beat, 0 to 2; `began`: the first of them began in an earlier one."""
    return data.StructLayout({"count": 2, "began": 1})


def beat_parts(cfg: Config) -> data.StructLayout:
    """The parts that end in a beat. The second is the row that starts in the same beat."""
    return data.StructLayout({"one": part(cfg), "two": tail_part(cfg)})


def beat_note(cfg: Config) -> data.StructLayout:
    """What is noted of a beat, and the burst as far as it; `last`: no beat follows."""
    return data.StructLayout(
        {
            "last": 1,
            "burst": read_burst(cfg),
            "ends": beat_ends(cfg),
            "parts": beat_parts(cfg),
            "rows": burst_rows(cfg),
        }
    )


def burst_rows(cfg: Config) -> data.StructLayout:
    """Where a burst's rows lie: byte of a beat where they start, beat of the row that comes first.

    The beat counts from the row's start modulo the beats of a row; it is missing where that is
    one. All rows of a burst lie alike.
    """
    fields = {"offset": cfg.bus_bytes_log2}
    if cfg.row_bytes > cfg.bus_bytes:
        fields["beat"] = (cfg.row_bytes // cfg.bus_bytes - 1).bit_length()
    return data.StructLayout(fields)


def zeroing(cfg: Config) -> data.StructLayout:
    """Rows of the block of `row` that become zero."""
    return data.StructLayout({"tile": cfg.tile_bits, "row": cfg.rows_log2, "rows": cfg.m_par})


def write_target(cfg: Config) -> data.StructLayout:
    """Where a write goes: the fields of `interfaces.row_write` but the data."""
    return data.StructLayout(
        {name: field.shape for name, field in row_write(cfg) if name != "data"}
    )
