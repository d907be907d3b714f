"""The ports of a core's top level, by name and width, as the engines see them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from amaranth.hdl import Shape
from amaranth.lib import wiring

from hdl.activity import ACTIVITY
from hdl.interfaces import host_members, l2_read_members, l2_write_members

if TYPE_CHECKING:
    from hdl.config import Config

__all__ = ["ACTIVITY_PORT", "Port", "core_component", "core_ports", "probe_ports", "tells_activity"]

PROBE_BITS = 64
"""Widest further output that can be recorded."""

ACTIVITY_PORT = "activity"
"""The further output whose bits are counted in every run (`hdl.activity`)."""


@dataclass(frozen=True)
class Port:
    """One port: `is_input` as the core sees it."""

    name: str
    bits: int
    is_input: bool

    @property
    def is_beat(self) -> bool:
        """Bus data, which need not fit in 64 bits."""
        return self.name in ("pad_dsa_resp_rdata", "dsa_pad_req_wdata")


def _port(name: str, member: wiring.Member) -> Port:
    return Port(name, Shape.cast(member.shape).width, member.flow == wiring.In)


def core_ports(cfg: Config) -> tuple[Port, ...]:
    """Every port that a top level must have, clock and reset apart."""
    members = host_members(cfg) | l2_read_members(cfg) | l2_write_members(cfg)
    return (*(_port(name, member) for name, member in members.items()), Port("busy", 1, False))


def probe_ports(cfg: Config, dut: wiring.Component) -> tuple[Port, ...]:
    """The component's further outputs of up to 64 bits.

    Raises `ValueError` when the component lacks a port that a core has, or has another input.
    """
    found = {name: _port(name, m) for name, m in dut.signature.members.items() if m.is_port}
    for port in core_ports(cfg):
        if found.pop(port.name, None) != port:
            raise ValueError(
                f"{type(dut).__name__} is no top level of a core: it needs a port {port.name} "
                f"of {port.bits} bits, {'in' if port.is_input else 'out'}"
            )
    for port in found.values():
        if port.is_input:
            raise ValueError(
                f"{type(dut).__name__} is no top level of a core: nothing drives its input "
                f"{port.name}"
            )
    return tuple(port for port in found.values() if port.bits <= PROBE_BITS)


def tells_activity(probes: Sequence[Port]) -> bool:
    """Is the core's activity among its further outputs?"""
    return Port(ACTIVITY_PORT, len(ACTIVITY), False) in probes


def core_component(cfg: Config) -> Any:
    """The core of this configuration, which also tells its activity."""
    from hdl.core import Core

    return Core(cfg, activity=True)
