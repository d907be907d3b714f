"""The scripts a newcomer starts with: what they need, what they say, that they run anywhere."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SCRIPTS = ("scripts/demo", "scripts/test", ".ci/run")


def run(*command: str | Path, cwd: Path, timeout: float = 60, **env: str):
    return subprocess.run(
        list(map(str, command)),
        cwd=cwd,
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


def tool(folder: Path, name: str, body: str) -> None:
    """A command called `name`, for a PATH that has little else."""
    path = folder / name
    path.write_text(f"#!/bin/bash\n{body}\n")
    path.chmod(0o755)


@pytest.fixture
def bare_path(tmp_path: Path) -> Path:
    """A folder with the ordinary commands that the scripts use, and no Python."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("bash", "basename", "cat", "dirname", "env", "mkdir", "rm", "touch"):
        (folder / name).symlink_to(shutil.which(name))
    return folder


@pytest.mark.parametrize("name", SCRIPTS)
def test_scripts_are_strict_and_executable(name: str) -> None:
    path = ROOT / name
    text = path.read_text()
    assert text.startswith("#!/usr/bin/env bash\n") and "set -euo pipefail" in text
    assert os.access(path, os.X_OK)
    assert run("bash", "-n", path, cwd=ROOT).returncode == 0


@pytest.mark.parametrize("name", ["scripts/demo", "scripts/test"])
def test_an_old_python_is_one_line(name: str, bare_path: Path, tmp_path: Path) -> None:
    for python in ("python3", "python"):
        tool(bare_path, python, "exit 1")  # what the version check of an old one answers
    done = run(ROOT / name, cwd=tmp_path, PATH=str(bare_path), VENV=str(tmp_path / "venv"))
    assert done.returncode == 2
    assert "needs Python 3.11 or newer" in done.stderr and done.stderr.count("\n") == 1
    assert not (tmp_path / "venv").exists()


def test_a_missing_venv_module_is_explained(bare_path: Path, tmp_path: Path) -> None:
    # Like Debian's Python without python3-venv: half an environment, then status 1.
    tool(
        bare_path,
        "python3",
        'case "$1" in --version) echo Python 3.12.0 ;; -m) mkdir -p "$3/bin"; exit 1 ;; esac',
    )
    done = run(
        ROOT / "scripts/demo", cwd=tmp_path, PATH=str(bare_path), VENV=str(tmp_path / "venv")
    )
    assert done.returncode == 2 and "apt install python3-venv" in done.stderr
    assert not (tmp_path / "venv").exists(), "half an environment would be taken for a whole one"


def fake_environment(tmp_path: Path, status: int = 0) -> Path:
    """A virtual environment whose Python writes down what it is asked."""
    folder = tmp_path / "venv" / "bin"
    folder.mkdir(parents=True)
    log = tmp_path / "log"
    tool(folder, "python", f'echo "$PWD: $*" >> {log}\nexit {status}')
    return log


def test_test_installs_once_and_passes_arguments_on(tmp_path: Path) -> None:
    log = fake_environment(tmp_path)
    for _ in range(2):
        done = run(
            ROOT / "scripts/test", "-k", "one or two", cwd=tmp_path, VENV=str(tmp_path / "venv")
        )
        assert done.returncode == 0, done.stderr
    lines = log.read_text().splitlines()
    assert sum("-m pip install" in line and f"{ROOT}[dev]" in line for line in lines) == 1
    assert lines[-1] == f"{ROOT}: -m pytest -n 2 --dist worksteal -k one or two"
    assert f"{ROOT}: -m ruff check ." in lines


def test_demo_emits_verilog_and_passes_arguments_on(tmp_path: Path) -> None:
    log = fake_environment(tmp_path)
    done = run(ROOT / "scripts/demo", "--images", "64", cwd=tmp_path, VENV=str(tmp_path / "venv"))
    assert done.returncode == 0, done.stderr
    assert log.read_text().splitlines()[-2:] == [
        f"{ROOT}: -m hdl.top --verilog -o build/ame32.v",
        f"{ROOT}: -m sim.digits --images 64",
    ]


def test_a_failed_installation_stops_and_is_tried_again(tmp_path: Path) -> None:
    log = fake_environment(tmp_path, status=1)
    for count in (1, 2):
        done = run(ROOT / "scripts/demo", cwd=tmp_path, VENV=str(tmp_path / "venv"))
        assert done.returncode == 2 and "pip could not install the project" in done.stderr
        assert len(log.read_text().splitlines()) == count


@pytest.mark.slow
def test_demo_from_a_fresh_clone(tmp_path: Path) -> None:
    """The whole of it: clone, one command, from another folder."""
    clone = tmp_path / "clone"
    assert run("git", "clone", "-q", ROOT, clone, cwd=tmp_path).returncode == 0
    done = run(clone / "scripts/demo", cwd=tmp_path, timeout=900, VENV=str(tmp_path / "venv"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1].endswith("yes, every label and every bit")
    assert "module ame32(" in (clone / "build/ame32.v").read_text()
