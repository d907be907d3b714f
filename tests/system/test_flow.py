"""Cycle-exact flow of uops through the whole core: no bubbles, exact waits, overlap, fairness."""

import functools
from itertools import pairwise

import pytest

from hdl.config import preset
from hdl.issue.fairness import PATIENCE
from hdl.mac.pipe import MacTiming
from sim.engines import available, open_engine
from sim.program import Program

CFG = preset("ame32-int8")
# (bovf, acc): 8, 16 and 32 bit outputs.
OUTPUTS = {"int8": (1, 0), "int16": (0, 0), "int32": (0, 1)}
UOPS = {0: 16, 1: 64, 2: 64, 3: 64}  # of a full mmacc, by TILING
SPLIT = CFG.replace(name="ame32-int8-split", accumulators="split")
C, A, B = 0, 16, 20  # tiles of different banks, as GEMMs lay them out


@functools.cache
def engine(cfg):
    """The fastest engine there is: all take the same cycles."""
    names = (n for n in ("verilator", "cxxrtl", "pysim") if available()[n] is None)
    return open_engine(next(names), cfg, progress=False)


def cycles(body, *, output="int32", tiling=0, guard=0, m=16, n=16, k=16, memory=(), cfg=CFG):
    """Cycles from the first fence's answer to the last one's, around `body(program)`."""
    bovf, acc = OUTPUTS[output]
    program = Program(cfg)
    program.set_cfg("int8", bovf=bovf, acc=acc)
    program.set_tile(k, m, n, tiling=tiling, guard4x4=guard)
    program.mfence()
    start = len(program) - 1
    body(program)
    program.mfence()
    simulator = engine(cfg)
    simulator.memory.clear()
    for base, size in memory:
        simulator.memory.add_region(base, size)
    result = simulator.run(program)
    assert not any(response.error for response in result.responses)
    return result.responses[-1].cycle - result.responses[start].cycle


def per_mmacc(few, many, *, beta=0, btr=1, tiles=(C, A, B), **rest):
    """Extra cycles of each mmacc beyond the first `few`; exact, for a steady stream."""

    def repeat(count):
        def body(program):
            for _ in range(count):
                program.mmacc(*tiles, beta=beta, btr=btr)

        return body

    extra = cycles(repeat(many), **rest) - cycles(repeat(few), **rest)
    quotient, remainder = divmod(extra, many - few)
    assert remainder == 0, f"{extra} cycles for {many - few} mmacc is not a steady rate"
    return quotient


@pytest.mark.parametrize("beta", [0, 1])
@pytest.mark.parametrize("tiling", UOPS)
@pytest.mark.parametrize("output", OUTPUTS)
def test_mmacc_into_one_group_has_no_bubble(output, tiling, beta):
    """One uop every cycle across consecutive mmacc into the same C group."""
    assert per_mmacc(3, 6, output=output, tiling=tiling, beta=beta) == UOPS[tiling]


@pytest.mark.parametrize("beta", [0, 1])
@pytest.mark.parametrize(("output", "cfg"), [("int8", CFG), ("int8", SPLIT), ("int16", SPLIT)])
def test_4x4_has_no_bubble(output, cfg, beta):
    """256 uops for sixteen results, also where C packs two tiles a result in its own file."""
    tiles = (0, 16, 20)
    assert per_mmacc(2, 5, output=output, guard=1, beta=beta, tiles=tiles, cfg=cfg) == 256


@pytest.mark.parametrize("tiling", UOPS)
@pytest.mark.parametrize("output", OUTPUTS)
def test_the_c_file_has_no_bubble(output, tiling):
    """As in one file, with operands in the tiles whose numbers C has too."""
    tiles = (C, 0, 4)
    assert per_mmacc(3, 6, output=output, tiling=tiling, tiles=tiles, cfg=SPLIT) == UOPS[tiling]


def test_refused_4x4_runs_as_2x2():
    """16-bit outputs in one file: 64 uops, as 2x2."""
    assert per_mmacc(2, 5, output="int16", guard=1, tiling=0) == 64


# tiles of A and of B by TILING, and the transposes of each bTR
TILES = {0: (1, 1), 1: (2, 2), 2: (1, 4), 3: (4, 1)}


@pytest.mark.parametrize("btr", range(4))
@pytest.mark.parametrize("tiling", UOPS)
def test_transposing_costs_what_describe_says(tiling, btr):
    """16 cycles for each tile of the operand with most tiles to transpose; none for A x B^T."""
    a_tiles, b_tiles = TILES[tiling]
    passes = max(a_tiles * bool(btr & 2), b_tiles * (not btr & 1))
    expected = 16 * passes + UOPS[tiling]
    assert per_mmacc(2, 5, output="int16", tiling=tiling, btr=btr) == expected


@pytest.mark.parametrize("btr", range(4))
def test_transposing_for_4x4(btr):
    assert per_mmacc(2, 4, output="int8", guard=1, btr=btr) == (256 if btr == 1 else 256 + 64)


@pytest.mark.parametrize("name", ["ame32", "ame32-split", "ame32-int8", "tiny", "full"])
def test_w_is_at_most_thirteen(name):
    """So that an 8-bit 1x1 mmacc comes back to its first word in time, in every format set."""
    assert MacTiming.of(preset(name)).loop <= 13


@pytest.mark.parametrize("output", OUTPUTS)
def test_a_word_sooner_than_w_waits_exactly(output):
    """M = N = 4: one uop a mmacc, into the same word: one every W cycles."""
    loop = MacTiming.of(CFG).loop
    assert loop <= 13
    assert per_mmacc(6, 12, output=output, m=4, n=4) == loop


@pytest.mark.parametrize("output", OUTPUTS)
def test_overwriting_never_waits(output):
    """beta = 1 reads no C, so the same word may be written every cycle."""
    assert per_mmacc(6, 12, output=output, m=4, n=4, beta=1) == 1


def test_a_word_just_late_enough_does_not_wait():
    """Between W uops and fewer, the wait is what is missing, to the cycle."""
    loop = MacTiming.of(CFG).loop
    for uops in range(1, loop + 3):
        # `uops` words of one column block each, so that a word is revisited after `uops` uops.
        rows = 4 * min(uops, 4)
        if uops > 4 and uops % 4:
            continue
        columns = 4 * max(1, uops // 4)
        assert per_mmacc(6, 12, m=rows, n=columns) == max(uops, loop), uops


def test_operands_beside_c_in_one_bank():
    """Two reads of a bank fit; only C, A and B all in one bank cost a cycle per block of A."""

    def body(tiles, count):
        return lambda program: [program.mmacc(*tiles) for _ in range(count)]

    for tiles, expected in (((0, 4, 16), 16), ((0, 16, 4), 16)):
        assert cycles(body(tiles, 6)) - cycles(body(tiles, 3)) == 3 * expected, tiles
    crowded = cycles(body((0, 4, 5), 6)) - cycles(body((0, 4, 5), 3))
    assert 3 * 16 < crowded <= 3 * 20


# Chains that wait on themselves, each with the tiles of an endless mma that crowds it out: name ->
# (tiles of the mma, one round, accesses of a round that lose, and the core, if it is another).
CHAINS = {
    # Results go to the loaded tile's bank every cycle.
    "load": (
        (C, A, B),
        lambda p: (p.mld("r", 7, 0x1000, 16), p.mst("r", 7, 0x1800, 16)),
        16,
    ),
    # Likewise in the C file.
    "load of C's file": (
        (C, A, B),
        lambda p: (
            p.mld("r", 7, 0x1000, 16, cfile=True),
            p.mst("r", 7, 0x1800, 16, cfile=True),
        ),
        16,
        SPLIT,
    ),
    # C and B are read from the stored tile's bank every cycle.
    "store": (
        (0, 16, 4),
        lambda p: (p.mst("r", 7, 0x1800, 16), p.mld("r", 7, 0x1000, 16)),
        32,
    ),
    # The result port is busy every cycle.
    "move": (
        (C, A, B),
        lambda p: (p.mmov(30, 31), p.mst("r", 30, 0x1800, 16), p.mld("r", 31, 0x1000, 16)),
        4,
    ),
    "zero": (
        (C, A, B),
        lambda p: (p.mzero(30), p.mst("r", 30, 0x1800, 16), p.mld("r", 30, 0x1000, 16)),
        4,
    ),
}


@pytest.mark.parametrize("name", CHAINS)
def test_a_bank_full_of_mmacc_starves_nobody(name):
    """The chain ends inside a mma stream long enough for the 15-cycle rule, at a uop an access."""
    tiles, round_, accesses, *core = CHAINS[name]
    count_cycles = functools.partial(cycles, cfg=core[0] if core else CFG)
    depth = MacTiming.of(CFG).depth
    rounds = 2
    wait = PATIENCE + depth + 6  # of one access, at most
    alone_cycles = {}
    memory = [(0x1000, 0x1000)]

    def chain(program):
        for _ in range(rounds):
            round_(program)

    alone_cycles["chain"] = count_cycles(chain, memory=memory)
    stream = (rounds * accesses * wait + 2 * alone_cycles["chain"]) // 16 + 4

    def mmaccs(program, count=stream):
        for _ in range(count):
            program.mmacc(*tiles)

    def both(program):
        mmaccs(program, 2)
        chain(program)
        mmaccs(program, stream - 2)

    alone_cycles["mma"] = count_cycles(mmaccs)
    together = count_cycles(both, memory=memory)
    lost = together - alone_cycles["mma"]
    # A starved chain would run when the stream is over, at its full length.
    assert lost <= rounds * accesses + 8, (lost, alone_cycles)
    assert alone_cycles["chain"] > rounds * accesses + 8, "the chain is too short to show it"


def test_loads_mma_and_stores_overlap():
    """Different tiles: the sum of the parts takes hardly longer than the longest of them."""
    memory = [(0x1000, 0x8000)]

    def mma(program):
        for _ in range(12):
            program.mmacc(C, A, B)

    def loads(program):
        for _ in range(3):
            program.mld("r", 24, 0x1000, 16, n=4, down=True)

    def stores(program):
        for _ in range(3):
            program.mst("r", 8, 0x4000, 16, n=4, down=True)

    def everything(program):
        for _ in range(3):
            program.mld("r", 24, 0x1000, 16, n=4, down=True)
            for _ in range(4):
                program.mmacc(C, A, B)
            program.mst("r", 8, 0x4000, 16, n=4, down=True)

    alone = [cycles(body, memory=memory) for body in (mma, loads, stores)]
    together = cycles(everything, memory=memory)
    assert together <= max(alone) + 40 < sum(alone) / 2, (together, alone)


def test_decode_takes_an_instruction_a_cycle():
    """CSR accesses and short mmacc pass at one a cycle while slots are free."""
    program = Program(CFG)
    program.mfence()
    for value in range(8):
        program.set_cfg("int8", sat=value & 1)
        program.csrr("mxtile")
    program.set_tile(16, 4, 4)
    for tile in range(8):
        program.mmacc(tile, A, B, beta=1)
    simulator = engine(CFG)
    simulator.memory.clear()
    result = simulator.run(program)
    taken = result.request_cycles[1:]
    assert [b - a for a, b in pairwise(taken)] == [1] * (len(taken) - 1)
    answered = [response.cycle for response in result.responses[1:]]
    assert [b - a for a, b in pairwise(answered)] == [1] * (len(answered) - 1)
