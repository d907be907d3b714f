"""CSR accesses on the RTL: every form, what is captured when, and what waits for what."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from gemm_cases import compiled

from hdl.config import Config, preset
from hdl.formats import FORMATS
from sim.engines import open_engine
from sim.personality import IDEAL
from sim.program import Program, mxcfg_value, mxtile_value

CFG = preset("ame32-int8")
SPLIT = CFG.replace(name="ame32-int8-split", accumulators="split")
ONES = (1 << 64) - 1
LATENCY = 300


@functools.cache
def engine(cfg: Config):
    return open_engine(compiled(), cfg, progress=False)


def run(program: Program, *, latency: int = 20, memory=(), fails=()):
    """Responses to a program, on memory regions (base, bytes) of zeros."""
    simulator = engine(program.cfg)
    simulator.reset()
    simulator.memory.clear()
    for base, size in memory:
        simulator.memory.add_region(base, size)
    for base, size in fails:
        simulator.memory.fail_read(base, size)
    slow = IDEAL.replace(name=f"latency {latency}", latency=latency)
    return simulator.run(program, personality=slow).responses


# (form, csr, rd, operand, source register or None) -> (wb, old value, new value) from `OLD`.
OLD = 0b1010_0101
FORMS = [
    ("csrrw", 5, 0x3C, 10, (1, OLD, 0x3C)),
    ("csrrw", 0, 0x3C, 10, (0, None, 0x3C)),  # no read
    ("csrrw", 5, 0x3C, 0, (1, OLD, 0)),  # x0 is zero, and it writes
    ("csrrs", 5, 0x3C, 10, (1, OLD, OLD | 0x3C)),
    ("csrrs", 0, 0x3C, 10, (0, None, OLD | 0x3C)),
    ("csrrs", 5, ONES, 0, (1, OLD, OLD)),  # no write, whatever comes along
    ("csrrs", 5, 0, 10, (1, OLD, OLD)),
    ("csrrc", 5, 0x3C, 10, (1, OLD, OLD & ~0x3C)),
    ("csrrc", 0, 0x3C, 10, (0, None, OLD & ~0x3C)),
    ("csrrc", 5, ONES, 0, (1, OLD, OLD)),
    ("csrrwi", 5, ONES, 0x13, (1, OLD, 0x13)),  # the number itself, not a register's value
    ("csrrwi", 0, ONES, 0x13, (0, None, 0x13)),
    ("csrrwi", 5, ONES, 0, (1, OLD, 0)),
    ("csrrsi", 5, ONES, 0x1A, (1, OLD, OLD | 0x1A)),
    ("csrrsi", 0, ONES, 0x1A, (0, None, OLD | 0x1A)),
    ("csrrsi", 5, ONES, 0, (1, OLD, OLD)),
    ("csrrci", 5, ONES, 0x1F, (1, OLD, OLD & ~0x1F)),
    ("csrrci", 0, ONES, 0x1F, (0, None, OLD & ~0x1F)),
    ("csrrci", 5, ONES, 0, (1, OLD, OLD)),
]


@pytest.mark.parametrize("csr", ["mxstatus", "mxcfg", "mxtile"])
def test_every_form(csr: str) -> None:
    program = Program(CFG)
    for form, rd, value, source, _ in FORMS:
        program.csrrw(csr, OLD)
        wanted = value if source or form.endswith("i") else (0 if form == "csrrw" else value)
        program.emit(form, rd, csr, source, rs1=wanted)
        program.csrr(csr)
    responses = run(program)
    for index, (form, rd, value, source, (wb, old, new)) in enumerate(FORMS):
        answer, after = responses[3 * index + 1], responses[3 * index + 2]
        where = f"{form} rd={rd} value={value:#x} source={source}"
        assert answer.error == 0 and answer.wb == wb, where
        if wb:
            assert (answer.rd, answer.data) == (rd, old), where
        assert after.data == new, where


def test_bits_that_do_not_exist_read_zero() -> None:
    program = Program(CFG)
    for csr in ("mxcfg", "mxtile", "mxstatus", "xmcsr"):
        program.csrrw(csr, ONES)
        program.csrr(csr)
    values = [response.data for response in run(program)[1::2]]
    assert values == [0xFFFFFFFF, 0xFFFFFFFF, 0xFF, 3]


@pytest.mark.parametrize("cfg", [CFG, SPLIT], ids=lambda cfg: cfg.name)
def test_mxinfo_says_what_is_built(cfg: Config) -> None:
    """Field by field, from isa.md section 2."""
    program = Program(cfg)
    program.csrr("mxinfo")
    info = run(program)[0].data
    formats = info & 0xFFFFFFFF
    assert [name for bit, name in enumerate(FORMATS) if formats >> bit & 1] == ["int8"]
    assert [info >> 32 & 15, info >> 36 & 7, info >> 39 & 7] == [5, 4, 2]
    assert info >> 42 & 15 == 0
    assert info >> 46 & 1 == (cfg is SPLIT)
    assert info >> 47 == 1


@pytest.mark.parametrize("form", ["csrrs", "csrrw", "csrrsi"])
def test_mxstatus_waits_for_all_older_work(form: str) -> None:
    """Any access, of a load far out in memory as of a mma; its flags are in what it reads."""
    program = Program(CFG)
    program.set_cfg("int8", sat=1)
    program.set_tile(16, 16)
    program.mld("r", 16, 0x1000, 16)
    program.mmacc(0, 16, 16, beta=1)
    program.emit(form, 5, "mxstatus", 0)
    load, answer = 2, 4
    responses = run(program, latency=LATENCY, memory=[(0x1000, 256)], fails=[(0x1010, 1)])
    assert responses[answer].cycle > responses[load].cycle + LATENCY
    assert responses[answer].data == 0x80, "the load's bus error must show"


def test_mxstatus_sees_the_flags_of_the_mma_before_it() -> None:
    program = Program(CFG)
    program.set_cfg("int8", sat=1)
    program.set_tile(16, 16)
    program.mld("r", 16, 0x1000, 16)
    for _ in range(4):  # 4 * 16 * 127 * 127 leaves 16 bits
        program.mmacc(0, 16, 16)
    program.csrr("mxstatus")
    simulator = engine(CFG)
    simulator.reset()
    simulator.memory.clear()
    simulator.memory.add_region(0x1000, np.full(256, 127, np.uint8))
    assert simulator.run(program).responses[-1].data == 0x08


def test_other_csrs_never_wait() -> None:
    """mxcfg and mxtile answer while the load is out, and each instruction keeps what it saw."""
    program = Program(CFG)
    program.set_cfg("int8", bovf=1)
    program.set_tile(16, 16)
    program.mld("r", 16, 0x1000, 16)
    program.mmacc(0, 16, 16, beta=1)  # waits for the load, and still writes 8 bits
    program.csrrw("mxcfg", mxcfg_value("int8", acc=1), 5)
    program.csrrw("mxtile", mxtile_value(1, 1), 6)
    program.csrr("mxinfo")
    quick = len(program)
    program.mst("r", 0, 0x2000, 16, n=4, down=True)
    program.mfence()
    simulator = engine(CFG)
    simulator.reset()
    simulator.memory.clear()
    simulator.memory.add_region(0x1000, np.full(256, 2, np.uint8))
    simulator.memory.add_region(0x2000, 1024)
    slow = IDEAL.replace(name="slow", latency=LATENCY)
    responses = simulator.run(program, personality=slow).responses
    assert responses[quick - 1].cycle < responses[2].cycle + 20
    written = np.frombuffer(simulator.memory.read(0x2000, 256), np.uint8)
    assert (written == 64).all(), "16 products of 2 x 2, in 8 bits, all rows and columns"
