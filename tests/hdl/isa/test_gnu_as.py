"""What `hdl.isa asm --insn` prints goes through a real GNU as, and gives the same words."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from pathlib import Path

import pytest

from hdl import isa

SEED = int(os.environ.get("TEST_SEED", "1"))
PREFIXES = ("riscv64-unknown-elf-", "riscv64-linux-gnu-", "riscv32-unknown-elf-")
OPCODES = (0x7B, 0x7B, 0x73)


def assembled(source: str, folder: Path) -> list[int]:
    """The words of GNU as, or a skip where there is none."""
    prefix = next((p for p in PREFIXES if shutil.which(f"{p}as")), None)
    if prefix is None:
        pytest.skip("GNU as for RISC-V is not installed (binutils-riscv64-unknown-elf)")
    (folder / "code.s").write_text(f".option norvc\n.text\n{source}")
    for command in (
        [f"{prefix}as", "-march=rv64i_zicsr", "-o", "code.o", "code.s"],
        [f"{prefix}objcopy", "-O", "binary", "-j", ".text", "code.o", "code.bin"],
    ):
        subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=60)
    content = (folder / "code.bin").read_bytes()
    return [int.from_bytes(content[at : at + 4], "little") for at in range(0, len(content), 4)]


def test_lines_give_the_same_words(tmp_path):
    rng = random.Random(SEED)
    words = [rng.getrandbits(32) & ~0x7F | rng.choice(OPCODES) for _ in range(5000)]
    words += [isa.assemble("mfence"), isa.assemble("mmacc.t tr0, tr16, tr24, 0x4"), 0x13]
    found = assembled("".join(f"{isa.insn_line(word)}\n" for word in words), tmp_path)
    assert [f"{word:#010x}" for word in found] == [f"{word:#010x}" for word in words], (
        f"seed {SEED}"
    )
