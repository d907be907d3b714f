"""Tables, encoder, decoder and assembler: every instruction of isa.md section 2 and back."""

from __future__ import annotations

import os
import random
import subprocess
import sys

import pytest

from hdl import isa
from hdl.config import PRESETS
from hdl.isa.fields import OperandKind

SEED = int(os.environ.get("TEST_SEED", "20250101"))
ROWS = {row.name: row for row in isa.AME}

# Words taken apart by hand from the tables of isa.md: rd, funct3, rs1, rs2, f7, opcode.
SAMPLES = [
    ("mmacc.t tr0, tr16, tr18, 0", 0, 0, 16, 18, 0, 0x7B),
    ("mmacc.t tr3, tr1, tr2, 12", 3, 0, 1, 2, 12, 0x7B),
    ("mmacc.mx tr8, tr31, tr30, 5", 8, 1, 31, 30, 5, 0x7B),
    ("mlda tr16, (x10), x11", 16, 2, 10, 11, 0b0000000, 0x7B),
    ("mldb tr16, (x10), x11, n=2", 16, 2, 10, 11, 0b0000101, 0x7B),
    ("mldc tr16, (x10), x11, n=4, down", 16, 2, 10, 11, 0b0011010, 0x7B),
    ("mldr tr16, (x10), x11, n=8, down, stream, cfile", 16, 2, 10, 11, 0b1111111, 0x7B),
    ("msta tr1, (x5), x6, stream", 1, 3, 5, 6, 0b0100000, 0x7B),
    ("mstb tr1, (x5), x6, n=2, down", 1, 3, 5, 6, 0b0010101, 0x7B),
    ("mstc tr1, (x5), x6, cfile", 1, 3, 5, 6, 0b1000010, 0x7B),
    ("mstr tr31, (x0), x0", 31, 3, 0, 0, 0b0000011, 0x7B),
    ("mmov tr4, tr8, n=4", 4, 4, 8, 0, 0b0000010, 0x7B),
    ("mzero tr0, n=32", 0, 4, 0, 0, 0b0001101, 0x7B),
    ("mtrans.h tr0, tr2", 0, 4, 2, 0, 0b0010001, 0x7B),
    ("mbcrow.b tr1, tr2, x3", 1, 4, 2, 3, 0b0011000, 0x7B),
    ("mbccol.w tr1, tr2, x3", 1, 4, 2, 3, 0b0100010, 0x7B),
    ("mbcast.d tr1, x2, cfile", 1, 4, 2, 0, 0b1101011, 0x7B),
    ("mget.d x1, tr2, x3", 1, 4, 2, 3, 0b0110011, 0x7B),
    ("mmovf tr1, tr2, n=2, cfile", 1, 4, 2, 0, 0b1111001, 0x7B),
    ("mvmadd tr1, tr2, tr3", 1, 5, 2, 3, 0, 0x7B),
    ("mvmul tr1, tr2, tr3, wide", 1, 5, 2, 3, 0b0001001, 0x7B),
    ("mvaddx tr1, tr2, tr3", 1, 5, 2, 3, 2, 0x7B),
    ("mvaddy tr1, tr2, tr3", 1, 5, 2, 3, 3, 0x7B),
    ("mvmax tr1, tr2, tr3, cfile", 1, 5, 2, 3, 0b1000100, 0x7B),
    ("mvmin tr1, tr2, tr3, wide, cfile", 1, 5, 2, 3, 0b1001101, 0x7B),
    ("mpool tr1, tr2, tr3", 1, 6, 2, 3, 0, 0x7B),
    ("mfence", 0, 7, 0, 0, 0, 0x7B),
    ("mrelease", 0, 7, 0, 0, 1, 0x7B),
    ("msymstat", 0, 7, 0, 0, 2, 0x7B),
    ("csrrw x5, mxcfg, x6", 5, 1, 6, 0x7C0 & 31, 0x7C0 >> 5, 0x73),
    ("csrrs x5, mxstatus, x0", 5, 2, 0, 0x7C2 & 31, 0x7C2 >> 5, 0x73),
    ("csrrc x5, mxscale, x7", 5, 3, 7, 0x7C3 & 31, 0x7C3 >> 5, 0x73),
    ("csrrwi x5, mxtile, 31", 5, 5, 31, 0x7C1 & 31, 0x7C1 >> 5, 0x73),
    ("csrrsi x5, mxinfo, 0", 5, 6, 0, 0x7C4 & 31, 0x7C4 >> 5, 0x73),
    ("csrrci x5, xmcsr, 3", 5, 7, 3, 0x802 & 31, 0x802 >> 5, 0x73),
]


def random_operands(row, rng):
    values = {}
    for operand in row.operands:
        value = rng.choice((0, operand.max, rng.randint(0, operand.max)))
        values[operand.name] = 1 << value if operand.kind is OperandKind.COUNT else value
    return values


def test_every_instruction_is_sampled():
    missing = {text.split()[0].split(".")[0] for text, *_ in SAMPLES} ^ {
        name.split(".")[0] for name in ROWS
    }
    assert not missing


@pytest.mark.parametrize(("text", "rd", "funct3", "rs1", "rs2", "f7", "opcode"), SAMPLES)
def test_sample_words(text, rd, funct3, rs1, rs2, f7, opcode):
    word = opcode | rd << 7 | funct3 << 12 | rs1 << 15 | rs2 << 20 | f7 << 25
    assert isa.assemble(text) == word
    assert isa.disassemble(word) == text


def test_no_word_is_two_instructions():
    rng = random.Random(SEED)
    for first in isa.AME:
        for second in isa.AME:
            if first is not second:
                both = first.mask & second.mask
                assert (first.match ^ second.match) & both, (first.name, second.name)
    for _ in range(2000):
        word = rng.getrandbits(32) & ~0x7F | rng.choice((0x7B, 0x73))
        assert sum(row.matches(word) for row in isa.AME) <= 1, hex(word)


@pytest.mark.parametrize("name", ROWS)
def test_fields_word_text_round_trip(name):
    rng = random.Random(f"{SEED} {name}")
    for _ in range(50):
        values = random_operands(ROWS[name], rng)
        word = isa.encode(name, **values)
        decoded = isa.decode(word)
        assert (decoded.name, dict(decoded.operands)) == (name, values), f"seed {SEED}"
        assert decoded.canonical
        assert isa.encode(name, *values.values()) == word
        text = isa.disassemble(word)
        assert text.split()[0] == name
        assert isa.assemble(text) == word, f"seed {SEED}: {text}"


def test_any_word_disassembles_to_text_that_assembles_back():
    rng = random.Random(SEED)
    kinds = set()
    for _ in range(5000):
        word = rng.getrandbits(32)
        if rng.random() < 0.8:
            word = word & ~0x7F | rng.choice((0x7B, 0x73))
        text = isa.disassemble(word)
        kinds.add((text.startswith(".word"), "#" in text))
        assert isa.assemble(text) == word, f"seed {SEED}: {text}"
    assert len(kinds) == 3


def test_encoder_names_agree_with_hardware_constants():
    assert (isa.OPCODE_AME, isa.OPCODE_SYSTEM) == (0x7B, 0x73)
    assert [int(csr) for csr in isa.Csr] == [0, 1, 2, 3, 4]
    assert isa.csr_numbers(0xBC0)["mxinfo"] == 0xBC4
    assert isa.csr_numbers(0xBC0)["xmcsr"] == 0x802
    assert isa.CSR_RESET[isa.Csr.MXTILE] == 0x0001_1010


@pytest.mark.parametrize("fields", [isa.MXCFG, isa.MXTILE, isa.MXSTATUS, isa.MXINFO, isa.IMM])
def test_csr_fields_are_disjoint_and_leave_no_gap(fields):
    end = 0
    for field in sorted(fields.values()):
        assert field.lo == end
        end = field.lo + field.width


def test_illegal_words():
    for word in (
        0x0000007F,  # opcode
        0x7B | 0b0010000 << 25,  # mmacc imm[6:4]
        0x7B | 4 << 12 | 6 << 25,  # mmov of 64 tiles
        0x7B | 4 << 12 | (2 << 3 | 4) << 25,  # mtrans of 16-byte elements
        0x7B | 5 << 12 | 6 << 25,  # vector operation 6
        0x7B | 5 << 12 | 0b0010000 << 25,  # vector f7[5:4]
        0x7B | 7 << 12 | 3 << 25,  # system operation 3
        0x73,  # ecall
        0x73 | 4 << 12,
    ):
        assert isa.decode(word) is None, hex(word)


@pytest.mark.parametrize("bits", range(16))
def test_mmacc_imm(bits):
    btr, beta, alpha = bits & 3, bits >> 2 & 1, bits >> 3
    assert isa.mmacc_imm(btr=btr, beta=beta, alpha=alpha) == (btr ^ 1) | beta << 2 | alpha << 3


def test_short_forms_abi_names_and_comments():
    assert isa.assemble("csrw mxcfg, a0  # set") == isa.assemble("csrrw x0, mxcfg, x10")
    assert isa.assemble("csrr t0, mxstatus") == isa.assemble("csrrs x5, mxstatus, x0")
    assert isa.assemble("csrwi mxstatus, 0") == isa.assemble("csrrwi x0, mxstatus, 0")
    assert isa.assemble("\tmmov\ttr1, tr2") == isa.encode("mmov", 1, 2)
    assert isa.assemble("mlda tr1, ( s11 ), fp") == isa.encode("mlda", 1, 27, 8)
    assert isa.assemble("csrr x1, 0x123") == isa.encode("csrrs", 1, 0x123, 0)
    assert isa.assemble("csrr x1, mxcfg", csr_base=0x5C0) == isa.encode("csrrs", 1, 0x5C0, 0)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("mfoo tr1", "unknown instruction 'mfoo'"),
        ("mmov tr1", "mmov needs operand ts"),
        ("mmov tr32, tr1", "td must be a tile tr0 to tr31, not 'tr32'"),
        ("mmov tr1, tr2, n=3", "mmov: n = 3: use a power of two up to 32"),
        ("mlda tr1, x5, x6", "base must be a register in parentheses, not 'x5'"),
        ("mlda tr1, (x5), x6, n=16", "mlda: n = 16: use a power of two up to 8"),
        ("mlda tr1, (x5), x6, up", "mlda has no operand 'up'"),
        ("mlda tr1, (x5), x6, down=1", "mlda has no operand 'down=1'"),
        ("mlda tr1, (x5), x6, down, down", "mlda: down is given twice"),
        ("mmacc.t tr1, tr2, tr3, 16", "mmacc.t: imm = 16: use 0 to 15"),
        ("mmacc.t tr1, tr2, tr3, q", "imm must be a number, not 'q'"),
        ("csrr x1, mxfoo", "csrrs: csr = 'mxfoo' is no CSR: use one of mxcfg"),
        ("csrr x1", "csrr takes 2 operands, not 1"),
        (".word 0x100000000", ".word 0x100000000 does not fit in 32 bits"),
    ],
)
def test_bad_text(text, message):
    with pytest.raises(isa.AsmError, match="line 2: ") as raised:
        isa.assemble_program(f"mfence\n{text}\n")
    assert message in str(raised.value)


def test_bad_operands():
    for arguments, named, message in (
        (("mmov", 1, 2, 1, 0, 0), {}, "takes at most 4 operands"),
        (("mmov", 1, 2), {"td": 1}, "td is given twice"),
        (("mmov", 1, 2), {"foo": 1}, "no operand foo"),
        (("mmov", 1, -1), {}, "ts = -1: use 0 to 31"),
        (("mmov", 1, "tr2"), {}, "must be a whole number"),
    ):
        with pytest.raises(ValueError, match=message):
            isa.encode(*arguments, **named)


def test_built_set_is_made_of_rows():
    for cfg in PRESETS.values():
        names = isa.built_instructions(cfg)
        assert names <= set(ROWS)
        assert {"mfence", "csrrw"} <= names
        assert isa.Csr.MXSTATUS in isa.built_csrs(cfg)
        if cfg.ame:
            assert {"mmacc.t", "mldr", "mstc"} <= names
            assert set(isa.built_csrs(cfg)) >= {isa.Csr.MXCFG, isa.Csr.MXINFO}
        else:
            assert not {"mmacc.t", "mldr", "mstc"} & names


def test_command_round_trip(tmp_path):
    source = "".join(f"{text}\n" for text, *_ in SAMPLES) + "# end\n\n"
    words, back = tmp_path / "words.txt", tmp_path / "back.s"
    run = [sys.executable, "-m", "hdl.isa"]
    subprocess.run([*run, "asm", "-o", words], input=source, text=True, check=True)
    assert words.read_text().splitlines()[0] == "0x0128007b"
    subprocess.run([*run, "dis", words, "-o", back], check=True)
    assert back.read_text() == "".join(f"{text}\n" for text, *_ in SAMPLES)


def test_gnu_as_lines():
    """By hand from the R type: opcode, funct3, funct7, rd, rs1, rs2; CSRs are standard."""
    word = isa.assemble("mldb tr16, (x10), x11, n=2")
    assert isa.insn_line(word) == ".insn r 0x7b, 0x2, 0x5, x16, x10, x11"
    assert isa.insn_line(isa.assemble("csrw mxtile, a0")) == "csrrw x0, 0x7c1, x10"
    assert isa.insn_line(isa.assemble("csrwi mxstatus, 3")) == "csrrwi x0, 0x7c2, 3"
    assert isa.insn_line(0x13) == ".word 0x00000013"


def test_every_gnu_as_line_assembles_back():
    rng = random.Random(SEED)
    for _ in range(3000):
        word = rng.getrandbits(32) & ~0x7F | rng.choice((0x7B, 0x7B, 0x73, 0x13))
        line = isa.insn_line(word)
        assert isa.assemble(line) == word, f"seed {SEED}: {line}"


def test_gnu_as_command_round_trip(tmp_path):
    source = "".join(f"{text}\n" for text, *_ in SAMPLES)
    run = [sys.executable, "-m", "hdl.isa"]

    def step(*arguments, text):
        done = subprocess.run(
            [*run, *arguments], input=text, text=True, check=True, capture_output=True
        )
        return done.stdout

    words = step("asm", text=source)
    lines = step("asm", "--insn", text=source)
    assert lines == step("dis", "--insn", text=words)
    assert [line.partition("# ")[2] for line in lines.splitlines()] == source.splitlines()
    assert step("asm", text=lines) == words


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("r 0x7b, 0, 0, x1, x2", ".insn takes: r opcode, funct3, funct7, rd, rs1, rs2"),
        ("i 0x7b, 0, x1, x2, 5", ".insn takes: r opcode"),
        ("r 0x7b, 8, 0, x1, x2, x3", ".insn: 8 does not fit in 3 bits"),
        ("r 0x7b, 0, 0, tr1, x2, x3", ".insn: 'tr1' is not a register x0 to x31"),
        ("r 0x7b, 0, 0, x32, x2, x3", ".insn: x32 does not fit in 5 bits"),
        ("r custom, 0, 0, x1, x2, x3", ".insn: 'custom' is not a number"),
    ],
)
def test_gnu_as_errors(text, message):
    with pytest.raises(isa.AsmError, match=r".*") as caught:
        isa.assemble(f".insn {text}")
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("arguments", "text", "message"),
    [
        (["asm"], "mfence\nmfoo\n", "hdl.isa: line 2: unknown instruction 'mfoo'"),
        (["dis"], "0x7b\nzz\n", "hdl.isa: line 2: 'zz' is not a word such as 0x0000007b"),
        (["dis"], "0x100000000\n", "hdl.isa: line 1: '0x100000000' does not fit in 32 bits"),
        (["asm", "/nonexistent/file"], "", "hdl.isa: [Errno 2]"),
    ],
)
def test_command_errors_are_one_line(arguments, text, message):
    done = subprocess.run(
        [sys.executable, "-m", "hdl.isa", *arguments],
        input=text,
        text=True,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith(message)
    assert done.stderr.count("\n") == 1
