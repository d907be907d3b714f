"""A model of a core with the front end `xuantie`, random state, and calls that execute."""

from __future__ import annotations

import os

import numpy as np

from hdl import isa
from hdl.config import Config
from sim.memory import Memory
from sim.program import Program, Request
from sim.program_xuantie import XuanTieBuilder
from sim.reference.machine import Machine

SEED = int(os.environ.get("TEST_SEED", "20250612"))
NONE, ILLEGAL, BADGEOM, BUS = range(4)
BASE, SIZE = 0x10000, 0x8000
FORMATS = ("int4", "int8", "int16", "fp16", "fp32", "fp64")

X128, X256, X512 = (
    Config(
        name=f"row{bits}",
        frontends=("xuantie",),
        tiles=8,
        rows=bits // 32,
        row_bits=bits,
        formats=FORMATS,
    )
    for bits in (128, 256, 512)
)
BOTH = Config(name="both", frontends=("ame", "xuantie"), formats=FORMATS)
CORES = (X128, X256, X512, BOTH)


class Core:
    """Registers and memory hold random bytes; methods of both builders execute what they build.

    Methods of `XuanTieBuilder` come first; those of `Program` that have the same name, by `ame`.
    """

    def __init__(self, cfg=X256, seed=SEED):
        self.cfg = cfg
        self.rng = np.random.default_rng(seed)
        self.memory = Memory(cfg.addr_bits)
        self.memory.add_region(BASE, self.rng.integers(0, 256, SIZE, dtype=np.uint8))
        self.machine = Machine(cfg, self.memory)
        self.machine.tiles[...] = self.rng.integers(0, 256, self.machine.tiles.shape)

    def __getattr__(self, name):
        builder = XuanTieBuilder.of(self.cfg)
        method = getattr(builder if hasattr(builder, name) else builder.program, name)
        return self._executed(method)

    def ame(self, name):
        return self._executed(getattr(Program(self.cfg), name))

    def _executed(self, method):
        def call(*arguments, **named):
            return self.request(method(*arguments, **named))

        return call

    def request(self, request: Request):
        return self.machine.execute(request.inst, request.rs1, request.rs2)

    def line(self, text: str, rs1=0, rs2=0):
        """Execute a line of assembly text."""
        return self.machine.execute(isa.assemble(text), rs1, rs2)

    def read(self, csr):
        return self.csrr(csr, rd=1).data

    def ready(self, m=None, n=None, k=None):
        """Legal sizes; the largest where none is given."""
        m, n = m or self.cfg.x_rows, n or self.cfg.x_rows
        assert self.sizes(m, n, k or self.cfg.row_bytes).error == NONE

    def register(self, number) -> list[list[int]]:
        """Bytes of a register, row by row: tile 4i where there are 32 tiles."""
        tile = number * (len(self.machine.tiles) // 8)
        rows = self.cfg.row_bits // 32
        return self.machine.tiles[tile, :rows].tolist()

    def put(self, number, rows: list[list[int]]):
        """Set all bytes of a register."""
        tile = number * (len(self.machine.tiles) // 8)
        self.machine.tiles[tile, : self.cfg.row_bits // 32] = np.array(rows, np.uint8)

    def registers(self) -> list[list[list[int]]]:
        return [self.register(number) for number in range(8)]

    def state(self):
        """Everything that a trap must leave alone."""
        machine = self.machine
        return (
            machine.tiles.tobytes(),
            self.memory.read(BASE, SIZE),
            dict(machine.csrs),
            dict(machine.xuantie.csrs),
            machine.ms,
            machine.bus_pending,
        )


def number(data: list[int], signed: bool = False) -> int:
    """Little-endian bytes as a number."""
    return int.from_bytes(bytes(data), "little", signed=signed)


def codes(row: list[int], bits: int, signed: bool = False) -> list[int]:
    """Elements of a row of bytes, the low nibble first."""
    if bits == 4:
        found = [nibble for byte in row for nibble in (byte & 15, byte >> 4)]
        return [x - 16 if signed and x > 7 else x for x in found]
    size = bits // 8
    return [number(row[at : at + size], signed) for at in range(0, len(row), size)]


def row_bytes(values: list[int], bits: int) -> list[int]:
    """Elements, of any sign, as bytes."""
    out = []
    for value in values:
        out += (value & (1 << bits) - 1).to_bytes(bits // 8, "little")
    return out
