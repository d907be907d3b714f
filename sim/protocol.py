"""The rules of the core's ports, and the error that names the one broken.

Sources: seed 001 section 4.4 (L2 channels), isa.md section 3 (host streams and order). The table
is shared by the Python checker and the compiled one, so both say the same.
"""

from __future__ import annotations

from enum import IntEnum

__all__ = ["Channel", "Held", "ProtocolError", "Rule"]


class Channel(IntEnum):
    """Where a rule was broken."""

    HOST_REQUEST = 0
    HOST_RESPONSE = 1
    READ_REQUEST = 2
    READ_RESPONSE = 3
    WRITE_REQUEST = 4
    WRITE_DATA = 5
    WRITE_RESPONSE = 6
    BUSY = 7

    @property
    def label(self) -> str:
        return self.name.lower().replace("_", " ")


class Rule(IntEnum):
    """What a top level must not do. `text` takes up to three numbers."""

    VALID_DROPPED = 0
    PAYLOAD_CHANGED = 1
    UNALIGNED = 2
    LINE_CROSSED = 3
    ID_UNKNOWN = 4
    ID_IN_USE = 5
    READ_FORBIDDEN = 6
    WRITE_FORBIDDEN = 7
    DATA_WITHOUT_REQUEST = 8
    LAST_EARLY = 9
    LAST_MISSING = 10
    FULLLINE_LENGTH = 11
    FULLLINE_STROBE = 12
    RESPONSE_UNASKED = 13
    RESPONSE_TAG = 14
    TRAFFIC_WHEN_IDLE = 15
    BUSY_LOW = 16
    BUSY_ROSE = 17

    @property
    def text(self) -> str:
        return _TEXTS[self]

    @property
    def n_numbers(self) -> int:
        """How many numbers `text` takes."""
        return sum(f"{{{i}" in self.text for i in range(3))


_TEXTS = {
    Rule.VALID_DROPPED: "valid fell before ready",
    Rule.PAYLOAD_CHANGED: "the payload changed while it waited for ready",
    Rule.UNALIGNED: "address {0:#x} is not a multiple of the bus width, {1} bytes",
    Rule.LINE_CROSSED: "{1} beats from address {0:#x} cross a line of {2} bytes",
    Rule.ID_UNKNOWN: "id {0} does not exist: ids are below {1}",
    Rule.ID_IN_USE: "id {0} is in flight since cycle {1}",
    Rule.READ_FORBIDDEN: "the beat at {0:#x} may not be read",
    Rule.WRITE_FORBIDDEN: "the byte at {0:#x} may not be written",
    Rule.DATA_WITHOUT_REQUEST: "data before or without an accepted request",
    Rule.LAST_EARLY: "wlast on beat {0} of {1}",
    Rule.LAST_MISSING: "wlast is missing on the last of {0} beats",
    Rule.FULLLINE_LENGTH: "fullline with {0} beats, a full line has {1}",
    Rule.FULLLINE_STROBE: "fullline with strobes {0:#x}, not all set",
    Rule.RESPONSE_UNASKED: "a response without a request",
    Rule.RESPONSE_TAG: "tag {0} where request {2} with tag {1} was due",
    Rule.TRAFFIC_WHEN_IDLE: "valid after all work was done and busy had fallen",
    Rule.BUSY_LOW: "busy is low while {0} reads and {1} writes are in flight",
    Rule.BUSY_ROSE: "busy rose again after all work was done, without a request",
}


class ProtocolError(AssertionError):
    """A top level broke a rule of its ports.

    Attributes
    ----------
    rule, channel : what and where.
    cycle : the cycle of the run in which it was seen.
    numbers : the numbers in the message.
    """

    def __init__(self, rule: Rule, channel: Channel, cycle: int, *numbers: int):
        self.rule = Rule(rule)
        self.channel = Channel(channel)
        self.cycle = cycle
        self.numbers = numbers
        super().__init__(f"cycle {cycle}, {self.channel.label}: {self.rule.text.format(*numbers)}")


class Held:
    """Watches one channel for what must hold while it waits: valid, and every payload bit."""

    __slots__ = ("channel", "payload", "waiting")

    def __init__(self, channel: Channel):
        self.channel = channel
        self.waiting = False
        self.payload: object = None

    def step(self, cycle: int, valid: int, ready: int, payload: object) -> None:
        """One cycle as sampled at its end. Raises `ProtocolError`."""
        if self.waiting:
            if not valid:
                raise ProtocolError(Rule.VALID_DROPPED, self.channel, cycle)
            if payload != self.payload:
                raise ProtocolError(Rule.PAYLOAD_CHANGED, self.channel, cycle)
        self.waiting = bool(valid and not ready)
        self.payload = payload
