"""Random programs of the front end `xuantie`: ordered by fences, inside, covering each kind."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from xuantie_core import BOTH, SEED, X128, X256, X512

from hdl import isa
from sim.engines.model import ModelSimulator
from sim.random_xuantie import XUANTIE_POINTS, random_xuantie_program
from sim.random_xuantie_traps import xuantie_trap_points
from sim.reference.machine import Machine

LENGTH = 60
FEW = X256.replace(formats=("int8", "fp16"), mma_destinations=("m0", "m4"))
CORES = {"row128": X128, "row256": X256, "row512": X512, "few": FEW, "both": BOTH}
PROGRAMS = {"row256": 200, "both": 12, "few": 60}
OTHERS = 25


class Recording:
    """A memory that notes every access."""

    def __init__(self, memory):
        self.memory, self.accesses = memory, []

    def read(self, addr, size):
        self.accesses.append((addr, size, False))
        return self.memory.read(addr, size)

    def write(self, addr, content):
        self.accesses.append((addr, len(content), True))
        self.memory.write(addr, content)


@pytest.fixture(scope="module", params=CORES)
def sample(request):
    """Name of a core, and random programs of it."""
    cfg = CORES[request.param]
    return request.param, [
        random_xuantie_program(cfg, random.Random(f"{SEED} {request.param} {index}"), LENGTH)
        for index in range(PROGRAMS.get(request.param, OTHERS))
    ]


def test_every_kind_occurs(sample):
    name, programs = sample
    coverage = sum((one.coverage for one in programs), Counter())
    if name == "row256":
        required = [*(f"xuantie {row.name}" for row in isa.XUANTIE), *XUANTIE_POINTS]
        required += xuantie_trap_points(X256)
    else:
        required = ["error illegal", "no tail", "M tail", "base unaligned"]
        required += {
            "few": ["illegal: format not built", "illegal: register that no mma may write"],
            "both": ["mmacc.t", "error badgeom"],
        }.get(name, [])
    missing = [point for point in required if not coverage[point]]
    assert not missing, f"seed {SEED}"
    illegal = sum(response.error == 1 for one in programs for response in one.responses)
    answers = sum(len(one.program) for one in programs)
    assert 0.02 < illegal / answers < 0.3


def test_another_machine_gives_the_same_and_stays_inside(sample):
    _, programs = sample
    for one in programs:
        assert len(one.program) >= LENGTH
        memory = one.memory()  # raises ValueError outside every region
        machine = Machine(one.cfg, memory)
        assert machine.run(one.program) == one.responses, f"seed {SEED}"
        assert memory.read(one.dump, one.program.file_bytes) == machine.tiles.tobytes()


def test_fences_order_all_that_overlaps(sample):
    _, programs = sample
    checked = 0
    for one in programs[:20]:
        memory = Recording(one.memory())
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
    assert checked > 20


def test_a_second_run_without_reset_answers_the_same(sample):
    _, programs = sample
    for one in programs[:5]:
        engine = ModelSimulator(one.cfg)
        dumps = []
        for _ in range(2):
            engine.memory = one.memory()
            result = engine.run(one.program)
            answers = [(r.wb, r.rd, r.data, r.error) for r in result.responses]
            assert answers == [(r.wb, r.rd, r.data, r.error) for r in one.responses]
            dumps.append(engine.memory.read(one.dump, one.program.file_bytes))
        assert dumps[0] == dumps[1]


def test_the_seed_decides_everything():
    first, second = (random_xuantie_program(X128, random.Random(SEED), LENGTH) for _ in range(2))
    assert first.program.requests == second.program.requests
    assert "mm" in first.program.listing()
