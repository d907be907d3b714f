"""One bank of the tile register file: two reads and one byte-masked write a cycle."""

from __future__ import annotations

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from ..config import Config

__all__ = ["READS", "Bank"]

READS = 2
"""Read ports of a bank."""


class Bank(wiring.Component):
    """Storage of tiles / banks neighbouring tiles, as copies of a one-read one-write memory.

    A word is m_par rows of one tile. Nothing here orders a read and a write of one word in one
    cycle: the scoreboard never lets them meet, so synthesis may use whatever the memory gives.

    Members
    -------
    read{0,1}_en, read{0,1}_addr : a word to read.
    read{0,1}_data : the word, until the next read of that port.
    write_addr, write_data, write_mask : bytes of one word to write; a zero mask writes nothing.

    Latency: 1 cycle from address to data; one more with block RAM, which gives its data late in
    the cycle. Source: architecture.md section 1, tile register file.
    """

    def __init__(self, cfg: Config):
        self.cfg = cfg
        self.depth = cfg.tiles_per_bank * cfg.blocks
        addr_bits = max(1, (self.depth - 1).bit_length())
        members = {
            "write_addr": In(addr_bits),
            "write_data": In(cfg.word_bits),
            "write_mask": In(cfg.word_bits // 8),
        }
        for port in range(READS):
            members[f"read{port}_en"] = In(1)
            members[f"read{port}_addr"] = In(addr_bits)
            members[f"read{port}_data"] = Out(cfg.word_bits)
        super().__init__(members)

    def elaborate(self, platform):
        m = Module()
        block = self.cfg.tile_memory == "block"
        attrs = {"ram_style": "block"} if block else {}

        for port in range(READS):
            copy = Memory(shape=self.cfg.word_bits, depth=self.depth, init=[], attrs=attrs)
            m.submodules[f"copy{port}"] = copy
            write = copy.write_port(granularity=8)
            read = copy.read_port()
            m.d.comb += [
                write.addr.eq(self.write_addr),
                write.data.eq(self.write_data),
                write.en.eq(self.write_mask),
                read.en.eq(getattr(self, f"read{port}_en")),
                read.addr.eq(getattr(self, f"read{port}_addr")),
            ]
            data = read.data
            if block:
                data = Signal(self.cfg.word_bits, name=f"read{port}_q", reset_less=True)
                m.d.sync += data.eq(read.data)
            m.d.comb += getattr(self, f"read{port}_data").eq(data)
        return m
