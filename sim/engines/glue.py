"""What the compiled harness shares with Python, written as C++ from the Python tables.

Sizes, ports, counters, timing and enumerations have one definition each, in Python; this file
turns them into `glue.h`, and into the ctypes structures that match it.
"""

from __future__ import annotations

import ctypes
import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

from hdl.activity import ACTIVITY

from ..driver import QUIET_CYCLES
from ..l2_model import Draw, Traffic
from ..memory import FILL, READ, READ_ERROR, WRITE, WRITE_ERROR
from ..personality import PROBABILITIES, Personality
from ..protocol import Channel, Rule
from ..rng import threshold
from .ports import Port

if TYPE_CHECKING:
    from hdl.config import Config

__all__ = [
    "CRegion",
    "CReport",
    "CResponse",
    "CRunArguments",
    "CTiming",
    "CTraffic",
    "glue_header",
    "timing_of",
]

MAX_IDS = 32

_PLAIN_TIMING = (
    "latency",
    "response_latency",
    "jitter",
    "reorder",
    "interleave",
    "stall_length",
)

_NAMES = {
    ctypes.c_int64: "int64_t",
    ctypes.c_uint64: "uint64_t",
    ctypes.c_uint32: "uint32_t",
    ctypes.c_void_p: "void *",
}


class CTraffic(ctypes.Structure):
    """`Traffic`."""

    _fields_ = [(f.name, ctypes.c_int64) for f in dataclasses.fields(Traffic)]


class CTiming(ctypes.Structure):
    """`Personality`, chances in units of 2**-16."""

    _fields_ = [(name, ctypes.c_int64) for name in (*_PLAIN_TIMING, *PROBABILITIES)]


class CResponse(ctypes.Structure):
    """`Response`."""

    _fields_ = [(name, ctypes.c_uint64) for name in ("tag", "wb", "rd", "data", "error", "cycle")]


class CRegion(ctypes.Structure):
    """`Region`; the harness has its own definition."""

    _fields_ = [
        ("base", ctypes.c_uint64),
        ("size", ctypes.c_uint64),
        ("data", ctypes.c_void_p),
        ("perms", ctypes.c_void_p),
    ]


class CRunArguments(ctypes.Structure):
    """A program and how to run it."""

    _fields_ = [
        ("n_requests", ctypes.c_int64),
        ("inst", ctypes.POINTER(ctypes.c_uint32)),
        ("rs1", ctypes.POINTER(ctypes.c_uint64)),
        ("rs2", ctypes.POINTER(ctypes.c_uint64)),
        ("request_cycles", ctypes.POINTER(ctypes.c_int64)),
        ("responses", ctypes.POINTER(CResponse)),
        ("n_regions", ctypes.c_int64),
        ("regions", ctypes.c_void_p),
        ("timing", CTiming),
        ("seed", ctypes.c_uint64),
        ("max_cycles", ctypes.c_int64),
        ("patience", ctypes.c_int64),
        ("stop_after", ctypes.c_int64),
        ("probing", ctypes.c_int64),
    ]


class CSnapshot(ctypes.Structure):
    """`Snapshot`."""

    _fields_ = [
        ("cycle", ctypes.c_int64),
        ("last_progress", ctypes.c_int64),
        ("next_request", ctypes.c_int64),
        ("n_responses", ctypes.c_int64),
        ("busy", ctypes.c_int64),
        ("handshakes", ctypes.c_uint64),
        ("n_reads", ctypes.c_int64),
        ("reads", ctypes.c_uint64 * MAX_IDS),
        ("n_writes", ctypes.c_int64),
        ("writes", ctypes.c_uint64 * MAX_IDS),
    ]


class CReport(ctypes.Structure):
    """Where a run stands."""

    _fields_ = [
        ("cycle", ctypes.c_int64),
        ("n_taken", ctypes.c_int64),
        ("n_answered", ctypes.c_int64),
        ("traffic", CTraffic),
        ("snapshot", CSnapshot),
        ("rule", ctypes.c_int64),
        ("channel", ctypes.c_int64),
        ("violation_cycle", ctypes.c_int64),
        ("numbers", ctypes.c_uint64 * 3),
        ("n_probed", ctypes.c_int64),
        ("probes", ctypes.POINTER(ctypes.c_uint64)),
        ("activity", ctypes.c_int64 * len(ACTIVITY)),
    ]


_STRUCTS: dict[type[ctypes.Structure], str] = {
    CTraffic: "Traffic",
    CTiming: "Timing",
    CResponse: "Response",
    CRunArguments: "RunArguments",
    CSnapshot: "Snapshot",
    CReport: "RunReport",
}


def timing_of(personality: Personality) -> CTiming:
    """The personality as the harness takes it."""
    plain = {name: int(getattr(personality, name)) for name in _PLAIN_TIMING}
    units = {name: threshold(getattr(personality, name)) for name in PROBABILITIES}
    return CTiming(**plain, **units)


def _struct(kind: type[ctypes.Structure], defaults: dict[str, int]) -> str:
    lines = []
    for name, of in kind._fields_:
        default = f" = {defaults[name]}" if name in defaults else ""
        if issubclass(of, ctypes.Array):
            lines.append(f"    {_NAMES[of._type_]} {name}[{of._length_}];")
        elif issubclass(of, ctypes._Pointer):
            target = of._type_
            lines.append(f"    {_STRUCTS.get(target) or _NAMES[target]} *{name};")
        elif of is ctypes.c_void_p:
            lines.append(f"    void *{name};")
        else:
            lines.append(f"    {_STRUCTS.get(of) or _NAMES[of]} {name}{default};")
    return "\n".join((f"struct {_STRUCTS[kind]} {{", *lines, "};"))


def _ports(name: str, ports: Sequence[Port]) -> str:
    lines = [
        f"    uint32_t {p.name}[{p.bits // 32}];" if p.is_beat else f"    uint64_t {p.name};"
        for p in ports
    ]
    return "\n".join((f"struct {name} {{", *lines, "};"))


def glue_header(cfg: Config, ports: Sequence[Port], n_probes: int) -> str:
    """The text of `glue.h` for one configuration."""
    constants = {
        "BUS_BYTES": cfg.bus_bytes,
        "LINE_BYTES": cfg.line_bytes,
        "BEATS_PER_LINE": cfg.beats_per_line,
        "L2_IDS": cfg.l2_ids,
        "ID_BITS": cfg.id_bits,
        "ADDR_MASK": (1 << cfg.addr_bits) - 1,
        "TAG_MASK": (1 << cfg.tag_bits) - 1,
        "ALL_STROBES": (1 << cfg.bus_bytes) - 1,
        "N_PROBES": n_probes,
        "N_ACTIVITY": len(ACTIVITY),
        "QUIET_CYCLES": QUIET_CYCLES,
        "FILL": FILL,
        "PERM_READ": READ,
        "PERM_WRITE": WRITE,
        "PERM_READ_ERROR": READ_ERROR,
        "PERM_WRITE_ERROR": WRITE_ERROR,
    }
    starts = {f.name: f.default for f in dataclasses.fields(Traffic)}
    parts = [
        "// Made by sim/engines/glue.py.",
        "#pragma once",
        "#include <cstdint>",
        "namespace mxu {",
        *(f"constexpr uint64_t {name} = {value}u;" for name, value in constants.items()),
        *(
            f"enum class {kind.__name__} : int64_t {{ "
            + ", ".join(f"{item.name} = {item.value}" for item in kind)
            + " };"
            for kind in (Rule, Channel)
        ),
        "namespace Draw { enum : uint64_t { "
        + ", ".join(f"{item.name} = {item.value}" for item in Draw)
        + " }; }",
        _ports("Inputs", [p for p in ports if p.is_input]),
        _ports("Outputs", [p for p in ports if not p.is_input]),
        *(_struct(kind, starts if kind is CTraffic else {}) for kind in _STRUCTS),
        "} // namespace mxu",
        "",
    ]
    return "\n".join(parts)
