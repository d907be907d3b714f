"""Moves through the whole core: every one, hazards around them, order of answers, rates."""

from __future__ import annotations

import os
import random

import numpy as np
import pytest
from directed import SPARE, compare, fenced_cycles

from hdl.config import preset
from sim.personality import IDEAL, JITTERY, NASTY, SLOW, STALLING

SEED = int(os.environ.get("TEST_SEED", "7"))
UNIFIED = preset("ame32-int8")
SPLIT = UNIFIED.replace(name="ame32-int8-split", accumulators="split")
CONFIGS = {"unified": UNIFIED, "split": SPLIT}
SIZES = {"b": 1, "h": 2, "w": 4, "d": 8}


@pytest.mark.parametrize("kind", CONFIGS)
@pytest.mark.parametrize("letter", SIZES)
def test_every_move_of_a_size(letter, kind):
    """Apart and in place, in every file."""
    cfg, size = CONFIGS[kind], SIZES[letter]
    rng = random.Random(f"{SEED} {letter}")
    lanes = cfg.row_bytes // size

    def body(p):
        for in_c in (False, True) if cfg.split else (False,):
            for dst in (16, 0):
                p.mtrans(letter, dst, 0, cfile=in_c)
                p.mbcrow(dst, 0, rng.randrange(16), cfile=in_c)
                p.mbccol(letter, dst + 1, 1, rng.randrange(lanes), cfile=in_c)
                p.mbcast(letter, dst + 2, rng.getrandbits(64), cfile=in_c)
                p.mmov(dst + 8, 8, 8, cfile=in_c)
                p.mzero(dst + 3, cfile=in_c)
                for index in (0, 16 * lanes - 1, rng.randrange(16 * lanes)):
                    p.mget(letter, rng.randrange(32), dst, index, cfile=in_c)
            if cfg.split:
                p.mmovf(4, 9, 4, cfile=in_c)

    compare(cfg, body, seed=SEED)


@pytest.mark.parametrize("kind", CONFIGS)
@pytest.mark.parametrize("personality", [IDEAL, SLOW, JITTERY, STALLING, NASTY], ids=str)
def test_moves_between_loads_mmacc_and_stores(kind, personality):
    """No fence anywhere: each move waits for what it reads, and holds up who reads it."""
    cfg = CONFIGS[kind]
    in_c = {"cfile": cfg.split}

    def body(p):
        p.set_cfg("int8", acc=1)
        p.set_tile(16, 16, 16)
        for step in range(3):
            p.mld("r", 16, SPARE + 0x400 * step, 16, n=2, down=True)
            p.mtrans("b", 17, 17)  # what was just loaded
            p.mmacc(0, 16, 17)
            p.mtrans("w", 0, 0, **in_c)  # what was just computed, in place
            p.mmacc(0, 17, 16, alpha=1)
            p.mget("w", 5, 0, 4 * step, **in_c)
            p.mbccol("h", 18, 17, step)
            p.mbcrow(17, 18, step)  # tile 17 was being read
            p.mmacc(4, 18, 17)
            p.mmov(8, 4, 4, **in_c)
            p.mst("r", 8, SPARE + 0x1000 + 0x400 * step, 16, n=4, down=True, **in_c)
            p.mbcast("b", 8, 0x5A + step, **in_c)  # stored before
            p.mzero(4, 4, **in_c)
            p.mmacc(4, 16, 17)
            p.mld("r", 16, SPARE + 0x2000, 16)  # multiplied before

    compare(cfg, body, seed=SEED, personality=personality)


def test_answers_keep_their_order():
    """Elements that wait for a load, CSR reads and traps between them."""

    def body(p):
        for step in range(6):
            p.mld("r", step, SPARE + 0x100 * step, 16)
            p.mget("w", 1 + step, step, 7 * step)
            p.csrr("mxtile", 9)
            p.mget("b", 0, step, 3)  # x0: no write-back
            p.mget("b", 10, step, 256)  # badgeom
            p.mget("d", 11, step, step)

    for personality in (IDEAL, SLOW, STALLING):
        compare(UNIFIED, body, seed=SEED, personality=personality)


def test_scalars_do_not_overtake_each_other():
    """Each broadcast writes its own value, however many wait."""

    def body(p):
        p.mld("r", 0, SPARE, 16, n=8, down=True)
        for step in range(12):
            p.mbcast("d", step % 9, 0x0102_0304_0506_0708 * (step + 1))

    compare(UNIFIED, body, seed=SEED, personality=SLOW)


# Cycles of one move among others that it does not depend on (docs/isa.md).
RATES = {
    "mmov of 8 tiles": (lambda p, i: p.mmov(8 * (i % 2), 16 + 8 * (i % 2), 8), 32),
    "mzero of 4 tiles": (lambda p, i: p.mzero(4 * (i % 4), 4), 16),
    "mtrans.b": (lambda p, i: p.mtrans("b", i % 8, 16 + i % 8), 8),
    "mtrans.h": (lambda p, i: p.mtrans("h", 2 * (i % 8), 16 + 2 * (i % 8)), 16),
    "mtrans.w in place": (lambda p, i: p.mtrans("w", 4 * (i % 8), 4 * (i % 8)), 32),
    "mtrans.d": (lambda p, i: p.mtrans("d", 8 * (i % 2), 16 + 8 * (i % 2)), 64),
    "mbcrow": (lambda p, i: p.mbcrow(i % 8, 16 + i % 8, 3), 5),
    "mbccol": (lambda p, i: p.mbccol("h", i % 8, 16 + i % 8, 3), 4),
}


@pytest.mark.parametrize("name", RATES)
def test_rates(name):
    build, cycles = RATES[name]

    def repeat(count):
        def body(p):
            for i in range(count):
                build(p, i)

        return body

    few, many = (fenced_cycles(UNIFIED, lambda p: None, repeat(count)) for count in (12, 28))
    assert (many - few) == 16 * cycles


def test_moves_find_gaps_in_a_stream_of_mmacc():
    """They wait for at most the 15-cycle rule, and the stream loses one uop for each of theirs."""

    def prepare(p):
        p.set_cfg("int8", acc=1)
        p.set_tile(16, 16, 16)
        p.mzero(0, 32)

    def stream(p):
        for _ in range(8):
            p.mmacc(0, 16, 20)

    def mixed(p):
        stream(p)
        p.mtrans("b", 8, 9)
        stream(p)

    alone = fenced_cycles(UNIFIED, prepare, lambda p: (stream(p), stream(p)))
    together = fenced_cycles(UNIFIED, prepare, mixed)
    assert together <= alone + 8 + 2, "a move costs the MAC no more than its own words"


def test_transposing_twice_is_nothing():
    """On the RTL alone: every size, in place."""
    rng = np.random.default_rng(SEED)
    tiles = rng.integers(0, 256, 32 * 256, dtype=np.uint8)

    def body(p):
        for letter, size in SIZES.items():
            for first in range(0, 32, 8):
                p.mtrans(letter, first, first)
                p.mtrans(letter, first, first)
            assert size in (1, 2, 4, 8)

    compare(UNIFIED, body, seed=SEED, tiles=tiles)
