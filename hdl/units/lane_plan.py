"""Sizes and ages of the vector unit's lanes: the MAC's plan for one element at a time.

Pure Python. A single product is never truncated (numerics.md section 1), so every float is held in
the smallest window there is: bit 0 of the axis is the product's lowest bit, and nothing is
aligned. What the lanes compute is still, bit for bit, the multiply-accumulate with K = 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache, cached_property
from types import MappingProxyType

from ..config import Config
from ..formats import Format, outputs
from ..mac.multiply import Multiplier
from ..mac.plan import FormatPlan, MacPlan, Pair, Slot, on_one_axis

__all__ = [
    "LanePlan",
    "expansion",
    "lane_classes",
    "lane_places",
    "lane_plans",
    "start_age",
    "vector_pairs",
    "z_containers",
]


def expansion(fmt: Format, out: Format) -> int:
    """Words of z that one word of x spreads over: containers of `out` by those of `fmt`."""
    return out.container // fmt.container


def vector_pairs(cfg: Config) -> tuple[tuple[Format, Format], ...]:
    """Every (format of x and y, format of z): the outputs of mma, and the operands' own format."""
    found = {}
    for fmt in cfg.format_rows:
        for out in (fmt, *outputs(fmt).values()):
            found[fmt.name, out.name] = fmt, out
    return tuple(found.values())


def lane_places(cfg: Config) -> tuple[int, ...]:
    """Bit of the row of z at which each lane's element starts."""
    pitch = min(out.container for _, out in vector_pairs(cfg))
    return tuple(range(0, cfg.row_bits, pitch))


@cache
def lane_plans(cfg: Config) -> Mapping[int, LanePlan]:
    """The plan of each lane of a row, by its place; lanes of one class share one."""
    mac = MacPlan(cfg)
    widest = max(out.container for _, out in vector_pairs(cfg))
    plans: dict[int, LanePlan] = {}
    found = {}
    for place in lane_places(cfg):
        alignment = min(place & -place or widest, widest)
        if alignment not in plans:
            plans[alignment] = LanePlan(cfg, alignment, mac)
        found[place] = plans[alignment]
    return MappingProxyType(found)


def lane_classes(cfg: Config) -> tuple[LanePlan, ...]:
    """One plan of every class of lanes."""
    return tuple(dict.fromkeys(lane_plans(cfg).values()))


def start_age(cfg: Config) -> int:
    """Age at which the lanes take x and y, so that their products meet z when it is there.

    Raises ValueError if the MAC array is faster than they are; no configuration makes it so.
    """
    start = min(plan.slack for plan in lane_classes(cfg))
    latency = MacPlan(cfg).latency
    if start < 0 or any(plan.latency > latency for plan in lane_classes(cfg)):
        raise ValueError("the lanes of the vector unit are slower than the MAC array")
    return start


def z_containers(cfg: Config) -> tuple[int, ...]:
    """Containers that z may have, ascending."""
    return tuple(sorted({out.container for _, out in vector_pairs(cfg)}))


def _one_product(plan: FormatPlan) -> FormatPlan:
    """The same operands, but a single product on an axis that starts at its lowest bit."""
    bits = plan.product_bits
    if not plan.fmt.is_float:
        return replace(plan, lanes=1, sum_bits=bits, lift=0)
    return replace(
        plan,
        lanes=1,
        term_bits=bits,
        sum_bits=bits,
        windowed=True,
        offset=0,
        lift=0,
        weight=-2 * (plan.fmt.bias + plan.fmt.man),
    )


class LanePlan(MacPlan):
    """Plan of the lanes whose elements start at multiples of `alignment` bits of a row of z.

    Such a lane computes every pair of formats whose output container is at most `alignment` bits.

    Parameters
    ----------
    cfg : the core's configuration.
    alignment : in bits.
    mac : the plan of the MAC array beside which the lanes work: C arrives at the same age.
    """

    def __init__(self, cfg: Config, alignment: int, mac: MacPlan):
        super().__init__(cfg)
        self.mac = mac
        self.alignment = alignment
        pairs = [(f, out) for f, out in vector_pairs(cfg) if out.container <= alignment]
        used = [f for f in self.formats if any(f.fmt is fmt for fmt, _ in pairs)]
        self.config_index = tuple(f.index for f in used)
        """Place in `Config.format_rows` of each format."""
        products = [_one_product(replace(f, index=i)) for i, f in enumerate(used)]
        self.formats = on_one_axis(products)
        by_name = {f.fmt.name: f for f in self.formats}
        self._pairs = tuple(Pair(by_name[fmt.name], out) for fmt, out in pairs)

    @property
    def row_bits(self) -> int:
        return max(f.fmt.container for f in self.formats)

    @cached_property
    def slots(self) -> tuple[Slot, ...]:
        return (Slot(0, self.formats),)

    @cached_property
    def slot(self) -> Slot:
        """The only multiplier."""
        return self.slots[0]

    @property
    def pairs(self) -> tuple[Pair, ...]:
        return self._pairs

    @cached_property
    def outputs(self) -> tuple[Format, ...]:
        return tuple({pair.out.name: pair.out for pair in self.pairs}.values())

    @cached_property
    def expansions(self) -> tuple[int, ...]:
        """Every `expansion` of a pair, ascending."""
        return tuple(sorted({expansion(pair.src.fmt, pair.out) for pair in self.pairs}))

    # -- latency -----------------------------------------------------------------------------

    PRODUCT_STAGES = 2
    """Stages of the lane before its multiplier: decode, select."""

    @cached_property
    def c_delay(self) -> int:
        return self.mac.c_delay

    @cached_property
    def total_age(self) -> int:
        """Age at which the accumulator takes the product."""
        return self.c_age - 1 if self.has_floats else self.c_age

    @cached_property
    def slack(self) -> int:
        """Cycles that operands may wait before they are decoded."""
        latency = Multiplier.latency_of(self.slot.operand_bits)
        return self.total_age - latency - self.PRODUCT_STAGES
