"""docs/isa.md and docs/xuantie.md are what the tables say, whole, and nothing else."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import pytest

from hdl import isa
from hdl.config import Config, preset
from hdl.describe import mma_rows
from scripts import xuantie_doc, xuantie_text
from scripts.isa_doc import DOCUMENTS, document, main, stem
from scripts.isa_text import CSR_FIELDS, CSRS, INSTRUCTIONS, OPERANDS

ROOT = Path(__file__).resolve().parents[1]
CFG = preset("ame32")
TEXT = document(CFG)
REGISTERS_CFG = preset("mxu8")
REGISTERS_TEXT = xuantie_doc.document(REGISTERS_CFG)
TEXTS = {"ame": TEXT, "xuantie": REGISTERS_TEXT}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_the_committed_file_is_the_generated_one(name):
    committed = (ROOT / DOCUMENTS[name].output).read_text()
    assert committed == TEXTS[name], "run python -m scripts.isa_doc"


def test_every_name_of_the_tables_has_its_words_and_no_other():
    assert {stem(row.name) for row in isa.AME} == set(INSTRUCTIONS)
    assert {operand.name for row in isa.AME for operand in row.operands} == set(OPERANDS)
    assert set(isa.csr_numbers()) == set(CSRS)
    fields = {"mxcfg": isa.MXCFG, "mxtile": isa.MXTILE, "mxstatus": isa.MXSTATUS}
    fields |= {"mxinfo": isa.MXINFO, "xmcsr": isa.XMCSR_FIELDS}
    assert {(csr, name) for csr, names in fields.items() for name in names} == set(CSR_FIELDS)


def test_built_instructions_say_all_there_is_to_say():
    """Meaning and cycles of everything that a core may have; the vector mode has its own part."""
    everything = isa.built_instructions(Config(accumulators="split"))
    for name in {stem(name) for name in everything}:
        text = INSTRUCTIONS[name]
        assert text.meaning and text.cycles, name
    assert not re.search(r"\{\w+\}", TEXT), "a number was not filled in"


@pytest.mark.parametrize("row", isa.AME, ids=lambda row: row.name)
def test_encodings(row):
    """The bits in the table, put together again, are the word."""
    rows = [line.split("|")[1:-1] for line in TEXT.splitlines()]
    (cells,) = [  # other tables, of other widths, name it too
        [cell.strip().strip("`") for cell in cells]
        for cells in rows
        if len(cells) == 7 and cells[0].strip() == f"`{row.name}`"
    ]
    _, high, _, _, funct3, _, opcode = cells
    word = int(opcode, 16) | int(funct3, 2) << 12
    if "csr" not in high:
        assert len(high) == 7
        fixed = "".join(bit if bit in "01" else "0" for bit in high)
        word |= int(fixed, 2) << 25
    assert word == row.match


def test_seed_mapping_is_there():
    """Seed 000 section 11."""
    for line in (
        "A0 x B0: C0..C3; A0 x B1: C4..C7; A1 x B0: C8..C11; A1 x B1: C12..C15",
        "A0 x B0: C0..C3; A0 x B1: C4..C7; A0 x B2: C8..C11; A0 x B3: C12..C15",
        "A0 x B0: C0..C3; A1 x B0: C4..C7; A2 x B0: C8..C11; A3 x B0: C12..C15",
    ):
        assert line in TEXT


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_lines_are_not_too_long(text):
    long = [
        line for line in text.splitlines() if len(line) > 100 and not line.startswith(("|", "#"))
    ]
    assert not long


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_links_lead_somewhere(text):
    for target in re.findall(r"\]\(([^)]+)\)", text):
        assert (ROOT / "docs" / target).is_file(), target


def test_command(tmp_path, capsys):
    target = tmp_path / "isa.md"
    assert main(["--preset", "tiny", "-o", str(target)]) == 0
    assert target.read_text() == document(preset("tiny"))
    capsys.readouterr()
    assert main(["-o", "-"]) == 0
    assert capsys.readouterr().out == TEXT
    assert main(["--preset", "nothing"]) == 2
    assert "unknown preset 'nothing'" in capsys.readouterr().err


def test_command_writes_both(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "docs").mkdir()
    assert main([]) == 0
    for name, item in DOCUMENTS.items():
        assert (tmp_path / item.output).read_text() == TEXTS[name]
    capsys.readouterr()
    for arguments in (["--frontend", "xuantie"], ["--preset", "mxu8"]):
        assert main([*arguments, "-o", "-"]) == 0
        assert capsys.readouterr().out == REGISTERS_TEXT
    assert main(["--frontend", "xuantie", "--preset", "tiny"]) == 2
    assert "tiny has no front end xuantie" in capsys.readouterr().err


# -- the front end xuantie -------------------------------------------------------------------------


def table(text: str, first: str) -> list[list[str]]:
    """The cells of every table whose first title is `first`, titles first."""
    found = []
    for block in text.split("\n\n"):
        if block.startswith(f"| {first} |"):
            lines = [
                [cell.strip() for cell in line[1:-2].split("|")] for line in block.splitlines()
            ]
            found.append([lines[0], *lines[2:]])
    assert found, first
    return found


def expanded(pattern: str) -> list[str]:
    """The names that braces stand for."""
    parts = re.split(r"\{(.*?)\}", pattern.strip("`"))
    choices = [part.split(",") if index % 2 else [part] for index, part in enumerate(parts)]
    return ["".join(choice) for choice in itertools.product(*choices)]


ROWS = {row.name: row for row in isa.XUANTIE}
ENCODINGS = [
    (titles, line)
    for titles, *lines in table(REGISTERS_TEXT, "instruction")
    if titles[-1] == "6:0"
    for line in lines
]


def test_every_row_of_xuantie_has_its_words_and_no_other():
    rows = isa.XUANTIE
    stems = {xuantie_doc.stem(row) for row in rows}
    assert stems == set(xuantie_text.INSTRUCTIONS)
    assert set(xuantie_text.POINTWISE) == set(isa.PointwiseOp)
    assert {xuantie_doc.GROUP_OF[row.kind] for row in rows} == set(xuantie_text.GROUPS)
    names = {xuantie_doc.operand_name(operand) for row in rows for operand in row.operands}
    assert names == set(xuantie_text.OPERANDS)
    assert set(isa.XUANTIE_CSRS) == set(xuantie_text.CSRS)
    assert set(isa.XMSIZE) == set(xuantie_text.SIZES)
    assert set(isa.FixedRounding) == set(xuantie_text.ROUNDINGS)
    for title, text in xuantie_text.GROUPS.items():
        assert text.traps and text.cycles, title
    for name, text in xuantie_text.INSTRUCTIONS.items():
        assert text.title, name


def test_xuantie_numbers_are_filled_in_for_any_core():
    assert not re.search(r"\{[a-z_]+\}", REGISTERS_TEXT)
    few = REGISTERS_CFG.replace(formats=("int16",), banks=8, mma_destinations=("m0", "m4"))
    for cfg in (preset("full"), few):
        text = xuantie_doc.document(cfg)
        assert not re.search(r"\{[a-z_]+\}", text)
        assert f"in this core R is {cfg.x_rows}," in " ".join(text.split())
    assert "m0, m4 here" in " ".join(text.split())


def test_every_encoding_of_xuantie_is_shown_once():
    names = [name for _, line in ENCODINGS for name in expanded(line[0])]
    assert len(names) == len(set(names)) == len(ROWS) == 135
    assert set(names) == set(ROWS)


@pytest.mark.parametrize(("titles", "line"), ENCODINGS, ids=lambda value: value[0][:30])
def test_encodings_of_xuantie(titles, line):
    """The bits of each line, put together, are those of all its instructions."""
    match = mask = operands = varying = 0
    for title, cell in zip(titles[1:], line[1:], strict=True):
        high, _, low = title.partition(":")
        high, low = int(high), int(low or high)
        if cell.startswith("`0x"):
            cell = f"`{int(cell.strip('`'), 16):0{high - low + 1}b}`"
        digits = sum(len(part) for part in re.findall(r"`([01]+)`", cell))
        name = re.sub(r"`[01]*`", "", cell).strip()
        place = high + 1
        for part in re.findall(r"`[01]+`|[^`]+", cell):
            if part.startswith("`"):
                for digit in part.strip("`"):
                    place -= 1
                    mask |= 1 << place
                    match |= int(digit) << place
            elif part.strip():
                width = high - low + 1 - digits
                place -= width
                bits = (1 << width) - 1 << place
                if name in ("op", "size", "n - 1"):
                    varying |= bits
                else:
                    operands |= bits
        assert place == low, (title, cell)
    assert match | mask | operands | varying == 0xFFFFFFFF
    rows = [ROWS[name] for name in expanded(line[0])]
    for row in rows:
        assert row.mask == mask | varying and row.match & mask == match, row.name
    assert len({row.match & varying for row in rows}) == len(rows)


def test_codes_of_what_varies():
    ops = table(REGISTERS_TEXT, "op")[0][1:]
    assert {name.strip("`"): int(code.strip("`"), 2) for name, code, _ in ops} == {
        op.name.lower(): op for op in isa.PointwiseOp
    }
    for _, *lines in table(REGISTERS_TEXT, "letter"):
        for letter, code, size in lines:
            letter = letter.strip("`")
            sizes = {
                isa.SIZE.get(row.match)
                for row in isa.XUANTIE
                if (row.is_memory and row.name.endswith(letter))
                or (row.op and f".{letter}." in row.name)
            }
            assert sizes == {int(code.strip("`"), 2)} and int(size) == 1 << sizes.pop()


OPERAND_TEXTS = {
    **{"md": "m4", "ms1": "m1", "ms2": "m2", "ms3": "m6", "rs1'": "x12", "row": "3"},
    **{"rs1": "x6", "rs2": "x7", "rd": "x10", "uimm": "100"},
}


def test_every_word_of_xuantie():
    """The last table: fixed bits, and a text that the assembler takes."""
    (titles, *lines) = table(REGISTERS_TEXT, "name")[-1]
    assert titles == ["name", "match", "mask", "syntax"]
    cells = [[cell.strip("`") for cell in line] for line in lines]
    assert [line[0] for line in cells] == [row.name for row in isa.XUANTIE]
    for name, match, mask, syntax in cells:
        row = ROWS[name]
        assert (int(match, 16), int(mask, 16)) == (row.match, row.mask)
        word, _, operands = syntax.partition(" ")
        text = re.sub(r"[a-z]+\d?'?", lambda found: OPERAND_TEXTS[found[0]], operands)
        decoded = isa.decode(isa.assemble(f"{word} {text}"), isa.XUANTIE)
        assert decoded.row is row, syntax
        expected = {
            operand.name: OPERAND_TEXTS[xuantie_doc.operand_name(operand)].lstrip("mx")
            for operand in row.operands
        }
        assert {key: str(value) for key, value in decoded.operands.items()} == expected


def test_multiply_accumulates_of_xuantie():
    """Beside the encodings: what each works on, by the table."""
    (lines,) = [
        lines for titles, *lines in table(REGISTERS_TEXT, "instruction") if "uops" in titles
    ]
    shown = {line[0].strip("`"): line[1:] for line in lines}
    assert set(shown) == {row.name for row in isa.XUANTIE if row.mma}
    for row in mma_rows(REGISTERS_CFG):
        line = shown[row.instruction.name]
        pairs = [word == "a pair" for word in line[4:6]]
        assert pairs == [row.instruction.mma.b_pair, row.instruction.mma.c_pair]
        assert [int(cell) for cell in line[6:9]] == [
            *(row.macs_per_cycle, row.uop_cycles, row.latency)
        ]


def test_csrs_of_xuantie():
    (lines,) = [lines for titles, *lines in table(REGISTERS_TEXT, "name") if "number" in titles]
    shown = {line[0].strip("`"): line[1:] for line in lines}
    assert {name: int(line[0], 16) for name, line in shown.items()} == {
        csr.name.lower(): csr for csr in isa.XCsr
    }
    for csr, facts in isa.XUANTIE_CSRS.items():
        line = shown[csr.name.lower()]
        assert line[1] == str(facts.bits)
        assert ("read only" in line[3]) == (facts.access is isa.XuanTieAccess.READ_ONLY)
        assert ("clears" in line[3]) == (facts.access is isa.XuanTieAccess.CLEARED)
        assert (line[4] == "yes") == facts.waits
    lines = table(REGISTERS_TEXT, "bit of xmisa")[0][1:]
    assert {name.strip("`"): int(bit) for bit, name, _ in lines} == {
        name: field.lo for name, field in isa.XMISA.items()
    }
