"""Cores with the front end `xuantie` that the system tests compile: three by default."""

from __future__ import annotations

import functools

import pytest
from gemm_cases import compiled

from hdl.config import Config
from sim.engines import open_engine
from sim.engines.base import Simulator

__all__ = ["BOTH", "DESIGNS", "LITTLE", "NIGHTLY", "X128", "X256", "X512_AT_NIGHT", "engine"]

FORMATS = ("int4", "int8", "int16", "fp16", "fp32", "fp64")


def registers(name: str, row_bits: int, **fields: object) -> Config:
    """A core with eight registers and nothing else."""
    shape = {"frontends": ("xuantie",), "tiles": 8, "rows": row_bits // 32, "row_bits": row_bits}
    return Config(name=name, **{**shape, "formats": FORMATS, **fields})


X256 = registers("row256", 256, m_par=2, n_par=1)
X128 = registers("row128", 128, m_par=4, n_par=4, slots=2, formats=("int8", "int16", "fp16"))
X512 = registers("row512", 512, m_par=2, n_par=1, slots=1, banks=8, formats=("int4", "int8"))
BOTH = Config(
    name="both",
    frontends=("ame", "xuantie"),
    m_par=2,
    n_par=1,
    slots=4,
    formats=("int8", "bf16", "fp32", "fp64"),
    xuantie_bf16=True,
    mma_destinations=("m0", "m4"),
    units=("vector",),
)
X512_AT_NIGHT = pytest.param(X512, marks=pytest.mark.slow)

DESIGNS = (X256, X128, X512_AT_NIGHT, BOTH)

NIGHTLY = tuple(
    registers(f"row{bits}x{slots}", bits, m_par=m, n_par=n, slots=slots, formats=formats)
    for bits, slots, m, n, formats in (
        (128, 1, 2, 2, ("int8", "fp16", "fp32")),
        (128, 4, 1, 1, FORMATS),
        (128, 8, 4, 1, ("int4", "int8")),
        (256, 1, 4, 4, ("int8", "fp16")),
        (256, 2, 8, 1, ("int8", "int16")),
        (256, 4, 4, 2, ("fp16", "fp64")),
        (512, 2, 2, 2, ("int8", "fp16")),
        (512, 8, 4, 1, ("int8",)),
    )
)
"""Other rows, arrays and numbers of slots."""

LITTLE = registers("little", 128, m_par=1, n_par=1, slots=3, formats=("int8",))
"""For the slow engine."""


@functools.cache
def engine(cfg: Config) -> Simulator:
    """The core of `cfg`, compiled once."""
    return open_engine(compiled(), cfg, progress=False)
