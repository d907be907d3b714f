"""Memories as registers, so that an invariant can say what a word holds."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import SimpleNamespace

from amaranth.hdl import Array, Elaboratable, Module, Shape, Signal, Value
from amaranth.utils import ceil_log2

__all__ = ["Registers", "registers_in"]


class Registers(Elaboratable):
    """Stands in for `amaranth.lib.memory.Memory`: no read is transparent.

    The words are signals `word0`, `word1`, ... and start at any value.
    """

    def __init__(self, *, shape, depth: int, init: Sequence, attrs: Mapping | None = None):
        if init:
            raise ValueError("memories of the design are never initialised")
        self.shape = shape
        self.depth = depth
        self._writes: list[tuple[SimpleNamespace, int]] = []
        self._reads: list[tuple[SimpleNamespace, str]] = []

    def _port(self, kind: str, number: int, en: int) -> SimpleNamespace:
        name = f"{kind}{number}"
        return SimpleNamespace(
            addr=Signal(ceil_log2(self.depth), name=f"{name}_addr"),
            data=Signal(self.shape, name=f"{name}_data", reset_less=True),
            en=Signal(en, name=f"{name}_en", init=1 if kind == "read" else 0),
        )

    def write_port(self, *, granularity: int | None = None) -> SimpleNamespace:
        """A port that writes the granules named by `en`."""
        bits = Shape.cast(self.shape).width
        granularity = granularity or bits
        port = self._port("write", len(self._writes), bits // granularity)
        self._writes.append((port, granularity))
        return port

    def read_port(self, *, domain: str = "sync") -> SimpleNamespace:
        """A port whose data come one cycle later and stay; with `domain` "comb", at once."""
        port = self._port("read", len(self._reads), 1)
        self._reads.append((port, domain))
        return port

    def elaborate(self, platform):
        m = Module()
        bits = Shape.cast(self.shape).width
        words = [Signal(bits, name=f"word{n}", reset_less=True) for n in range(self.depth)]
        for port, granularity in self._writes:
            for number, word in enumerate(words):
                for granule in range(bits // granularity):
                    part = slice(granule * granularity, (granule + 1) * granularity)
                    with m.If(port.en[granule] & (port.addr == number)):
                        m.d.sync += word[part].eq(Value.cast(port.data)[part])
        for port, domain in self._reads:
            with m.If(port.en):
                m.d[domain] += Value.cast(port.data).eq(Array(words)[port.addr])
        return m


@contextmanager
def registers_in(*modules: str) -> Iterator[None]:
    """While it lasts, components of these modules elaborate with `Registers` for memories."""
    loaded = [importlib.import_module(name) for name in modules]
    originals = [module.Memory for module in loaded]
    try:
        for module in loaded:
            module.Memory = Registers
        yield
    finally:
        for module, original in zip(loaded, originals, strict=True):
            module.Memory = original
