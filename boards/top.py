"""What every board holds: a core, L2 memory, a sequencer and a serial link to a PC."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping

from amaranth.hdl import Module, ResetInserter, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.config import Config
from hdl.core import Core
from hdl.interfaces import host_members, l2_read_members, l2_write_members

from .l2 import L2Memory
from .link import Link
from .protocol import PROTOCOL_VERSION
from .sequencer import Sequencer
from .uart import UartReceiver, UartTransmitter

__all__ = ["PROGRAM_DEPTH", "BoardTop", "config_of", "describe"]

PROGRAM_DEPTH = 512
"""Instructions of the program memory, and answers of the result memory."""


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(value)
    return list(value) if isinstance(value, tuple) else value


def describe(cfg: Config, *, board: str, clock_hz: float, l2_bytes: int, depth: int) -> bytes:
    """What INFO answers: JSON of the board and of every field of the Config.

    Parameters
    ----------
    cfg : the core.
    board, clock_hz : its name, and its clock in Hz.
    l2_bytes, depth : see `BoardTop`.
    """
    fields = {f.name: _plain(getattr(cfg, f.name)) for f in dataclasses.fields(cfg)}
    found = {
        "protocol": PROTOCOL_VERSION,
        "board": board,
        "clock_hz": round(clock_hz),
        "l2_bytes": l2_bytes,
        "program_depth": depth,
        "config": fields,
    }
    return json.dumps(found, separators=(",", ":")).encode()


def config_of(fields: Mapping[str, object]) -> Config:
    """The Config of what `describe` wrote. Raises `ConfigError` or TypeError if it is none."""
    return Config(
        **{
            name: tuple(value) if isinstance(value, list) else value
            for name, value in fields.items()
        }
    )


class BoardTop(wiring.Component):
    """A core with memory behind a serial line.

    Parameters
    ----------
    cfg : the core.
    board : name that INFO tells.
    clock_hz : clock that INFO tells.
    divisor : clock cycles of a bit of the line.
    l2_bytes : of L2 memory, from address 0 on; a power of two.
    depth : instructions of the longest program, a power of two.

    Members
    -------
    reset : reset everything, for two cycles at least. With it, `sync` needs no reset of its own.
    rx, tx : the line as the board sees it.
    running : a program runs.
    idle : no request is on its way, no program runs.
    """

    def __init__(
        self,
        cfg: Config,
        *,
        board: str,
        clock_hz: float,
        divisor: int,
        l2_bytes: int,
        depth: int = PROGRAM_DEPTH,
    ):
        self.cfg = cfg
        self.divisor = divisor
        info = describe(cfg, board=board, clock_hz=clock_hz, l2_bytes=l2_bytes, depth=depth)
        self._memory = L2Memory(cfg, l2_bytes)
        self._sequencer = Sequencer(cfg, depth)
        self._link = Link(
            info,
            l2_log2=self._memory.size_log2,
            depth_log2=self._sequencer.depth_log2,
            divisor=divisor,
        )
        super().__init__(
            {
                "reset": In(1),
                "rx": In(1, init=1),
                "tx": Out(1),
                "running": Out(1),
                "idle": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        cfg = self.cfg
        core, memory, sequencer, link = Core(cfg), self._memory, self._sequencer, self._link
        receiver, transmitter = UartReceiver(self.divisor), UartTransmitter(self.divisor)
        # Every register has one reset, straight from a register: those nets are long.
        outer = ResetInserter(self.reset)
        m.submodules.receiver = outer(receiver)
        m.submodules.transmitter = outer(transmitter)
        m.submodules.link = outer(link)
        core_reset = Signal()
        m.d.sync += core_reset.eq(self.reset | link.core_reset)
        inner = ResetInserter(core_reset)
        m.submodules.core = inner(core)
        m.submodules.memory = inner(memory)
        m.submodules.sequencer = inner(sequencer)

        for part, members in (
            (memory, {**l2_read_members(cfg), **l2_write_members(cfg)}),
            (sequencer, host_members(cfg)),
        ):
            for name, member in members.items():
                ours, theirs = getattr(core, name), getattr(part, name)
                m.d.comb += theirs.eq(ours) if member.flow is Out else ours.eq(theirs)
        m.d.comb += sequencer.busy.eq(core.busy)

        wiring.connect(m, link.bytes, transmitter.bytes)
        m.d.comb += [
            receiver.line.eq(self.rx),
            self.tx.eq(transmitter.line),
            link.byte_valid.eq(receiver.valid),
            link.byte.eq(receiver.byte),
            memory.byte_addr.eq(link.l2_addr),
            memory.byte_write.eq(link.l2_write),
            memory.byte_in.eq(link.l2_in),
            memory.byte_select.eq(link.l2_select),
            link.l2_out.eq(memory.byte_out),
            self.running.eq(sequencer.running),
            self.idle.eq(
                link.idle
                & receiver.idle
                & transmitter.bytes.ready
                & ~sequencer.running
                & ~core_reset
            ),
        ]
        for name in ("entry", "entry_addr", "entry_write", "start", "count", "run", "result_addr"):
            m.d.comb += getattr(sequencer, name).eq(getattr(link, name))
        for name in ("last_run", "running", "responses", "cycles", "result_byte"):
            m.d.comb += getattr(link, name).eq(getattr(sequencer, name))
        return m
