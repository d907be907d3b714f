"""GEMM cases at every edge of size, place and form, and what C must be, found without the core.

Integers come from plain integer arithmetic. Floats are checked element by element against
`naive_mma`, numerics.md read literally; `bit_exact` adds the reference's word on all elements.
"""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
from gemm_cases import product
from pairwise import pairwise

from hdl.config import Config
from hdl.formats import FORMATS
from sim.codes import random_codes
from sim.gemm import GemmResult, gemm
from sim.kernels import BLOCKS
from sim.options import format_pair
from sim.reference.numerics import to_codes

sys.path.insert(0, str(Path(__file__).parent / "sim" / "reference"))
from naive_mma import naive_mma

SEED = int(os.environ.get("TEST_SEED", "20240612"))
SIZES = (0, 1, 2, 15, 16, 17, 31, 33, 63, 64, 65)
FT = ("int8", "fp8_e4m3", "bf16", "fp32")
PLACES = 64
"""Bytes by which a base may miss the start of a line."""

UNIFIED = Config(name="edges", m_par=2, n_par=1, formats=FT)
SPLIT = UNIFIED.replace(name="edges-split", accumulators="split")

FORM = {
    "ft": FT,
    "trans": ("nn", "nt", "tn", "tt"),
    "pack": (True, False),
    "alpha": (1, -1),
    "beta": (0, 1),
    "lda": (0, 1, 7),
    "ldb": (0, 1, 7),
    "ldc": (0, 1, 7),
    "tiling": ("auto", *BLOCKS),
    "split": (False, True),
}
AXES = {"m": SIZES, "n": SIZES, "k": SIZES, **FORM}
_SAMPLES = 16


def covering_cases(seed: int) -> list[dict]:
    """Every two values of `AXES` meet, and every matrix misses a line by each of 0 to 63 bytes."""
    return list(_placed(pairwise(AXES, seed), seed))


def every_size(ft: str, seed: int) -> list[dict]:
    """All M, N and K; the other axes from a covering sample, again and again in another order."""
    draw = random.Random(f"{seed} {ft}")
    others = {name: values for name, values in FORM.items() if name != "ft"}
    forms: list[dict] = []
    rows = []
    for m in SIZES:
        for n in SIZES:
            for k in SIZES:
                if not forms:
                    forms = pairwise(others, draw.randrange(1 << 30))
                rows.append({"m": m, "n": n, "k": k, "ft": ft, **forms.pop()})
    return list(_placed(rows, seed))


def _placed(rows: list[dict], seed: int) -> Iterator[dict]:
    draw = random.Random(seed)
    left: list[list[int]] = [[], [], []]
    for index, row in enumerate(rows):
        places = []
        for which in left:
            if not which:
                which.extend(draw.sample(range(PLACES), PLACES))
            places.append(which.pop())
        yield {**row, "offsets": tuple(places), "seed": seed + index}


def _operands(noise: np.random.Generator, shape: tuple[int, int], ft: str, tame: bool):
    """Codes; tame floats are numbers of about one size, so that sums keep all they add."""
    if tame and FORMATS[ft].is_float:
        return to_codes(noise.normal(size=shape) * 2, FORMATS[ft], 0)
    return random_codes(noise, shape, FORMATS[ft])


def check(case: Mapping, engine: str, *, unified: Config = UNIFIED, split: Config = SPLIT) -> str:
    """Run one case and compare; returns the tiling that was run, "none" for sizes of 0.

    A block that does not fit in the tiles must be refused in so many words, and runs as "auto".
    """
    draw, noise = random.Random(case["seed"]), np.random.default_rng(case["seed"])
    m, n, k, ft = case["m"], case["n"], case["k"], case["ft"]
    mode = draw.choice(({}, {"bovf": 1}, {"acc": 1})) if ft in ("int8", "fp8_e4m3") else {}
    cfg = split if case["split"] else unified
    out = format_pair(cfg, ft, mode.get("bovf", 0), mode.get("acc", 0))[1]
    tame = draw.random() < 0.7
    a, b = _operands(noise, (m, k), ft, tame), _operands(noise, (k, n), ft, tame)
    c = _operands(noise, (m, n), out.name, tame)
    fields = {"sat": draw.randrange(2), "rnd": draw.randrange(4), **mode}
    options = {**fields, **{name: case[name] for name in ("alpha", "beta", "trans", "pack")}}
    pack, (ta, tb) = case["pack"], case["trans"]
    # Leading dimensions are those of the matrices as they lie in memory.
    rows = {
        "lda": m if ta == "t" and not pack else k,
        "ldb": k if tb == "t" or pack else n,
        "ldc": n,
    }
    options |= {name: max(1, row) + case[name] for name, row in rows.items()}
    options |= {"offsets": case["offsets"], "seed": case["seed"]}
    given = (a.T if ta == "t" else a, b.T if tb == "t" else b, c)

    def run(tiling: str) -> GemmResult:
        return gemm(*given, ft=ft, tiling=tiling, preset=cfg, engine=engine, **options)

    where = f"{dict(case)}, {fields}, engine {engine}"
    try:
        result = run(case["tiling"])
    except ValueError as error:
        assert "does not fit in 32 tiles" in str(error) and case["tiling"] != "auto", where
        result = run("auto")
    assert result.bit_exact, where
    assert result.bound_cycles <= result.cycles or engine == "model", where
    if ft == "int8":
        bits = out.container
        start = c.view(f"i{bits // 8}") if case["beta"] else None
        integers = a.view(np.int8), b.view(np.int8)
        values = product(*integers, start, bits=bits, sat=fields["sat"], alpha=case["alpha"])
        values &= (1 << bits) - 1
        assert np.array_equal(result.c, values.astype(c.dtype)), where
    else:
        _check_elements(draw, result, a, b, c, case, fields, where)
    return result.tiling if m and n and k else "none"


def _check_elements(draw, result: GemmResult, a, b, c, case, fields, where: str) -> None:
    (m, n), k = c.shape, a.shape[1]
    lanes = 16 * 8 // FORMATS[case["ft"]].container
    corners = {(i, j) for i in (0, m - 1) for j in (0, n - 1)} if m and n else set()
    inner = {(draw.randrange(m), draw.randrange(n)) for _ in range(_SAMPLES if m and n else 0)}
    for i, j in sorted(corners | inner):
        code, first = (int(c[i, j]) if case["beta"] else 0), not case["beta"]
        for at in range(0, k, lanes):
            parts = [int(x) for x in a[i, at : at + lanes]], [int(x) for x in b[at : at + lanes, j]]
            code, _ = naive_mma(
                case["ft"],
                *parts,
                code,
                alpha=int(case["alpha"] < 0),
                beta=int(first),
                **fields,
            )
            first = False
        assert int(result.c[i, j]) == code, f"C[{i}][{j}] of {where}"
