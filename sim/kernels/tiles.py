"""Tilings, and which tile registers hold what in each."""

from __future__ import annotations

from dataclasses import dataclass

from hdl.config import Config
from hdl.isa import Tiling

__all__ = [
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
"""Tilings that the kernels use, by name."""


@dataclass(frozen=True)
class Share:
    """The tile registers of one operand.

    Parameters
    ----------
    buffers : first tile of each buffer; they take turns along K.
    deep : slices of K that a buffer holds, one behind the other for each tile of the macro.
    group : tiles that one mtrans turns in place; 0 if the operand lies as the core wants it.
    """

    buffers: tuple[int, ...]
    deep: int
    group: int


@dataclass(frozen=True)
class Tiles:
    """Which tile registers hold what, for one tiling.

    In one file C takes the lower half, A the third quarter and B the last, so that with 4 banks
    results and loads, and reads of B and of C, never meet in a bank. With a file of its own C
    takes all of that, A the lower and B the upper half of the other.

    A transposed operand is loaded as it lies and turned where it is, so it takes no tiles beside
    its buffers. One mtrans makes rows x rows elements, for elements of several bytes so many tiles
    that follow each other along K. Where a macro has several tiles of such an operand they are not
    neighbours, and every pair is multiplied by an mmacc of its own (`joined` is false).

    Parameters
    ----------
    macro : the tiling.
    result : tiles of one rows x rows result.
    c_sets : first tile of C for each set; blocks of C take turns.
    a, b : the operands' shares.
    lanes : elements of K of one mma.
    joined : one mmacc multiplies all tiles of a slice.
    cfile : C has a file of its own.
    """

    macro: Macro
    result: int
    c_sets: tuple[int, ...]
    a: Share
    b: Share
    lanes: int
    joined: bool
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
        in_bits: int = 8,
        transposed: tuple[bool, bool] = (False, False),
    ) -> Tiles:
        """The allocation. Raises ValueError where the file is too small for the macro.

        Parameters
        ----------
        out_bits, in_bits : width of a result and of an operand's element.
        transposed : A, B must be turned.
        """
        result = cfg.result_tiles(out_bits)
        c_tiles = cfg.tiles if cfg.split else cfg.tiles // 2
        a_first = 0 if cfg.split else c_tiles
        share = (cfg.tiles - a_first) // 2  # tiles of A, and of B
        if macro.pairs == 1:
            c_sets = tuple(range(0, c_tiles - result + 1, result))
        elif macro.guard4x4:
            span = result * macro.pairs
            c_sets = tuple(range(0, c_tiles - span + 1, span)) if out_bits <= PACKED_BITS else ()
        else:
            span = GROUP_STRIDE * macro.pairs
            sets = GROUP_STRIDE // result if result <= GROUP_STRIDE else 0
            c_sets = tuple(
                first + result * index
                for first in range(0, c_tiles - span + 1, span)
                for index in range(sets)
            )

        lanes, group = cfg.lanes(in_bits), 1
        if any(transposed):
            lanes, group = min(lanes, cfg.rows), cfg.result_tiles(in_bits)
        sides = (macro.a_tiles, macro.b_tiles)
        joined = group == 1 or not any(
            turned and tiles > 1 for turned, tiles in zip(transposed, sides, strict=True)
        )
        most = min(MAX_TILES, pow2_below(max(1, share // 2)))  # that leave room for two buffers
        shares = []
        for first, tiles, turned in zip((a_first, a_first + share), sides, transposed, strict=True):
            if turned or not joined:
                deep = group
            elif macro.pairs > 1:
                deep = 1
            else:
                deep = min(most, group) if any(transposed) else most
            size = tiles * deep
            buffers = tuple(range(first, first + share - size + 1, size))
            shares.append(Share(buffers, deep, group if turned else 0))
        if not (c_sets and shares[0].buffers and shares[1].buffers):
            raise ValueError(
                f"tiling {macro.name} with {out_bits}-bit results does not fit in {cfg.tiles} "
                f"tiles: use a smaller tiling or more tiles"
            )
        return cls(macro, result, c_sets, *shares, lanes, joined, cfg.split)
