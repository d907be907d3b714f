"""The text of docs/xuantie.md, from the tables of the front end `xuantie`.

`scripts.isa_doc` is the command. The words are in scripts/xuantie_text.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

from hdl import isa
from hdl.config import PRESETS, REGISTERS, Config
from hdl.describe import PointwiseTiming, mma_rows
from hdl.isa import XuanTieAccess, XuanTieInstruction, XuanTieKind
from hdl.isa.fields import Operand, OperandKind
from hdl.mac.pipe import MacTiming

from .markdown import filled, table, wrapped
from .xuantie_text import (
    CSRS,
    GROUPS,
    INSTRUCTIONS,
    OPERANDS,
    POINTWISE,
    READINGS,
    ROUNDINGS,
    SIZES,
)

__all__ = ["GROUP_OF", "document", "operand_name", "stem", "syntax"]

SIZE_LETTERS = "bhwd"
ROW_BITS = (128, 256, 512)

Columns = tuple[tuple[int, int], ...]  # highest and lowest bit

_FUNC, _UOP, _SIZE, _MD, _OPCODE = (31, 28), (27, 25), (11, 10), (9, 7), (6, 0)
_FUNCT3 = (14, 12)
_MATRIX: Columns = (
    *(_FUNC, _UOP, (24, 24), (23, 21), (20, 18), (17, 15)),
    *(_FUNCT3, _SIZE, _MD, _OPCODE),
)
_MEMORY: Columns = (_FUNC, _UOP, (24, 20), (19, 15), _FUNCT3, _SIZE, _MD, _OPCODE)
_CONFIG: Columns = (_FUNC, _UOP, (24, 15), _FUNCT3, (11, 7), _OPCODE)

GROUP_OF = {
    XuanTieKind.CONFIG: "Sizes",
    XuanTieKind.MMA: "Multiply-accumulate",
    XuanTieKind.LOAD: "Loads and stores",
    XuanTieKind.STORE: "Loads and stores",
    XuanTieKind.MMOV: "Moves",
    XuanTieKind.ZERO: "Moves",
    XuanTieKind.POINTWISE: "Pointwise",
    XuanTieKind.RELEASE: "System",
}
COLUMNS_OF = {"Sizes": _CONFIG, "System": _CONFIG, "Loads and stores": _MEMORY}


def stem(row: XuanTieInstruction) -> str:
    """The name under which an instruction is described."""
    match row.kind:
        case XuanTieKind.LOAD | XuanTieKind.STORE:
            verb = "ld" if row.kind is XuanTieKind.LOAD else "st"
            return f"m{'s' if row.stream else ''}{verb}{'m' if row.registers else ''}"
        case XuanTieKind.POINTWISE:
            return "pointwise"
        case XuanTieKind.MMOV:
            return "mmov"
        case XuanTieKind.CONFIG:
            return "mcfg"
        case XuanTieKind.MMA:
            name = row.name.partition(".")[0]
            return next(known for known in INSTRUCTIONS if name.startswith(known))
        case _:
            return row.name


def operand_name(operand: Operand) -> str:
    """Its name in OPERANDS."""
    low = operand.kind in (OperandKind.XREG_LOW, OperandKind.ROW_XREG)
    return "rs1'" if low else operand.name


def syntax(row: XuanTieInstruction) -> str:
    """How the assembler takes it, with names for the operands."""
    texts = []
    for operand in row.operands:
        name = operand_name(operand)
        if operand.in_brackets:
            texts[-1] += f"[{name}]"
        else:
            texts.append(f"({name})" if operand.kind is OperandKind.BASE else name)
    return f"{row.name} {', '.join(texts)}".strip()


def _numbers(cfg: Config) -> dict[str, object]:
    """What the texts leave open."""
    timing, point = MacTiming.of(cfg), PointwiseTiming.of(cfg)
    words = [row for row in mma_rows(cfg) if row.output.container == 32]
    columns = cfg.lanes(32) // cfg.uop_columns(32)
    uops = words[0].uop_cycles if words else cfg.x_blocks * columns
    beats = cfg.row_bytes // cfg.bus_bytes
    return {
        "name": cfg.name,
        "rows": cfg.x_rows,
        "row_bytes": cfg.row_bytes,
        "register_bytes": cfg.x_rows * cfg.row_bytes,
        "x_blocks": cfg.x_blocks,
        "m_par": cfg.m_par,
        "n_par": cfg.uop_columns(32),
        "wide_columns": cfg.uop_columns(64),
        "addr_bits": cfg.addr_bits,
        "line_bytes": cfg.line_bytes,
        "bus_bytes": cfg.bus_bytes,
        "beats": "a cycle" if beats == 1 else f"{beats} cycles",
        "l2_ids": cfg.l2_ids,
        "row_most": isa.RS1_LOW.max,
        "uimm_most": isa.UIMM7.max,
        "opcode": f"{isa.OPCODE_XUANTIE:#x}",
        "loop": timing.loop,
        "depth": timing.depth,
        "alone": max(uops, timing.loop + columns - 1),
        "uops": uops,
        "latency": point.latency,
        "dependent": point.dependent,
        "scalar": point.scalar,
        "xmisa": f"{isa.xmisa_value(cfg):#x} here",
        "destinations": "all"
        if len(cfg.mma_destinations) == REGISTERS
        else ", ".join(cfg.mma_destinations),
        "banks": _banks(cfg),
        "ldst_traps": (
            f"but for whole registers: M zero or above R, sizeK zero, above {cfg.row_bytes} or no "
            "multiple of the letter's size. Whole registers: md no multiple of n. Bus (error 3): "
            f"a base address of more than {cfg.addr_bits} bits."
        ),
    }


def _banks(cfg: Config) -> str:
    """Where reads may get into each other's way."""
    together = REGISTERS // cfg.banks
    if together < 2:
        return "Every register has a bank of its own."
    first = "m0 and m1" if together == 2 else f"m0 to m{together - 1}"
    return (
        f"{together} registers share a bank ({first}, and so on), of which two words are read in a "
        "cycle: C's and A's go first, B's waits a cycle if all three are to come from there."
    )


# -- encodings -------------------------------------------------------------------------------------


def _cell(row: XuanTieInstruction, high: int, low: int) -> str:
    """Bits high to low: fixed ones as digits, operands by name, - where ignored."""
    if (high, low) == _OPCODE:
        return f"`{isa.OPCODE.get(row.match):#04x}`"

    def part(bit: int) -> tuple[str, str]:
        for operand in row.operands:
            if operand.field.mask >> bit & 1:
                return "name", operand_name(operand)
        return "bits", str(row.match >> bit & 1) if row.mask >> bit & 1 else "-"

    out = []
    for (kind, name), bits in groupby(
        (part(bit) for bit in range(high, low - 1, -1)),
        key=lambda item: item if item[0] == "name" else ("bits", ""),
    ):
        out.append(name if kind == "name" else f"`{''.join(digit for _, digit in bits)}`")
    return " ".join(out)


def _braces(names: Iterable[object]) -> str:
    return "{" + ",".join(str(name) for name in names) + "}"


def _pattern(row: XuanTieInstruction) -> str:
    """The name of the family of rows that stand in one line of a table, as shells write it."""
    sizes = _braces(SIZE_LETTERS)
    if row.is_memory:
        whole = _braces((1, 2, 4, 8)) + "m" if row.registers else ""
        return f"{stem(row)[: None if not row.registers else -1]}{whole}{sizes}"
    if row.kind is XuanTieKind.POINTWISE:
        ops = _braces(op.name.lower() for op in isa.PointwiseOp)
        return f"{ops}.{_braces('sd')}.{row.name.split('.', 2)[2]}"
    return row.name


def _encodings(rows: Sequence[XuanTieInstruction], columns: Columns) -> str:
    families: dict[str, list[XuanTieInstruction]] = {}
    for row in rows:
        families.setdefault(_pattern(row), []).append(row)
    different = {_FUNC: "op", _SIZE: "size", (24, 20): "n - 1"}
    lines = []
    for pattern, members in families.items():
        line = [f"`{pattern}`"]
        for column in columns:
            cells = dict.fromkeys(_cell(row, *column) for row in members)
            line.append(next(iter(cells)) if len(cells) == 1 else different[column])
        lines.append(line)
    titles = (f"{high}:{low}" if high > low else str(high) for high, low in columns)
    return table(("instruction", *titles), lines)


# -- instructions ----------------------------------------------------------------------------------


def _mma_table(cfg: Config) -> str:
    rows = [
        (
            f"`{row.instruction.name}`",
            row.operands,
            row.output.name,
            str(row.lanes),
            str(row.columns),
            "a pair" if row.b_registers > 1 else "one",
            "a pair" if row.c_registers > 1 else "one",
            str(row.macs_per_cycle),
            str(row.uop_cycles),
            str(row.latency),
            str(row.turns),
        )
        for row in mma_rows(cfg)
    ]
    return (
        "MAC a cycle are sustained ones; latency is from issue to the last result, operands there."
        "\n\n"
        + table(
            (
                *("instruction", "A, B", "C", "K up to", "N up to", "ms2", "md"),
                *("MAC a cycle", "uops", "latency", "turns"),
            ),
            rows,
        )
    )


def _operations() -> str:
    return table(
        ("op", "31:28", "result"),
        ((f"`{op.name.lower()}`", f"`{op:04b}`", POINTWISE[op]) for op in isa.PointwiseOp),
    )


def _size_codes(rows: Sequence[XuanTieInstruction]) -> str:
    """What the letters of the size stand for."""
    letters = {row.size: row.name.split(".")[1] if row.op else row.name[-1] for row in rows}
    return table(
        ("letter", "size (11:10)", "bytes"),
        ((f"`{letter}`", f"`{size:02b}`", str(1 << size)) for size, letter in letters.items()),
    )


def _group(title: str, cfg: Config, numbers: dict[str, object]) -> str:
    rows = [row for row in isa.XUANTIE if GROUP_OF[row.kind] == title]
    text = GROUPS[title]
    out = f"### {title}\n\n"
    if text.meaning:
        out += filled(text.meaning, numbers) + "\n\n"
    out += _encodings(rows, COLUMNS_OF.get(title, _MATRIX))
    if title in ("Loads and stores", "Pointwise"):
        out += _size_codes(rows)
    if title == "Pointwise":
        out += _operations()
    names = dict.fromkeys(operand_name(operand) for row in rows for operand in row.operands)
    if names:
        out += table(
            ("operand", "what"), ([f"`{name}`", filled(OPERANDS[name], numbers)] for name in names)
        )
    for name in dict.fromkeys(stem(row) for row in rows):
        out += _instruction(name, [row for row in rows if stem(row) == name], numbers)
    if title == "Multiply-accumulate":
        out += _mma_table(cfg)
    out += f"Illegal: {filled(text.traps, numbers)}\n\n"
    return out + f"Cycles: {filled(text.cycles, numbers)}\n\n"


def _instruction(name: str, rows: Sequence[XuanTieInstruction], numbers: dict[str, object]) -> str:
    """Title, syntax and meaning; sizes that differ only in a letter are written once."""
    text = INSTRUCTIONS[name]
    shown: dict[object, XuanTieInstruction] = {}
    for row in rows:
        key = (row.registers, row.stream) if row.is_memory else row.form if row.op else row.name
        shown.setdefault(key, row)
    lines = [syntax(row) for row in shown.values()]
    titles = [name]
    if rows[0].registers:
        titles = [f"{name[:-1]}<n>m"]
    elif rows[0].op:
        titles = [op.name.lower() for op in isa.PointwiseOp]
    out = f"#### {' '.join(f'`{title}`' for title in titles)}: {text.title}"
    out += "\n\n```\n" + "".join(f"{line}\n" for line in lines) + "```\n\n"
    if text.meaning:
        out += filled(text.meaning, numbers) + "\n\n"
    return out


# -- registers, sizes, CSRs ------------------------------------------------------------------------


def _geometry(cfg: Config) -> str:
    rows = []
    for bits in ROW_BITS:
        rows_of = bits // 32
        rows.append(
            [
                str(bits),
                str(rows_of),
                str(bits // 8),
                str(rows_of * bits // 8),
                *(str(bits // width) for width in (4, 8, 16, 32, 64)),
            ]
        )
    both = next(other for other in PRESETS.values() if other.ame and other.xuantie)
    return f"""## Registers

{REGISTERS} matrix registers, m0 to m{REGISTERS - 1}. A register has R rows, R being the bits of a
row divided by 32: R x R elements of 32 bits. Elements lie along a row, the lowest first; of 4-bit
elements the low nibble first. `Config.row_bits` chooses the row; in this core R is {cfg.x_rows}, a
row {cfg.row_bytes} bytes and a register {cfg.x_rows * cfg.row_bytes}.

{
        table(
            (
                *("row bits", "R", "bytes of a row", "of a register"),
                *(f"{width}-bit elements of a row" for width in (4, 8, 16, 32, 64)),
            ),
            rows,
        )
    }A **pair** is an even register and the next one: B of fmmacc.h, and C of results of 64 bits.

### Beside the front end ame

A core may have both front ends (`Config.frontends`, as in the preset `{both.name}`). Their words
differ in the opcode and may be mixed freely; all run in order as one program. Slots, MAC array,
register file and memory port are the same, and so are mfence, the CSR instructions, mxstatus and
xmcsr. Register m_i is the first R rows of tile i * (tiles / {REGISTERS}): in `{both.name}`, whose
rows have {both.row_bits} bits, the first {both.x_rows} rows of `tr0`, `tr{both.x_tiles}`,
`tr{2 * both.x_tiles}` and so on. Writing a register leaves the other rows of its tile as they are.
mxcfg and mxtile play no part here, and xmsize none there.

Without `ame`, the only other instructions are mfence and those on CSRs, and of the CSRs of
[isa.md](isa.md) there are mxstatus and xmcsr. A core without `xuantie` answers illegal to all words
below.

"""


def _sizes() -> str:
    """The fields of xmsize, and who checks what."""
    out = "## Sizes\n\n"
    out += (
        "Instructions take their sizes from the CSR xmsize, which mcfg sets. **Nothing is checked "
        "there**: an instruction that uses a size is illegal if that does not fit, and ignores the "
        "others. Any change of the sizes counts for the instructions after it.\n\n"
    )
    fields = [
        [f"{field.lo + field.width - 1}:{field.lo}", f"`{name}`", SIZES[name]]
        for name, field in isa.XMSIZE.items()
    ]
    out += table(("bits", "field", "what"), fields)
    paired = [row.name for row in isa.XUANTIE if row.mma and row.mma.b_pair]
    bytes_ = "1 to a row's bytes, a multiple of the element"
    return out + table(
        ("who", "M", "N", "sizeK"),
        (
            ["multiply-accumulate", "1 to R", f"1 to R, {', '.join(paired)} to 2R", bytes_],
            ["loads and stores", "1 to R", "not used", bytes_],
            ["pointwise", "1 to R", "not used", bytes_],
            ["whole registers, mmov, mzero", "not used", "not used", "not used"],
        ),
    )


def _needs(feature: str) -> str:
    """The instructions that are built with a feature."""
    rows = [row for row in isa.XUANTIE if row.feature == feature]
    if rows[0].op:
        return f"pointwise instructions of {8 << rows[0].size} bits"
    return ", ".join(row.name for row in rows)


_ACCESS = {
    XuanTieAccess.STORED: "read and written",
    XuanTieAccess.CLEARED: "any write clears it",
    XuanTieAccess.READ_ONLY: "read only: a write is illegal",
}


def _csrs(numbers: dict[str, object]) -> str:
    out = (
        "## CSRs\n\nNumbers are fixed. Bits that do not exist read 0 and ignore writes. Accesses "
        "to xmxsat wait until all older work is done, so that it is complete; the others never "
        "wait. csrrs and csrrc with x0 or 0 do not write. xmcsr "
        f"({isa.XMCSR:#x}) and mxstatus are described in [isa.md](isa.md).\n\n"
    )
    rows = []
    for csr, facts in isa.XUANTIE_CSRS.items():
        rows.append(
            [
                f"`{csr.name.lower()}`",
                f"{csr:#05x}",
                str(facts.bits),
                "a constant" if facts.reset is None else f"{facts.reset:#x}",
                _ACCESS[facts.access],
                "yes" if facts.waits else "no",
                filled(CSRS[csr], numbers),
            ]
        )
    out += table(("name", "number", "bits", "after reset", "access", "waits", "what"), rows)
    out += table(
        ("xmxrm", "name", "rounding"),
        ([str(int(code)), f"`{code.name.lower()}`", text] for code, text in ROUNDINGS.items()),
    )
    bits = sorted(isa.XMISA.items(), key=lambda item: item[1].lo)
    return out + table(
        ("bit of xmisa", "name", "built"),
        ([str(field.lo), f"`{name}`", _needs(name)] for name, field in bits),
    )


# -- the rest --------------------------------------------------------------------------------------

_HEAD = """# Instruction set of the front end xuantie

The instructions of the XuanTie RISC-V matrix extension, version 0.2, as this core runs them. This
file is generated: `python -m scripts.isa_doc` writes it from the tables that the decoder, the
assembler and the model are made from. Numbers of cycles are those of the preset `{name}`.

All instructions are 32 bits, opcode custom-1 ({opcode}). Every one is answered once, in order, as
soon as it can no longer trap; `wb`, `rd` and `data` have a meaning for CSR instructions and mcfg
whose rd is not x0. One that traps changes nothing. The errors are illegal (1) and bus (3), in that
order; each section below says what is illegal, besides words that are not listed here and, but for
CSR accesses, anything while xmcsr's MS is off.

The other front end, `ame`, is described in [isa.md](isa.md), the arithmetic in
[numerics.md](numerics.md).

"""

_EXAMPLE = (
    ("mcfg x0, a0", "M, N, K of the product"),
    ("mldb m0, a2, (a1)", "A"),
    ("mldb m2, a4, (a3)", "B, N x K"),
    ("mld1mw m1, (t0)", "multipliers, in row 0"),
    ("mzero m4", ""),
    ("mmaqa.b m4, m2, m0", "32-bit sums"),
    ("mcfgk x0, t1", "sizeK of these: 4 N bytes"),
    ("mmulh.s.mv.i m4, m4, m1[0]", "requantise in place"),
    ("msra.s.mx m4, m4, s0", ""),
    ("mn4clip.s.mx m4, m4, s1", "8 bits, packed"),
    ("mcfgk x0, t2", "N bytes"),
    ("mstb m4, a6, (a5)", ""),
    ("mfence", ""),
)


def _assembly() -> str:
    lines = [
        f"{text:<30}# {isa.format_word(isa.assemble(text))}  {note}".rstrip() + "\n"
        for text, note in _EXAMPLE
    ]
    return f"""## Assembly

`python -m hdl.isa asm FILE` turns text into words, one a line, and `dis` words into text. Matrix
registers are `m0` to `m{REGISTERS - 1}`, scalar registers `x0` to `x31` or their ABI names (`rs1'`:
x8 to x15 only), an address stands in parentheses and a row in brackets behind its register. **B
comes before A**: md, ms2, ms1. mzero and mmov are names of both front ends; the first operand, m4
or tr4, tells which.

```
{"".join(lines)}```

"""


def _every_word() -> str:
    count = len(isa.XUANTIE)
    return (
        f"## Every word\n\nAll {count} instructions: a word is the first of these whose `match` it "
        "equals in the bits of `mask`.\n\n"
        + table(
            ("name", "match", "mask", "syntax"),
            (
                [
                    f"`{row.name}`",
                    f"`{isa.format_word(row.match)}`",
                    f"`{isa.format_word(row.mask)}`",
                    f"`{syntax(row)}`",
                ]
                for row in isa.XUANTIE
            ),
        )
    )


def document(cfg: Config) -> str:
    """The whole text for a core of `cfg`, which has this front end."""
    numbers = _numbers(cfg)
    parts = (
        filled(_HEAD, numbers),
        _geometry(cfg),
        _sizes(),
        _csrs(numbers),
        "## Instructions\n\n",
        *(_group(title, cfg, numbers) for title in GROUPS),
        _assembly(),
        "## How unclear points are read\n\nWhere the published text leaves a choice, or says two "
        "things:\n\n",
        table(("point", "what holds here"), READINGS),
        _every_word(),
    )
    return wrapped("".join(parts).rstrip()) + "\n"
