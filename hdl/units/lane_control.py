"""Decode of a vector uop's `op`, once for all lanes of a class."""

from __future__ import annotations

from amaranth.hdl import Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ..interfaces import mac_op
from ..isa import VECTOR_WITHOUT_Z, VectorOp
from ..mac.accumulate_control import accumulate_control
from ..mac.control import ControlDecoder
from ..mac.logic import any_of
from ..mac.operand import operand_control
from .lane_plan import LanePlan, expansion

__all__ = ["LaneControl", "lane_control"]


def lane_control(plan: LanePlan) -> data.StructLayout:
    """Control of a lane before its multiplier.

    `operand`: of the operand decoders. `spread`: one-hot, in order of `LanePlan.expansions`.
    `take_y`: the product is of y alone; `larger`, `smaller`: of the larger or smaller operand;
    `by_one`: the other factor is 1, not y.
    """
    return data.StructLayout(
        {
            "operand": operand_control(plan),
            "spread": len(plan.expansions),
            "take_y": 1,
            "larger": 1,
            "smaller": 1,
            "by_one": 1,
        }
    )


class LaneControl(wiring.Component):
    """Turns `op` into the control of every stage of a lane, combinationally.

    Parameters
    ----------
    plan : sizes.

    Members
    -------
    op : the uop; one that is not for the vector unit activates no lane.
    lane : control before the multiplier.
    accumulate : control of the accumulator, and of reading z (`out`).
    skip : z takes no part.
    """

    def __init__(self, plan: LanePlan):
        self.plan = plan
        super().__init__(
            {
                "op": In(mac_op(plan.cfg)),
                "lane": Out(lane_control(plan)),
                "accumulate": Out(accumulate_control(plan)),
                "skip": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        plan, op, vector = self.plan, self.op, self.op.vector
        m.submodules.decoder = decoder = _PairDecoder(plan)
        ops = {kind: vector.kind == kind for kind in VectorOp}
        m.d.comb += [
            self.skip.eq(any_of(ops[kind] for kind in VECTOR_WITHOUT_Z)),
            decoder.op.eq(op),
            decoder.op.negate.eq(0),
            decoder.op.overwrite.eq(self.skip),
            self.accumulate.eq(decoder.accumulate),
            self.lane.operand.format.eq(decoder.formats),
            self.lane.operand.active.eq(vector.on),
            self.lane.take_y.eq(ops[VectorOp.ADD_Y]),
            self.lane.larger.eq(ops[VectorOp.MAX]),
            self.lane.smaller.eq(ops[VectorOp.MIN]),
            self.lane.by_one.eq(~(ops[VectorOp.MUL_ADD] | ops[VectorOp.MUL])),
        ]
        for i, factor in enumerate(plan.expansions):
            m.d.comb += self.lane.spread[i].eq(
                any_of(
                    decoder.formats[pair.src.index] & decoder.outs[plan.outputs.index(pair.out)]
                    for pair in plan.pairs
                    if expansion(pair.src.fmt, pair.out) == factor
                )
            )
        return m


class _PairDecoder(ControlDecoder):
    """The MAC's control of the accumulator, for the pairs of a lane.

    Members
    -------
    op : the uop.
    formats, outs : one-hot format of x and y, and of z; none where the lane has it not.
    accumulate : see `ControlDecoder`.
    """

    def __init__(self, plan: LanePlan):
        self.plan = plan
        wiring.Component.__init__(
            self,
            {
                "op": In(mac_op(plan.cfg)),
                "formats": Out(len(plan.formats)),
                "outs": Out(len(plan.outputs)),
                "accumulate": Out(accumulate_control(plan)),
            },
        )

    def elaborate(self, platform):
        m = Module()
        plan, op = self.plan, self.op
        formats = Signal(len(plan.formats))
        outs = Signal(len(plan.outputs))
        m.d.comb += [
            *(formats[i].eq(op.ft == index) for i, index in enumerate(plan.config_index)),
            self.formats.eq(formats),
            self.outs.eq(outs),
        ]
        numbers = {out.name: i for i, out in enumerate(plan.cfg.output_formats)}
        for i, out in enumerate(plan.outputs):
            chosen = []
            if out.name in numbers:
                chosen.append(~op.vector.same & (op.out == numbers[out.name]))
            own = [formats[f.index] for f in plan.formats if f.fmt is out]
            chosen += [op.vector.same & condition for condition in own]
            m.d.comb += outs[i].eq(any_of(chosen))
        self._accumulate(m, formats, outs)
        return m
