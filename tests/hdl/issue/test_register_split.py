"""Split counters of the front end `xuantie` against plain Python generators."""

from __future__ import annotations

import random

import pytest
from split_bench import SEED, CutRows, walk

from hdl.config import Config
from hdl.issue.move_split import MoveSplit
from hdl.issue.point_split import PointSplit
from hdl.issue.split import MmaSplit
from hdl.units.point_op import PointSource

CORES = {
    "row128": Config(
        frontends=("xuantie",), tiles=8, rows=4, m_par=2, n_par=2, formats=("int8", "fp16")
    ),
    "row256": Config(
        frontends=("xuantie",), tiles=8, rows=8, row_bits=256, n_par=1, formats=("int8", "fp64")
    ),
    "row512": Config(
        frontends=("xuantie",), tiles=16, rows=16, row_bits=512, m_par=8, n_par=4, formats=("fp16",)
    ),
    "both": Config(frontends=("ame", "xuantie"), m_par=4, n_par=2, formats=("int8", "fp64")),
}
by_core = pytest.mark.parametrize("cfg", CORES.values(), ids=list(CORES))


def bits(flags) -> int:
    return sum(flag << i for i, flag in enumerate(flags))


@by_core
def test_mma(cfg):
    """The whole destination, pairs too; what lies outside M x N becomes zero."""
    rng, split = random.Random(SEED), MmaSplit(cfg)
    cases, expected = [], []
    for _ in range(25):
        b_pair, width_log2 = rng.choice([(1, 1), (0, 2)] + [(0, 3)] * (cfg.uop_columns(64) > 0))
        columns = cfg.x_rows * (1 + b_pair)
        m, n = rng.randint(1, cfg.x_rows), rng.randint(1, columns)
        a, b, c = (cfg.x_tiles * 2 * rng.randrange(4) for _ in range(3))
        cases.append(
            {
                **{"a": a, "b": b, "c": c, "width_log2": width_log2, "registers": 1},
                **{"m_most": cfg.x_rows - 1, "m_last": cfg.x_rows - 1},
                **{"n_most": columns - 1, "n_last": columns - 1, "m_live": m, "n_live": n},
            }
        )
        uops, step = [], cfg.uop_columns(8 << width_log2)
        for first in range(0, cfg.x_rows, cfg.m_par):
            for column in range(0, columns, step):
                byte = column << width_log2
                rows = [first + i < m for i in range(cfg.m_par)]
                cols = [i < step and column + i < n for i in range(cfg.n_par)]
                walked = [i < step for i in range(cfg.n_par)]
                uops.append(
                    {
                        "a": (a, first // cfg.m_par),
                        "b": (b + column // cfg.x_rows * cfg.x_tiles, column % cfg.x_rows),
                        "c": (c + byte // cfg.row_bytes * cfg.x_tiles, first // cfg.m_par),
                        "byte": byte % cfg.row_bytes,
                        "live": (bits(rows), bits(cols)),
                        "zero": (
                            bits(not row for row in rows),
                            bits(w and not col for w, col in zip(walked, cols, strict=True)),
                        ),
                    }
                )
        expected.append(uops)

    def read(ctx):
        uop = split.uop
        return {
            "a": (ctx.get(uop.a.tile), ctx.get(uop.a.block)),
            "b": (ctx.get(uop.b_tile), ctx.get(uop.b_row)),
            "c": (ctx.get(uop.c.tile), ctx.get(uop.c.block)),
            "byte": ctx.get(uop.op.c_byte),
            "live": (ctx.get(uop.op.rows), ctx.get(uop.op.cols)),
            "zero": (ctx.get(uop.op.zero_rows), ctx.get(uop.op.zero_cols)),
        }

    assert walk(split, cases, read) == expected, f"seed {SEED}"


@by_core
def test_pointwise(cfg):
    """A word a uop; a row of ms1 is read with the first and held, a scalar never."""
    rng, split = random.Random(SEED), PointSplit(cfg)
    cases, expected = [], []
    for _ in range(25):
        source, row = rng.choice(list(PointSource)), rng.randrange(cfg.x_rows)
        m, a, b, c = rng.randint(1, cfg.x_rows), *(rng.randrange(cfg.tiles) for _ in range(3))
        point = {"on": 1, "source": int(source), "row": row}
        cases.append({"a": a, "b": b, "c": c, "m_live": m, "op": {"point": point}})
        uops = []
        for block in range(cfg.x_blocks):
            live = bits(cfg.m_par * block + i < m for i in range(cfg.m_par))
            by_row = source is PointSource.ROW
            uops.append(
                {
                    "a": (a, block),
                    "b": (b, (row // cfg.m_par if by_row else block) * cfg.m_par),
                    "c": (c, block),
                    "rows": (live, (1 << cfg.m_par) - 1 - live),
                    "held": source is PointSource.SCALAR or (by_row and block > 0),
                    "last": block == cfg.x_blocks - 1,
                }
            )
        expected.append(uops)

    def read(ctx):
        uop = split.uop
        assert ctx.get(uop.more) != ctx.get(uop.op.point.last)
        return {
            "a": (ctx.get(uop.a.tile), ctx.get(uop.a.block)),
            "b": (ctx.get(uop.b_tile), ctx.get(uop.b_row)),
            "c": (ctx.get(uop.c.tile), ctx.get(uop.c.block)),
            "rows": (ctx.get(uop.op.rows), ctx.get(uop.op.zero_rows)),
            "held": bool(ctx.get(uop.op.point.held)),
            "last": bool(ctx.get(uop.op.point.last)),
        }

    assert walk(split, cases, read) == expected, f"seed {SEED}"


@by_core
def test_loads_leave_what_lies_below_a_register_alone(cfg):
    """Every byte of M rows once, then zeros down to the register's last row and no further."""
    rng, split = random.Random(SEED), CutRows(cfg)
    cases, expected = [], []
    for _ in range(25):
        whole, count = rng.random() < 0.4, rng.choice((1, 2, 4))
        count = count if whole else 1
        tile = cfg.x_tiles * count * rng.randrange(8 // count)
        m, k = (cfg.x_rows, cfg.row_bytes) if whole else (rng.randint(1, cfg.x_rows), 1)
        k = k if whole else rng.randint(1, cfg.row_bytes)
        base = rng.randrange(1 << 20)
        stride = cfg.row_bytes if whole else rng.randrange(200)
        cases.append(
            {
                **{"tile": tile, "tiles": count - 1, "down": whole, "registers": 1},
                **{"group_stride": cfg.x_tiles, "pitch": cfg.row_bytes, "tile_last": count - 1},
                **{"rows_most": cfg.x_rows - 1, "rows_last": m - 1, "base": base},
                **{"bytes_most": k - 1, "bytes_last": k - 1, "stride": stride},
                **{"contiguous": stride == cfg.row_bytes, "fill": m != cfg.x_rows},
            }
        )
        loaded, row = {}, 0
        for number in range(count):
            for i in range(m):
                for byte in range(k):
                    loaded[tile + number * cfg.x_tiles, i, byte] = base + stride * row + byte
                row += 1
        expected.append((loaded, {(tile, i) for i in range(m, cfg.x_rows)}))

    def read(ctx):
        uop = split.uop
        names = ("tile", "row", "addr", "first", "last", "zero", "rows")
        return {name: ctx.get(uop[name]) for name in names}

    for offered, (loaded, zeros) in zip(walk(split, cases, read), expected, strict=True):
        got, cleared = {}, set()
        for uop in offered:
            if uop["zero"]:
                first = uop["row"] // cfg.m_par * cfg.m_par
                cleared |= {
                    (uop["tile"], first + i) for i in range(cfg.m_par) if uop["rows"] >> i & 1
                }
                continue
            for byte in range(uop["first"], uop["last"] + 1):
                place = uop["tile"], uop["row"], byte
                assert place not in got, f"seed {SEED}: {place} twice"
                got[place] = uop["addr"] + byte - uop["first"]
        assert (got, cleared) == (loaded, zeros), f"seed {SEED}"


@by_core
def test_moves_write_the_words_of_a_register(cfg):
    split = MoveSplit(cfg)
    cases = [
        {"dst": 2 * cfg.x_tiles, "src": cfg.x_tiles, "op": op, "registers": 1} for op in (0, 1)
    ]

    def read(ctx):
        return ctx.get(split.uop.dst.tile), ctx.get(split.uop.dst.block)

    words = [(2 * cfg.x_tiles, block) for block in range(cfg.x_blocks)]
    assert walk(split, cases, read) == [words, words]
