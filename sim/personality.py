"""How the outside of a core behaves: the timing of L2 memory and of the host."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from .rng import threshold

__all__ = [
    "FAST",
    "IDEAL",
    "JITTERY",
    "NASTY",
    "PERSONALITIES",
    "PROBABILITIES",
    "SLOW",
    "STALLING",
    "Personality",
]


@dataclass(frozen=True, kw_only=True)
class Personality:
    """Timing of everything that answers the core. Raises `ValueError` for an impossible value.

    Parameters
    ----------
    latency : cycles from a read request's handshake to its first beat, 1 or more.
    write_latency : cycles from a burst's last data beat to its response; None: as `latency`.
    jitter : up to so many cycles more, drawn for each request.
    reorder : any burst whose time has come may start, not only the oldest.
    interleave : beats of several started bursts mix.
    read_request_stall, write_request_stall, write_data_stall : chance that ready falls.
    read_response_gap, write_response_gap : chance that a due beat or response is withheld.
    read_error, write_error : chance that a beat or a response carries an error. A failed beat's
        data are inverted; a failed write has still been done.
    host_request_gap : chance that the host does not offer the next request at once.
    host_response_stall : chance that the host is not ready for a response.
    stall_length : a stall or gap lasts 1 to so many cycles.
    """

    name: str = "custom"
    latency: int = 20
    write_latency: int | None = None
    jitter: int = 0
    reorder: bool = False
    interleave: bool = False
    read_request_stall: float = 0.0
    read_response_gap: float = 0.0
    write_request_stall: float = 0.0
    write_data_stall: float = 0.0
    write_response_gap: float = 0.0
    read_error: float = 0.0
    write_error: float = 0.0
    host_request_gap: float = 0.0
    host_response_stall: float = 0.0
    stall_length: int = 1

    def __post_init__(self) -> None:
        limits = (
            ("latency", self.latency, 1),
            ("write_latency", self.response_latency, 1),
            ("jitter", self.jitter, 0),
            ("stall_length", self.stall_length, 1),
        )
        for name, value, low in limits:
            if not low <= value < 1 << 31:
                raise ValueError(f"{name} = {value} is not possible: use {low} or more")
        for name in PROBABILITIES:
            try:
                threshold(getattr(self, name))
            except ValueError as error:
                raise ValueError(f"{name}: {error}") from None

    @property
    def response_latency(self) -> int:
        """Cycles from the last data beat of a write to its response."""
        return self.latency if self.write_latency is None else self.write_latency

    def replace(self, **changes: object) -> Personality:
        """A copy with some fields changed, checked again."""
        return dataclasses.replace(self, **changes)


PROBABILITIES = tuple(
    f.name for f in dataclasses.fields(Personality) if f.type == "float" and f.default == 0.0
)
"""Names of the fields that are chances, in order."""

IDEAL = Personality(name="ideal")
"""Never stalls, latency 20: what performance.md quotes."""

FAST = Personality(name="fast", latency=1)
"""Answers in the next cycle."""

SLOW = Personality(name="slow", latency=90, write_latency=120)
"""Longer than all ids together can hide."""

JITTERY = Personality(name="jittery", latency=3, jitter=45, reorder=True, interleave=True)
"""Responses in any order, beats of different ids mixed."""

_STALLS = {name: 0.35 for name in PROBABILITIES if not name.endswith("error")}

STALLING = Personality(name="stalling", latency=4, stall_length=5, **_STALLS)
"""Every channel pauses for a few cycles again and again."""

NASTY = Personality(
    name="nasty",
    latency=1,
    write_latency=2,
    jitter=250,
    reorder=True,
    interleave=True,
    stall_length=40,
    **dict.fromkeys(_STALLS, 0.06),
)
"""Very late and very early answers in any order, with rare long pauses on every channel."""

PERSONALITIES = {p.name: p for p in (IDEAL, FAST, SLOW, JITTERY, STALLING, NASTY)}
"""The named personalities, none with errors."""
