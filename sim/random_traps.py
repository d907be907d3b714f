"""Random instructions that trap, each kind under its name (isa.md section 2, Traps)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from hdl import isa
from hdl.formats import FORMATS

from .program import Program, Request, mxtile_value
from .random_moves import bad_moves

if TYPE_CHECKING:
    from .random_program import Generator

__all__ = ["random_trap"]

Build = Callable[[Program], Request]

ERROR_ILLEGAL, ERROR_BADGEOM, ERROR_BUS = 1, 2, 3


def random_trap(g: Generator) -> None:
    """Append one trap of a random kind; mxcfg and mxtile are as before afterwards."""
    kinds = {
        _illegal: 4,
        _random_word: 1,
        _bad_settings: 5,
        _bad_tiles: 3,
        _not_square: 1,
        _bad_columns: 1,
        _bus: 1,
    }
    g.rng.choices(list(kinds), list(kinds.values()))[0](g)


def _illegal(g: Generator) -> None:
    """A word that is not built."""
    rng, cfg = g.rng, g.cfg
    registers = isa.RD.put(rng.randrange(32)) | isa.RS1.put(rng.randrange(32))
    registers |= isa.RS2.put(rng.randrange(32))

    def word(funct3: int, f7: int, opcode: int = isa.OPCODE_AME) -> int:
        fixed = isa.OPCODE.put(opcode) | isa.FUNCT3.put(funct3) | isa.FUNCT7.put(f7)
        return fixed | registers

    def csr(name: str, number: int | str, source: int) -> int:
        return isa.encode(name, rng.randrange(32), number, source, csr_base=cfg.csr_base)

    def move(op: int, size: int, cfile: int = 0) -> int:
        f7 = isa.MOVE["op"].put(op) | isa.MOVE["size"].put(size) | isa.MOVE["cfile"].put(cfile)
        return word(isa.Funct3.MOVE, f7)

    f3 = isa.Funct3
    unknown = rng.choice((cfg.csr_base + isa.CSR_COUNT, isa.XMCSR + 1, 0x001, 0xC00))
    whole = (isa.MoveOp.MMOV, isa.MoveOp.MZERO)
    of_elements = [op for op in isa.MoveOp if op not in (*whole, isa.MoveOp.MMOV_OTHER)]
    vector_f7 = (6, 7, 0x10, 0x20) if cfg.has_vector else tuple(isa.VectorOp)
    kinds = {
        "opcode": word(rng.randrange(8), rng.getrandbits(7), rng.choice((0x2B, 0x33, 0x7F))),
        "mmacc imm[6:4]": word(f3.MMACC, rng.randint(1, 7) << 4 | rng.getrandbits(4)),
        "mmacc.mx": word(f3.MMACC_MX, rng.getrandbits(4)),
        "load or store of the C file": word(
            rng.choice((f3.MLD, f3.MST)), isa.LDST["cfile"].mask | rng.getrandbits(6)
        ),
        "move of 16-byte elements": move(rng.choice(of_elements), rng.randint(4, 7)),
        "move of 64 tiles": move(rng.choice(whole), rng.choice((6, 7))),
        "move of the C file": move(rng.choice(whole), 0, 1),
        "move from the C file": move(isa.MoveOp.MMOV_OTHER, 0),
        "vector mode": word(f3.VECTOR, rng.choice(vector_f7)),
        "vector mode in the C file": word(f3.VECTOR, isa.VECTOR["cfile"].mask),
        "mpool": word(f3.MPOOL, 0),
        "system operation": word(f3.SYSTEM, rng.choice((isa.SystemOp.MSYMSTAT, 3, 127))),
        "SYSTEM funct3": word(rng.choice((0, 4)), rng.getrandbits(7), isa.OPCODE_SYSTEM),
        "unknown CSR": csr("csrrs", unknown, 0),
        "write to mxinfo": csr(rng.choice(("csrrw", "csrrwi")), "mxinfo", 0),
        "set bits of mxinfo": csr("csrrsi", "mxinfo", 1),
    }
    if cfg.split:
        kinds = {name: built for name, built in kinds.items() if "C file" not in name}
    name = rng.choice(list(kinds))
    values = [rng.getrandbits(64) for _ in range(2)]
    g.expect(f"illegal: {name}", ERROR_ILLEGAL, lambda p: p.word(kinds[name], *values))


def _random_word(g: Generator) -> None:
    """Any word that traps, whatever it is."""
    rng = g.rng
    opcodes = (isa.OPCODE_AME, isa.OPCODE_AME, isa.OPCODE_SYSTEM, rng.getrandbits(7))
    for _ in range(8):
        word = rng.getrandbits(32) & ~isa.OPCODE.mask | rng.choice(opcodes)
        values = [rng.getrandbits(64) >> rng.randrange(64) for _ in range(2)]
        error = g.trap_of(Request(word, *values))
        if error:
            name = ("illegal", "badgeom", "bus")[error - 1]
            g.expect(
                f"random word: {name}",
                error,
                lambda p, word=word, values=values: p.word(word, *values),
            )
            return


def _bus(g: Generator) -> None:
    """A base address beyond the bus."""
    base = 1 << g.rng.randint(g.cfg.addr_bits, 63) | g.arenas[0][0]
    move = g.rng.choice(("mld", "mst"))
    g.expect("bus", ERROR_BUS, lambda p: getattr(p, move)("r", 0, base, g.cfg.row_bytes))


def _user(g: Generator, what: str) -> Build:
    """An instruction that checks mxcfg and mxtile: mmacc, or loads and stores of a, b or c."""
    half = g.cfg.tiles // 2
    if what == "mmacc":
        return lambda p: p.mmacc(0, half, half + 4)
    move, base = g.rng.choice(("mld", "mst")), g.arenas[0][0]
    return lambda p: getattr(p, move)(what, 0, base, g.cfg.row_bytes)


def _with_csr(g: Generator, name: str, csr: isa.Csr, value: int, build: Build) -> None:
    """Append `build` with one CSR changed for it alone."""
    old = g.machine.csrs[csr]
    g.append(lambda p: p.csrrw(csr.name.lower(), value))
    g.expect(f"badgeom: {name}", ERROR_BADGEOM, build)
    g.append(lambda p: p.csrrw(csr.name.lower(), old))


def _changed(word: int, fields: dict[str, isa.Field], values: dict[str, int]) -> int:
    for name, value in values.items():
        word = word & ~fields[name].mask | fields[name].put(value)
    return word


def _bad_settings(g: Generator) -> None:
    """One wrong field of mxcfg or mxtile."""
    rng, cfg = g.rng, g.cfg
    lanes, rows = cfg.lanes(g.lane_bits), cfg.rows
    mxtile, mxcfg = g.machine.csrs[isa.Csr.MXTILE], g.machine.csrs[isa.Csr.MXCFG]
    tiling = isa.Tiling(isa.MXTILE["tiling"].get(mxtile))
    unbuilt = [fmt.code for fmt in FORMATS.values() if fmt.name not in cfg.formats]
    any_user = ("mmacc", "mmacc", "a", "b", "c")
    of_tile = {
        "K zero": ({"k": 0}, any_user),
        "K too large": ({"k": rng.choice((lanes + 1, rng.randint(lanes + 1, 255)))}, any_user),
        "M zero": ({"m": 0, "n": rng.choice((0, 1))}, any_user),
        "M just too large": (
            {"m": rows * tiling.a_tiles + 1, "n": 1, "guard4x4": 0},
            ("mmacc",),
        ),
        "N just too large": (
            {"m": 1, "n": rows * tiling.b_tiles + 1, "guard4x4": 0},
            ("mmacc",),
        ),
        "M too large for one tile": ({"m": rows + 1, "n": 1}, ("a", "c")),
        "N too large for one tile": ({"m": 1, "n": rows + 1}, ("b", "c")),
        "M far too large": ({"m": rng.randint(8 * rows + 1, 255), "n": 0}, any_user),
        "reserved bits of mxtile": ({"reserved": 1 << rng.randrange(5)}, any_user),
    }
    of_cfg = {
        "Ft not built": {"ft": rng.choice((0x0A, 0x16, 0xD0, 0xFF, *unbuilt))},
        "RND undefined": {"rnd": rng.randint(4, 7)},
        "ACC undefined": {"acc": rng.randint(4, 7)},
        "reserved bits of mxcfg": {"reserved": 1 << rng.randrange(16)},
    }
    name = rng.choice([*of_tile, *of_cfg])
    if name in of_tile:
        values, users = of_tile[name]
        value = _changed(mxtile, isa.MXTILE, values)
        _with_csr(g, name, isa.Csr.MXTILE, value, _user(g, rng.choice(users)))
    else:
        value = _changed(mxcfg, isa.MXCFG, of_cfg[name])
        _with_csr(g, name, isa.Csr.MXCFG, value, _user(g, rng.choice(any_user)))


def _bad_tiles(g: Generator) -> None:
    """Tiles that do not exist, or that an instruction may not share."""
    rng, last, row = g.rng, g.cfg.tiles - 1, g.cfg.row_bytes
    base, half = g.arenas[0][0], g.cfg.tiles // 2
    one = mxtile_value(1, 1, tiling=isa.Tiling.T2X2)
    past_last = [0, half, half + 4]
    past_last[rng.randrange(3)] = last
    kinds: dict[str, Build] = {
        "load past the last tile": lambda p: p.mld("r", last, base, row, n=2),
        "store past the last tile": lambda p: p.mst("r", last - 2, base, row, n=4, down=True),
        "mzero past the last tile": lambda p: p.mzero(last, 2),
        "mmov past the last tile": lambda p: p.mmov(0, last, 2),
        "mmov groups overlap": lambda p: p.mmov(2, 1, 2),
        "C over A": lambda p: p.mmacc(half, half, 0),
        "C over B": lambda p: p.mmacc(half, 0, half),
    }
    if g.cfg.split:
        kinds = {name: build for name, build in kinds.items() if "C over" not in name}
    kinds |= bad_moves(g)
    if g.cfg.has_vector:
        z = rng.sample(range(g.cfg.tiles), 2)
        kinds["vector z past the last tile"] = lambda p: p.vector("mvmul", last, *z, wide=True)
    name = rng.choice([*kinds, "mmacc past the last tile"])
    if name in kinds:
        g.expect(f"badgeom: {name}", ERROR_BADGEOM, kinds[name])
    else:
        _with_csr(g, name, isa.Csr.MXTILE, one, lambda p: p.mmacc(*past_last))


def _not_square(g: Generator) -> None:
    """A transpose of tiles that are not square."""
    rng, half, side = g.rng, g.cfg.tiles // 2, g.cfg.rows
    lanes = g.cfg.lanes(g.lane_bits)
    sizes = [min(side, lanes), side, side]
    if lanes == side and g.lane_bits == 8:
        sizes[rng.randrange(3)] = rng.randrange(1, side)
    btr = rng.choice([b for b in range(4) if b != isa.BTR_NATIVE])
    value = mxtile_value(*sizes)
    _with_csr(
        g,
        "bTR of tiles that are not square",
        isa.Csr.MXTILE,
        value,
        lambda p: p.mmacc(0, half, half + 4, btr=btr),
    )


def _bad_columns(g: Generator) -> None:
    """More columns of C than the named tiles hold."""
    rng, cfg = g.rng, g.cfg
    value = mxtile_value(1, cfg.rows, rng.choice((cfg.rows + 1, cfg.rows)))
    move, down = rng.choice(("mld", "mst")), rng.random() < 0.5

    def build(p: Program) -> Request:
        return getattr(p, move)("c", 0, g.arenas[0][0], cfg.line_bytes, n=1, down=down)

    _with_csr(g, "too many columns of C", isa.Csr.MXTILE, value, build)
