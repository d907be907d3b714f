"""Benches that put parts through a load or store pipe, with L2Model behind it."""

from __future__ import annotations

import os
import random
from dataclasses import dataclass, field
from typing import Any

from amaranth.hdl import Value
from amaranth.lib.memory import Memory as HardwareMemory
from amaranth.lib.wiring import Out
from amaranth.sim import Simulator
from l2_walks import Part, bursts

from hdl.config import Config, preset
from hdl.interfaces import l2_read_members, l2_write_members
from hdl.l2.load import LoadPipe
from hdl.l2.store import StorePipe
from sim.l2_model import L2Model
from sim.memory import Memory
from sim.personality import Personality
from sim.stream_check import StreamChecker

SEED = int(os.environ.get("TEST_SEED", "1"))

AME = preset("ame32-int8")
CONFIGS = {
    "ids4": AME.replace(l2_ids=4, m_par=2, n_par=1),
    "id1": AME.replace(l2_ids=1),
    "row256": AME.replace(tiles=8, rows=8, row_bits=256, l2_ids=8),
    "row512": AME.replace(rows=4, row_bits=512, line_bytes=128, m_par=2, n_par=2),
    "line32": AME.replace(line_bytes=32, m_par=1, n_par=1),
    "line16": AME.replace(line_bytes=16, rows=8, m_par=8, banks=1),
    "bus64": AME.replace(bus_bits=64, line_bytes=32, l2_ids=2),
    "line128": AME.replace(line_bytes=128, l2_ids=16, addr_bits=32),
}
"""Odd ones beside the preset, by name."""


@dataclass
class Run:
    """What one run did. Lists of (cycle, ...) in order; cycles count from the run's start."""

    uops: list[int] = field(default_factory=list)
    requests: list[tuple[int, int, int, int]] = field(default_factory=list)  # addr, beats, id
    full_lines: int = 0
    beats: list[int] = field(default_factory=list)
    writes: list[tuple[int, dict[str, int]]] = field(default_factory=list)
    retired: list[tuple[int, int]] = field(default_factory=list)  # tile
    reads: list[tuple[int, int, int]] = field(default_factory=list)  # tile, row
    bus_errors: int = 0
    first_valid: dict[str, int] = field(default_factory=dict)
    idle: int = -1

    @property
    def span(self) -> int:
        """Cycles from the first beat to the last."""
        return self.beats[-1] - self.beats[0] + 1


class Bench:
    """What both pipes share: the uop source, L2, checks of streams and of `idle`.

    Parameters
    ----------
    gap : chance that the next uop is not offered in a cycle.
    stall : chance that the tile file does not grant in a cycle.
    probe : chance that the inputs are shaken in a cycle, to see that no output follows them.
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
        probe: float = 0.0,
    ):
        self.dut, self.parts, self.memory = dut, parts, memory
        self.cfg: Config = dut.cfg
        self.load = isinstance(dut, LoadPipe)
        self.model = L2Model(
            self.cfg, memory, personality, seed, read=self.load, write=not self.load
        )
        self.rng = random.Random(seed)
        self.gap, self.stall, self.probe = gap, stall, probe
        self.bound = 3000 + 60 * len(parts)
        self.note = f"TEST_SEED={SEED}, run seed {seed}, {personality.name}"
        self.result = Run()
        self.uop_check = StreamChecker("uops")
        self.tile_check = StreamChecker("tile file")

    def run(self) -> Run:
        sim = Simulator(self.dut)
        sim.add_clock(1e-6)
        sim.add_testbench(self.play)
        sim.run()
        return self.result

    def ports(self) -> dict[str, Any]:
        """Outputs sampled every cycle, by name."""
        dut = self.dut
        members = l2_read_members(self.cfg) if self.load else l2_write_members(self.cfg)
        ports = {name: getattr(dut, name) for name, m in members.items() if m.flow == Out}
        ports |= {"uops.ready": dut.uops.ready, "idle": dut.idle, "bus_error": dut.bus_error}
        return ports | self.tile_ports()

    async def play(self, ctx: Any, stop: int | None = None) -> None:
        """Run until everything is done, or to a cycle."""
        dut, run, rng = self.dut, self.result, self.rng
        ports = self.ports()
        names, signals = list(ports), list(ports.values())
        uop_fields = dut.uops.payload.shape()
        offered = 0  # the part's bits, once offered
        number = 0
        quiet = 0
        ctx.set(dut.uops.valid, 0)
        while quiet < 5:
            cycle = self.model.cycle
            if cycle == stop:
                return
            assert cycle < self.bound, f"not done and idle after {cycle} cycles; {self.note}"
            for name, value in self.model.outputs().items():
                ctx.set(getattr(dut, name), value)
            waits = ctx.get(dut.uops.valid)
            if not waits:
                # Rubbish while nothing is offered, so that a design that looks is caught.
                offered = rng.getrandbits(uop_fields.size)
                if number < len(self.parts) and rng.random() >= self.gap:
                    offered = pack(uop_fields, vars(self.parts[number]))
                    waits = 1
                ctx.set(dut.uops.payload.as_value(), offered)
                ctx.set(dut.uops.valid, waits)
            self.drive(ctx)
            if rng.random() < self.probe:
                self.shake(ctx, ports)
            _, _, *values = await ctx.tick().sample(*signals)
            seen = dict(zip(names, values, strict=True))
            self.model.step(seen)
            self.uop_check.step(waits, seen["uops.ready"], offered)
            for name in names:
                if name.endswith("valid") and seen[name]:
                    run.first_valid.setdefault(name, cycle)
            taken = waits and seen["uops.ready"]
            self.observe(cycle, seen, self.parts[number] if taken else None)
            if taken:
                run.uops.append(cycle)
                number += 1
                ctx.set(dut.uops.valid, 0)
            run.bus_errors += seen["bus_error"]
            self.note_request(cycle, seen)
            before = number - bool(taken)
            assert not seen["idle"] or (self.model.idle and self.done(before)), (
                f"idle too early, cycle {cycle}; {self.note}"
            )
            if seen["idle"] and number == len(self.parts) and not taken:
                run.idle = run.idle if quiet else cycle
                quiet += 1
            else:
                assert not quiet, f"idle fell without a uop, cycle {cycle}; {self.note}"

    def note_request(self, cycle: int, seen: dict[str, Any]) -> None:
        run, traffic = self.result, self.model.traffic
        k = "r" if self.load else "w"
        if len(run.requests) < (traffic.read_requests if self.load else traffic.write_requests):
            run.requests.append(
                (
                    cycle,
                    seen[f"dsa_pad_req_{k}addr"],
                    seen[f"dsa_pad_req_{k}len"] + 1,
                    seen[f"dsa_pad_req_{k}id"],
                )
            )
            run.full_lines += seen.get("dsa_pad_req_fullline", 0)
        if len(run.beats) < (traffic.read_beats if self.load else traffic.write_beats):
            run.beats.append(cycle)

    def shake(self, ctx: Any, ports: dict[str, Any]) -> None:
        """Every input takes other values for a moment."""
        inputs = [Value.cast(port) for port in self.inputs()]
        fixed = list(ports.values())
        before = [ctx.get(port) for port in fixed]
        values = [ctx.get(port) for port in inputs]
        for port in inputs:
            ctx.set(port, self.rng.getrandbits(len(port)))
        after = [ctx.get(port) for port in fixed]
        for port, value in zip(inputs, values, strict=True):
            ctx.set(port, value)
        assert before == after, f"an output follows an input, {self.note}"

    def inputs(self) -> list[Any]:
        dut = self.dut
        return [getattr(dut, name) for name in self.model.outputs()] + [
            dut.uops.valid,
            dut.uops.payload,
        ]

    def tile_ports(self) -> dict[str, Any]:
        raise NotImplementedError

    def done(self, number: int) -> bool:
        """Have the first so many parts done all they must?"""
        raise NotImplementedError

    def drive(self, ctx: Any) -> None:
        raise NotImplementedError

    def observe(self, cycle: int, seen: dict[str, Any], taken: Part | None) -> None:
        raise NotImplementedError


class LoadBench(Bench):
    """A load pipe whose writes are noted."""

    def tile_ports(self) -> dict[str, Any]:
        dut = self.dut
        return {
            "write.valid": dut.write.valid,
            "write.payload": dut.write.payload.as_value(),
            "retired": dut.retired,
            "retired_tile": dut.retired_tile,
        }

    def inputs(self) -> list[Any]:
        return [*super().inputs(), self.dut.write.ready]

    def done(self, number: int) -> bool:
        return len(self.result.writes) == number

    def drive(self, ctx: Any) -> None:
        self.ready = int(self.rng.random() >= self.stall)
        ctx.set(self.dut.write.ready, self.ready)

    def observe(self, cycle: int, seen: dict[str, Any], taken: Part | None) -> None:
        run = self.result
        self.tile_check.step(seen["write.valid"], self.ready, seen["write.payload"])
        if seen["write.valid"] and self.ready:
            fields = unpack(self.dut.write.payload.shape(), seen["write.payload"])
            run.writes.append((cycle, fields))
        if seen["retired"]:
            run.retired.append((cycle, seen["retired_tile"]))


class StoreBench(Bench):
    """A store pipe that reads rows of random bytes."""

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        cfg = self.cfg
        self.rows = {
            (tile, row): self.rng.getrandbits(cfg.row_bits)
            for tile in range(cfg.tiles)
            for row in range(cfg.rows)
        }
        self.beats_after = {0: 0}  # beats when so many parts are done, at the ends of bursts
        number = beats = 0
        for group in bursts(self.parts):
            number += len(group)
            beats += group[-1].end // cfg.bus_bytes - group[0].addr // cfg.bus_bytes + 1
            self.beats_after[number] = beats
        self.granted: tuple[int, int] | None = None
        self.unread: list[int] = []

    def tile_ports(self) -> dict[str, Any]:
        dut = self.dut
        return {
            "read.valid": dut.read.valid,
            "read.tile": dut.read.addr.tile,
            "read.row": dut.read.addr.row,
            "reading0": dut.reading0,
            "reading_tile0": dut.reading_tile0,
            "reading1": dut.reading1,
            "reading_tile1": dut.reading_tile1,
        }

    def inputs(self) -> list[Any]:
        return [*super().inputs(), self.dut.read.ready, self.dut.read.data]

    def done(self, number: int) -> bool:
        if number and self.parts[number - 1].more:
            return False
        return len(self.result.beats) == self.beats_after[number]

    def drive(self, ctx: Any) -> None:
        rubbish = self.rng.getrandbits(self.cfg.row_bits)
        ctx.set(self.dut.read.data, self.rows.get(self.granted, rubbish))
        self.ready = int(self.rng.random() >= self.stall)
        ctx.set(self.dut.read.ready, self.ready)

    def observe(self, cycle: int, seen: dict[str, Any], taken: Part | None) -> None:
        address = (seen["read.tile"], seen["read.row"])
        self.tile_check.step(seen["read.valid"], self.ready, address)
        # The scoreboard's view: exactly the accepted uops that were not read yet.
        for place in range(StorePipe.HELD):
            held = place < len(self.unread)
            assert seen[f"reading{place}"] == held, f"reading, cycle {cycle}; {self.note}"
            if held:
                tile = seen[f"reading_tile{place}"]
                assert tile == self.unread[place], f"cycle {cycle}; {self.note}"
        self.granted = None
        if seen["read.valid"] and self.ready:
            self.granted = address
            self.result.reads.append((cycle, *address))
            self.unread.pop(0)
        if taken:
            self.unread.append(taken.tile)
        assert len(self.unread) <= StorePipe.HELD, f"uops to read, cycle {cycle}; {self.note}"


def pack(layout: Any, fields: dict[str, int]) -> int:
    """Bits of a structure from its fields, each cut to its width."""
    return sum((fields[name] & ((1 << field.width) - 1)) << field.offset for name, field in layout)


def unpack(layout: Any, bits: int) -> dict[str, int]:
    """Fields of a structure."""
    return {name: bits >> field.offset & ((1 << field.width) - 1) for name, field in layout}


class WatchedMemory(HardwareMemory):
    """A memory of the design that remembers its ports, to see what meets in one cycle."""

    made: list[WatchedMemory]

    def write_port(self, **kwargs: Any) -> Any:
        self.made.append(self)
        self.write = super().write_port(**kwargs)
        return self.write

    def read_port(self, **kwargs: Any) -> Any:
        self.read = super().read_port(**kwargs)
        return self.read


def watch_memories(monkeypatch: Any, *modules: Any) -> list[WatchedMemory]:
    """From now on these modules build watched memories; returns the list they appear in."""
    made: list[WatchedMemory] = []
    monkeypatch.setattr(WatchedMemory, "made", made, raising=False)
    for module in modules:
        monkeypatch.setattr(module, "Memory", WatchedMemory)
    return made


def run_without_collisions(bench: Bench, made: list[WatchedMemory]) -> int:
    """Run; no memory may read the word that it writes. Returns how often one did both at once."""
    made.clear()
    sim = Simulator(bench.dut)
    signals = [s for m in made for s in (m.write.en, m.write.addr, m.read.en, m.read.addr)]
    both = 0

    async def watch(ctx: Any) -> None:
        nonlocal both
        while True:
            _, _, *values = await ctx.tick().sample(*signals)
            for i in range(len(made)):
                write, where, read, there = values[4 * i : 4 * i + 4]
                both += bool(write and read)
                assert not (write and read and where == there), f"memory {i}; {bench.note}"

    sim.add_clock(1e-6)
    sim.add_testbench(watch, background=True)
    sim.add_testbench(bench.play)
    sim.run()
    return both
