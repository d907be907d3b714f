"""Single instructions on the core's RTL, numpy arrays in and out.

Each call lays its operands out in L2 memory, loads them into tiles, executes one instruction,
stores the result and reads it back, so that decoder, tile file, MAC array and L2 port all take
part. With `engine="model"` the reference takes the RTL's place.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hdl.config import Config
from hdl.formats import Format

from .codes import code_dtype, pack_rows, unpack_rows
from .cores import as_config, shared_core
from .kernels import TILINGS, Matrix, Tiles
from .layout import GUARD_BYTES, PlacedMatrix
from .memory import Memory
from .options import choose, format_pair
from .program import Program

__all__ = ["VECTOR_OPS", "Result", "mma", "vector"]

VECTOR_OPS = ("mvmadd", "mvmul", "mvaddx", "mvaddy", "mvmax", "mvmin")
"""Operations of the vector mode."""

_NOISE_SEED = 1


@dataclass(frozen=True)
class Result:
    """What an instruction gave.

    Parameters
    ----------
    d : unsigned codes of the result.
    flags : the bits of mxstatus that it set, by name.
    cycles : from the first request to the answer of the mfence behind the store; 0 on the model.
    """

    d: np.ndarray
    flags: dict[str, bool]
    cycles: int


def _codes(
    name: str, array: np.ndarray, fmt: Format, rows: tuple[int, int], columns: tuple[int, int]
) -> np.ndarray:
    """Unsigned codes of a matrix; `rows` and `columns` are the least and the most it may have."""
    wanted = (
        f"unsigned {fmt.name} codes, 0 to {(1 << fmt.container) - 1:#x}, "
        f"{_span(rows)} rows of {_span(columns)} elements"
    )
    try:
        codes = np.asarray(array)
    except ValueError:
        raise ValueError(f"{name} is no array, expected {wanted}") from None
    if codes.dtype.kind not in "iu":
        raise ValueError(f"{name} holds {codes.dtype}, expected integers: {wanted}")
    if codes.ndim != 2:
        raise ValueError(f"{name} has {codes.ndim} dimensions, expected 2: {wanted}")
    fits = all(
        low <= size <= high for size, (low, high) in zip(codes.shape, (rows, columns), strict=True)
    )
    if not fits:
        raise ValueError(f"{name} has shape {codes.shape}, expected {wanted}")
    low, high = int(codes.min()), int(codes.max())
    if low < 0 or high >> fmt.container:
        raise ValueError(f"{name} holds {low if low < 0 else high}, expected {wanted}")
    return codes.astype(code_dtype(fmt.container))


def _span(limits: tuple[int, int]) -> str:
    low, high = limits
    return str(low) if low == high else f"{low} to {high}"


def _lanes_used(k: object, columns: int) -> int:
    if not isinstance(k, (int, np.integer)) or not 1 <= k <= columns:
        raise ValueError(f"k = {k!r}, expected 1 to {columns}, the columns of a and b")
    return int(k)


def mma(
    ft: str | int,
    a: np.ndarray,
    b: np.ndarray,
    c: np.ndarray | None = None,
    *,
    bovf: int = 0,
    sat: int = 0,
    rnd: int = 0,
    acc: int = 0,
    beta: int = 0,
    alpha: int = 0,
    k: int | None = None,
    preset: str | Config = "ame32",
    engine: str = "auto",
) -> Result:
    """One mmacc: D = round(C + A x B^T), on one tile each of A and B.

    Parameters
    ----------
    ft : operand format, by name or Ft code.
    a, b : unsigned codes in any integer dtype (two's complement for integers and Q), (M, K) and
        (N, K); M and N up to the rows of a tile, K up to the elements of a row.
    c : unsigned codes in the output format, (M, N); None means beta = 1.
    bovf, sat, rnd, acc : fields of mxcfg.
    beta : 1 leaves C out.
    alpha : 1 subtracts the product.
    k : elements of a row that take part, from the first on; all of them by default.
    preset, engine : the core (a name or a Config) and what simulates it.

    Raises `ValueError` that names the argument and what was expected.
    """
    cfg = as_config(preset)
    fmt, out = format_pair(cfg, ft, bovf, acc)
    fields = {"bovf": bovf, "sat": choose("sat", sat, (0, 1)), "acc": acc}
    fields["rnd"] = choose("rnd", rnd, (0, 1, 2, 3))
    alpha, beta = choose("alpha", alpha, (0, 1)), choose("beta", beta, (0, 1))
    rows, lanes = (1, cfg.rows), cfg.lanes(fmt.container)
    a_codes = _codes("a", a, fmt, rows, (1, lanes))
    m, columns = a_codes.shape
    b_codes = _codes("b", b, fmt, rows, (columns, columns))
    n = b_codes.shape[0]
    used = columns if k is None else _lanes_used(k, columns)
    if c is None:
        beta = 1
        c_codes = np.zeros((m, n), code_dtype(out.container))
    else:
        c_codes = _codes("c", c, out, (m, m), (n, n))

    memory, noise = Memory(cfg.addr_bits), np.random.default_rng(_NOISE_SEED)
    places, end = {}, 0
    for name, codes, container in (
        ("a", a_codes, fmt.container),
        ("b", b_codes, fmt.container),
        ("c", c_codes, out.container),
    ):
        row = max(cfg.row_bytes, cfg.rows * container // 8)
        base = end + GUARD_BYTES
        matrix = Matrix(name.upper(), *codes.shape, container, base, row * 8 // container)
        places[name] = PlacedMatrix(memory, matrix, codes, writable=name == "c", noise=noise)
        end = base + cfg.rows * row + GUARD_BYTES

    program = Program(cfg)
    program.set_cfg(fmt.name, **fields)
    tiles = Tiles.of(cfg, TILINGS["1x1"], out.container)
    operands = (("a", tiles.a_buffers[0]), ("b", tiles.b_buffers[0]))
    program.set_tile(columns, m, n)
    for name, tile in operands:
        program.mld(name, tile, places[name].matrix.base, places[name].matrix.stride)
    result_place = places["c"].matrix.base, places["c"].matrix.stride
    result_tile = tiles.c_sets[0]
    if c is not None:
        program.mld("c", result_tile, *result_place, n=tiles.result, cfile=tiles.cfile)
    program.set_tile(used, m, n)
    program.mmacc(result_tile, *(tile for _, tile in operands), beta=beta, alpha=alpha)
    program.mst("c", result_tile, *result_place, n=tiles.result, cfile=tiles.cfile)
    program.mfence()

    core = shared_core(cfg, engine)
    core.clear_flags(memory)
    result = core.run(memory, program.requests)
    return Result(places["c"].codes(), core.flags(memory), result.cycles)


def vector(
    op: str,
    ft: str | int,
    x: np.ndarray,
    y: np.ndarray,
    z: np.ndarray | None = None,
    *,
    preset: str | Config,
    wide: int = 0,
    bovf: int = 0,
    sat: int = 0,
    rnd: int = 0,
    acc: int = 0,
    engine: str = "auto",
) -> Result:
    """One operation of the vector mode, element by element on one tile each of x and y.

    Parameters
    ----------
    op : one of `VECTOR_OPS`.
    ft : operand format, by name or Ft code.
    x, y : unsigned codes in any integer dtype, (M, K).
    z : unsigned codes of the old z, (M, K); zeros if it takes no part or is not given.
    preset : the core, a name or a Config; it needs the unit "vector".
    wide : 1: z in the output format of mxcfg, not in that of x and y.
    bovf, sat, rnd, acc : fields of mxcfg.
    engine : what simulates the core.

    Raises `ValueError` that names the argument and what was expected.
    """
    cfg = as_config(preset)
    if not cfg.has_vector:
        raise ValueError(f"{cfg.name} has no vector mode: use a core with units = vector")
    if op not in VECTOR_OPS:
        raise ValueError(f"op = {op!r} is undefined: use one of {', '.join(VECTOR_OPS)}")
    fmt, wide_out = format_pair(cfg, ft, bovf, acc)
    out = wide_out if choose("wide", wide, (0, 1)) else fmt
    fields = {"bovf": bovf, "sat": choose("sat", sat, (0, 1)), "acc": acc}
    fields["rnd"] = choose("rnd", rnd, (0, 1, 2, 3))
    x_codes = _codes("x", x, fmt, (1, cfg.rows), (1, cfg.lanes(fmt.container)))
    m, k = x_codes.shape
    y_codes = _codes("y", y, fmt, (m, m), (k, k))
    if z is None:
        z_codes = np.zeros((m, k), code_dtype(out.container))
    else:
        z_codes = _codes("z", z, out, (m, m), (k, k))

    # Whole tiles, rows of all parts of z side by side.
    memory, parts = Memory(cfg.addr_bits), out.container // fmt.container
    regions, end = {}, 0
    for name, codes, count in (("x", x_codes, 1), ("y", y_codes, 1), ("z", z_codes, parts)):
        content = np.zeros((cfg.rows, count * cfg.row_bytes), np.uint8)
        bits = out.container if name == "z" else fmt.container
        packed = pack_rows(codes, bits)
        content[:m, : packed.shape[1]] = packed
        regions[name] = memory.add_region(end, content.reshape(-1))
        end += content.size
    tiles = {"z": 0, "x": cfg.tiles - 1, "y": cfg.tiles - 2}
    program = Program(cfg)
    program.set_cfg(fmt.name, **fields)
    program.set_tile(k, m)
    for name, count in (("x", 1), ("y", 1), ("z", parts)):
        base, stride = regions[name].base, count * cfg.row_bytes
        program.mld("r", tiles[name], base, stride, n=count)
    program.vector(op, tiles["z"], tiles["x"], tiles["y"], wide=bool(wide))
    program.mst("r", tiles["z"], regions["z"].base, parts * cfg.row_bytes, n=parts)
    program.mfence()

    core = shared_core(cfg, engine)
    core.clear_flags(memory)
    result = core.run(memory, program.requests)
    content = np.frombuffer(
        memory.read(regions["z"].base, cfg.rows * parts * cfg.row_bytes), np.uint8
    )
    rows = content.reshape(cfg.rows, -1)[:m]
    return Result(unpack_rows(rows, k, out.container), core.flags(memory), result.cycles)
