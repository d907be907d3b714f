"""One run of a program on a core, cycle by cycle: the host, the L2 memory and every check.

`Session` is what the Python engine steps; `sim/engines/harness.h` is the same in C++ and follows
it to the cycle. The host side: requests in order with consecutive tags, one response each in the
same order, then `busy` low and a few quiet cycles. Sources: isa.md section 3.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from hdl.activity import ACTIVITY

from .l2_model import Draw, L2Model, Traffic
from .personality import IDEAL, Personality
from .protocol import Channel, Held, ProtocolError, Rule
from .rng import Rng, Stall

if TYPE_CHECKING:
    from hdl.config import Config

    from .memory import Memory

__all__ = [
    "QUIET_CYCLES",
    "RequestLike",
    "Response",
    "RunOptions",
    "RunResult",
    "Session",
    "SimulationError",
    "SimulationTimeout",
    "Snapshot",
]

QUIET_CYCLES = 16
"""Cycles watched after `busy` fell at the end of a run, in which nothing may move."""

RESET_CYCLES = 2
"""Cycles that `reset()` holds the reset."""

REGISTER_MASK = (1 << 64) - 1
"""A scalar register of the host."""


class RequestLike(Protocol):
    """What a program is made of (`sim.program.Request`)."""

    inst: int
    rs1: int
    rs2: int


class Response(NamedTuple):
    """An answer of the core, and the cycle of the run in which it was taken."""

    tag: int
    wb: int
    rd: int
    data: int
    error: int
    cycle: int


class SimulationError(RuntimeError):
    """A run that cannot start or go on."""


class SimulationTimeout(SimulationError):  # noqa: N818 (says what happened, as TimeoutExpired)
    """The core stopped answering; the message says what was awaited and where it stands."""


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """How to run a program.

    Parameters
    ----------
    personality, seed : timing of memory and host.
    max_cycles : longest run.
    patience : longest time without any handshake on any channel.
    stop_after : end the run after so many cycles, whatever is in flight; `reset()` must follow.
    probes : record the core's further outputs, of up to 64 bits, in every cycle.
    """

    personality: Personality = IDEAL
    seed: int = 0
    max_cycles: int = 10_000_000
    patience: int = 5_000
    stop_after: int | None = None
    probes: bool = False

    def __post_init__(self) -> None:
        for name in ("max_cycles", "patience", "stop_after"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"{name} = {value} is not possible: use 1 or more")


@dataclass
class RunResult:
    """What came of a run. All cycles count from 0 in the run's first cycle.

    Attributes
    ----------
    responses : one for each request, in order.
    request_cycles : when each request was taken.
    cycles : from the cycle in which the first request was taken to the one in which the last
        response was taken, the last not counted; 0 without responses.
    total_cycles : length of the run, with the wait for `busy` and the quiet cycles after it.
    traffic : counters of the L2 channels and of every disturbance.
    stopped : the run was cut off by `stop_after`.
    probes : with that option, the values of each further output in each cycle.
    activity : cycles of `cycles` in which each bit of `hdl.activity.ACTIVITY` was set; empty
        where the core does not tell.
    """

    responses: list[Response]
    request_cycles: list[int]
    total_cycles: int
    traffic: Traffic
    stopped: bool = False
    probes: dict[str, np.ndarray] = field(default_factory=dict)
    activity: dict[str, int] = field(default_factory=dict)

    @property
    def first_request_cycle(self) -> int:
        return self.request_cycles[0] if self.request_cycles else -1

    @property
    def last_response_cycle(self) -> int:
        return self.responses[-1].cycle if self.responses else -1

    @property
    def cycles(self) -> int:
        if not self.responses:
            return 0
        return self.last_response_cycle - self.first_request_cycle

    @property
    def read_requests(self) -> int:
        return self.traffic.read_requests

    @property
    def read_beats(self) -> int:
        return self.traffic.read_beats

    @property
    def write_requests(self) -> int:
        return self.traffic.write_requests

    @property
    def write_beats(self) -> int:
        return self.traffic.write_beats

    @property
    def fullline_requests(self) -> int:
        return self.traffic.fullline_requests


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """Where a run stands, for the message of a timeout.

    `handshakes` has for each of the first seven channels, in order, a valid and a ready bit.
    """

    cycle: int
    last_progress: int
    next_request: int
    n_responses: int
    busy: int
    handshakes: int
    reads: tuple[int, ...]
    writes: tuple[int, ...]

    def timeout(
        self, requests: Sequence[RequestLike], request_cycles: Sequence[int], options: RunOptions
    ) -> SimulationTimeout:
        """The error for a run that ends here."""
        silent = self.cycle - self.last_progress
        if silent >= options.patience:
            reason = f"no handshake for {silent} cycles"
        else:
            reason = f"not done within max_cycles = {options.max_cycles}"
        total = len(requests)
        if self.n_responses < self.next_request:
            i = self.n_responses
            awaited = (
                f"the response to request {i} of {total} "
                f"(word {requests[i].inst:#010x}, taken in cycle {request_cycles[i]})"
            )
        elif self.next_request < total:
            i = self.next_request
            awaited = f"request {i} of {total} to be taken (word {requests[i].inst:#010x})"
        else:
            awaited = f"busy to fall after all {total} responses"
        states = [f"busy {self.busy}"]
        for channel in list(Channel)[:7]:
            if self.handshakes >> 2 * channel & 3 == 1:
                states.append(f"{channel.label} waits for ready")
        for name, ids in (("reads", self.reads), ("writes", self.writes)):
            if ids:
                states.append(f"{name} in flight with ids {', '.join(map(str, ids))}")
        return SimulationTimeout(
            f"cycle {self.cycle}: {reason}, waiting for {awaited}; {'; '.join(states)}"
        )


class Session:
    """The outside of a core during one run.

    Parameters
    ----------
    cfg : the core's configuration.
    memory : L2.
    requests : the program.
    options : timing and limits.

    Attributes
    ----------
    inputs : what to drive in this cycle, by port name; changed in place by `step`.
    """

    def __init__(
        self, cfg: Config, memory: Memory, requests: Sequence[RequestLike], options: RunOptions
    ):
        self.requests = requests
        self.options = options
        self.traffic = Traffic()
        p, seed = options.personality, options.seed
        self.model = L2Model(cfg, memory, p, seed, traffic=self.traffic)
        self.gap = Stall(Rng(seed, Draw.HOST_REQUEST_GAP), p.host_request_gap, p.stall_length)
        self.stall = Stall(
            Rng(seed, Draw.HOST_RESPONSE_STALL), p.host_response_stall, p.stall_length
        )
        self.tag_mask = (1 << cfg.tag_bits) - 1
        self.nothing = idle_host(cfg)
        self.held = Held(Channel.HOST_RESPONSE)
        self.responses: list[Response] = []
        self.request_cycles: list[int] = []
        self.cycle = 0
        self.last_progress = 0
        self.progress = 0
        self.quiet_left: int | None = None
        self.stopped = False
        self.seen: Counter[int] = Counter()  # values of `activity`
        self.tells = False
        self._may_time_out = self._at_limit(1)
        self.inputs = self.model.outputs()
        self.inputs |= self.nothing
        self._offer()
        self.inputs["host_resp_ready"] = int(not self.stall.draw())

    def _offer(self) -> None:
        """Choose what the host offers in the next cycle, when it offers nothing now."""
        i = len(self.request_cycles)
        if i == len(self.requests):
            self.inputs.update(self.nothing)
        elif self.gap.draw():
            self.traffic.host_request_gaps += 1
            self.inputs.update(self.nothing)
        else:
            request = self.requests[i]
            self.inputs["host_req_valid"] = 1
            self.inputs["host_req_inst"] = request.inst
            self.inputs["host_req_rs1"] = request.rs1 & REGISTER_MASK
            self.inputs["host_req_rs2"] = request.rs2 & REGISTER_MASK
            self.inputs["host_req_tag"] = i & self.tag_mask

    def step(self, outs: Mapping[str, int]) -> bool:
        """End the cycle, given the core's outputs; True when the run is over.

        Raises `ProtocolError` and `SimulationTimeout`.
        """
        cycle, model = self.cycle, self.model
        busy = outs["busy"]
        if not busy and not model.idle:
            reads, writes = len(model.reads_in_flight), len(model.writes_in_flight)
            raise ProtocolError(Rule.BUSY_LOW, Channel.BUSY, cycle, reads, writes)
        if self.quiet_left is not None:
            self._check_quiet(cycle, outs)
        handshakes = _handshakes(self.inputs, outs) if self._may_time_out else 0
        self._host(cycle, outs)
        if "activity" in outs:
            self.tells = True
            if self.request_cycles and len(self.responses) < len(self.requests):
                self.seen[outs["activity"]] += 1
        model.step(outs)
        if self.quiet_left is not None:
            self.quiet_left -= 1
        elif len(self.responses) == len(self.requests) and not busy and model.idle:
            self.quiet_left = QUIET_CYCLES
        self.cycle += 1
        if self.quiet_left == 0:
            return True
        if self.cycle == self.options.stop_after:
            self.stopped = True
            return True
        t = self.traffic
        progress = (
            len(self.request_cycles)
            + len(self.responses)
            + t.read_requests
            + t.read_beats
            + t.write_requests
            + t.write_beats
            + t.write_responses
        )
        if progress != self.progress:
            self.progress = progress
            self.last_progress = self.cycle
        self._may_time_out = self._at_limit(1)
        if self._at_limit(0):
            snapshot = Snapshot(
                cycle=self.cycle,
                last_progress=self.last_progress,
                next_request=len(self.request_cycles),
                n_responses=len(self.responses),
                busy=busy,
                handshakes=handshakes,
                reads=tuple(model.reads_in_flight),
                writes=tuple(model.writes_in_flight),
            )
            raise snapshot.timeout(self.requests, self.request_cycles, self.options)
        return False

    def _at_limit(self, ahead: int) -> bool:
        """Is the run too long, or silent for too long, `ahead` cycles from now?"""
        cycle = self.cycle + ahead
        limits = self.options
        return cycle - self.last_progress >= limits.patience or cycle >= limits.max_cycles

    def _host(self, cycle: int, outs: Mapping[str, int]) -> None:
        inputs, t = self.inputs, self.traffic
        if not inputs["host_req_valid"]:
            self._offer()
        elif outs["host_req_ready"]:
            self.request_cycles.append(cycle)
            self._offer()
        else:
            t.host_request_stalls += 1
        valid = outs["host_resp_valid"]
        ready = inputs["host_resp_ready"]
        tag = outs["host_resp_tag"]
        payload = (
            tag,
            outs["host_resp_wb"],
            outs["host_resp_rd"],
            outs["host_resp_data"],
            outs["host_resp_error"],
        )
        self.held.step(cycle, valid, ready, payload)
        if valid:
            i = len(self.responses)
            if i >= len(self.request_cycles):
                raise ProtocolError(Rule.RESPONSE_UNASKED, Channel.HOST_RESPONSE, cycle)
            if tag != i & self.tag_mask:
                raise ProtocolError(
                    Rule.RESPONSE_TAG, Channel.HOST_RESPONSE, cycle, tag, i & self.tag_mask, i
                )
            if ready:
                self.responses.append(Response(*payload, cycle))
            else:
                t.host_response_stalls += 1
        inputs["host_resp_ready"] = int(not self.stall.draw())

    def _check_quiet(self, cycle: int, outs: Mapping[str, int]) -> None:
        for name, channel in _VALIDS.items():
            if outs[name]:
                raise ProtocolError(Rule.TRAFFIC_WHEN_IDLE, channel, cycle)
        if outs["busy"]:
            raise ProtocolError(Rule.BUSY_ROSE, Channel.BUSY, cycle)

    def result(self, probes: dict[str, np.ndarray] | None = None) -> RunResult:
        """What came of the run so far."""
        return RunResult(
            responses=self.responses,
            request_cycles=self.request_cycles,
            total_cycles=self.cycle,
            traffic=self.traffic,
            stopped=self.stopped,
            probes=probes or {},
            activity=self._activity() if self.tells else {},
        )

    def _activity(self) -> dict[str, int]:
        """Cycles in which each bit was set."""
        counts = dict.fromkeys(ACTIVITY, 0)
        for value, cycles in self.seen.items():
            for index, name in enumerate(ACTIVITY):
                counts[name] += cycles * (value >> index & 1)
        return counts


def idle_host(cfg: Config) -> dict[str, int]:
    """What the host drives when it asks nothing: all ones, so that a careless core is caught."""
    return {
        "host_req_valid": 0,
        "host_req_inst": (1 << 32) - 1,
        "host_req_rs1": (1 << 64) - 1,
        "host_req_rs2": (1 << 64) - 1,
        "host_req_tag": (1 << cfg.tag_bits) - 1,
    }


_VALIDS = {
    "host_resp_valid": Channel.HOST_RESPONSE,
    "dsa_pad_req_rvalid": Channel.READ_REQUEST,
    "dsa_pad_req_wvalid": Channel.WRITE_REQUEST,
    "dsa_pad_req_wdvalid": Channel.WRITE_DATA,
}

_PAIRS = (
    ("host_req_valid", "host_req_ready"),
    ("host_resp_valid", "host_resp_ready"),
    ("dsa_pad_req_rvalid", "pad_dsa_req_rready"),
    ("pad_dsa_resp_rvalid", "dsa_pad_resp_rready"),
    ("dsa_pad_req_wvalid", "pad_dsa_req_wready"),
    ("dsa_pad_req_wdvalid", "pad_dsa_req_wdready"),
    ("pad_dsa_resp_wvalid", "dsa_pad_resp_wready"),
)


def _handshakes(inputs: Mapping[str, int], outs: Mapping[str, int]) -> int:
    """The bits of `Snapshot.handshakes` in this cycle."""
    bits = 0
    for index, names in enumerate(_PAIRS):
        for part, name in enumerate(names):
            value = inputs[name] if name in inputs else outs[name]
            bits |= value << 2 * index + part
    return bits
