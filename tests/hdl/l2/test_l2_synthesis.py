"""The pipes on ECP5: memories stay memories, and the size is what it was when it was chosen."""

import re

import pytest
from amaranth.back import rtlil
from yosys_tool import run_yosys

from hdl.config import preset
from hdl.l2.load import LoadPipe
from hdl.l2.store import StorePipe


@pytest.mark.parametrize(
    "pipe, most",
    (
        (LoadPipe, {"LUT4": 1940, "TRELLIS_FF": 2010, "TRELLIS_DPR16X4": 80, "DP16KD": 1}),
        (StorePipe, {"LUT4": 1140, "TRELLIS_FF": 850, "TRELLIS_DPR16X4": 52, "DP16KD": 0}),
    ),
)
def test_size(pipe, most, tmp_path):
    (tmp_path / "dut.il").write_text(rtlil.convert(pipe(preset("ame32-int8")), name="dut"))
    run_yosys(
        "read_rtlil dut.il\n"
        "hierarchy -check\nproc\ncheck -assert\n"
        "synth_ecp5 -top dut\ntee -o stat.txt stat\n",
        tmp_path,
    )
    stat = (tmp_path / "stat.txt").read_text()
    counts = {cell: int(n) for n, cell in re.findall(r"^\s+(\d+)\s+(\w+)$", stat, re.M)}
    assert counts["TRELLIS_DPR16X4"] > 40, stat
    over = {
        cell: counts.get(cell, 0) for cell, limit in most.items() if counts.get(cell, 0) > limit
    }
    assert not over, stat
