"""Writes the programmer's references, docs/isa.md and docs/xuantie.md, from the instruction tables.

Encodings, CSR fields, tilings and the numbers of cycles come from the code; only the words about
them are in scripts/isa_text.py and scripts/xuantie_text.py. Without options both are written; with
any, one: that of the preset's front end, the first if it has several.

examples:
  python -m scripts.isa_doc
  python -m scripts.isa_doc --preset tiny -o -
  python -m scripts.isa_doc --frontend xuantie --preset full -o -
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from hdl import isa
from hdl.cli import CommandError, Parser, check_writable, run_command, write_whole
from hdl.config import Config, ConfigError, preset
from hdl.describe import format_pairs
from hdl.interfaces import transpose_parts
from hdl.isa.fields import Instruction, OperandKind
from hdl.issue.slots import Slots
from hdl.mac.pipe import MacTiming
from hdl.units.lane_plan import expansion, vector_pairs

from . import xuantie_doc
from .isa_text import CSR_FIELDS, CSRS, INSTRUCTIONS, OPERANDS, TWO_FRONT_ENDS
from .markdown import filled, table, wrapped

__all__ = ["DOCUMENTS", "document", "main", "stem"]

PROGRAM = "scripts.isa_doc"
GROUPS = (
    ("Matrix multiply-accumulate", ("mmacc.t", "mmacc.mx")),
    ("Loads and stores", ("mld", "mst")),
    ("Moves", ("mmov", "mmovf", "mzero", "mtrans", "mbcrow", "mbccol", "mbcast", "mget")),
    ("The vector mode", ("mvmadd", "mvmul", "mvaddx", "mvaddy", "mvmax", "mvmin")),
    ("System", ("mfence", "mrelease", "csr", "mpool", "msymstat")),
)


def stem(name: str) -> str:
    """The name under which an instruction is described."""
    if name in INSTRUCTIONS:
        return name
    if name.startswith("csr"):
        return "csr"
    return name.partition(".")[0] if "." in name else name[:3]


def _numbers(cfg: Config) -> dict[str, object]:
    """What the texts leave open."""
    timing = MacTiming.of(cfg)
    return {
        "rows": cfg.rows,
        "row_bytes": cfg.row_bytes,
        "blocks": cfg.blocks,
        "m_par": cfg.m_par,
        "last_tile": f"tr{cfg.tiles - 1}",
        "addr_bits": cfg.addr_bits,
        "line_bytes": cfg.line_bytes,
        "l2_ids": cfg.l2_ids,
        "loop": timing.loop,
        "mma_latency": timing.depth,
        "transpose_cycles": cfg.blocks * transpose_parts(cfg),
        "trans_cycles": 2 * cfg.blocks,
        "get_latency": Slots.LATENCY + cfg.move_latency + 1,
    }


# -- encodings -------------------------------------------------------------------------------------


def _f7_bits(row: Instruction) -> str:
    """Bits 31:25, highest first: 0, 1, the initial of an operand, or - where ignored."""
    bits = ""
    for bit in reversed(range(isa.FUNCT7.lo, isa.FUNCT7.lo + isa.FUNCT7.width)):
        names = [o.name[0] for o in row.operands if o.field.mask >> bit & 1]
        fixed = str(row.match >> bit & 1) if row.mask >> bit & 1 else "-"
        bits += names[0] if names else fixed
    return f"`{bits}`"


def _encoding(row: Instruction) -> list[str]:
    csr = [o for o in row.operands if o.kind is OperandKind.CSR]
    cells = [f"`{row.name}`", "`csr` (31:20)" if csr else _f7_bits(row)]
    for field in (isa.RS2, isa.RS1, isa.FUNCT3, isa.RD):
        if field == isa.FUNCT3:
            cells.append(f"`{isa.FUNCT3.get(row.match):03b}`")
        elif csr and field == isa.RS2:
            cells.append("")
        else:
            names = [o.name for o in row.operands if o.field == field]
            cells.append(names[0] if names else "-")
    return [*cells, f"`{isa.OPCODE.get(row.match):#04x}`"]


def _syntax(row: Instruction) -> str:
    texts = []
    for operand in row.operands:
        name = operand.name
        texts.append(
            {
                OperandKind.BASE: f"({name})",
                OperandKind.COUNT: f"[{name}=...]",
                OperandKind.FLAG: f"[{name}]",
            }.get(operand.kind, name)
        )
    return f"{row.name} {', '.join(texts)}".strip()


def _availability(names: Iterable[str], cfg: Config) -> str:
    names = set(names)
    everywhere = isa.built_instructions(Config())
    if names <= everywhere:
        return ""
    for unit, built in isa.UNIT_INSTRUCTIONS.items():
        if names <= built:
            return f"Only with the unit `{unit}`; illegal without.\n\n"
    if names <= isa.SPLIT_INSTRUCTIONS:
        return "Only with `accumulators = split`; illegal without.\n\n"
    return "Not built in this release: illegal.\n\n"


def _instruction(name: str, cfg: Config, numbers: dict[str, object]) -> str:
    rows = [row for row in isa.AME if stem(row.name) == name]
    text = INSTRUCTIONS[name]
    title = " ".join(f"`{row.name}`" for row in rows)
    out = f"#### {title}: {text.title}\n\n```\n"
    out += "".join(f"{_syntax(row)}\n" for row in rows) + "```\n\n"
    out += _availability((row.name for row in rows), cfg)
    for label, part in (("", text.meaning), ("Traps: ", text.traps), ("Cycles: ", text.cycles)):
        if part:
            out += f"{label}{filled(part.strip(), numbers)}\n\n"
    return out


def _instructions(cfg: Config) -> str:
    numbers = _numbers(cfg)
    out = "## Instructions\n\n"
    for title, names in GROUPS:
        rows = [row for name in names for row in isa.AME if stem(row.name) == name]
        out += f"### {title}\n\n"
        out += table(
            ("instruction", "31:25", "24:20", "19:15", "14:12", "11:7", "6:0"),
            (_encoding(row) for row in rows),
        )
        operands = dict.fromkeys(operand.name for row in rows for operand in row.operands)
        out += table(("operand", "what"), ([f"`{name}`", OPERANDS[name]] for name in operands))
        if title == "The vector mode":
            out += _vector(cfg)
            continue
        for name in names:
            out += _instruction(name, cfg, numbers)
    return out


# -- registers -------------------------------------------------------------------------------------


def _csr_sections(cfg: Config) -> str:
    fields = {
        "mxcfg": isa.MXCFG,
        "mxtile": isa.MXTILE,
        "mxstatus": isa.MXSTATUS,
        "mxscale": {},
        "mxinfo": isa.MXINFO,
        "xmcsr": isa.XMCSR_FIELDS,
    }
    resets = {csr.name.lower(): value for csr, value in isa.CSR_RESET.items()}
    resets["xmcsr"] = int(isa.XMCSR_RESET)
    numbers = _numbers(cfg)
    out = (
        "## CSRs\n\nNumbers count from `Config.csr_base`, 0x7C0 by default. Bits that are not "
        "listed read 0 and ignore writes; reserved ones can be written and read back.\n\n"
    )
    for name, number in isa.csr_numbers(cfg.csr_base).items():
        reset = f", {resets[name]:#x} after reset" if name in resets else ", a constant"
        out += f"### {name} ({number:#05x}{reset})\n\n{filled(CSRS[name], numbers)}\n\n"
        rows = []
        for field, place in sorted(fields[name].items(), key=lambda item: item[1].lo):
            high = place.lo + place.width - 1
            bits = f"{high}:{place.lo}" if place.width > 1 else str(place.lo)
            rows.append([bits, f"`{field}`", filled(CSR_FIELDS[name, field], numbers)])
        if rows:
            out += table(("bits", "field", "what"), rows)
    return out


# -- tiles and tilings -----------------------------------------------------------------------------


def _tiles(cfg: Config) -> str:
    widths = [8, 16, 32, 64]
    rows = [[str(w), str(cfg.lanes(w)), str(cfg.result_tiles(w))] for w in (4, *widths)]
    out = f"""## Tiles

A tile is {cfg.rows} rows of {cfg.row_bytes} bytes. There are {cfg.tiles}, `tr0` to
`tr{cfg.tiles - 1}`; with `Config.accumulators = "split"` C has a second file of as many, which
mmacc uses by itself and other instructions with `cfile`. Elements lie along a row, the lowest
first; of 4-bit elements the low nibble first. 6-bit values sit in 8 bits, 12-bit values in 16. A
result of {cfg.rows} x {cfg.rows} elements that are wider than 8 bits is cut into column slices, one
a tile, in neighbouring tiles.

"""
    return out + table(("bits", "elements of a row", "tiles of a result"), rows)


def _mapping(tiling: isa.Tiling) -> list[str]:
    cells = []
    for i in range(tiling.a_tiles):
        for j in range(tiling.b_tiles):
            pair = i * tiling.b_tiles + j
            cells.append(f"A{i} x B{j}: C{4 * pair}..C{4 * pair + 3}")
    name = f"{tiling.a_tiles}x{tiling.b_tiles}"
    a = ", ".join(f"A{i}" for i in range(tiling.a_tiles))
    b = ", ".join(f"B{j}" for j in range(tiling.b_tiles))
    return [str(int(tiling)), name, a, b, "; ".join(cells)]


def _tilings(cfg: Config) -> str:
    out = """## Tilings

A_i is tile ta + i, B_j tile tb + j, and C_t tile tc + t. Pair (i, j) of a tiling goes to the group
of C that has its number in the order of the table; groups start every 4 tiles, and a result uses
as many of them as it needs, the rest stays untouched. 64-bit results need 8 tiles, so only 1x1 has
them.

"""
    out += table(
        ("TILING", "name", "A", "B", "results"), (_mapping(tiling) for tiling in isa.Tiling)
    )
    return (
        out
        + f"""**4x4** is asked for by GUARD4x4 = 1, whatever TILING says. It is granted if outputs
have at most 16 bits, 16 results fit below tile {cfg.tiles} of C's file, and C's tiles are not
among A0..A3 and B0..B3 (in a core with a C file they never are). Pair (i, j) then goes to group
4 * i + j, and groups are packed: one tile each for 8-bit outputs, two for 16-bit ones. Otherwise
the instruction runs as 2x2 and sets guard_fallback. Sizes count nominally: the guard looks neither
at M nor at N.

M and N up to {cfg.rows} hold for every tile of the macro. A larger one is the total of the macro,
at most {cfg.rows} times its tiles: tile i has min({cfg.rows}, max(0, M - {cfg.rows} * i)) rows.

"""
    )


def _pair_table(cfg: Config) -> str:
    rows = [
        [
            f"`{pair.operand.name}`",
            f"`{pair.output.name}`",
            str(pair.lanes),
            str(cfg.result_tiles(pair.output.container)),
            str(pair.uop_cycles),
            str(pair.macs_per_cycle),
        ]
        for pair in format_pairs(cfg)
    ]
    return (
        "## Cycles of mmacc\n\nUops of one mmacc of whole tiles in 1x1; a macro takes as many for "
        "each pair of tiles with rows, a shorter one fewer: one for every started block of "
        f"{cfg.m_par} rows and every started {cfg.n_par} columns"
        + (" (2 of 64 bit).\n\n" if cfg.uop_columns(64) < cfg.n_par else ".\n\n")
        + table(
            ("operands", "result", "K of a row", "tiles of a result", "uops", "MAC a cycle"), rows
        )
    )


# -- vector mode -----------------------------------------------------------------------------------


def _vector(cfg: Config) -> str:
    rows = []
    for fmt, out in vector_pairs(cfg):
        words = expansion(fmt, out)
        lanes = cfg.lanes(fmt.container)
        cycles = words * cfg.blocks
        rate = cfg.rows * lanes / cycles
        rows.append(
            [f"`{fmt.name}`", f"`{out.name}`", str(lanes), str(words), str(cycles), f"{rate:g}"]
        )
    out = "Only with the unit `vector`; illegal without.\n\n" + table(
        ("instruction", "z becomes"),
        ([f"`{name}`", INSTRUCTIONS[name].title] for name in dict(GROUPS)["The vector mode"]),
    )
    out += f"""Element by element, on M rows of K elements of one tile x and one tile y, in the
operand format of mxcfg. z has that format too or, with `wide`, the output format of mxcfg; where
that is wider, z takes as many neighbouring tiles as it needs, the columns cut over them as those of
C. With `cfile` z lies in the C file. TILING, GUARD4x4 and N play no part. Elements outside M x K
keep their value, also the other nibble of a byte.

Every element is a multiply-accumulate with K = 1 ([numerics.md](numerics.md)): x + z is x * 1 + z,
and max and min give the larger or smaller operand times 1, so that one rounding, RND, SAT and
flags are as there. SAT counts for z in the operands' format as for an output of that format.
max and min: any NaN gives the canonical NaN (invalid, if it signals), and -0 is below +0. In a
format that has neither Inf nor NaN a result beyond the largest finite value is that value, in every
rounding mode, with overflow and inexact (and sat_hit with SAT).

z may lie on x and y in any way: their old values are read.

Traps: badgeom: mxcfg or mxtile hold what is not built; K or M zero, K of more than a row, M above
{cfg.rows}; a tile of z with elements past tr{cfg.tiles - 1}.

Cycles: one uop for every word of z ({cfg.m_par} rows of a tile), at the rate of mmacc's and in
turn with them: one a cycle, without a bubble between operations on different tiles. One that reads
what an earlier one wrote waits until it is written; one that only accumulates into the same z waits
word by word, as mmacc does. The unit `vector` built for the formats of this configuration:

"""
    out += table(
        ("x, y", "z", "K of a row", "words of z a word of x", "cycles", "elements a cycle"), rows
    )
    return out


# -- traps and text --------------------------------------------------------------------------------

_HEAD = """# Instruction set

What a program for the core `ame` consists of. This file is generated: `python -m scripts.isa_doc`
writes it from the tables that the decoder, the assembler and the model are made from. Numbers of
cycles are those of the preset `{name}`.

All instructions are 32 bits, opcode custom-3 (0x7B), in the R layout; CSRs are accessed by the
standard instructions, which the host forwards. Registers behave as if instructions ran in order.
Memory does not: accesses of different instructions that overlap are ordered only by `mfence`.

"""

_TRAPS = """## Answers and traps

Every instruction is answered once, in order, as soon as it can no longer trap. `wb`, `rd` and
`data` have a meaning for CSR instructions and mget whose rd is not x0. An instruction that traps
changes nothing but the sticky bit of badgeom. The first of these that applies is answered:

{errors}mmacc and the vector mode check all of mxcfg and mxtile, as loads and stores of a, b and
c do, what they do not use included; **r**, moves and system instructions check nothing of them.
Fields of a word that have no meaning may hold anything.

"""

_ERRORS = (
    (
        *("1", "illegal"),
        "a word that is not listed here, or needs what is not built; `cfile` without a C file; an "
        "unknown CSR, or a write to a read-only one; anything but a CSR access while xmcsr's MS is "
        "off",
    ),
    ("2", "badgeom", "sizes, tiles and modes that do not go together; mxstatus keeps a bit"),
    (
        *("3", "bus"),
        "a base address beyond the bus; of mfence: memory answered with an error before",
    ),
)

_ASSEMBLY = """## Assembly

`python -m hdl.isa asm FILE` turns text into words, one a line, and `dis` words into text. Tiles are
`tr0` to `tr31`, scalar registers `x0` to `x31` or their ABI names, CSRs names or numbers; options
follow the operands. `csrr`, `csrw` and their kin are known, `.word` takes any word.

With `--insn` both commands write lines for GNU as instead, in which tiles appear as the scalar
registers with their numbers; `asm` reads these lines as well.

```
{example}```

"""

_EXAMPLE = ("csrw mxcfg, a0", "mlda tr16, (a1), a2, n=2", "mmacc.t tr0, tr16, tr18, 4", "mfence")


def _assembly() -> str:
    lines = []
    for text in _EXAMPLE:
        word = isa.assemble(text)
        lines.append(f"{text:<30}# {isa.format_word(word)}  {isa.insn_line(word)}\n")
    return _ASSEMBLY.replace("{example}", "".join(lines))


def document(cfg: Config) -> str:
    """The whole text for a core of `cfg`."""
    parts = (
        _HEAD.replace("{name}", cfg.name),
        _tiles(cfg),
        _csr_sections(cfg),
        _tilings(cfg),
        _instructions(cfg),
        _pair_table(cfg),
        _TRAPS.replace("{errors}", table(("error", "name", "cause"), _ERRORS)),
        _assembly(),
        TWO_FRONT_ENDS,
    )
    return wrapped("".join(parts).rstrip()) + "\n"


@dataclass(frozen=True)
class _Document:
    """What is written of one front end: where to, for which preset, by what."""

    output: str
    preset: str
    text: Callable[[Config], str]


DOCUMENTS = {
    "ame": _Document("docs/isa.md", "ame32", document),
    "xuantie": _Document("docs/xuantie.md", "mxu8", xuantie_doc.document),
}


def _write(text: str, output: str) -> None:
    if output == "-":
        sys.stdout.write(text)
        return
    check_writable(output)
    write_whole(output, text.encode())
    print(f"{PROGRAM}: wrote {output}", file=sys.stderr)


def _run(arguments: Sequence[str] | None) -> int:
    parser = Parser(prog=f"python -m {PROGRAM}", description=__doc__)
    parser.add_argument("--frontend", choices=tuple(DOCUMENTS), help="whose reference")
    parser.add_argument("--preset", metavar="NAME", help="core whose cycles are shown")
    parser.add_argument("-o", metavar="FILE", dest="output", help="file, or -")
    options = parser.parse_args(arguments)
    try:
        cfg = preset(options.preset) if options.preset else None
    except ConfigError as error:
        raise CommandError(str(error)) from None
    if cfg and options.frontend and options.frontend not in cfg.frontends:
        raise CommandError(
            f"the preset {cfg.name} has no front end {options.frontend}: "
            f"leave --frontend out, or use {cfg.frontends[0]}"
        )
    if cfg or options.frontend or options.output:
        names = [options.frontend or (cfg.frontends[0] if cfg else next(iter(DOCUMENTS)))]
    else:
        names = list(DOCUMENTS)
    for name in names:
        item = DOCUMENTS[name]
        _write(item.text(cfg or preset(item.preset)), options.output or item.output)
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit status."""
    return run_command(PROGRAM, lambda: _run(arguments))


if __name__ == "__main__":
    sys.exit(main())
