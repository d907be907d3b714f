"""The benchmark command: what it prints and writes, how it fails; recordings of what ran."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from hdl.activity import ACTIVITY, MAC_STATES
from hdl.cli import CommandError
from hdl.config import preset
from sim import bench
from sim.bench_plot import plot_sweep
from sim.bench_rows import Job, Row, limit, mac_limit, targets_hold
from sim.bench_table import tables
from sim.recording import activity_csv


def row(**changes) -> Row:
    fields = {"kind": "gemm", "name": "work", "preset": "ame32", "engine": "verilator"}
    return Row(**(fields | {"measured": 0.95, "target": 0.9, "bound": 95, "cycles": 100} | changes))


def shown(rows) -> str:
    console = Console(width=160, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    for table in tables(rows):
        console.print(table)
    console.file.close()
    return console.export_text()


@pytest.mark.parametrize(
    ("relation", "measured", "met"),
    [
        *((">=", 0.9, True), (">=", 0.89, False)),
        *(("<=", 0.9, True), ("<=", 0.91, False)),
        *(("==", 0.9, True), ("==", 0.91, False)),
    ],
)
def test_targets(relation: str, measured: float, met: bool) -> None:
    found = row(relation=relation, measured=measured)
    assert found.met is met
    assert ("MISSED" in shown([found])) is not met
    assert row(target=None).met is None


def test_rows_alike_are_one_line_that_shows_the_worst() -> None:
    rows = [row(case="a", measured=0.97), row(case="b", measured=0.5), row(case="c")]
    text = shown(rows)
    assert text.count("work") == 2  # with the heading
    assert "(3 cases, worst: b)" in text
    assert "50.00 % of bound" in text
    assert "MISSED" in text


def test_where_targets_hold() -> None:
    for name in ("ame32", "ame32-split", "ame32-int8"):
        assert targets_hold(preset(name)), name
    for name in ("tiny", "full"):
        assert not targets_hold(preset(name)), name


def test_limits() -> None:
    activity = dict.fromkeys(ACTIVITY, 0) | {"mac_uop": 50, "mac_operands": 40, "mac_c_tile": 10}
    assert mac_limit(activity) == "operands, 40.0 %"
    assert mac_limit(activity | {"read_beat": 95}) == "operands, 40.0 % (read bus 95 % full)"
    assert mac_limit(dict.fromkeys(ACTIVITY, 0) | {"mac_uop": 50}) == "nothing"
    assert limit({}, MAC_STATES, 10) == mac_limit({}) == "unknown"


def run(monkeypatch, arguments, rows, *, kind="gemm"):
    """The command with other work to do."""
    monkeypatch.setattr(bench, "_jobs", lambda options: [Job(kind, "work", lambda: rows)])
    return bench.main(arguments)


def test_files(monkeypatch, tmp_path, capsys) -> None:
    activity = dict.fromkeys(ACTIVITY, 3)
    rows = [row(activity=activity), row(case="more", measured=0.2, limited_by="operands")]
    files = ["--csv", str(tmp_path / "a.csv"), "--json", str(tmp_path / "a.json")]
    assert run(monkeypatch, files, rows) == 1
    said = capsys.readouterr()
    assert "missed: work more on ame32" in said.err
    assert "worst: more" in said.out
    reports = json.loads((tmp_path / "a.json").read_text())
    with (tmp_path / "a.csv").open() as file:
        table = list(csv.DictReader(file))
    for report, line, source in zip(reports, table, rows, strict=True):
        assert report == source.report()
        assert line == {k: "" if v is None else str(v) for k, v in report.items()}
        assert {"bound", "cycles", "measured", "target", "met", "limited_by", *ACTIVITY} <= {*line}
    assert run(monkeypatch, [], rows[:1]) == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--only", "everything"], "--only everything is unknown: use one of mmacc, "),
        (["--engine", "fpga"], "unknown engine 'fpga': use one of auto, "),
        (["--engine", "model"], "engine model counts no cycles"),
        (["--preset", "huge"], "unknown preset 'huge'"),
        (["--preset", "mxu8"], "mxu8 has no front end ame"),
        (["--plot", "a.pdf"], "cannot plot into a.pdf: name a file that ends in .png or .svg"),
        (["--sizes", "16,x", "--only", "sweep"], "--sizes takes numbers from 1"),
        (["--sizes", "0", "--only", "sweep"], "--sizes takes numbers from 1"),
        (["--csv", "/nowhere/a.csv"], "make the directory /nowhere first"),
        (["--vcd", "/nowhere/a.vcd", "--only", "decode"], "make the directory /nowhere first"),
        (["--quick", "now"], "unrecognized arguments: now"),
    ],
)
def test_wrong_requests_are_one_line(arguments, message, capsys) -> None:
    assert bench.main(arguments) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    assert message in said.err


def test_what_is_measured() -> None:
    """Every kind on the default core; --quick leaves the engines out."""

    def kinds(*arguments: str) -> list[str]:
        jobs = bench._jobs(bench._parser().parse_args([*arguments]))
        return list(dict.fromkeys(job.kind for job in jobs))

    assert kinds() == [kind for kind in bench.KINDS if kind not in ("compile", "sweep")]
    assert kinds("--quick") == [*bench.UNITS, "gemm", "tails"]
    assert kinds("--only", "decode", "--plot", "x.svg") == ["decode", "sweep"]
    if not all(reason for name, reason in bench.available().items() if name in bench.COMPILED):
        assert "compile" in kinds("--fresh")
        assert kinds("--only", "compile") == ["compile"]


def test_a_real_run_with_everything_recorded(tmp_path, capsys) -> None:
    """Python's own simulator: the figures, a waveform, and each cycle's activity."""
    names = {name: tmp_path / name for name in ("a.vcd", "a.csv", "b.json")}
    vcd, trace, figures = map(str, names.values())
    arguments = ["--only", "decode", "--quick", "--preset", "tiny", "--engine", "pysim"]
    arguments += ["--vcd", vcd, "--activity", trace, "--json", figures]
    assert bench.main(arguments) == 0
    assert "instructions accepted" in capsys.readouterr().out
    (report,) = json.loads(names["b.json"].read_text())
    assert report["engine"] == "pysim"
    assert report["target"] is None
    waves = names["a.vcd"].read_text()
    assert "scoreboard" in waves
    assert waves.count("\n#") > report["cycles"]
    with names["a.csv"].open() as file:
        lines = list(csv.DictReader(file))
    assert [line["cycle"] for line in lines] == [str(cycle) for cycle in range(len(lines))]
    assert {line["run"] for line in lines} == {"0"}
    for line in lines:
        assert sum(line[name] == "1" for name in MAC_STATES) == 1
    assert sum(int(line["mac_uop"]) for line in lines) == report["mac_uop"]


def test_the_model_has_no_waveform_and_no_activity(tmp_path) -> None:
    from argparse import Namespace

    from sim.cores import shared_core
    from sim.memory import Memory
    from sim.recording import recording

    cfg = preset("tiny")
    waves = Namespace(vcd=str(tmp_path / "a.vcd"), activity=None)
    with pytest.raises(ValueError, match="simulates no hardware"), recording(waves):
        shared_core(cfg, "model")
    trace = Namespace(vcd=None, activity=str(tmp_path / "a.csv"))
    message = "--activity needs an engine that simulates hardware"
    with pytest.raises(CommandError, match=message), recording(trace):
        shared_core(cfg, "model").run(Memory(), [])


def test_activity_as_text() -> None:
    runs = [np.array([1, 1 << len(ACTIVITY) - 1], np.uint64), np.array([0], np.uint64)]
    head, *lines = activity_csv(runs).decode().splitlines()
    assert head.split(",") == ["run", "cycle", *ACTIVITY]
    rest = ["0"] * (len(ACTIVITY) - 1)
    assert lines[0].split(",") == ["0", "0", "1", *rest]
    assert lines[1].split(",") == ["0", "1", *rest, "1"]
    assert lines[2].split(",") == ["1", "0", "0", *rest]


@pytest.mark.parametrize(("suffix", "start"), [(".png", b"\x89PNG"), (".svg", b"<?xml")])
def test_plots(suffix: str, start: bytes, tmp_path) -> None:
    pytest.importorskip("matplotlib")
    rows = [
        row(
            kind="sweep",
            name=f"GEMM {ft}, {tiling}",
            case=str(size),
            measured=0.1 * number,
            activity={"read_beat": size**3 // 64},
        )
        for ft in ("int8", "bf16")
        for tiling in ("1x1", "2x2", "4x4")
        for number, size in enumerate((16, 32, 64), start=1)
    ]
    first, second = tmp_path / f"a{suffix}", tmp_path / f"b{suffix}"
    for path in (first, second):
        plot_sweep(rows, str(path), 16)
    assert first.read_bytes().startswith(start)
    assert len(first.read_bytes()) > 10_000


def test_the_document_names_every_bit() -> None:
    """docs/performance.md has the table of hdl/activity.py."""
    text = (Path(bench.__file__).parents[1] / "docs" / "performance.md").read_text()
    for name, meaning in ACTIVITY.items():
        assert f"| `{name}` | {meaning} |" in text, name
