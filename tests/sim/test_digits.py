"""sim.digits: the network in integers, its run on a core, and how it reports."""

from __future__ import annotations

import numpy as np
import pytest

from hdl.config import preset
from sim import digits

pytest.importorskip("sklearn", reason="needs scikit-learn: pip install '.[dev]'")


@pytest.fixture(scope="module")
def network() -> tuple[digits.FloatNetwork, digits.QuantisedNetwork, np.ndarray, np.ndarray]:
    images, labels = digits.load_images()
    trained = digits.train(images[: digits.TRAINED], labels[: digits.TRAINED])
    quantised = digits.quantise(trained, images[: digits.TRAINED])
    return trained, quantised, images[digits.TRAINED :], labels[digits.TRAINED :]


def test_quantisation_keeps_the_accuracy(network) -> None:
    trained, quantised, images, labels = network
    right = (trained.scores(images).argmax(1) == labels).mean()
    codes = digits.quantise_images(images)
    quantised_right = (quantised.scores(codes)[1].argmax(1) == labels).mean()
    assert right > 0.95 and quantised_right > right - 0.02


def test_the_network_uses_its_range(network) -> None:
    """Operands reach the ends of INT8 and sums leave 16 bits, or the demo would show little."""
    _, quantised, images, _ = network
    codes = digits.quantise_images(images)
    first, second = quantised.scores(codes)
    assert codes.max() == 127 and abs(quantised.w1).max() == abs(quantised.w2).max() == 127
    assert quantised.hidden(first).max() > 100
    for sums in (first, second):
        assert np.abs(sums).max() > 1 << 15 and np.abs(sums).max() < 1 << 31


def test_run_on_pysim_equals_plain_integers(network) -> None:
    _, quantised, images, _ = network
    codes = digits.quantise_images(images[:3])
    first, second, results = digits.run_on_core(quantised, codes, preset("tiny"), "pysim")
    expected = quantised.scores(codes)
    assert np.array_equal(first, expected[0]) and np.array_equal(second, expected[1])
    assert all(result.cycles > 0 and result.bit_exact for result in results)


def test_report(capsys) -> None:
    assert digits.main(["--engine", "model", "--images", "64"]) == 0
    out = capsys.readouterr().out
    assert "64 handwritten digits" in out and "of 64)" in out
    assert out.splitlines()[-1] == "model equals the reference: yes, every label and every bit"


def test_one_wrong_sum_is_status_1(capsys, monkeypatch) -> None:
    def wrong(network, images, cfg, engine):
        first, second, results = run_on_core(network, images, cfg, engine)
        second = second.copy()
        second[0, 0] ^= 1
        return first, second, results

    run_on_core = digits.run_on_core
    monkeypatch.setattr(digits, "run_on_core", wrong)
    assert digits.main(["--engine", "model", "--images", "2"]) == 1
    assert capsys.readouterr().out.splitlines()[-1].endswith("NO")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--images", "361"], "--images 361: use 1 to 360"),
        (["--images", "0"], "--images 0: use 1 to 360"),
        (["--engine", "fpga"], "unknown engine 'fpga'"),
        (["--preset", "ame33"], "unknown preset 'ame33'"),
    ],
)
def test_wrong_requests_are_one_line(capsys, arguments, message: str) -> None:
    assert digits.main(arguments) == 2
    err = capsys.readouterr().err
    assert message in err and err.count("\n") == 1
