"""The model of the front end `xuantie`: sizes, CSRs, loads, stores, moves, traps (isa.md 1)."""

from __future__ import annotations

import random

import numpy as np
import pytest
from xuantie_core import (
    BASE,
    BOTH,
    BUS,
    CORES,
    ILLEGAL,
    NONE,
    SEED,
    SIZE,
    X128,
    X256,
    X512,
    Core,
)

from hdl import isa
from hdl.config import Config
from sim.memory import Memory
from sim.program import Program
from sim.program_xuantie import XuanTieBuilder, xmsize_value
from sim.reference.machine import Machine, Response

ALL_ONES = (1 << 64) - 1
by_core = pytest.mark.parametrize("cfg", CORES, ids=lambda cfg: cfg.name)

# -- mcfg and CSRs -------------------------------------------------------------------------------


def test_mcfg_sets_fields_and_returns_the_packed_sizes():
    core = Core()
    assert core.mcfg(0x00200807, rd=5) == Response(1, 5, 0x00200807)
    assert core.mcfgm(3, rd=6) == Response(1, 6, 0x00200803)
    assert core.mcfgn(0x14, rd=7) == Response(1, 7, 0x00201403)
    assert core.mcfgk(0x1234, rd=8) == Response(1, 8, 0x12341403)
    assert core.mcfgmi(127, rd=31) == Response(1, 31, 0x1234147F)
    assert core.mcfgni(1, rd=1) == Response(1, 1, 0x1234017F)
    assert core.mcfgki(64, rd=2) == Response(1, 2, 0x0040017F)
    assert core.read("xmsize") == 0x0040017F


def test_mcfg_without_rd_answers_nothing_but_acts():
    core = Core()
    assert core.mcfg(0x00040302) == Response()
    assert core.mcfgmi(9) == Response()
    assert core.read("xmsize") == 0x00040309


def test_mcfg_takes_the_low_bits_of_the_register():
    core = Core()
    assert core.mcfg(0xFFFFFFFF_80402010, rd=3).data == 0x80402010
    assert core.mcfgm(0x1FF00, rd=3).data == 0x80402000
    assert core.mcfgn(0xABCDEF, rd=3).data == 0x8040EF00
    assert core.mcfgk(ALL_ONES, rd=3).data == 0xFFFFEF00


def test_mcfgi_and_the_release():
    """The constant is M; the all-zero word releases instead, and leaves the sizes."""
    core = Core()
    core.sizes(4, 4, 16)
    assert core.mcfgi(0, rd=4) == Response(1, 4, 0)
    assert core.read("xmsize") == 0
    assert core.mcfgi(100, rd=0) == Response()
    assert core.read("xmsize") == 100
    core.mzero(0)
    assert core.read("xmcsr") == 3
    assert core.machine.execute(0x7E00002B) == Response()
    assert (core.read("xmsize"), core.read("xmcsr")) == (100, 1)


@pytest.mark.parametrize("sizes", [(0, 0, 0), (255, 255, 65535), (9, 17, 33)])
def test_sizes_are_never_illegal_at_mcfg(sizes):
    assert Core().sizes(*sizes, rd=1).error == NONE


def test_reset_values():
    core = Core()
    for csr in ("xmrstart", "xmxrm", "xmxsat", "xmsize"):
        assert core.read(csr) == 0
    assert core.read("xmcsr") == 1
    core.csrrw("xmrstart", 5)
    core.csrrwi("xmxrm", 3)
    core.sizes(1, 1, 1)
    core.machine.reset()
    assert [core.read(csr) for csr in ("xmrstart", "xmxrm", "xmsize")] == [0, 0, 0]


@pytest.mark.parametrize(
    ("cfg", "register", "row"), [(X128, 64, 16), (X256, 256, 32), (X512, 1024, 64), (BOTH, 64, 16)]
)
def test_constants(cfg, register, row):
    core = Core(cfg)
    assert core.read("xmregsize") == register
    assert core.read("xmlenb") == row
    assert core.read("xmisa") == 0x3FF


def test_plain_and_masked_storage():
    core = Core()
    assert core.csrrw("xmrstart", ALL_ONES, rd=1).data == 0
    assert core.csrrc("xmrstart", 0xFF, rd=1).data == ALL_ONES
    assert core.read("xmrstart") == ALL_ONES - 0xFF
    core.csrrw("xmxrm", ALL_ONES - 1)
    assert core.read("xmxrm") == 2
    core.csrrs("xmxrm", 1)
    assert core.read("xmxrm") == 3


@pytest.mark.parametrize("write", ["csrrw", "csrrs", "csrrc", "csrrwi", "csrrsi", "csrrci"])
def test_any_write_clears_xmxsat(write):
    core = Core()
    core.ready()
    core.put(1, [[0xFF, 0xFF, 0xFF, 0x7F] * 8] * 8)
    core.mn4clip("s", 0, 1, value=0)
    assert core.read("xmxsat") == 1
    assert core.csrrs("xmxsat", 0, rd=2).data == 1  # a0 is named, so this writes
    core.mn4clip("s", 0, 1, value=0)
    value = 31 if write.endswith("i") else 1
    assert getattr(core, write)("xmxsat", value, rd=3).data == 1
    assert core.read("xmxsat") == 0


def test_reading_xmxsat_leaves_it():
    core = Core()
    core.ready()
    core.put(1, [[0xFF, 0xFF, 0xFF, 0x7F] * 8] * 8)
    core.mn4clip("s", 0, 1, value=0)
    for _ in range(2):
        assert core.csrr("xmxsat", rd=2).data == 1
        assert core.csrrsi("xmxsat", 0, rd=2).data == 1


@pytest.mark.parametrize("csr", ["xmsize", "xmregsize", "xmlenb", "xmisa"])
def test_read_only(csr):
    core = Core()
    core.sizes(1, 2, 3)
    before = core.state()
    for name in ("csrrw", "csrrs", "csrrc"):
        assert getattr(core, name)(csr, 0).error == ILLEGAL
    assert core.csrrwi(csr, 0).error == ILLEGAL
    assert core.csrrsi(csr, 1).error == ILLEGAL
    assert core.csrrsi(csr, 0).error == NONE
    assert core.state() == before


def test_csrs_of_the_other_front_end_need_it():
    core = Core(X256)
    for csr in ("mxcfg", "mxtile", "mxscale", "mxinfo"):
        assert core.csrr(csr).error == ILLEGAL
    assert core.csrr("mxstatus").error == NONE
    alone = Machine(Config(), Memory())
    for number in (0x801, 0x803, 0xCC0, 0xCC1, 0xCC2, 0xCC3, 0xCC4):
        assert alone.execute(isa.encode("csrrs", 1, number, 0)).error == ILLEGAL
    assert alone.execute(isa.encode("csrrs", 1, 0x802, 0)).data == 1
    for word in (0x7E00002B, 0xA000002B, 0x0932802B, 0x8E01052B):
        assert alone.execute(word).error == ILLEGAL


def test_words_of_the_other_front_end_need_it():
    core = Core(X256)
    for text in ("mzero tr0", "mrelease", "mmov tr1, tr2", "mldr tr0, (x10), x11"):
        assert core.line(text, BASE, 16).error == ILLEGAL
    assert core.line("mfence") == Response()


def test_states_of_the_registers():
    """MS: 0 forbids all but CSR accesses; writing a register sets 3; mrelease 1."""
    core = Core()
    core.ready()
    writers = (
        lambda: core.mzero(0),
        lambda: core.mmov(0, 1),
        lambda: core.mmov_scalar(0, 5),
        lambda: core.mld("b", 0, BASE, 32),
        lambda: core.mldm(1, 0, BASE),
        lambda: core.mmaqa("b", 0, 1, 2),
        lambda: core.madd("s", 0, 1, 2),
    )
    others = (
        lambda: core.mst("b", 0, BASE, 32),
        lambda: core.mstm(1, 0, BASE),
        lambda: core.mcfgki(32),
        lambda: core.mfence(),
    )
    for writes in writers:
        core.csrrwi("xmcsr", 2)
        assert writes().error == NONE
        assert core.read("xmcsr") == 3
    for other in others:
        core.csrrwi("xmcsr", 2)
        assert other().error == NONE
        assert core.read("xmcsr") == 2
    core.csrrwi("xmcsr", 0)
    for instruction in (*writers, *others, core.mrelease):
        assert instruction().error == ILLEGAL
    assert core.read("xmsize") == xmsize_value(8, 8, 32)
    assert core.read("xmcsr") == 0
    core.csrrwi("xmcsr", 3)
    assert core.mrelease() == Response()
    assert core.read("xmcsr") == 1


# -- loads and stores ----------------------------------------------------------------------------


@by_core
@pytest.mark.parametrize("stream", [False, True], ids=["strided", "streaming"])
@pytest.mark.parametrize("size", "bhwd")
def test_loads_take_m_rows_of_k_bytes_and_zero_the_rest(cfg, size, stream):
    core = Core(cfg)
    rows, width = cfg.row_bits // 32, cfg.row_bits // 8
    step = 1 << "bhwd".index(size)
    rng = random.Random(f"{SEED} {cfg.name} {size}")
    memory = core.memory.read(BASE, SIZE)
    middle = SIZE // 2
    strides = (width, 0, 1, -1, 3, -width, 2 * width + 5, rng.randint(-300, 300))
    for case, stride in enumerate(strides):
        m = (rows, 1, rng.randint(1, rows))[case % 3]
        k = (width, step, step * rng.randint(1, width // step))[case % 3]
        base = BASE + middle + rng.randrange(64)
        md = rng.randrange(8)
        before = core.registers()
        assert core.sizes(m, 0, k).error == NONE  # N takes no part
        assert core.mld(size, md, base, stride, stream=stream) == Response()
        want = [[0] * width for _ in range(rows)]
        for i in range(m):
            at = base - BASE + i * stride
            want[i][:k] = memory[at : at + k]
        before[md] = want
        assert core.registers() == before, f"seed {SEED}, m{m} k{k} stride {stride}"


@by_core
@pytest.mark.parametrize("size", "bhwd")
def test_stores_write_the_active_bytes_alone(cfg, size):
    core = Core(cfg)
    rows, width = cfg.row_bits // 32, cfg.row_bits // 8
    step = 1 << "bhwd".index(size)
    rng = random.Random(f"{SEED} {cfg.name} {size}")
    for case, stride in enumerate((width, 0, 5, -7, 100, -width)):
        m = (rows, 1, rng.randint(1, rows))[case % 3]
        k = (width, step, step * rng.randint(1, width // step))[(case + 1) % 3]
        base = BASE + SIZE // 2 + rng.randrange(64)
        want = bytearray(core.memory.read(BASE, SIZE))
        registers = core.registers()
        for i in range(m):  # where rows overlap, the later one stays
            at = base - BASE + i * stride
            want[at : at + k] = bytes(registers[6][i][:k])
        core.sizes(m, 0, k)
        assert core.mst(size, 6, base, stride, stream=bool(case & 1)) == Response()
        assert core.memory.read(BASE, SIZE) == bytes(want), f"seed {SEED}, stride {stride}"
        assert core.registers() == registers


@by_core
@pytest.mark.parametrize("n", [1, 2, 4, 8])
@pytest.mark.parametrize("size", "bd")
def test_whole_registers_need_no_sizes_and_lie_one_after_the_other(cfg, n, size):
    core = Core(cfg)
    rows, width = cfg.row_bits // 32, cfg.row_bits // 8
    memory = core.memory.read(BASE, SIZE)
    for md in range(8):
        before = core.registers()
        response = core.mldm(n, md, BASE + 3 + md, size=size)
        if md % n:
            assert response.error == ILLEGAL
        else:
            assert response == Response()
            for index in range(n):
                at = 3 + md + index * rows * width
                before[md + index] = [
                    list(memory[at + i * width : at + (i + 1) * width]) for i in range(rows)
                ]
        assert core.registers() == before
        stored = bytearray(core.memory.read(BASE, SIZE))
        response = core.mstm(n, md, BASE + 0x4001, size=size)
        assert response.error == (ILLEGAL if md % n else NONE)
        if not md % n:
            content = b"".join(bytes(row) for reg in before[md : md + n] for row in reg)
            stored[0x4001 : 0x4001 + len(content)] = content
        assert core.memory.read(BASE, SIZE) == bytes(stored)


def test_addresses_wrap_and_high_bits_of_the_stride_do_not_count():
    core = Core()
    core.memory.add_region((1 << 40) - 64, 64)
    core.memory.add_region(0, np.arange(256, dtype=np.uint8))
    core.sizes(4, 1, 8)
    core.mld("b", 0, (1 << 40) - 4, (5 << 40) + 6)
    assert [row[:8] for row in core.register(0)[:4]] == [
        [0, 0, 0, 0, 0, 1, 2, 3],
        list(range(2, 10)),
        list(range(8, 16)),
        list(range(14, 22)),
    ]
    core.mldm(1, 1, (1 << 40) - 64)
    assert core.register(1)[2:4] == [list(range(32)), list(range(32, 64))]


def test_a_base_beyond_the_bus():
    core = Core()
    core.ready()
    before = core.state()
    for base in (1 << 40, 1 << 63 | BASE):
        assert core.mld("b", 0, base, 32).error == BUS
        assert core.mst("d", 0, base, 32, stream=True).error == BUS
        assert core.mldm(2, 0, base).error == BUS
        assert core.mstm(2, 0, base).error == BUS
        assert core.mldm(2, 1, base).error == ILLEGAL  # comes first
    assert core.state() == before
    core.sizes(0, 1, 1)
    assert core.mld("b", 0, 1 << 40, 32).error == ILLEGAL


def test_errors_of_the_bus():
    """A failing beat reads as zeros; the error shows at the fence and in mxstatus."""
    core = Core()
    core.ready()
    core.machine.memory = failing = _Failing(core.memory, BASE + 32, 16)
    core.mld("w", 0, BASE, 32)
    content = list(core.memory.read(BASE, 64))
    assert core.register(0)[0] == content[:32]
    assert core.register(0)[1] == [0] * 16 + content[48:64]
    assert core.mfence().error == BUS
    assert core.mfence().error == NONE
    assert core.read("mxstatus") == 0x80
    core.csrrw("mxstatus", 0)
    core.mstm(1, 0, BASE)
    assert (core.mfence().error, core.read("mxstatus")) == (BUS, 0x80)
    assert failing.asked


class _Failing:
    """A memory of which some bytes fail."""

    can_fail = True

    def __init__(self, memory, addr, size):
        self.memory, self.addr, self.size, self.asked = memory, addr, size, 0

    def _meets(self, addr, size):
        self.asked += 1
        return addr < self.addr + self.size and self.addr < addr + size

    def read(self, addr, size):
        return self.memory.read(addr, size)

    def write(self, addr, content):
        self.memory.write(addr, content)

    read_fails = write_fails = _meets


# -- moves ---------------------------------------------------------------------------------------


@by_core
def test_moves_take_whole_registers_whatever_the_sizes(cfg):
    core = Core(cfg)
    rows, width = cfg.row_bits // 32, cfg.row_bits // 8
    for sizes in ((0, 0, 0), (1, 1, 1)):
        core.sizes(*sizes)
        before = core.registers()
        assert core.mmov(3, 5) == Response()
        before[3] = before[5]
        assert core.registers() == before
        for row in range(rows):
            assert core.mmov_row(2, 5, row) == Response()
            assert core.register(2) == [before[5][row]] * rows
            if row < 8:
                assert core.mmov_rowi(1, 4, row) == Response()
                assert core.register(1) == [before[4][row]] * rows
        assert core.mmov_scalar(7, -2) == Response()
        assert core.register(7) == [[0xFE, *[0xFF] * 7] * (width // 8)] * rows
        core.mmov_scalar(7, 0x0123456789ABCDEF)
        lane = [0xEF, 0xCD, 0xAB, 0x89, 0x67, 0x45, 0x23, 0x01]
        assert core.register(7) == [lane * (width // 8)] * rows
        assert core.mzero(6) == Response()
        assert core.register(6) == [[0] * width] * rows
        assert core.mmov_row(5, 5, rows - 1) == Response()  # in place
        assert core.register(5) == [before[5][rows - 1]] * rows


@by_core
def test_a_row_of_r_or_more_is_illegal(cfg):
    core = Core(cfg)
    core.ready()
    rows = cfg.row_bits // 32
    before = core.state()
    for row in (rows, rows + 1, 255, 1 << 32, ALL_ONES, 1 << 63):
        assert core.mmov_row(0, 1, row).error == ILLEGAL
        assert core.madd("s", 0, 1, 2, row=row).error == ILLEGAL
        assert core.mn4clip("d", 0, 1, 2, row=row).error == ILLEGAL
    for row in range(8):
        error = NONE if row < rows else ILLEGAL
        assert core.machine.trap(isa.assemble(f"mmov.mv.i m0, m1[{row}]")) == error
        assert core.machine.trap(isa.assemble(f"msra.d.mv.i m0, m1, m2[{row}]")) == error
    assert core.state() == before


# -- sizes at use --------------------------------------------------------------------------------


def users(core):
    """(what it is, rows of N it may have or 0, element bytes, execute)."""
    rows = core.cfg.row_bits // 32
    for size, step in zip("bhwd", (1, 2, 4, 8), strict=True):
        yield f"mld{size}", 0, step, lambda s=size: core.mld(s, 0, BASE, 64)
        yield f"mst{size}", 0, step, lambda s=size: core.mst(s, 0, BASE, 64)
    yield "fmmacc.h", 2 * rows, 2, lambda: core.fmmacc("h", 0, 2, 1)
    yield "fmmacc.s", rows, 4, lambda: core.fmmacc("s", 0, 2, 1)
    yield "fmmacc.d", rows, 8, lambda: core.fmmacc("d", 0, 2, 3)
    yield "fwmmacc.h", rows, 2, lambda: core.fwmmacc("h", 0, 2, 1)
    yield "fwmmacc.s", rows, 4, lambda: core.fwmmacc("s", 0, 2, 3)
    for signs in ("", "u", "us", "su"):
        yield "mmaqa.b", rows, 1, lambda s=signs: core.mmaqa("b", 0, 2, 1, s)
        yield "mmaqa.h", rows, 2, lambda s=signs: core.mmaqa("h", 0, 2, 3, s)
        yield "pmmaqa", rows, 1, lambda s=signs: core.pmmaqa(0, 2, 1, s)
    for op in isa.PointwiseOp:
        for size, step in (("s", 4), ("d", 8)):
            yield f"{op.name}.mm", 0, step, lambda o=op, s=size: core.pointwise(o, s, 0, 2, 1)
            yield f"{op.name}.mx", 0, step, lambda o=op, s=size: core.pointwise(o, s, 0, 2, value=1)


@by_core
def test_sizes_are_checked_where_they_are_used(cfg):
    core = Core(cfg)
    rows, width = cfg.row_bits // 32, cfg.row_bits // 8
    for name, columns, step, execute in users(core):
        most_n = columns or 255
        for m in (0, 1, rows, rows + 1, 255):
            for n in (0, 1, most_n, min(255, most_n + 1)):
                for k in (0, step, step + 1, width, width + step, width - 1, 0x8000 | step):
                    legal_n = 1 <= n <= columns if columns else True
                    legal = 1 <= m <= rows and legal_n and 1 <= k <= width and k % step == 0
                    core.sizes(m, n, k)
                    before = core.state()
                    error = execute().error
                    assert error == (NONE if legal else ILLEGAL), (name, m, n, k)
                    if not legal:
                        assert core.state() == before, (name, m, n, k)


def test_what_uses_no_sizes():
    core = Core()
    core.sizes(0, 0, 0)
    for done in (
        core.mmov(0, 1),
        core.mzero(0),
        core.mldm(1, 0, BASE),
        core.mstm(8, 0, BASE),
        core.mrelease(),
        core.mfence(),
    ):
        assert done.error == NONE


def test_bases_of_pairs_are_even():
    core = Core()
    core.ready(n=1)
    for md, ms2 in ((0, 2), (0, 3), (1, 2), (1, 4), (6, 4), (7, 5), (7, 4)):
        odd_b, odd_c = ms2 % 2, md % 2
        before = core.state()
        assert core.fmmacc("h", md, ms2, md ^ 1).error == (ILLEGAL if odd_b else NONE)
        if odd_b:
            assert core.state() == before
        ms1 = 7 - md  # in neither pair
        for execute in (
            lambda r=(md, ms2, ms1): core.fmmacc("d", *r),
            lambda r=(md, ms2, ms1): core.fwmmacc("s", *r),
            lambda r=(md, ms2, ms1): core.mmaqa("h", *r, "us"),
        ):
            assert execute().error == (ILLEGAL if odd_c else NONE)
        for execute in (
            lambda r=(md, ms2, ms1): core.fmmacc("s", *r),
            lambda r=(md, ms2, ms1): core.fwmmacc("h", *r),
            lambda r=(md, ms2, ms1): core.mmaqa("b", *r),
            lambda r=(md, ms2, ms1): core.pmmaqa(*r),
        ):
            assert execute().error == NONE


def test_destinations_may_be_restricted():
    """Seed 001's literal reading: mma into m0 and m4 only; all other instructions anywhere."""
    core = Core(X256.replace(mma_destinations=("m0", "m4")))
    core.ready()
    for md in range(8):
        error = NONE if md in (0, 4) else ILLEGAL
        ms2 = (md + 2) % 8 & 6  # never overlaps
        ms1 = ms2 + 1
        assert core.mmaqa("b", md, ms2, ms1).error == error
        assert core.fmmacc("h", md, ms2, ms1).error == error
        assert core.fmmacc("d", md, ms2, ms1).error == error
        assert core.madd("s", md, 2, 1).error == NONE
        assert core.mld("b", md, BASE, 32).error == NONE
        assert core.mzero(md).error == NONE


def test_formats_that_are_not_built_are_illegal():
    core = Core(X256.replace(formats=("int8", "fp32")))
    core.ready()
    assert core.mmaqa("b", 0, 1, 2).error == NONE
    assert core.fmmacc("s", 0, 1, 2).error == NONE
    for error in (
        core.pmmaqa(0, 1, 2),
        core.mmaqa("h", 0, 1, 2),
        core.fmmacc("h", 0, 2, 1),
        core.fwmmacc("h", 0, 2, 1),
        core.fwmmacc("s", 0, 2, 1),
        core.fmmacc("d", 0, 2, 1),
    ):
        assert error.error == ILLEGAL


def test_unknown_words():
    core = Core()
    core.ready()
    before = core.state()
    for word in (
        0xA000002B | 1 << 18,  # mzero with ms1
        0xA000002B | 1 << 21,
        0x1000002B,  # fmmacc of bytes
        0x2100042B,  # pmmaqa of halves
        0x3000042B,  # madd of halves
        0x7E00002B | 1 << 15,
        0x7E00002B | 1 << 12,  # funct3
        0x0000002B,
        0x2820002B,  # three registers
        0xB000082B,
    ):
        assert core.machine.execute(word).error == ILLEGAL, hex(word)
    assert core.state() == before


# -- both front ends -----------------------------------------------------------------------------


def test_registers_are_the_first_rows_of_every_fourth_tile():
    core = Core(BOTH)
    tiles = core.machine.tiles.copy()
    assert core.mldm(8, 0, BASE) == Response()
    content = np.frombuffer(core.memory.read(BASE, 8 * 64), np.uint8).reshape(8, 4, 16)
    tiles[::4, :4] = content
    assert (core.machine.tiles == tiles).all()
    core.ready(m=2, k=4)
    core.mld("b", 3, BASE, 16)
    tiles[12, :4] = 0
    tiles[12, :2, :4] = np.frombuffer(core.memory.read(BASE, 32), np.uint8).reshape(2, 16)[:, :4]
    core.mzero(7)
    tiles[28, :4] = 0
    core.ame("mmov")(16, 28)  # tile 16 is m4
    tiles[16] = tiles[28]
    assert (core.machine.tiles == tiles).all()
    assert core.register(4) == [[0] * 16] * 4
    assert core.ame("mrelease")() == Response()
    assert core.read("xmcsr") == 1


def test_sizes_of_one_front_end_are_not_those_of_the_other():
    core = Core(BOTH)
    core.ready(m=1, n=1, k=2)
    core.set_cfg("int8", acc=1)
    core.set_tile(3, 2, 2)
    core.csrrw("mxstatus", 0)
    a, b = core.machine.tiles[4].copy(), core.machine.tiles[8].copy()
    core.machine.tiles[0] = 0
    assert core.mmaqa("b", 0, 2, 1) == Response()
    got = core.machine.tiles[0, :4].view("<i4")
    want = np.zeros((4, 4), int)
    want[0, 0] = a[0, :2].view("i1").astype(int) @ b[0, :2].view("i1").astype(int)
    assert (got == want).all()
    assert core.ame("mmacc")(0, 4, 8, beta=1) == Response()
    got = core.machine.tiles[0, :2].view("<i4")[:, :2]
    x, y = (t[:2, :3].view("i1").astype(int) for t in (a, b))
    assert (got == x @ y.T).all()
    assert core.read("xmsize") == xmsize_value(1, 1, 2)


def test_integers_set_no_flag_and_traps_no_badgeom():
    core = Core(BOTH)
    core.ready()
    core.mmaqa("b", 0, 2, 1)
    core.mmaqa("b", 0, 2, 1, "u")
    core.fmmacc("h", 0, 3, 1)
    assert core.read("mxstatus") == 0


# -- the builder ---------------------------------------------------------------------------------


def test_pointwise_forms_of_the_builder():
    x = XuanTieBuilder(Program(X256))
    x.madd("s", 1, 2, 3)
    x.madd("s", 1, 2, 3, row=4)
    x.madd("s", 1, 2, 3, rowi=4)
    x.madd("s", 1, 2, value=-4)
    texts = [isa.disassemble(request.inst) for request in x.program]
    assert texts == [
        "madd.s.mm m1, m2, m3",
        "madd.s.mv.x m1, m2, m3[x10]",
        "madd.s.mv.i m1, m2, m3[4]",
        "madd.s.mx m1, m2, x10",
    ]
    assert [request.rs1 for request in x.program] == [0, 4, 0, ALL_ONES - 3]
    for wrong in (
        {},
        {"ms1": 1, "value": 2},
        {"ms1": 1, "row": 2, "rowi": 2},
        {"row": 2},
    ):
        with pytest.raises(ValueError, match="madd takes ms1, with row or rowi at most, or value"):
            x.madd("s", 1, 2, **wrong)
