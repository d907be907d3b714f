"""A cycle model of the L2 memory behind a core's read and write channels, with checks.

Contract: registered outputs. `outputs()` holds what the memory drives in this cycle; `step()`
takes what the core drove in the same cycle, as sampled at its end. A request taken in cycle t
with latency L has its first beat in cycle t + L; one beat a cycle; any number in flight. Writes
change memory in the order in which their requests were accepted, when their data arrive.
While a response is not valid its payload is all ones, so that a core that looks at it is caught.
`sim/engines/harness.h` is the same model in C++ and draws the same random numbers.

Sources: seed 001 section 4.4, isa.md section 3.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Any

from .memory import Memory
from .personality import IDEAL, Personality
from .protocol import Channel, Held, ProtocolError, Rule
from .rng import Rng, Stall, threshold

if TYPE_CHECKING:
    from amaranth.lib.wiring import Component

    from hdl.config import Config

__all__ = ["Draw", "L2Model", "Traffic", "serve"]


class Draw(IntEnum):
    """Random streams of one run, so that one channel's luck does not move another's."""

    READ_REQUEST_STALL = 0
    READ_LATENCY = 1
    READ_RESPONSE_GAP = 2
    READ_PICK = 3
    READ_ERROR = 4
    WRITE_REQUEST_STALL = 5
    WRITE_DATA_STALL = 6
    WRITE_LATENCY = 7
    WRITE_RESPONSE_GAP = 8
    WRITE_PICK = 9
    WRITE_ERROR = 10
    HOST_REQUEST_GAP = 11
    HOST_RESPONSE_STALL = 12


@dataclass
class Traffic:
    """What one run moved and how it was disturbed. Cycles are those of the run, -1 if never.

    `*_stalls`: cycles in which one side waited for the other's ready. `*_gaps`: cycles in which
    something due was withheld. `*_reorders`: bursts or responses that overtook an older one.
    `read_interleaves`: beats that came between two beats of another burst.
    """

    read_requests: int = 0
    read_beats: int = 0
    read_errors: int = 0
    read_request_stalls: int = 0
    read_response_gaps: int = 0
    read_response_stalls: int = 0
    read_reorders: int = 0
    read_interleaves: int = 0
    max_reads_in_flight: int = 0
    first_read_request: int = -1
    first_read_beat: int = -1
    last_read_beat: int = -1
    write_requests: int = 0
    fullline_requests: int = 0
    write_beats: int = 0
    write_responses: int = 0
    write_errors: int = 0
    write_request_stalls: int = 0
    write_data_stalls: int = 0
    write_response_gaps: int = 0
    write_response_stalls: int = 0
    write_reorders: int = 0
    max_writes_in_flight: int = 0
    first_write_request: int = -1
    first_write_beat: int = -1
    last_write_beat: int = -1
    host_request_gaps: int = 0
    host_request_stalls: int = 0
    host_response_stalls: int = 0


class _Burst:
    """One request that memory still owes something."""

    __slots__ = ("addr", "beats", "done", "due", "failed", "fullline", "id")

    def __init__(self, addr: int, beats: int, id: int, due: int, fullline: int = 0):
        self.addr = addr
        self.beats = beats
        self.id = id
        self.due = due
        self.fullline = fullline
        self.done = 0
        self.failed = False


class _Channel:
    """What the read and the write side share: address rules and ids."""

    def __init__(self, cfg: Config, memory: Memory, traffic: Traffic, channel: Channel):
        self.memory = memory
        self.traffic = traffic
        self.channel = channel
        self.held = Held(channel)
        self.bus_bytes = cfg.bus_bytes
        self.line_bytes = cfg.line_bytes
        self.beats_per_line = cfg.beats_per_line
        self.n_ids = cfg.l2_ids
        self.addr_mask = (1 << cfg.addr_bits) - 1
        self.id_since: dict[int, int] = {}

    def check_request(self, cycle: int, addr: int, beats: int, id: int) -> None:
        def broken(rule: Rule, *numbers: int) -> ProtocolError:
            return ProtocolError(rule, self.channel, cycle, *numbers)

        if addr % self.bus_bytes:
            raise broken(Rule.UNALIGNED, addr, self.bus_bytes)
        if addr % self.line_bytes + beats * self.bus_bytes > self.line_bytes:
            raise broken(Rule.LINE_CROSSED, addr, beats, self.line_bytes)
        if id >= self.n_ids:
            raise broken(Rule.ID_UNKNOWN, id, self.n_ids)
        if id in self.id_since:
            raise broken(Rule.ID_IN_USE, id, self.id_since[id])


class _ReadSide(_Channel):
    def __init__(
        self, cfg: Config, memory: Memory, personality: Personality, seed: int, traffic: Traffic
    ):
        super().__init__(cfg, memory, traffic, Channel.READ_REQUEST)
        p = self.personality = personality
        length = p.stall_length
        self.stall = Stall(Rng(seed, Draw.READ_REQUEST_STALL), p.read_request_stall, length)
        self.gap = Stall(Rng(seed, Draw.READ_RESPONSE_GAP), p.read_response_gap, length)
        self.latency_rng = Rng(seed, Draw.READ_LATENCY)
        self.pick_rng = Rng(seed, Draw.READ_PICK)
        self.error_rng = Rng(seed, Draw.READ_ERROR)
        self.error_units = threshold(p.read_error)
        self.data_mask = (1 << cfg.bus_bits) - 1
        self.bursts: list[_Burst] = []
        self.shown: _Burst | None = None
        self.previous: _Burst | None = None
        self.nothing = {
            "pad_dsa_resp_rvalid": 0,
            "pad_dsa_resp_rid": (1 << cfg.id_bits) - 1,
            "pad_dsa_resp_rdata": self.data_mask,
            "pad_dsa_resp_rlast": 1,
            "pad_dsa_resp_rerr": 1,
        }
        self.out = {"pad_dsa_req_rready": int(not self.stall.draw()), **self.nothing}

    @property
    def in_flight(self) -> int:
        return len(self.id_since)

    def step(self, cycle: int, outs: Mapping[str, int]) -> None:
        self._request(cycle, outs)
        self._response(cycle, outs)
        self.out["pad_dsa_req_rready"] = int(not self.stall.draw())

    def _request(self, cycle: int, outs: Mapping[str, int]) -> None:
        out, t = self.out, self.traffic
        valid = outs["dsa_pad_req_rvalid"]
        addr = outs["dsa_pad_req_raddr"]
        length = outs["dsa_pad_req_rlen"]
        id = outs["dsa_pad_req_rid"]
        ready = out["pad_dsa_req_rready"]
        self.held.step(cycle, valid, ready, (addr, length, id))
        if not valid:
            return
        beats = length + 1
        self.check_request(cycle, addr, beats, id)
        for i in range(beats):
            at = (addr + i * self.bus_bytes) & self.addr_mask
            if not self.memory.read_beat(at, self.bus_bytes)[1] & 1:
                raise ProtocolError(Rule.READ_FORBIDDEN, self.channel, cycle, at)
        if not ready:
            t.read_request_stalls += 1
            return
        due = cycle + self.personality.latency
        if self.personality.jitter:
            due += self.latency_rng.below(self.personality.jitter + 1)
        self.bursts.append(_Burst(addr, beats, id, due))
        self.id_since[id] = cycle
        if t.first_read_request < 0:
            t.first_read_request = cycle
        t.read_requests += 1
        t.max_reads_in_flight = max(t.max_reads_in_flight, self.in_flight)

    def _response(self, cycle: int, outs: Mapping[str, int]) -> None:
        out, t = self.out, self.traffic
        if self.shown is not None:
            if not outs["dsa_pad_resp_rready"]:
                t.read_response_stalls += 1
                return
            if t.first_read_beat < 0:
                t.first_read_beat = cycle
            t.last_read_beat = cycle
            t.read_beats += 1
            t.read_errors += out["pad_dsa_resp_rerr"]
            if out["pad_dsa_resp_rlast"]:
                del self.id_since[self.shown.id]
        self.shown = burst = self._pick(cycle + 1)
        if burst is None:
            out.update(self.nothing)
            return
        if burst.done == 0 and any(b.done == 0 for b in self.bursts[: self.bursts.index(burst)]):
            t.read_reorders += 1
        if self.previous not in (None, burst):
            t.read_interleaves += 1
        addr = (burst.addr + burst.done * self.bus_bytes) & self.addr_mask
        value, perms = self.memory.read_beat(addr, self.bus_bytes)
        failed = bool(perms & 4) | self.error_rng.chance(self.error_units)
        burst.done += 1
        last = burst.done == burst.beats
        self.previous = None if last else burst
        if last:
            self.bursts.remove(burst)
        out["pad_dsa_resp_rvalid"] = 1
        out["pad_dsa_resp_rid"] = burst.id
        out["pad_dsa_resp_rdata"] = value ^ self.data_mask if failed else value
        out["pad_dsa_resp_rlast"] = int(last)
        out["pad_dsa_resp_rerr"] = int(failed)

    def _pick(self, now: int) -> _Burst | None:
        """The burst whose next beat is shown in cycle `now`."""
        p = self.personality
        if self.previous is not None and not p.interleave:
            found = [self.previous]
        elif p.reorder:
            found = [b for b in self.bursts if b.due <= now]
        else:
            found = [b for b in self.bursts if b.done]
            fresh = next((b for b in self.bursts if not b.done), None)
            if fresh is not None and fresh.due <= now:
                found.append(fresh)
        if not found:
            return None
        if self.gap.draw():
            self.traffic.read_response_gaps += 1
            return None
        return found[self.pick_rng.below(len(found))] if len(found) > 1 else found[0]


class _WriteSide(_Channel):
    def __init__(
        self, cfg: Config, memory: Memory, personality: Personality, seed: int, traffic: Traffic
    ):
        super().__init__(cfg, memory, traffic, Channel.WRITE_REQUEST)
        p = self.personality = personality
        length = p.stall_length
        self.stall = Stall(Rng(seed, Draw.WRITE_REQUEST_STALL), p.write_request_stall, length)
        self.data_stall = Stall(Rng(seed, Draw.WRITE_DATA_STALL), p.write_data_stall, length)
        self.gap = Stall(Rng(seed, Draw.WRITE_RESPONSE_GAP), p.write_response_gap, length)
        self.latency_rng = Rng(seed, Draw.WRITE_LATENCY)
        self.pick_rng = Rng(seed, Draw.WRITE_PICK)
        self.error_rng = Rng(seed, Draw.WRITE_ERROR)
        self.error_units = threshold(p.write_error)
        self.data_held = Held(Channel.WRITE_DATA)
        self.all_strobes = (1 << cfg.bus_bytes) - 1
        self.owed: list[_Burst] = []
        self.answers: list[_Burst] = []
        self.shown: _Burst | None = None
        self.nothing = {
            "pad_dsa_resp_wvalid": 0,
            "pad_dsa_resp_wid": (1 << cfg.id_bits) - 1,
            "pad_dsa_resp_werr": 1,
        }
        self.out = {
            "pad_dsa_req_wready": int(not self.stall.draw()),
            "pad_dsa_req_wdready": int(not self.data_stall.draw()),
            **self.nothing,
        }

    @property
    def in_flight(self) -> int:
        return len(self.id_since)

    def step(self, cycle: int, outs: Mapping[str, int]) -> None:
        self._request(cycle, outs)
        self._data(cycle, outs)
        self._response(cycle, outs)
        self.out["pad_dsa_req_wready"] = int(not self.stall.draw())
        self.out["pad_dsa_req_wdready"] = int(not self.data_stall.draw())

    def _request(self, cycle: int, outs: Mapping[str, int]) -> None:
        out, t = self.out, self.traffic
        valid = outs["dsa_pad_req_wvalid"]
        addr = outs["dsa_pad_req_waddr"]
        length = outs["dsa_pad_req_wlen"]
        id = outs["dsa_pad_req_wid"]
        fullline = outs["dsa_pad_req_fullline"]
        ready = out["pad_dsa_req_wready"]
        self.held.step(cycle, valid, ready, (addr, length, id, fullline))
        if not valid:
            return
        beats = length + 1
        self.check_request(cycle, addr, beats, id)
        if fullline and beats != self.beats_per_line:
            raise ProtocolError(
                Rule.FULLLINE_LENGTH, self.channel, cycle, beats, self.beats_per_line
            )
        if not ready:
            t.write_request_stalls += 1
            return
        self.owed.append(_Burst(addr, beats, id, 0, fullline))
        self.id_since[id] = cycle
        if t.first_write_request < 0:
            t.first_write_request = cycle
        t.write_requests += 1
        t.fullline_requests += fullline
        t.max_writes_in_flight = max(t.max_writes_in_flight, self.in_flight)

    def _data(self, cycle: int, outs: Mapping[str, int]) -> None:
        def broken(rule: Rule, *numbers: int) -> ProtocolError:
            return ProtocolError(rule, Channel.WRITE_DATA, cycle, *numbers)

        t = self.traffic
        valid = outs["dsa_pad_req_wdvalid"]
        data = outs["dsa_pad_req_wdata"]
        strobe = outs["dsa_pad_req_wstrb"]
        last = outs["dsa_pad_req_wlast"]
        ready = self.out["pad_dsa_req_wdready"]
        self.data_held.step(cycle, valid, ready, (data, strobe, last))
        if not valid:
            return
        if not self.owed:
            raise broken(Rule.DATA_WITHOUT_REQUEST)
        burst = self.owed[0]
        final = burst.done + 1 == burst.beats
        if last and not final:
            raise broken(Rule.LAST_EARLY, burst.done + 1, burst.beats)
        if final and not last:
            raise broken(Rule.LAST_MISSING, burst.beats)
        if burst.fullline and strobe != self.all_strobes:
            raise broken(Rule.FULLLINE_STROBE, strobe)
        addr = (burst.addr + burst.done * self.bus_bytes) & self.addr_mask
        forbidden = self.memory.forbidden_byte(addr, strobe, self.bus_bytes)
        if forbidden is not None:
            raise broken(Rule.WRITE_FORBIDDEN, forbidden)
        if not ready:
            t.write_data_stalls += 1
            return
        burst.failed |= self.memory.write_beat(addr, data, strobe, self.bus_bytes)
        burst.done += 1
        if t.first_write_beat < 0:
            t.first_write_beat = cycle
        t.last_write_beat = cycle
        t.write_beats += 1
        if final:
            del self.owed[0]
            burst.due = cycle + self.personality.response_latency
            if self.personality.jitter:
                burst.due += self.latency_rng.below(self.personality.jitter + 1)
            burst.failed |= self.error_rng.chance(self.error_units)
            self.answers.append(burst)

    def _response(self, cycle: int, outs: Mapping[str, int]) -> None:
        out, t = self.out, self.traffic
        if self.shown is not None:
            if not outs["dsa_pad_resp_wready"]:
                t.write_response_stalls += 1
                return
            t.write_responses += 1
            t.write_errors += out["pad_dsa_resp_werr"]
            del self.id_since[self.shown.id]
        self.shown = burst = self._pick(cycle + 1)
        if burst is None:
            out.update(self.nothing)
            return
        if burst is not self.answers[0]:
            t.write_reorders += 1
        self.answers.remove(burst)
        out["pad_dsa_resp_wvalid"] = 1
        out["pad_dsa_resp_wid"] = burst.id
        out["pad_dsa_resp_werr"] = int(burst.failed)

    def _pick(self, now: int) -> _Burst | None:
        """The burst answered in cycle `now`."""
        if self.personality.reorder:
            found = [b for b in self.answers if b.due <= now]
        else:
            found = [b for b in self.answers[:1] if b.due <= now]
        if not found:
            return None
        if self.gap.draw():
            self.traffic.write_response_gaps += 1
            return None
        return found[self.pick_rng.below(len(found))] if len(found) > 1 else found[0]


class L2Model:
    """The memory side of a core's L2 channels.

    Parameters
    ----------
    cfg : the core's configuration (port widths, line, ids).
    memory : the bytes and what may be done with them.
    personality, seed : the timing.
    read, write : which channels exist; a load pipe alone has only the first.
    traffic : counters to add to; a new set by default.
    """

    def __init__(
        self,
        cfg: Config,
        memory: Memory,
        personality: Personality = IDEAL,
        seed: int = 0,
        *,
        read: bool = True,
        write: bool = True,
        traffic: Traffic | None = None,
    ):
        self.cycle = 0
        self.traffic = Traffic() if traffic is None else traffic
        arguments = (cfg, memory, personality, seed, self.traffic)
        self.read_side = _ReadSide(*arguments) if read else None
        self.write_side = _WriteSide(*arguments) if write else None
        self._sides: list[Any] = [s for s in (self.read_side, self.write_side) if s is not None]
        self._out: dict[str, int] = {}
        for side in self._sides:
            self._out |= side.out
            side.out = self._out

    @property
    def reads_in_flight(self) -> list[int]:
        """Ids of accepted reads whose last beat has not been taken, oldest first."""
        return list(self.read_side.id_since) if self.read_side else []

    @property
    def writes_in_flight(self) -> list[int]:
        """Ids of accepted writes whose response has not been taken, oldest first."""
        return list(self.write_side.id_since) if self.write_side else []

    @property
    def idle(self) -> bool:
        """Nothing is in flight."""
        return not any(side.id_since for side in self._sides)

    def outputs(self) -> dict[str, int]:
        """What memory drives in this cycle, by port name (valid until the next `step`)."""
        return self._out

    def step(self, outs: Mapping[str, int]) -> None:
        """End the cycle, given the core's outputs by port name. Raises `ProtocolError`."""
        for side in self._sides:
            side.step(self.cycle, outs)
        self.cycle += 1


def serve(
    dut: Component, model: L2Model, *, until: Callable[[], bool] | None = None
) -> Callable[[Any], Coroutine[Any, Any, None]]:
    """A testbench that lets `model` answer the L2 ports of `dut`, for ever or `until` is true.

    Use it as `sim.add_testbench(serve(dut, model), background=True)`, before the testbenches that
    end the simulation. The ports are attributes of `dut` with the names of
    `hdl.interfaces.l2_read_members` and `l2_write_members`.
    """
    ins = {name: getattr(dut, name) for name in model.outputs()}
    prefixes = [
        p for side, p in ((model.read_side, "r"), (model.write_side, "w")) if side is not None
    ]
    names = [name for prefix in prefixes for name in _OUTPUTS[prefix]]
    ports = [getattr(dut, name) for name in names]

    async def bench(ctx: Any) -> None:
        driven: dict[str, int] = {}
        while until is None or not until():
            for name, value in model.outputs().items():
                if driven.get(name) != value:
                    ctx.set(ins[name], value)
                    driven[name] = value
            _, _, *values = await ctx.tick().sample(*ports)
            model.step(dict(zip(names, values, strict=True)))

    return bench


_OUTPUTS = {
    "r": (
        "dsa_pad_req_rvalid",
        "dsa_pad_req_raddr",
        "dsa_pad_req_rlen",
        "dsa_pad_req_rid",
        "dsa_pad_resp_rready",
    ),
    "w": (
        "dsa_pad_req_wvalid",
        "dsa_pad_req_waddr",
        "dsa_pad_req_wlen",
        "dsa_pad_req_wid",
        "dsa_pad_req_fullline",
        "dsa_pad_resp_wready",
        "dsa_pad_req_wdvalid",
        "dsa_pad_req_wdata",
        "dsa_pad_req_wstrb",
        "dsa_pad_req_wlast",
    ),
}
"""What a core drives on its read and write channels."""
