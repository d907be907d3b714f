"""Proofs of the tile file: what a read returns, who waits, and for how long."""

from __future__ import annotations

from amaranth.hdl import Cat, Mux, Signal, Value

from hdl.config import Config
from hdl.issue.fairness import PATIENCE, Fairness
from hdl.tilefile.file import TileFile

from .harness import Proof
from .storage import registers_in
from .task import Task, mutants

__all__ = ["MUTANTS", "TASKS"]


def tile_file(cfg: Config) -> Proof:
    """Every read returns the last write of each byte, whatever all ports do; fixed priorities.

    A read and a write that meet on one word are left out: the scoreboard never lets them
    (`issue` proves it), and the design promises nothing of them.
    """
    p = Proof()
    dut = TileFile(cfg)
    with registers_in("hdl.tilefile.bank"):
        inside = p.add("file", dut, free=True)
    m = p.m
    tile, row = p.const(cfg.tile_bits, "tile"), p.const(cfg.rows_log2, "row")
    byte = p.const(cfg.row_bytes_log2, "byte")
    block = p.signal(row >> cfg.m_par_log2, "block")
    in_block = row[: cfg.m_par_log2]
    in_word = p.signal(Cat(byte, in_block), "byte_of_word")

    def bank(number: Value) -> Value:
        return number >> cfg.tiles_log2 - cfg.banks_log2

    if cfg.blocks == 1:  # the field is there, but there is only block 0
        ports = {"a": dut.a, "b": dut.b, "c": dut.c, "move": dut.move, "result": dut.result}
        for name, port in ports.items():
            p.assume(f"{name}_block", port.addr.block == 0)
        p.assume("load_block", dut.load.payload.block == 0)

    # -- operands, C and the result are announced a cycle before -------------------------------
    p.assume("no_move_beside_a", ~(dut.move.valid & dut.a.valid))
    chosen = dut.reads_chosen
    p.assume("one_is_chosen", (chosen & (chosen - 1)) == 0)
    nexts = {
        "c": (dut.c_next, dut.c_next_tile),
        "result": (dut.result_next, dut.result_next_tile),
    }
    for name in "ab":
        options = [
            (chosen[n] & dut.reads_next[n][name], dut.reads_next[n][f"{name}_tile"])
            for n in range(len(chosen))
        ]
        tile_next = Value.cast(0)
        for valid, tile_of in options:
            tile_next = Mux(valid, tile_of, tile_next)
        nexts[name] = Cat(valid for valid, _ in options).any(), tile_next
    for name, (comes, tile_next) in nexts.items():
        port = getattr(dut, name)
        told = p.past(comes, f"{name}_told")
        told_tile = p.past(tile_next, f"{name}_told_tile")
        p.assume(f"{name}_told", port.valid == told)
        p.assume(f"{name}_told_where", ~told | (port.addr.tile == told_tile))
        p.check(f"{name}_hits", inside(f"{name}_hits") == Mux(told, 1 << bank(told_tile), 0))

    # -- the byte as writes leave it -----------------------------------------------------------
    result, load = dut.result, dut.load
    to_word = p.signal(
        result.valid & (result.addr.tile == tile) & (result.addr.block == block), "result_here"
    )
    loaded = p.signal(
        load.valid & load.ready & (load.payload.tile == tile) & (load.payload.block == block),
        "load_here",
    )
    known, last = Signal(name="known"), Signal(8, name="last_write")
    by_result = p.signal(to_word & result.mask.bit_select(in_word, 1), "by_result")
    by_load = p.signal(
        loaded & load.payload.rows.bit_select(in_block, 1) & load.payload.mask.bit_select(byte, 1),
        "by_load",
    )
    with m.If(by_result):
        m.d.sync += [known.eq(1), last.eq(result.data.word_select(in_word, 8))]
    with m.If(by_load):
        m.d.sync += [known.eq(1), last.eq(load.payload.data.word_select(byte, 8))]
    p.check("one_write", ~(by_result & by_load))
    meets = p.signal(to_word | loaded, "meets")

    # -- reads -----------------------------------------------------------------------------------
    reads = {"a": dut.a, "b": dut.b, "c": dut.c, "move": dut.move, "store": dut.store}
    for name, port in reads.items():
        if name == "store":
            here = (port.addr.tile == tile) & (port.addr.row == row)
            got = port.data.word_select(byte, 8)
        else:
            here = (port.addr.tile == tile) & (port.addr.block == block)
            got = port.data.word_select(in_word, 8)
        granted = p.signal(port.valid & port.ready & here, f"{name}_granted")
        comes, expected = granted & known & ~meets, last
        for stage in range(cfg.read_latency):
            comes = p.past(comes, f"{name}_comes{stage}")
            expected = p.past(expected, f"{name}_expected{stage}")
        p.check(f"{name}_is_last_write", ~comes | (got == expected))
        p.cover(f"{name}_returns", comes & (expected == 0xA5))

    # -- priorities ------------------------------------------------------------------------------
    def before(port, others) -> Value:
        """How many others want the bank of a port."""
        same = [o.valid & (bank(o.addr.tile) == bank(port.addr.tile)) for o in others]
        total = Value.cast(0)
        for other in same:
            total = total + other
        return total

    p.check("c_never_waits", dut.c.ready)
    p.check("a_never_waits", dut.a.ready)
    b_fits = before(dut.b, (dut.c, dut.a)) < 2
    p.check("b_waits_for_c_and_a", ~dut.b.valid | (dut.b.ready == b_fits))
    p.check("b_waits_only_if_it_asks", dut.b.valid | dut.b.ready)
    move_fits = before(dut.move, (dut.c, dut.b, dut.store)) < 2
    p.check("move_waits_for_two", ~dut.move.valid | (dut.move.ready == move_fits))
    store_fits = before(dut.store, (dut.c, dut.a, dut.b)) < 2
    p.check("store_waits_for_two", ~dut.store.valid | (dut.store.ready == store_fits))
    busy = result.valid & (bank(result.addr.tile) == bank(load.payload.tile))
    p.check("load_waits_for_result", ~load.valid | (load.ready == ~busy))
    p.cover("all_in_one_bank", dut.store.valid & ~dut.store.ready & ~dut.b.ready & dut.b.valid)
    p.cover("load_lost", load.valid & ~load.ready)

    # Both copies in the bank hold the byte, behind the registers that may lie before them.
    if cfg.tile_memory == "block":
        known, last = p.past(known, "known_inside"), p.past(last, "last_inside")
    depth = cfg.tiles_per_bank * cfg.blocks
    low_bits = cfg.tiles_log2 - cfg.banks_log2
    address = p.signal(Cat(block[: cfg.blocks_log2], tile[:low_bits]), "address")
    for number in range(cfg.all_banks):
        for copy in range(2):
            memory = inside.part(f"bank{number}").part(f"copy{copy}")
            words = Cat(memory(f"word{n}") for n in range(depth))
            held = words.word_select(address, cfg.word_bits).word_select(in_word, 8)
            mine = bank(tile) == number
            p.check(f"bank{number}_copy{copy}", ~(known & mine) | (held == last))
    return p


_STALL = 3
"""Cycles that an operand read may wait, in the model of MAC issue."""


def fairness(cfg: Config, depth: int) -> Proof:
    """A load write that waits gets the result port in a bounded time, however busy the MAC is.

    MAC issue, its pipeline and the move unit are models that write whenever they may; the
    15-cycle rule is the design's.
    """
    p = Proof()
    m = p.m
    dut = Fairness(cfg, mac_depth=depth)
    inside = p.add("fairness", dut)
    wants, issues, reads = (p.any(1, n) for n in ("load_wants", "mac_issues", "operands_read"))
    moves, others = p.any(1, "move_wants"), p.any(2, "others_wait")

    full = Signal(name="issue_full")
    go = p.signal(full & reads, "mac_go")
    grant = p.signal(issues & (~full | reads) & ~dut.skip, "mac_grant")
    stalled = Signal(range(_STALL + 1), name="stalled")
    with m.If(reads):
        m.d.sync += full.eq(0)
    with m.If(grant):
        m.d.sync += full.eq(1)
    with m.If(full & ~reads):
        m.d.sync += stalled.eq(stalled + 1)
    with m.Else():
        m.d.sync += stalled.eq(0)
    p.assume("operands_come", ~full | reads | (stalled != _STALL))
    mac = Signal(depth, name="mac_pipe")
    m.d.sync += mac.eq(Cat(go, mac[:-1]))
    move_stages = 3
    move = Signal(move_stages, name="move_pipe")
    move_go = moves & ~mac[-1 - move_stages] & ~dut.load_starved
    m.d.sync += move.eq(Cat(move_go, move[:-1]))
    p.check("one_result", ~(mac[-1] & move[-1]))
    port_busy = p.signal(mac[-1] | move[-1], "port_busy")
    lost = p.signal(wants & port_busy, "load_lost")
    was_lost = p.past(lost, "was_lost")
    p.assume("load_holds", ~was_lost | wants)
    m.d.comb += [
        dut.waiting.eq(Cat(lost, others)),
        dut.skipped.eq(dut.skip & (~full | reads)),
    ]
    bound = PATIENCE + _STALL + 1 + depth + 1
    waits = Signal(range(2 * bound), name="waits")
    with m.If(~lost):
        m.d.sync += waits.eq(0)
    with m.Elif(waits != 2 * bound - 1):
        m.d.sync += waits.eq(waits + 1)
    p.check("load_is_served", waits <= bound)
    p.check("skip_holds", ~p.past(dut.skip & ~dut.skipped, "skip_waits") | dut.skip)
    count = inside("load_lost")
    again = PATIENCE + depth
    due = p.signal(Mux(waits <= again, waits, PATIENCE + (waits - again - 1)), "count_due")
    p.check("counted", count == p.past(due, "count_due_before"))
    p.check("waited", inside("load_waited") == was_lost)
    p.cover("starved", lost & (waits == PATIENCE + 2))
    p.cover("served_after_starving", ~lost & wants & (waits > PATIENCE))
    p.cover("skipped", dut.skipped)
    return p


_FILE = Config(tiles=4, rows=4, row_bits=64, bus_bits=64, banks=2, m_par=2, n_par=1)
_FAIR_DEPTH = 6

TASKS = (
    Task(
        name="tile_file",
        about="reads return the last write of any byte; priorities",
        parameters="4 tiles, rows 4 x 64 bit, words of 2 rows, 2 banks",
        build=lambda: tile_file(_FILE),
        depth=2,
        cover=5,
        quick=True,
    ),
    Task(
        name="tile_file_split",
        about="the same with a C file",
        parameters="2 x 4 tiles, rows 2 x 64 bit, words of 2 rows, 2 x 2 banks",
        build=lambda: tile_file(_FILE.replace(accumulators="split", rows=2)),
        depth=2,
        cover=5,
    ),
    Task(
        name="tile_file_block",
        about="the same with registers round the memories, as for block RAM",
        parameters="4 tiles, rows 2 x 64 bit, words of 2 rows, 2 banks",
        build=lambda: tile_file(_FILE.replace(rows=2, tile_memory="block")),
        depth=5,
        cover=7,
    ),
    Task(
        name="fairness",
        about="a load write is served in a bounded time; MAC and moves as models",
        parameters=f"MAC depth {_FAIR_DEPTH}, operand reads wait {_STALL} cycles at most",
        build=lambda: fairness(_FILE, _FAIR_DEPTH),
        depth=PATIENCE + _STALL + _FAIR_DEPTH + 6,
        cover=PATIENCE + _STALL + _FAIR_DEPTH + 8,
    ),
)


MUTANTS = (
    *mutants(
        "hdl/tilefile/file.py",
        "tile_file",
        (
            "a store is not seen by a move",
            'places["move"] & two_of(b, c, store)',
            'places["move"] & b & c',
        ),
        (
            "B is not told of C",
            "(a_next & b_next & c_next).any()",
            "0",
        ),
        (
            "who is not chosen reads all the same",
            "Mux(self.reads_chosen[index], option, 0)",
            "Mux(index == 0, option, 0)",
        ),
        (
            "B beside C takes the data of port 0",
            'Cat((places["b"] & (a | c)).any(),',
            'Cat((places["b"] & a).any(),',
        ),
        (
            "a lost store takes the port",
            '"on_1_high": full[index]',
            '"on_1_high": full[index] & ~store_here',
        ),
        (
            "a load writes into the word of the result",
            "self.load.ready.eq(~(result_hits & load_place).any())",
            "self.load.ready.eq(1)",
        ),
        (
            "a load writes every row of the word",
            "load.mask & row.replicate(cfg.row_bytes)",
            "load.mask",
        ),
        (
            "the bank of the data is that of the next address",
            'copies(m, f"{name}_source", source, count)',
            "[source] * count",
        ),
    ),
    *mutants(
        "hdl/tilefile/bank.py",
        "tile_file",
        (
            "the second copy is never written",
            "write.en.eq(self.write_mask)",
            "write.en.eq(self.write_mask if port == 0 else 0)",
        ),
        (
            "both ports read at the address of the first",
            'getattr(self, f"read{port}_addr")',
            "self.read0_addr",
        ),
        (
            "a write changes every byte of its word",
            "write.en.eq(self.write_mask)",
            "write.en.eq(self.write_mask.any().replicate(len(self.write_mask)))",
        ),
    ),
    *mutants(
        "hdl/tilefile/file.py",
        "tile_file_block",
        (
            "data are written a cycle before their mask",
            'self._at_memory(m, "result_data", result.data)',
            "result.data",
        ),
        (
            "a move's data come from where the next A lies",
            'self._later(m, "a_reads", self.a.valid, age)',
            "self.a.valid",
        ),
    ),
    *mutants(
        "hdl/issue/fairness.py",
        "fairness",
        (
            "a starving load does not skip a uop",
            "due[index].eq(waiting & at_end)",
            "due[index].eq(0)",
        ),
        (
            "moves take the gap of a starving load",
            "self.load_starved.eq(waiting & waited & (lost >= PATIENCE - 2))",
            "self.load_starved.eq(0)",
        ),
        ("a skip is forgotten at once", "with m.If(self.skipped):", "with m.If(self.skip):"),
        depth=42,
    ),
)
