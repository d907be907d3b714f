"""What every simulation engine is: a core with L2 memory that runs programs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from ..driver import RequestLike, RunOptions, RunResult, SimulationError
from ..memory import Memory
from ..personality import IDEAL, Personality

if TYPE_CHECKING:
    from hdl.config import Config

__all__ = ["Simulator"]


class Simulator(ABC):
    """A core and its memory. State persists from run to run, as in a chip that stays powered.

    Parameters
    ----------
    cfg : the core's configuration.

    Attributes
    ----------
    name : of the engine.
    memory : L2; add regions before a run. It may be replaced by another `Memory` between runs.
    """

    name = ""

    def __init__(self, cfg: Config):
        self.cfg = cfg
        self.memory = Memory(cfg.addr_bits)
        self._ready = True

    def run(
        self,
        requests: Iterable[RequestLike],
        *,
        personality: Personality = IDEAL,
        seed: int = 0,
        **limits: Any,
    ) -> RunResult:
        """Send a program and wait until all of it is done and `busy` is low.

        The same program, personality and seed take the same cycles on every engine but the
        model. Tags count from 0 in each run.

        Parameters
        ----------
        requests : anything with `inst`, `rs1` and `rs2`.
        personality, seed, **limits : see `RunOptions`.

        Raises
        ------
        ProtocolError : the core broke a rule of its ports.
        SimulationTimeout : it stopped answering.
        SimulationError : the last run did not end well and `reset` was not called.
        """
        if not self._ready:
            raise SimulationError("the last run did not end well: call reset() before the next")
        options = RunOptions(personality=personality, seed=seed, **limits)
        self._ready = False
        result = self._run(list(requests), options)
        self._ready = not result.stopped
        return result

    def reset(self) -> None:
        """Pulse the core's reset; what was in flight is forgotten, memory stays."""
        self._reset()
        self._ready = True

    def close(self) -> None:  # noqa: B027 (most engines hold nothing)
        """Give back what the engine holds, such as a waveform file."""

    def __enter__(self) -> Simulator:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    @abstractmethod
    def _run(self, requests: Sequence[RequestLike], options: RunOptions) -> RunResult:
        """Do what `run` promises."""

    @abstractmethod
    def _reset(self) -> None:
        """Do what `reset` promises."""
