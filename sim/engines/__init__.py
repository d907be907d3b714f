"""Simulation engines: one interface (`base.Simulator`), from slow and always there to fast."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .base import Simulator
from .build import EngineMissing

if TYPE_CHECKING:
    from amaranth.lib.wiring import Component

    from hdl.config import Config

__all__ = ["ENGINES", "EngineMissing", "Simulator", "available", "open_engine"]


def _no_reason() -> None:
    return None


def _cxxrtl_missing() -> str | None:
    from .cxxrtl import missing

    return missing()


def _open_cxxrtl(cfg: Config, **options: Any) -> Simulator:
    from .cxxrtl import CxxrtlSimulator

    return CxxrtlSimulator(cfg, **options)


def _verilator_missing() -> str | None:
    from .verilator import missing

    return missing()


def _open_verilator(cfg: Config, **options: Any) -> Simulator:
    from .verilator import VerilatorSimulator

    return VerilatorSimulator(cfg, **options)


def _open_pysim(cfg: Config, *, progress: bool, **options: Any) -> Simulator:
    from .pysim import PySimulator

    return PySimulator(cfg, **options)


def _open_model(cfg: Config, *, progress: bool, dut: Component | None, vcd: Any) -> Simulator:
    from .model import ModelSimulator

    if dut is not None or vcd is not None:
        raise ValueError("engine model simulates no hardware: it takes neither dut nor vcd")
    return ModelSimulator(cfg)


_TABLE: dict[str, tuple[Callable[[], str | None], Callable[..., Simulator]]] = {
    "verilator": (_verilator_missing, _open_verilator),
    "cxxrtl": (_cxxrtl_missing, _open_cxxrtl),
    "pysim": (_no_reason, _open_pysim),
    "model": (_no_reason, _open_model),
}
"""Name: why it cannot be used here (None: it can), and how to open it; fast ones first."""

ENGINES = ("auto", *_TABLE)
"""Names that `open_engine` knows. "model" runs the reference, without cycles; "auto" is the
fastest engine for the hardware that can be used here."""

_told: set[str] = set()


def available() -> dict[str, str | None]:
    """Every engine: None when it can be used here, or else one line that says why not."""
    return {name: reason() for name, (reason, _) in _TABLE.items()}


def open_engine(
    name: str,
    cfg: Config,
    *,
    dut: Component | None = None,
    vcd: str | Path | None = None,
    progress: bool = True,
) -> Simulator:
    """A simulator of the core that `cfg` describes.

    Parameters
    ----------
    name : one of `ENGINES`.
    cfg : the core's configuration.
    dut : another component with the core's ports, instead of the core.
    vcd : file for a waveform.
    progress : say on stderr what is chosen and what is built.

    Raises `ValueError` for an unknown name and `EngineMissing` for one that cannot be used here.
    """
    if name == "auto":
        name = _choose(progress)
    if name not in _TABLE:
        raise ValueError(f"unknown engine {name!r}: use one of {', '.join(ENGINES)}")
    return _TABLE[name][1](cfg, dut=dut, vcd=vcd, progress=progress)


def _choose(progress: bool) -> str:
    """The fastest engine that can be used, said once with what is missing for faster ones."""
    reasons = []
    for name, (missing, _) in _TABLE.items():
        reason = missing()
        if reason is None:
            break
        reasons.append(f"not {name}: {reason}")
    text = "; ".join((f"openmxu: engine {name}", *reasons))
    if progress and text not in _told:
        _told.add(text)
        print(text, file=sys.stderr)
    return name
