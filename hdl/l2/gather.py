"""The load pipe's first half: parts of rows become requests, and notes for their beats."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ..config import Config
from ..interfaces import ldst_uop
from .buffer import StreamBuffer
from .entry import (
    beat_ends,
    beat_parts,
    burst_rows,
    placed_uop,
    read_burst,
    read_request,
    zeroing,
)
from .shift import beats_of

__all__ = ["Gather"]


class Gather(wiring.Component):
    """Joins the beats of consecutive parts into bursts, one beat a cycle.

    The open burst waits for its next part as long as that was promised (`more`). A beat that two
    rows share is requested once. What ends in a beat is noted one cycle after the beat joined; all
    notes of a burst go to the id that is offered, which is taken as late as possible: when the
    last one is noted, the cycle in which the request is on the bus.

    Members
    -------
    uops : parts of rows, and blocks to zero.
    zero : the blocks to zero, handed on.
    request : read requests.
    give_valid, give_id, take : see `IdPool`.
    note_en, note_addr, ends, parts, rows : what ends in beat note_addr[: beats_log2] of the burst
        with the id above it, and where all of its rows lie; written no later than in the first
        cycle in which the request is offered, so before its beat can come, and never before the
        id's last use was looked up.
    idle : nothing is held but a request, whose id is in use.

    Attributes
    ----------
    starved : a burst waits for nothing but an id; beside the ports, for those who watch the core.

    Latency: a request is offered `LATENCY` cycles after its last part was accepted.
    Throughput: one beat and one part a cycle.
    """

    LATENCY = StreamBuffer.LATENCY + 2

    def __init__(self, cfg: Config):
        self.cfg = cfg
        self.beat_bits = cfg.beats_per_line.bit_length() - 1
        self.starved = Signal()
        super().__init__(
            {
                "uops": In(stream.Signature(ldst_uop(cfg))),
                "zero": Out(stream.Signature(zeroing(cfg))),
                "request": Out(stream.Signature(read_request(cfg))),
                "give_valid": In(1),
                "give_id": In(cfg.id_bits),
                "take": Out(1),
                "note_en": Out(1),
                "note_addr": Out(cfg.id_bits + self.beat_bits),
                "ends": Out(beat_ends(cfg)),
                "parts": Out(beat_parts(cfg)),
                "rows": Out(burst_rows(cfg)),
                "idle": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        cfg = self.cfg
        row_beats = cfg.row_bytes // cfg.bus_bytes

        # Where a part lies is known before it waits, so that a step is taken from registers.
        m.submodules.uops = uops = StreamBuffer(placed_uop(cfg))
        place = beats_of(m, cfg, self.uops.payload)
        m.d.comb += [
            uops.i.valid.eq(self.uops.valid),
            self.uops.ready.eq(uops.i.ready),
            uops.i.payload.uop.eq(self.uops.payload),
            uops.i.payload.offset.eq(place.offset),
            uops.i.payload.first.eq(place.first),
            uops.i.payload.last.eq(place.last),
        ]
        beats = uops.o.payload
        uop = beats.uop

        # The open burst: what is known of it and of its last beat.
        is_open = Signal()
        closed = Signal()  # no part follows: send the request
        burst = Signal(read_burst(cfg), reset_less=True)
        rows = Signal(burst_rows(cfg), reset_less=True)
        spilled = Signal(reset_less=True)  # the last row ended in its successor's first beat
        ends = Signal(beat_ends(cfg), reset_less=True)
        parts = Signal(beat_parts(cfg), reset_less=True)
        note_ready = Signal()  # the note before is written

        # -- one step of the walk ------------------------------------------------------------
        started = Signal()  # some beats of the part are in the burst
        at = Signal.like(beats.first)  # the last of them
        beat = Signal.like(beats.first)  # the beat that the burst reaches with this step
        opens = Signal()
        joins = Signal()  # the part lies in the beat reached before
        done = Signal()
        m.d.comb += [
            opens.eq(~started & (~is_open | closed)),
            joins.eq(~started & ~opens & spilled & (beats.last == 0)),
            beat.eq(Mux(started, at + 1, Mux(~opens & spilled & ~joins, 1, beats.first))),
            done.eq(beat == beats.last),
        ]
        is_part = uops.o.valid & ~uop.zero
        leaves = Signal()  # the burst's last beat is noted
        grows = Signal()  # another beat joins
        step = Signal()
        m.d.comb += [
            leaves.eq(closed & note_ready),
            step.eq(is_part & Mux(opens, ~is_open | note_ready, joins | note_ready)),
            grows.eq(step & ~opens & ~joins),
            self.zero.valid.eq(uops.o.valid & uop.zero),
            self.zero.payload.tile.eq(uop.tile),
            self.zero.payload.row.eq(uop.row),
            self.zero.payload.rows.eq(uop.rows),
            uops.o.ready.eq(Mux(uop.zero, self.zero.ready, step & done)),
        ]

        with m.If(leaves):
            m.d.sync += [is_open.eq(0), closed.eq(0)]
        with m.If(step):
            m.d.sync += [started.eq(~done), at.eq(beat)]
            with m.If(done):
                m.d.sync += [closed.eq(~uop.more), spilled.eq(beats.last == row_beats)]
            with m.If(joins):
                m.d.sync += [
                    ends.count.eq(2),
                    parts.two.tile.eq(uop.tile),
                    parts.two.row.eq(uop.row),
                    parts.two.last.eq(uop.last),
                    parts.two.tail.eq(uop.tail),
                    parts.two.half.eq(uop.half),
                ]
            with m.Else():
                m.d.sync += [
                    ends.count.eq(done),
                    ends.began.eq(beat != beats.first),
                    parts.one.tile.eq(uop.tile),
                    parts.one.row.eq(uop.row),
                    parts.one.first.eq(uop.first),
                    parts.one.last.eq(uop.last),
                    parts.one.tail.eq(uop.tail),
                    parts.one.half.eq(uop.half),
                ]
            with m.If(opens):
                m.d.sync += [
                    is_open.eq(1),
                    burst.beat.eq(uop.addr[cfg.bus_bytes_log2 :]),
                    burst.len.eq(0),
                    rows.offset.eq(beats.offset),
                ]
                if row_beats > 1:
                    m.d.sync += rows.beat.eq(beats.first)
        with m.If(grows):
            m.d.sync += burst.len.eq(burst.len + 1)

        # -- the note of a beat, and with the last one the request ------------------------------
        note_valid = Signal()
        note_last = Signal(reset_less=True)
        note_burst = Signal(read_burst(cfg), reset_less=True)
        note_ends = Signal(beat_ends(cfg), reset_less=True)
        note_parts = Signal(beat_parts(cfg), reset_less=True)
        note_rows = Signal(burst_rows(cfg), reset_less=True)
        stalled = Signal()  # a request that the bus did not take at once
        held = Signal(read_request(cfg), reset_less=True)
        room = Signal()
        m.d.comb += [
            room.eq(~note_last | ~stalled),
            note_ready.eq(~note_valid | (self.give_valid & room)),
            self.note_en.eq(note_valid & self.give_valid & room),
            self.take.eq(note_valid & self.give_valid & note_last & ~stalled),
            self.starved.eq(note_valid & ~self.give_valid & room),
            self.note_addr.eq(Cat(note_burst.len[: self.beat_bits], self.give_id)),
            self.ends.eq(note_ends),
            self.parts.eq(note_parts),
            self.rows.eq(note_rows),
            self.idle.eq(~uops.o.valid & ~is_open & ~note_valid),
        ]
        with m.If(note_ready):
            m.d.sync += [
                note_valid.eq(leaves | grows),
                note_last.eq(closed),
                note_burst.eq(burst),
                note_ends.eq(ends),
                note_parts.eq(parts),
                note_rows.eq(rows),
            ]
        request = self.request
        m.d.comb += [
            request.valid.eq(stalled | (note_valid & note_last & self.give_valid)),
            request.payload.beat.eq(Mux(stalled, held.beat, note_burst.beat)),
            request.payload.len.eq(Mux(stalled, held.len, note_burst.len)),
            request.payload.id.eq(Mux(stalled, held.id, self.give_id)),
        ]
        with m.If(~stalled):
            m.d.sync += held.eq(request.payload)
        m.d.sync += stalled.eq(request.valid & ~request.ready)
        return m
