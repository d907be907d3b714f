"""The emitted Verilog of every preset is what other tools accept, and the same every time."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from yosys_tool import run_yosys

from hdl.blocks import BLOCKS, block
from hdl.config import PRESETS, preset
from hdl.describe import port_rows
from hdl.top import module_name, verilog_file

ROOT = Path(__file__).resolve().parents[2]
WAIVERS = Path(__file__).with_name("verilator.vlt")
MAX_BYTES = 40e6
"""performance.md section 3."""

AT_NIGHT = {"mxu8"}
"""Takes minutes in each tool; parts of the same kind are in `full`."""

SECOND_LOOK_AT_NIGHT = {"full", "ame32-split", *AT_NIGHT}
"""Checked by yosys in every run, by the other tools at night."""


def presets_but(slow: set[str]) -> pytest.MarkDecorator:
    """Every preset, some of them in nightly runs only."""
    marks = {name: [pytest.mark.slow] * (name in slow) for name in sorted(PRESETS)}
    return pytest.mark.parametrize(
        "name", [pytest.param(name, marks=found) for name, found in marks.items()]
    )


presets = presets_but(AT_NIGHT)
large_is_slow = presets_but(SECOND_LOOK_AT_NIGHT)


@cache
def core(name: str) -> str:
    return verilog_file(preset(name))


@pytest.fixture
def file(name: str, tmp_path: Path) -> Path:
    path = tmp_path / f"{module_name(preset(name))}.v"
    path.write_text(core(name))
    return path


def run(*command: str | Path, cwd: Path) -> str:
    """Run a tool that may not be here; it must succeed and say nothing."""
    if shutil.which(str(command[0])) is None:
        pytest.skip(f"{command[0]} is not installed")
    done = subprocess.run(
        list(map(str, command)), cwd=cwd, capture_output=True, text=True, timeout=600, check=False
    )
    said = done.stdout + done.stderr
    assert done.returncode == 0 and not said, said[-4000:]
    return said


@presets
def test_yosys_finds_no_latch_loop_or_undriven_net(name: str, file: Path) -> None:
    log = run_yosys(
        f"read_verilog {file.name}\nhierarchy -check -top {file.stem}\nproc\ncheck -assert\n"
        "select -assert-none t:$dlatch t:$adlatch t:$dlatchsr\n",
        file.parent,
    )
    assert "Found and reported 0 problems." in log


@large_is_slow
def test_verilator_has_no_complaint_beyond_the_waivers(name: str, file: Path) -> None:
    run("verilator", "--lint-only", "-Wall", WAIVERS, file, cwd=file.parent)


@large_is_slow
def test_iverilog_takes_it_as_verilog_2005(name: str, file: Path) -> None:
    run("iverilog", "-g2005", "-o", "core.vvp", file, cwd=file.parent)


def test_waivers_have_reasons() -> None:
    """Every rule that is switched off stands below a comment."""
    explained = False
    for line in WAIVERS.read_text().splitlines()[1:]:
        if line.startswith("//"):
            explained = True
        elif line:
            assert explained and re.fullmatch(r"lint_off -rule [A-Z]+", line), line
        else:
            explained = False


@large_is_slow
def test_another_process_writes_the_same_bytes(name: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hdl.top", "--verilog", "--preset", name]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={"PYTHONHASHSEED": "321", "PATH": "/usr/bin"},
        capture_output=True,
        text=True,
        timeout=600,
        check=True,
    )
    assert done.stdout == core(name)


@presets
def test_one_module_for_equal_parts(name: str) -> None:
    """A sub-array, an operand decoder, a bank and a slot of each kind are emitted once."""
    modules = re.findall(r"^module (\S+)\(", core(name), re.MULTILINE)
    assert len(modules) == len(set(modules))
    for part in ("__dot", "__decode_a", "__decode_b", "__bank", "__slot"):
        found = [module for module in modules if re.search(rf"{part}\d*(_\d+)?$", module)]
        assert len(found) <= 1, found


@presets
def test_file_is_small_and_plain(name: str) -> None:
    text = core(name)
    assert len(text) < MAX_BYTES
    for word in ("assert", "$display", "always_ff", "(* src", "[-1:0]", str(ROOT)):
        assert word not in text, word


@presets
def test_ports_are_those_described(name: str) -> None:
    cfg = preset(name)
    text = core(name)
    header = re.search(rf"^module {module_name(cfg)}\((.*?)\);", text, re.MULTILINE | re.DOTALL)
    listed = [port.strip() for port in header[1].replace("\n", " ").split(",")]
    rows = port_rows(block("core"), cfg)
    assert listed == [port for port, _, _ in rows]
    for port, direction, bits in rows:
        width = rf" \[{bits - 1}:0\]" if bits > 1 else ""
        assert re.search(rf"^  {direction}{width} {port};", text, re.MULTILINE), port


@pytest.mark.parametrize("name", [name for name in BLOCKS if name != "core"])
def test_every_block_can_be_emitted_alone(name: str, tmp_path: Path) -> None:
    cfg = preset("tiny")
    path = tmp_path / "block.v"
    path.write_text(verilog_file(cfg, name))
    run_yosys(f"read_verilog {path.name}\nhierarchy -check -auto-top\nproc\n", tmp_path)
    assert f"module {module_name(cfg, name)}(" in path.read_text()
