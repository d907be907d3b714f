"""L2 memory for simulation: bytes, and which of them the core may touch.

`sim.l2_model` is the cycle model in front of it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

__all__ = ["FILL", "READ", "READ_ERROR", "WRITE", "WRITE_ERROR", "Memory", "Region"]

READ, WRITE, READ_ERROR, WRITE_ERROR = 1, 2, 4, 8
"""Permission bits of a byte; the error bits make the bus answer with an error."""

FILL = 0xA5
"""What a beat shows where no region lies."""


@dataclass(frozen=True, eq=False)
class Region:
    """A run of bytes from `base` on: `data` and, byte for byte, the permission bits `perms`."""

    base: int
    data: np.ndarray
    perms: np.ndarray

    @property
    def end(self) -> int:
        """First address behind the region."""
        return self.base + len(self.data)


class Memory:
    """Bytes at 2**addr_bits addresses, of which only the regions exist.

    The core may read a beat when at least one of its bytes is readable (a row that starts inside
    a beat needs the whole beat), and write exactly the writable bytes. Anything else breaks the
    rules of the port and fails the run. The methods here are the test's own way in: they ignore
    permissions, but raise `ValueError` outside every region.

    Parameters
    ----------
    addr_bits : width of an address; addresses wrap.
    """

    def __init__(self, addr_bits: int = 40):
        self.addr_bits = addr_bits
        self.mask = (1 << addr_bits) - 1
        self.regions: list[Region] = []
        self._bases: list[int] = []

    # -- making ------------------------------------------------------------------------------

    def add_region(
        self, base: int, content: int | np.ndarray, *, readable: bool = True, writable: bool = True
    ) -> Region:
        """A new region of so many zero bytes, or with an array of uint8 as its storage.

        The array is used in place, not copied. Regions may touch but not overlap.
        """
        if isinstance(content, (int, np.integer)):
            content = np.zeros(int(content), np.uint8)
        if content.dtype != np.uint8 or content.ndim != 1 or not content.flags.c_contiguous:
            raise ValueError("a region needs a one-dimensional contiguous array of uint8")
        if not content.flags.writeable:
            raise ValueError("a region needs an array that can be written: pass a copy")
        end = base + len(content)
        if not len(content) or base < 0 or end > self.mask + 1:
            raise ValueError(
                f"no region of {len(content)} bytes fits at {base:#x} in {self.addr_bits} bits"
            )
        for other in self.regions:
            if base < other.end and other.base < end:
                raise ValueError(
                    f"region {base:#x}..{end - 1:#x} overlaps {other.base:#x}..{other.end - 1:#x}"
                )
        perms = np.full(len(content), READ * readable | WRITE * writable, np.uint8)
        region = Region(base, content, perms)
        at = bisect_right(self._bases, base)
        self.regions.insert(at, region)
        self._bases.insert(at, base)
        return region

    def clear(self) -> None:
        """Remove every region."""
        self.regions.clear()
        self._bases.clear()

    def _mark(self, addr: int, size: int, bits: int, on: bool) -> None:
        for region, start, stop, _ in self._pieces(addr, size):
            if on:
                region.perms[start:stop] |= bits
            else:
                region.perms[start:stop] &= 0xFF ^ bits

    def allow_read(self, addr: int, size: int, on: bool = True) -> None:
        """Let the core read these bytes, so the beats that hold them; `on` = False forbids it."""
        self._mark(addr, size, READ, on)

    def allow_write(self, addr: int, size: int, on: bool = True) -> None:
        """Let the core write these bytes; `on` = False forbids it."""
        self._mark(addr, size, WRITE, on)

    def forbid_all(self) -> None:
        """Take back every permission of every region."""
        for region in self.regions:
            region.perms[:] &= 0xFF ^ (READ | WRITE)

    def fail_read(self, addr: int, size: int, on: bool = True) -> None:
        """Answer reads of beats that hold these bytes with a bus error and inverted data."""
        self._mark(addr, size, READ_ERROR, on)

    def fail_write(self, addr: int, size: int, on: bool = True) -> None:
        """Answer bursts that write one of these bytes with a bus error; the bytes stay."""
        self._mark(addr, size, WRITE_ERROR, on)

    # -- the test's way in -------------------------------------------------------------------

    def read(self, addr: int, size: int) -> bytes:
        """A copy of `size` bytes from `addr` on; it may run over regions that touch."""
        return b"".join(r.data[a:b].tobytes() for r, a, b, _ in self._pieces(addr, size))

    def write(self, addr: int, content: bytes | np.ndarray) -> None:
        """Put bytes, or an array's bytes in C order, at `addr`."""
        if isinstance(content, np.ndarray):
            content = content.tobytes()
        source = np.frombuffer(content, np.uint8)
        for region, start, stop, done in self._pieces(addr, len(source)):
            region.data[start:stop] = source[done : done + stop - start]

    def view(self, addr: int, size: int) -> np.ndarray:
        """The stored bytes themselves, which must lie in one region."""
        pieces = list(self._pieces(addr, size))
        if len(pieces) != 1:
            raise ValueError(f"{size} bytes at {addr:#x} do not lie in one region")
        region, start, stop, _ = pieces[0]
        return region.data[start:stop]

    def find(self, addr: int) -> Region | None:
        """The region that holds `addr`, or None."""
        at = bisect_right(self._bases, addr) - 1
        if at >= 0 and addr < self.regions[at].end:
            return self.regions[at]
        return None

    def _pieces(self, addr: int, size: int) -> Iterator[tuple[Region, int, int, int]]:
        """(region, first, end, bytes before) of each part; all parts exist before the first."""
        if size < 0:
            raise ValueError(f"a size of {size} bytes is not possible")
        parts = []
        done = 0
        while done < size:
            at = (addr + done) & self.mask
            region = self.find(at)
            if region is None:
                raise ValueError(
                    f"no memory at {at:#x}: {size} bytes from {addr:#x} leave every region"
                )
            start = at - region.base
            stop = min(len(region.data), start + size - done)
            parts.append((region, start, stop, done))
            done += stop - start
        return iter(parts)

    # -- the model's way in ------------------------------------------------------------------

    def read_beat(self, addr: int, size: int) -> tuple[int, int]:
        """(little-endian data, all permission bits of its bytes) of one beat."""
        region = self.find(addr)
        if region is not None and addr + size <= region.end:
            start = addr - region.base
            perms = int(np.bitwise_or.reduce(region.perms[start : start + size]))
            return int.from_bytes(region.data[start : start + size].tobytes(), "little"), perms
        value = perms = 0
        for i in range(size):
            region = self.find((addr + i) & self.mask)
            byte = FILL
            if region is not None:
                offset = (addr + i) & self.mask
                byte = int(region.data[offset - region.base])
                perms |= int(region.perms[offset - region.base])
            value |= byte << (8 * i)
        return value, perms

    def forbidden_byte(self, addr: int, strobe: int, size: int) -> int | None:
        """The first byte that the strobes name and the core may not write, or None."""
        for i in range(size):
            if strobe >> i & 1:
                at = (addr + i) & self.mask
                region = self.find(at)
                if region is None or not int(region.perms[at - region.base]) & WRITE:
                    return at
        return None

    def write_beat(self, addr: int, data: int, strobe: int, size: int) -> bool:
        """Write the bytes that the strobes name; True when one of them fails (and stays)."""
        failed = False
        for i in range(size):
            if strobe >> i & 1:
                at = (addr + i) & self.mask
                region = self.find(at)
                assert region is not None
                if int(region.perms[at - region.base]) & WRITE_ERROR:
                    failed = True
                else:
                    region.data[at - region.base] = data >> (8 * i) & 0xFF
        return failed
