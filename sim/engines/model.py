"""The reference behind the engines' interface: the same programs, no clock, no timing."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hdl.config import Config

from ..driver import RequestLike, Response, RunOptions, RunResult, SimulationError
from ..l2_model import Traffic
from ..memory import READ, READ_ERROR, WRITE, WRITE_ERROR, Memory
from ..reference.machine import Machine
from .base import Simulator

__all__ = ["ModelSimulator"]


class _CheckedMemory:
    """A `Memory` as the machine sees it: its permissions kept byte by byte, its errors answered."""

    def __init__(self, memory: Memory):
        self.memory = memory
        self.can_fail = any((r.perms & (READ_ERROR | WRITE_ERROR)).any() for r in memory.regions)

    def _parts(self, addr: int, size: int) -> list[tuple[np.ndarray, np.ndarray]]:
        """(data, permissions) of the parts of a run of bytes, which may wrap or cross regions."""
        parts = []
        while size:
            region = self.memory.find(addr)
            if region is None:
                raise SimulationError(f"the program leaves every region at {addr:#x}")
            start = addr - region.base
            stop = min(len(region.data), start + size)
            parts.append((region.data[start:stop], region.perms[start:stop]))
            size -= stop - start
            addr = (addr + stop - start) & self.memory.mask
        return parts

    def _checked(
        self, addr: int, size: int, permission: int, verb: str
    ) -> list[tuple[np.ndarray, np.ndarray]]:
        parts = self._parts(addr, size)
        for _, perms in parts:
            if not (perms & permission).all():
                raise SimulationError(
                    f"the program may not {verb} all of {addr:#x}..{addr + size - 1:#x}"
                )
        return parts

    def read(self, addr: int, size: int) -> bytes:
        return b"".join(data.tobytes() for data, _ in self._checked(addr, size, READ, "read"))

    def write(self, addr: int, content: bytes) -> None:
        source = np.frombuffer(content, np.uint8)
        for data, perms in self._checked(addr, len(content), WRITE, "write"):
            part, source = source[: len(data)], source[len(data) :]
            if self.can_fail:
                np.copyto(data, part, where=perms & WRITE_ERROR == 0)
            else:
                data[...] = part

    def read_fails(self, addr: int, size: int) -> bool:
        beat = [self.memory.find((addr + i) & self.memory.mask) for i in range(size)]
        return any(
            region is not None
            and region.perms[(addr + i & self.memory.mask) - region.base] & READ_ERROR
            for i, region in enumerate(beat)
        )

    def write_fails(self, addr: int, size: int) -> bool:
        return any((perms & WRITE_ERROR).any() for _, perms in self._parts(addr, size))


class ModelSimulator(Simulator):
    """The architectural model of a core. Every cycle number of its results is 0.

    Of a `Memory` it keeps the permissions byte by byte, which is stricter than the beats of an
    RTL engine, and answers its marked errors; a personality has no effect.

    Parameters
    ----------
    cfg : the core's configuration.

    Attributes
    ----------
    machine : the model, for tests that look at its state.
    """

    name = "model"

    def __init__(self, cfg: Config):
        super().__init__(cfg)
        self.machine = Machine(cfg, _CheckedMemory(self.memory))

    def _run(self, requests: Sequence[RequestLike], options: RunOptions) -> RunResult:
        self.machine.memory = _CheckedMemory(self.memory)
        tag_mask = (1 << self.cfg.tag_bits) - 1
        responses = []
        for index, r in enumerate(self.machine.run(requests)):
            responses.append(Response(index & tag_mask, r.wb, r.rd, r.data, r.error, 0))
        return RunResult(responses, [0] * len(responses), 0, Traffic())

    def _reset(self) -> None:
        self.machine.reset()
