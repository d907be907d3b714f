"""`python -m boards.ulx3s`: a core for the ULX3S with an ECP5-85F, by its USB serial line."""

from __future__ import annotations

import sys
from typing import Any

from .build import BoardSpec, main
from .ecp5 import Ecp5

__all__ = ["SPEC"]


def _platform() -> Any:
    from amaranth_boards.ulx3s import ULX3S_85F_Platform

    class Platform(Ecp5, ULX3S_85F_Platform):
        """The board, with what its FPGA has."""

    return Platform()


SPEC = BoardSpec(
    name="ulx3s",
    title="ULX3S (ECP5-85F)",
    platform=_platform,
    preset="ulx3s",
    clock_mhz=100,
    l2_bytes=1 << 17,
    seed=3,
)

if __name__ == "__main__":
    sys.exit(main(SPEC))
