"""Random moves and vector operations, legal ones and what they may trap on."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from hdl import isa
from hdl.formats import by_code

from .program import Program, Request

if TYPE_CHECKING:
    from .random_program import Generator

__all__ = ["MOVE_POINTS", "VECTOR_POINTS", "bad_moves", "random_move", "random_vector"]

SIZES = "bhwd"
VECTOR_NAMES = ("mvmadd", "mvmul", "mvaddx", "mvaddy", "mvmax", "mvmin")
MOVE_POINTS = (
    *("mmov", "mzero", "mbcrow.b", "move of several tiles", "move in place"),
    *(f"{name}.{size}" for name in ("mtrans", "mbccol", "mbcast", "mget") for size in SIZES),
    *(f"{name} in place" for name in ("mmov", "mtrans", "mbcrow", "mbccol")),
    *(f"badgeom: mtrans {text}" for text in ("past the last tile", "groups overlap")),
    *(f"badgeom: {what} beyond the tile" for what in ("row", "column", "element")),
    "badgeom: index far beyond the tile",
)
"""Coverage points of the moves in a core with one file."""

VECTOR_POINTS = (
    *(f"{name} {kind}" for name in VECTOR_NAMES for kind in ("same", "wide")),
    *("vector in place", "vector of few rows", "vector of few elements"),
    "badgeom: vector z past the last tile",
)
"""Coverage points of the vector mode; those of its formats and its C file come on top."""

TRIES = 12
"""Random operands tried for one legal instruction before another kind is drawn."""


def _index(g: Generator, count: int) -> int:
    return g.rng.choice((0, count - 1, g.rng.randrange(count)))


def _draw_move(g: Generator) -> tuple[str, Callable[[Program], Request]]:
    """A move of a random kind and what builds it; it may trap."""
    rng, cfg = g.rng, g.cfg
    td = rng.randrange(cfg.tiles)
    ts = td if rng.random() < 0.2 else rng.randrange(cfg.tiles)
    n = 1 << rng.choice((0, 0, 0, 1, 1, 2, 3, 4))
    number = rng.randrange(len(SIZES))
    size = SIZES[number]
    in_c = {"cfile": g.in_c_file(0.5)}
    lanes = cfg.row_bytes >> number
    rd = rng.randrange(32)
    value = rng.getrandbits(64)
    row, column = _index(g, cfg.rows), _index(g, lanes)
    element = _index(g, lanes * cfg.rows)
    kinds = {
        "mzero": (3, lambda p: p.mzero(td, n, **in_c)),
        "mmov": (5, lambda p: p.mmov(td, ts, n, **in_c)),
        "mmovf": (4 if cfg.split else 0, lambda p: p.mmovf(td, ts, n, **in_c)),
        f"mtrans.{size}": (5, lambda p: p.mtrans(size, td, ts, **in_c)),
        "mbcrow": (2, lambda p: p.mbcrow(td, ts, row, **in_c)),
        f"mbccol.{size}": (3, lambda p: p.mbccol(size, td, ts, column, **in_c)),
        f"mbcast.{size}": (3, lambda p: p.mbcast(size, td, value, **in_c)),
        f"mget.{size}": (3, lambda p: p.mget(size, rd, ts, element, **in_c)),
    }
    name = rng.choices(list(kinds), [weight for weight, _ in kinds.values()])[0]
    return name, kinds[name][1]


def random_move(g: Generator) -> bool:
    """Append a legal move; False where none was found."""
    for _ in range(TRIES):
        name, build = _draw_move(g)
        request = g.draft(build)
        if g.trap_of(request):
            continue
        g.append(build)
        operands = isa.decode(request.inst).operands
        if operands.get("n", 1) > 1:
            g.count("move of several tiles")
        if operands["cfile"]:
            g.count("move in the C file")
        if "td" in operands and operands["td"] == operands.get("ts") and name != "mmovf":
            g.count("move in place", f"{name.partition('.')[0]} in place")
        return True
    return False


def random_vector(g: Generator) -> bool:
    """Append a legal operation of the vector mode; False where none was found."""
    rng, cfg = g.rng, g.cfg
    if not cfg.has_vector:
        return False
    for _ in range(TRIES):
        name, wide = rng.choice(VECTOR_NAMES), rng.random() < 0.5
        tz, tx, ty = (rng.randrange(cfg.tiles) for _ in range(3))
        place = rng.random()
        if place < 0.15:
            tx = tz
        elif place < 0.3:
            ty = tz
        elif place < 0.45:
            ty = min(tz + rng.randrange(4), cfg.tiles - 1)
        in_c = g.in_c_file(0.5)

        def build(p: Program, name=name, tz=tz, tx=tx, ty=ty, wide=wide, in_c=in_c):
            return p.vector(name, tz, tx, ty, wide=wide, cfile=in_c)

        if g.trap_of(g.draft(build)):
            continue
        for _ in range(rng.choice((1, 1, 2))):  # again into the same z
            g.append(build)
        _count_vector(g, name, (tz, tx, ty), wide, in_c)
        return True
    return False


def _count_vector(
    g: Generator, name: str, tiles: tuple[int, int, int], wide: bool, in_c: bool
) -> None:
    c = {n: f.get(g.machine.csrs[isa.Csr.MXCFG]) for n, f in isa.MXCFG.items()}
    t = {n: f.get(g.machine.csrs[isa.Csr.MXTILE]) for n, f in isa.MXTILE.items()}
    fmt = by_code(c["ft"])
    kind = "float" if fmt.is_float else fmt.kind.value
    tz, tx, ty = tiles
    points = {
        f"vector {kind}": True,
        "vector in the C file": in_c,
        "vector in place": not in_c and tz in (tx, ty),
        "vector over its own operand": not in_c and wide and tz < ty <= tz + 3,
        "vector of few rows": t["m"] < g.cfg.rows,
        "vector of few elements": t["k"] < g.cfg.lanes(fmt.container),
        "vector of half a byte": fmt.container == 4 and t["k"] % 2 and not wide,
    }
    g.count(f"{name} {'wide' if wide else 'same'}")
    g.count(*(point for point, occurred in points.items() if occurred))


def bad_moves(g: Generator) -> dict[str, Callable[[Program], Request]]:
    """Moves that answer badgeom, by name."""
    rng, cfg = g.rng, g.cfg
    last = cfg.tiles - 1
    far = 1 << rng.randrange(9, 64)
    tiles = max(1, cfg.rows * 8 // cfg.row_bytes)  # of a group of 8-byte elements
    kinds = {
        "mtrans past the last tile": lambda p: p.mtrans("d", 0, last),
        "mtrans to past the last tile": lambda p: p.mtrans("d", last, 0),
        "mtrans groups overlap": lambda p: p.mtrans("d", 1, 1 + rng.randint(1, tiles - 1)),
        "row beyond the tile": lambda p: p.mbcrow(0, 1, cfg.rows),
        "column beyond the tile": lambda p: p.mbccol("h", 0, 1, cfg.row_bytes // 2),
        "element beyond the tile": lambda p: p.mget("w", 1, 2, cfg.rows * cfg.row_bytes // 4),
        "index far beyond the tile": lambda p: p.mget("b", 1, 2, far),
    }
    if tiles == 1:
        kinds = {name: build for name, build in kinds.items() if "mtrans" not in name}
    return kinds
