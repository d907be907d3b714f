"""Checks and helpers for streams in Amaranth test benches.

No helper uses an async generator (`async for`, `.repeat()`): on Python 3.11 those are not closed
cleanly when a test ends with an error.

A stream is anything with `valid`, `ready` and `payload`: an `amaranth.lib.stream` interface, or
flat ports tied together by `flat_stream`. The rules are Amaranth's: once valid, valid and payload
hold until ready, and valid never waits for ready combinationally.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from amaranth.hdl import Cat, Value, ValueLike
from amaranth.sim import Simulator

__all__ = [
    "StreamChecker",
    "StreamError",
    "StreamTimeout",
    "add_watchers",
    "expect",
    "flat_stream",
    "get",
    "get_all",
    "put",
    "put_all",
    "watch",
]

BOUND = 1000
"""Default cycles a helper waits for one transfer."""


class StreamError(AssertionError):
    """A stream broke its rules, or carried something else than expected."""


class StreamTimeout(AssertionError):  # noqa: N818 (says what happened, as TimeoutExpired)
    """A transfer did not come within its bound of cycles."""


@dataclass(frozen=True)
class _FlatStream:
    valid: Any
    ready: Any
    payload: Any


def flat_stream(valid: ValueLike, ready: ValueLike, *payload: ValueLike) -> _FlatStream:
    """A stream made of separate ports, payload fields from the low bits up."""
    return _FlatStream(valid, ready, Cat(*payload))


@dataclass
class StreamChecker:
    """Watches one stream, sampled once a cycle at the cycle's end.

    Parameters
    ----------
    name : what messages call the stream.

    Attributes
    ----------
    cycle : cycles seen so far.
    transfers : (cycle, payload) of every transfer.
    stalled, starved : cycles with valid but not ready, and the other way round.
    """

    name: str
    cycle: int = 0
    transfers: list[tuple[int, Any]] = field(default_factory=list)
    stalled: int = 0
    starved: int = 0
    _waiting: bool = False
    _payload: Any = None

    def step(self, valid: int, ready: int, payload: Any) -> None:
        """One cycle. Raises `StreamError` when what must hold has changed."""
        if self._waiting:
            if not valid:
                raise StreamError(f"cycle {self.cycle}, {self.name}: valid fell before ready")
            if payload != self._payload:
                raise StreamError(
                    f"cycle {self.cycle}, {self.name}: the payload changed while it waited for "
                    f"ready, from {self._payload!r} to {payload!r}"
                )
        self._waiting = bool(valid and not ready)
        self._payload = payload
        if valid and ready:
            self.transfers.append((self.cycle, payload))
        self.stalled += bool(valid and not ready)
        self.starved += bool(ready and not valid)
        self.cycle += 1

    def reset(self) -> None:
        """Forget what waited, as the stream's owner does in a reset."""
        self._waiting = False
        self.cycle += 1

    @property
    def payloads(self) -> list[Any]:
        """What was transferred, in order."""
        return [payload for _, payload in self.transfers]


async def watch(ctx: Any, stream: Any, checker: StreamChecker, domain: str = "sync") -> None:
    """A testbench that feeds `checker` for ever; add it with `background=True`."""
    ticks = ctx.tick(domain).sample(stream.valid, stream.ready, stream.payload)
    while True:
        _, reset, valid, ready, payload = await ticks
        if reset:
            checker.reset()
        else:
            checker.step(valid, ready, payload)


def add_watchers(sim: Simulator, streams: Mapping[str, Any]) -> dict[str, StreamChecker]:
    """Watch several streams, by name; add them before the benches that drive."""
    checkers = {name: StreamChecker(name) for name in streams}
    for name, stream in streams.items():

        async def bench(ctx: Any, stream: Any = stream, checker: Any = checkers[name]) -> None:
            await watch(ctx, stream, checker)

        sim.add_testbench(bench, background=True)
    return checkers


async def put(
    ctx: Any, stream: Any, value: Any, *, bound: int = BOUND, what: str = "stream"
) -> int:
    """Offer one payload until it is taken; returns the cycles it waited. Back to back if reused."""
    ctx.set(stream.payload, value)
    ctx.set(stream.valid, 1)
    for waited in range(bound):
        _, _, ready = await ctx.tick().sample(stream.ready)
        if ready:
            ctx.set(stream.valid, 0)
            return waited
    ctx.set(stream.valid, 0)
    raise StreamTimeout(f"{what}: {value!r} was not taken within {bound} cycles")


def _check_independent(ctx: Any, stream: Any, what: str) -> None:
    """Valid must be the same whatever ready is."""
    ctx.set(stream.ready, 0)
    without = ctx.get(stream.valid)
    ctx.set(stream.ready, 1)
    if ctx.get(stream.valid) != without:
        raise StreamError(f"{what}: valid waits for ready in the same cycle")


async def get(ctx: Any, stream: Any, *, bound: int = BOUND, what: str = "stream") -> Any:
    """Take one payload; also proves that valid does not depend on ready."""
    for _ in range(bound):
        _check_independent(ctx, stream, what)
        _, _, valid, payload = await ctx.tick().sample(stream.valid, stream.payload)
        if valid:
            ctx.set(stream.ready, 0)
            return payload
    ctx.set(stream.ready, 0)
    raise StreamTimeout(f"{what}: nothing came within {bound} cycles")


async def expect(
    ctx: Any, stream: Any, value: Any, *, bound: int = BOUND, what: str = "stream"
) -> None:
    """Take one payload and compare it; a mapping names the fields that matter."""
    got = await get(ctx, stream, bound=bound, what=what)
    if isinstance(value, Mapping):
        wrong = {name: int(got[name]) for name, item in value.items() if got[name] != item}
        if wrong:
            raise StreamError(f"{what}: expected {dict(value)!r}, got {wrong!r}")
    elif got != value:
        raise StreamError(f"{what}: expected {value!r}, got {got!r}")


async def put_all(
    ctx: Any,
    stream: Any,
    values: Iterable[Any],
    *,
    rng: random.Random | None = None,
    gap: float = 0.0,
    bound: int = BOUND,
    what: str = "stream",
) -> None:
    """Offer payloads one after the other, with random pauses of chance `gap` before each cycle.

    While it pauses the payload is random, so that a design that looks at it is caught.
    """
    bits = Value.cast(stream.payload)
    for index, value in enumerate(values):
        while rng is not None and rng.random() < gap:
            ctx.set(bits, rng.getrandbits(len(bits)) if len(bits) else 0)
            await ctx.tick()
        await put(ctx, stream, value, bound=bound, what=f"{what}, item {index}")


async def get_all(
    ctx: Any,
    stream: Any,
    count: int,
    *,
    rng: random.Random | None = None,
    gap: float = 0.0,
    bound: int = BOUND,
    what: str = "stream",
) -> list[Any]:
    """Take `count` payloads; ready pauses with chance `gap` in each cycle."""
    found: list[Any] = []
    quiet = 0
    while len(found) < count:
        if quiet > bound:
            ctx.set(stream.ready, 0)
            raise StreamTimeout(f"{what}, item {len(found)}: nothing came within {bound} cycles")
        _check_independent(ctx, stream, what)
        ready = rng is None or rng.random() >= gap
        ctx.set(stream.ready, int(ready))
        _, _, valid, payload = await ctx.tick().sample(stream.valid, stream.payload)
        quiet = 0 if valid else quiet + 1
        if valid and ready:
            found.append(payload)
    ctx.set(stream.ready, 0)
    return found
