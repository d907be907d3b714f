"""Handwritten digits classified on the simulated core, from and to L2 memory.

A network of two layers is trained on scikit-learn's 8 x 8 digits, quantised to INT8, and its
matrix products, biases included, run on the core's RTL for images that training never saw. The
result must equal plain integer arithmetic bit by bit.
"""

from __future__ import annotations

import sys
import time
from argparse import Namespace
from dataclasses import dataclass

import numpy as np

from hdl.cli import CommandError, Parser, run_command
from hdl.config import Config, ConfigError

from .cores import as_config, shared_core
from .driver import SimulationError
from .engines import ENGINES, EngineMissing
from .gemm import GemmResult, gemm

__all__ = [
    "TRAINED",
    "FloatNetwork",
    "QuantisedNetwork",
    "load_images",
    "main",
    "quantise",
    "quantise_images",
    "run_on_core",
    "train",
]

PROGRAM = "sim.digits"
HIDDEN = 64
TRAINED = 1437
"""Images, from the first on, that train the network; the rest, 360, are held out."""
SEED = 7
PIXEL_MAX = 16
CODE_MAX = 127
SHIFT = 16
"""Fraction bits of the factor that turns sums into INT8."""
SLOW_IMAGES, FAST_IMAGES = 64, 360
"""Images by default: on engines that interpret the RTL, and on compiled ones."""
SLOW_ENGINES = ("pysim",)


@dataclass(frozen=True)
class FloatNetwork:
    """Weights and biases of both layers as trained: inputs 0 to 1, a ReLU between."""

    w1: np.ndarray
    b1: np.ndarray
    w2: np.ndarray
    b2: np.ndarray

    def scores(self, images: np.ndarray) -> np.ndarray:
        """Scores of the ten digits for each image."""
        return np.maximum(images @ self.w1 + self.b1, 0) @ self.w2 + self.b2


@dataclass(frozen=True)
class QuantisedNetwork:
    """The network in integers: INT8 operands, INT32 sums, a fixed-point factor between layers.

    Parameters
    ----------
    w1, w2 : INT8 weights, (inputs, outputs).
    b1, b2 : INT32 biases, in units of the sums.
    factor : the first layer's sums times this, shifted right by `SHIFT`, are INT8.
    """

    w1: np.ndarray
    b1: np.ndarray
    w2: np.ndarray
    b2: np.ndarray
    factor: int

    def hidden(self, sums: np.ndarray) -> np.ndarray:
        """INT8 inputs of the second layer from the first layer's sums: ReLU and rescale."""
        scaled = (np.maximum(sums, 0).astype(np.int64) * self.factor) + (1 << SHIFT - 1) >> SHIFT
        return np.minimum(scaled, CODE_MAX).astype(np.int8)

    def scores(self, images: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Sums of both layers in plain integer arithmetic."""
        first = images.astype(np.int64) @ self.w1.astype(np.int64) + self.b1
        second = self.hidden(first).astype(np.int64) @ self.w2.astype(np.int64) + self.b2
        return first, second


def train(images: np.ndarray, labels: np.ndarray) -> FloatNetwork:
    """A trained network; the same on every run."""
    from sklearn.neural_network import MLPClassifier

    model = MLPClassifier(
        hidden_layer_sizes=(HIDDEN,), alpha=1e-3, max_iter=400, random_state=SEED, tol=1e-4
    )
    model.fit(images, labels)
    (w1, w2), (b1, b2) = model.coefs_, model.intercepts_
    return FloatNetwork(w1, b1, w2, b2)


def quantise_images(images: np.ndarray) -> np.ndarray:
    """INT8 codes of images with pixels 0 to 1."""
    return np.rint(images * CODE_MAX).astype(np.int8)


def quantise(network: FloatNetwork, images: np.ndarray) -> QuantisedNetwork:
    """The network in integers; `images` show how large its inner values get."""
    scale1 = CODE_MAX / np.abs(network.w1).max()
    scale2 = CODE_MAX / np.abs(network.w2).max()
    hidden = np.maximum(images @ network.w1 + network.b1, 0)
    scale_hidden = CODE_MAX / hidden.max()
    return QuantisedNetwork(
        w1=np.rint(network.w1 * scale1).astype(np.int8),
        b1=np.rint(network.b1 * CODE_MAX * scale1).astype(np.int32),
        w2=np.rint(network.w2 * scale2).astype(np.int8),
        b2=np.rint(network.b2 * scale_hidden * scale2).astype(np.int32),
        factor=int(np.rint(scale_hidden / (CODE_MAX * scale1) * (1 << SHIFT))),
    )


def _layer(
    inputs: np.ndarray, weights: np.ndarray, biases: np.ndarray, cfg: Config, engine: str
) -> tuple[np.ndarray, GemmResult]:
    """Sums of one layer on the core: inputs x weights on top of the biases, INT32."""
    c = np.broadcast_to(biases, (len(inputs), len(biases)))
    result = gemm(inputs, weights, c, ft="int8", acc=1, beta=1, preset=cfg, engine=engine)
    return result.c.view(np.int32), result


def run_on_core(
    network: QuantisedNetwork, images: np.ndarray, cfg: Config, engine: str
) -> tuple[np.ndarray, np.ndarray, list[GemmResult]]:
    """Sums of both layers for INT8 images, and what the two GEMMs took."""
    first, result1 = _layer(images, network.w1, network.b1, cfg, engine)
    _note(f"first layer: {result1.cycles:,} cycles in {result1.seconds:.1f} s")
    second, result2 = _layer(network.hidden(first), network.w2, network.b2, cfg, engine)
    _note(f"second layer: {result2.cycles:,} cycles in {result2.seconds:.1f} s")
    return first, second, [result1, result2]


def _note(message: str) -> None:
    print(f"{PROGRAM}: {message}", file=sys.stderr, flush=True)


def _parser() -> Parser:
    parser = Parser(prog="python -m sim.digits", description=__doc__)
    parser.add_argument("--preset", default="ame32", help="the core (%(default)s)")
    parser.add_argument("--engine", default="auto", help=", ".join(ENGINES))
    parser.add_argument(
        "--images",
        type=int,
        help=f"held-out images ({FAST_IMAGES}, {SLOW_IMAGES} on {' and '.join(SLOW_ENGINES)})",
    )
    return parser


def load_images() -> tuple[np.ndarray, np.ndarray]:
    """Images, (1797, 64) with pixels 0 to 1, and labels, in an order shuffled once for all.

    The first `TRAINED` train the network. Raises CommandError where scikit-learn is missing.
    """
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        raise CommandError("needs scikit-learn: pip install '.[demo]'") from None
    images, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(SEED).permutation(len(labels))
    return images[order] / PIXEL_MAX, labels[order]


def _command(options: Namespace) -> int:
    try:
        cfg = as_config(options.preset)
    except ConfigError as error:
        raise CommandError(str(error)) from None
    if options.engine not in ENGINES:
        raise CommandError(f"unknown engine {options.engine!r}: use one of {', '.join(ENGINES)}")
    images, labels = load_images()
    held_out = len(labels) - TRAINED
    if options.images is not None and not 1 <= options.images <= held_out:
        raise CommandError(f"--images {options.images}: use 1 to {held_out}")
    try:
        _note(f"training on {TRAINED} images")
        network = train(images[:TRAINED], labels[:TRAINED])
        quantised = quantise(network, images[:TRAINED])
        _note("preparing the simulator")
        engine = shared_core(cfg, options.engine).engine
        count = options.images or (SLOW_IMAGES if engine in SLOW_ENGINES else FAST_IMAGES)
        _note(f"running {count} held-out images on {cfg.name}, engine {engine}")
        tested, truth = images[TRAINED:][:count], labels[TRAINED:][:count]
        codes = quantise_images(tested)
        started = time.perf_counter()
        first, second, results = run_on_core(quantised, codes, cfg, options.engine)
        seconds = time.perf_counter() - started
    except (ValueError, EngineMissing) as error:
        raise CommandError(str(error)) from None
    except SimulationError as error:
        print(f"{PROGRAM}: the core failed: {error}", file=sys.stderr)
        return 1
    expected = quantised.scores(codes)
    equal = [
        np.array_equal(first, expected[0]),
        np.array_equal(second, expected[1]),
        np.array_equal(second.argmax(1), expected[1].argmax(1)),
        *(result.bit_exact for result in results),
    ]
    kind = "model" if engine == "model" else "RTL"
    accuracies = (
        ("float network", network.scores(tested).argmax(1)),
        ("INT8 network, numpy", expected[1].argmax(1)),
        (f"INT8 network, {cfg.name} {kind}", second.argmax(1)),
    )
    print(f"{count} handwritten digits, 64 pixels, {HIDDEN} hidden units, 10 classes")
    for name, found in accuracies:
        right = int((found == truth).sum())
        print(f"  {name:<30} {100 * right / count:6.2f} %  ({right} of {count})")
    _print_speed(results, seconds)
    print(
        f"{kind} equals the reference: {'yes, every label and every bit' if all(equal) else 'NO'}"
    )
    return 0 if all(equal) else 1


def _print_speed(results: list[GemmResult], seconds: float) -> None:
    cycles = sum(result.cycles for result in results)
    macs = sum(result.macs for result in results)
    bound = sum(result.bound_cycles for result in results)
    peak = results[0].peak_macs_per_cycle
    if not cycles:
        print("cycles are not modelled by this engine")
        return
    print(f"  {cycles:,} cycles, {macs / cycles:.1f} MAC/cycle of {peak} at peak")
    print(f"  utilisation {100 * bound / cycles:.1f} % of the bound, {bound:,} cycles")
    print(f"  simulated in {seconds:.1f} s on engine {results[0].engine}")


def main(arguments: list[str] | None = None) -> int:
    """Run the command; returns its exit status: 0, 1 if a bit differs, 2 for a wrong request."""
    return run_command(PROGRAM, lambda: _command(_parser().parse_args(arguments)))


if __name__ == "__main__":
    sys.exit(main())
