"""Random instructions of the front end `xuantie` that trap, each kind under its name."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from hdl import isa
from hdl.config import Config
from hdl.isa import XuanTieInstruction, XuanTieKind

from .program import Request
from .program_xuantie import XuanTieBuilder
from .reference.traps import ERROR_BUS

if TYPE_CHECKING:
    from .random_xuantie import XuanTieGenerator

__all__ = ["SIZE_TRAPS", "random_xuantie_trap", "xuantie_trap_points"]

SIZE_TRAPS = (
    *("M zero", "M too large", "N zero", "N too large"),
    *("K zero", "K too large", "K no multiple of the element"),
)
REGISTER_TRAPS = (
    *("odd pair of B", "odd pair of C", "destination is an operand"),
    *("whole registers from one between", "row of R or more"),
)
WORD_TRAPS = (
    *("unknown func or uop", "unknown size", "mzero with a source", "funct3"),
    *("unknown CSR", "write to a constant CSR"),
)


def xuantie_trap_points(cfg: Config) -> tuple[str, ...]:
    """Names of all kinds of traps that a core has, as they are counted."""
    names = [*SIZE_TRAPS, *REGISTER_TRAPS, *WORD_TRAPS]
    if len(isa.destinations(cfg)) < isa.MREGS:
        names.append("register that no mma may write")
    if len(isa.built_xuantie(cfg)) < len(isa.XUANTIE):
        names.append("format not built")
    if not cfg.ame:
        names.append("the other front end")
    return *(f"illegal: {name}" for name in names), "bus beyond the address"


def random_xuantie_trap(g: XuanTieGenerator) -> None:
    """Append one trap of a random kind; the sizes may be others afterwards."""
    kinds = {_sizes: 5, _registers: 3, _words: 3, _random_word: 1, _bus: 1}
    g.rng.choices(list(kinds), list(kinds.values()))[0](g)


def _legal_operands(g: XuanTieGenerator, row: XuanTieInstruction) -> dict[str, int]:
    """Operands with which `row` is legal if its sizes are."""
    operands = {op.name: op.lowest + g.rng.randint(0, op.max) for op in row.operands}
    if row.kind is XuanTieKind.MMA:
        # Destinations far from the sources: the higher half against the lower one.
        allowed = sorted(isa.destinations(g.cfg))
        operands["md"] = g.rng.choice(allowed) & ~int(row.mma.c_pair)
        operands["ms2"] = (operands["md"] + 4) % 8 & ~int(row.mma.b_pair)
        operands["ms1"] = operands["ms2"]
    if "row" in operands and row.form is isa.Form.MV_I:
        operands["row"] %= g.cfg.x_rows
    return operands


def _emit(
    row: XuanTieInstruction, operands: dict[str, int], rs1: int = 0, rs2: int = 0
) -> Callable[[XuanTieBuilder], Request]:
    """What appends the instruction to a builder."""
    word = isa.encode_row(row, **operands)
    return lambda x: x.program.word(word, rs1, rs2)


def _values(g: XuanTieGenerator, row: XuanTieInstruction) -> tuple[int, int]:
    """Values of its scalar registers with which `row` is legal."""
    if row.is_memory:
        return g.arenas[0][0] + g.arenas[0][1] // 2, g.cfg.row_bytes
    return g.rng.randrange(g.cfg.x_rows), 0


def _sizes(g: XuanTieGenerator) -> None:
    """One wrong size for an instruction that uses it."""
    rng, cfg = g.rng, g.cfg
    name = rng.choice(SIZE_TRAPS)
    users = [
        row
        for row in g.rows
        if row.kind in (XuanTieKind.MMA, XuanTieKind.POINTWISE)
        or (row.is_memory and not row.registers)
    ]
    if name.startswith("N"):
        users = [row for row in users if row.mma is not None]
    if name == "K no multiple of the element":
        users = [row for row in users if row.size]
    if not users:
        return
    row = rng.choice(users)
    columns = cfg.x_rows * (2 if row.mma and row.mma.b_pair else 1)
    step = 1 << row.size
    sizes = {"m": rng.randint(1, cfg.x_rows), "n": rng.randint(1, columns)}
    sizes["k"] = step * rng.randint(1, cfg.row_bytes // step)
    wrong = {
        "M zero": {"m": 0},
        "M too large": {"m": rng.choice((cfg.x_rows + 1, rng.randint(cfg.x_rows + 1, 255)))},
        "N zero": {"n": 0},
        "N too large": {"n": rng.choice((columns + 1, rng.randint(columns + 1, 255)))},
        "K zero": {"k": 0},
        "K too large": {"k": rng.choice((cfg.row_bytes + step, step << 12))},
        "K no multiple of the element": {"k": sizes["k"] - rng.randint(1, max(1, step - 1))},
    }
    g.set_sizes(**(sizes | wrong[name]))
    g.expect_illegal(name, _emit(row, _legal_operands(g, row), *_values(g, row)))


def _registers(g: XuanTieGenerator) -> None:
    """A register or a row of one that an instruction may not name."""
    rng, cfg = g.rng, g.cfg
    mma = [row for row in g.rows if row.kind is XuanTieKind.MMA]
    kinds = {
        "odd pair of B": [row for row in mma if row.mma.b_pair],
        "odd pair of C": [row for row in mma if row.mma.c_pair],
        "destination is an operand": mma,
        "whole registers from one between": [row for row in g.rows if row.registers > 1],
        "row of R or more": [row for row in g.rows if row.form is isa.Form.MV_X],
    }
    forbidden = sorted(set(range(isa.MREGS)) - isa.destinations(cfg))
    if forbidden:
        kinds["register that no mma may write"] = mma
    kinds = {name: rows for name, rows in kinds.items() if rows}
    name = rng.choice(list(kinds))
    row = rng.choice(kinds[name])
    operands, (rs1, rs2) = _legal_operands(g, row), _values(g, row)
    if not row.registers and row.kind is not XuanTieKind.MMOV:
        g.legal_sizes(row)
    match name:
        case "odd pair of B":
            operands["ms2"] |= 1
        case "odd pair of C":
            operands["md"] |= 1
        case "destination is an operand":
            written = operands["md"] + rng.randint(0, row.mma.c_pair)
            operands[rng.choice(("ms1", "ms2"))] = written & ~int(row.mma.b_pair)
            if row.mma.b_pair and not rng.randrange(2):
                operands["ms2"] = written & ~1
        case "register that no mma may write":
            operands["md"] = rng.choice(forbidden) & ~int(row.mma.c_pair)
        case "whole registers from one between":
            name_of = "md" if row.kind is XuanTieKind.LOAD else "ms3"
            operands[name_of] |= rng.randint(1, row.registers - 1)
        case "row of R or more":
            rs1 = rng.choice((cfg.x_rows, cfg.x_rows + 1, 1 << rng.randint(8, 63)))
    request = g.drawn(_emit(row, operands, rs1, rs2))
    if g.trap_of(request) == 1:
        g.expect_illegal(name, lambda x: x.program.word(request.inst, request.rs1, request.rs2))


def _words(g: XuanTieGenerator) -> None:
    """A word that no row of this core is, or a CSR it may not use so."""
    rng, cfg = g.rng, g.cfg
    opcode = isa.OPCODE_XUANTIE
    noise = isa.MD.put(rng.randrange(8)) | isa.MS1.put(rng.randrange(8))
    noise |= isa.MS2.put(rng.randrange(8))

    def csr(name: str, number: int | str, source: int) -> int:
        return isa.encode(name, rng.randrange(32), number, source, csr_base=cfg.csr_base)

    constant = rng.choice(("xmsize", "xmregsize", "xmlenb", "xmisa"))
    func, uop = rng.choice(((11, 0), (15, 3), (3, 4), (9, 5), (3, 7), (12, 7), (0, 6), (1, 1)))
    kinds = {
        "unknown func or uop": opcode | isa.FUNC.put(func) | isa.UOP.put(uop) | noise,
        "unknown size": opcode | isa.FUNC.put(rng.choice((1, 3, 9))) | noise,
        "mzero with a source": isa.encode("mzero", rng.randrange(8), table=isa.XUANTIE)
        | rng.choice((isa.MS1.put(rng.randint(1, 7)), isa.MS2.put(rng.randint(1, 7)))),
        "funct3": isa.encode("mzero", 0, table=isa.XUANTIE) | isa.FUNCT3.put(rng.randint(1, 7)),
        "unknown CSR": csr("csrrs", rng.choice((0x804, 0x800, 0xCC5, 0xCBF, 0x001)), 0),
        "write to a constant CSR": csr(rng.choice(("csrrw", "csrrs", "csrrc")), constant, 5),
    }
    missing = [row for row in isa.XUANTIE if row not in g.rows]
    if missing:
        row = rng.choice(missing)
        kinds["format not built"] = isa.encode_row(row, **_legal_operands(g, row))
    if not cfg.ame:
        kinds["the other front end"] = rng.choice(
            (
                isa.encode("mmacc.t", 0, 16, 24, 0),
                isa.encode("mzero", 0),
                isa.encode("mldr", 0, 10, 11),
                isa.encode("mrelease"),
                csr("csrrs", "mxcfg", 0),
                csr("csrrs", "mxinfo", 0),
            )
        )
    name = rng.choice(list(kinds))
    if name == "format not built":
        g.legal_sizes()
    word, values = kinds[name], [rng.getrandbits(64) for _ in range(2)]
    g.expect_illegal(name, lambda x: x.program.word(word, *values))


def _random_word(g: XuanTieGenerator) -> None:
    """Any word that traps, whatever it is."""
    rng = g.rng
    for _ in range(8):
        word = rng.getrandbits(32) & ~(isa.OPCODE.mask | isa.FUNCT3.mask) | isa.OPCODE_XUANTIE
        values = [rng.getrandbits(64) >> rng.randrange(64) for _ in range(2)]
        request = Request(word, *values)
        if g.trap_of(request):
            g.append(lambda p, r=request: p.word(r.inst, r.rs1, r.rs2))
            g.count("random word traps")
            return


def _bus(g: XuanTieGenerator) -> None:
    """A base address beyond the bus."""
    base = 1 << g.rng.randint(g.cfg.addr_bits, 63) | g.arenas[0][0]
    row = g.rng.choice([row for row in g.rows if row.is_memory])
    operands = _legal_operands(g, row)
    if row.registers:
        operands[row.operands[0].name] = 0
    else:
        g.legal_sizes(row)
    build = _emit(row, operands, base, g.cfg.row_bytes)
    if g.append(lambda p: build(XuanTieBuilder(p))).error == ERROR_BUS:
        g.count("bus beyond the address")
