"""Compiled simulators: finding the tools, and a cache of libraries named by their content.

A library's name is a hash of everything that goes into it, so it is never out of date. It is made
in a folder of its own and moved into place in one step; a lock keeps a second process from making
the same one at the same time, but nothing breaks where locks do not work.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from ..driver import SimulationError

__all__ = ["Compiler", "EngineMissing", "Progress", "cache_dir", "find_compiler", "library"]

HERE = Path(__file__).parent
HARNESS = (HERE / "harness.h", HERE / "harness.cpp")
KEEP_DAYS = 30


class EngineMissing(SimulationError):  # noqa: N818 (a state, not a fault)
    """An engine cannot be used here; the message says what to install."""


@dataclass(frozen=True)
class Compiler:
    """A C++ compiler: the command, and the line by which it names its version."""

    command: tuple[str, ...]
    version: str

    @property
    def name(self) -> str:
        return Path(self.command[0]).name


def cache_dir() -> Path:
    """Where libraries are kept: OPENMXU_CACHE_DIR, or the user's cache folder."""
    override = os.environ.get("OPENMXU_CACHE_DIR")
    return Path(override) if override else Path(platformdirs.user_cache_dir("openmxu"))


def find_compiler() -> Compiler:
    """The compiler that CXX names, or else c++, g++ or clang++. Raises `EngineMissing`."""
    named = shlex.split(os.environ.get("CXX", ""))
    for command in [named] if named else [["c++"], ["g++"], ["clang++"]]:
        path = shutil.which(command[0])
        if path is None:
            continue
        run = subprocess.run([path, "--version"], capture_output=True, text=True, check=False)
        if run.returncode == 0 and run.stdout.strip():
            return Compiler((path, *command[1:]), run.stdout.splitlines()[0])
    if named:
        raise EngineMissing(f"CXX names {named[0]!r}, which does not run: set it to a C++ compiler")
    raise EngineMissing("there is no C++ compiler: install g++ or clang++, or set CXX")


def package_version(package: str) -> str:
    """Version of an installed package, or "" without it."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""


def digest(parts: Iterable[str | bytes]) -> str:
    """A hash over parts, each with its length so that borders count."""
    total = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        total.update(f"{len(data)}:".encode())
        total.update(data)
    return total.hexdigest()[:32]


def digest_files(paths: Iterable[Path]) -> str:
    """A hash over the content of files, in sorted order."""
    return digest(part for path in sorted(paths) for part in (path.name, path.read_bytes()))


class Progress:
    """One line on stderr that grows step by step.

    Parameters
    ----------
    title : how the line starts.
    shown : False keeps quiet.
    """

    def __init__(self, title: str, shown: bool):
        self.title = title
        self.shown = shown
        self.started = False

    @contextlib.contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Name a step before it starts, and its seconds after it."""
        self._print(f"{' ' if self.started else f'openmxu: {self.title}: '}{name}")
        self.started = True
        start = time.monotonic()
        yield
        self._print(f" {time.monotonic() - start:.1f} s,")

    def done(self, text: str) -> None:
        """End the line, if it was started."""
        if self.started:
            self._print(f" {text}\n")

    def _print(self, text: str) -> None:
        if self.shown:
            sys.stderr.write(text)
            sys.stderr.flush()


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold a lock file, where the system has such locks."""
    try:
        import fcntl
    except ImportError:
        yield
        return
    with path.open("w") as file:
        with contextlib.suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_EX)
        try:
            yield
        finally:
            path.unlink(missing_ok=True)


def _prune(folder: Path) -> None:
    """Remove what nobody has used for a month."""
    oldest = time.time() - KEEP_DAYS * 86400
    for path in folder.glob("*-*.*"):
        with contextlib.suppress(OSError):
            if path.stat().st_mtime < oldest:
                path.unlink()


def library(name: str, make: Callable[[Path], None]) -> Path:
    """The cached library `name`, made first if it is not there.

    Parameters
    ----------
    name : file name without suffix, which holds a hash of everything that shapes the content.
    make : writes `core.so` into the folder that it is given.
    """
    folder = cache_dir()
    target = folder / f"{name}.so"
    with contextlib.suppress(OSError):
        os.utime(target)
    if target.exists():
        return target
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SimulationError(
            f"the cache folder {folder} cannot be made ({error.strerror}): set OPENMXU_CACHE_DIR"
        ) from None
    with _locked(folder / f"{name}.lock"):
        if not target.exists():
            _prune(folder)
            with tempfile.TemporaryDirectory(prefix="build-", dir=folder) as work:
                make(Path(work))
                os.replace(Path(work) / "core.so", target)
    return target


def run_tool(
    command: list[str], folder: Path, what: str, environment: dict[str, str] | None = None
) -> None:
    """Run a tool in a folder. Raises `SimulationError` with its first complaint."""
    run = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False, env=environment
    )
    if run.returncode:
        lines = [line for line in (run.stderr + run.stdout).splitlines() if line.strip()]
        faults = [line for line in lines if "error" in line.lower()]
        raise SimulationError(f"{what} failed: {(faults or lines or ['no message'])[0]}")


def cores() -> int:
    """How many compilers run at once."""
    return os.cpu_count() or 1


def compile_library(
    compiler: Compiler, sources: Iterable[tuple[str, Iterable[str]]], folder: Path
) -> None:
    """Compile the sources in `folder`, several at once, each with its flags, into `core.so`."""
    jobs = [(name, tuple(flags)) for name, flags in sources]

    def one(job: tuple[str, tuple[str, ...]]) -> None:
        name, flags = job
        command = [*compiler.command, *flags, "-fPIC", "-c", name, "-o", f"{name}.o"]
        run_tool(command, folder, f"compiling with {compiler.name}")

    with ThreadPoolExecutor(cores()) as pool:
        for done in [pool.submit(one, job) for job in jobs]:
            done.result()
    objects = [f"{name}.o" for name, _ in jobs]
    link = [*compiler.command, "-shared", "-pthread", "-o", "core.so", *objects]
    run_tool(link, folder, f"linking with {compiler.name}")
