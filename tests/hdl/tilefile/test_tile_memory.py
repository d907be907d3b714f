"""`tile_memory`: an attribute for synthesis, on every memory of tiles and on nothing else."""

from __future__ import annotations

import re

import pytest

from hdl.config import preset
from hdl.emit import verilog_text
from hdl.tilefile.bank import Bank

ATTRIBUTE = re.compile(r'\(\* ram_style = "block" \*\)\s*reg \[\d+:0\] \w+ *\[\d+:0\];')


@pytest.mark.parametrize("banks", [2, 4])
@pytest.mark.parametrize("memory, expected", [("any", 0), ("block", 2)])
def test_attribute_is_on_both_copies_of_a_bank(banks, memory, expected):
    cfg = preset("tiny").replace(banks=banks, tile_memory=memory)
    text = verilog_text(Bank(cfg), "bank")
    assert len(ATTRIBUTE.findall(text)) == expected, text[:3000]
    assert text.count("ram_style") == expected
