"""Moves of elements in the model, against loops over single elements."""

from __future__ import annotations

import os
import random

import numpy as np
import pytest

from hdl.config import Config
from sim.memory import Memory
from sim.program import Program
from sim.reference.machine import Machine, Response

SEED = int(os.environ.get("TEST_SEED", "1"))
SIZES = {"b": 1, "h": 2, "w": 4, "d": 8}
BADGEOM, ILLEGAL = 2, 1
UNIFIED, SPLIT = Config(), Config(accumulators="split")


def machine(cfg=UNIFIED):
    result = Machine(cfg, Memory(cfg.addr_bits))
    rng = np.random.default_rng(SEED)
    result.tiles[...] = rng.integers(0, 256, result.tiles.shape)
    return result


def do(core, build):
    program = Program(core.cfg)
    build(program)
    (request,) = program.requests
    return core.execute(request.inst, request.rs1, request.rs2)


def element(tiles, first, row, column, size):
    """Element (row, column) of a 16 x 16 matrix cut over tiles from `first` on."""
    lanes = 16 // size
    at = column % lanes * size
    return bytes(tiles[first + column // lanes, row, at : at + size])


@pytest.mark.parametrize("letter", SIZES)
@pytest.mark.parametrize("place", ["apart", "in place"])
def test_transpose(letter, place):
    core, size = machine(), SIZES[letter]
    before = core.tiles.copy()
    src, dst = 8, 8 if place == "in place" else 20
    assert do(core, lambda p: p.mtrans(letter, dst, src)) == Response()
    for row in range(16):
        for column in range(16):
            moved = element(core.tiles, dst, column, row, size)
            assert moved == element(before, src, row, column, size)
    others = [tile for tile in range(32) if not dst <= tile < dst + size]
    assert (core.tiles[others] == before[others]).all()


@pytest.mark.parametrize("letter", SIZES)
def test_broadcasts_and_elements(letter):
    core, size = machine(), SIZES[letter]
    rng = random.Random(SEED)
    lanes = 16 // size
    for _ in range(20):
        before = core.tiles.copy()
        row, column, value = rng.randrange(16), rng.randrange(lanes), rng.getrandbits(64)
        rd = rng.randrange(1, 32)
        do(core, lambda p, row=row: p.mbcrow(3, 4, row))
        do(core, lambda p, column=column: p.mbccol(letter, 5, 6, column))
        do(core, lambda p, value=value: p.mbcast(letter, 7, value))
        answer = do(core, lambda p, rd=rd, i=row * lanes + column: p.mget(letter, rd, 9, i))
        assert (core.tiles[3] == before[4, row]).all()
        for r in range(16):
            for c in range(lanes):
                piece = slice(c * size, (c + 1) * size)
                source = before[6, r, column * size : (column + 1) * size]
                assert (core.tiles[5, r, piece] == source).all()
                assert bytes(core.tiles[7, r, piece]) == value.to_bytes(8, "little")[:size]
        piece = bytes(before[9, row, column * size : (column + 1) * size])
        assert answer == Response(wb=1, rd=rd, data=int.from_bytes(piece, "little"))


def test_moves_between_files():
    core = machine(SPLIT)
    before = core.tiles.copy()
    do(core, lambda p: p.mmovf(1, 5, 4, cfile=True))
    assert (core.tiles[33:37] == before[5:9]).all()
    do(core, lambda p: p.mmovf(5, 5, 2))
    assert (core.tiles[5:7] == core.tiles[37:39]).all()
    do(core, lambda p: p.mtrans("b", 20, 1, cfile=True))
    assert (core.tiles[52] == before[5].T).all()
    assert do(core, lambda p: p.mget("b", 1, 0, 5, cfile=True)).data == core.tiles[32, 0, 5]


@pytest.mark.parametrize(
    ("build", "error"),
    [
        (lambda p: p.mbcrow(0, 1, 16), BADGEOM),
        (lambda p: p.mbcrow(0, 1, 1 << 63), BADGEOM),
        (lambda p: p.mbccol("b", 0, 1, 16), BADGEOM),
        (lambda p: p.mbccol("d", 0, 1, 2), BADGEOM),
        (lambda p: p.mget("b", 1, 0, 256), BADGEOM),
        (lambda p: p.mget("d", 1, 0, 32), BADGEOM),
        (lambda p: p.mtrans("d", 0, 25), BADGEOM),
        (lambda p: p.mtrans("d", 25, 0), BADGEOM),
        (lambda p: p.mtrans("h", 1, 2), BADGEOM),
        (lambda p: p.mtrans("w", 5, 2), BADGEOM),
        (lambda p: p.mmovf(0, 1), ILLEGAL),
        (lambda p: p.mbcast("b", 0, 1, cfile=True), ILLEGAL),
    ],
)
def test_traps_change_nothing(build, error):
    core = machine()
    before = core.tiles.copy()
    assert do(core, build) == Response(error=error)
    assert (core.tiles == before).all()
    assert core.status == (2 if error == BADGEOM else 0)
    assert core.ms == 1


def test_the_last_tiles_and_indices_are_there():
    core = machine()
    for build in (
        lambda p: p.mbcrow(31, 31, 15),
        lambda p: p.mbccol("d", 31, 31, 1),
        lambda p: p.mtrans("d", 24, 0),
        lambda p: p.mtrans("h", 2, 0),
    ):
        assert do(core, build) == Response()
    assert core.ms == 3


def test_mget_leaves_the_state_alone():
    core = machine()
    assert do(core, lambda p: p.mget("w", 0, 31, 63)) == Response()
    assert core.ms == 1
