"""An engine in a compiled library: one call runs thousands of cycles of core and memory."""

from __future__ import annotations

import ctypes
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from hdl.activity import ACTIVITY

from ..driver import (
    REGISTER_MASK,
    RESET_CYCLES,
    RequestLike,
    Response,
    RunOptions,
    RunResult,
    Snapshot,
)
from ..l2_model import Traffic
from ..protocol import Channel, ProtocolError, Rule
from .base import Simulator
from .glue import CRegion, CReport, CResponse, CRunArguments, CTraffic, timing_of
from .ports import ACTIVITY_PORT

if TYPE_CHECKING:
    from hdl.config import Config

__all__ = ["NativeSimulator"]

_RUNNING, _DONE, _STOPPED, _BROKEN, _TIMEOUT = range(5)

SLICE_SECONDS = 0.2
"""A call into the library lasts about so long, so that Ctrl-C works."""


class NativeSimulator(Simulator):
    """A core in a library made from harness.cpp.

    Parameters
    ----------
    cfg : the core's configuration.
    path : the library.
    vcd : file for a waveform, if the library can write one.
    """

    def __init__(self, cfg: Config, path: Path, vcd: str | Path | None = None):
        super().__init__(cfg)
        library = ctypes.CDLL(str(path))
        library.mxu_open.restype = ctypes.c_void_p
        library.mxu_probe_names.restype = ctypes.c_char_p
        library.mxu_step.restype = ctypes.c_int64
        library.mxu_close.argtypes = [ctypes.c_void_p]
        library.mxu_trace.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
        library.mxu_reset.argtypes = [ctypes.c_void_p, ctypes.c_int64]
        library.mxu_begin.argtypes = [ctypes.c_void_p, ctypes.POINTER(CRunArguments)]
        library.mxu_step.argtypes = [ctypes.c_void_p, ctypes.c_int64, ctypes.POINTER(CReport)]
        self._library = library
        self._probes = [name for name in library.mxu_probe_names().decode().split(",") if name]
        self._handle: int | None = library.mxu_open()
        self._slice = 1000
        self._tells = ACTIVITY_PORT in self._probes
        if vcd is not None:
            with open(vcd, "w"):  # so that a bad path is an error here
                library.mxu_trace(self._handle, os.fsencode(vcd))

    def close(self) -> None:
        if self._handle is not None:
            self._library.mxu_close(self._handle)
            self._handle = None

    def _reset(self) -> None:
        self._library.mxu_reset(self._handle, RESET_CYCLES)

    def _run(self, requests: Sequence[RequestLike], options: RunOptions) -> RunResult:
        n = len(requests)
        inst = (ctypes.c_uint32 * n)(*(r.inst & 0xFFFFFFFF for r in requests))
        rs1 = (ctypes.c_uint64 * n)(*(r.rs1 & REGISTER_MASK for r in requests))
        rs2 = (ctypes.c_uint64 * n)(*(r.rs2 & REGISTER_MASK for r in requests))
        request_cycles = (ctypes.c_int64 * n)()
        responses = (CResponse * n)()
        kept = self.memory.regions  # the harness holds pointers into them
        regions = (CRegion * len(kept))(
            *(CRegion(r.base, len(r.data), r.data.ctypes.data, r.perms.ctypes.data) for r in kept)
        )
        arguments = CRunArguments(
            n_requests=n,
            inst=inst,
            rs1=rs1,
            rs2=rs2,
            request_cycles=request_cycles,
            responses=responses,
            n_regions=len(kept),
            regions=ctypes.cast(regions, ctypes.c_void_p),
            timing=timing_of(options.personality),
            seed=options.seed % (1 << 64),
            max_cycles=options.max_cycles,
            patience=options.patience,
            stop_after=options.stop_after or 0,
            probing=options.probes,
        )
        self._library.mxu_begin(self._handle, arguments)
        report = CReport()
        status = _RUNNING
        while status == _RUNNING:
            start = time.monotonic()
            status = self._library.mxu_step(self._handle, self._slice, report)
            if status == _RUNNING and time.monotonic() - start < SLICE_SECONDS / 2:
                self._slice *= 2
        if status == _BROKEN:
            rule = Rule(report.rule)
            numbers = tuple(report.numbers)[: rule.n_numbers]
            raise ProtocolError(rule, Channel(report.channel), report.violation_cycle, *numbers)
        if status == _TIMEOUT:
            raise _snapshot(report).timeout(requests, request_cycles[: report.n_taken], options)
        probes: dict[str, np.ndarray] = {}
        if options.probes and self._probes:
            flat = np.ctypeslib.as_array(report.probes, (report.n_probed,)).copy()
            table = flat.reshape(-1, len(self._probes))
            probes = {name: table[:, i].copy() for i, name in enumerate(self._probes)}
        return RunResult(
            responses=[
                Response(r.tag, r.wb, r.rd, r.data, r.error, r.cycle)
                for r in responses[: report.n_answered]
            ],
            request_cycles=request_cycles[: report.n_taken],
            total_cycles=report.cycle,
            traffic=Traffic(
                **{name: getattr(report.traffic, name) for name, _ in CTraffic._fields_}
            ),
            stopped=status == _STOPPED,
            activity=dict(zip(ACTIVITY, report.activity, strict=True)) if self._tells else {},
            probes=probes,
        )


def _snapshot(report: CReport) -> Snapshot:
    s = report.snapshot
    return Snapshot(
        cycle=s.cycle,
        last_progress=s.last_progress,
        next_request=s.next_request,
        n_responses=s.n_responses,
        busy=s.busy,
        handshakes=s.handshakes,
        reads=tuple(s.reads[: s.n_reads]),
        writes=tuple(s.writes[: s.n_writes]),
    )
