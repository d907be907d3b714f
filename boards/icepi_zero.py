"""`python -m boards.icepi_zero`: a core for the Icepi Zero with an ECP5-25F, by USB serial line."""

from __future__ import annotations

import sys
from typing import Any

from .build import BoardSpec, main
from .ecp5 import Ecp5

__all__ = ["SPEC"]


def _platform() -> Any:
    from amaranth_boards.icepi_zero import IcepiZero1_3Platform

    class Platform(Ecp5, IcepiZero1_3Platform):
        """The board, with what its FPGA has."""

    return Platform()


SPEC = BoardSpec(
    name="icepi_zero",
    title="Icepi Zero (ECP5-25F)",
    platform=_platform,
    preset="icepi_zero",
    clock_mhz=80,
    l2_bytes=1 << 15,
)

if __name__ == "__main__":
    sys.exit(main(SPEC))
