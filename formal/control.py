"""Proofs of the guard."""

from __future__ import annotations

from amaranth.hdl import Const, Mux

from hdl.config import Config
from hdl.issue.guard import Guard

from .harness import Proof
from .task import Task, mutants

__all__ = ["MUTANTS", "TASKS"]

_PAIRS = 4 * 4
_FOUR_BY_FOUR = 4
_TWO_BY_TWO = 1


def guard(cfg: Config) -> Proof:
    """The guard against its specification in sets of tiles (isa.md section 2), for all inputs."""
    p = Proof()
    dut = Guard(cfg)
    p.add("guard", dut, free=True)
    # A set is a number with one bit a tile; tiles that do not exist have bits too.
    bits = 32 + 2 * _PAIRS
    fits, apart = [], []
    for width in range(4):
        need = _PAIRS * max(1, cfg.rows * (8 << width) // cfg.row_bits)
        c = p.signal((Const((1 << need) - 1, bits) << dut.c)[:bits], f"c_tiles{width}")
        operands = (Const(15, bits) << dut.a)[:bits] | (Const(15, bits) << dut.b)[:bits]
        file_holds_both = not cfg.split
        overlap = (c & operands).any() & int(file_holds_both)
        narrow = width <= 1
        room = need <= cfg.tiles
        fits.append(p.signal(int(narrow and room) & ~c[cfg.tiles :].any(), f"fits{width}"))
        apart.append(p.signal(~overlap, f"apart{width}"))

    def of_width(values):
        result = values[0]
        for width in range(1, 4):
            result = Mux(dut.width_log2 == width, values[width], result)
        return result

    granted = p.signal(dut.guard4x4 & of_width(fits) & of_width(apart), "granted")
    refused = p.signal(dut.guard4x4 & ~granted, "refused")
    p.check("granted_runs_4x4", ~granted | (dut.mode == _FOUR_BY_FOUR))
    p.check("refused_runs_2x2", ~refused | (dut.mode == _TWO_BY_TWO))
    p.check("unasked_runs_tiling", dut.guard4x4 | (dut.mode == dut.tiling))
    p.check("fallback_is_refused", dut.fallback == refused)
    p.cover("granted_8_bit", granted & (dut.width_log2 == 0))
    if cfg.split:
        p.cover("granted_16_bit", granted & (dut.width_log2 == 1))
    else:
        p.cover("refused_for_overlap", refused & of_width(fits))
    p.cover("refused_for_room", refused & ~of_width(fits) & (dut.width_log2 == 0))
    return p


TASKS = (
    Task(
        name="guard",
        about="guard equals its specification, all inputs",
        parameters="32 tiles, rows 16 x 128 bit, unified",
        build=lambda: guard(Config()),
        depth=2,
        cover=2,
        quick=True,
    ),
    Task(
        name="guard_split",
        about="the same with a C file",
        parameters="32 + 32 tiles, rows 16 x 128 bit",
        build=lambda: guard(Config(accumulators="split")),
        depth=2,
        cover=2,
        quick=True,
    ),
    Task(
        name="guard_small",
        about="the same where results fill the file",
        parameters="16 tiles, rows 8 x 64 bit, unified",
        build=lambda: guard(Config(tiles=16, rows=8, row_bits=64, bus_bits=64)),
        depth=2,
        cover=2,
    ),
)

MUTANTS = (
    *mutants(
        "hdl/issue/guard.py",
        "guard",
        (
            "the last tile of C may not be used",
            "fits = self.c <= cfg.tiles - results",
            "fits = self.c < cfg.tiles - results",
        ),
        ("A may overlap C by one tile", "(base + SIDE <= self.c)", "(base + SIDE <= self.c + 1)"),
        ("B is not looked at", "fits & apart[0] & apart[1]", "fits & apart[0]"),
        (
            "a refusal runs TILING",
            "Mux(grant, MODE_4X4, isa.Tiling.T2X2)",
            "Mux(grant, MODE_4X4, self.tiling)",
        ),
    ),
    *mutants(
        "hdl/issue/guard.py",
        "guard_split",
        (
            "the split file's end is not looked at",
            "m.d.comb += grant.eq(fits)",
            "m.d.comb += grant.eq(1)",
        ),
    ),
)
