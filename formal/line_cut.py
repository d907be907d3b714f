"""Proof of the cut at line borders: the parts of a row, and what they promise."""

from __future__ import annotations

from amaranth.hdl import Cat, Signal, Value

from hdl.config import Config
from hdl.interfaces import ldst_uop
from hdl.issue.line_cut import LineCut

from .harness import Proof
from .task import Task, mutants

__all__ = ["MUTANTS", "TASKS"]


def line_cut(cfg: Config) -> Proof:
    """Every byte of a row comes once, in order, in parts that cross no line.

    Rows are any, as `ldst_split` shows that they come: whole, each offered until it is taken, and
    a promised one lies just behind the one before.
    """
    p = Proof()
    dut = LineCut(cfg)
    inside = p.add("line_cut", dut, free=True)
    m = p.m
    row, part = dut.i.payload, dut.o.payload
    addr_bits = cfg.addr_bits
    line, bus = cfg.line_bytes_log2, cfg.bus_bytes_log2
    step = p.signal(dut.o.valid & dut.o.ready, "step")
    taken = p.signal(dut.i.valid & dut.i.ready, "taken")

    # The rows.
    waits = p.past(dut.i.valid & ~dut.i.ready, "row_waited")
    same_row = Value.cast(row) == p.past(Value.cast(row), "row_before")
    p.assume("row_waits", ~waits | (dut.i.valid & same_row))
    p.assume("whole_row", ~dut.i.valid | ((row.first == 0) & row.tail))
    end = (row.addr[: cfg.line_bytes_log2] + row.last)[: cfg.line_bytes_log2 + 1]
    p.assume("crosses", dut.crosses == (~row.zero & end[cfg.line_bytes_log2]))
    p.assume("zeros_promise_nothing", ~row.zero | ~row.more)
    row_more, row_addr = Signal(name="row_more"), Signal(addr_bits, name="row_addr")
    with m.If(taken):
        m.d.sync += [row_more.eq(row.more), row_addr.eq(row.addr)]
    behind = (row_addr + cfg.row_bytes)[:addr_bits]
    p.assume("promised_row", ~(dut.i.valid & row_more) | (~row.zero & (row.addr == behind)))

    # The parts, by the one before. It is of the same row unless that ended with it.
    over = Signal(name="over", init=1)
    before = Signal(ldst_uop(cfg), name="part_before")
    with m.If(step):
        m.d.sync += [over.eq(part.last == row.last), before.eq(part)]
        with m.If(row.zero):
            m.d.sync += over.eq(1)
    moves = p.signal(dut.o.valid & ~row.zero, "moves")
    whole = p.signal(part.last == row.last, "whole")
    offset = part.addr[:line]
    p.check("offered", dut.o.valid == dut.i.valid)
    p.check("taken_with_the_last", taken == (step & dut.last))
    p.check("last", ~dut.o.valid | (dut.last == (whole | row.zero)))
    p.check("starts", ~(moves & over) | (part.first == 0))
    p.check("goes_on", over | (moves & (part.first == (before.last + 1))))
    p.check("inside", ~moves | ((part.first <= part.last) & (part.last <= row.last)))
    p.check("address", ~moves | (part.addr == (row.addr + part.first)[:addr_bits]))
    p.check("no_line_crossed", ~moves | ((offset + (part.last - part.first)) < cfg.line_bytes))
    p.check(
        "cut_only_at_lines",
        ~moves | whole | ((offset + (part.last - part.first)) == cfg.line_bytes - 1),
    )
    p.check("tail", ~moves | ((part.tail == whole) & (part.half == (whole & row.half))))
    kept = ("tile", "row", "zero", "rows")
    p.check(
        "the_rest_stays",
        ~dut.o.valid | (Cat(part[name] for name in kept) == Cat(row[name] for name in kept)),
    )
    p.check("zeros_stay", ~(dut.o.valid & row.zero) | (Value.cast(part) == Value.cast(row)))

    # What is promised comes, and all that may be is promised.
    def beats(addr: Value, more: int = 0) -> Value:
        return ((addr >> bus) + more)[: addr_bits - bus]

    end = (before.addr + (before.last - before.first))[:addr_bits]
    promised = p.signal(dut.o.valid & before.more & over, "promised")
    p.check("promise_at_the_end", over | ~before.more)
    p.check(
        "promise_is_kept",
        ~promised
        | (
            moves
            & (part.first == 0)
            & (part.addr == behind)
            & (part.addr >> line == end >> line)
            & ((beats(part.addr) == beats(end)) | (beats(part.addr) == beats(end, 1)))
        ),
    )
    next_row = (row.addr + cfg.row_bytes)[:addr_bits]
    here_end = (part.addr + (part.last - part.first))[:addr_bits]
    near = (beats(next_row) == beats(here_end)) | (beats(next_row) == beats(here_end, 1))
    in_line = next_row >> line == here_end >> line
    p.check("all_is_promised", ~moves | (part.more == (row.more & whole & in_line & near)))

    p.check("second", inside("second") == ~over)
    p.check(
        "first_part",
        over
        | (
            dut.i.valid
            & ~row.zero
            & (before.first == 0)
            & (before.addr == row.addr)
            & (before.last < row.last)
            & ((before.addr[:line] + before.last) == cfg.line_bytes - 1)
            & ~before.more
        ),
    )
    p.check("promise_of_the_row", ~(over & before.more) | row_more)
    last_part = (before.addr + before.last - before.first)[:addr_bits]
    row_end = (row_addr + before.last)[:addr_bits]
    near = (beats(behind) == beats(row_end)) | (beats(behind) == beats(row_end, 1))
    p.check(
        "promised_near",
        ~(over & before.more)
        | ((last_part == row_end) & near & (behind >> line == row_end >> line)),
    )
    p.cover("second_part", step & ~over & (part.last == 3))
    p.cover("burst", p.past(promised & step & ~whole, "was_promised") & ~over & row.more)
    p.cover("zeros", dut.o.valid & row.zero & p.past(~over, "was_second"))
    return p


_NARROW = Config(tiles=8, rows=4, row_bits=64, bus_bits=64, banks=2, m_par=2, n_par=1, addr_bits=16)

TASKS = (
    Task(
        name="line_cut",
        about="every byte of a row once, no line crossed, promises are kept",
        parameters="8 tiles, rows 4 x 64 bit, bus of 8 bytes, lines of 64 bytes",
        build=lambda: line_cut(_NARROW),
        depth=2,
        cover=8,
        quick=True,
    ),
    Task(
        name="line_cut_wide",
        about="the same where a row takes two beats",
        parameters="rows of 32 bytes, bus of 16 bytes, lines of 64 bytes",
        build=lambda: line_cut(Config(row_bits=256)),
        depth=2,
        cover=8,
    ),
)
MUTANTS = mutants(
    "hdl/issue/line_cut.py",
    "line_cut_wide",
    (
        "a burst is promised over a beat",
        "                & ((after >> bus_log2) <= (end >> bus_log2) + 1)\n",
        "",
    ),
) + mutants(
    "hdl/issue/line_cut.py",
    "line_cut",
    (
        "a part may end a byte behind the line",
        "room.eq(cfg.line_bytes - offset)",
        "room.eq(cfg.line_bytes - offset + 1)",
    ),
    ("the second part starts at the row's first byte", "Mux(second, room, 0)", "0"),
    ("the second part lies in the same line", "((line + 1) << line_log2)", "(line << line_log2)"),
    ("the first part is the row's tail", "part.tail.eq(self.last)", "part.tail.eq(1)"),
    (
        "a burst is promised across the line",
        "                & (second | ~after[line_log2])\n",
        "",
    ),
    (
        "the second part is offered again",
        "second.eq(~self.last)",
        "second.eq(self.crosses)",
    ),
)
