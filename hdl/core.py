"""The core: decoder, slots, tile file, MAC pipe, load and store pipes, move unit."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import Out

from .activity import MAC_STATES, activity_member
from .config import Config
from .interfaces import (
    host_members,
    host_request,
    host_response,
    l2_read_members,
    l2_write_members,
)
from .issue.decode import Decode
from .issue.fairness import Fairness
from .issue.slots import Slots
from .l2.load import LoadPipe
from .l2.store import StorePipe
from .mac.pipe import MacPipe
from .tilefile.file import TileFile
from .tilefile.transpose import OperandPath
from .units.move import MoveUnit

__all__ = ["Core"]


class Core(wiring.Component):
    """One matrix coprocessor, the top level that is emitted.

    Parameters
    ----------
    activity : add the output of that name, for simulation; nothing else changes.

    Members
    -------
    host_req_*, host_resp_* : instruction and response streams (isa.md section 3).
    dsa_pad_*, pad_dsa_* : L2 read and write channels (seed 001 section 4.4).
    busy : an instruction, a memory access or an answer is still under way.
    activity : what every unit does in this cycle (`hdl.activity`); only if asked for.

    Source: architecture.md section 1, the data path.
    """

    def __init__(self, cfg: Config, *, activity: bool = False):
        self.cfg = cfg
        self.tells = activity
        super().__init__(
            {
                **host_members(cfg),
                **l2_read_members(cfg),
                **l2_write_members(cfg),
                "busy": Out(1),
                **({"activity": activity_member()} if activity else {}),
            }
        )

    def elaborate(self, platform):
        m = Module()
        cfg = self.cfg
        m.submodules.mac = mac = MacPipe(cfg)
        m.submodules.decode = decode = Decode(cfg)
        m.submodules.slots = slots = Slots(
            cfg, mac_depth=mac.depth, loop=mac.loop, activity=self.tells
        )
        m.submodules.fairness = fairness = Fairness(cfg, mac_depth=mac.depth)
        m.submodules.operands = operands = OperandPath(cfg)
        m.submodules.tilefile = tilefile = TileFile(cfg)
        m.submodules.load = load = LoadPipe(cfg)
        m.submodules.store = store = StorePipe(cfg)
        m.submodules.move = move = MoveUnit(cfg)

        # -- host -----------------------------------------------------------------------------
        m.d.comb += [
            decode.req.valid.eq(self.host_req_valid),
            self.host_req_ready.eq(decode.req.ready),
            self.host_resp_valid.eq(decode.resp.valid),
            decode.resp.ready.eq(self.host_resp_ready),
        ]
        for name, _ in host_request(cfg):
            m.d.comb += decode.req.payload[name].eq(getattr(self, f"host_req_{name}"))
        for name, _ in host_response(cfg):
            m.d.comb += getattr(self, f"host_resp_{name}").eq(decode.resp.payload[name])

        # -- L2: each pipe has its channel to itself -----------------------------------------
        for pipe, members in ((load, l2_read_members(cfg)), (store, l2_write_members(cfg))):
            for name, member in members.items():
                if member.flow is Out:
                    m.d.comb += getattr(self, name).eq(getattr(pipe, name))
                else:
                    m.d.comb += getattr(pipe, name).eq(getattr(self, name))

        # -- uops -----------------------------------------------------------------------------
        wiring.connect(m, decode.instrs, slots.instrs)
        wiring.connect(m, slots.mma, operands.uops)
        wiring.connect(m, operands.mac, mac.uops)
        m.d.comb += mac.hold.eq(operands.hold)
        wiring.connect(m, mac.a, operands.mac_a)
        wiring.connect(m, mac.b, operands.mac_b)
        wiring.connect(m, slots.load, load.uops)
        wiring.connect(m, slots.store, store.uops)
        wiring.connect(m, slots.move, move.uops)
        m.d.comb += [
            slots.load_retired.eq(load.retired),
            slots.load_retired_tile.eq(load.retired_tile),
        ]
        for place in range(StorePipe.HELD):
            m.d.comb += [
                getattr(slots, f"store_reading{place}").eq(getattr(store, f"reading{place}")),
                getattr(slots, f"store_reading_tile{place}").eq(
                    getattr(store, f"reading_tile{place}")
                ),
            ]

        # -- tile file; the move unit takes what the MAC leaves of the result port ---------------
        wiring.connect(m, operands.a, tilefile.a)
        wiring.connect(m, operands.b, tilefile.b)
        wiring.connect(m, mac.c, tilefile.c)
        wiring.connect(m, store.read, tilefile.store)
        wiring.connect(m, load.write, tilefile.load)
        wiring.connect(m, move.a, tilefile.move)
        wiring.connect(m, mac.result, move.mac)
        wiring.connect(m, move.result, tilefile.result)
        m.d.comb += [
            move.a_busy.eq(operands.a_wanted),
            move.result_busy.eq(mac.ahead),
            move.mac_next.eq(mac.result_next),
            move.mac_next_tile.eq(mac.result_next_tile),
            tilefile.result_next.eq(move.result_next),
            tilefile.result_next_tile.eq(move.result_next_tile),
            operands.offers.eq(slots.mma_offers),
            operands.grants.eq(slots.mma_coming),
            tilefile.reads_next.eq(operands.reads_next),
            tilefile.reads_chosen.eq(operands.reads_chosen),
            tilefile.c_next.eq(mac.c_next),
            tilefile.c_next_tile.eq(mac.c_next_tile),
        ]

        # -- the 15-cycle rule ------------------------------------------------------------------
        m.d.comb += [
            fairness.waiting.eq(
                Cat(
                    load.write.valid & ~load.write.ready,
                    store.read.valid & ~store.read.ready,
                    move.uops.valid & ~move.uops.ready,
                )
            ),
            slots.skip.eq(fairness.skip),
            fairness.skipped.eq(slots.skipped),
            move.yield_.eq(fairness.load_starved),
        ]

        # -- state seen by software -------------------------------------------------------------
        quiet = Signal()
        m.d.comb += [
            quiet.eq(slots.idle & load.idle & store.idle & move.idle),
            decode.quiet.eq(quiet),
            decode.flags.eq(mac.flags),
            decode.flags_valid.eq(mac.flags_valid),
            decode.bus_error.eq(load.bus_error | store.bus_error),
            move.scalar.eq(decode.scalar),
            decode.scalar_done.eq(move.scalar_done | (mac.scalar_done if cfg.xuantie else 0)),
            decode.element_valid.eq(move.element_valid),
            decode.element.eq(move.element),
            self.busy.eq(~(quiet & decode.idle)),
        ]

        # -- activity ---------------------------------------------------------------------------
        if self.tells:
            events = {
                "mac_write": mac.result.valid,
                "load_uop": slots.load.valid & slots.load.ready,
                "load_bank": load.write.valid & ~load.write.ready,
                "store_uop": slots.store.valid & slots.store.ready,
                "store_bank": store.read.valid & ~store.read.ready,
                "move_uop": move.uops.valid & move.uops.ready,
                "move_wait": move.uops.valid & ~move.uops.ready,
                "read_ids": load.starved,
                "write_ids": store.starved,
                "dispatch": decode.instrs.valid & decode.instrs.ready,
                "dispatch_wait": decode.instrs.valid & ~decode.instrs.ready,
            }
            for name, valid, ready in (
                ("read_request", self.dsa_pad_req_rvalid, self.pad_dsa_req_rready),
                ("read_beat", self.pad_dsa_resp_rvalid, self.dsa_pad_resp_rready),
                ("write_request", self.dsa_pad_req_wvalid, self.pad_dsa_req_wready),
                ("write_beat", self.dsa_pad_req_wdvalid, self.pad_dsa_req_wdready),
            ):
                events |= {name: valid & ready, f"{name}_wait": valid & ~ready}
            for index, name in enumerate(MAC_STATES):
                m.d.comb += self.activity[name].eq(slots.mac_state[index])
            for name, event in events.items():
                m.d.comb += self.activity[name].eq(event)
        if cfg.xuantie:
            m.d.comb += [mac.scalar.eq(decode.scalar), decode.saturated.eq(mac.saturated)]
        return m
