"""Every trap of isa.md on the RTL, one by one: the error, its sticky bit, and nothing else.

Each runs in a program of its own that sets all state, traps, and stores all state; the core must
then still work. What is expected is written here, without the model.
"""

from __future__ import annotations

import functools
import os
from dataclasses import dataclass

import numpy as np
import pytest
from gemm_cases import compiled

from hdl import isa
from hdl.config import Config, preset
from sim.engines import open_engine
from sim.memory import Memory
from sim.personality import IDEAL
from sim.program import Program, mxcfg_value, mxtile_value

SEED = int(os.environ.get("TEST_SEED", "5"))
UNIFIED = preset("ame32-int8")
SPLIT = UNIFIED.replace(name="ame32-int8-split", accumulators="split")
CONFIGS = {"unified": UNIFIED, "split": SPLIT}

NONE, ILLEGAL, BADGEOM, BUS = range(4)
INIT, DUMP, ARENA, ARENA_BYTES = 0x10000, 0x20000, 0x40000, 0x2000
CFG = mxcfg_value("int8")
TILE = mxtile_value(16, 16, tiling=isa.Tiling.T1X1)
FAR = 1 << 40


@functools.cache
def engine(cfg: Config):
    """One compiled core for every trap."""
    return open_engine(compiled(), cfg, progress=False)


def tile(k=16, m=16, n=0, tiling=0, guard=0) -> int:
    return mxtile_value(k, m, n, tiling=tiling, guard4x4=guard)


def mmacc(tc=0, ta=16, tb=20, **named) -> tuple[int, int, int]:
    return isa.encode("mmacc.t", tc, ta, tb, isa.mmacc_imm(**named)), 0, 0


def memory_access(name, number=0, n=1, down=0, cfile=0, base=ARENA, stride=64):
    word = isa.encode(name, number, 10, 11, n=n, down=down, cfile=cfile)
    return word, base, stride


def csr(name, number, source=0, rd=7) -> tuple[int, int, int]:
    return isa.encode(name, rd, number, source), 0xFF, 0


def raw(funct3, f7=0, opcode=isa.OPCODE_AME) -> tuple[int, int, int]:
    word = isa.OPCODE.put(opcode) | isa.FUNCT3.put(funct3) | isa.FUNCT7.put(f7)
    return word | isa.RD.put(1) | isa.RS1.put(16) | isa.RS2.put(20), ARENA, 64


@dataclass
class Trap:
    """A word, the settings it runs with, its error, and the configurations in which it traps."""

    error: int
    request: tuple[int, int, int]
    mxcfg: int = CFG
    mxtile: int = TILE
    only: str = ""


USERS = {
    "mmacc": mmacc(),
    **{
        name: memory_access(name, n=2 if name.endswith("c") else 1)
        for name in ("mlda", "mldb", "mldc", "msta", "mstb", "mstc")
    },
}
"""What checks all of mxcfg and mxtile."""

BAD_SETTINGS = {
    "K zero": {"mxtile": tile(k=0)},
    "K 17": {"mxtile": tile(k=17)},
    "K 255": {"mxtile": tile(k=255)},
    "M zero": {"mxtile": tile(m=0, n=16)},
    "M and N zero": {"mxtile": tile(m=0)},
    **{f"mxtile bit {b}": {"mxtile": TILE | 1 << b} for b in (19, 20, 21, 22, 23)},
    **{f"mxcfg bit {b}": {"mxcfg": CFG | 1 << b} for b in range(16, 32)},
    **{f"RND {r}": {"mxcfg": CFG | r << 9} for r in range(4, 8)},
    **{f"ACC {a}": {"mxcfg": CFG | a << 13} for a in range(4, 8)},
    "ACC 2 of int8": {"mxcfg": CFG | 2 << 13},
    "ACC 3 of int8": {"mxcfg": CFG | 3 << 13},
    **{f"Ft {ft:#x}": {"mxcfg": ft} for ft in (0x01, 0x0A, 0x11, 0x16, 0x28, 0xD0, 0xFF)},
}

F3 = isa.Funct3
TRAPS: dict[str, Trap] = {
    # -- illegal ---------------------------------------------------------------------------------
    "opcode 0": Trap(ILLEGAL, raw(0, 0, 0x00)),
    "opcode custom-1": Trap(ILLEGAL, raw(0, 0, 0x2B)),
    "opcode all ones": Trap(ILLEGAL, raw(7, 127, 0x7F)),
    **{f"mmacc imm bit {b}": Trap(ILLEGAL, raw(F3.MMACC, 1 << b)) for b in (4, 5, 6)},
    "mmacc.mx without its unit": Trap(ILLEGAL, raw(F3.MMACC_MX)),
    "mpool without its unit": Trap(ILLEGAL, raw(F3.MPOOL)),
    "vector mode without its unit": Trap(ILLEGAL, raw(F3.VECTOR)),
    "vector operation 6": Trap(ILLEGAL, raw(F3.VECTOR, 6)),
    "vector f7[5:4]": Trap(ILLEGAL, raw(F3.VECTOR, 1 << 4)),
    "msymstat without its unit": Trap(ILLEGAL, raw(F3.SYSTEM, isa.SystemOp.MSYMSTAT)),
    "system operation 3": Trap(ILLEGAL, raw(F3.SYSTEM, 3)),
    "system operation 64": Trap(ILLEGAL, raw(F3.SYSTEM, 64)),
    **{
        f"{name} of the C file": Trap(ILLEGAL, memory_access(name, cfile=1), only="unified")
        for name in ("mlda", "mldb", "mldc", "mldr", "msta", "mstb", "mstc", "mstr")
    },
    **{
        f"move {op} of the C file": Trap(ILLEGAL, raw(F3.MOVE, 1 << 6 | op << 3), only="unified")
        for op in (isa.MoveOp.MMOV, isa.MoveOp.MZERO)
    },
    **{
        f"move {op} of 2^{size} tiles": Trap(ILLEGAL, raw(F3.MOVE, op << 3 | size))
        for op in (isa.MoveOp.MMOV, isa.MoveOp.MZERO)
        for size in (6, 7)
    },
    "SYSTEM funct3 0": Trap(ILLEGAL, raw(0, 0, isa.OPCODE_SYSTEM)),
    "SYSTEM funct3 4": Trap(ILLEGAL, raw(4, 0, isa.OPCODE_SYSTEM)),
    **{
        f"CSR {number:#x}": Trap(ILLEGAL, csr("csrrs", number))
        for number in (0x000, 0x7BF, 0x7C5, 0x801, 0x803, 0xCC0, 0xFFF)
    },
    "mxscale without its unit": Trap(ILLEGAL, csr("csrrs", "mxscale")),
    **{
        f"{name} of mxinfo": Trap(ILLEGAL, csr(name, "mxinfo", source))
        for name, source in (
            *(("csrrw", 0), ("csrrwi", 0), ("csrrs", 5), ("csrrc", 5)),
            *(("csrrsi", 1), ("csrrci", 1)),
        )
    },
    # -- badgeom: settings -----------------------------------------------------------------------
    **{
        f"{what}: {user}": Trap(BADGEOM, USERS[user], **settings)
        for index, (what, settings) in enumerate(BAD_SETTINGS.items())
        for user in ("mmacc", list(USERS)[1 + index % (len(USERS) - 1)])
    },
    # -- badgeom: rows and columns ---------------------------------------------------------------
    **{
        f"M {m}, N {n}, tiling {tiling}, guard {guard}": Trap(
            BADGEOM, mmacc(), mxtile=tile(16, m, n, tiling, guard), **more
        )
        for m, n, tiling, guard, more in (
            *((17, 16, 0, 0, {}), (16, 17, 0, 0, {}), (33, 16, 1, 0, {}), (16, 33, 1, 0, {})),
            *((17, 16, 2, 0, {}), (16, 65, 2, 0, {}), (65, 16, 3, 0, {}), (16, 17, 3, 0, {})),
            *((255, 16, 3, 0, {}), (16, 255, 2, 0, {})),
            # refused, so 2x2
            *((33, 16, 0, 1, {"only": "unified"}), (16, 33, 0, 1, {"only": "unified"})),
            # granted
            *((65, 16, 0, 1, {"only": "split"}), (16, 65, 0, 1, {"only": "split"})),
        )
    },
    "mlda of 17 rows in one tile": Trap(BADGEOM, memory_access("mlda"), mxtile=tile(m=17, n=1)),
    "mstb of 17 rows in one tile": Trap(BADGEOM, memory_access("mstb"), mxtile=tile(m=1, n=17)),
    "mlda of 33 rows in two": Trap(
        BADGEOM, memory_access("mlda", n=2, down=1), mxtile=tile(m=33, n=1)
    ),
    "mstb of 129 rows in eight": Trap(
        BADGEOM, memory_access("mstb", n=8, down=1), mxtile=tile(m=1, n=129)
    ),
    "mldc of 17 rows": Trap(BADGEOM, memory_access("mldc", n=2), mxtile=tile(m=17, n=16)),
    "mstc of 17 columns in one group": Trap(
        BADGEOM, memory_access("mstc", n=2), mxtile=tile(m=16, n=17)
    ),
    "mldc of 9 columns in half a group": Trap(
        BADGEOM, memory_access("mldc", n=1), mxtile=tile(m=16, n=9)
    ),
    "mstc of 9 columns downwards": Trap(
        BADGEOM, memory_access("mstc", n=4, down=1), mxtile=tile(m=16, n=9)
    ),
    # -- badgeom: tiles that do not exist --------------------------------------------------------
    "A past the last": Trap(BADGEOM, mmacc(0, 31, 16), mxtile=tile(tiling=1)),
    "B past the last": Trap(BADGEOM, mmacc(0, 16, 29), mxtile=tile(tiling=2)),
    "C's second slice past the last": Trap(BADGEOM, mmacc(31, 0, 1)),
    "C's last group past the last": Trap(BADGEOM, mmacc(19, 0, 4), mxtile=tile(tiling=1)),
    "C past the last where 4x4 is refused": Trap(
        BADGEOM, mmacc(19, 0, 4), mxtile=tile(guard=1), only="split"
    ),
    "mldr past the last": Trap(BADGEOM, memory_access("mldr", 31, n=2)),
    "mstr past the last": Trap(BADGEOM, memory_access("mstr", 25, n=8, down=1)),
    "mlda past the last": Trap(BADGEOM, memory_access("mlda", 30, n=4)),
    "mldc names a group past the last": Trap(
        BADGEOM, memory_access("mldc", 28, n=4), mxtile=tile(16, 16, 8)
    ),
    "mstc past the last": Trap(BADGEOM, memory_access("mstc", 31, n=2)),
    "mldr of the C file past its last": Trap(
        BADGEOM, memory_access("mldr", 31, n=2, cfile=1), only="split"
    ),
    "mzero past the last": Trap(BADGEOM, (isa.encode("mzero", 31, n=2), 0, 0)),
    "mmov past the last": Trap(BADGEOM, (isa.encode("mmov", 0, 30, n=4), 0, 0)),
    "mmov to tiles past the last": Trap(BADGEOM, (isa.encode("mmov", 30, 0, n=4), 0, 0)),
    "mmov of overlapping groups": Trap(BADGEOM, (isa.encode("mmov", 2, 1, n=2), 0, 0)),
    # -- badgeom: overlap ------------------------------------------------------------------------
    "C over A": Trap(BADGEOM, mmacc(16, 16, 0), only="unified"),
    "C over B": Trap(BADGEOM, mmacc(16, 0, 16), only="unified"),
    "C's second slice over A": Trap(BADGEOM, mmacc(5, 6, 0), only="unified"),
    "C's last group over B": Trap(BADGEOM, mmacc(0, 16, 10), mxtile=tile(tiling=2), only="unified"),
    # -- badgeom: transposes of what is not square -----------------------------------------------
    **{
        f"bTR {btr:02b} with K {k}, M {m}, N {n}": Trap(
            BADGEOM, mmacc(btr=btr), mxtile=tile(k, m, n)
        )
        for btr in (0, 2, 3)
        for k, m, n in ((15, 16, 16), (16, 15, 16), (16, 16, 15), (16, 1, 0))
    },
    "bTR with M the total of a macro": Trap(
        BADGEOM, mmacc(btr=0), mxtile=tile(16, 32, 32, tiling=1)
    ),
    # -- bus, and what goes first ----------------------------------------------------------------
    "mldr from beyond the bus": Trap(BUS, memory_access("mldr", base=FAR)),
    "mstr to beyond the bus": Trap(BUS, memory_access("mstr", base=1 << 63)),
    "mldc from beyond the bus": Trap(BUS, memory_access("mldc", n=2, base=FAR | ARENA)),
    "badgeom goes before bus": Trap(BADGEOM, memory_access("mldr", 31, n=2, base=FAR)),
    "illegal goes before badgeom and bus": Trap(
        ILLEGAL, memory_access("mldr", 31, n=2, cfile=1, base=FAR), only="unified"
    ),
    "illegal goes before bad settings": Trap(ILLEGAL, raw(F3.MMACC, 1 << 4), mxtile=tile(k=0)),
}


def run_trap(trap: Trap, cfg: Config):
    """Responses to the trap and to what follows; tiles and memory before and after."""
    noise = np.random.default_rng(SEED)
    program = Program(cfg)
    size = program.file_bytes
    memory = Memory(cfg.addr_bits)
    tiles = noise.integers(0, 256, size, dtype=np.uint8)
    arena = noise.integers(0, 256, ARENA_BYTES, dtype=np.uint8)
    memory.add_region(INIT, tiles.copy())
    memory.add_region(DUMP, size)
    memory.add_region(ARENA, arena.copy())
    program.load_tiles(INIT)
    program.mfence()
    program.mrelease()
    program.csrrw("mxcfg", trap.mxcfg)
    program.csrrw("mxtile", trap.mxtile)
    program.csrrw("mxstatus", 0)
    at = len(program)
    program.word(*trap.request)
    for name in ("mxcfg", "mxtile", "xmcsr", "mxstatus"):
        program.csrr(name)
    program.store_tiles(DUMP)
    program.mfence()
    simulator = engine(cfg)
    simulator.memory = memory
    result = simulator.run(program, personality=IDEAL)
    same = memory.read(DUMP, size) == tiles.tobytes()
    untouched = memory.read(ARENA, ARENA_BYTES) == arena.tobytes()
    return result.responses[at:], same, untouched


@pytest.mark.parametrize("kind", CONFIGS)
def test_every_trap(kind: str) -> None:
    """The answer, the sticky bit, and all other state as it was."""
    done = 0
    for name, trap in TRAPS.items():
        if trap.only not in ("", kind):
            continue
        responses, same, untouched = run_trap(trap, CONFIGS[kind])
        answer, mxcfg, mxtile, xmcsr, mxstatus = responses[:5]
        assert (answer.error, answer.wb) == (trap.error, 0), f"{name}: {answer}"
        assert (mxcfg.data, mxtile.data) == (trap.mxcfg, trap.mxtile), name
        assert xmcsr.data == isa.MsState.INITIAL, f"{name}: tiles are called written"
        sticky = isa.MXSTATUS["badgeom"].mask if trap.error == BADGEOM else 0
        assert mxstatus.data == sticky, f"{name}: mxstatus is {mxstatus.data:#x}"
        assert same, f"{name}: a tile has changed"
        assert untouched, f"{name}: memory has changed"
        assert not any(r.error for r in responses[1:]), f"{name}: the core does not work on"
        done += 1
    assert done > 150


@pytest.mark.parametrize("kind", CONFIGS)
def test_what_looks_like_a_trap_but_is_none(kind: str) -> None:
    """Limits that just hold, so that no trap above comes from a check that is too strict."""
    cfg = CONFIGS[kind]
    legal = [
        (mmacc(), tile(16, 1, 0)),
        (mmacc(), tile(1, 16, 16)),
        (mmacc(), tile(16, 32, 32, tiling=1)),
        (mmacc(), tile(16, 16, 64, tiling=2)),
        (mmacc(), tile(16, 64, 16, tiling=3)),
        (mmacc(0, 30, 28), tile(16, 16, 16, tiling=1)),
        (mmacc(0, 31, 28), tile(16, 16, 64, tiling=2)),
        # tiles without rows do not count
        (mmacc(0, 31, 28), tile(16, 16, 17, tiling=2)),
        (mmacc(18, 0, 4), tile(16, 16, 16, tiling=1)),  # the last slice is tile 31
        (mmacc(31, 0, 1), tile(16, 16, 8)),  # one slice only
        (mmacc(5, 6, 7), tile(16, 16, 8)),
        (mmacc(0, 2, 6), tile(16, 16, 16, tiling=1)),  # operands in the gaps of C
        (mmacc(btr=3), tile(16, 16, 16)),
        (mmacc(btr=0), tile(16, 16, 0, tiling=1)),
        (memory_access("mldc", n=4), tile(16, 16, 32)),
        (memory_access("mstc", 31, n=2), tile(16, 16, 8)),
        (memory_access("mldr", 24, n=8), tile(0, 0, 0)),  # r checks no settings
        ((isa.encode("mzero", 0, n=32), 0, 0), tile(0, 0, 0)),
        ((isa.encode("mmov", 4, 4, n=4), 0, 0), tile(0, 0, 0)),
        ((isa.encode("mfence") | isa.RD.mask | isa.RS1.mask, 0, 0), tile(0, 0, 0)),
        (csr("csrrs", "mxinfo", 0), TILE),
        (csr("csrrci", "mxinfo", 0), TILE),
    ]
    for request, mxtile in legal:
        responses, _, _ = run_trap(Trap(NONE, request, mxtile=mxtile), cfg)
        name = f"{isa.disassemble(request[0])} with mxtile {mxtile:#x}"
        assert responses[0].error == NONE, name
        assert responses[4].data & isa.MXSTATUS["badgeom"].mask == 0, name
