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


_RECEIVING = ("HEAD", "BODY", "CHECK")
"""States that wait for a byte of a request."""


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
    byte_valid, byte : what comes from the line.
    bytes : what goes onto it.
    l2_* : the PC's side of `L2Memory`.
    entry*, start, count, run, last_run, running, responses, cycles, result_* : of `Sequencer`.
    core_reset : reset everything but this link and memory's content.
    idle : no request is on its way.
    """

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

        code = Signal(8)
        number = Signal(8)
        length = Signal(16)
        place = Signal(16)  # byte of the head, the body or the checksum
        params = Signal(64, reset_less=True)
        status = Signal(Status)
        address = Signal(32, reset_less=True)  # of the next byte that is moved
        wait = Signal(range(8))
        resetting = Signal(range(_RESET_CYCLES))
        longest = SILENCE_BYTES * 10 * self.divisor
        silence = Signal(range(longest + 1))
        silent = Signal()
        low, high = params[:32], params[32:]

        def is_op(*ops: Op) -> object:
            return Cat(code == op for op in ops).any()

        m.d.comb += [
            check.data.eq(self.byte),
            self.l2_addr.eq(address),
            self.result_addr.eq(address),
            info_read.addr.eq(address),
            info_read.en.eq(1),
            self.core_reset.eq(resetting != 0),
            silent.eq(silence == longest),
        ]
        with m.If(resetting != 0):
            m.d.sync += resetting.eq(resetting - 1)

        # -- what is moved while the body comes -----------------------------------------------
        entry = Signal(8 * ENTRY_BYTES, reset_less=True)
        entry_byte = Signal(range(ENTRY_BYTES))
        entry_addr = Signal(32, reset_less=True)
        outside = Signal()  # something did not fit
        body = Signal()  # a byte of the body comes
        moved = Signal()  # behind the first parameter
        m.d.comb += [
            moved.eq(body & (place >= 4)),
            self.entry.eq(entry),
            self.entry_addr.eq(entry_addr),
        ]
        m.d.sync += [
            self.start.eq(0),
            self.l2_write.eq(0),
            self.entry_write.eq(0),
            self.l2_in.eq(self.byte),
        ]
        # The address moves on behind the write, which is registered.
        with m.If(self.l2_write):
            m.d.sync += address.eq(address + 1)
        with m.If(self.entry_write):
            m.d.sync += entry_addr.eq(entry_addr + 1)
        with m.If(moved):
            m.d.sync += entry.eq(Cat(entry[8:], self.byte))
            with m.If(is_op(Op.WRITE)):
                with m.If(address[self.l2_log2 :].any()):
                    m.d.sync += outside.eq(1)
                with m.Elif(~self.running):
                    m.d.sync += self.l2_write.eq(1)
            with m.If(is_op(Op.PROGRAM)):
                with m.If(entry_byte != ENTRY_BYTES - 1):
                    m.d.sync += entry_byte.eq(entry_byte + 1)
                with m.Else():
                    m.d.sync += entry_byte.eq(0)
                    with m.If(entry_addr[self.depth_log2 :].any()):
                        m.d.sync += outside.eq(1)
                    with m.Elif(~self.running):
                        m.d.sync += self.entry_write.eq(1)
        with m.If(body):
            with m.If(place < 8):
                m.d.sync += params.word_select(place[:3], 8).eq(self.byte)
            with m.If(place == 3):
                m.d.sync += [
                    address.eq(Cat(params[:24], self.byte)),
                    entry_addr.eq(Cat(params[:24], self.byte)),
                ]

        # -- what a request asks for, once it is here ------------------------------------------
        size = Signal(16)  # bytes that are answered
        fault = Signal(Status)
        reads = {Op.READ: self.l2_log2, Op.RESULTS: self.result_log2}
        long_enough = Signal()
        with m.Switch(code):
            for op, needed in (
                (Op.INFO, 0),
                (Op.STATUS, 0),
                (Op.RESET, 0),
                (Op.READ, 8),
                (Op.RESULTS, 8),
                (Op.START, 8),
            ):
                with m.Case(op):
                    m.d.comb += long_enough.eq(length == needed)
            with m.Case(Op.WRITE):
                m.d.comb += long_enough.eq(length >= 4)
            with m.Case(Op.PROGRAM):
                m.d.comb += long_enough.eq((length >= 4) & (entry_byte == 0))
        # Found out while the checksum comes, so that it is known when the request is done.
        again = Signal()
        unknown = Signal()
        misfit = Signal()  # of its length, or in what came
        needs_rest = Signal()  # not while a program runs
        beyond = Signal()  # what it names is not there
        m.d.sync += [
            again.eq(is_op(Op.START) & (high == self.last_run)),
            unknown.eq(code > max(Op)),
            misfit.eq(~long_enough | outside),
            needs_rest.eq(is_op(Op.READ, Op.WRITE, Op.PROGRAM, Op.START, Op.RESULTS)),
            beyond.eq(is_op(Op.START) & ((low == 0) | (low > 1 << self.depth_log2))),
        ]
        end = Signal(34, reset_less=True)
        m.d.sync += end.eq(low + high)
        for op, bits in reads.items():
            with m.If(is_op(op)):
                m.d.sync += beyond.eq((high > MAX_BODY) | (end > 1 << bits))
        with m.If(unknown):
            m.d.comb += fault.eq(Status.UNKNOWN)
        with m.Elif(misfit):
            m.d.comb += fault.eq(Status.RANGE)
        with m.Elif(self.running & needs_rest & ~again):
            m.d.comb += fault.eq(Status.BUSY)
        with m.Elif(beyond):
            m.d.comb += fault.eq(Status.RANGE)
        with m.Switch(code):
            with m.Case(Op.INFO):
                m.d.comb += size.eq(len(self.info))
            with m.Case(Op.READ, Op.RESULTS):
                m.d.comb += size.eq(high)
            with m.Case(Op.STATUS):
                m.d.comb += size.eq(RunState.SIZE)

        state = Cat(
            self.last_run, Cat(self.running, Const(0, 31)), _wide(self.responses), self.cycles
        )
        held = Signal(8 * RunState.SIZE, reset_less=True)  # all of it from one cycle
        status_byte = Signal(8)
        m.d.sync += status_byte.eq(held.word_select(address[:4], 8))
        info_byte = Signal(8)
        m.d.sync += info_byte.eq(info_read.data)
        answer_byte = Signal(8)
        with m.Switch(code):
            with m.Case(Op.INFO):
                m.d.comb += answer_byte.eq(info_byte)
            with m.Case(Op.READ):
                m.d.comb += answer_byte.eq(self.l2_out)
            with m.Case(Op.RESULTS):
                m.d.comb += answer_byte.eq(self.result_byte)
            with m.Default():
                m.d.comb += answer_byte.eq(status_byte)

        m.d.comb += [self.count.eq(low), self.run.eq(high)]
        out = Signal(8)
        sent = Signal()
        m.d.comb += [self.bytes.payload.eq(out), sent.eq(self.bytes.valid & self.bytes.ready)]
        latency = max(L2Memory.BYTE_LATENCY, Sequencer.BYTE_LATENCY)

        with m.FSM(name="state") as fsm:
            with m.State("MARK"):
                m.d.comb += [self.idle.eq(~self.byte_valid & ~self.bytes.valid), check.start.eq(1)]
                m.d.sync += [place.eq(0), outside.eq(0), entry_byte.eq(0)]
                with m.If(self.byte_valid & (self.byte == REQUEST_MARK)):
                    m.next = "HEAD"
            with m.State("HEAD"):
                with m.If(silent):
                    m.next = "MARK"
                with m.If(self.byte_valid):
                    m.d.comb += check.valid.eq(1)
                    m.d.sync += [
                        Cat(code, number, length).eq(Cat(number, length, self.byte)),
                        place.eq(place + 1),
                    ]
                    with m.If(place == HEAD_BYTES - 1):
                        m.d.sync += place.eq(0)
                        with m.If(Cat(length[8:], self.byte) == 0):
                            m.next = "CHECK"
                        with m.Else():
                            m.next = "BODY"
            with m.State("BODY"):
                with m.If(silent | (length > MAX_BODY)):  # the length is damaged
                    m.next = "MARK"
                m.d.comb += body.eq(self.byte_valid)
                with m.If(self.byte_valid):
                    m.d.comb += check.valid.eq(1)
                    m.d.sync += place.eq(place + 1)
                    with m.If(place + 1 == length):
                        m.d.sync += place.eq(0)
                        m.next = "CHECK"
            with m.State("CHECK"):
                with m.If(silent):
                    m.next = "MARK"
                with m.If(self.byte_valid & (place == 0)):
                    m.d.sync += [place.eq(1), out.eq(self.byte)]
                with m.If(self.byte_valid & (place == 1)):
                    m.d.sync += place.eq(0)
                    with m.If(Cat(out, self.byte) == check.crc):
                        m.next = "DO"
                    with m.Else():
                        m.d.sync += status.eq(Status.CHECKSUM)
                        m.next = "ANSWER"
            with m.State("DO"):
                m.d.sync += [
                    status.eq(fault),
                    address.eq(Mux(is_op(*reads), low, 0)),
                    held.eq(state),
                ]
                with m.If(fault == Status.OK):
                    m.d.sync += self.start.eq(is_op(Op.START) & ~again)
                    with m.If(is_op(Op.RESET)):
                        m.d.sync += resetting.eq(_RESET_CYCLES - 1)
                m.next = "ANSWER"
            with m.State("ANSWER"):
                m.d.sync += [length.eq(Mux(status == Status.OK, size, 0)), place.eq(0)]
                m.d.comb += check.start.eq(1)
                m.d.sync += [out.eq(RESPONSE_MARK), self.bytes.valid.eq(1)]
                m.next = "SEND_MARK"
            with m.State("SEND_MARK"), m.If(sent):
                m.d.sync += [self.bytes.valid.eq(0)]
                m.next = "SEND_HEAD"
            with m.State("SEND_HEAD"):
                with m.If(~self.bytes.valid):
                    head = Signal(8 * HEAD_BYTES)
                    m.d.comb += head.eq(Cat(Cat(status, Const(0, 8 - len(status))), number, length))
                    m.d.sync += [out.eq(head.word_select(place[:2], 8)), self.bytes.valid.eq(1)]
                with m.Elif(sent):
                    m.d.comb += [check.valid.eq(1), check.data.eq(out)]
                    m.d.sync += [self.bytes.valid.eq(0), place.eq(place + 1)]
                    with m.If(place == HEAD_BYTES - 1):
                        m.d.sync += [place.eq(0), wait.eq(latency)]
                        with m.If(length == 0):
                            m.next = "SEND_CHECK"
                        with m.Else():
                            m.next = "SEND_BODY"
            with m.State("SEND_BODY"):
                m.d.comb += self.l2_select.eq(is_op(Op.READ))
                with m.If(wait != 0):
                    m.d.sync += wait.eq(wait - 1)
                with m.Elif(~self.bytes.valid):
                    m.d.sync += [out.eq(answer_byte), self.bytes.valid.eq(1)]
                with m.Elif(sent):
                    m.d.comb += [check.valid.eq(1), check.data.eq(out)]
                    m.d.sync += [
                        self.bytes.valid.eq(0),
                        address.eq(address + 1),
                        wait.eq(latency),
                        place.eq(place + 1),
                    ]
                    with m.If(place + 1 == length):
                        m.d.sync += place.eq(0)
                        m.next = "SEND_CHECK"
            with m.State("SEND_CHECK"):
                with m.If(~self.bytes.valid):
                    m.d.sync += [
                        out.eq(check.crc.word_select(place[0], 8)),
                        self.bytes.valid.eq(1),
                    ]
                with m.Elif(sent):
                    m.d.sync += [self.bytes.valid.eq(0), place.eq(place + 1)]
                    with m.If(place[0]):
                        m.next = "MARK"
        with m.If(self.byte_valid | ~Cat(fsm.ongoing(name) for name in _RECEIVING).any()):
            m.d.sync += silence.eq(0)
        with m.Else():
            m.d.sync += silence.eq(silence + 1)
        return m


def _wide(value: Signal) -> object:
    """`value` in 32 bits."""
    return Cat(value, Const(0, 32 - len(value)))
