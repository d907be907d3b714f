"""Control of the accumulators, decoded once for the whole array."""

from __future__ import annotations

from amaranth.hdl import signed
from amaranth.lib import data

from .plan import MacPlan

__all__ = ["accumulate_control", "own_control"]


def accumulate_control(plan: MacPlan) -> data.StructLayout:
    """Control of an accumulator.

    `out`: one-hot, in order of `Config.output_formats`. `sat`, `rnd`, `negate`: as in `mac_op`.
    With integers: `shift`: one-hot, in order of `MacPlan.shifts`; `modular`: the sum wraps.
    With floats: `c_out`: C's format, as `out`, but none where C takes no part; `windowed`: E
    counts; and constants of the pair of formats, see float_accumulate.py: `c_base`, `c_most`,
    `room_base`, `room_c_base`.
    """
    fields: dict[str, object] = {"out": len(plan.outputs), "sat": 1, "rnd": 2}
    if plan.has_integers:
        fields |= {"shift": len(plan.shifts), "modular": 1}
    if not plan.has_floats:
        fields["negate"] = 1
    else:
        fields |= {"c_out": len(plan.outputs), "windowed": 1}
        for name in ("c_base", "c_most", "room_base", "room_c_base"):
            fields[name] = signed(plan.exp_bits)
    return data.StructLayout(fields)


def own_control(plan: MacPlan) -> dict[str, tuple[str, ...]]:
    """The fields that decide on whole words, by stage: they are not shared by sub-arrays."""
    if not plan.has_floats:
        return {"add": tuple(accumulate_control(plan).members)}
    shift = ("shift",) if plan.has_integers else ()
    return {
        "decode": ("c_out",),
        "normal": ("out", *shift),
        "select": ("out", "rnd", "sat"),
        "round": ("out", "sat"),
        "out": ("out", "sat"),
    }
