"""Frames between a PC and a board over a serial line (pure Python; `docs/boards.md` has a table).

A frame is a mark, a code (request: the operation, answer: the status), the request's number, two
bytes of length, the body and a CRC-16 of everything after the mark. All numbers are little-endian.
One request is answered before the next is sent. Every request may be sent again: none does harm
when it is done twice.
"""

from __future__ import annotations

import binascii
import struct
from dataclasses import dataclass
from enum import IntEnum

__all__ = [
    "CRC_INIT",
    "ENTRY_BYTES",
    "HEAD_BYTES",
    "MAX_BODY",
    "PROTOCOL_VERSION",
    "REQUEST_MARK",
    "RESPONSE_MARK",
    "RESULT_BYTES",
    "Op",
    "Result",
    "RunState",
    "Status",
    "checksum",
    "frame",
]

PROTOCOL_VERSION = 1
REQUEST_MARK, RESPONSE_MARK = 0x5A, 0xA5
CRC_INIT = 0xFFFF
HEAD_BYTES = 4
"""Code, number and length, between the mark and the body."""
MAX_BODY = 2048
"""Longest body of a request or an answer."""
ENTRY_BYTES = 20
"""An instruction of a program: its word and the values of rs1 and rs2."""
RESULT_BYTES = 16
"""An answer of the core as RESULTS gives it."""


class Op(IntEnum):
    """Operations, with their bodies."""

    INFO = 0
    """Nothing; answers what the board is, as JSON."""
    READ = 1
    """Address and count, 4 bytes each; answers bytes of L2 memory."""
    WRITE = 2
    """Address, 4 bytes; then bytes for L2 memory."""
    PROGRAM = 3
    """First place, 4 bytes; then entries of ENTRY_BYTES for the program memory."""
    START = 4
    """Count of instructions and number of the run, 4 bytes each: run the program from its start.

    If that is the number of the last run, nothing is started."""
    STATUS = 5
    """Nothing; answers a `RunState`."""
    RESULTS = 6
    """Byte offset and count, 4 bytes each; answers the core's answers, a `Result` each."""
    RESET = 7
    """Nothing; resets the core and forgets the run. Memory stays."""


class Status(IntEnum):
    """What came of a request; only OK has a body."""

    OK = 0
    CHECKSUM = 1
    """The frame was damaged."""
    UNKNOWN = 2
    """No such operation."""
    RANGE = 3
    """A length, an address or a count is outside of what there is."""
    BUSY = 4
    """A program runs: only INFO, STATUS, RESET and a repeated START are possible."""


def checksum(content: bytes) -> int:
    """CRC-16 with polynomial 0x1021, start 0xFFFF, highest bit first."""
    return binascii.crc_hqx(content, CRC_INIT)


def frame(mark: int, code: int, number: int, body: bytes = b"") -> bytes:
    """A whole frame. Raises ValueError for a body that is too long."""
    if len(body) > MAX_BODY:
        raise ValueError(f"a body of {len(body)} bytes is too long: use up to {MAX_BODY}")
    content = struct.pack("<BBH", code, number, len(body)) + body
    return bytes([mark]) + content + struct.pack("<H", checksum(content))


@dataclass(frozen=True)
class RunState:
    """Where the sequencer stands.

    Parameters
    ----------
    run : number of the last run, 0 after reset.
    running : the run is not over.
    responses : answers of the core so far.
    cycles : from the cycle in which the first request was taken to the one in which the last
        answer was, as `sim.driver.RunResult.cycles`.
    """

    run: int
    running: bool
    responses: int
    cycles: int

    SIZE = 16

    @classmethod
    def parse(cls, body: bytes) -> RunState:
        run, running, responses, cycles = struct.unpack("<IIII", body)
        return cls(run, bool(running & 1), responses, cycles)


@dataclass(frozen=True)
class Result:
    """One answer of the core; fields as `hdl.interfaces.host_response`, `cycle` of the run."""

    data: int
    tag: int
    rd: int
    wb: int
    error: int
    cycle: int

    @classmethod
    def parse(cls, body: bytes) -> Result:
        data, tag, rd, flags, cycle = struct.unpack("<QHBBI", body)
        return cls(data, tag, rd, flags & 1, flags >> 1, cycle)
