"""The board's end of the frames of `protocol`: one request at a time, each answered."""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import crc, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from .l2 import L2Memory
from .protocol import (
    CRC_INIT,
    ENTRY_BYTES,
    HEAD_BYTES,
    MAX_BODY,
    REQUEST_MARK,
    RESPONSE_MARK,
    RESULT_BYTES,
    Op,
    RunState,
    Status,
)
from .sequencer import Sequencer

__all__ = ["SILENCE_BYTES", "Link"]

_CRC = crc.Algorithm(
    crc_width=16,
    polynomial=0x1021,
    initial_crc=CRC_INIT,
    reflect_input=False,
    reflect_output=False,
    xor_output=0,
)
_RESET_CYCLES = 16
SILENCE_BYTES = 256
"""A request whose next byte does not come for so many bytes' time is forgotten."""


_PARTS = ("mark", "head", "body", "check")
"""Of a frame."""
_CHOICE_CYCLES = max(L2Memory.BYTE_LATENCY, Sequencer.BYTE_LATENCY) + 2
"""From a byte that goes to the next one: its address, where it lies, and two registers."""


class Link(wiring.Component):
    """Reads requests from a line, does them, and sends the answers.

    Bytes that come while a request is done or answered are lost: a PC waits for the answer.

    Parameters
    ----------
    info : what INFO answers, up to `protocol.MAX_BODY` bytes.
    l2_log2 : log2 of the bytes of L2 memory.
    depth_log2 : log2 of the instructions of the program memory.
    divisor : clock cycles of a bit of the line.

    Members
    -------
    byte_valid, byte : what comes from the line. `byte` stays until the next, which comes
        `BYTE_CYCLES` later at least.
    bytes : what goes onto it.
    l2_* : the PC's side of `L2Memory`.
    entry*, start, count, run, last_run, running, responses, cycles, result_* : of `Sequencer`.
    core_reset : reset everything but this link and memory's content.
    idle : no request is on its way.
    """

    BYTE_CYCLES = 8

    def __init__(self, info: bytes, *, l2_log2: int, depth_log2: int, divisor: int):
        if not 0 < len(info) <= MAX_BODY:
            raise ValueError(f"info has {len(info)} bytes: use 1 to {MAX_BODY}")
        self.info = info
        self.l2_log2 = l2_log2
        self.depth_log2 = depth_log2
        self.divisor = divisor
        self.result_log2 = depth_log2 + RESULT_BYTES.bit_length() - 1
        super().__init__(
            {
                "byte_valid": In(1),
                "byte": In(8),
                "bytes": Out(stream.Signature(8)),
                "l2_addr": Out(l2_log2),
                "l2_write": Out(1),
                "l2_in": Out(8),
                "l2_select": Out(1),
                "l2_out": In(8),
                "entry": Out(8 * ENTRY_BYTES),
                "entry_addr": Out(depth_log2),
                "entry_write": Out(1),
                "start": Out(1),
                "count": Out(depth_log2 + 1),
                "run": Out(32),
                "last_run": In(32),
                "running": In(1),
                "responses": In(depth_log2 + 1),
                "cycles": In(32),
                "result_addr": Out(self.result_log2),
                "result_byte": In(8),
                "core_reset": Out(1),
                "idle": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.crc = check = _CRC(data_width=8).create()
        info = Memory(shape=8, depth=len(self.info), init=list(self.info))
        m.submodules.info = info
        info_read = info.read_port()

        # -- a frame, byte by byte ---------------------------------------------------------------
        # Whatever a byte does is decided before it is there: all that `step` meets are registers,
        # some of them a few cycles behind what they tell of.
        answering = Signal()  # the frame goes to the PC, otherwise it comes from there
        step = Signal()  # a byte of it has come or gone
        mark, head, body, tail = parts = [Signal(name=f"in_{name}") for name in _PARTS]
        place = Signal(16)  # of the byte in its part
        after = Signal(16)
        whole = Signal()
        ends = Signal()  # the byte is the last of its part
        code = Signal(8)
        number = Signal(8)
        length = Signal(16)
        empty = Signal()
        too_long = Signal()
        status = Signal(Status)
        fault = Signal(Status)  # what the request's status will be
        before = Signal(8, reset_less=True)  # the byte before
        marked = Signal()
        right = Signal()
        longest = SILENCE_BYTES * 10 * self.divisor
        silence = Signal(range(longest + 1))
        silent = Signal()
        done = Signal()  # a request is here and has its status
        m.d.sync += [
            step.eq(Mux(answering, self.bytes.valid & self.bytes.ready, self.byte_valid)),
            after.eq(place + 1),
            whole.eq(after == length),
            ends.eq((head & (place == HEAD_BYTES - 1)) | (body & whole) | (tail & place[0])),
            empty.eq(length == 0),
            too_long.eq(length > MAX_BODY),
            marked.eq(self.byte == REQUEST_MARK),
            right.eq(Cat(before, self.byte) == check.crc),
            silent.eq(silence == longest),
        ]
        with m.FSM(name="part") as fsm:
            with m.State("mark"):
                m.d.comb += self.idle.eq(~(answering | self.byte_valid | step | self.bytes.valid))
                with m.If(step & (answering | marked)):
                    m.next = "head"
            with m.State("head"):
                with m.If(silent):
                    m.next = "mark"
                with m.If(step & ends):
                    m.next = "body"
            with m.State("body"):
                with m.If(silent | (body & too_long)):  # the length is damaged
                    m.next = "mark"
                with m.Elif((step & ends) | (body & empty)):
                    m.next = "check"
            with m.State("check"):
                with m.If(silent):
                    m.next = "mark"
                with m.If(step & ends):
                    m.next = "mark"
                    with m.If(answering):
                        m.d.sync += answering.eq(0)
                    with m.Elif(right):
                        m.next = "do"
                    with m.Else():
                        m.d.sync += [status.eq(Status.CHECKSUM), answering.eq(1)]
            with m.State("do"):
                m.d.sync += [status.eq(fault), answering.eq(1)]
                m.next = "mark"
        m.d.sync += [part.eq(fsm.ongoing(name)) for part, name in zip(parts, _PARTS, strict=True)]
        m.d.sync += done.eq(fsm.ongoing("do"))
        with m.If(mark):
            m.d.sync += place.eq(0)
        with m.Elif(step):
            m.d.sync += place.eq(Mux(ends, 0, after))
        with m.If(step):
            m.d.sync += before.eq(self.byte)
        with m.If(mark | answering | step):
            m.d.sync += silence.eq(0)
        with m.Else():
            m.d.sync += silence.eq(silence + 1)

        # -- what comes: the head, two parameters, and what is moved at once -----------------------
        low = Signal(32, reset_less=True)
        high = Signal(32, reset_less=True)
        to_low, to_high, moves = Signal(), Signal(), Signal()  # where a byte of the body belongs
        address = Signal(32, reset_less=True)  # of the next byte or entry that is moved
        entry = Signal(8 * ENTRY_BYTES, reset_less=True)
        entry_byte = Signal(range(ENTRY_BYTES))
        entry_ends = Signal()
        entry_step = Signal()  # a byte of an entry is there
        due = Signal()  # a byte for memory, or the last one of an entry, is there
        misses = Signal()
        outside = Signal()  # something did not fit
        disturbs = Signal()  # a program ran when something was to be written
        rests = Signal()  # none runs, nor did

        def doing(*ops: Op) -> Signal:
            """A register: the request is one of these."""
            found = Signal(name="doing_" + "_".join(op.name.lower() for op in ops))
            m.d.sync += found.eq(Cat(code == op for op in ops).any())
            return found

        reading, reading_results = doing(Op.READ), doing(Op.RESULTS)
        writing, programming = doing(Op.WRITE), doing(Op.PROGRAM)
        starting, resetting = doing(Op.START), doing(Op.RESET)
        with m.If(step & head & ~answering):
            m.d.sync += Cat(code, number, length).eq(Cat(number, length, self.byte))
        with m.If(mark & ~answering):
            m.d.sync += low.eq(0)
        with m.Elif(step & to_low):
            m.d.sync += low.eq(Cat(low[8:], self.byte))
        with m.If(step & to_high):
            m.d.sync += high.eq(Cat(high[8:], self.byte))
        coming = body & ~answering
        m.d.sync += [
            to_low.eq(coming & (place[2:] == 0)),
            to_high.eq(coming & (place[2:] == 1)),
            moves.eq(coming & (place[2:] != 0)),
            rests.eq(~(self.running | disturbs)),
            entry_ends.eq(entry_byte == ENTRY_BYTES - 1),
            entry_step.eq(step & moves & programming),
            due.eq(step & moves & (writing | (programming & entry_ends))),
            misses.eq(
                Mux(writing, address[self.l2_log2 :].any(), address[self.depth_log2 :].any())
            ),
            self.l2_in.eq(self.byte),
            self.l2_write.eq(due & writing & ~misses & rests),
            self.entry_write.eq(due & programming & ~misses & rests),
        ]
        m.d.comb += [
            self.entry.eq(entry),
            self.entry_addr.eq(address),
            self.l2_addr.eq(address),
            self.result_addr.eq(address),
            info_read.addr.eq(address),
            info_read.en.eq(1),
        ]
        with m.If(entry_step):
            m.d.sync += [
                entry.eq(Cat(entry[8:], self.byte)),
                entry_byte.eq(Mux(entry_ends, 0, entry_byte + 1)),
            ]
        with m.If(due):
            m.d.sync += [outside.eq(outside | misses), disturbs.eq(disturbs | ~rests)]
        with m.If(mark):
            m.d.sync += [entry_byte.eq(0), outside.eq(0), disturbs.eq(0)]
        # The address moves on behind a write. An answer without parameters counts from 0.
        with m.If(self.l2_write | self.entry_write | (step & body & answering)):
            m.d.sync += address.eq(address + 1)
        with m.Elif(head | to_low):
            m.d.sync += address.eq(low)

        # -- what becomes of it, found out while the checksum comes --------------------------------
        bare = doing(Op.INFO, Op.STATUS, Op.RESET)
        pair = doing(Op.READ, Op.RESULTS, Op.START)
        needs_rest = doing(Op.READ, Op.WRITE, Op.PROGRAM, Op.START, Op.RESULTS)
        of_eight, of_four = Signal(), Signal()  # bytes, of four or more
        unknown = Signal()
        misfit = Signal()  # of its length, or in what came
        same_run = Signal()
        again = Signal()
        none, many, much = Signal(), Signal(), Signal()
        end = Signal(33, reset_less=True)
        far, far_result = Signal(), Signal()
        beyond = Signal()  # what it names is not there
        m.d.sync += [
            of_eight.eq(length == 8),
            of_four.eq(length >= 4),
            unknown.eq(code > max(Op)),
            misfit.eq(
                outside
                | (bare & ~empty)
                | (pair & ~of_eight)
                | ((writing | programming) & ~of_four)
                | (programming & (entry_byte != 0))
            ),
            same_run.eq(high == self.last_run),
            again.eq(starting & same_run),
            none.eq(low == 0),
            many.eq(low > 1 << self.depth_log2),
            much.eq(high > MAX_BODY),
            end.eq(low + high),
            far.eq(end > 1 << self.l2_log2),
            far_result.eq(end > 1 << self.result_log2),
            beyond.eq(
                (starting & (none | many))
                | (reading & (much | far))
                | (reading_results & (much | far_result))
            ),
            fault.eq(Status.OK),
        ]
        with m.If(unknown):
            m.d.sync += fault.eq(Status.UNKNOWN)
        with m.Elif(misfit):
            m.d.sync += fault.eq(Status.RANGE)
        with m.Elif(~rests & needs_rest & ~again):
            m.d.sync += fault.eq(Status.BUSY)
        with m.Elif(beyond):
            m.d.sync += fault.eq(Status.RANGE)
        held = Signal(8 * RunState.SIZE, reset_less=True)  # all of it from one cycle
        reset_left = Signal(range(_RESET_CYCLES))
        m.d.comb += [self.count.eq(low), self.run.eq(high), self.core_reset.eq(reset_left != 0)]
        m.d.sync += self.start.eq(done & starting & ~again & (status == Status.OK))
        with m.If(done):
            m.d.sync += held.eq(
                Cat(
                    self.last_run,
                    Cat(self.running, Const(0, 31)),
                    _wide(self.responses),
                    self.cycles,
                )
            )
        with m.If(done & resetting & (status == Status.OK)):
            m.d.sync += reset_left.eq(_RESET_CYCLES - 1)
        with m.Elif(reset_left != 0):
            m.d.sync += reset_left.eq(reset_left - 1)

        # -- its answer: a byte is chosen while the one before it goes -----------------------------
        size = Signal(16)  # of the body of an answer without fault
        lane = Signal(range(RunState.SIZE), reset_less=True)
        out = Signal(8)
        pause = Signal(range(_CHOICE_CYCLES + 1))
        fill = Signal()
        info_byte, status_byte, head_byte, body_byte, next_byte = (
            Signal(8, name=f"{name}_byte", reset_less=True)
            for name in ("info", "status", "head", "body", "next")
        )
        m.d.sync += [
            size.eq(0),
            lane.eq(address),
            info_byte.eq(info_read.data),
            status_byte.eq(held.word_select(lane, 8)),
            head_byte.eq(
                Cat(status, Const(0, 8 - len(status)), number, length).word_select(place[:2], 8)
            ),
        ]
        for asked, answer_size, answer_byte in (
            (doing(Op.INFO), len(self.info), info_byte),
            (doing(Op.STATUS), RunState.SIZE, status_byte),
            (reading, high, self.l2_out),
            (reading_results, high, self.result_byte),
        ):
            with m.If(asked):
                m.d.sync += [size.eq(answer_size), body_byte.eq(answer_byte)]
        with m.If(mark):
            m.d.sync += next_byte.eq(RESPONSE_MARK)
        with m.Elif(head):
            m.d.sync += next_byte.eq(head_byte)
        with m.Elif(body):
            m.d.sync += next_byte.eq(body_byte)
        with m.Else():
            m.d.sync += next_byte.eq(check.crc.word_select(place[0], 8))
        with m.If(mark & answering):
            m.d.sync += length.eq(Mux(status == Status.OK, size, 0))
        with m.If(step | ~answering):
            m.d.sync += pause.eq(_CHOICE_CYCLES)
        with m.Elif(pause != 0):
            m.d.sync += pause.eq(pause - 1)
        with m.If(self.bytes.ready):
            m.d.sync += self.bytes.valid.eq(0)
        with m.If(fill):
            m.d.sync += [out.eq(next_byte), self.bytes.valid.eq(1)]
        counted = Signal()  # one cycle behind `step`
        counted_byte = Signal(8, reset_less=True)
        m.d.comb += [
            self.bytes.payload.eq(out),
            check.start.eq(mark),
            check.valid.eq(counted),
            check.data.eq(counted_byte),
        ]
        m.d.sync += [
            fill.eq(answering & (pause == 1)),
            # Not while a program runs: then the core reads.
            self.l2_select.eq(answering & reading & (status == Status.OK)),
            counted.eq(step & (head | body)),
            counted_byte.eq(Mux(answering, out, self.byte)),
        ]
        return m


def _wide(value: Signal) -> object:
    """`value` in 32 bits."""
    return Cat(value, Const(0, 32 - len(value)))
