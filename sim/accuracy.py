"""How exact each pair of formats is: the reference's products against float64.

Every matrix is converted (rounded to nearest, saturated) and multiplied as `sim.gemm` does: one
mmacc per full row of lanes, in ascending k, SAT = 1. Errors are relative to the largest |result|
in float64. "error" counts everything, converting the operands too; "sums" counts only what
multiplying and adding lost, against the float64 product of the converted operands. float64
itself errs by about 1e-16, which the widest formats reach.

matrices:
  digits   scikit-learn's handwritten digits, held-out images x the first layer of sim.digits
  normal, uniform (-1 to 1), wide (normal times 2^-16 to 2^16): random

scaling, undone in the result:
  integers and Q   A and B fill their format (largest |value| on the largest code). Where an
                   overflow would wrap, both shrink until every sum fits.
  floats           by powers of two, as far as operands and sums fit.
  unsigned         formats take the magnitudes of the operands.
--scale full fills the operand format always, --scale fit makes every sum fit always.

examples:
  python -m sim.accuracy
  python -m sim.accuracy --pairs int8:int16,int8:int32 --matrix digits --plot int8.png
  python -m sim.accuracy --pairs bf16,fp32 --matrix random --size 64 64 1024 --set window=bf16:24
"""

from __future__ import annotations

import importlib.util
import io
import json
import math
import sys
from argparse import Namespace
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table

from hdl.cli import CommandError, Parser, check_writable, run_command, write_whole
from hdl.config import Config, ConfigError
from hdl.formats import Format, Specials, expand, lookup, outputs
from hdl.settings import apply_settings

from . import digits
from .reference.numerics import FLAG_NAMES, from_codes, mma, to_codes

__all__ = ["Accuracy", "Pair", "main", "measure", "pairs_of", "random_matrices", "scales"]

PROGRAM = "sim.accuracy"
RANDOM = ("normal", "uniform", "wide")
CHOICES = ("digits", "random", "all")
SCALES = ("auto", "full", "fit")
WIDE_EXPONENT = 16
DEFAULT_PAIRS = ("common", "hpc_baseline", "hpc_main")
DEFAULT_SIZE = (64, 64, 64)
MAX_PRODUCTS = 1 << 27
PLOT_TYPES = (".png", ".svg", ".pdf")
MXCFG = {"bovf": (1, 0), "full": (0, 0), "wide": (0, 1), "tf32": (0, 2), "bf16": (0, 3)}
"""bOVF and ACC of each column of `hdl.formats.ACC_MODES`."""
SHRINK = 0.95
FLOAT_MARGIN = 2
"""Room above the largest float sum: converted operands may be larger by a third each."""
_PIPE_WIDTH = 120
"""Columns of tables that do not go to a terminal."""


@dataclass(frozen=True)
class Pair:
    """An operand format, one of its outputs, and the fields of mxcfg that select it."""

    fmt: Format
    out: Format
    bovf: int
    acc: int

    @property
    def wraps(self) -> bool:
        """Does an overflow wrap although SAT = 1?"""
        return not self.out.is_float and bool(self.bovf)


@dataclass(frozen=True)
class Accuracy:
    """What one pair of formats does to one product.

    Parameters
    ----------
    max_error, rms_error : against float64, relative to its largest |result|.
    sums_max_error, sums_rms_error : the same against the product of the converted operands.
    sat_hit, inexact : share of the elements for which the flag was set in any mmacc.
    not_finite : share of the elements that are Inf or NaN; errors are then infinite.
    scale_a, scale_b : what the operands were multiplied by.
    """

    matrix: str
    m: int
    n: int
    k: int
    operand: str
    output: str
    bovf: int
    acc: int
    arithmetic: str
    scale_a: float
    scale_b: float
    max_error: float
    rms_error: float
    sums_max_error: float
    sums_rms_error: float
    sat_hit: float
    inexact: float
    not_finite: float

    def report(self) -> dict[str, object]:
        """All figures; what is not finite becomes None, which JSON has."""
        return {
            key: None if isinstance(value, float) and not math.isfinite(value) else value
            for key, value in vars(self).items()
        }


# -- formats -------------------------------------------------------------------------------------


def pairs_of(names: tuple[str, ...]) -> tuple[Pair, ...]:
    """Pairs named "ft" (every output) or "ft:out"; ft a format, an Ft code, or a profile.

    Each (operand, output) comes once, operands in Ft-code order. Raises ValueError.
    """
    found: dict[tuple[str, str], Pair] = {}
    for name in names:
        left, colon, right = name.strip().lower().partition(":")
        operands = expand((lookup(left).name if left[:1].isdigit() else left,))
        known = []
        for operand in operands:
            fmt = lookup(operand)
            for mode, out in outputs(fmt).items():
                known.append(out.name)
                if not colon or out.name == right:
                    found.setdefault((fmt.name, out.name), Pair(fmt, out, *MXCFG[mode]))
        if colon and right not in known:
            choices = ", ".join(dict.fromkeys(known))
            raise ValueError(f"{left} has no output {right!r}: choose one of {choices}")
    order = {name: place for place, name in enumerate(expand(("all",)))}
    return tuple(sorted(found.values(), key=lambda pair: order[pair.fmt.name]))


def _largest(fmt: Format) -> float:
    """Largest finite value, in float64."""
    if not fmt.is_float:
        return math.ldexp((1 << fmt.bits - 1) - 1, -fmt.frac)
    if fmt.specials is Specials.E8M0:
        return math.ldexp(1.0, fmt.exp_max - fmt.bias)
    mantissa = (1 << fmt.man + 1) - 1 - (fmt.specials is Specials.NAN_TOP)
    return math.ldexp(mantissa, fmt.exp_max - fmt.bias - fmt.man)


def _arithmetic(fmt: Format, cfg: Config) -> str:
    if not fmt.is_float or cfg.is_exact(fmt):
        return "exact"
    return f"window {cfg.window_bits(fmt)}"


# -- matrices and scales -------------------------------------------------------------------------


def random_matrices(kind: str, m: int, n: int, k: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A (M, K) and B (N, K) of one of `RANDOM`."""
    rng = np.random.default_rng((seed, RANDOM.index(kind)))

    def one(rows: int) -> np.ndarray:
        if kind == "uniform":
            return rng.uniform(-1, 1, (rows, k))
        values = rng.standard_normal((rows, k))
        if kind == "wide":
            values *= np.exp2(rng.integers(-WIDE_EXPONENT, WIDE_EXPONENT + 1, (rows, k)))
        return values

    return one(m), one(n)


def _digits_matrices(m: int, n: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Held-out images and the first layer's weights, cut to the size."""
    try:
        images, labels = digits.load_images()
    except CommandError as error:
        raise CommandError(f"{error}, or use --matrix random") from None
    _note(f"digits: training on {digits.TRAINED} images")
    network = digits.train(images[: digits.TRAINED], labels[: digits.TRAINED])
    return images[digits.TRAINED :][:m, :k], network.w1.T[:n, :k]


def _sums(a: np.ndarray, b: np.ndarray, lanes: int) -> Iterator[np.ndarray]:
    """What C holds after each mmacc, in float64."""
    total = np.zeros((len(a), len(b)))
    for first in range(0, a.shape[1], lanes):
        total = total + a[:, first : first + lanes] @ b[:, first : first + lanes].T
        yield total


def _peak(a: np.ndarray, b: np.ndarray, lanes: int) -> float:
    return max(float(np.abs(total).max()) for total in _sums(a, b, lanes))


def scales(
    a: np.ndarray, b: np.ndarray, pair: Pair, lanes: int, mode: str = "auto"
) -> tuple[float, float]:
    """Factors for A and B, see the top of this file."""
    fit = mode == "fit" or (mode == "auto" and (pair.fmt.is_float or pair.wraps))
    largest, limit = _largest(pair.fmt), _largest(pair.out)
    full = [largest / float(np.abs(matrix).max() or largest) for matrix in (a, b)]
    peak = _peak(a, b, lanes)
    if pair.fmt.is_float:
        exponents = [math.frexp(factor)[1] - 1 for factor in full]
        if fit and peak:
            room = math.frexp(limit / FLOAT_MARGIN / peak)[1] - 1
            excess = max(0, sum(exponents) - room)
            exponents = [exponents[0] - (excess + 1) // 2, exponents[1] - excess // 2]
        return math.ldexp(1.0, exponents[0]), math.ldexp(1.0, exponents[1])
    if not fit:
        return full[0], full[1]
    shrink = min(1.0, math.sqrt(limit / full[0] / full[1] / peak)) if peak else 1.0
    unit = math.ldexp(1.0, pair.fmt.frac)

    def rounded(matrix: np.ndarray, factor: float) -> np.ndarray:
        return np.rint(matrix * (factor * shrink * unit)) / unit

    # Rounded operands may give larger sums; a zero sum fits, so that this ends.
    while _peak(rounded(a, full[0]), rounded(b, full[1]), lanes) > limit * (1 - 1e-9):
        shrink *= SHRINK
    return full[0] * shrink, full[1] * shrink


# -- measuring -----------------------------------------------------------------------------------


def _relative(found: np.ndarray, expected: np.ndarray, unit: float) -> tuple[float, float]:
    """Largest and RMS difference, in units."""
    if not np.isfinite(found).all():
        return math.inf, math.inf
    error = np.abs(found - expected) / unit
    return float(error.max()), float(np.sqrt(np.mean(np.square(error))))


def measure(
    matrix: str, a: np.ndarray, b: np.ndarray, pair: Pair, cfg: Config, scale: str = "auto"
) -> Accuracy:
    """Multiply A (M, K) and B (N, K), float64, in one pair of formats and compare.

    Parameters
    ----------
    matrix : name of the matrices, for the result.
    cfg : the core, for its lanes, exact_limit and windows.
    scale : one of `SCALES`.
    """
    fmt, out = pair.fmt, pair.out
    lanes = cfg.lanes(fmt.container)
    if not fmt.signed:
        a, b = np.abs(a), np.abs(b)
    scale_a, scale_b = scales(a, b, pair, lanes, scale)
    codes_a, codes_b = to_codes(a * scale_a, fmt), to_codes(b * scale_b, fmt)
    total, sticky = None, np.zeros((len(a), len(b)), np.uint8)
    for first in range(0, a.shape[1], lanes):
        part = slice(first, first + lanes)
        fields = {"bovf": pair.bovf, "acc": pair.acc, "sat": 1, "beta": int(total is None)}
        rows = codes_a[:, part], codes_b[:, part]
        total, flags = mma(fmt.name, *rows, total, config=cfg, **fields)
        sticky |= flags
    result = from_codes(total, out).astype(np.float64)
    converted = [from_codes(codes, fmt).astype(np.float64) for codes in (codes_a, codes_b)]
    exact = a @ b.T
    unit = float(np.abs(exact).max()) or 1.0
    errors = _relative(result / scale_a / scale_b, exact, unit)
    sums_errors = _relative(result, converted[0] @ converted[1].T, unit * scale_a * scale_b)
    share = {
        name: float(np.mean(sticky >> FLAG_NAMES.index(name) & 1))
        for name in ("sat_hit", "inexact")
    }
    return Accuracy(
        matrix=matrix,
        m=len(a),
        n=len(b),
        k=a.shape[1],
        operand=fmt.name,
        output=out.name,
        bovf=pair.bovf,
        acc=pair.acc,
        arithmetic=_arithmetic(fmt, cfg),
        scale_a=scale_a,
        scale_b=scale_b,
        max_error=errors[0],
        rms_error=errors[1],
        sums_max_error=sums_errors[0],
        sums_rms_error=sums_errors[1],
        not_finite=float(np.mean(~np.isfinite(result))),
        **share,
    )


# -- command line --------------------------------------------------------------------------------


def _note(message: str) -> None:
    print(f"{PROGRAM}: {message}", file=sys.stderr, flush=True)


def _parser() -> Parser:
    parser = Parser(prog="python -m sim.accuracy", description=__doc__)
    parser.add_argument(
        "--pairs",
        default=",".join(DEFAULT_PAIRS),
        metavar="FT[:OUT],...",
        help="formats, Ft codes or profiles, with all outputs or one (%(default)s)",
    )
    parser.add_argument("--matrix", default="all", help=f"{', '.join(CHOICES)} (%(default)s)")
    parser.add_argument(
        "--size",
        nargs=3,
        type=int,
        default=DEFAULT_SIZE,
        metavar=("M", "N", "K"),
        help="of the product; the digits have at most 360 64 64 (64 64 64)",
    )
    parser.add_argument("--seed", type=int, default=0, help="of the random matrices")
    parser.add_argument("--scale", default="auto", help=f"{', '.join(SCALES)} (%(default)s)")
    parser.add_argument(
        "--set",
        metavar="FIELD=VALUE",
        dest="settings",
        action="extend",
        nargs="+",
        default=[],
        help="change the core, such as exact_limit=48 or window=bf16:24",
    )
    parser.add_argument("--plot", metavar="FILE", help="draw the table (png, svg or pdf)")
    parser.add_argument("--json", metavar="FILE", help="write the figures, - for stdout, no table")
    return parser


def _check(options: Namespace) -> None:
    """Raise `CommandError` for what would fail later."""
    for name, choices in (("matrix", CHOICES), ("scale", SCALES)):
        if getattr(options, name) not in choices:
            raise CommandError(
                f"--{name} is one of {', '.join(choices)}, not {getattr(options, name)}"
            )
    if not options.pairs.strip(", "):
        raise CommandError("--pairs names no format: give one, such as int8")
    if min(options.size) < 1:
        raise CommandError("--size takes M, N and K of 1 or more")
    if math.prod(options.size) > MAX_PRODUCTS:
        raise CommandError(f"--size: M * N * K may be at most {MAX_PRODUCTS:,}")
    if options.seed < 0:
        raise CommandError("--seed must be 0 or more")
    if options.plot is not None:
        if Path(options.plot).suffix.lower() not in PLOT_TYPES:
            raise CommandError(f"--plot {options.plot}: end it in {', '.join(PLOT_TYPES)}")
        if importlib.util.find_spec("matplotlib") is None:
            raise CommandError("--plot needs matplotlib: pip install '.[demo]'")
        check_writable(options.plot)
    if options.json not in (None, "-"):
        check_writable(options.json)


def _matrices(options: Namespace) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    found = {}
    if options.matrix != "random":
        found["digits"] = _digits_matrices(*options.size)
    if options.matrix != "digits":
        for kind in RANDOM:
            found[kind] = random_matrices(kind, *options.size, options.seed)
    return found


def _figure(error: float) -> str:
    return "0" if not error else "inf" if math.isinf(error) else f"{error:.1e}"


def _share(share: float) -> str:
    """A percentage that says 0.0 and 100.0 only where it is none or all."""
    percent = 100 * share
    if 0 < percent < 0.05:
        return "<0.1"
    return ">99.9" if 99.95 <= percent < 100 else f"{percent:.1f}"


def _print_tables(results: list[Accuracy]) -> None:
    console = Console(width=None if sys.stdout.isatty() else _PIPE_WIDTH, highlight=False)
    for matrix in dict.fromkeys(result.matrix for result in results):
        rows = [result for result in results if result.matrix == matrix]
        title = f"{matrix}, {rows[0].m} x {rows[0].n} x {rows[0].k}"
        table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD)
        for column in ("operand", "output", "class"):
            table.add_column(column, no_wrap=True)
        for column in ("max error", "RMS error", "sums max", "sums RMS", "sat_hit %", "inexact %"):
            table.add_column(column, justify="right", no_wrap=True)
        for row in rows:
            errors = (row.max_error, row.rms_error, row.sums_max_error, row.sums_rms_error)
            table.add_row(
                *(row.operand, row.output, row.arithmetic),
                *(_figure(error) for error in errors),
                *(_share(share) for share in (row.sat_hit, row.inexact)),
            )
        console.print(table)


def _plot(results: list[Accuracy], path: str) -> bytes:
    """A picture: errors on the left, flags on the right, a row of panels per matrix."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    groups = {
        matrix: [result for result in results if result.matrix == matrix]
        for matrix in dict.fromkeys(result.matrix for result in results)
    }
    finite = [result.max_error for result in results if 0 < result.max_error < math.inf]
    floor, ceiling = min(finite, default=1e-3) / 100, max(finite, default=1.0) * 10
    height = max(len(group) for group in groups.values())
    figure = Figure(figsize=(10, len(groups) * (1.2 + 0.22 * height)), layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(len(groups), 2, squeeze=False, width_ratios=(2, 1))
    for (left, right), (matrix, group) in zip(panels, groups.items(), strict=True):
        places = np.arange(len(group))

        def shown(name: str, group: list[Accuracy] = group) -> np.ndarray:
            return np.clip([getattr(result, name) for result in group], floor, ceiling)

        left.plot(shown("max_error"), places, "o", label="max")
        left.plot(shown("rms_error"), places, "D", markersize=4, label="RMS")
        left.plot(shown("sums_rms_error"), places, "x", label="RMS of the sums alone")
        left.set_xscale("log")
        left.set_xlim(floor / 2, ceiling * 2)
        left.set_title(f"{matrix}, {group[0].m} x {group[0].n} x {group[0].k}", loc="left")
        left.set_xlabel("error / largest |result| (left edge: less, or none; right edge: Inf)")
        left.set_yticks(places, [f"{result.operand} → {result.output}" for result in group])
        left.grid(alpha=0.3)
        for name, offset in (("sat_hit", -0.2), ("inexact", 0.2)):
            shares = [100 * getattr(result, name) for result in group]
            right.barh(places + offset, shares, 0.4, label=name)
        right.set_xlim(0, 100)
        right.set_xlabel("% of the elements")
        right.set_yticks(places, [])
        for panel in (left, right):
            panel.set_ylim(len(group) - 0.5, -0.5)
            panel.legend(fontsize="small")
    content = io.BytesIO()
    figure.savefig(content, format=Path(path).suffix[1:].lower())
    return content.getvalue()


def _command(options: Namespace) -> int:
    _check(options)
    try:
        pairs = pairs_of(tuple(filter(None, options.pairs.split(","))))
        cfg = apply_settings(Config(formats=("all",)), options.settings)
    except ConfigError as error:
        raise CommandError(str(error)) from None
    except ValueError as error:
        raise CommandError(f"--pairs: {error}") from None
    results = []
    for matrix, (a, b) in _matrices(options).items():
        for pair in pairs:
            _note(f"{matrix}: {pair.fmt.name} to {pair.out.name}")
            results.append(measure(matrix, a, b, pair, cfg, options.scale))
    figures = {
        "seed": options.seed,
        "scale": options.scale,
        "settings": options.settings,
        "results": [result.report() for result in results],
    }
    text = json.dumps(figures, indent=1, allow_nan=False) + "\n"
    if options.json == "-":
        sys.stdout.write(text)
    else:
        _print_tables(results)
        if options.json is not None:
            write_whole(options.json, text.encode())
    if options.plot is not None:
        write_whole(options.plot, _plot(results, options.plot))
    return 0


def main(arguments: list[str] | None = None) -> int:
    """Run the command; returns its exit status: 0, or 2 for a wrong request."""
    return run_command(PROGRAM, lambda: _command(_parser().parse_args(arguments)))


if __name__ == "__main__":
    sys.exit(main())
