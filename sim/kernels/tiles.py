"""Tilings, and which tile registers hold what in each."""

from __future__ import annotations

from dataclasses import dataclass

from hdl.config import Config
from hdl.isa import Tiling

__all__ = [
    "BLOCKS",
    "GROUP_STRIDE",
    "MAX_TILES",
    "TILINGS",
    "Macro",
    "Share",
    "Tiles",
    "pow2_above",
    "pow2_below",
]

GROUP_STRIDE = 4
"""Tiles from one C group of a macro to the next (isa.md section 2), but for 4x4."""
MAX_TILES = 8
"""Most tiles that one load or store names."""
PACKED_BITS = 16
"""Widest outputs whose C groups 4x4 packs."""


def pow2_below(count: int) -> int:
    """The largest power of two that is at most `count`."""
    return 1 << count.bit_length() - 1


def pow2_above(count: int) -> int:
    """The smallest power of two that is at least `count`."""
    return 1 << (count - 1).bit_length()


@dataclass(frozen=True)
class Macro:
    """What one mmacc multiplies: `a_tiles` x `b_tiles` tiles, as mxtile says it.

    Parameters
    ----------
    name : for people.
    a_tiles, b_tiles : tiles of A and of B.
    tiling, guard4x4 : fields of mxtile.
    """

    name: str
    a_tiles: int
    b_tiles: int
    tiling: Tiling
    guard4x4: bool = False

    @property
    def pairs(self) -> int:
        """Results."""
        return self.a_tiles * self.b_tiles

    def group_stride(self, result: int) -> int:
        """Tiles from one C group to the next, for results of `result` tiles."""
        return result if self.guard4x4 else GROUP_STRIDE


TILINGS: dict[str, Macro] = {
    macro.name: macro
    for macro in (
        *(
            Macro(tiling.name[1:].lower(), tiling.a_tiles, tiling.b_tiles, tiling)
            for tiling in (Tiling.T1X1, Tiling.T2X2, Tiling.T1X4, Tiling.T4X1)
        ),
        Macro("4x4", 4, 4, Tiling.T2X2, guard4x4=True),
    )
}
"""Tilings of the core, by name."""

BLOCKS: dict[str, tuple[Macro, int, int]] = {
    **{name: (macro, 1, 1) for name, macro in TILINGS.items()},
    "4x2": (TILINGS["4x1"], 1, 2),
    "2x4": (TILINGS["1x4"], 2, 1),
}
"""Blocks of C that stay in tiles, by name: the macro, and how many down and across.

Blocks of several macros share the operand that all of them multiply, so they read less.
"""


@dataclass(frozen=True)
class Share:
    """The tile registers of one operand.

    A buffer holds `tiles` tiles of a slice of K: neighbours that one macro takes (then it holds
    one slice), or each followed by its next slices.

    Parameters
    ----------
    buffers : first tile of each buffer; they take turns along K.
    tiles : tiles down A, or down B, of a block of C.
    deep : slices of K that a buffer holds.
    group : tiles that one mtrans turns in place; 0 if the operand lies as the core wants it.
    """

    buffers: tuple[int, ...]
    tiles: int
    deep: int
    group: int


@dataclass(frozen=True)
class Tiles:
    """Which tile registers hold what, for one kind of block.

    In one file C takes the lower half, A the third quarter and B the last, so that with 4 banks
    results and loads, and reads of B and of C, never meet in a bank. With a file of its own C
    takes all of that, A the lower and B the upper half of the other.

    A transposed operand is loaded as it lies and turned where it is, so it takes no tiles beside
    its buffers. One mtrans makes rows x rows elements; if these are wider than a tile row they
    make neighbouring tiles along K. A macro needs neighbours down A or B, so one that wants
    several tiles of such an operand is replaced by single tiles.

    Parameters
    ----------
    macro : what one mmacc multiplies.
    down, across : macros of a block.
    result : tiles of one rows x rows result.
    c_sets : first tile of C for each set; blocks of C take turns.
    c_parts : first tile of each macro's part of a set, counted from the set's; row by row.
    a, b : the operands' shares.
    lanes : elements of K of one mma.
    cfile : C has a file of its own.
    """

    macro: Macro
    down: int
    across: int
    result: int
    c_sets: tuple[int, ...]
    c_parts: tuple[int, ...]
    a: Share
    b: Share
    lanes: int
    cfile: bool

    @property
    def a_buffers(self) -> tuple[int, ...]:
        """First tile of each buffer of A."""
        return self.a.buffers

    @property
    def b_buffers(self) -> tuple[int, ...]:
        """First tile of each buffer of B."""
        return self.b.buffers

    @classmethod
    def of(
        cls,
        cfg: Config,
        macro: Macro,
        out_bits: int,
        *,
        down: int = 1,
        across: int = 1,
        in_bits: int = 8,
        transposed: tuple[bool, bool] = (False, False),
    ) -> Tiles:
        """The allocation. Raises ValueError where the file is too small for the block.

        Parameters
        ----------
        macro, down, across : the block.
        out_bits, in_bits : width of a result and of an operand's element.
        transposed : A, B must be turned.
        """
        name = f"{macro.a_tiles * down}x{macro.b_tiles * across}"
        lanes, group = cfg.lanes(in_bits), 1
        if any(transposed):
            lanes, group = min(lanes, cfg.rows), cfg.result_tiles(in_bits)
        sides = (macro.a_tiles, macro.b_tiles)
        if group > 1 and any(t and n > 1 for t, n in zip(transposed, sides, strict=True)):
            macro, down, across = TILINGS["1x1"], down * macro.a_tiles, across * macro.b_tiles

        result = cfg.result_tiles(out_bits)
        c_tiles = cfg.tiles if cfg.split else cfg.tiles // 2
        places = _c_places(macro, result, out_bits, c_tiles)
        parts = down * across
        a_first = 0 if cfg.split else c_tiles
        size = (cfg.tiles - a_first) // 2  # tiles of A, and of B
        shares = []
        for first, own, count, turned in (
            (a_first, macro.a_tiles, down, transposed[0]),
            (a_first + size, macro.b_tiles, across, transposed[1]),
        ):
            deep = 1
            if own == 1:
                most = min(MAX_TILES, pow2_below(max(1, size // (2 * count))))  # in two buffers
                if turned:
                    deep = group
                elif macro.pairs == 1:
                    deep = min(most, group) if any(transposed) else most
            length = own * count * deep
            buffers = tuple(range(first, first + size - length + 1, length))
            shares.append(Share(buffers, own * count, deep, group if turned else 0))
        if not (places[parts - 1 :] and shares[0].buffers and shares[1].buffers):
            how = " and a transposed operand" if any(transposed) else ""
            raise ValueError(
                f"tiling {name} with {out_bits}-bit results{how} does not fit in {cfg.tiles} "
                f"tiles: use a smaller tiling or more tiles"
            )
        c_sets = places[: len(places) - parts + 1 : parts]
        c_parts = tuple(place - places[0] for place in places[:parts])
        return cls(macro, down, across, result, c_sets, c_parts, *shares, lanes, cfg.split)


def _c_places(macro: Macro, result: int, out_bits: int, c_tiles: int) -> tuple[int, ...]:
    """First tiles at which a macro can put its results."""
    if macro.pairs == 1:
        return tuple(range(0, c_tiles - result + 1, result))
    if macro.guard4x4:
        span = result * macro.pairs
        return tuple(range(0, c_tiles - span + 1, span)) if out_bits <= PACKED_BITS else ()
    span = GROUP_STRIDE * macro.pairs
    sets = GROUP_STRIDE // result if result <= GROUP_STRIDE else 0
    return tuple(
        first + result * index
        for first in range(0, c_tiles - span + 1, span)
        for index in range(sets)
    )
