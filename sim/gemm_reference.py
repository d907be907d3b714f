"""What a GEMM on the core must give: the reference's mma, repeated along K."""

from __future__ import annotations

import numpy as np

from hdl.config import Config

from .codes import code_dtype
from .reference.numerics import FLAG_NAMES, mma, output

__all__ = ["reference_gemm"]


def reference_gemm(
    cfg: Config,
    ft: str,
    a: np.ndarray,
    b: np.ndarray,
    c: np.ndarray,
    *,
    bovf: int = 0,
    acc: int = 0,
    sat: int = 0,
    rnd: int = 0,
    alpha: int = 1,
    beta: int = 0,
    lanes: int,
) -> tuple[np.ndarray, dict[str, bool]]:
    """alpha * A x B^T + beta * C, rounded once after every full row of lanes, ascending k.

    Parameters
    ----------
    a, b, c : unsigned codes, (M, K), (N, K), (M, N).
    alpha, beta : BLAS factors, 1 or -1, 0 or 1.
    lanes : elements of K of one mma.

    Returns the codes and the sticky flags of every step.
    """
    out = output(ft, bovf=bovf, acc=acc)
    total = c if beta else np.zeros_like(c, code_dtype(out.container))
    sticky = 0
    overwrite = not beta
    for first in range(0, a.shape[1] if total.size else 0, lanes):
        part = slice(first, first + lanes)
        total, flags = mma(
            ft,
            a[:, part],
            b[:, part],
            total,
            bovf=bovf,
            acc=acc,
            sat=sat,
            rnd=rnd,
            alpha=int(alpha < 0),
            beta=int(overwrite),
            config=cfg,
        )
        sticky |= int(np.bitwise_or.reduce(flags, axis=None, initial=0))
        overwrite = False
    return total, {name: bool(sticky >> bit & 1) for bit, name in enumerate(FLAG_NAMES)}
