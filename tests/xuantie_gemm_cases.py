"""GEMMs of vendors' kernels for the front end `xuantie`, with results from plain Python integers.

A case gives a program and the memory it starts from, and says afterwards whether every byte is
right, those between and around the rows of C included. It runs on any engine.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

import numpy as np

from hdl.config import Config
from hdl.isa import FixedRounding
from sim.kernels.problem import Matrix
from sim.kernels.xuantie_gemm import Requantise, half_gemm_program, int8_gemm_program
from sim.memory import Memory
from sim.program import Program

__all__ = ["Case", "half_case", "int8_case"]

BASE, SIZE = 0x40000, 0x20000


@dataclass
class Case:
    """A program, the bytes it starts from and those it must leave.

    Parameters
    ----------
    name : for messages.
    program : the whole GEMM.
    before, after : content of the one region, at `BASE`.
    """

    name: str
    program: Program
    before: bytes
    after: bytes

    def memory(self) -> Memory:
        """A new memory."""
        memory = Memory(self.program.cfg.addr_bits)
        memory.add_region(BASE, np.frombuffer(self.before, np.uint8).copy())
        return memory

    def check(self, memory: Memory) -> None:
        """Every byte."""
        got = memory.read(BASE, SIZE)
        wrong = [at for at in range(SIZE) if got[at] != self.after[at]]
        assert not wrong, f"{self.name}: {len(wrong)} bytes differ, the first at {wrong[0]:#x}"


class _Layout:
    """Places what a GEMM needs, with noise and odd gaps between."""

    def __init__(self, rng: random.Random):
        self.rng = rng
        self.content = bytearray(rng.randbytes(SIZE))
        self.at = rng.randrange(64)

    def space(self, size: int) -> int:
        """Offset of a new place."""
        place, self.at = self.at, self.at + size + self.rng.randrange(1, 80)
        assert self.at <= SIZE
        return place

    def matrix(self, name: str, rows: int, columns: int, container: int) -> Matrix:
        """A new matrix with a pitch of its own."""
        ld = columns + self.rng.choice((0, 1, 7, 32))
        place = self.space(rows * ld * container // 8)
        return Matrix(name, rows, columns, container, BASE + place, ld)

    def fill(self, matrix: Matrix, codes: list[list[int]], content: bytearray | None = None):
        """Put unsigned codes into a matrix."""
        content = self.content if content is None else content
        size = matrix.container // 8
        for i, row in enumerate(codes):
            at = matrix.address(i, 0) - BASE
            content[at : at + len(row) * size] = b"".join(c.to_bytes(size, "little") for c in row)

    def words(self, values: list[int]) -> int:
        """Address of new numbers of 32 bits."""
        place = self.space(4 * len(values))
        raw = b"".join((v & 0xFFFFFFFF).to_bytes(4, "little") for v in values)
        self.content[place : place + len(raw)] = raw
        return BASE + place


def _wrapped(value: int) -> int:
    return (value + 2**31) % 2**32 - 2**31


def _shifted(value: int, shift: int, mode: FixedRounding) -> int:
    """value / 2^shift, rounded by what the two neighbours are."""
    low, rest = divmod(value, 2**shift)
    if not rest:
        return low
    if mode is FixedRounding.RDN:
        return low
    if mode is FixedRounding.ROD:
        return low if low % 2 else low + 1
    if 2 * rest == 2**shift:
        return low + 1 if mode is FixedRounding.RNU or low % 2 else low
    return low + (2 * rest > 2**shift)


def int8_case(cfg: Config, m: int, n: int, k: int, seed: int, signs: str = "") -> Case:
    """INT8 GEMM with requantisation; results are spread over the whole range, some clipped."""
    rng = random.Random(f"int8 {seed} {m} {n} {k} {signs}")
    layout = _Layout(rng)
    a, b = layout.matrix("A", m, k, 8), layout.matrix("B", n, k, 8)
    c = layout.matrix("C", m, n, 8)
    low_a, low_b = (0 if unsigned else -128 for unsigned in ("u" in signs[:1], "u" in signs[-1:]))
    values_a = [[rng.randint(low_a, low_a + 255) for _ in range(k)] for _ in range(m)]
    values_b = [[rng.randint(low_b, low_b + 255) for _ in range(k)] for _ in range(n)]
    for matrix, values in ((a, values_a), (b, values_b)):
        layout.fill(matrix, [[v & 0xFF for v in row] for row in values])
    # Sums spread over 2^12.4 * sqrt(K); what follows brings them to about 100.
    biases = [rng.randint(-(2**15), 2**15) for _ in range(n)]
    shifts = [rng.randint(0, 4) for _ in range(n)]
    spread = 2**12.4 * max(1, k) ** 0.5
    multipliers = [
        rng.choice((1, 1, -1)) * int(min(2**31 - 1, 2**32 * 2**s * rng.uniform(40, 120) / spread))
        for s in shifts
    ]
    mode, zero_point = rng.choice(list(FixedRounding)), rng.randint(-20, 20)
    requantise = Requantise(
        layout.words(biases), layout.words(multipliers), layout.words(shifts), zero_point, mode
    )
    program = int8_gemm_program(cfg, a, b, c, requantise, signs=signs)
    after = bytearray(layout.content)
    result = []
    for i in range(m):
        row = []
        for j in range(n):
            products = zip(values_a[i], values_b[j], strict=True)
            total = _wrapped(biases[j] + sum(x * y for x, y in products))
            high = total * multipliers[j] >> 32
            value = _wrapped(_shifted(high, shifts[j], mode) + zero_point)
            row.append(min(max(value, -128), 127) & 0xFF)
        result.append(row)
    layout.fill(c, result, after)
    name = f"INT8 {signs} GEMM {m}x{n}x{k} on {cfg.name}, seed {seed}"
    return Case(name, program, bytes(layout.content), bytes(after))


def _half(value: int) -> int:
    """Code of a small whole number in FP16."""
    return int(np.array(value, np.float16).view(np.uint16))


def half_case(
    cfg: Config, m: int, n: int, k: int, seed: int, *, beta: int = 0, wide: bool = False
) -> Case:
    """FP16 GEMM of whole numbers so small that every sum is exact."""
    rng = random.Random(f"half {seed} {m} {n} {k} {beta} {wide}")
    layout = _Layout(rng)
    a, b = layout.matrix("A", m, k, 16), layout.matrix("B", n, k, 16)
    c = layout.matrix("C", m, n, 32 if wide else 16)
    most = 1 if not wide and k > 100 else 3  # 9 * 100 + 1000 is below 2^11
    values_a, values_b = (
        [[rng.randint(-most, most) for _ in range(k)] for _ in range(rows)] for rows in (m, n)
    )
    values_c = [[rng.randint(-1000, 1000) for _ in range(n)] for _ in range(m)]
    for matrix, values in ((a, values_a), (b, values_b)):
        layout.fill(matrix, [[_half(v) for v in row] for row in values])

    def code(value: int) -> int:
        return int(np.array(value, np.float32).view(np.uint32)) if wide else _half(value)

    if beta:
        layout.fill(c, [[code(v) for v in row] for row in values_c])
    program = half_gemm_program(cfg, a, b, c, beta=beta, wide=wide)
    after = bytearray(layout.content)
    result = [
        [
            code(beta * z + sum(x * y for x, y in zip(row, column, strict=True)))
            for z, column in zip(c_row, values_b, strict=True)
        ]
        for c_row, row in zip(values_c, values_a, strict=True)
    ]
    layout.fill(c, result, after)
    name = f"FP16 {'wide ' * wide}GEMM {m}x{n}x{k}, beta {beta}, on {cfg.name}, seed {seed}"
    return Case(name, program, bytes(layout.content), bytes(after))
