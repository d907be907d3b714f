"""Several runs of SymbiYosys at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from .sby import stop_all

__all__ = ["in_order"]

Item = TypeVar("Item")
Found = TypeVar("Found")


def in_order(
    work: Callable[[Item], Found], items: Iterable[Item], jobs: int
) -> Iterator[tuple[Item, Found]]:
    """Each item and what `work` makes of it, in order, up to `jobs` at a time.

    An exception, or an end of the iteration before the last item, ends the runs under way.
    """
    pool = ThreadPoolExecutor(jobs)
    futures = [(item, pool.submit(work, item)) for item in items]
    try:
        for item, future in futures:
            yield item, future.result()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        stop_all()
        pool.shutdown()
