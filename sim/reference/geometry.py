"""Which tiles and bytes an instruction touches: M, N, K, groups and macros (isa.md section 2).

Everything here raises `BadGeometryError` for what the instruction set calls badgeom.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hdl.config import Config
from hdl.formats import Format, acc_mode, by_code, output_format
from hdl.isa import BTR_NATIVE, MXCFG, MXTILE, Rounding, Tiling

__all__ = ["BadGeometryError", "Block", "Mma", "Settings", "named_blocks", "plan_mma", "tails"]

GROUP_STRIDE = 4
"""Tiles from one C group to the next, outside 4x4."""

GUARD_TILES = 4
GUARD_MAX_BITS = 16


class BadGeometryError(Exception):
    """The instruction answers badgeom."""


def require(condition: bool) -> None:
    """Raise BadGeometryError unless `condition` holds."""
    if not condition:
        raise BadGeometryError


@dataclass(frozen=True)
class Settings:
    """mxcfg and mxtile, checked as every instruction that uses them checks them.

    Parameters
    ----------
    fmt, out : operand and output format.
    k, m, n : as written, but n = 0 replaced by m.
    """

    fmt: Format
    out: Format
    bovf: int
    acc: int
    rnd: int
    sat: int
    k: int
    m: int
    n: int
    tiling: Tiling
    guard4x4: bool

    @classmethod
    def check(cls, cfg: Config, mxcfg: int, mxtile: int) -> Settings:
        """Read both registers. Raises BadGeometryError for what no instruction accepts."""
        c = {name: field.get(mxcfg) for name, field in MXCFG.items()}
        t = {name: field.get(mxtile) for name, field in MXTILE.items()}
        require(not c["reserved"] and not t["reserved"])
        require(c["rnd"] <= max(Rounding))
        fmt = by_code(c["ft"])
        require(fmt is not None and fmt.name in cfg.formats)
        mode = acc_mode(c["bovf"], c["acc"])
        out = None if mode is None else output_format(fmt, mode)
        require(out is not None)
        require(1 <= t["k"] <= cfg.lanes(fmt.container))
        require(t["m"] >= 1)
        return cls(
            fmt=fmt,
            out=out,
            bovf=c["bovf"],
            acc=c["acc"],
            rnd=c["rnd"],
            sat=c["sat"],
            k=t["k"],
            m=t["m"],
            n=t["n"] or t["m"],
            tiling=Tiling(t["tiling"]),
            guard4x4=bool(t["guard4x4"]),
        )

    def slice_columns(self, cfg: Config) -> int:
        """Columns of C in one tile of a group."""
        return min(cfg.rows, cfg.lanes(self.out.container))


def tails(total: int, tiles: int, rows: int) -> list[int]:
    """Active rows of each of `tiles` tiles: all the same, or what a macro's total leaves."""
    require(1 <= total <= rows * tiles)
    if total <= rows:
        return [total] * tiles
    return [min(rows, max(0, total - rows * tile)) for tile in range(tiles)]


def check_range(tiles: list[int], cfg: Config) -> None:
    """The tiles exist."""
    require(all(tile < cfg.tiles for tile in tiles))


# -- loads and stores ------------------------------------------------------------------------


@dataclass(frozen=True)
class Block:
    """The active part of one tile and where it lies: `rows` x `bits`, from row 0 and bit 0 on.

    Row r is in memory row `mem_row` + r, from byte `mem_byte` on.
    """

    tile: int
    rows: int
    bits: int
    mem_row: int
    mem_byte: int

    @property
    def active(self) -> bool:
        """Has any byte."""
        return self.rows > 0 and self.bits > 0

    @property
    def bytes(self) -> int:
        """Bytes of a row; a spare nibble of the last one is zero."""
        return -(-self.bits // 8)


def _operand_blocks(
    cfg: Config, tile: int, rows: list[int], bits: int, n: int, down: bool
) -> Iterator[Block]:
    for t in range(n):
        if down:
            yield Block(tile + t, rows[t], bits, cfg.rows * t, 0)
        else:
            yield Block(tile + t, rows[0], bits, 0, cfg.row_bytes * t)


def _c_blocks(cfg: Config, s: Settings, tile: int, n: int, down: bool) -> Iterator[Block]:
    width = s.out.container
    slices = cfg.result_tiles(width)
    stride = slices if s.guard4x4 and width <= GUARD_MAX_BITS else GROUP_STRIDE
    per_slice = s.slice_columns(cfg)
    if down:
        require(s.n <= per_slice)
        for t, rows in enumerate(tails(s.m, n, cfg.rows)):
            yield Block(tile + stride * t, rows, s.n * width, cfg.rows * t, 0)
        return
    groups = -(-n // slices)
    (rows,) = tails(s.m, 1, cfg.rows)
    columns = tails(s.n, groups, cfg.rows)
    require(max(columns) <= per_slice * min(n, slices))
    for t in range(n):
        group, part = divmod(t, slices)
        active = min(per_slice, max(0, columns[group] - per_slice * part))
        byte = (cfg.rows * group + per_slice * part) * width // 8
        yield Block(tile + stride * group + part, rows, active * width, 0, byte)


def named_blocks(
    cfg: Config, what: str, tile: int, n: int, down: bool, settings: Settings | None
) -> list[Block]:
    """One block for each tile that a load or store names; `settings` is None for `r`."""
    if settings is None:
        full = [cfg.rows] * n
        return list(_operand_blocks(cfg, tile, full, cfg.row_bits, n, down))
    if what == "c":
        return list(_c_blocks(cfg, settings, tile, n, down))
    total = settings.m if what == "a" else settings.n
    rows = tails(total, n if down else 1, cfg.rows)
    bits = settings.k * settings.fmt.container
    return list(_operand_blocks(cfg, tile, rows, bits, n, down))


# -- mmacc -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Mma:
    """What one mmacc reads and writes.

    Parameters
    ----------
    a_tiles, b_tiles : (tile, active rows) of each tile of A and B.
    groups : first tile of the C group of each pair, A's index first.
    fallback : 4x4 was asked for and not granted.
    """

    a_tiles: list[tuple[int, int]]
    b_tiles: list[tuple[int, int]]
    groups: list[list[int]]
    fallback: bool


def _guard_granted(cfg: Config, s: Settings, tc: int, ta: int, tb: int) -> bool:
    width = s.out.container
    count = GUARD_TILES * GUARD_TILES * cfg.result_tiles(width)
    if width > GUARD_MAX_BITS or count > cfg.tiles or tc + count > cfg.tiles:
        return False
    if cfg.accumulators == "split":
        return True
    return all(first >= tc + count or first + GUARD_TILES <= tc for first in (ta, tb))


def plan_mma(cfg: Config, s: Settings, tc: int, ta: int, tb: int, btr: int) -> Mma:
    """The tiles of an mmacc, all checked."""
    granted = s.guard4x4 and _guard_granted(cfg, s, tc, ta, tb)
    slices, stride = cfg.result_tiles(s.out.container), GROUP_STRIDE
    if granted:
        a_count = b_count = GUARD_TILES
        stride = slices
    else:
        tiling = Tiling.T2X2 if s.guard4x4 else s.tiling
        a_count, b_count = tiling.a_tiles, tiling.b_tiles
    require(slices <= stride or a_count * b_count == 1)
    if btr != BTR_NATIVE:
        square = s.fmt.container == 8 and cfg.lanes(8) == cfg.rows
        require(square and s.k == s.m == s.n == cfg.rows)
    a_tiles = [(ta + i, rows) for i, rows in enumerate(tails(s.m, a_count, cfg.rows))]
    b_tiles = [(tb + j, rows) for j, rows in enumerate(tails(s.n, b_count, cfg.rows))]
    groups = [[tc + stride * (i * b_count + j) for j in range(b_count)] for i in range(a_count)]
    read = [tile for tile, rows in a_tiles + b_tiles if rows]
    written = [
        groups[i][j] + part
        for i, (_, rows) in enumerate(a_tiles)
        for j, (_, columns) in enumerate(b_tiles)
        if rows
        for part in range(-(-columns // s.slice_columns(cfg)))
    ]
    check_range(read + written, cfg)
    require(cfg.accumulators == "split" or not set(read) & set(written))
    return Mma(a_tiles, b_tiles, groups, s.guard4x4 and not granted)
