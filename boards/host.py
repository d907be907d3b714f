"""Talks to a board over its serial line: what it is, its memory, programs, a checked GEMM.

RUN files have one instruction a line, as `python -m hdl.isa` takes them; a comment such as
"# rs1=0x40 rs2=16" gives the values of its scalar registers.

examples:
  python -m boards.host --port /dev/ttyUSB0 info
  python -m boards.host --port /dev/ttyUSB0 gemm 64 64 64
  python -m boards.host --port /dev/ttyUSB0 mem write 0x100 data.bin
  python -m boards.host --port /dev/ttyUSB0 mem read 0x100 64
  python -m boards.host --port /dev/ttyUSB0 run program.s
"""

from __future__ import annotations

import json
import os
import re
import sys
from argparse import Namespace
from contextlib import closing
from pathlib import Path

from hdl import isa
from hdl.cli import CommandError, Parser, check_writable, run_command, write_whole
from sim.kernels import BLOCKS
from sim.program import Request

from .board_gemm import gemm
from .device import Board, BoardError

__all__ = ["main", "parse_program"]

PROGRAM = "boards.host"
TIMEOUT = 0.5
"""Seconds without a byte after which an answer is not waited for any more."""
SIMULATED_TIMEOUT = 20.0
"""The same behind a pseudo-terminal, where a simulation takes its time."""
_VALUE = re.compile(r"\b(rs[12])\s*=\s*(\S+)")
_ERRORS = ("", " illegal", " badgeom", " bus error")


def _number(text: str) -> int:
    return int(text, 0)


def _parser() -> Parser:
    parser = Parser(prog="python -m boards.host", description=__doc__)
    parser.add_argument("--port", required=True, help="the serial port, such as /dev/ttyUSB0")
    parser.add_argument("--baud", type=int, default=1_000_000, help="bits a second (%(default)s)")
    parser.add_argument(
        "--timeout",
        type=float,
        help=f"seconds to wait for a byte ({TIMEOUT}; {SIMULATED_TIMEOUT:g} at a pseudo-terminal)",
    )
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    actions.add_parser("info", help="what the board is, as JSON")
    actions.add_parser("reset", help="reset the core; memory stays")
    memory = actions.add_parser("mem", help="read or write memory")
    ways = memory.add_subparsers(dest="way", required=True, metavar="read|write")
    reading = ways.add_parser("read", help="print bytes, or write them to a file")
    reading.add_argument("address", type=_number)
    reading.add_argument("count", type=_number)
    reading.add_argument("-o", dest="output", metavar="FILE")
    writing = ways.add_parser("write", help="bytes of a file into memory")
    writing.add_argument("address", type=_number)
    writing.add_argument("file")
    running = actions.add_parser("run", help="run a program")
    running.add_argument("file", help="assembly text")
    product = actions.add_parser("gemm", help="a GEMM of random numbers, every bit checked")
    for name in ("m", "n", "k"):
        product.add_argument(name, metavar=name.upper(), type=int)
    product.add_argument("--ft", default="int8", help="operand format (%(default)s)")
    for name in ("bovf", "acc", "sat", "rnd", "beta", "seed"):
        product.add_argument(f"--{name}", type=int, default=0)
    product.add_argument("--alpha", type=int, default=1)
    product.add_argument("--tiling", default="auto", help="auto, " + ", ".join(BLOCKS))
    product.add_argument("--json", action="store_true", help="print the figures as JSON")
    return parser


def parse_program(text: str, csr_base: int) -> list[Request]:
    """The requests of a program's text. Raises `isa.AsmError` that names the line."""
    requests = []
    for number, line in enumerate(text.splitlines(), 1):
        body, _, comment = line.partition("#")
        if not body.strip():
            continue
        try:
            word = isa.assemble(body, csr_base=csr_base)
            values = {name: int(value, 0) for name, value in _VALUE.findall(comment)}
        except ValueError as error:
            raise isa.AsmError(f"line {number}: {error}") from None
        requests.append(Request(word, values.get("rs1", 0), values.get("rs2", 0)))
    return requests


def _open(options: Namespace):
    try:
        import serial
    except ImportError:
        raise CommandError("pyserial is not installed: pip install '.[fpga]'") from None
    timeout = options.timeout
    if timeout is None:
        simulated = os.path.realpath(options.port).startswith("/dev/pts/")
        timeout = SIMULATED_TIMEOUT if simulated else TIMEOUT
    try:
        return serial.Serial(options.port, options.baud, timeout=timeout)
    except (OSError, ValueError) as error:
        raise CommandError(f"cannot open {options.port}: {error}") from None


def _info(board: Board) -> int:
    info, cfg = board.info, board.info.config
    found = {
        "board": info.board,
        "clock_mhz": info.clock_hz / 1e6,
        "l2_bytes": info.l2_bytes,
        "program_depth": info.program_depth,
        "preset": cfg.name,
        "formats": list(cfg.formats),
        "mac": f"{cfg.m_par} x {cfg.n_par} x {cfg.row_bits} bit",
    }
    print(json.dumps(found, indent=2))
    return 0


def _memory(board: Board, options: Namespace) -> int:
    if options.way == "write":
        try:
            content = Path(options.file).read_bytes()
        except OSError as error:
            raise CommandError(f"cannot read {options.file}: {error.strerror}") from None
        board.write(options.address, content)
        print(f"wrote {len(content)} bytes at {options.address:#x}")
        return 0
    if options.output is not None:
        check_writable(options.output)
    content = board.read(options.address, options.count)
    if options.output is not None:
        write_whole(options.output, content)
        return 0
    for at in range(0, len(content), 16):
        print(f"{options.address + at:#08x}  {content[at : at + 16].hex(' ')}")
    return 0


def _program(board: Board, options: Namespace) -> int:
    try:
        text = Path(options.file).read_text()
        requests = parse_program(text, board.info.config.csr_base)
    except (OSError, UnicodeDecodeError, isa.AsmError) as error:
        raise CommandError(f"{options.file}: {error}") from None
    if not requests:
        raise CommandError(f"{options.file} has no instruction")
    report = board.run(requests)
    for request, result in zip(requests, report.results, strict=True):
        value = f" x{result.rd} = {result.data:#x}" if result.wb else ""
        print(f"{result.cycle:>8}  {request}{value}{_ERRORS[result.error]}")
    print(f"{report.cycles} cycles")
    return 0


def _gemm(board: Board, options: Namespace) -> int:
    names = ("ft", "bovf", "acc", "sat", "rnd", "alpha", "beta", "tiling", "seed")
    try:
        result = gemm(
            board,
            options.m,
            options.n,
            options.k,
            **{name: getattr(options, name) for name in names},
        )
    except ValueError as error:
        raise CommandError(str(error)) from None
    figures = {
        "m": options.m,
        "n": options.n,
        "k": options.k,
        "ft": options.ft,
        "board": board.info.board,
        "preset": board.info.config.name,
        "tiling": result.tiling,
        "instructions": result.instructions,
        "cycles": result.cycles,
        "macs": result.macs,
        "macs_per_cycle": round(result.macs / max(1, result.cycles), 2),
        "peak_macs_per_cycle": result.peak,
        "clock_mhz": result.clock_hz / 1e6,
        "gmacs": round(result.gmacs, 3),
        "bit_exact": result.bit_exact,
        "seconds": round(result.seconds, 2),
    }
    if options.json:
        print(json.dumps(figures))
    else:
        for name, value in figures.items():
            print(f"{name:<20} {value}")
    return 0 if result.bit_exact else 1


def _command(options: Namespace) -> int:
    with closing(_open(options)) as line:
        try:
            board = Board(line)
            if options.action == "info":
                return _info(board)
            if options.action == "reset":
                board.reset()
                return 0
            if options.action == "mem":
                return _memory(board, options)
            return _program(board, options) if options.action == "run" else _gemm(board, options)
        except BoardError as error:
            raise CommandError(str(error)) from None
        except OSError as error:
            raise CommandError(f"{options.port} failed: {error}") from None


def main(arguments: list[str] | None = None) -> int:
    """Run the command; returns its exit status: 0, 1 if a bit differs, 2 for a wrong request."""
    return run_command(PROGRAM, lambda: _command(_parser().parse_args(arguments)))


if __name__ == "__main__":
    sys.exit(main())
