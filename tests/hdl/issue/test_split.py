"""Split counters against plain Python generators."""

import random

import pytest
from split_bench import SEED, CutRows, walk

from hdl.config import Config, preset
from hdl.interfaces import mma_fields
from hdl.issue.split import MmaSplit

CONFIGS = {
    "ame32": preset("ame32-int8"),
    "tiny": preset("tiny"),
    "wide": Config(tiles=8, rows=8, row_bits=256, banks=2, m_par=4, n_par=2),
    "flat": Config(tiles=16, rows=4, m_par=4, n_par=4, row_bits=512, bus_bits=128, banks=4),
}


# -- mma -------------------------------------------------------------------------------------


def expect_transposes(cfg, f):
    """Every word of every transposed tile, 16 uops a tile at most, A's and B's side by side."""
    parts = min(cfg.blocks, 16 // cfg.blocks)
    tiles = [f["i_last"] + 1] * f["a_transposed"] + [f["j_last"] + 1] * f["b_transposed"]
    return [
        {
            "a": (f["a"] + t, block) if f["a_transposed"] and t <= f["i_last"] else None,
            "b": (f["b"] + t, block * cfg.m_par)
            if f["b_transposed"] and t <= f["j_last"]
            else None,
            "index": t,
            "part": part,
        }
        for t in range(max(tiles, default=0))
        for block in range(cfg.blocks)
        for part in range(parts)
    ]


def expect_mma(cfg, f):
    """Columns fastest, then row blocks, then pairs, j before i."""
    width = 1 << f["width_log2"]
    step = min(cfg.n_par, cfg.row_bytes // width)
    uops = []
    pairs = [(i, j) for i in range(f["i_last"] + 1) for j in range(f["j_last"] + 1)]
    for i, j in pairs:
        rows = (f["m_last"] if i == f["i_last"] else f["m_most"]) + 1
        columns = (f["n_last"] if j == f["j_last"] else f["n_most"]) + 1
        group = f["c"] + i * f["i_stride"] + j * f["j_stride"]
        blocks = range(-(-rows // cfg.m_par))
        for block in blocks:
            for column in range(0, columns, step):
                byte = column * width
                last_block = block == blocks[-1]
                last_column = column + step >= columns
                uops.append(
                    {
                        "a": (f["a"] + i, block),
                        "new_a": column == 0,
                        "b": (f["b"] + j, column),
                        "c": ((group + byte // cfg.row_bytes) % cfg.tiles, block),
                        "new_c": byte % cfg.row_bytes == 0,
                        "c_byte": byte % cfg.row_bytes,
                        "rows": sum(
                            1 << r for r in range(cfg.m_par) if block * cfg.m_par + r < rows
                        ),
                        "cols": sum(1 << n for n in range(step) if column + n < columns),
                        "free_a": last_block and last_column and j == f["j_last"],
                        "free_b": last_block and last_column and i == f["i_last"],
                        **(
                            {
                                "a_transposed": (f["a_transposed"], i),
                                "b_transposed": (f["b_transposed"], j),
                            }
                            if cfg.transposes
                            else {}
                        ),
                        "free_c": last_block
                        and (last_column or (column + step) * width % cfg.row_bytes == 0),
                    }
                )
    return uops


@pytest.mark.parametrize("name", CONFIGS)
def test_mma_walk(name):
    cfg = CONFIGS[name]
    rng = random.Random(SEED)
    split = MmaSplit(cfg)
    cases = []
    for _ in range(60):
        i_last, j_last = rng.choice([(0, 0), (1, 1), (0, 3), (3, 0), (1, 0)])
        cases.append(
            {
                "a": rng.randrange(cfg.tiles - 3),
                "b": rng.randrange(cfg.tiles - 3),
                "c": rng.randrange(cfg.tiles),
                "i_last": i_last,
                "j_last": j_last,
                "i_stride": rng.choice([4, 8, 16]),
                "j_stride": rng.choice([1, 2, 4]),
                **{f: rng.randrange(cfg.rows) for f in ("m_most", "m_last", "n_most", "n_last")},
                "width_log2": rng.randrange(4),
                "shared": 0,
            }
        )
        if cfg.transposes and rng.random() < 0.4:
            full = dict.fromkeys(("m_most", "m_last", "n_most", "n_last"), cfg.rows - 1)
            cases[-1] |= full | {f"{side}_transposed": rng.randrange(2) for side in "ab"}
        elif cfg.transposes:
            cases[-1] |= {"a_transposed": 0, "b_transposed": 0}

    def read(ctx):
        uop = split.uop
        if cfg.transposes and ctx.get(uop.transposes):
            assert not ctx.get(uop.new_c)
            assert not any(ctx.get(f) for f in (split.free_a, split.free_b, split.free_c))
            in_a, in_b = ctx.get(uop.a_transposed), ctx.get(uop.b_transposed)
            return {
                "a": (ctx.get(uop.a.tile), ctx.get(uop.a.block)) if in_a else None,
                "b": (ctx.get(uop.b_tile), ctx.get(uop.b_row)) if in_b else None,
                "index": ctx.get(uop.a_index if in_a else uop.b_index),
                "part": ctx.get(uop.part),
            }
        transposed = {}
        if cfg.transposes:
            transposed = {
                "a_transposed": (ctx.get(uop.a_transposed), ctx.get(uop.a_index)),
                "b_transposed": (ctx.get(uop.b_transposed), ctx.get(uop.b_index)),
            }
        return transposed | {
            "a": (ctx.get(uop.a.tile), ctx.get(uop.a.block)),
            "new_a": bool(ctx.get(uop.new_a)),
            "b": (ctx.get(uop.b_tile), ctx.get(uop.b_row)),
            "c": (ctx.get(uop.c.tile), ctx.get(uop.c.block)),
            "new_c": bool(ctx.get(uop.new_c)),
            "c_byte": ctx.get(uop.op.c_byte),
            "rows": ctx.get(uop.op.rows),
            "cols": ctx.get(uop.op.cols),
            "free_a": bool(ctx.get(split.free_a)),
            "free_b": bool(ctx.get(split.free_b)),
            "free_c": bool(ctx.get(split.free_c)),
        }

    got = walk(split, cases, read)
    for case, uops in zip(cases, got, strict=True):
        before = expect_transposes(cfg, case) if cfg.transposes else []
        assert uops == before + expect_mma(cfg, case), f"seed {SEED}: {case}"


def test_mma_shared_operands_stay_claimed():
    """A tile that is both A and B is not given up while either walk still needs it."""
    cfg = CONFIGS["ame32"]
    split = MmaSplit(cfg)
    case = dict.fromkeys(mma_fields(cfg).members, 0)
    del case["op"]
    case |= {"i_last": 1, "j_last": 1, "m_most": 15, "m_last": 15, "n_most": 15, "n_last": 15}
    (frees,) = walk(
        split,
        [case | {"shared": 1}],
        lambda ctx: (ctx.get(split.free_a), ctx.get(split.free_b)),
    )
    assert len(frees) == 64 and set(frees) == {(0, 0)}


# -- load and store -------------------------------------------------------------------------


def expect_ldst(cfg, f):
    """Plain walk: list of parts, then per tile the rows that are zeroed."""
    line, row_bytes, bus = cfg.line_bytes, cfg.row_bytes, cfg.bus_bytes
    slices = 1 << f["slices_log2"]
    named = [(t // slices, t % slices) for t in range(f["tiles"] + 1)]

    def active_bytes(group, part):
        if not f["down"]:
            if group > f["group_last"]:
                return 0
            total = (f["bytes_last"] if group == f["group_last"] else f["bytes_most"]) + 1
        else:
            total = f["bytes_most"] + 1
        return min(row_bytes, max(0, total - part * row_bytes))

    def rows_of(group):
        if f["down"]:
            if group > f["tile_last"]:
                return 0
            return (f["rows_last"] if group == f["tile_last"] else f["rows_most"]) + 1
        return f["rows_last"] + 1

    def tile(group, part):
        return (f["tile"] + group * f["group_stride"] + part) % cfg.tiles

    def segment(group, part, row, place):
        start = (f["base"] + place[0] * f["stride"] + place[1]) % (1 << cfg.addr_bits)
        return {
            "tile": tile(group, part),
            "row": row,
            "start": start,
            "bytes": active_bytes(group, part),
        }

    segments = []
    if f["down"]:
        for group in range(f["tile_last"] + 1):
            segments += [
                segment(group, 0, row, (group * cfg.rows + row, 0)) for row in range(rows_of(group))
            ]
    else:
        for row in range(f["rows_last"] + 1):
            for group in range(f["group_last"] + 1):
                for part in range(slices):
                    if active_bytes(group, part):
                        offset = group * f["pitch"] + part * row_bytes
                        segments.append(segment(group, part, row, (row, offset)))
    parts = []
    for index, seg in enumerate(segments):
        first = 0
        while first < seg["bytes"]:
            addr = (seg["start"] + first) % (1 << cfg.addr_bits)
            room = line - addr % line
            last = min(seg["bytes"], first + room) - 1
            tail = last == seg["bytes"] - 1
            more = False
            if tail and index + 1 < len(segments):
                following = segments[index + 1]
                same_walk = not f["down"] or following["tile"] == seg["tile"]
                next_beat = following["start"] // bus
                this_beat = (addr + last - first) // bus
                more = (
                    same_walk
                    and following["start"] == (seg["start"] + row_bytes) % (1 << cfg.addr_bits)
                    and following["start"] // line == addr // line
                    and next_beat - this_beat in (0, 1)
                )
            half = tail and bool(f["half"])
            parts.append((seg["tile"], seg["row"], addr, first, last, tail, half, more))
            first = last + 1
    zeros = set()
    if f["fill"]:
        for group, part in named:
            rows = rows_of(group) if active_bytes(group, part) else 0
            zeros |= {(tile(group, part), row) for row in range(rows, cfg.rows)}
    return parts, zeros


def random_ldst(cfg, rng):
    row_bytes = cfg.row_bytes
    down = rng.random() < 0.5
    n_log2 = rng.randrange(4)
    slices_log2 = 0 if down or rng.random() < 0.4 else rng.randrange(3)
    most_slices = max(1, cfg.rows * 8 // row_bytes)  # 64-bit outputs
    slices_log2 = min(slices_log2, n_log2, most_slices.bit_length() - 1)
    slices = 1 << slices_log2
    n = 1 << n_log2
    groups = n // slices
    group_bytes = slices * row_bytes
    strides = [s for s in (1, 2, 4) if s >= slices and (groups - 1) * s + slices <= cfg.tiles]
    if not strides:
        return random_ldst(cfg, rng)  # does not fit in this tile file
    each = rng.random() < 0.5

    def amount(limit):
        return rng.choice([limit - 1, rng.randrange(limit)])

    pitch = group_bytes
    if not down and slices == 1 and rng.random() < 0.3:
        pitch = rng.randrange(1, row_bytes)  # results narrower than a row
    most, last = amount(pitch), amount(pitch)
    if each or down:
        last = most
    if down:
        most = last = most % row_bytes
    rows_most, rows_last = cfg.rows - 1, amount(cfg.rows)
    tile_last = rng.randrange(n) if down else 0
    if each:
        rows_most, tile_last = rows_last, n - 1 if down else 0
    group_last = rng.randrange(groups) if not down else 0
    if each and not down:
        group_last = groups - 1
    load = rng.random() < 0.5
    walked = row_bytes + (0 if down else group_last * pitch + last // row_bytes * row_bytes)
    stride = rng.choice(
        [walked, row_bytes, 0, rng.randrange(200), (1 << cfg.addr_bits) - 24, 4096 + 5]
    )
    return {
        "tile": 0,
        "tiles": n - 1 if load else (tile_last if down else 0),
        "down": int(down),
        "slices_log2": slices_log2,
        "group_stride": rng.choice(strides),
        "group_last": group_last,
        "pitch": pitch,
        "tile_last": tile_last,
        "rows_most": rows_most,
        "rows_last": rows_last,
        "bytes_most": most,
        "bytes_last": last,
        "base": rng.choice([0, rng.randrange(64), rng.getrandbits(cfg.addr_bits)]),
        "stride": stride,
        "half": rng.randrange(2),
        "contiguous": int(stride == walked),
        "fill": int(load),
    }


@pytest.mark.parametrize("name", CONFIGS)
def test_ldst_walk(name):
    cfg = CONFIGS[name]
    rng = random.Random(SEED)
    split = CutRows(cfg)
    cases = [random_ldst(cfg, rng) for _ in range(60)]

    def read(ctx):
        uop = split.uop
        if ctx.get(uop.zero):
            block = ctx.get(uop.row) // cfg.m_par
            rows = ctx.get(uop.rows)
            return "zero", [
                (ctx.get(uop.tile), block * cfg.m_par + r)
                for r in range(cfg.m_par)
                if rows >> r & 1
            ]
        names = ("tile", "row", "addr", "first", "last")
        part = tuple(ctx.get(getattr(uop, f)) for f in names)
        flags = [bool(ctx.get(getattr(uop, f))) for f in ("tail", "half", "more")]
        return "part", (*part, *flags)

    frees = []

    def read_all(ctx):
        frees.append((ctx.get(split.free), ctx.get(split.uop.tile)))
        return read(ctx)

    got = walk(split, cases, read_all)
    for case, uops in zip(cases, got, strict=True):
        parts, zeros = expect_ldst(cfg, case)
        message = f"seed {SEED}: {case}"
        assert [value for kind, value in uops if kind == "part"] == parts, message
        zeroed = [row for kind, rows in uops if kind == "zero" for row in rows]
        assert len(set(zeroed)) == len(zeroed) and set(zeroed) == zeros, message


def test_ldst_releases_each_tile_downwards_once():
    """Downwards, `free` comes with each tile's last uop."""
    cfg = CONFIGS["ame32"]
    rng = random.Random(SEED + 1)
    split = CutRows(cfg)
    cases = []
    while len(cases) < 30:
        case = random_ldst(cfg, rng)
        if case["down"] and case["fill"]:
            cases.append(case)
    got = walk(split, cases, lambda c: (c.get(split.uop.tile), bool(c.get(split.free))))
    for case, uops in zip(cases, got, strict=True):
        order = [tile for tile, _ in uops]
        last_of = {tile: index for index, tile in enumerate(order)}
        freed = [tile for tile, free in uops if free]
        assert len(last_of) == case["tiles"] + 1, f"seed {SEED}: {case}"
        assert freed == [order[index] for index in sorted(last_of.values())], f"seed {SEED}: {case}"
        assert all(free == (last_of[tile] == i) for i, (tile, free) in enumerate(uops))
