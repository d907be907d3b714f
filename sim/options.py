"""Checks of the options that calls and commands share."""

from __future__ import annotations

import operator

from hdl.config import Config
from hdl.formats import Format, acc_mode, lookup, output_format

from .reference.numerics import output

__all__ = ["choose", "format_pair", "output_exists"]


def choose(name: str, value: object, allowed: tuple[int, ...]) -> int:
    """`value` as an int. Raises ValueError unless it is one of `allowed`."""
    try:
        number = operator.index(value)
    except TypeError:
        number = None
    if number not in allowed:
        raise ValueError(f"{name} = {value!r} is undefined: use {_either(allowed)}")
    return number


def _either(allowed: tuple[int, ...]) -> str:
    return " or ".join((", ".join(map(str, allowed[:-1])), str(allowed[-1])))


def format_pair(cfg: Config, ft: str | int, bovf: int, acc: int) -> tuple[Format, Format]:
    """Operand and output format. Raises ValueError for an unknown, unbuilt or missing one."""
    fmt = lookup(ft)
    if fmt.name not in cfg.formats:
        raise ValueError(
            f"ft = {ft!r}: {cfg.name} does not build {fmt.name}, only {', '.join(cfg.formats)}"
        )
    choose("bovf", bovf, (0, 1))
    modes = tuple(mode for mode in range(8) if output_exists(fmt, mode))
    return fmt, output(fmt.name, bovf=bovf, acc=choose("acc", acc, modes))


def output_exists(fmt: Format, acc: int) -> bool:
    """Has `fmt` an output for this value of mxcfg's ACC?"""
    mode = acc_mode(0, acc)
    return mode is not None and output_format(fmt, mode) is not None
