"""hdl.top as a user types it: output, files and one-line errors."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from hdl import emit, top
from hdl.blocks import BLOCKS
from hdl.config import PRESETS, preset
from hdl.describe import format_pairs, result_latency
from sim.engines.pysim import PySimulator
from sim.program import Program

ROOT = Path(__file__).resolve().parents[2]
SMALL = ("--verilog", "--preset", "tiny", "--block", "bank")


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    status = top.main(list(arguments))
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def test_list_names_every_preset_and_block(capsys) -> None:
    status, out, err = run(capsys, "--list")
    assert (status, err) == (0, "")
    words = re.findall(r"^ *(\S+)", out, re.MULTILINE)
    assert {*PRESETS, *BLOCKS} <= {*words}


def test_verilog_goes_to_stdout(capsys) -> None:
    status, out, err = run(capsys, *SMALL)
    assert status == 0
    assert "module tiny_bank(" in out and out.endswith("endmodule\n")
    assert "module" not in err, "progress and output are apart"


def test_verilog_goes_to_a_file_with_usual_permissions(capsys, tmp_path) -> None:
    path = tmp_path / "bank.v"
    status, out, _ = run(capsys, *SMALL, "-o", str(path))
    assert (status, out) == (0, "")
    assert path.read_text() == top.verilog_file(preset("tiny"), "bank")
    (tmp_path / "plain").touch()
    assert path.stat().st_mode == (tmp_path / "plain").stat().st_mode
    assert [item.name for item in tmp_path.iterdir() if item.name.startswith(".")] == []


def test_a_file_that_was_there_keeps_its_permissions(capsys, tmp_path) -> None:
    path = tmp_path / "bank.v"
    path.write_text("old")
    path.chmod(0o640)
    link = tmp_path / "link.v"
    link.symlink_to(path)
    assert run(capsys, *SMALL, "-o", str(link))[0] == 0
    assert link.is_symlink() and "module tiny_bank(" in path.read_text()
    assert path.stat().st_mode & 0o777 == 0o640


def test_a_pipe_is_written_and_not_replaced() -> None:
    command = [sys.executable, "-m", "hdl.top", *SMALL, "-o", "/dev/stdout"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == top.verilog_file(preset("tiny"), "bank")


def test_a_reader_that_leaves_is_no_crash() -> None:
    command = f"{sys.executable} -m hdl.top {' '.join(SMALL)} | head -n 1"
    done = subprocess.run(command, shell=True, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("// tiny_bank")
    assert "Traceback" not in done.stderr and "Broken" not in done.stderr


def test_header_names_the_whole_configuration(capsys) -> None:
    _, out, _ = run(capsys, *SMALL, "--set", "slots=0x2", "csr_base=0x840", "--set", "l2_ids=16")
    comments = [line for line in out.splitlines() if line.startswith("//")]
    for line in (
        "//   slots = 2",
        "//   csr_base = 2112",
        "//   l2_ids = 16",
        "//   formats = int8,fp8_e4m3,fp8_e5m2",
    ):
        assert line in comments
    assert str(ROOT) not in out


def test_settings_change_the_design(capsys) -> None:
    _, narrow, _ = run(capsys, *SMALL)
    _, wide, _ = run(capsys, *SMALL, "--set", "m_par=4")
    assert "[255:0]" in narrow and "[511:0]" in wide and "[511:0]" not in narrow


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_describe_states_peak_storage_and_ports(capsys, name: str) -> None:
    cfg = preset(name)
    status, out, err = run(capsys, "--describe", "--preset", name, "--block", "tilefile")
    assert (status, err) == (0, "")
    peak = cfg.m_par * cfg.n_par * cfg.row_bits // 8
    for output in ("int8", "int16", "int32") if cfg.ame else ():
        row = next(line for line in out.splitlines() if re.match(rf" *int8 +{output} ", line))
        assert row.split()[-3] == str(peak)
    bits = cfg.all_tiles * cfg.rows * cfg.row_bits
    assert f"{bits:,}" in out and f"{2 * bits:,}" in out
    assert re.search(r"load__payload +input +\d+", out)


def test_latency_is_what_the_rtl_shows() -> None:
    """One mmacc 1x1 with its operands there, from its request to the fence behind it."""
    cfg = preset("tiny")
    engine = PySimulator(cfg)
    fence_answers = 4  # cycles from the last write to the fence's response
    for m, n, acc in ((16, 16, 0), (16, 16, 1), (16, 3, 0), (1, 1, 1)):
        program = Program(cfg)
        program.set_cfg("int8", acc=acc)
        program.set_tile(16, m, n)
        program.mfence()
        program.mmacc(0, 16, 24)
        program.mfence()
        result = engine.run(program)
        uop_cycles = -(-m // cfg.m_par) * -(-n // cfg.n_par)
        taken = result.responses[-1].cycle - result.request_cycles[-2]
        assert taken == result_latency(cfg, uop_cycles) + fence_answers, (m, n, acc)
    pair = format_pairs(cfg)[0]
    assert pair.uop_cycles == 16 * 16 // (cfg.m_par * cfg.n_par)


def test_peaks_are_those_of_the_roofline() -> None:
    """performance.md section 1; 64-bit results fill a row with two elements."""
    cfg = preset("ame32").replace(formats=("int4", "int8", "int16", "int32", "int64"))
    found = {(p.operand.name, p.output.name): p for p in format_pairs(cfg)}
    for pair, peak, uop_cycles in (
        (("int4", "int32"), 512, 16),
        (("int8", "int16"), 256, 16),
        (("int16", "int32"), 128, 16),
        (("int32", "int32"), 64, 16),
        (("int64", "int64"), 16, 32),
    ):
        assert (found[pair].macs_per_cycle, found[pair].uop_cycles) == (peak, uop_cycles), pair


WRONG = [
    ((), "one of the arguments --verilog --list --describe is required"),
    (("--verilog", "--list"), "not allowed with"),
    (("--list", "-o", "x"), "-o goes with --verilog"),
    (("--list", "--presets"), "unrecognized arguments: --presets"),
    (("--list", "--preset"), "--preset"),
    (
        ("--verilog", "--preset", "ame33"),
        f"unknown preset 'ame33': choose one of {', '.join(PRESETS)}",
    ),
    (("--describe", "--preset", "ame33"), "unknown preset 'ame33'"),
    (("--list", "--preset", "ame33"), "unknown preset 'ame33'"),
    (("--verilog", "--block", "alu"), "unknown block 'alu': choose one of core"),
    (("--verilog", "--set", "slot=4"), "unknown field 'slot': choose one of frontends"),
    (("--verilog", "--set", "name=x"), "unknown field 'name'"),
    (("--verilog", "--set", "slots"), "'slots' is not of the form FIELD=VALUE"),
    (("--verilog", "--set", "slots=many"), "slots = 'many' is not a whole number"),
    (("--verilog", "--set", "slots=99"), "slots = 99 is not built: use 1 to 8"),
    (("--verilog", "--set", "slots.a=1"), "slots has no entries"),
    (("--verilog", "--set", "formats=int8,int9"), "unknown number format 'int9'"),
    (("--verilog", "--set", "formats="), "formats is empty"),
    (("--verilog", "--set", "window=bf16"), "write it like window=bf16:40"),
    (("--verilog", "--set", "window.bf16=4"), "below twice the mantissa bits"),
    (("--verilog", "--set", "window.bf16=x"), "window.bf16 = 'x' is not a whole number"),
    (("--verilog", "--set", "frontends=x86"), "unknown front end 'x86'"),
]


@pytest.mark.parametrize(("arguments", "message"), WRONG, ids=lambda value: str(value)[:40])
def test_wrong_requests_are_one_line(capsys, arguments, message: str) -> None:
    status, out, err = run(capsys, *arguments)
    assert (status, out) == (2, "")
    assert message in err and err.startswith("hdl.top: ") and err.count("\n") == 1


def test_paths_that_cannot_be_written_are_one_line_and_early(capsys, tmp_path, monkeypatch) -> None:
    def never(*arguments: object) -> str:
        raise AssertionError("the design was built before the path was checked")

    monkeypatch.setattr(top, "verilog_file", never)
    blocked = tmp_path / "file"
    blocked.touch()
    for path, message in (
        (tmp_path / "no" / "such" / "a.v", "make the directory"),
        (tmp_path, "it is a directory"),
        (blocked / "a.v", "make the directory"),
        (Path("/proc/no.v"), "cannot write /proc/no.v"),
    ):
        status, out, err = run(capsys, *SMALL, "-o", str(path))
        assert (status, out) == (2, ""), path
        assert message in err and err.count("\n") == 1
    assert sorted(item.name for item in tmp_path.iterdir()) == ["file"]


def test_nothing_is_left_when_emission_fails(capsys, tmp_path, monkeypatch) -> None:
    def fails(*arguments: object) -> str:
        raise emit.EmitError("the built-in yosys failed: ERROR: out of memory")

    monkeypatch.setattr(top, "verilog_file", fails)
    kept = tmp_path / "kept.v"
    kept.write_text("old")
    for path in (kept, tmp_path / "new.v"):
        status, _, err = run(capsys, *SMALL, "-o", str(path))
        assert status == 2 and err.splitlines()[-1].endswith("out of memory")
    assert kept.read_text() == "old"
    assert sorted(item.name for item in tmp_path.iterdir()) == ["kept.v"]


def test_same_bytes_whatever_the_hash_seed(tmp_path) -> None:
    found = set()
    for seed in ("1", "4242"):
        path = tmp_path / f"{seed}.v"
        subprocess.run(
            [
                sys.executable,
                "-m",
                "hdl.top",
                "--verilog",
                "--preset",
                "tiny",
                "--block",
                "tilefile",
                "-o",
                str(path),
            ],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        )
        found.add(path.read_bytes())
    assert len(found) == 1


def test_help_shows_every_option() -> None:
    command = [sys.executable, "-m", "hdl.top", "--help"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    for option in ("--verilog", "--list", "--describe", "-o FILE", "--preset", "--set", "--block"):
        assert option in done.stdout
