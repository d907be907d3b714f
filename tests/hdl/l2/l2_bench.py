"""Benches that put parts through a load or store pipe, with L2Model behind it."""

from __future__ import annotations

import os
import random
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from amaranth.sim import Simulator
from l2_walks import Part

from hdl.config import Config
from hdl.l2.load import LoadPipe
from hdl.l2.store import StorePipe
from sim.memory import L2Model, Memory, Personality
from sim.stream_check import StreamChecker

SEED = int(os.environ.get("TEST_SEED", "1"))


@dataclass
class Run:
    """What was seen of one run, cycle by cycle where it matters."""

    cycles: int = 0
    requests: list[tuple[int, int, int]] = field(default_factory=list)  # cycle, addr, len
    request_ids: list[int] = field(default_factory=list)
    full_lines: int = 0
    writes: list[Any] = field(default_factory=list)  # (cycle, tile, block, rows, mask, data)
    retired: list[tuple[int, int]] = field(default_factory=list)
    bus_errors: int = 0
    accepted: list[int] = field(default_factory=list)  # cycle of each uop
    beats: list[int] = field(default_factory=list)  # cycle of each beat on the data channel
    reads: list[tuple[int, int, int]] = field(default_factory=list)  # cycle, tile, row
    offered: dict[str, int] = field(default_factory=dict)  # first cycle of each valid
    idle: int = -1  # cycle in which the pipe got idle for good


def set_part(ctx: Any, payload: Any, part: Part) -> None:
    for name in ("tile", "row", "addr", "first", "last", "tail", "more", "zero", "rows"):
        value = getattr(part, name)
        ctx.set(payload[name], value & ((1 << len(payload[name])) - 1))


class Bench:
    """Everything both pipes share: the uop source, L2, checks of streams and of `idle`.

    Parameters
    ----------
    gap : chance that the next uop is not offered in a cycle.
    stall : chance that the tile file does not grant in a cycle.
    bound : cycles that the run may take.
    """

    def __init__(
        self,
        dut: LoadPipe | StorePipe,
        parts: list[Part],
        memory: Memory,
        personality: Personality,
        seed: int,
        *,
        gap: float = 0.0,
        stall: float = 0.0,
        bound: int = 0,
    ):
        self.dut, self.parts, self.memory = dut, parts, memory
        self.cfg: Config = dut.cfg
        self.load = isinstance(dut, LoadPipe)
        self.model = L2Model(
            self.cfg, memory, personality, seed, read=self.load, write=not self.load
        )
        self.rng = random.Random(seed)
        self.gap, self.stall = gap, stall
        self.bound = bound or 2000 + 60 * len(parts)
        self.note = f"TEST_SEED={SEED}, run seed {seed}, {personality.name}"
        self.run = Run()

    def simulate(self) -> Run:
        sim = Simulator(self.dut)
        sim.add_clock(1e-6)
        sim.add_testbench(self.bench)
        sim.run()
        return self.run

    def ports(self) -> dict[str, Any]:
        from sim.l2_model import _OUTPUTS

        dut = self.dut
        ports = {name: getattr(dut, name) for name in _OUTPUTS["r" if self.load else "w"]}
        ports |= {
            "uops.valid": dut.uops.valid,
            "uops.ready": dut.uops.ready,
            "idle": dut.idle,
            "bus_error": dut.bus_error,
        }
        if self.load:
            ports |= {
                "write.valid": dut.write.valid,
                "write.payload": dut.write.payload.as_value(),
                "retired": dut.retired,
                "retired_tile": dut.retired_tile,
            }
        else:
            ports |= {
                "read.valid": dut.read.valid,
                "read.ready": dut.read.ready,
                "read.tile": dut.read.addr.tile,
                "read.row": dut.read.addr.row,
                "reading": dut.reading,
                "reading_tile": dut.reading_tile,
            }
        return ports

    async def bench(self, ctx: Any) -> None:
        dut, run, rng = self.dut, self.run, self.rng
        ports = self.ports()
        names, signals = list(ports), list(ports.values())
        driven: dict[str, int] = {}
        offered = -1
        next_part = 0
        quiet = 0
        self.checks = {"uops": StreamChecker("uops"), "tile": StreamChecker("tile file")}
        self.start()
        while quiet < 5:
            cycle = self.model.cycle
            assert cycle < self.bound, f"not idle after {cycle} cycles; {self.note}"
            for name, value in self.model.outputs().items():
                if driven.get(name) != value:
                    ctx.set(getattr(dut, name), value)
                    driven[name] = value
            if offered < 0 and next_part < len(self.parts) and rng.random() >= self.gap:
                offered = next_part
                set_part(ctx, dut.uops.payload, self.parts[offered])
                ctx.set(dut.uops.valid, 1)
            self.drive(ctx)
            _, _, *values = await ctx.tick().sample(*signals)
            seen = dict(zip(names, values, strict=True))
            self.model.step(seen)
            run.cycles = cycle + 1
            for name in names:
                if name.endswith("valid") and seen[name]:
                    run.offered.setdefault(name, cycle)
            if offered >= 0 and seen["uops.ready"]:
                run.accepted.append(cycle)
                next_part, offered = offered + 1, -1
                ctx.set(dut.uops.valid, 0)
                # Rubbish while nothing is offered, so that a design that looks is caught.
                ctx.set(dut.uops.payload.as_value(), rng.getrandbits(64))
            run.bus_errors += seen["bus_error"]
            self.observe(cycle, seen)
            if seen["idle"]:
                assert self.model.idle, f"idle with requests in flight, cycle {cycle}; {self.note}"
            if seen["idle"] and next_part == len(self.parts):
                run.idle = cycle if not quiet else run.idle
                quiet += 1
            else:
                quiet = 0

    def start(self) -> None: ...

    def drive(self, ctx: Any) -> None: ...

    def observe(self, cycle: int, seen: dict[str, Any]) -> None: ...


class LoadBench(Bench):
    """A load pipe whose writes are noted."""

    def drive(self, ctx: Any) -> None:
        self.ready = int(self.rng.random() >= self.stall)
        ctx.set(self.dut.write.ready, self.ready)

    def observe(self, cycle: int, seen: dict[str, Any]) -> None:
        run = self.run
        self.checks["tile"].step(seen["write.valid"], self.ready, seen["write.payload"])
        if (
            seen["dsa_pad_req_rvalid"]
            and self.model.read_side.id_since.get(seen["dsa_pad_req_rid"]) == cycle
        ):
            run.requests.append((cycle, seen["dsa_pad_req_raddr"], seen["dsa_pad_req_rlen"]))
            run.request_ids.append(seen["dsa_pad_req_rid"])
        if self.model.traffic.read_beats > len(run.beats):
            run.beats.append(cycle)
        if seen["write.valid"] and self.ready:
            shape = self.dut.write.payload.shape()
            bits = seen["write.payload"]
            fields = {
                name: bits >> field.offset & ((1 << field.width) - 1) for name, field in shape
            }
            run.writes.append((cycle, fields))
        if seen["retired"]:
            run.retired.append((cycle, seen["retired_tile"]))


class StoreBench(Bench):
    """A store pipe that reads rows of `tiles`."""

    def start(self) -> None:
        cfg = self.cfg
        self.rows = {
            (tile, row): self.rng.getrandbits(cfg.row_bits)
            for tile in range(cfg.tiles)
            for row in range(cfg.rows)
        }
        self.granted: tuple[int, int] | None = None
        self.waiting: list[int] = []

    def drive(self, ctx: Any) -> None:
        data = (
            self.rng.getrandbits(self.cfg.row_bits)
            if self.granted is None
            else self.rows[self.granted]
        )
        ctx.set(self.dut.read.data, data)
        self.ready = int(self.rng.random() >= self.stall)
        ctx.set(self.dut.read.ready, self.ready)

    def observe(self, cycle: int, seen: dict[str, Any]) -> None:
        run = self.run
        address = (seen["read.tile"], seen["read.row"])
        self.checks["tile"].step(seen["read.valid"], self.ready, address)
        # The scoreboard's view: exactly the accepted uop that was not read yet.
        assert seen["reading"] == bool(self.waiting), f"reading, cycle {cycle}; {self.note}"
        if self.waiting:
            assert seen["reading_tile"] == self.waiting[0], f"cycle {cycle}; {self.note}"
        self.granted = None
        if seen["read.valid"] and self.ready:
            self.granted = address
            run.reads.append((cycle, *address))
            self.waiting.pop()
        if run.accepted and run.accepted[-1] == cycle:
            self.waiting.append(self.parts[len(run.accepted) - 1].tile)
        assert len(self.waiting) <= 1, f"two uops to read, cycle {cycle}; {self.note}"
        if (
            seen["dsa_pad_req_wvalid"]
            and self.model.write_side.id_since.get(seen["dsa_pad_req_wid"]) == cycle
        ):
            run.requests.append((cycle, seen["dsa_pad_req_waddr"], seen["dsa_pad_req_wlen"]))
            run.request_ids.append(seen["dsa_pad_req_wid"])
            run.full_lines += seen["dsa_pad_req_fullline"]
        if self.model.traffic.write_beats > len(run.beats):
            run.beats.append(cycle)


def expected_write(cfg: Config, memory: Memory, part: Part, bad: set[int]) -> tuple:
    """(tile, block, rows, mask, data under the mask) of a part; beats in `bad` failed."""
    block, row = divmod(part.row, cfg.m_par)
    everything = (1 << cfg.row_bytes) - 1
    if part.zero:
        return part.tile, block, part.rows, everything, 0
    data = bytearray(cfg.row_bytes)
    source = memory.read(part.addr, part.size)
    mask = 0
    for i, byte in enumerate(range(part.first, part.last + 1)):
        mask |= 1 << byte
        if (part.addr + i) % (memory.mask + 1) // cfg.bus_bytes not in bad:
            data[byte] = source[i]
    if part.tail:
        mask |= everything & ~((2 << part.last) - 1)
    return part.tile, block, 1 << row, mask, int.from_bytes(data, "little")


def masked(cfg: Config, fields: dict[str, int]) -> tuple:
    """A noted write in the form of `expected_write`."""
    keep = sum(0xFF << (8 * i) for i in range(cfg.row_bytes) if fields["mask"] >> i & 1)
    return (
        fields["tile"],
        fields["block"],
        fields["rows"],
        fields["mask"],
        fields["data"] & keep,
    )


def count(items: Any) -> Counter:
    return Counter(items)
