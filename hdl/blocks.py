"""The parts of a core that can be emitted, listed and tested on their own, by name."""

from __future__ import annotations

import importlib
from dataclasses import dataclass

from amaranth.lib import wiring

from .config import Config, ConfigError

__all__ = ["BLOCKS", "CORE", "Block", "block"]

CORE = "core"
"""Name of the whole core."""


@dataclass(frozen=True)
class Block:
    """One part, imported only when it is built.

    Parameters
    ----------
    module : its module inside `hdl`.
    kind : its class, called with a Config.
    summary : what it is, for people.
    """

    module: str
    kind: str
    summary: str

    def build(self, cfg: Config) -> wiring.Component:
        """A new instance for `cfg`."""
        return getattr(importlib.import_module(f"hdl.{self.module}"), self.kind)(cfg)


BLOCKS: dict[str, Block] = {
    CORE: Block("core", "Core", "the whole core"),
    "tilefile": Block("tilefile.file", "TileFile", "tile registers: 4 read and 2 write ports"),
    "bank": Block("tilefile.bank", "Bank", "one bank of the tile registers, 2 reads and 1 write"),
}
"""Every block by the name that `--block` takes."""


def block(name: str) -> Block:
    """The block called `name`. Raises `ConfigError` that lists the names."""
    try:
        return BLOCKS[name]
    except KeyError:
        raise ConfigError(f"unknown block {name!r}: choose one of {', '.join(BLOCKS)}") from None
