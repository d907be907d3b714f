"""A board as a PC sees it: memory, programs and answers over a serial line."""

from __future__ import annotations

import json
import struct
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from hdl.config import Config, ConfigError

from .protocol import (
    MAX_BODY,
    PROTOCOL_VERSION,
    REQUEST_MARK,
    RESPONSE_MARK,
    RESULT_BYTES,
    Op,
    Result,
    RunState,
    Status,
    checksum,
    frame,
)
from .top import config_of

__all__ = ["Board", "BoardError", "BoardInfo", "Line", "RunReport"]

_TRIES = 4
_PART = 1024
"""Bytes of memory, or of results, moved at once."""
_ENTRIES = 48
"""Instructions sent at once."""
_WRITE_HEAD = 4


class BoardError(RuntimeError):
    """A board that does not do what it is asked: one line that says what and how to mend it."""


class Line(Protocol):
    """What carries the frames; `serial.Serial` is one, with a timeout in seconds."""

    def write(self, content: bytes, /) -> object: ...

    def read(self, size: int, /) -> bytes:
        """Up to `size` bytes, fewer when the timeout passes."""


class RequestLike(Protocol):
    """What a program is made of (`sim.program.Request`)."""

    inst: int
    rs1: int
    rs2: int


@dataclass(frozen=True)
class BoardInfo:
    """What a board is.

    Parameters
    ----------
    board : its name.
    clock_hz : clock of the core.
    l2_bytes : of memory, from address 0 on.
    program_depth : instructions of one run.
    config : the core.
    """

    board: str
    clock_hz: int
    l2_bytes: int
    program_depth: int
    config: Config


@dataclass(frozen=True)
class RunReport:
    """What came of a program.

    Parameters
    ----------
    results : one answer for each request, in order.
    cycles : from the first request to the last answer; of a program longer than the board's memory
        the sum over its parts.
    """

    results: list[Result]
    cycles: int


class Board:
    """A board on a line. Every method raises `BoardError`.

    Parameters
    ----------
    line : see `Line`.
    patience : seconds that a program may take.
    """

    def __init__(self, line: Line, *, patience: float = 60.0):
        self._line = line
        self._number = 0
        self._patience = patience
        self._run = 0
        self.info = self._read_info()

    # -- frames ------------------------------------------------------------------------------

    def _exactly(self, size: int) -> bytes | None:
        found = b""
        while len(found) < size:
            more = self._line.read(size - len(found))
            if not more:
                return None
            found += more
        return found

    def _answer(self, number: int) -> tuple[int, bytes] | str:
        """Status and body of the answer, or what is wrong with it."""
        while True:
            mark = self._exactly(1)
            if mark is None:
                return "it does not answer"
            if mark[0] == RESPONSE_MARK:
                break
        head = self._exactly(4)
        if head is None:
            return "its answer stops half-way"
        status, got, length = struct.unpack("<BBH", head)
        if length > MAX_BODY:
            return "its answers are damaged"
        rest = self._exactly(length + 2)
        if rest is None:
            return "its answer stops half-way"
        body, code = rest[:-2], rest[-2:]
        if checksum(head + body) != int.from_bytes(code, "little"):
            return "its answers are damaged"
        if status == Status.CHECKSUM:
            return "requests arrive damaged"
        return (status, body) if got == number else "its answers are of other requests"

    def request(self, op: int, body: bytes = b"") -> tuple[int, bytes]:
        """Send a request, again if it or its answer is damaged or lost; status and answer."""
        self._number = number = (self._number + 1) & 0xFF
        content = frame(REQUEST_MARK, op, number, body)
        trouble = ""
        for _ in range(_TRIES):
            self._line.write(content)
            answer = self._answer(number)
            if not isinstance(answer, str):
                return answer
            trouble = answer
            self._exactly(1 << 16)  # until nothing comes any more
        raise BoardError(
            f"the board: {trouble}, {_TRIES} times: check --port and --baud, and that it is "
            "configured"
        )

    def _do(self, op: Op, body: bytes, what: str) -> bytes:
        status, answer = self.request(op, body)
        if status == Status.OK:
            return answer
        reasons = {
            Status.UNKNOWN: "it does not know this operation: rebuild its bitstream",
            Status.RANGE: "that is outside of what it has",
            Status.BUSY: "a program still runs: use reset",
        }
        raise BoardError(f"{what}: {reasons.get(status, f'it answered status {status}')}")

    def _read_info(self) -> BoardInfo:
        text = self._do(Op.INFO, b"", "info")
        try:
            found = json.loads(text)
            version = found["protocol"]
            if version != PROTOCOL_VERSION:
                raise BoardError(
                    f"the board speaks protocol {version}, not {PROTOCOL_VERSION}: rebuild its "
                    "bitstream"
                )
            return BoardInfo(
                str(found["board"]),
                int(found["clock_hz"]),
                int(found["l2_bytes"]),
                int(found["program_depth"]),
                config_of(found["config"]),
            )
        except (ValueError, KeyError, TypeError, ConfigError) as error:
            raise BoardError(
                f"the board's description is none of this version ({error}): rebuild its bitstream"
            ) from None

    # -- memory ------------------------------------------------------------------------------

    def _check_range(self, address: int, count: int) -> None:
        if address < 0 or count < 0 or address + count > self.info.l2_bytes:
            raise BoardError(
                f"{count} bytes from {address:#x} on are not in memory: it has "
                f"{self.info.l2_bytes:#x} bytes"
            )

    def read(self, address: int, count: int) -> bytes:
        """Bytes of memory."""
        self._check_range(address, count)
        return self._read(Op.READ, address, count, "reading memory")

    def _read(self, op: Op, first: int, count: int, what: str) -> bytes:
        found = b""
        while len(found) < count:
            size = min(_PART, count - len(found))
            part = self._do(op, struct.pack("<II", first + len(found), size), what)
            if len(part) != size:
                raise BoardError(f"{what}: {len(part)} bytes came in place of {size}")
            found += part
        return found

    def write(self, address: int, content: bytes) -> None:
        """Change memory."""
        self._check_range(address, len(content))
        for at in range(0, len(content), _PART):
            head = struct.pack("<I", address + at)
            self._do(Op.WRITE, head + content[at : at + _PART], "writing memory")

    # -- programs ----------------------------------------------------------------------------

    def reset(self) -> None:
        """Reset the core; memory stays."""
        self._do(Op.RESET, b"", "reset")
        self._run = 0

    def state(self) -> RunState:
        """Where the sequencer stands."""
        return RunState.parse(self._do(Op.STATUS, b"", "status"))

    def run(self, requests: Iterable[RequestLike]) -> RunReport:
        """Run a program and wait for its last answer. Traps are answers, not errors."""
        todo = list(requests)
        results: list[Result] = []
        cycles = 0
        for first in range(0, len(todo), self.info.program_depth):
            part = todo[first : first + self.info.program_depth]
            found, took = self._run_part(part)
            results += found
            cycles += took
        return RunReport(results, cycles)

    def _run_part(self, part: Sequence[RequestLike]) -> tuple[list[Result], int]:
        for first in range(0, len(part), _ENTRIES):
            entries = b"".join(
                struct.pack("<IQQ", r.inst, r.rs1 & (1 << 64) - 1, r.rs2 & (1 << 64) - 1)
                for r in part[first : first + _ENTRIES]
            )
            self._do(Op.PROGRAM, struct.pack("<I", first) + entries, "sending the program")
        before = self.state()
        if before.running:
            raise BoardError("a program still runs: use reset")
        run = before.run % 0xFFFFFFFF + 1
        self._do(Op.START, struct.pack("<II", len(part), run), "starting the program")
        deadline = time.monotonic() + self._patience
        while (state := self.state()).running:
            if time.monotonic() > deadline:
                raise BoardError(
                    f"the program has not ended after {self._patience:g} s, with "
                    f"{state.responses} of {len(part)} answers: use reset"
                )
        if state.run != run or state.responses != len(part):
            raise BoardError(
                f"run {run} ended with {state.responses} of {len(part)} answers as run "
                f"{state.run}: was the board reset?"
            )
        content = self._read(Op.RESULTS, 0, len(part) * RESULT_BYTES, "reading answers")
        found = [
            Result.parse(content[at : at + RESULT_BYTES])
            for at in range(0, len(content), RESULT_BYTES)
        ]
        mask = (1 << min(16, self.info.config.tag_bits)) - 1
        for index, result in enumerate(found):
            if result.tag != index & mask:
                raise BoardError(
                    f"answer {index} has tag {result.tag}: the core is broken, or its clock is too "
                    "fast"
                )
        return found, state.cycles
