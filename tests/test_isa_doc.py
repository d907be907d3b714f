"""docs/isa.md is what the tables say, whole, and nothing else."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hdl import isa
from hdl.config import Config, preset
from scripts.isa_doc import document, main, stem
from scripts.isa_text import CSR_FIELDS, CSRS, INSTRUCTIONS, OPERANDS

ROOT = Path(__file__).resolve().parents[1]
CFG = preset("ame32")
TEXT = document(CFG)


def test_the_committed_file_is_the_generated_one():
    assert (ROOT / "docs/isa.md").read_text() == TEXT, "run python -m scripts.isa_doc"


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


def test_lines_are_not_too_long():
    long = [
        line for line in TEXT.splitlines() if len(line) > 100 and not line.startswith(("|", "#"))
    ]
    assert not long


def test_command(tmp_path, capsys):
    target = tmp_path / "isa.md"
    assert main(["--preset", "tiny", "-o", str(target)]) == 0
    assert target.read_text() == document(preset("tiny"))
    capsys.readouterr()
    assert main(["-o", "-"]) == 0
    assert capsys.readouterr().out == TEXT
    assert main(["--preset", "nothing"]) == 2
    assert "unknown preset 'nothing'" in capsys.readouterr().err
