"""What the commands share: errors of one line, and output files that are whole or absent."""

from __future__ import annotations

import argparse
import contextlib
import os
import stat
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

__all__ = ["CommandError", "Parser", "check_writable", "run_command", "write_whole"]

USAGE_STATUS = 2
"""Exit status of a command that was called wrongly."""
_INTERRUPTED = 130


class CommandError(Exception):
    """A wrong request: one line that says what is wrong and how to mend it."""


class Parser(argparse.ArgumentParser):
    """An argument parser whose errors are `CommandError`s and that never guesses an option."""

    def __init__(self, **options: object):
        super().__init__(
            allow_abbrev=False, formatter_class=argparse.RawDescriptionHelpFormatter, **options
        )

    def error(self, message: str) -> NoReturn:
        raise CommandError(f"{message} (--help lists the options)")


def run_command(name: str, body: Callable[[], int]) -> int:
    """The exit status of `body()`; a `CommandError` becomes one line on stderr and status 2.

    Parameters
    ----------
    name : the command's name, in front of its error messages.
    body : the command; returns its status.
    """
    try:
        return body()
    except CommandError as error:
        text = " ".join(str(error).split())
        print(f"{name}: {text}", file=sys.stderr)
        return USAGE_STATUS
    except KeyboardInterrupt:
        print(f"{name}: interrupted", file=sys.stderr)
        return _INTERRUPTED
    except BrokenPipeError:  # the reader of our output left, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def _reason(error: OSError) -> str:
    return error.strerror or str(error)


def _special(path: str | os.PathLike[str]) -> bool:
    """Is it a pipe or a device, such as /dev/stdout, which no rename may replace?"""
    return os.path.exists(path) and not stat.S_ISREG(os.stat(path).st_mode)


def check_writable(path: str | os.PathLike[str]) -> None:
    """Raise `CommandError` now if `write_whole` could not write `path` after a long run."""
    target = Path(os.path.realpath(path))
    try:
        if os.path.isdir(path):
            raise CommandError(f"cannot write {path}: it is a directory, name a file in it")
        if _special(path):
            return
        if not target.parent.is_dir():
            raise CommandError(f"cannot write {path}: make the directory {target.parent} first")
        if target.exists() and not os.access(target, os.W_OK):
            raise CommandError(f"cannot write {path}: no permission to change it")
        with tempfile.NamedTemporaryFile(prefix=f".{target.name}.", dir=target.parent):
            pass
    except OSError as error:
        raise CommandError(f"cannot write {path}: {_reason(error)}") from None


def write_whole(path: str | os.PathLike[str], content: bytes) -> None:
    """Write `content` to `path`, whole or not at all. Raises `CommandError`."""
    target = Path(os.path.realpath(path))
    try:
        if _special(path):
            Path(path).write_bytes(content)
            return
        umask = os.umask(0)
        os.umask(umask)
        permissions = target.stat().st_mode & 0o777 if target.exists() else 0o666 & ~umask
        handle, temporary = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
        try:
            with open(handle, "wb") as stream:
                stream.write(content)
            os.chmod(temporary, permissions)
            os.replace(temporary, target)
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(temporary)
    except OSError as error:
        raise CommandError(f"cannot write {path}: {_reason(error)}") from None
