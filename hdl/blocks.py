"""The parts of a core that can be emitted, listed and tested on their own, by name."""

from __future__ import annotations

import importlib
from collections.abc import Callable
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
    kind : its class.
    summary : what it is, for people.
    arguments : the class's positional and keyword arguments for a Config; by default the Config.
    """

    module: str
    kind: str
    summary: str
    arguments: Callable[[Config], tuple[tuple, dict]] = lambda cfg: ((cfg,), {})

    def build(self, cfg: Config) -> wiring.Component:
        """A new instance for `cfg`."""
        positional, keyword = self.arguments(cfg)
        kind = getattr(importlib.import_module(f"hdl.{self.module}"), self.kind)
        return kind(*positional, **keyword)


def _plan(cfg: Config) -> tuple[tuple, dict]:
    from .mac.plan import MacPlan

    return (MacPlan(cfg),), {}


def _timing(cfg: Config) -> tuple[tuple, dict]:
    from .mac.pipe import MacTiming

    timing = MacTiming.of(cfg)
    return (cfg,), {"mac_depth": timing.depth, "loop": timing.loop}


def _with_vector(cfg: Config) -> tuple[tuple, dict]:
    units = (*cfg.units, *(() if cfg.has_vector else ("vector",)))
    return (cfg.replace(units=units),), {}


BLOCKS: dict[str, Block] = {
    CORE: Block("core", "Core", "the whole core"),
    "decode": Block("issue.decode", "Decode", "decoder, CSRs and traps"),
    "csr": Block("issue.csr", "CsrFile", "control and status registers"),
    "slots": Block("issue.slots", "Slots", "instructions in flight and the scoreboard", _timing),
    "mma-split": Block("issue.split", "MmaSplit", "walks the blocks of an mmacc"),
    "ldst-split": Block("issue.split", "LdStSplit", "walks the rows of a load or store"),
    "move-split": Block("issue.move_split", "MoveSplit", "walks the blocks of a move"),
    "tilefile": Block("tilefile.file", "TileFile", "tile registers: 4 read and 2 write ports"),
    "operand-path": Block("tilefile.transpose", "OperandPath", "makes and serves transposes"),
    "bank": Block("tilefile.bank", "Bank", "one bank of the tile registers"),
    "mac-pipe": Block("mac.pipe", "MacPipe", "operand reads, MAC array, write-back"),
    "mac-array": Block("mac.array", "MacArray", "all sub-arrays and the operand decoders"),
    "sub-array": Block("mac.dot", "DotProduct", "one row of A times one row of B, plus C", _plan),
    "operand-decoder": Block("mac.operand", "OperandDecoder", "decodes one row", _plan),
    "load-pipe": Block("l2.load", "LoadPipe", "L2 read channel and row merge"),
    "store-pipe": Block("l2.store", "StorePipe", "row reads and L2 write channels"),
    "vector-unit": Block(
        "units.vector", "VectorArray", "lanes for every element of a stored word", _with_vector
    ),
    "move-unit": Block("units.move", "MoveUnit", "copies, transposes and broadcasts"),
}
"""Every block by the name that `--block` takes."""


def block(name: str) -> Block:
    """The block called `name`. Raises `ConfigError` that lists the names."""
    try:
        return BLOCKS[name]
    except KeyError:
        raise ConfigError(f"unknown block {name!r}: choose one of {', '.join(BLOCKS)}") from None
