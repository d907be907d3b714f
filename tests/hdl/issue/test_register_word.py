"""Legal words of the front end `xuantie`, on the decoder's own parts, against the model."""

from __future__ import annotations

import os
import random

import pytest
from amaranth.hdl import Module
from amaranth.sim import Simulator

from hdl import isa
from hdl.config import Config
from hdl.issue.register_word import RegisterSizes, RegisterWord
from sim.memory import Memory
from sim.program_xuantie import xmsize_value
from sim.reference.machine import Machine

SEED = int(os.environ.get("TEST_SEED", "20250612"))
FORMATS = ("int4", "int8", "int16", "fp16", "fp32", "fp64")
CORES = {
    "row256": Config(
        frontends=("xuantie",), tiles=8, rows=8, row_bits=256, formats=FORMATS, name="row256"
    ),
    "row512": Config(
        frontends=("xuantie",),
        tiles=8,
        rows=16,
        row_bits=512,
        formats=("int8", "fp16"),
        mma_destinations=("m0", "m4"),
    ),
    "both": Config(frontends=("ame", "xuantie"), formats=("int8", "fp32")),
}
COUNT = 3000


def cases(cfg: Config, rng: random.Random):
    """(word, xmsize, rs1): words of the table most often, sizes at their limits often."""
    rows, width = cfg.x_rows, cfg.row_bytes

    def size(limit: int) -> int:
        near = (0, 1, limit - 1, limit, limit + 1, 2 * limit, 2 * limit + 1)
        return rng.choice(near) if rng.random() < 0.4 else rng.randint(1, limit)

    for _ in range(COUNT):
        word = rng.getrandbits(32)
        if rng.random() < 0.9:
            row = rng.choice(isa.XUANTIE)
            word = word & ~row.mask | row.match
        elif rng.random() < 0.7:
            word = word & ~0x707F | isa.OPCODE_XUANTIE
        k = size(width) if rng.random() < 0.3 else 8 * rng.randint(1, width // 8)
        base = rng.choice((rng.randrange(2 * rows), rng.getrandbits(64), 1 << 63, rows))
        yield word, xmsize_value(size(rows), size(rows), k), base


@pytest.mark.parametrize("name", CORES)
def test_legal_words(name: str) -> None:
    cfg = CORES[name]
    words, sizes = RegisterWord(cfg), RegisterSizes(cfg)
    rng = random.Random(f"{SEED} {name}")
    top = Module()
    top.submodules.words, top.submodules.sizes = words, sizes
    top.d.comb += sizes.word.eq(words.fields)
    machine = Machine(cfg, Memory(cfg.addr_bits))
    accepted = refused = 0

    async def bench(ctx):
        nonlocal accepted, refused
        for word, size, rs1 in cases(cfg, rng):
            decoded = isa.decode(word)
            ours = decoded is not None and isinstance(decoded.row, isa.XuanTieInstruction)
            machine.xuantie.csrs[isa.XCsr.XMSIZE] = size
            # A base address beyond the bus is found later, and answers otherwise.
            legal = ours and machine.trap(word, rs1, 0) != 1
            ctx.set(words.before.inst, word)
            ctx.set(words.before.rs1, rs1)
            ctx.set(sizes.size, size)
            got = ctx.get(words.legal) and not ctx.get(sizes.bad)
            assert got == legal, f"seed {SEED}: {word:#010x}, {size:#x}, {rs1:#x}"
            accepted, refused = accepted + legal, refused + (not legal)

    simulator = Simulator(top)
    simulator.add_testbench(bench)
    simulator.run()
    assert accepted > COUNT // 10 and refused > COUNT // 10
