"""GEMM cases and their results in plain integer arithmetic, written without sim.reference."""

from __future__ import annotations

import os
import random
from dataclasses import dataclass, field

import numpy as np
import pytest

from sim.engines import available

SEED = int(os.environ.get("TEST_SEED", "20240217"))
SIZES = (1, 2, 15, 16, 17, 31, 32, 33, 64)
OUTPUTS = {8: {"bovf": 1}, 16: {}, 32: {"acc": 1}}
"""mxcfg fields that give each width of result from INT8."""


def compiled() -> str:
    """The fastest compiled engine, or a skip that says what is missing."""
    missing = {name: available()[name] for name in ("verilator", "cxxrtl")}
    for name, reason in missing.items():
        if reason is None:
            return name
    pytest.skip("; ".join(missing.values()))


def wrapped(values: np.ndarray, bits: int) -> np.ndarray:
    """Two's complement of `bits` bits."""
    half = 1 << bits - 1
    return (values + half) % (1 << bits) - half


def product(
    a: np.ndarray,
    b: np.ndarray,
    c: np.ndarray | None,
    *,
    bits: int,
    sat: int = 0,
    alpha: int = 1,
    lanes: int = 16,
) -> np.ndarray:
    """alpha * a x b + c in steps of `lanes`, each wrapped or, with `sat`, clamped to `bits`."""
    total = np.zeros((a.shape[0], b.shape[1]), np.int64) if c is None else c.astype(np.int64)
    low, high = -(1 << bits - 1), (1 << bits - 1) - 1
    for first in range(0, a.shape[1], lanes):
        part = a[:, first : first + lanes].astype(np.int64) @ b[first : first + lanes]
        total = total + alpha * part
        total = np.clip(total, low, high) if sat and bits > 8 else wrapped(total, bits)
    return total


@dataclass
class Case:
    """One GEMM, everything drawn from one seed."""

    seed: int
    sizes: tuple[int, ...] = SIZES
    shape: tuple[int, int, int] | None = None
    options: dict = field(default_factory=dict)

    def __post_init__(self) -> None:
        draw = random.Random(self.seed)
        noise = np.random.default_rng(self.seed)
        m, n, k = self.shape or [draw.choice(self.sizes) for _ in range(3)]
        self.bits = draw.choice(list(OUTPUTS))
        self.sat, self.alpha, self.beta = (
            draw.choice((0, 1)),
            draw.choice((1, -1)),
            draw.choice((0, 1)),
        )
        extreme = draw.random() < 0.3  # sums that leave 16 bits
        values = (-128, 127) if extreme else range(-128, 128)
        self.a = noise.choice(values, (m, k)).astype(np.int8)
        self.b = noise.choice(values, (k, n)).astype(np.int8)
        self.c = noise.integers(-(1 << self.bits - 1), 1 << self.bits - 1, (m, n))
        self.options = {
            **OUTPUTS[self.bits],
            "sat": self.sat,
            "alpha": self.alpha,
            "beta": self.beta,
            "lda": k + draw.choice((0, 1, 7)),
            "ldb": k + draw.choice((0, 1, 7)),
            "ldc": n + draw.choice((0, 1, 7)),
            "offsets": tuple(draw.choice((0, 0, draw.randrange(64))) for _ in range(3)),
            "tiling": draw.choice(("auto", "1x1", "2x2", "1x4", "4x1", "4x4")),
            "seed": self.seed,
            **self.options,
        }

    def expected(self, lanes: int = 16) -> np.ndarray:
        """C as unsigned codes."""
        values = product(
            self.a,
            self.b,
            self.c if self.beta else None,
            bits=self.bits,
            sat=self.sat,
            alpha=self.alpha,
            lanes=lanes,
        )
        return (values & (1 << self.bits) - 1).astype(f"u{self.bits // 8}")

    def __str__(self) -> str:
        m, k = self.a.shape
        return f"seed {self.seed}: {m} x {self.b.shape[1]} x {k}, {self.options}"
