"""Random programs: deterministic, inside their regions, ordered by fences, covering each kind."""

from __future__ import annotations

import os
import random
from collections import Counter

import numpy as np
import pytest

from hdl import isa
from hdl.config import PRESETS, Config
from sim.engines.model import ModelSimulator
from sim.program import Program
from sim.random_moves import MOVE_POINTS
from sim.random_program import random_program
from sim.reference.machine import Machine

SEED = int(os.environ.get("TEST_SEED", "20250104"))
PROGRAMS, LENGTH = 160, 60

WIDTHS = [
    (f"bovf={bovf} acc={acc} sat={sat}") for bovf in (0, 1) for acc in (0, 1) for sat in (0, 1)
]
REQUIRED = [
    *("mlda", "mldb", "mldc", "mldr", "msta", "mstb", "mstc", "mstr", "mmacc.t", "mzero", "mmov"),
    *("mfence", "mrelease", "csrrw", "csrrs", "csrrc", "csrrwi", "csrrsi", "csrrci"),
    *(f"{w} n={n} {d}" for w in "abr" for n in (1, 2, 4, 8) for d in ("down", "along")),
    *(f"c n={n} {d}" for n in (1, 2, 4, 8) for d in ("down", "along")),
    *(f"mmacc {text}" for text in WIDTHS),
    *(f"mmacc tiling {mode}" for mode in ("1x1", "2x2", "1x4", "4x1", "4x4")),
    *(f"ragged {mode}" for mode in ("2x2", "1x4", "4x1", "4x4")),
    *("mmacc alpha", "mmacc beta", "mmacc accumulates", "guard falls back", "mmacc 4x4 of 8 bit"),
    *(f"mmacc bTR {btr:02b}" for btr in range(4)),
    *("K tail", "M tail", "N tail", "M total", "N total", "N differs from M", "N from M"),
    *("sat_hit", "mmacc A is B", *MOVE_POINTS),
    *("base aligned", "base unaligned", "stride zero", "stride negative", "stride unaligned"),
    *("stride below a row", "stride with bits above the address"),
    *("access near the wrap of addresses", "fence between overlapping accesses"),
    *("csr read only", "csr immediate 0 does not write", "csrrc of x0 does not write"),
    *("mxstatus written", "settings by csrrc and csrrs", "settings with bits above the register"),
    *("xmcsr MS 1", "xmcsr MS 3", "illegal while off", "bus", "random word: illegal"),
    *(
        f"illegal: {name}"
        for name in (
            *("opcode", "mmacc imm[6:4]", "mmacc.mx", "load or store of the C file"),
            *("move of 16-byte elements", "move of 64 tiles", "move of the C file"),
            *("vector mode", "vector mode in the C file", "move from the C file", "mpool"),
            *("system operation", "SYSTEM funct3", "unknown CSR", "write to mxinfo"),
            "set bits of mxinfo",
        )
    ),
    *(
        f"badgeom: {name}"
        for name in (
            *("K zero", "K too large", "M zero", "M just too large", "N just too large"),
            *("M too large for one tile", "N too large for one tile", "M far too large"),
            *("reserved bits of mxtile", "reserved bits of mxcfg", "Ft not built"),
            *("RND undefined", "ACC undefined", "load past the last tile"),
            *("store past the last tile", "mzero past the last tile", "mmov past the last tile"),
            *("mmov groups overlap", "C over A", "C over B", "mmacc past the last tile"),
            *("bTR of tiles that are not square", "too many columns of C"),
        )
    ),
]


def programs(cfg, count, length=LENGTH):
    for index in range(count):
        yield random_program(cfg, random.Random(f"{SEED} {index}"), length)


class RecordingMemory:
    """A memory that notes every access."""

    def __init__(self, memory):
        self.memory, self.accesses = memory, []

    def read(self, addr, size):
        self.accesses.append((addr, size, False))
        return self.memory.read(addr, size)

    def write(self, addr, content):
        self.accesses.append((addr, len(content), True))
        self.memory.write(addr, content)


@pytest.fixture(scope="module")
def sample():
    return list(programs(PRESETS["ame32"], PROGRAMS))


def test_every_kind_occurs(sample):
    coverage = sum((one.coverage for one in sample), Counter())
    missing = [point for point in REQUIRED if not coverage[point]]
    assert not missing, f"seed {SEED}"


def test_the_seed_decides_everything():
    first, second = (random_program(PRESETS["tiny"], random.Random(SEED), LENGTH) for _ in range(2))
    other = random_program(PRESETS["tiny"], random.Random(SEED + 1), LENGTH)
    assert first.program.requests == second.program.requests
    for (base, content), (base2, content2) in zip(first.regions, second.regions, strict=True):
        assert base == base2
        assert (content == content2).all()
    assert first.program.requests != other.program.requests


def test_programs_are_long_enough_and_start_and_end_alike(sample):
    for one in sample:
        assert len(one.program) >= LENGTH
        assert len(one.responses) == len(one.program)
        assert isa.decode(one.program[-6].inst).name == "mstr"
        assert isa.decode(one.program[-5].inst).name == "mfence"
        assert [r.error for r in one.responses[-10:]] == [0] * 10


def test_another_machine_gives_the_same_and_stays_inside(sample):
    for one in sample:
        memory = one.memory()  # raises ValueError outside every region
        machine = Machine(one.cfg, memory)
        assert machine.run(one.program) == one.responses, f"seed {SEED}"
        assert memory.read(one.dump, one.program.file_bytes) == machine.tiles.tobytes()


def test_fences_order_all_that_overlaps(sample):
    checked = 0
    for one in sample:
        memory = RecordingMemory(one.memory())
        machine = Machine(one.cfg, memory)
        space = 1 << one.cfg.addr_bits
        read: set[int] = set()
        written: set[int] = set()
        for request in one.program:
            memory.accesses = []
            machine.execute(request.inst, request.rs1, request.rs2)
            if getattr(isa.decode(request.inst), "name", "") == "mfence" and machine.ms:
                read, written = set(), set()
            now_read, now_written = set(), set()
            for addr, size, writes in memory.accesses:
                touched = now_written if writes else now_read
                touched.update((addr + i) % space for i in range(size))
            assert not now_read & written, f"seed {SEED}: {request}"
            assert not now_written & (read | written), f"seed {SEED}: {request}"
            read |= now_read
            written |= now_written
            checked += bool(now_written)
    assert checked > 100


def test_a_second_run_without_reset_answers_the_same_at_the_end(sample):
    for one in sample[:10]:
        engine = ModelSimulator(one.cfg)
        dumps = []
        for _ in range(2):
            engine.memory = one.memory()
            result = engine.run(one.program)
            answers = [(r.wb, r.rd, r.data, r.error) for r in result.responses]
            assert answers == [(r.wb, r.rd, r.data, r.error) for r in one.responses]
            dumps.append(engine.memory.read(one.dump, one.program.file_bytes))
        assert dumps[0] == dumps[1]


def test_initial_bytes_hold_extremes(sample):
    counts = np.bincount(sample[0].regions[2][1], minlength=256)
    assert counts[0x80] > 3 * np.median(counts)
    assert (counts > 0).all()


@pytest.mark.parametrize(
    "cfg",
    [
        Config(addr_bits=17, csr_base=0xBC0),
        Config(rows=8, row_bits=256, m_par=2, n_par=2),
        Config(tiles=16, banks=2, line_bytes=32),
    ],
    ids=["small addresses", "wide rows", "few tiles"],
)
def test_other_cores(cfg):
    coverage = Counter()
    for one in programs(cfg, 10, 40):
        machine = Machine(cfg, one.memory())
        assert machine.run(one.program) == one.responses
        coverage += one.coverage
    assert coverage["mmacc.t"] > 10
    assert coverage["error badgeom"]


def test_too_small_an_address_space_is_refused():
    with pytest.raises(ValueError, match="no room for 65536 bytes in 16 address bits"):
        random_program(Config(addr_bits=16), random.Random(1), arena_bytes=1 << 16)


# -- the model as an engine -----------------------------------------------------------------------


def test_model_engine_answers_errors_of_the_memory():
    engine = ModelSimulator(PRESETS["tiny"])
    engine.memory.add_region(0x1000, np.arange(1024).astype(np.uint8))
    engine.memory.fail_read(0x1010, 1)
    engine.memory.fail_write(0x1200, 4)
    program = Program(engine.cfg)
    program.mld("r", 0, 0x1000, 16)
    program.mfence()
    program.mst("r", 0, 0x1200, 16)
    program.mfence()
    program.csrr("mxstatus")
    result = engine.run(program)
    assert [r.error for r in result.responses] == [0, 3, 0, 3, 0]
    assert result.responses[-1].data == 0x80
    assert [r.tag for r in result.responses] == list(range(5))
    assert engine.memory.read(0x1200, 20) == bytes(range(4)) + bytes(range(4, 16)) + bytes(4)
    assert not engine.machine.tiles[0, 1].any()
    engine.reset()
    program = Program(engine.cfg)
    program.csrr("mxstatus")
    assert engine.run(program).responses[0].data == 0


@pytest.mark.parametrize("what", ["read", "write"])
def test_model_engine_refuses_forbidden_bytes(what):
    engine = ModelSimulator(PRESETS["tiny"])
    region = {"readable": what != "read", "writable": what != "write"}
    engine.memory.add_region(0x1000, 512, **region)
    program = Program(engine.cfg)
    move = program.mld if what == "read" else program.mst
    move("r", 0, 0x1000, 16)
    with pytest.raises(RuntimeError, match=f"may not {what} all of 0x1000"):
        engine.run(program)
    engine.reset()
    program = Program(engine.cfg)
    program.mld("r", 0, 0x9000, 16)
    with pytest.raises(RuntimeError, match="leaves every region at 0x9000"):
        engine.run(program)
