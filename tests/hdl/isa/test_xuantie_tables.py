"""The table of the front end `xuantie` against the published encodings, and its text."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from hdl import isa
from hdl.config import Config
from hdl.isa.fields import OperandKind

SEED = int(os.environ.get("TEST_SEED", "20250611"))
ROWS = {row.name: row for row in isa.XUANTIE}
PUBLISHED = {
    name: (int(row["match"], 16), int(row["mask"], 16))
    for name, row in json.loads(
        (Path(__file__).parents[2] / "data" / "xuantie_v02.json").read_text()
    ).items()
}
MRELEASE = 0x7E00002B
OWN = {"mzero": (0xA000002B, 0xFFFFFC7F), "th.mrelease": (MRELEASE, 0xFFFFFFFF)}
"""What is not among the published encodings."""

XUANTIE8 = Config(
    frontends=("xuantie",),
    tiles=8,
    rows=8,
    row_bits=256,
    formats=("int4", "int8", "int16", "fp16", "fp32", "fp64"),
)

SAMPLES = {  # isa.md section 1, and mzero by hand
    "fmmacc.h m1, m2, m4": 0x105004AB,
    "mmaqa.b m7, m5, m2": 0x20A803AB,
    "madd.s.mv.x m3, m1, m3[x12]": 0x322E09AB,
    "mn4clip.s.mx m7, m7, x12": 0x66E20BAB,
    "mldb m0, x19, (x5)": 0x0932802B,
    "mld4mw m0, (x13)": 0x2836882B,
    "mcfgk x10, x2": 0x8E01052B,
    "mcfgmi x10, 12": 0x1E30052B,
    "mcfg x10, x2": 0xFE01052B,
    "th.mrelease": MRELEASE,
    "mzero m5": 0xA00002AB,
}


def expected_name(word: int) -> str | None:
    """What a word is by the published pairs, with what isa.md adds."""
    if word == MRELEASE:
        return "th.mrelease"
    found = [name for name, (match, mask) in (PUBLISHED | OWN).items() if word & mask == match]
    assert len(found) <= 1, hex(word)
    return found[0] if found else None


def name_of(word: int) -> str | None:
    return getattr(isa.decode(word, isa.XUANTIE), "name", None)


# -- encodings -----------------------------------------------------------------------------------


def test_every_published_pair_is_a_row_and_no_other_is():
    assert len(PUBLISHED) == 133
    assert {row.name: (row.match, row.mask) for row in isa.XUANTIE} == PUBLISHED | OWN


@pytest.mark.parametrize("name", PUBLISHED)
def test_every_word_of_a_pair_decodes_to_it(name):
    """All free bits when there are few, and each word one fixed bit off."""
    match, mask = PUBLISHED[name]
    rng = random.Random(f"{SEED} {name}")
    free = [bit for bit in range(32) if not mask >> bit & 1]
    if len(free) <= 9:
        patterns = range(1 << len(free))
    else:
        patterns = [0, (1 << len(free)) - 1, *(rng.getrandbits(len(free)) for _ in range(300))]
        patterns += [1 << bit for bit in range(len(free))]
    for pattern in patterns:
        word = match | sum((pattern >> i & 1) << bit for i, bit in enumerate(free))
        assert name_of(word) == ("th.mrelease" if word == MRELEASE else name), hex(word)
        wrong = word ^ 1 << rng.choice([bit for bit in range(32) if mask >> bit & 1])
        assert name_of(wrong) == expected_name(wrong), f"seed {SEED}: {wrong:#x}"


def test_random_words_are_taken_and_refused_as_published():
    rng = np.random.default_rng(SEED)
    pairs = PUBLISHED | OWN
    names = [*pairs]
    matches, masks = (np.array(column, np.uint32) for column in zip(*pairs.values(), strict=True))
    words = rng.integers(0, 1 << 32, 100_000, np.uint32)
    # Three in four have the opcode, and some of the fixed bits, of a row.
    rows = rng.integers(0, len(names), len(words))
    parts = np.array((0xFE00007F, 0xFF00007F, 0xFE000C7F, 0xFE03FC7F, 0xFFFFFFFF), np.uint32)
    fixed = masks[rows] & rng.choice(parts, len(words)) * (rng.random(len(words)) < 0.75)
    words = words & ~fixed.astype(np.uint32) | matches[rows] & fixed.astype(np.uint32)
    hits = np.stack([words & mask == match for match, mask in zip(matches, masks, strict=True)])
    hits[names.index("mcfgi"), words == MRELEASE] = False
    assert hits.sum(axis=0).max() == 1
    taken, chosen = hits.any(axis=0).tolist(), hits.argmax(axis=0).tolist()
    for word, hit, row in zip(words.tolist(), taken, chosen, strict=True):
        assert name_of(word) == (names[row] if hit else None), f"seed {SEED}: {word:#x}"
    missing = [name for name, row in zip(names, hits, strict=True) if not row.any()]
    assert not missing, f"seed {SEED}"
    assert 15_000 < sum(taken) < 60_000


def test_both_tables_together_share_no_word():
    rng = random.Random(SEED)
    for _ in range(4_000):
        word = rng.getrandbits(32) & ~0x7F | rng.choice((0x2B, 0x7B, 0x73, 0x0B))
        both = isa.decode(word), isa.decode(word, isa.AME), isa.decode(word, isa.XUANTIE)
        assert both[0] == (both[1] or both[2])
        assert both[1] is None or both[2] is None


def test_the_release_wins_over_mcfgi():
    assert name_of(MRELEASE) == "th.mrelease"
    for other in (MRELEASE | 1 << 7, MRELEASE | 1 << 18):  # rd, uimm7
        assert name_of(other) == "mcfgi"


# -- meaning -------------------------------------------------------------------------------------


def test_rows_mean_what_isa_md_says():
    kinds = isa.XuanTieKind
    row = ROWS["mmaqaus.h"]
    assert (row.kind, row.size) == (kinds.MMA, 1)
    assert row.mma == isa.Mma("int16", "int64", a_signed=False, b_signed=True)
    assert (row.mma.b_pair, row.mma.c_pair) == (False, True)
    assert (ROWS["pmmaqasu.b"].mma.operand, ROWS["pmmaqasu.b"].size) == ("int4", 0)
    assert (ROWS["mmaqasu.b"].mma.a_signed, ROWS["mmaqasu.b"].mma.b_signed) == (True, False)
    pairs = {r.name: (r.mma.b_pair, r.mma.c_pair) for r in isa.XUANTIE if r.kind is kinds.MMA}
    assert [name for name, (b, _) in pairs.items() if b] == ["fmmacc.h"]
    c_pairs = {"fmmacc.d", "fwmmacc.s", "mmaqa.h", "mmaqau.h", "mmaqaus.h", "mmaqasu.h"}
    assert {name for name, (_, c) in pairs.items() if c} == c_pairs
    assert (ROWS["mld4mw"].registers, ROWS["mld4mw"].kind) == (4, kinds.LOAD)
    assert (ROWS["msstd"].stream, ROWS["msstd"].registers, ROWS["msstd"].size) == (True, 0, 3)
    assert ROWS["mn4clipu.d.mv.i"].op is isa.PointwiseOp.MN4CLIPU
    assert ROWS["mn4clipu.d.mv.i"].form is isa.Form.MV_I
    assert (ROWS["mcfgni"].index, ROWS["mcfgni"].immediate) == (isa.SizeIndex.N, True)
    assert (ROWS["mcfg"].index, ROWS["mcfg"].immediate) == (isa.SizeIndex.ALL, False)
    assert {r.name for r in isa.XUANTIE if r.writes_back} == {
        f"mcfg{what}{form}" for what in ("k", "m", "n", "") for form in ("", "i")
    }


def test_what_a_core_builds():
    assert isa.built_xuantie(XUANTIE8) == isa.XUANTIE
    assert isa.built_xuantie(Config()) == ()
    assert isa.xmisa_value(XUANTIE8) == 0x3FF
    few = isa.built_xuantie(XUANTIE8.replace(formats=("int8", "fp32")))
    mmas = {row.name for row in few if row.kind is isa.XuanTieKind.MMA}
    assert mmas == {"mmaqa.b", "mmaqau.b", "mmaqaus.b", "mmaqasu.b", "fmmacc.s"}
    # i8, f32, and both widths of pointwise operations
    assert isa.xmisa_value(XUANTIE8.replace(formats=("int8", "fp32"))) == 0b00_1101_0010
    assert isa.xmisa_value(XUANTIE8.replace(formats=("fp16",))) == 0b01_1100_1000
    half = XUANTIE8.replace(formats=("bf16",), xuantie_bf16=True)
    assert isa.xmisa_value(half) == 0b01_1100_1000
    assert [f.name for f in isa.mma_formats(ROWS["fmmacc.h"], half)] == ["bf16", "bf16"]
    assert [f.name for f in isa.mma_formats(ROWS["fwmmacc.h"], half)] == ["bf16", "fp32"]
    assert isa.built_instructions(XUANTIE8) == {
        "mfence",
        *(f"csrr{kind}{form}" for kind in "wsc" for form in ("", "i")),
    }
    assert isa.built_csrs(XUANTIE8) == (isa.Csr.MXSTATUS,)
    assert set(isa.built_xuantie_csrs(XUANTIE8)) == set(isa.XCsr)
    assert isa.built_xuantie_csrs(Config()) == ()
    assert isa.destinations(XUANTIE8) == set(range(8))
    assert isa.destinations(XUANTIE8.replace(mma_destinations=("m0", "m4"))) == {0, 4}


def test_csr_numbers_and_fields():
    numbers = {
        "xmrstart": 0x801,
        "xmcsr": 0x802,
        "xmxrm": 0x803,
        "xmxsat": 0xCC0,
        "xmsize": 0xCC1,
        "xmregsize": 0xCC2,
        "xmlenb": 0xCC3,
        "xmisa": 0xCC4,
    }
    assert isa.all_csr_numbers() == isa.csr_numbers() | numbers
    assert set(isa.XUANTIE_CSRS) == set(isa.XCsr)
    for name, number in numbers.items():
        assert isa.assemble(f"csrr x1, {name}") == isa.encode("csrrs", 1, number, 0)
        assert isa.disassemble(isa.encode("csrrs", 1, number, 0)) == f"csrrs x1, {name}, x0"
    assert [field.lo for field in isa.XMSIZE.values()] == [0, 8, 16]
    assert [isa.XMISA[name].lo for name in ("i4", "i8", "i16", "f16", "f32", "f64")] == [*range(6)]
    assert [isa.XMISA[n].lo for n in ("pointwise64", "pointwise32", "f16_f32", "f32_f64")] == [
        *range(6, 10)
    ]


# -- text ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", SAMPLES)
def test_sample_words(text):
    assert isa.assemble(text) == SAMPLES[text]
    assert isa.disassemble(SAMPLES[text]) == text


def random_operands(row, rng):
    return {
        operand.name: operand.lowest + rng.choice((0, operand.max, rng.randint(0, operand.max)))
        for operand in row.operands
    }


@pytest.mark.parametrize("name", ROWS)
def test_fields_word_text_round_trip(name):
    rng = random.Random(f"{SEED} {name}")
    for _ in range(40):
        values = random_operands(ROWS[name], rng)
        word = isa.encode(name, table=isa.XUANTIE, **values)
        if word == MRELEASE and name == "mcfgi":
            continue
        decoded = isa.decode(word)
        assert (decoded.row, dict(decoded.operands)) == (ROWS[name], values), f"seed {SEED}"
        assert decoded.canonical
        text = isa.disassemble(word)
        assert text.split()[0] == name
        assert isa.assemble(text) == word, f"seed {SEED}: {text}"
        line = isa.insn_line(word)
        assert line.startswith(".insn r 0x2b, 0x0, ")
        assert isa.assemble(line) == word, f"seed {SEED}: {line}"


def test_any_word_disassembles_to_text_that_assembles_back():
    rng = random.Random(SEED)
    for _ in range(1500):
        word = rng.getrandbits(32) & ~0x707F | 0x2B
        for text in (isa.disassemble(word), isa.insn_line(word)):
            assert isa.assemble(text) == word, f"seed {SEED}: {text}"


def test_published_lines_of_text():
    """Lines as GNU as of the vendor prints them, and words by hand."""
    for text, word in {
        "mmov.mm m7, m0": 0x2B | 7 << 7 | 1 << 15,
        "mmov.mv.x m0,m7[ x9 ]": 0x0200002B | 1 << 15 | 7 << 18,
        "mmov.mv.i\tm1, m1 [3]": 0x0400002B | 1 << 7 | 3 << 15 | 1 << 18,
        "mmov.mx m1, a0": 0x0600002B | 1 << 7 | 2 << 15,
        "pmmaqasu.b m5, m2, m0": 0x2101802B | 5 << 7 | 2 << 21,
        "mmulh.d.mv.i m3, m1, m4[1]": 0x94000C2B | 3 << 7 | 1 << 15 | 4 << 18 | 1 << 21,
        "msstw m2, x15, (x12)": 0x1A00082B | 2 << 7 | 12 << 15 | 15 << 20,
        "mst8md m5, (x17)": 0x2A700C2B | 5 << 7 | 17 << 15,
        "mcfgni x6, 43": 0x2E00002B | 6 << 7 | 43 << 18,
        "mcfgn x10, x6": 0xAE00002B | 10 << 7 | 6 << 15,
    }.items():
        assert isa.assemble(text) == word, text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("mldb q0, x1, (x2)", "mldb starts with a tile tr0 to tr31 or a register m0 to m7, not"),
        ("mldb", "mldb starts with a tile tr0 to tr31 or a register m0 to m7, not ''"),
        ("mldb m0, (x1), x2", "rs2 must"),
        ("mzero m8", "mzero starts with a tile tr0 to tr31 or a register m0 to m7, not 'm8'"),
        ("fmmacc.h m0, m8, m1", "ms2 must be a register m0 to m7, not 'm8'"),
        ("fmmacc.h m0, m2", "fmmacc.h needs operand ms1"),
        ("mmov.mv.x m0, m1", "mmov.mv.x needs operand row"),
        ("mmov.mv.x m0, m1, x9", "row must be in brackets behind a register, not 'x9'"),
        ("mmov.mv.x m0, m1[x7]", "row must be a scalar register x8 to x15, not 'x7'"),
        ("mmov.mv.i m0, m1[8]", "mmov.mv.i: row = 8: use 0 to 7"),
        ("mmov.mv.i m0, m1[x8]", "row must be a number, not 'x8'"),
        ("madd.s.mx m0, m1, x16", "rs1 must be a scalar register x8 to x15, not 'x16'"),
        ("mcfgki x1, 128", "mcfgki: uimm = 128: use 0 to 127"),
        ("mld2mb m0, x1", "rs1 must be a register in parentheses, not 'x1'"),
        ("fmmacc.b m0, m1, m2", "unknown instruction 'fmmacc.b'"),
    ],
)
def test_bad_text(text, message):
    with pytest.raises(isa.AsmError, match="line 2: ") as raised:
        isa.assemble_program(f"th.mrelease\n{text}\n")
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


def test_commands_know_both_front_ends(tmp_path):
    """One program of both, through asm, dis and lines for GNU as."""
    both = ["mmacc.t tr0, tr16, tr18, 0", *SAMPLES, "mldb tr1, (x5), x6", "mzero tr3", "mfence"]
    source = "".join(f"{text}\n" for text in both)

    def step(*arguments, text):
        run = [sys.executable, "-m", "hdl.isa", *arguments]
        done = subprocess.run(run, input=text, text=True, check=True, capture_output=True)
        return done.stdout

    words = step("asm", text=source)
    assert words.splitlines()[1:3] == ["0x105004ab", "0x20a803ab"]
    assert step("dis", text=words) == source
    assert step("asm", text=step("dis", "--insn", text=words)) == words


def test_a_word_is_written_as_its_operands_say():
    assert OperandKind.ROW_XREG in {op.kind for op in ROWS["madd.s.mv.x"].operands}
    with pytest.raises(ValueError, match="row = 7: use 8 to 15"):
        isa.encode("mmov.mv.x", 0, 1, 7, table=isa.XUANTIE)
    with pytest.raises(ValueError, match=r"unknown instruction 'mmaqa\.b'"):
        isa.encode("mmaqa.b", 0, 1, 2)
