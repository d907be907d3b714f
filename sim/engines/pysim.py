"""The engine that is always there: Amaranth's own simulator."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from amaranth.hdl import ClockDomain, Module, Value
from amaranth.lib import wiring
from amaranth.sim import Simulator as AmaranthSimulator

from ..driver import (
    RESET_CYCLES,
    RequestLike,
    RunOptions,
    RunResult,
    Session,
    SimulationError,
    SimulationTimeout,
    idle_host,
)
from ..protocol import ProtocolError
from .base import Simulator
from .ports import ACTIVITY_PORT, core_component, core_ports, probe_ports, tells_activity

if TYPE_CHECKING:
    from hdl.config import Config

__all__ = ["PySimulator"]

CLOCK_PERIOD = 10e-9
"""Seconds; seen in waveforms only."""


class PySimulator(Simulator):
    """A core in Amaranth's simulator.

    Parameters
    ----------
    cfg : the core's configuration.
    dut : another component with the same ports, by default the core itself.
    vcd : file for a waveform of everything.
    """

    name = "pysim"

    def __init__(
        self, cfg: Config, *, dut: wiring.Component | None = None, vcd: str | Path | None = None
    ):
        super().__init__(cfg)
        self._dut = core_component(cfg) if dut is None else dut
        ports = core_ports(cfg)
        self._inputs = {p.name: getattr(self._dut, p.name) for p in ports if p.is_input}
        self._outputs = [p.name for p in ports if not p.is_input]
        probes = probe_ports(cfg, self._dut)
        self._probes = [p.name for p in probes]
        if tells_activity(probes):
            self._outputs.append(ACTIVITY_PORT)
        self._idle = dict.fromkeys(self._inputs, 0) | idle_host(cfg)
        self._job: Session | str | None = None
        self._samples: list[tuple[int, ...]] = []
        self._error: Exception | None = None
        self._files = ExitStack()
        domain = ClockDomain("sync")
        self._rst = domain.rst
        top = Module()
        top.domains.sync = domain
        top.submodules.core = self._dut
        self._sim = AmaranthSimulator(top)
        self._sim.add_clock(CLOCK_PERIOD)
        if vcd is not None:
            self._files.enter_context(self._sim.write_vcd(str(vcd)))
        self._sim.add_testbench(self._bench)

    def _run(self, requests: Sequence[RequestLike], options: RunOptions) -> RunResult:
        session = Session(self.cfg, self.memory, requests, options)
        self._samples = []
        self._advance(session)
        probes = {}
        if options.probes:
            columns = zip(*self._samples, strict=True)
            probes = {
                name: np.array(column, np.uint64)
                for name, column in zip(self._probes, columns, strict=True)
            }
        return session.result(probes)

    def _reset(self) -> None:
        self._advance("reset")

    def close(self) -> None:
        self._files.close()

    def _advance(self, job: Session | str) -> None:
        """Let the clock run until the job is done."""
        self._job, self._error = job, None
        while self._job is not None:
            if not self._sim.advance():
                raise SimulationError("the simulation was interrupted: open the engine again")
        if self._error is not None:
            raise self._error

    async def _bench(self, ctx: Any) -> None:
        """Lives as long as the engine: one idle cycle before each job, as in the fast engines."""
        driven: dict[str, int] = {}

        def drive(values: dict[str, int]) -> None:
            for name, value in values.items():
                if driven.get(name) != value:
                    ctx.set(self._inputs[name], value)
                    driven[name] = value

        def outputs(names: Sequence[str]) -> list[Value]:
            return [Value.cast(getattr(self._dut, name)) for name in names]

        signals = outputs(self._outputs)
        tick = ctx.tick().sample(*signals)
        traced = ctx.tick().sample(*signals, *outputs(self._probes))
        drive(self._idle)
        while True:
            await ctx.tick()
            session = self._job
            if isinstance(session, Session):
                recording = session.options.probes
                sampled = traced if recording else tick
                names = self._outputs
                done = False
                try:
                    while not done:
                        drive(session.inputs)
                        _, _, *values = await sampled
                        if recording:
                            self._samples.append(tuple(values[len(names) :]))
                        done = session.step(dict(zip(names, values, strict=False)))
                except (ProtocolError, SimulationTimeout) as error:
                    self._error = error
                drive(self._idle)
            else:
                ctx.set(self._rst, 1)
                for _ in range(RESET_CYCLES):
                    await ctx.tick()
                ctx.set(self._rst, 0)
            self._job = None
