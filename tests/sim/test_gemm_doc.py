"""docs/gemm.md: its example runs, its tables are what the kernels do."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from gemm_cases import compiled

from hdl.config import preset
from hdl.formats import FORMATS
from sim.codes import random_codes
from sim.gemm import gemm
from sim.kernels import BLOCKS, Tiles

TEXT = (Path(__file__).parents[2] / "docs" / "gemm.md").read_text()
ROWS = [
    [cell.strip() for cell in line.strip("|\n").split("|")]
    for line in TEXT.splitlines()
    if line.startswith("| ame32")
]


def test_the_example_runs() -> None:
    (example,) = re.findall(r"```python\n(.*?)```", TEXT, re.S)
    exec(compile(example, "docs/gemm.md", "exec"), {})


def test_the_table_of_blocks() -> None:
    """Block, tiles and C sets as the allocation has them."""
    lines = [line for line in TEXT.splitlines() if re.match(r"\| `\d", line)]
    seen = set()
    for line in lines:
        names, block, _, tiles, unified, split = (c.strip() for c in line.strip("|").split("|"))
        for index, name in enumerate(re.findall(r"`(\dx\d)`", names)):
            seen.add(name)
            macro, down, across = BLOCKS[name]
            a, b = macro.a_tiles * down, macro.b_tiles * across
            assert block.split(", ")[index] == f"{16 * a} x {16 * b}", name
            assert tiles.split(" or ")[index] == f"{a}, {b}", name
            for text, core in ((unified, "ame32"), (split, "ame32-split")):
                for cell, bits in zip(text.split(" (")[0].split(" / "), (16, 32), strict=True):
                    assert cell == _sets(core, name, bits), f"{name}, {core}, {bits} bits"
    assert seen == set(BLOCKS)


def _sets(core: str, name: str, bits: int) -> str:
    macro, down, across = BLOCKS[name]
    try:
        tiles = Tiles.of(preset(core), macro, bits, down=down, across=across)
    except ValueError:
        return "-"
    return str(len(tiles.c_sets))


def test_the_table_of_cycles_agrees_with_itself() -> None:
    assert len(ROWS) == 2 * 3 * 4
    for row in ROWS:
        cycles, bound = (int(cell.replace(",", "")) for cell in row[4:6])
        assert row[6] == f"{bound / cycles:.2f}", row


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ame32", "ame32-split"])
def test_the_table_of_cycles(name: str) -> None:
    """The figures of the generated Verilog; they may fall, and the table with them."""
    noise = np.random.default_rng(0)
    for row in ROWS:
        if row[0] == name:
            a, b = (random_codes(noise, (128, 128), FORMATS[row[1]]) for _ in range(2))
            result = gemm(a, b, ft=row[1], trans=row[2], pack=False, preset=name, engine=compiled())
            assert result.bit_exact
            assert result.tiling == row[3], row
            assert [f"{result.cycles:,}", f"{result.bound_cycles:,}"] == row[4:6], row
