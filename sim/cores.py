"""Simulated cores that calls share, so that a design is built and compiled once in a process."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from hdl import isa
from hdl.config import Config, preset

from .driver import RunResult, SimulationError
from .engines import open_engine
from .engines.base import Simulator
from .memory import Memory
from .personality import IDEAL, Personality
from .program import Program, Request
from .protocol import ProtocolError
from .recording import current

__all__ = ["SharedCore", "as_config", "shared_core"]

_ERRORS = ("none", "illegal", "badgeom", "bus")


def as_config(name: str | Config) -> Config:
    """The Config itself, or the preset of that name. Raises `hdl.config.ConfigError`."""
    return name if isinstance(name, Config) else preset(name)


class SharedCore:
    """A core that runs one job after the other, each with a memory of its own.

    Tiles and CSRs are as the last job left them; jobs set what they need.

    Parameters
    ----------
    simulator : the engine with its core.

    Attributes
    ----------
    last : what came of the last job.
    """

    def __init__(self, simulator: Simulator):
        self.simulator = simulator
        self.cfg = simulator.cfg
        self.engine = simulator.name
        self.last: RunResult | None = None

    def run(
        self,
        memory: Memory,
        requests: Sequence[Request],
        *,
        personality: Personality = IDEAL,
        seed: int = 0,
        probes: bool = False,
        **limits: int,
    ) -> RunResult:
        """Run a program that must not trap. Raises `SimulationError` if it does.

        Its activity is part of the `recording` under way, if there is one.

        Parameters
        ----------
        memory : L2 during the run.
        requests, personality, seed, probes, **limits : see `Simulator.run`.
        """
        record = current()
        traced = record is not None and record.activity is not None
        self.last = self._run(
            memory, requests, personality=personality, seed=seed, probes=traced or probes, **limits
        )
        if traced:
            record.add(self.last)
        return self.last

    def _run(self, memory: Memory, requests: Sequence[Request], **options: Any) -> RunResult:
        self.simulator.memory = memory
        try:
            result = self.simulator.run(requests, **options)
        except (SimulationError, ProtocolError):
            self.simulator.reset()  # the next job starts from a core that answers
            raise
        for index, response in enumerate(result.responses):
            if response.error:
                raise SimulationError(
                    f"request {index} of {len(requests)}, {requests[index]}, answered "
                    f"{_ERRORS[response.error]}"
                )
        return result

    def clear_flags(self, memory: Memory) -> None:
        """Write 0 to mxstatus."""
        program = Program(self.cfg)
        program.csrrw("mxstatus", 0)
        self._run(memory, program.requests)

    def flags(self, memory: Memory) -> dict[str, bool]:
        """The sticky bits of mxstatus, by name."""
        program = Program(self.cfg)
        program.csrr("mxstatus")
        status = self._run(memory, program.requests).responses[0].data
        return {name: bool(field.get(status)) for name, field in isa.MXSTATUS.items()}


@lru_cache(maxsize=4)
def _core(cfg: Config, engine: str) -> SharedCore:
    return SharedCore(open_engine(engine, cfg))


def shared_core(cfg: Config, engine: str = "auto") -> SharedCore:
    """The one core of a Config and engine in this process, or in a `recording` of waveforms.

    Raises what `open_engine` raises for an engine that is unknown or not installed.
    """
    record = current()
    if record is not None and record.vcd is not None:
        return SharedCore(record.simulator(cfg, engine))
    return _core(cfg, engine)
