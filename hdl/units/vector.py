"""The vector unit: lanes for every element of a stored word, beside the MAC array."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Mux, Signal, Value, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ..config import Config
from ..interfaces import mac_flags, mac_op
from ..mac.accumulate_control import accumulate_control
from ..mac.logic import any_of, mux_one_hot
from ..mac.pipeline import DelayLine, register
from ..mac.plan import MacPlan
from ..share import shared
from .lane import VectorLane
from .lane_control import LaneControl, lane_control
from .lane_plan import LanePlan, lane_classes, lane_plans, start_age, z_containers

__all__ = ["VectorArray", "VectorRow"]

NIBBLE = 4
PARTS = 8
"""Most words of z that one word of x spreads over."""


class VectorRow(wiring.Component):
    """The lanes of one row of a stored word.

    A lane stands wherever an element of z can start. What x and y hold narrower than z is spread
    out, so that every element meets its z.

    Parameters
    ----------
    cfg : the core's configuration.
    start : age at which the lanes take x and y.
    latency : age of `d` and `flags`.

    Members
    -------
    x, y : rows, the elements of this part of z lowest, at age `start`.
    z : the old row, one cycle before the lanes take it.
    active : lanes whose element is written, with the result.
    spare : what the odd nibbles that are not active keep, with the result.
    container : one-hot container of z, in order of `z_containers`, with the result.
    lane{n}, read{n}, skip{n}, stage{n}_... : control of class n (`VectorLane`).
    d, flags : the result, registered.
    """

    def __init__(self, cfg: Config, start: int, latency: int):
        self.cfg = cfg
        self.start = start
        self.latency = latency
        self.lanes = lane_plans(cfg)
        self.classes = lane_classes(cfg)
        self.containers = z_containers(cfg)
        members = {
            "x": In(cfg.row_bits),
            "y": In(cfg.row_bits),
            "z": In(cfg.row_bits),
            "active": In(len(self.lanes)),
            "spare": In(NIBBLE),
            "container": In(len(self.containers)),
            "d": Out(cfg.row_bits),
            "flags": Out(mac_flags()),
        }
        for n, plan in enumerate(self.classes):
            members[f"lane{n}"] = In(lane_control(plan))
            members[f"read{n}"] = In(accumulate_control(plan))
            members[f"skip{n}"] = In(1)
            for stage in plan.control_ages:
                members[f"stage{n}_{stage}"] = In(accumulate_control(plan))
        super().__init__(members)

    def elaborate(self, platform):
        m = Module()
        z = register(m, "z_row", self.z)
        results: dict[int, Value] = {}
        flags = []
        for number, (place, plan) in enumerate(self.lanes.items()):
            kind = self.classes.index(plan)
            m.submodules[f"lane{place}"] = lane = shared(platform, VectorLane, plan, self.start)
            control = getattr(self, f"lane{kind}")
            m.d.comb += [
                lane.x.eq(self._spread(self.x, place, plan, control.spread)),
                lane.y.eq(self._spread(self.y, place, plan, control.spread)),
                lane.z.eq(z[place : place + plan.out_bits]),
                lane.lane.eq(control),
                lane.read.eq(getattr(self, f"read{kind}")),
                lane.skip.eq(getattr(self, f"skip{kind}")),
            ]
            for stage in plan.control_ages:
                m.d.comb += getattr(lane, f"control_{stage}").eq(
                    getattr(self, f"stage{kind}_{stage}")
                )
            # The lanes of integers alone have fewer stages.
            wait = self.latency - plan.latency
            d = DelayLine(m, f"d{place}", lane.d)[wait]
            if place % (2 * NIBBLE):
                d = Mux(self.active[number], d, self.spare)
            results[place] = d
            late = DelayLine(m, f"flags{place}", lane.flags.as_value())[wait]
            flags.append(late & self.active[number].replicate(len(late)))
        rows = []
        for i, container in enumerate(self.containers):
            row = Cat(
                results[place][:container] for place in range(0, self.cfg.row_bits, container)
            )
            rows.append((self.container[i], row))
        total = flags[0]
        for late in flags[1:]:
            total = total | late
        m.d.comb += [
            self.d.eq(register(m, "d_reg", mux_one_hot(rows))),
            self.flags.eq(register(m, "flags_reg", total)),
        ]
        return m

    def _spread(self, row: Value, place: int, plan: LanePlan, spread: Value) -> Value:
        """The element of x or y that belongs to the lane at `place`."""
        options = [
            (spread[i], row[place // factor :][: plan.row_bits])
            for i, factor in enumerate(plan.expansions)
        ]
        return mux_one_hot(options)


class VectorArray(wiring.Component):
    """Computes one stored word of z for every vector uop, with the timing of the MAC array.

    Parameters
    ----------
    cfg : the core's configuration.

    Members
    -------
    op : what a uop computes (`mac_op`; `vector.on` marks the unit's own).
    x, y : m_par rows each, with `op`.
    z : the rows of the old word, `c_delay` cycles after `op`.
    d : the new rows, `latency` cycles after `op`; elements outside op.rows and op.k are undefined,
        but of a byte that is half active the other nibble is kept.
    mask : the bytes of a row that are written, with `d`.
    flags : flags of the elements in op.rows and op.k, with `d`.

    Latency: `latency` cycles from `op`, that of the MAC array. Throughput: one word a cycle.
    Source: isa.md section 2 (vector mode), numerics.md.
    """

    def __init__(self, cfg: Config):
        self.cfg = cfg
        mac = MacPlan(cfg)
        self.c_delay, self.latency = mac.c_delay, mac.latency
        self.classes = lane_classes(cfg)
        self.start = start_age(cfg)
        row = unsigned(cfg.row_bits)
        rows = data.ArrayLayout(row, cfg.m_par)
        super().__init__(
            {
                "op": In(mac_op(cfg)),
                "x": In(rows),
                "y": In(rows),
                "z": In(rows),
                "d": Out(rows),
                "mask": Out(cfg.row_bytes),
                "flags": Out(mac_flags()),
            }
        )

    def elaborate(self, platform):
        m = Module()
        cfg = self.cfg
        op_line = DelayLine(m, "op", self.op.as_value())
        layout = self.op.shape()

        def op_at(age: int) -> data.View:
            return data.View(layout, op_line[age])

        # -- control: one decoder a class ----------------------------------------------------
        rows = [
            shared(platform, VectorRow, cfg, self.start, self.latency) for _ in range(cfg.m_par)
        ]
        for i, row in enumerate(rows):
            m.submodules[f"row{i}"] = row
        for n, plan in enumerate(self.classes):
            m.submodules[f"control{n}"] = control = LaneControl(plan)
            m.d.comb += control.op.eq(op_at(self.start))
            accumulate = DelayLine(
                m, f"accumulate{n}", control.accumulate.as_value(), first=self.start
            )
            skip = DelayLine(m, f"skip{n}", control.skip, first=self.start)
            for row in rows:
                m.d.comb += [
                    getattr(row, f"lane{n}").eq(control.lane),
                    getattr(row, f"read{n}").eq(accumulate[plan.c_age - 1]),
                    getattr(row, f"skip{n}").eq(skip[plan.c_age - 1]),
                ]
                for stage, age in plan.control_ages.items():
                    m.d.comb += getattr(row, f"stage{n}_{stage}").eq(accumulate[age])

        # -- operands, z and result ----------------------------------------------------------
        z_age = self.c_delay
        last = op_at(self.latency - 1)
        active, container = self._active(m, last)
        flags = []
        for i, row in enumerate(rows):
            for name in ("x", "y"):
                part = self._part(m, f"{name}{i}", getattr(self, name)[i])
                m.d.comb += getattr(row, name).eq(DelayLine(m, f"{name}{i}", part)[self.start])
            spare = DelayLine(m, f"spare{i}", self._spare(self.z[i], op_at(z_age)), first=z_age)
            m.d.comb += [
                row.z.eq(self.z[i]),
                row.active.eq(active & last.rows[i].replicate(len(active))),
                row.spare.eq(spare[self.latency - 1]),
                row.container.eq(container),
                self.d[i].eq(row.d),
            ]
            flags.append(row.flags.as_value())
        total = flags[0]
        for value in flags[1:]:
            total = total | value
        m.d.comb += self.flags.eq(total)
        self._mask(m, last, container)
        return m

    def _part(self, m: Module, name: str, row: Value) -> Value:
        """The row of x or y from this part's first element on."""
        step = self.cfg.row_bits // PARTS
        eighth = self.op.vector.eighth
        for bit in range(len(eighth)):
            moved = Signal(self.cfg.row_bits, name=f"{name}_from{bit}")
            m.d.comb += moved.eq(Mux(eighth[bit], row >> (step << bit), row))
            row = moved
        return row

    def _containers(self, op: data.View, containers: tuple[int, ...]) -> Value:
        """One-hot container of z."""
        formats, outs = self.cfg.format_rows, self.cfg.output_formats
        own = {
            c: any_of(op.ft == i for i, f in enumerate(formats) if f.container == c)
            for c in containers
        }
        named = {
            c: any_of(op.out == i for i, o in enumerate(outs) if o.container == c)
            for c in containers
        }
        return Cat(Mux(op.vector.same, own[c], named[c]) for c in containers)

    def _active(self, m: Module, op: data.View) -> tuple[Value, Value]:
        """Lanes with one of the op.k elements, and the container, with the result."""
        containers, places = z_containers(self.cfg), lane_plans(self.cfg)
        container = Signal(len(containers), name="container")
        m.d.comb += container.eq(self._containers(op, containers))
        active = Signal(len(places), name="active")
        for number, place in enumerate(places):
            terms = [
                container[i] & (op.k > place // bits)
                for i, bits in enumerate(containers)
                if place % bits == 0
            ]
            m.d.comb += active[number].eq(any_of(terms))
        return active, container

    def _spare(self, row: Value, op: data.View) -> Value:
        """The odd nibble of `row` beside element k - 1, for an odd k."""
        count = self.cfg.row_bytes
        nibbles = Cat(row[8 * i + NIBBLE : 8 * (i + 1)] for i in range(count))
        return nibbles.word_select(op.k[1:][: (count - 1).bit_length()], NIBBLE)

    def _mask(self, m: Module, op: data.View, container: Value) -> None:
        """Bytes with an active element, registered."""
        containers = z_containers(self.cfg)
        mask = Signal(self.cfg.row_bytes, name="mask_reg", reset_less=True)
        for byte in range(self.cfg.row_bytes):
            terms = [container[i] & (op.k > 8 * byte // bits) for i, bits in enumerate(containers)]
            m.d.sync += mask[byte].eq(any_of(terms))
        m.d.comb += self.mask.eq(mask)
