"""Random walks over rows of memory, and what a load or store pipe must make of them.

Plain Python, written from `hdl.interfaces.ldst_uop` and isa.md, not from the design.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, replace

from hdl.config import Config


@dataclass(frozen=True)
class Part:
    """One uop; `zero` ones name rows of a block."""

    tile: int
    row: int
    addr: int = 0
    first: int = 0
    last: int = 0
    tail: int = 0
    half: int = 0
    more: int = 0
    zero: int = 0
    rows: int = 0

    @property
    def size(self) -> int:
        return self.last - self.first + 1

    @property
    def start(self) -> int:
        """Address of the row's byte 0."""
        return self.addr - self.first

    @property
    def end(self) -> int:
        """Address of the last byte."""
        return self.addr + self.size - 1


def cut(cfg: Config, tile: int, row: int, addr: int, size: int) -> list[Part]:
    """The parts of one row of `size` bytes at `addr`: one a line."""
    parts = []
    first = 0
    while first < size:
        at = addr + first
        room = cfg.line_bytes - at % cfg.line_bytes
        last = min(size, first + room) - 1
        parts.append(Part(tile, row, at, first, last, tail=int(last == size - 1)))
        first = last + 1
    return parts


def link(cfg: Config, parts: list[Part], rng: random.Random, drop: float = 0.0) -> list[Part]:
    """Set `more` wherever a part's successor continues its burst (or not, with chance `drop`)."""
    linked = []
    for this, after in zip(parts, [*parts[1:], None], strict=True):
        more = (
            after is not None
            and not this.zero
            and not after.zero
            and after.start == this.start + cfg.row_bytes
            and after.addr // cfg.line_bytes == this.addr // cfg.line_bytes
            and 0 <= after.addr // cfg.bus_bytes - this.end // cfg.bus_bytes <= 1
            and rng.random() >= drop
        )
        linked.append(replace(this, more=int(more)))
    return linked


def walk(cfg: Config, rng: random.Random, low: int, high: int, *, zeros: bool = True) -> list[Part]:
    """One random walk inside addresses low..high - 1, downwards or along the row."""
    rows = rng.randint(1, cfg.rows)
    tiles = 1 << rng.randrange(min(4, cfg.tiles.bit_length()))
    tile = rng.randrange(cfg.tiles - tiles + 1)
    full = cfg.row_bytes
    size = rng.choice((full, full, full, 1, full - 1, rng.randint(1, full)))
    down = rng.random() < 0.5
    active = rng.randint(1, tiles)
    span = size if down else (active - 1) * full + size
    stride = rng.choice(
        (full, full, active * full, span, 0, -span, -full, cfg.line_bytes, rng.randint(-300, 300))
    )
    count = rows * (active if down else 1)
    reach = stride * (count - 1)
    need = abs(reach) + span
    if high - low < need + cfg.line_bytes:
        return walk(cfg, rng, low, high, zeros=zeros)
    base = rng.randrange(low + max(0, -reach), high - span - max(0, reach))
    if rng.random() < 0.4:
        base -= base % rng.choice((cfg.bus_bytes, cfg.line_bytes, full))
        base = max(base, low + max(0, -reach))
    parts = []
    for number in range(count):
        at = base + number * stride
        if down:
            parts += cut(cfg, tile + number // rows, number % rows, at, size)
        else:
            for t in range(active):
                part_size = size if t == active - 1 else full
                parts += cut(cfg, tile + t, number, at + t * full, part_size)
    parts = link(cfg, parts, rng, rng.choice((0, 0, 0, 0.3)))
    if zeros:
        for t in range(tiles):
            first = rows if t < active else 0
            for block in range(first // cfg.m_par, cfg.blocks):
                mask = sum(1 << r for r in range(cfg.m_par) if block * cfg.m_par + r >= first)
                parts.append(Part(tile + t, block * cfg.m_par, zero=1, rows=mask))
    return parts


def walks(
    cfg: Config, rng: random.Random, count: int, low: int, high: int, *, zeros: bool = True
) -> list[Part]:
    """Random walks, one after the other, of at least `count` parts together."""
    parts: list[Part] = []
    while len(parts) < count:
        parts += walk(cfg, rng, low, high, zeros=zeros)
    return parts


def directed(cfg: Config, low: int, rng: random.Random) -> list[Part]:
    """Walks in which every case of `coverage` happens, from a line at or above `low` on.

    They take 9 lines and a row.
    """
    row, bus = cfg.row_bytes, cfg.bus_bytes
    line = -(-low // cfg.line_bytes) * cfg.line_bytes
    lines = range(line, line + 8 * cfg.line_bytes, row)
    short = bus // 2
    parts: list[Part] = []
    # Whole rows without a gap, from a line on and from a byte inside it.
    for offset in (0, 1, row - 1):
        rows: list[Part] = []
        for number, at in enumerate(lines):
            rows += cut(cfg, number % cfg.tiles, number % cfg.rows, at + offset, row)
        parts += link(cfg, rows, rng)
    # The row of two tiles, of which the second ends in the beat where it starts.
    rows = []
    for number, at in enumerate(lines):
        rows += cut(cfg, number % 2, number // 2 % cfg.rows, at + 1, short if number % 2 else row)
    parts += link(cfg, rows, rng)
    return parts


def trim(parts: list[Part], rng: random.Random) -> list[Part]:
    """Some bursts begin later in their first row and end earlier in their last one."""
    trimmed = []
    begins = True
    for part in parts:
        if not part.zero and begins and rng.random() < 0.3:
            skip = rng.randrange(part.size)
            part = replace(part, addr=part.addr + skip, first=part.first + skip)
        if not part.zero and not part.more and rng.random() < 0.3:
            part = replace(part, last=part.last - rng.randrange(part.size), tail=rng.getrandbits(1))
        begins = not part.more
        if not part.zero and part.tail and rng.random() < 0.3:
            part = replace(part, half=1)
        trimmed.append(part)
    return trimmed


def mix(one: list[Part], two: list[Part], rng: random.Random) -> list[Part]:
    """Two sequences of parts, interleaved between bursts."""
    mixed: list[Part] = []
    queues = [list(reversed(one)), list(reversed(two))]
    while queues[0] or queues[1]:
        queue = rng.choice([q for q in queues if q])
        mixed.append(queue.pop())
        while mixed[-1].more:
            mixed.append(queue.pop())
    return mixed


def bursts(parts: list[Part]) -> list[list[Part]]:
    """The parts grouped into requests."""
    groups: list[list[Part]] = [[]]
    for part in parts:
        if part.zero:
            continue
        groups[-1].append(part)
        if not part.more:
            groups.append([])
    assert not groups.pop()
    return groups


def requests(cfg: Config, parts: list[Part]) -> list[tuple[int, int, bool]]:
    """(address, beats, every byte of the line named) of each request, in order."""
    found = []
    for group in bursts(parts):
        first = group[0].addr // cfg.bus_bytes
        last = group[-1].end // cfg.bus_bytes
        covered = {at for part in group for at in range(part.addr, part.end + 1)}
        found.append((first * cfg.bus_bytes, last - first + 1, len(covered) == cfg.line_bytes))
    return found


def coverage(cfg: Config, parts: list[Part]) -> Counter:
    """How often the cases happened that a pipe treats apart."""
    seen: Counter = Counter()
    for group in bursts(parts):
        ends = [part.end // cfg.bus_bytes for part in group]
        begins = [part.addr // cfg.bus_bytes for part in group]
        both = sum(ends.count(beat) > 1 for beat in set(ends))
        joined = len(group) > 1
        cut_before = group[0].first > 0
        seen["two parts end in a beat"] += both > 0
        seen["twice in a burst"] += both > 1
        seen["a row begins where one ends"] += joined and any(b in ends for b in begins[1:])
        seen["a row begins a beat later"] += joined and any(
            begin == end + 1 for begin, end in zip(begins[1:], ends, strict=False)
        )
        seen["row cut by a line"] += cut_before
        seen["cut row and the next in a beat"] += cut_before and begins[1:2] == ends[:1]
        seen["full line"] += group[-1].end - group[0].addr == cfg.line_bytes - 1
        seen["short row inside a burst"] += any(p.last + 1 < cfg.row_bytes for p in group[1:-1])
        seen["part over several beats"] += any(b < e for b, e in zip(begins, ends, strict=True))
    return seen


CASES = tuple(coverage(Config(), [Part(0, 0)]))
"""Names of all the cases."""
