"""What every unit of the core does in a cycle: one bit an event, the names in one table."""

from __future__ import annotations

from types import MappingProxyType

from amaranth.lib import data, wiring

__all__ = ["ACTIVITY", "MAC_ISSUE", "MAC_LOST", "MAC_STATES", "activity_layout", "activity_member"]

_MAC_STATES = {
    "mac_uop": "a uop of an mma or of the vector mode is issued to the MAC array",
    "mac_transpose": "a uop that transposes a tile is issued",
    "mac_bank": "the uop issued before still waits for the bank of its operands",
    "mac_operands": "A or B is not there yet, or the transposes are in use",
    "mac_c_tile": "C's tile is still loaded, stored, moved or read",
    "mac_c_word": "the result of an older uop for the same word of C is still in the array",
    "mac_skip": "a uop is held back, so that a starving request finds a gap",
    "mac_start": "the first uops of an mma are on their way from its split counters",
    "mac_slots": "no mma in any slot, and no slot free for one",
    "mac_instruction": "no mma in any slot, and a slot free for one",
}

_EVENTS = {
    "mac_write": "the MAC array or the vector unit writes a result",
    "load_uop": "a part of a row is issued to the load pipe",
    "load_bank": "the load pipe has a row to write and waits for its bank",
    "store_uop": "a part of a row is issued to the store pipe",
    "store_bank": "the store pipe has a row to read and waits for its bank",
    "move_uop": "a uop is taken by the move unit",
    "move_wait": "a uop waits for the move unit",
    "read_request": "an L2 read request is taken",
    "read_request_wait": "an L2 read request is offered and not taken",
    "read_ids": "an L2 read request waits for a free id",
    "read_beat": "a beat of L2 read data is taken",
    "read_beat_wait": "a beat of L2 read data is offered and not taken",
    "write_request": "an L2 write request is taken",
    "write_request_wait": "an L2 write request is offered and not taken",
    "write_ids": "an L2 write request waits for a free id",
    "write_beat": "a beat of L2 write data is taken",
    "write_beat_wait": "a beat of L2 write data is offered and not taken",
    "dispatch": "an instruction enters a slot",
    "dispatch_wait": "an instruction waits for a free slot",
}

ACTIVITY = MappingProxyType(_MAC_STATES | _EVENTS)
"""Every bit's name and meaning, lowest bit first."""

MAC_ISSUE = "mac_uop"
"""The state in which the MAC array gets work."""

MAC_STATES = tuple(_MAC_STATES)
"""What MAC issue does: exactly one of these in every cycle, so that their counts add up to it.

Where several hold the first in this order counts. What an mma waits for is told of the oldest one
in the slots.
"""

MAC_LOST = tuple(name for name in MAC_STATES if name != MAC_ISSUE)
"""The states in which it gets none."""


def activity_layout() -> data.StructLayout:
    """One bit for each name of `ACTIVITY`."""
    return data.StructLayout(dict.fromkeys(ACTIVITY, 1))


def activity_member() -> wiring.Member:
    """The port `activity` of a core that tells it."""
    return wiring.Out(activity_layout())
