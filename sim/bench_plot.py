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


def plot_sweep(rows: Sequence[Row], path: str) -> None:
    """Draw rows of kind "sweep".

    Left, over the size: the MAC array's utilisation, solid, below what the bound allows, dashed.
    Right: what was reached over how much the bound leaves to the MAC array, so that a tiling
    which the bus limits shows where its roof is.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    lines: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        lines[row.name].append(row)
    suffix = Path(path).suffix
    figure = Figure(figsize=(12, 5), layout="constrained")
    canvas = {".png": FigureCanvasAgg, ".svg": FigureCanvasSVG}[suffix](figure)
    left, right = figure.subplots(1, 2, sharey=True)
    formats = sorted({name.split(",")[0] for name in lines})
    for name, points in lines.items():
        ft, tiling = name.split(", ")
        sizes = [int(point.case) for point in points]
        reached = [100 * point.measured for point in points]
        roof = [100 * point.measured * point.cycles / point.bound for point in points]
        style = {"color": f"C{formats.index(ft)}", "marker": MARKS[tiling], "markersize": 5}
        left.plot(sizes, reached, label=name.removeprefix("GEMM "), **style)
        left.plot(sizes, roof, linestyle="--", linewidth=0.8, color=style["color"], alpha=0.6)
        right.scatter(roof, reached, **{"color": style["color"], "marker": style["marker"]}, s=25)
    left.set_xscale("log", base=2)
    left.set_xlabel("M = N = K")
    left.set_ylabel("share of the MAC array's peak, %")
    left.set_title("reached (solid) and the roofline (dashed)")
    left.legend(fontsize="small")
    right.plot([0, 100], [0, 100], color="black", linewidth=0.8)
    right.set_xlabel("what the roofline allows, %")
    right.set_title("every point against its roof")
    for axes in (left, right):
        axes.set_ylim(0, 105)
        axes.grid(alpha=0.3)
    figure.suptitle(f"GEMM on {rows[0].preset}, operands and results in L2 memory")
    content = io.BytesIO()
    canvas.figure.savefig(content, format=suffix[1:], dpi=120, metadata=_METADATA[suffix])
    write_whole(path, content.getvalue())


_METADATA: dict[str, dict[str, None]] = {".png": {}, ".svg": {"Date": None}}
"""Nothing that changes from run to run."""
