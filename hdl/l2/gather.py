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
    beat_note,
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
            uops.i.payload.one_beat.eq(place.first == place.last),
        ]
        beats = uops.o.payload
        uop = beats.uop

        # Two places, so that a step need not know whether a note is written in the same cycle.
        m.submodules.notes = notes = StreamBuffer(beat_note(cfg))
        note_ready = notes.i.ready

        # The open burst: what is known of it and of its last beat.
        # It is in one of these states, a register each, so that a step takes few gates.
        free = Signal(init=1)  # there is none
        closed = Signal()  # no part follows: send the request
        extends = Signal()  # its next part was promised
        spills = Signal()  # so it was, and the last row ended in its successor's first beat
        started = Signal()  # some beats of the part are in it
        burst = Signal(read_burst(cfg), reset_less=True)
        rows = Signal(burst_rows(cfg), reset_less=True)
        ends = Signal(beat_ends(cfg), reset_less=True)
        parts = Signal(beat_parts(cfg), reset_less=True)

        # -- one step of the walk ------------------------------------------------------------
        at = Signal.like(beats.first)  # the last beat, once started
        beat = Signal.like(beats.first)  # the beat that the burst reaches with this step
        opens = Signal()
        joins = Signal()  # the part lies in the beat reached before
        done = Signal()
        m.d.comb += [
            opens.eq(free | closed),
            joins.eq(spills & (beats.last == 0)),
            beat.eq(Mux(started, at + 1, Mux(spills & ~joins, 1, beats.first))),
            # Which of these ends the part is known before which of them is taken.
            done.eq(
                Mux(
                    started,
                    at + 1 == beats.last,
                    Mux(spills, beats.last <= 1, uops.o.payload.one_beat),
                )
            ),
        ]
        is_part = uops.o.valid & ~uop.zero
        leaves = Signal()  # the burst's last beat is noted
        grows = Signal()  # another beat joins, if the one before is noted
        step = Signal()
        m.d.comb += [
            leaves.eq(closed & note_ready),
            grows.eq(is_part & (extends | started | (spills & ~joins))),
            step.eq(is_part & (note_ready | free | joins)),
            self.zero.valid.eq(uops.o.valid & uop.zero),
            self.zero.payload.tile.eq(uop.tile),
            self.zero.payload.row.eq(uop.row),
            self.zero.payload.rows.eq(uop.rows),
            uops.o.ready.eq(Mux(uop.zero, self.zero.ready, step & done)),
        ]

        with m.If(leaves):
            m.d.sync += [closed.eq(0), free.eq(1)]
        with m.If(step):
            m.d.sync += [
                free.eq(0),
                closed.eq(done & ~uop.more),
                extends.eq(done & uop.more & (beats.last != row_beats)),
                spills.eq(done & uop.more & (beats.last == row_beats)),
                started.eq(~done),
                at.eq(beat),
            ]
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
                    burst.beat.eq(uop.addr[cfg.bus_bytes_log2 :]),
                    burst.len.eq(0),
                    rows.offset.eq(beats.offset),
                ]
                if row_beats > 1:
                    m.d.sync += rows.beat.eq(beats.first)
        with m.If(grows & note_ready):
            m.d.sync += burst.len.eq(burst.len + 1)

        # -- the note of a beat, and with the last one the request ------------------------------
        note_valid, note = notes.o.valid, notes.o.payload
        stalled = Signal()  # a request that the bus did not take at once
        clear = Signal(init=1)  # none; a register of its own, as `stalled` drives all of a request
        held = Signal(read_request(cfg), reset_less=True)
        room = Signal()
        m.d.comb += [
            notes.i.valid.eq(closed | grows),
            notes.i.payload.last.eq(closed),
            notes.i.payload.burst.eq(burst),
            notes.i.payload.ends.eq(ends),
            notes.i.payload.parts.eq(parts),
            notes.i.payload.rows.eq(rows),
            room.eq(~note.last | clear),
            notes.o.ready.eq(self.give_valid & room),
            self.note_en.eq(note_valid & self.give_valid & room),
            self.take.eq(note_valid & self.give_valid & note.last & clear),
            self.starved.eq(note_valid & ~self.give_valid & room),
            self.note_addr.eq(Cat(note.burst.len[: self.beat_bits], self.give_id)),
            self.ends.eq(note.ends),
            self.parts.eq(note.parts),
            self.rows.eq(note.rows),
            self.idle.eq(~uops.o.valid & free & ~note_valid),
        ]
        request = self.request
        m.d.comb += [
            request.valid.eq(stalled | (note_valid & note.last & self.give_valid)),
            request.payload.beat.eq(Mux(stalled, held.beat, note.burst.beat)),
            request.payload.len.eq(Mux(stalled, held.len, note.burst.len)),
            request.payload.id.eq(Mux(stalled, held.id, self.give_id)),
        ]
        with m.If(~stalled):
            m.d.sync += held.eq(request.payload)
        m.d.sync += [
            stalled.eq(request.valid & ~request.ready),
            clear.eq(~request.valid | request.ready),
        ]
        return m
