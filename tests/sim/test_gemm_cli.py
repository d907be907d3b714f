"""sim.gemm as a user types it: figures, files, one-line errors, exit status."""

from __future__ import annotations

import json

import numpy as np
import pytest

from sim import gemm, gemm_call
from sim.driver import SimulationError
from sim.kernels import BLOCKS

KEYS = [
    *("m", "n", "k", "ft", "preset", "tiling", "engine", "latency", "cycles", "macs"),
    *("peak_macs_per_cycle", "bound_cycles", "utilisation", "mac_utilisation"),
    *("read_beats", "write_beats", "bit_exact", "seconds"),
]


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    status = gemm.main([*map(str, arguments), "--engine", "model"])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def test_json_has_exactly_its_keys(capsys) -> None:
    status, out, _ = run(capsys, 20, 18, 40, "--ft", "int8", "--json", "--latency", 9)
    figures = json.loads(out)
    assert status == 0 and list(figures) == KEYS
    assert (figures["m"], figures["n"], figures["k"]) == (20, 18, 40)
    assert figures["macs"] == 20 * 18 * 40
    assert figures["peak_macs_per_cycle"] == 256
    assert figures["latency"] == 9 and figures["bit_exact"] is True
    assert figures["engine"] == "model" and figures["tiling"] in BLOCKS
    assert figures["utilisation"] is None, "the model has no cycles"


def test_text_names_every_figure(capsys) -> None:
    status, out, _ = run(capsys, 20, 18, 40)
    assert status == 0
    for word in ("cycles", "MAC/cycle", "utilisation", "256 at peak", "read", "written"):
        assert word in out
    assert out.splitlines()[-1].split() == ["bit-exact", "yes"]


def test_ft_codes_and_seeds(capsys) -> None:
    assert run(capsys, 3, 3, 3, "--ft", "0x10", "--seed", 5)[0] == 0


def test_files_in_and_out(capsys, tmp_path) -> None:
    noise = np.random.default_rng(1)
    a = noise.integers(-128, 128, (9, 20)).astype(np.int8)
    b = noise.integers(-128, 128, (20, 7)).astype(np.int8)
    c = noise.integers(-1000, 1000, (9, 7)).astype(np.int32)
    for name, array in (("a", a), ("b", b), ("c", c), ("bt", b.T)):
        np.save(tmp_path / f"{name}.npy", array)
    paths = {name: str(tmp_path / f"{name}.npy") for name in ("a", "b", "c", "bt", "d")}
    common = (9, 7, 20, "--acc", 1, "-o", paths["d"])
    expected = a.astype(int) @ b
    assert run(capsys, *common, "--from", paths["a"], paths["b"])[0] == 0
    d = np.load(paths["d"])
    assert d.dtype == np.int32 and np.array_equal(d, expected)
    assert run(capsys, *common, "--trans", "nt", "--from", paths["a"], paths["bt"])[0] == 0
    assert np.array_equal(np.load(paths["d"]), expected)
    options = ("--beta", 1, "--alpha", -1, "--from", paths["a"], paths["b"], paths["c"])
    assert run(capsys, *common, *options)[0] == 0
    assert np.array_equal(np.load(paths["d"]), c - expected)


@pytest.mark.parametrize("trans", ["nn", "nt", "tn", "tt"])
def test_files_in_place(capsys, tmp_path, trans: str) -> None:
    noise = np.random.default_rng(2)
    a = noise.integers(-128, 128, (9, 20)).astype(np.int8)
    b = noise.integers(-128, 128, (20, 7)).astype(np.int8)
    paths = [str(tmp_path / name) for name in ("a.npy", "b.npy", "c.npy")]
    np.save(paths[0], a.T if trans[0] == "t" else a)
    np.save(paths[1], b.T if trans[1] == "t" else b)
    common = (9, 7, 20, "--acc", 1, "--no-pack", "--trans", trans, "--lda", 23, "--ldb", 21)
    assert run(capsys, *common, "--from", *paths[:2], "-o", paths[2])[0] == 0
    assert np.array_equal(np.load(paths[2]), a.astype(int) @ b)


@pytest.mark.parametrize(
    ("given", "dtype"), [(np.int8, np.int16), (np.uint8, np.uint16), (np.float32, np.float64)]
)
def test_c_is_written_in_the_manner_of_a(capsys, tmp_path, given, dtype) -> None:
    a, b, c = (str(tmp_path / f"{name}.npy") for name in "abc")
    np.save(a, np.full((2, 3), 100).astype(given))
    np.save(b, np.full((3, 2), 2).astype(given))
    assert run(capsys, 2, 2, 3, "--from", a, b, "-o", c)[0] == 0
    written = np.load(c)
    assert written.dtype == dtype and (written == 600).all()


def test_one_wrong_bit_is_status_1(capsys, monkeypatch) -> None:
    def wrong(*arguments, **options):
        total, flags = gemm_reference(*arguments, **options)
        total = total.copy()
        total[-1, -1] ^= 1
        return total, flags

    gemm_reference = gemm_call.reference_gemm
    monkeypatch.setattr(gemm_call, "reference_gemm", wrong)
    status, out, _ = run(capsys, 5, 5, 5)
    assert status == 1 and "bit-exact    NO" in out
    status, out, _ = run(capsys, 5, 5, 5, "--json")
    assert status == 1 and json.loads(out)["bit_exact"] is False


def test_one_wrong_flag_is_status_1(capsys, monkeypatch) -> None:
    def wrong(*arguments, **options):
        total, flags = gemm_reference(*arguments, **options)
        return total, {**flags, "sat_hit": not flags["sat_hit"]}

    gemm_reference = gemm_call.reference_gemm
    monkeypatch.setattr(gemm_call, "reference_gemm", wrong)
    assert run(capsys, 5, 5, 5)[0] == 1


def test_a_core_that_fails_is_one_line(capsys, monkeypatch) -> None:
    def fails(*arguments, **options):
        raise SimulationError("cycle 7: no handshake for 5000 cycles")

    monkeypatch.setattr(gemm, "gemm", fails)
    status, out, err = run(capsys, 5, 5, 5)
    assert (status, out) == (1, "")
    assert err == "sim.gemm: the core failed: cycle 7: no handshake for 5000 cycles\n"


WRONG = [
    ((3, 3), "required: K"),
    ((3, 3, "x"), "argument K: invalid int value: 'x'"),
    ((3, 3, -1), "M, N and K must be 0 or more"),
    ((3, 3, 3, "--tilings", "1x1"), "unrecognized arguments"),
    ((3, 3, 3, "--ft", "int9"), "unknown number format 'int9'"),
    ((3, 3, 3, "--ft", "int64"), "ame32 does not build int64"),
    ((3, 3, 3, "--preset", "ame33"), "unknown preset 'ame33'"),
    ((3, 3, 3, "--tiling", "3x2"), "unknown tiling '3x2': use auto, 1x1 or 2x2"),
    ((3, 3, 3, "--trans", "ct"), "--trans is one of nn, nt, tn, tt, not ct"),
    (
        (3, 3, 3, "--no-pack", "--ft", "int4", "--preset", "full"),
        "B of int4 cannot be transposed in place",
    ),
    ((3, 3, 3, "--ldc", "2"), "ldc = 2 is below a row of C"),
    ((3, 3, 3, "--from", "nowhere.npy", "b.npy"), "cannot read nowhere.npy: No such file"),
    ((3, 3, 3, "--from", "a.npy"), "--from takes A.npy B.npy [C.npy], not 1 files"),
    ((3, 3, 3, "--beta", 1, "--from", "a.npy", "b.npy"), "--beta 1 needs C"),
    ((3, 3, 3, "--from", __file__, __file__), "it is no .npy file of plain numbers"),
    ((3, 3, 3, "-o", "/no/such/c.npy"), "cannot write /no/such/c.npy: make the directory"),
]


@pytest.mark.parametrize(("arguments", "message"), WRONG, ids=lambda value: str(value)[:40])
def test_wrong_requests_are_one_line(capsys, arguments, message: str) -> None:
    status, out, err = run(capsys, *arguments)
    assert (status, out) == (2, "")
    assert message in err and err.startswith("sim.gemm: ") and err.count("\n") == 1


def test_files_of_another_shape_are_named(capsys, tmp_path) -> None:
    a, b, several = (str(tmp_path / name) for name in ("a.npy", "b.npy", "c.npz"))
    np.save(a, np.zeros((3, 4), np.int8))
    np.save(b, np.zeros((3, 3), np.int8))
    np.savez(several, a=np.zeros(3))
    _, _, err = run(capsys, 3, 3, 3, "--from", b, a)
    assert "B in its file is 3 x 4, but M, N, K and --trans ask for 3 x 3" in err
    _, _, err = run(capsys, 3, 3, 3, "--from", several, b)
    assert "it holds several arrays" in err


def test_an_engine_that_is_missing_is_one_line(capsys) -> None:
    status = gemm.main(["3", "3", "3", "--engine", "fpga"])
    err = capsys.readouterr().err
    assert status == 2 and "unknown engine 'fpga'" in err and err.count("\n") == 1


def test_a_refused_4x4_is_shown(capsys) -> None:
    status, out, _ = run(capsys, 32, 32, 16, "--tiling", "4x4", "--engine", "model")
    assert status == 0
    assert "tiling 2x2 (the guard refused 4x4)" in out and "guard_fallback" in out
    status, out, _ = run(
        capsys, 32, 32, 16, "--tiling", "4x4", "--engine", "model", "--preset", "ame32-split"
    )
    assert status == 0 and "tiling 4x4," in out and "guard_fallback" not in out


def test_a_run_can_be_recorded(capsys, tmp_path) -> None:
    """A waveform, and a line of activity for each cycle of the product."""
    vcd, trace = tmp_path / "a.vcd", tmp_path / "a.csv"
    options = ("--preset", "tiny", "--engine", "pysim", "--vcd", str(vcd), "--activity", str(trace))
    assert gemm.main(["2", "3", "4", *options, "--json"]) == 0
    cycles = json.loads(capsys.readouterr().out)["cycles"]
    header, *lines = trace.read_text().splitlines()
    assert header.startswith("run,cycle,mac_uop,")
    assert len(lines) >= cycles
    assert sum(line.split(",")[2] == "1" for line in lines) == 3  # 2 x 3 results, 2 x 1 a uop
    assert vcd.read_text().startswith("$")
    status, _, err = run(capsys, "2", "3", "4", "--activity", str(trace))
    assert status == 2 and "needs an engine that simulates hardware" in err
