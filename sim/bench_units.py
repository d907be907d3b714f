"""Benchmarks of single units: mmacc after mmacc, streams, latency, decode."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from hdl.activity import MAC_ISSUE, MAC_LOST
from hdl.config import Config
from hdl.describe import Pair, format_pairs, result_latency

from .bench_rows import Job, Row, Setting, counts, limit, moments, targets_hold
from .cores import SharedCore, shared_core
from .driver import RunResult
from .kernels import TILINGS, Tiles
from .memory import Memory
from .personality import IDEAL
from .program import Program

__all__ = ["SELECT", "unit_jobs"]

SELECT = {
    "bovf": {"bovf": 1},
    "full": {},
    "wide": {"acc": 1},
    "tf32": {"acc": 2},
    "bf16": {"acc": 3},
}
"""Fields of mxcfg that choose a column of `hdl.formats.ACC_MODES`."""

BASE = 0x10_0000
STREAM_BEATS = 4096
IDS_COVER = 0.98
"""Target of a stream whose latency the ids cover."""
IDS_SHORT = 0.96
"""Target at one cycle more."""


def unit_jobs(setting: Setting) -> list[Job]:
    """Everything but whole GEMMs."""
    cfg = setting.cfg
    jobs = []
    for pair in format_pairs(cfg):
        name = f"{pair.operand.name} to {pair.output.name}"
        jobs += [
            Job("mmacc", f"mmacc after mmacc, {name}", lambda p=pair: _mmacc(setting, p)),
            Job("latency", f"latency of a mmacc, {name}", lambda p=pair: _latency(setting, p)),
        ]
    if cfg.row_bytes == cfg.bus_bytes:
        covered = cfg.l2_ids - 1
        some = {1, min(8, covered), min(LATENCIES_QUICK, covered), covered, cfg.l2_ids}
        for latency in sorted(some) if setting.quick else range(1, cfg.l2_ids + 1):
            jobs.append(
                Job(
                    "loads",
                    f"load stream, latency {latency}",
                    lambda n=latency: _loads(setting, n),
                )
            )
        jobs.append(Job("stores", "store stream", lambda: _stores(setting)))
    jobs.append(Job("decode", "instructions a cycle", lambda: _decode(setting)))
    return sorted(jobs, key=lambda job: KINDS.index(job.kind))


LATENCIES_QUICK = 20
KINDS = ("mmacc", "loads", "stores", "latency", "decode")


def _target(cfg: Config, value: float) -> float | None:
    return value if targets_hold(cfg) else None


def _run(core: SharedCore, program: Program, *, size: int = 0, latency: int = 20) -> RunResult:
    """A program with its activity recorded, on `size` bytes of memory."""
    memory = Memory(core.cfg.addr_bits)
    if size:
        memory.add_region(BASE, size)
    personality = IDEAL.replace(name=f"latency {latency}", latency=latency)
    return core.run(memory, program.requests, personality=personality, probes=True)


def _resident(cfg: Config, pair: Pair) -> tuple[Program, Tiles]:
    """A program that has set itself up for whole tiles of a format pair."""
    tiles = Tiles.of(cfg, TILINGS["1x1"], pair.output.container)
    program = Program(cfg)
    program.set_cfg(pair.operand.name, **SELECT[pair.modes[0]])
    program.set_tile(pair.lanes, cfg.rows, cfg.rows)
    program.mfence()
    return program, tiles


def _mmacc(setting: Setting, pair: Pair) -> Iterator[Row]:
    """mmaccs of whole tiles into one C, from the first uop to the last."""
    cfg = setting.cfg
    core = shared_core(cfg, setting.engine)
    number = 16 if setting.quick else 64
    program, tiles = _resident(cfg, pair)
    for _ in range(number):
        program.mmacc(tiles.c_sets[0], tiles.a_buffers[0], tiles.b_buffers[0])
    program.mfence()
    values = _run(core, program).probes["activity"]
    uops = moments(values, MAC_ISSUE)
    values = values[uops[0] : uops[-1] + 1]
    bound, cycles = number * pair.uop_cycles, len(values)
    activity = counts(values)
    yield Row(
        kind="mmacc",
        name="mmacc after mmacc into the same C, 1x1",
        case=f"{pair.operand.name} to {pair.output.name}",
        preset=cfg.name,
        engine=core.engine,
        measured=bound / cycles,
        target=_target(cfg, 1.0),
        relation="==",
        bound=bound,
        cycles=cycles,
        limited_by=limit(activity, MAC_LOST, cycles),
        activity=activity,
    )


def _latency(setting: Setting, pair: Pair) -> Iterator[Row]:
    """From taking one mmacc to its last result, against what `--describe` says."""
    cfg = setting.cfg
    core = shared_core(cfg, setting.engine)
    program, tiles = _resident(cfg, pair)
    program.mmacc(tiles.c_sets[0], tiles.a_buffers[0], tiles.b_buffers[0])
    index = len(program) - 1
    program.mfence()
    result = _run(core, program)
    written = moments(result.probes["activity"], "mac_write")
    bound = result_latency(cfg, pair.uop_cycles)
    cycles = int(written[-1]) - result.request_cycles[index]
    yield Row(
        kind="latency",
        name="request of a mmacc to its last result, 1x1",
        case=f"{pair.operand.name} to {pair.output.name}",
        preset=cfg.name,
        engine=core.engine,
        measured=cycles,
        unit="cycles",
        target=bound,
        relation="==",
        cycles=cycles,
        limited_by="the pipeline, as --describe says",
        activity=result.activity,
    )


def _loads(setting: Setting, latency: int) -> Iterator[Row]:
    """Loads of rows that each need a request of one beat, from the first beat to the last."""
    cfg = setting.cfg
    core = shared_core(cfg, setting.engine)
    result = _run(core, _stream(cfg, load=True, offset=0), size=_stream_bytes(cfg), latency=latency)
    traffic = result.traffic
    assert traffic.read_requests == traffic.read_beats, "requests of one beat each"
    covered = latency < cfg.l2_ids
    yield _stream_row(
        cfg,
        core,
        result,
        kind="loads",
        name="load stream, one-beat requests, "
        + (f"latency 1 to {cfg.l2_ids - 1}" if covered else f"latency {latency}"),
        case=f"latency {latency}",
        beats=traffic.read_beats,
        cycles=traffic.last_read_beat - traffic.first_read_beat + 1,
        target=IDS_COVER if covered else IDS_SHORT,
        names=("read_ids", "read_request_wait", "read_beat_wait", "load_bank"),
    )


def _stores(setting: Setting) -> Iterator[Row]:
    """Stores of rows that each straddle two beats."""
    cfg = setting.cfg
    core = shared_core(cfg, setting.engine)
    program = _stream(cfg, load=False, offset=cfg.bus_bytes // 2)
    result = _run(core, program, size=_stream_bytes(cfg))
    traffic = result.traffic
    yield _stream_row(
        cfg,
        core,
        result,
        kind="stores",
        name="store stream, rows of two beats",
        case="",
        beats=traffic.write_beats,
        cycles=traffic.last_write_beat - traffic.first_write_beat + 1,
        target=IDS_COVER,
        names=("write_ids", "write_request_wait", "write_beat_wait", "store_bank"),
    )


def _stream_row(
    cfg: Config,
    core: SharedCore,
    result: RunResult,
    *,
    beats: int,
    cycles: int,
    target: float,
    names: tuple[str, ...],
    **texts: str,
) -> Row:
    return Row(
        preset=cfg.name,
        engine=core.engine,
        measured=beats / cycles,
        unit="beats/cycle",
        target=_target(cfg, target),
        bound=beats,
        cycles=cycles,
        limited_by=limit(result.activity, names, result.cycles),
        activity=result.activity,
        **texts,
    )


def _stream_bytes(cfg: Config) -> int:
    return _group(cfg) * cfg.rows * cfg.line_bytes


def _group(cfg: Config) -> int:
    """Tiles that one load or store of a stream names."""
    return min(8, cfg.tiles)


def _stream(cfg: Config, *, load: bool, offset: int) -> Program:
    """Loads or stores of whole tiles, each row in a line of its own."""
    group = _group(cfg)
    program = Program(cfg)
    move = program.mld if load else program.mst
    for index in range(-(-STREAM_BEATS // (group * cfg.rows))):
        tile = index * group % cfg.tiles
        move("r", tile, BASE + offset, cfg.line_bytes, n=group, down=True)
    program.mfence()
    return program


def _decode(setting: Setting) -> Iterator[Row]:
    """CSR writes and mmaccs of one uop in turn: slots are always free."""
    cfg = setting.cfg
    core = shared_core(cfg, setting.engine)
    pair = format_pairs(cfg)[0]
    program, tiles = _resident(cfg, pair)
    start = len(program)
    pairs = 64 if setting.quick else 512
    side = cfg.uop_columns(pair.output.container)
    for index in range(pairs):
        program.set_tile(pair.lanes - index % 2, cfg.m_par, side)
        c = tiles.c_sets[index % len(tiles.c_sets)]
        program.mmacc(c, tiles.a_buffers[0], tiles.b_buffers[0], beta=1)
    end = len(program)
    program.mfence()
    result = _run(core, program)
    taken = np.array(result.request_cycles[start:end])
    number, cycles = len(taken), int(taken[-1] - taken[0]) + 1
    yield Row(
        kind="decode",
        name="instructions accepted, slots free",
        preset=cfg.name,
        engine=core.engine,
        measured=number / cycles,
        unit="instructions/cycle",
        target=_target(cfg, 1.0),
        relation="==",
        bound=number,
        cycles=cycles,
        limited_by=_decode_limit(result),
        activity=result.activity,
    )


def _decode_limit(result: RunResult) -> str:
    waits = result.activity["dispatch_wait"]
    return f"free slots, {waits} cycles" if waits else "nothing"
