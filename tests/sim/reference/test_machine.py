"""The architectural model against isa.md, with loops over elements and bytes written here."""

from __future__ import annotations

import os
import random
from types import SimpleNamespace

import numpy as np
import pytest

from hdl import isa
from hdl.config import Config
from sim.memory import Memory
from sim.program import Program, mxcfg_value, mxtile_value
from sim.reference.machine import Machine, Response

SEED = int(os.environ.get("TEST_SEED", "20250103"))
AME32 = Config(formats=("int8",))
WIDE = Config(formats=("int8",), rows=8, row_bits=256, tiles=16, banks=2, m_par=2, n_par=2)
"""Another shape: 8 rows of 32 bytes."""

NONE, ILLEGAL, BADGEOM, BUS = range(4)
BASE, SIZE = 0x10000, 0x10000
BAD_BIT = 2


class Core:
    """A machine with random tiles and memory, and calls that build one request and execute it."""

    def __init__(self, cfg=AME32, seed=SEED):
        self.cfg = cfg
        self.rng = np.random.default_rng(seed)
        self.memory = Memory(cfg.addr_bits)
        self.memory.add_region(BASE, self.rng.integers(0, 256, SIZE, dtype=np.uint8))
        self.machine = Machine(cfg, self.memory)
        self.machine.tiles[...] = self.rng.integers(0, 256, self.machine.tiles.shape)

    def __getattr__(self, name):
        def call(*arguments, **named):
            request = getattr(Program(self.cfg), name)(*arguments, **named)
            return self.machine.execute(request.inst, request.rs1, request.rs2)

        return call

    def settings(self, cfg=None, tile=None):
        if cfg is not None:
            assert self.csrrw("mxcfg", cfg).error == NONE
        if tile is not None:
            assert self.csrrw("mxtile", tile).error == NONE

    def read(self, csr):
        return self.csrr(csr, rd=1).data

    def bytes(self):
        return np.frombuffer(self.memory.read(BASE, SIZE), np.uint8)

    def state(self):
        machine = self.machine
        return machine.tiles.tobytes(), self.bytes().tobytes(), machine.csrs.copy(), machine.ms


# -- CSRs ------------------------------------------------------------------------------------------


def test_reset_values_and_old_values_in_rd():
    core = Core()
    assert core.csrr("mxcfg", rd=5) == Response(1, 5, 0, NONE)
    assert core.csrrw("mxtile", 7, rd=6) == Response(1, 6, 0x00011010, NONE)
    assert core.csrrw("mxtile", 9, rd=0) == Response(0, 0, 0, NONE)
    assert core.read("mxtile") == 9
    assert core.read("mxstatus") == 0
    assert core.read("xmcsr") == 1


def test_mxinfo_of_the_base_cell():
    # INT8 is the tenth format; 2^5 tiles, 2^4 rows, 2^2 banks, no unit, unified, version 1.
    expected = 1 << 9 | 5 << 32 | 4 << 36 | 2 << 39 | 1 << 47
    assert Core().read("mxinfo") == expected


@pytest.mark.parametrize(("csr", "bits"), [("mxcfg", 32), ("mxtile", 32), ("mxstatus", 8)])
def test_bits_above_a_register_read_zero(csr, bits):
    core = Core()
    core.csrrw(csr, (1 << 64) - 1)
    assert core.read(csr) == (1 << bits) - 1
    core.csrrs(csr, (1 << 64) - 1)
    assert core.read(csr) == (1 << bits) - 1


def test_set_and_clear_bits():
    core = Core()
    core.csrrw("mxstatus", 0b1100)
    assert core.csrrs("mxstatus", 0b0110, rd=3).data == 0b1100
    assert core.csrrc("mxstatus", 0b0100, rd=3).data == 0b1110
    assert core.csrrsi("mxstatus", 0b10001, rd=3).data == 0b1010
    assert core.csrrci("mxstatus", 0b00001, rd=3).data == 0b11011
    assert core.csrrwi("mxstatus", 31, rd=3).data == 0b11010
    assert core.read("mxstatus") == 31


def test_register_number_zero_never_sets_or_clears():
    core = Core()
    core.csrrw("mxstatus", 0x55)
    for name in ("csrrs", "csrrc"):
        assert core.emit(name, 1, "mxstatus", 0, rs1=(1 << 64) - 1).data == 0x55
    core.emit("csrrs", 1, "mxstatus", 7, rs1=0)
    assert core.read("mxstatus") == 0x55
    core.emit("csrrw", 1, "mxstatus", 0, rs1=0)
    assert core.read("mxstatus") == 0


def test_read_only_and_unknown_csrs():
    core = Core()
    value = core.read("mxinfo")
    assert core.csrrsi("mxinfo", 0, rd=1).data == value
    for build in (
        lambda: core.csrrw("mxinfo", value, rd=1),
        lambda: core.csrrwi("mxinfo", 0, rd=1),
        lambda: core.csrrs("mxinfo", 0, rd=1),
        lambda: core.csrrci("mxinfo", 1, rd=1),
        lambda: core.csrr(0x7C5),
        lambda: core.csrr(0x7BF),
        lambda: core.csrr(0x801),
        lambda: core.csrr("mxscale"),
    ):
        assert build() == Response(error=ILLEGAL)
    assert core.read("mxstatus") == 0


def test_csrs_move_with_their_base():
    core = Core(Config(formats=("int8",), csr_base=0xBC0))
    core.csrrw("mxcfg", 0x10)
    assert core.read(0xBC0) == 0x10
    assert core.csrr(0x7C0).error == ILLEGAL
    assert core.read(0x802) == 1


def test_xmcsr_states():
    core = Core()
    core.settings(0x10, mxtile_value(16, 16))
    for write in (
        lambda: core.mzero(0),
        lambda: core.mmov(0, 0),
        lambda: core.mld("r", 0, BASE, 16),
        lambda: core.mmacc(0, 16, 17),
    ):
        core.mrelease()
        assert core.read("xmcsr") == 1
        assert write().error == NONE
        assert core.read("xmcsr") == 3
    core.mrelease()
    for other in (
        lambda: core.mst("r", 0, BASE, 16),
        lambda: core.mfence(),
        lambda: core.mld("r", 31, BASE, 16, n=2),
    ):
        other()
        assert core.read("xmcsr") == 1
    core.csrrw("xmcsr", 0xFFFFFFFE)
    assert core.read("xmcsr") == 2


def test_everything_but_csrs_is_illegal_while_off():
    core = Core()
    core.csrrwi("xmcsr", 0)
    state = core.state()
    for call in (
        lambda: core.mfence(),
        lambda: core.mrelease(),
        lambda: core.mzero(31, 2),
        lambda: core.mmov(0, 1),
        lambda: core.mmacc(0, 16, 17),
        lambda: core.mst("r", 0, 1 << 50, 0),
    ):
        assert call() == Response(error=ILLEGAL)
    assert core.state() == state
    assert core.csrrwi("xmcsr", 2, rd=1) == Response(1, 1, 0, NONE)
    assert core.mfence().error == NONE


# -- loads and stores ------------------------------------------------------------------------------


def naive_places(cfg, what, n, down, k, m, n_columns, width):
    """(tile offset, row, byte of the row, memory row, memory byte) of every active byte."""
    places = []
    if what == "r":
        for t in range(n):
            for row in range(cfg.rows):
                for byte in range(cfg.row_bytes):
                    at = (cfg.rows * t + row, byte) if down else (row, cfg.row_bytes * t + byte)
                    places.append((t, row, byte, *at))
        return places
    if what in "ab":
        count = m if what == "a" else n_columns
        for t in range(n):
            rows = count
            if count > cfg.rows:
                rows = min(cfg.rows, max(0, count - cfg.rows * t))
            for row in range(rows):
                for byte in range(k):
                    at = (cfg.rows * t + row, byte) if down else (row, cfg.row_bytes * t + byte)
                    places.append((t, row, byte, *at))
        return places
    size = width // 8
    slices = max(1, cfg.rows * size // cfg.row_bytes)
    columns_of_tile = min(cfg.rows, cfg.row_bytes // size)
    for t in range(n):
        group, part = (t, 0) if down else divmod(t, slices)
        rows, columns = m, n_columns
        if down and m > cfg.rows:
            rows = min(cfg.rows, max(0, m - cfg.rows * t))
        if not down and n_columns > cfg.rows:
            columns = min(cfg.rows, max(0, n_columns - cfg.rows * group))
        for row in range(rows):
            for column in range(columns):
                if column // columns_of_tile != part:
                    continue
                for b in range(size):
                    tile_byte = column % columns_of_tile * size + b
                    if down:
                        at = (cfg.rows * t + row, column * size + b)
                    else:
                        at = (row, (cfg.rows * group + column) * size + b)
                    places.append((4 * group + part, row, tile_byte, *at))
    return places


def named_tiles(cfg, what, n, down, width):
    if what != "c":
        return list(range(n))
    slices = max(1, cfg.rows * width // 8 // cfg.row_bytes)
    if down:
        return [4 * t for t in range(n)]
    return [4 * (t // slices) + t % slices for t in range(n)]


CASES = [
    (what, n, down, width)
    for what in "abcr"
    for n in (1, 2, 4, 8)
    for down in (False, True)
    for width in ((8, 16, 32) if what == "c" else (8,))
]


@pytest.mark.parametrize("cfg", [AME32, WIDE], ids=["ame32", "wide"])
@pytest.mark.parametrize(("what", "n", "down", "width"), CASES)
def test_loads_and_stores_byte_by_byte(cfg, what, n, down, width):
    rng = random.Random(f"{SEED} {what} {n} {down} {width}")
    cfg_value = {8: mxcfg_value(bovf=1), 16: mxcfg_value(), 32: mxcfg_value(acc=1)}[width]
    slices = max(1, cfg.rows * width // 8 // cfg.row_bytes)
    held = min(cfg.rows, cfg.row_bytes * 8 // width) * (1 if down else min(n, slices))
    groups = -(-n // slices)
    for trial in range(4):
        core = Core(cfg, seed=trial)
        k = rng.randint(1, cfg.row_bytes)
        m = rng.randint(1, cfg.rows)
        columns = min(rng.randint(1, cfg.rows), held)
        if trial % 2 and down and n > 1:
            m = columns_total = rng.randint(cfg.rows + 1, cfg.rows * n)
            if what == "b":
                columns = columns_total
                m = cfg.rows
        elif trial % 2 and what == "c" and groups > 1:
            columns = rng.randint(cfg.rows + 1, cfg.rows * groups)
        core.settings(cfg_value, mxtile_value(k, m, columns))
        last = max(named_tiles(cfg, what, n, down, width))
        if last >= cfg.tiles:
            assert core.mld(what, 0, BASE + SIZE // 2, 1, n=n, down=down).error == BADGEOM
            return
        tile = rng.randint(0, cfg.tiles - 1 - last)
        stride = rng.choice((0, 1, 61, 64, -64, -7, cfg.row_bytes))
        base = BASE + SIZE // 2 + rng.randint(0, 64)
        places = naive_places(cfg, what, n, down, k, m, columns, width)
        memory, tiles = core.bytes().copy(), core.machine.tiles.copy()
        if trial < 2:
            for offset in named_tiles(cfg, what, n, down, width):
                tiles[tile + offset] = 0
            for t, row, byte, mem_row, mem_byte in places:
                address = base + mem_row * stride + mem_byte - BASE
                tiles[tile + t, row, byte] = memory[address]
            assert core.mld(what, tile, base, stride, n=n, down=down).error == NONE
        else:
            for t, row, byte, mem_row, mem_byte in sorted(places, key=lambda p: p[3:]):
                address = base + mem_row * stride + mem_byte - BASE
                memory[address] = tiles[tile + t, row, byte]
            assert core.mst(what, tile, base, stride, n=n, down=down).error == NONE
        assert (core.machine.tiles == tiles).all(), (SEED, trial, k, m, columns, stride)
        assert (core.bytes() == memory).all(), (SEED, trial, k, m, columns, stride)


def test_addresses_wrap_at_the_bus_width():
    core = Core()
    top = 1 << 40
    for base in (top - 0x1000, 0):
        core.memory.add_region(base, core.rng.integers(0, 256, 0x1000, dtype=np.uint8))
    assert core.mld("r", 3, top - 8, 16).error == NONE
    expected = core.memory.read(top - 8, 8) + core.memory.read(0, 248)
    assert core.machine.tiles[3].tobytes() == expected
    assert core.mst("r", 3, 0x20, -16).error == NONE
    for row in range(16):
        at = (0x20 - 16 * row) % top
        assert core.memory.read(at, 16) == core.machine.tiles[3, row].tobytes()
    assert core.mld("r", 4, BASE, 16 + (5 << 40)).error == NONE
    assert core.machine.tiles[4].tobytes() == core.memory.read(BASE, 256)


def test_footprint_is_what_a_store_touches():
    core = Core()
    core.settings(mxcfg_value(), mxtile_value(5, 3, 11))
    request = Program(AME32).mst("c", 2, BASE + 100, 57, n=4)
    touched = np.zeros(SIZE, bool)
    for address, size in core.machine.footprint(request.inst, request.rs1, request.rs2):
        touched[address - BASE : address - BASE + size] = True
    core.machine.tiles[...] = ~core.machine.tiles
    core.memory.write(BASE, bytes(SIZE))
    core.machine.tiles[...] |= 1
    core.machine.execute(request.inst, request.rs1, request.rs2)
    assert ((core.bytes() != 0) == touched).all()
    assert touched.sum() == 3 * 2 * 22


# -- mmacc -----------------------------------------------------------------------------------------


def naive_mmacc(cfg, tiles, tc, ta, tb, a_tiles, b_tiles, m, n, k, width, sat, alpha, beta,
                stride=4, transpose_a=False, transpose_b=False):  # fmt: skip
    """New tiles and whether a clamp hit, one element at a time."""
    tiles, hit = tiles.copy(), False
    size = width // 8
    columns_of_tile = min(cfg.rows, cfg.row_bytes // size)

    def rows_of(total, tile):
        return min(cfg.rows, max(0, total - cfg.rows * tile)) if total > cfg.rows else total

    for i in range(a_tiles):
        for j in range(b_tiles):
            for row in range(rows_of(m, i)):
                for column in range(rows_of(n, j)):
                    a, b = tiles[ta + i].view(np.int8), tiles[tb + j].view(np.int8)
                    x = a[:, row] if transpose_a else a[row]
                    y = b[:, column] if transpose_b else b[column]
                    product = sum(int(x[lane]) * int(y[lane]) for lane in range(k))
                    tile = tc + stride * (i * b_tiles + j) + column // columns_of_tile
                    c = tiles[tile].view(f"<i{size}")
                    place = row, column % columns_of_tile
                    value = (0 if beta else int(c[place])) + (-product if alpha else product)
                    low, high = -(1 << width - 1), (1 << width - 1) - 1
                    if sat and width != 8 and not low <= value <= high:
                        value, hit = min(max(value, low), high), True
                    c[place] = (value - low) % (1 << width) + low
    return tiles, hit


OUTPUTS = {8: {"bovf": 1}, 16: {}, 32: {"acc": 1}}


@pytest.mark.parametrize("cfg", [AME32, WIDE], ids=["ame32", "wide"])
@pytest.mark.parametrize("width", OUTPUTS)
@pytest.mark.parametrize("tiling", [isa.Tiling.T1X1, isa.Tiling.T2X2])
def test_mmacc_element_by_element(cfg, width, tiling):
    rng = random.Random(f"{SEED} {width} {tiling}")
    for trial in range(4):
        core = Core(cfg, seed=trial)
        k = rng.randint(1, cfg.row_bytes)
        m, n = (
            rng.choice((rng.randint(1, cfg.rows), rng.randint(1, cfg.rows * tiling.a_tiles)))
            for _ in range(2)
        )
        sat, alpha, beta = trial & 1, rng.randrange(2), trial >> 1
        core.settings(mxcfg_value(sat=sat, **OUTPUTS[width]), mxtile_value(k, m, n, tiling=tiling))
        if tiling == isa.Tiling.T1X1:
            tc, ta, tb = rng.choice(((0, 8, 8), (4, 1, 2), (cfg.tiles - 4, 3, 5)))
        elif cfg is WIDE:  # a result fills one tile: the operands lie in the gaps of the groups
            tc, ta, tb = 0, 1, 5
        else:
            tc, ta, tb = rng.choice(((0, 16, 18), (16, 0, 1), (8, 24, 24)))
        before = core.machine.tiles.copy()
        assert core.mmacc(tc, ta, tb, alpha=alpha, beta=beta).error == NONE
        expected, hit = naive_mmacc(
            cfg, before, tc, ta, tb, tiling.a_tiles, tiling.b_tiles, m, n, k, width, sat, alpha,
            beta,
        )  # fmt: skip
        assert (core.machine.tiles == expected).all(), (SEED, trial, k, m, n)
        assert core.read("mxstatus") == (8 if hit else 0)


def test_n_zero_means_m_and_rounding_is_ignored():
    cores = []
    for n in (0, 5):
        core = Core()
        core.settings(mxcfg_value(rnd=3, ft=0), mxtile_value(16, 5, n))
        assert core.mmacc(0, 16, 17).error == NONE
        cores.append(core.machine.tiles.tobytes())
    assert cores[0] == cores[1]


def test_sticky_sat_hit_stays_until_cleared():
    core = Core()
    core.machine.tiles[16] = 0x80
    core.settings(mxcfg_value(sat=1), mxtile_value(16, 16))
    core.mmacc(0, 16, 16, beta=1)
    assert (core.machine.tiles[0:2].view("<i2") == 0x7FFF).all()
    core.settings(mxcfg_value(acc=1), None)
    core.mmacc(0, 16, 16, beta=1)
    assert core.read("mxstatus") == 8
    core.csrrci("mxstatus", 8)
    assert core.read("mxstatus") == 0


# -- modes -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("tiling", [isa.Tiling.T1X4, isa.Tiling.T4X1])
def test_broadcast_tilings(tiling):
    m, n = (7, 50) if tiling is isa.Tiling.T1X4 else (37, 9)
    core = Core()
    core.settings(mxcfg_value(), mxtile_value(13, m, n, tiling=tiling))
    before = core.machine.tiles.copy()
    assert core.mmacc(0, 16, 20).error == NONE
    expected, _ = naive_mmacc(
        AME32, before, 0, 16, 20, tiling.a_tiles, tiling.b_tiles, m, n, 13, 16, 0, 0, 0
    )
    assert (core.machine.tiles == expected).all()


def test_guard_granted_and_falling_back():
    core = Core()
    core.settings(mxcfg_value(bovf=1), mxtile_value(16, 60, 17, tiling=3, guard4x4=1))
    before = core.machine.tiles.copy()
    assert core.mmacc(8, 0, 28).error == NONE
    expected, _ = naive_mmacc(AME32, before, 8, 0, 28, 4, 4, 60, 17, 16, 8, 0, 0, 0, stride=1)
    assert (core.machine.tiles == expected).all()
    assert core.read("mxstatus") == 0
    # Past tile 32 as 4x4; over A as 4x4; 16-bit results leave no room for A and B.
    for tc, ta, tb, width in ((17, 0, 4, 8), (0, 15, 20, 8), (0, 16, 20, 16)):
        core.settings(mxcfg_value(**OUTPUTS[width]), mxtile_value(16, 16, tiling=0, guard4x4=1))
        core.csrrw("mxstatus", 0)
        before = core.machine.tiles.copy()
        assert core.mmacc(tc, ta, tb).error == NONE
        expected, _ = naive_mmacc(AME32, before, tc, ta, tb, 2, 2, 16, 16, 16, width, 0, 0, 0)
        assert (core.machine.tiles == expected).all()
        assert core.read("mxstatus") == 1
    core.csrrw("mxstatus", 0)
    assert core.mmacc(20, 0, 4).error == BADGEOM
    assert core.read("mxstatus") == BAD_BIT  # a trap never sets guard_fallback


@pytest.mark.parametrize("btr", range(4))
def test_transposes(btr):
    core = Core()
    core.settings(mxcfg_value(), mxtile_value(16, 16, tiling=1))
    before = core.machine.tiles.copy()
    assert core.mmacc(0, 16, 18, btr=btr).error == NONE
    expected, _ = naive_mmacc(
        AME32, before, 0, 16, 18, 2, 2, 16, 16, 16, 16, 0, 0, 0,
        transpose_a=bool(btr & 2), transpose_b=not btr & 1,
    )  # fmt: skip
    assert (core.machine.tiles == expected).all()
    core.settings(None, mxtile_value(15, 16, tiling=1))
    assert core.mmacc(0, 16, 18, btr=btr).error == (NONE if btr == 1 else BADGEOM)


def test_guard_changes_the_stride_of_c_in_memory_accesses():
    core = Core()
    core.settings(mxcfg_value(), mxtile_value(16, 16, guard4x4=1))
    assert core.mld("c", 0, BASE, 64, n=4).error == NONE
    for tile, column in ((0, 0), (1, 16), (2, 32), (3, 48)):
        assert core.machine.tiles[tile, 1].tobytes() == core.memory.read(BASE + 64 + column, 16)
    core.settings(mxcfg_value(acc=1), None)
    assert core.mld("c", 0, BASE, 128, n=8).error == NONE
    assert core.machine.tiles[4, 1].tobytes() == core.memory.read(BASE + 128 + 64, 16)


# -- moves -----------------------------------------------------------------------------------------


def test_moves():
    core = Core()
    before = core.machine.tiles.copy()
    assert core.mmov(8, 16, 4).error == NONE
    before[8:12] = before[16:20]
    assert core.mzero(30, 2).error == NONE
    before[30:32] = 0
    assert core.mmov(4, 4, 4).error == NONE
    assert (core.machine.tiles == before).all()
    for td, ts, n in ((0, 1, 2), (3, 0, 4), (0, 30, 4), (30, 0, 4)):
        assert core.mmov(td, ts, n).error == BADGEOM
    assert core.mzero(31, 2).error == BADGEOM
    assert core.mzero(0, 32).error == NONE
    assert not core.machine.tiles.any()


# -- traps -----------------------------------------------------------------------------------------


GOOD_CFG, GOOD_TILE = mxcfg_value(), mxtile_value(16, 16, tiling=1)

BAD_SETTINGS = [
    ("cfg", 0x11, "mabc"),
    ("cfg", 0x0A, "mabc"),
    ("cfg", 0xE0, "mabc"),
    ("cfg", GOOD_CFG | 4 << 9, "mabc"),
    ("cfg", GOOD_CFG | 2 << 13, "mabc"),
    ("cfg", GOOD_CFG | 7 << 13, "mabc"),
    ("cfg", GOOD_CFG | 1 << 16, "mabc"),
    ("cfg", GOOD_CFG | 1 << 31, "mabc"),
    ("tile", GOOD_TILE | 1 << 19, "mabc"),
    ("tile", GOOD_TILE | 1 << 23, "mabc"),
    ("tile", mxtile_value(0, 16, tiling=1), "mabc"),
    ("tile", mxtile_value(17, 16, tiling=1), "mabc"),
    ("tile", mxtile_value(16, 0, 0, tiling=1), "mabc"),
    ("tile", mxtile_value(16, 0, 16, tiling=1), "mabc"),
    ("tile", mxtile_value(16, 33, 16, tiling=1), "mac"),
    ("tile", mxtile_value(16, 16, 33, tiling=1), "mbc"),
    ("tile", mxtile_value(16, 17, 16, tiling=0), "mac"),
    ("tile", mxtile_value(16, 16, 17, tiling=0), "mbc"),
    ("tile", mxtile_value(16, 17, 16, tiling=2), "mac"),
    ("tile", mxtile_value(16, 16, 65, tiling=2), "mbc"),
    ("tile", mxtile_value(16, 65, 16, tiling=3), "mac"),
    ("tile", mxtile_value(16, 16, 17, tiling=3), "mbc"),
    # 16-bit results in one file: 4x4 is refused, and 2x2 holds 32.
    ("tile", mxtile_value(16, 33, 16, tiling=0, guard4x4=1), "mac"),
    ("tile", mxtile_value(16, 16, 33, tiling=0, guard4x4=1), "mbc"),
]


@pytest.mark.parametrize(("csr", "value", "users"), BAD_SETTINGS)
def test_bad_settings_trap_at_use_only(csr, value, users):
    core = Core()
    core.settings(GOOD_CFG, GOOD_TILE)
    core.settings(**{csr: value})
    assert core.read(f"mx{csr}") == value
    calls = {"m": lambda: core.mmacc(0, 16, 18)}
    for what in "abc":
        n = 2 if what == "c" else 1  # one group
        calls[what] = lambda w=what, n=n: core.mld(w, 0, BASE, 64, n=n)
        calls[f"{what} store"] = lambda w=what, n=n: core.mst(w, 0, BASE, 64, n=n)
    calls["r"] = lambda: core.mld("r", 0, BASE, 16)
    for name, call in calls.items():
        core.csrrw("mxstatus", 0)
        state = core.state()
        error = call().error
        assert error == (BADGEOM if name[0] in users else NONE), name
        if error:
            assert core.read("mxstatus") == BAD_BIT
            core.csrrw("mxstatus", 0)
            assert core.state() == state


def test_bad_tiles():
    core = Core()
    core.settings(GOOD_CFG, GOOD_TILE)
    one = mxtile_value(16, 16)
    for tile, call in (
        (GOOD_TILE, lambda: core.mmacc(19, 0, 2)),  # C reaches 19 + 12 + 1
        (GOOD_TILE, lambda: core.mmacc(0, 31, 16)),
        (GOOD_TILE, lambda: core.mmacc(0, 16, 31)),
        (GOOD_TILE, lambda: core.mmacc(0, 12, 20)),  # the last group over A
        (GOOD_TILE, lambda: core.mmacc(0, 20, 4)),
        (one, lambda: core.mmacc(5, 6, 7)),  # the second slice over A
        (one, lambda: core.mmacc(31, 0, 1)),
        (one, lambda: core.mld("c", 28, BASE, 64, n=4)),
        (one, lambda: core.mst("c", 27, BASE, 64, n=8)),
        (one, lambda: core.mld("a", 25, BASE, 64, n=8)),
        (one, lambda: core.mst("r", 25, BASE, 64, n=8)),
        (one, lambda: core.mld("c", 0, BASE, 64, n=2, down=True)),  # 16 columns, 8 held
        (one, lambda: core.mld("c", 0, BASE, 64, n=1)),
        (mxtile_value(15, 16), lambda: core.mmacc(0, 16, 17, btr=0)),
        (mxtile_value(16, 15, 16), lambda: core.mmacc(0, 16, 17, btr=0)),
        (mxtile_value(16, 16, 15), lambda: core.mmacc(0, 16, 17, btr=3)),
    ):
        core.settings(None, tile)
        state = core.state()[:2]
        assert call() == Response(error=BADGEOM)
        assert core.state()[:2] == state


def test_only_tiles_really_used_count():
    core = Core()
    core.settings(GOOD_CFG, GOOD_TILE)
    assert core.mmacc(0, 2, 6).error == NONE  # in the gaps of the groups
    core.settings(None, mxtile_value(16, 16, 8))
    assert core.mmacc(31, 0, 1).error == NONE  # one slice
    assert core.mmacc(5, 6, 7).error == NONE
    assert core.mst("c", 31, BASE, 64, n=2).error == NONE
    assert core.mld("c", 31, BASE, 64, n=2).error == BADGEOM  # a load writes what it names
    core.settings(None, mxtile_value(16, 17, 8))
    assert core.mst("a", 30, BASE, 64, n=4, down=True).error == NONE
    assert core.mst("a", 31, BASE, 64, n=4, down=True).error == BADGEOM


@pytest.mark.parametrize(
    "word",
    [
        0x0000000B,
        isa.encode("mmacc.mx", 0, 16, 17, 0),
        isa.encode("mmacc.t", 0, 16, 17, 0) | 1 << 29,
        isa.encode("mldr", 0, 10, 11, cfile=1),
        isa.encode("mmov", 0, 1, cfile=1),
        isa.encode("mmovf", 0, 1),
        isa.encode("mvmul", 0, 1, 2),
        isa.encode("mpool", 0, 1, 2),
        isa.encode("msymstat"),
        isa.encode("mfence") | 3 << 25,
        0x00000073,
    ],
)
def test_illegal_words(word):
    core = Core()
    state = core.state()
    assert core.machine.execute(word, BASE, 16) == Response(error=ILLEGAL)
    assert core.state() == state


def test_ignored_fields_may_hold_anything():
    core = Core()
    noise = isa.RS1.mask | isa.RS2.mask
    assert core.machine.execute(isa.encode("mzero", 4) | noise).error == NONE
    assert not core.machine.tiles[4].any()
    assert core.machine.execute(isa.encode("mfence") | noise | isa.RD.mask) == Response()


def test_priority_of_traps():
    core = Core()
    far = 1 << 40
    assert core.mld("r", 0, far, 16) == Response(error=BUS)
    assert core.mst("r", 0, far, 16) == Response(error=BUS)
    assert core.read("mxstatus") == 0
    assert core.mld("r", 31, far, 16, n=2) == Response(error=BADGEOM)
    word = isa.encode("mldr", 31, 10, 11, n=2, cfile=1)
    assert core.machine.execute(word, far, 16) == Response(error=ILLEGAL)
    assert core.machine.trap(word, far, 16) == ILLEGAL
    assert core.mfence().error == NONE


# -- bus errors ------------------------------------------------------------------------------------


def test_failing_beats_read_zero_and_show_at_the_next_fence():
    core = Core()
    plain = core.memory
    failing = SimpleNamespace(
        can_fail=True,
        read=plain.read,
        write=lambda addr, content: None,
        read_fails=lambda addr, size: addr == BASE + 32,
        write_fails=lambda addr, size: addr <= BASE + 0x100 < addr + size,
    )
    core.machine.memory = failing
    assert core.mld("r", 0, BASE + 8, 16).error == NONE
    expected = np.frombuffer(plain.read(BASE + 8, 256), np.uint8).copy()
    expected[32 - 8 : 48 - 8] = 0
    assert (core.machine.tiles[0].ravel() == expected).all()
    assert core.read("mxstatus") == 0x80
    assert core.mfence() == Response(error=BUS)
    assert core.mfence() == Response()
    assert core.read("mxstatus") == 0x80
    core.csrrw("mxstatus", 0)
    assert core.mst("r", 0, BASE + 0x200, 16).error == NONE
    assert core.mfence() == Response()
    assert core.mst("r", 0, BASE + 0x80, 16).error == NONE
    assert core.mfence() == Response(error=BUS)
    assert core.read("mxstatus") == 0x80
