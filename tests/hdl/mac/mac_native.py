"""A MAC array compiled to machine code, for tests with many thousands of uops."""

from __future__ import annotations

import numpy as np
from native import NativeDesign, available, field_words

from hdl.config import Config
from hdl.mac.array import MacArray

__all__ = ["NativeArray", "available"]


class NativeArray:
    """A compiled `MacArray`; `run` streams one uop every cycle."""

    def __init__(self, cfg: Config):
        self.cfg = cfg
        dut = MacArray(cfg)
        self.latency, self.c_delay = dut.latency, dut.c_delay
        self.op_layout = dut.op.shape()
        self._design = NativeDesign(dut)

    def run(self, ops: dict[str, np.ndarray], a: np.ndarray, b: np.ndarray, c: np.ndarray):
        """Results of uops: (d, flags).

        `ops`: a column of each `mac_op` field; `a`, `b`, `c`, and d: rows as 32-bit words, of
        shape (uops, rows * words of a row).
        """
        count = len(a)
        cycles = 1 + count + self.latency

        def stream(words: np.ndarray, start: int = 0) -> np.ndarray:
            column = np.zeros((cycles, words.shape[1]), np.uint32)
            column[start : start + count] = words
            return column

        out = self._design.run(
            {
                "op": stream(field_words(self.op_layout, ops, count)),
                "start": stream(np.ones((count, 1), np.uint32), 1),
                "a": stream(a, 1),
                "b": stream(b, 1),
                "c": stream(c, 1 + self.c_delay),
            }
        )
        done = slice(1 + self.latency, 1 + self.latency + count)
        valid = out["valid"][:, 0]
        assert valid.sum() == count and valid[done].all(), "valid is not start, delayed"
        return out["d"][done], out["flags"][done, 0]
