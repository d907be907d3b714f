"""The plot of a sweep over sizes: utilisation, and the roofline."""

from __future__ import annotations

import io
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from hdl.cli import CommandError, write_whole

from .bench_rows import Row

__all__ = ["check_plot", "plot_sweep"]

SUFFIXES = (".png", ".svg")
MARKS = {"1x1": "o", "2x2": "s", "4x4": "D"}


def check_plot(path: str) -> None:
    """Raise `CommandError` now if `plot_sweep` could not draw into `path`."""
    if Path(path).suffix not in SUFFIXES:
        raise CommandError(f"cannot plot into {path}: name a file that ends in .png or .svg")
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise CommandError("--plot needs matplotlib: pip install openmxu[demo]") from None


def plot_sweep(rows: Sequence[Row], path: str, bus_bytes: int) -> None:
    """Draw rows of kind "sweep".

    Left, over the size: the MAC array's utilisation, solid, below what the bound allows, dashed.
    Right, the roofline: multiply-accumulates a cycle over those for each byte read.

    Parameters
    ----------
    path : ends in one of `SUFFIXES`.
    bus_bytes : what L2 delivers in a cycle.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure
    from matplotlib.ticker import ScalarFormatter

    lines: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        lines[row.name].append(row)
    suffix = Path(path).suffix
    figure = Figure(figsize=(12, 5), layout="constrained")
    canvas = {".png": FigureCanvasAgg, ".svg": FigureCanvasSVG}[suffix](figure)
    left, right = figure.subplots(1, 2)
    peaks: dict[str, float] = {}
    most = 0.0
    formats = sorted({name.split(",")[0] for name in lines})
    for name, points in lines.items():
        ft, tiling = name.split(", ")
        sizes = [int(point.case) for point in points]
        reached = [100 * point.measured for point in points]
        roof = [100 * point.measured * point.cycles / point.bound for point in points]
        style = {"color": f"C{formats.index(ft)}", "marker": MARKS[tiling], "markersize": 5}
        left.plot(sizes, reached, label=name.removeprefix("GEMM "), **style)
        left.plot(sizes, roof, linestyle="--", linewidth=0.8, color=style["color"], alpha=0.6)
        rates = [size**3 / point.cycles for size, point in zip(sizes, points, strict=True)]
        per_byte = [
            size**3 / (point.activity["read_beat"] * bus_bytes)
            for size, point in zip(sizes, points, strict=True)
        ]
        right.plot(per_byte, rates, linestyle="", label=name.removeprefix("GEMM "), **style)
        peaks[ft] = rates[0] / points[0].measured
        most = max(*per_byte, most)
    for ft, peak in peaks.items():
        knee, color = peak / bus_bytes, f"C{formats.index(ft)}"
        right.plot(
            [knee / 8, knee, max(2 * knee, 1.5 * most)], [peak / 8, peak, peak], "--", color=color
        )
    left.set_xscale("log", base=2)
    left.xaxis.set_major_formatter(ScalarFormatter())
    left.set_xlabel("M = N = K")
    left.set_ylabel("share of the MAC array's peak, %")
    left.set_title("reached (solid) and the roofline (dashed)")
    left.legend(fontsize="small")
    left.set_ylim(0, 105)
    right.set_xscale("log", base=2)
    right.set_yscale("log", base=2)
    for axis in (right.xaxis, right.yaxis):
        axis.set_major_formatter(ScalarFormatter())
    right.set_xlabel("multiply-accumulates for each byte read")
    right.set_ylabel("multiply-accumulates a cycle")
    right.set_title(f"roofline: the array's peak, and {bus_bytes} bytes a cycle")
    for axes in (left, right):
        axes.grid(alpha=0.3)
    figure.suptitle(f"GEMM on {rows[0].preset}, operands and results in L2 memory")
    content = io.BytesIO()
    canvas.figure.savefig(content, format=suffix[1:], dpi=120, metadata=_METADATA[suffix])
    write_whole(path, content.getvalue())


_METADATA: dict[str, dict[str, None]] = {".png": {}, ".svg": {"Date": None}}
"""Nothing that changes from run to run."""
