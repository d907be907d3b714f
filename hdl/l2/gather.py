"""The load pipe's first half: parts of rows become requests, and notes for their beats."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ..config import Config
from ..interfaces import ldst_uop
from .buffer import StreamBuffer
from .entry import beat_ends, beat_parts, burst_rows, read_request, zeroing
from .shift import beats_of

__all__ = ["Gather"]


class Gather(wiring.Component):
    """Joins the beats of consecutive parts into bursts, one beat a cycle.

    The open burst waits for its next part as long as that was promised (`more`). A beat that two
    rows share is requested once. The id is taken as late as possible: when the request leaves, or
    when the burst's first beat is noted because a second one follows.

    Members
    -------
    uops : parts of rows, and blocks to zero.
    zero : the blocks to zero, handed on.
    request : read requests.
    give_valid, give_id, take : see `IdPool`.
    note_en, note_addr, ends, parts : what ends in beat note_addr[: beats_log2] of the burst with
        the id above it; written no earlier than the request is offered and before its beat can
        come, so never while the id's last use is looked up.
    rows_en, rows_addr, rows : likewise once a burst, by id.
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
                "rows_en": Out(1),
                "rows_addr": Out(cfg.id_bits),
                "rows": Out(burst_rows(cfg)),
                "idle": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        cfg = self.cfg
        row_beats = cfg.row_bytes // cfg.bus_bytes

        m.submodules.uops = uops = StreamBuffer(ldst_uop(cfg))
        uop = uops.o.payload
        beats = beats_of(m, cfg, uop)
        wiring.connect(m, wiring.flipped(self.uops), uops.i)

        # The open burst: what is known of it and of its last beat.
        is_open = Signal()
        closed = Signal()  # no part follows: send the request
        has_id = Signal()
        burst = Signal(read_request(cfg), reset_less=True)
        rows = Signal(burst_rows(cfg), reset_less=True)
        spilled = Signal(reset_less=True)  # the last row ended in its successor's first beat
        ends = Signal(beat_ends(cfg), reset_less=True)
        parts = Signal(beat_parts(cfg), reset_less=True)

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
        id_ready = has_id | self.give_valid
        leaves = Signal()  # the request moves out
        grows = Signal()  # another beat joins
        step = Signal()
        m.d.comb += [
            leaves.eq(closed & id_ready & (~self.request.valid | self.request.ready)),
            step.eq(is_part & Mux(opens, ~is_open | leaves, joins | id_ready)),
            grows.eq(step & ~opens & ~joins),
            self.take.eq((leaves | grows) & ~has_id),
            self.starved.eq(
                ~id_ready
                & (
                    (closed & (~self.request.valid | self.request.ready))
                    | (is_part & ~opens & ~joins)
                )
            ),
            self.zero.valid.eq(uops.o.valid & uop.zero),
            self.zero.payload.tile.eq(uop.tile),
            self.zero.payload.row.eq(uop.row),
            self.zero.payload.rows.eq(uop.rows),
            uops.o.ready.eq(Mux(uop.zero, self.zero.ready, step & done)),
            self.idle.eq(~uops.o.valid & ~is_open),
        ]

        with m.If(leaves):
            m.d.sync += [is_open.eq(0), closed.eq(0), has_id.eq(0)]
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
        burst_id = Mux(has_id, burst.id, self.give_id)
        with m.If(grows):
            m.d.sync += [burst.len.eq(burst.len + 1), burst.id.eq(burst_id), has_id.eq(1)]

        # -- the request ---------------------------------------------------------------------
        request = Signal(read_request(cfg), reset_less=True)
        request_valid = Signal()
        m.d.comb += [self.request.valid.eq(request_valid), self.request.payload.eq(request)]
        with m.If(self.request.ready):
            m.d.sync += request_valid.eq(0)
        with m.If(leaves):
            m.d.sync += [
                request_valid.eq(1),
                request.beat.eq(burst.beat),
                request.len.eq(burst.len),
                request.id.eq(burst_id),
            ]

        # -- notes, a cycle later so that they never meet the look-up of the id's last beat ---
        note_en = Signal()
        note_addr = Signal(cfg.id_bits + self.beat_bits, reset_less=True)
        note_ends = Signal(beat_ends(cfg), reset_less=True)
        note_parts = Signal(beat_parts(cfg), reset_less=True)
        rows_en = Signal()
        note_rows = Signal(burst_rows(cfg), reset_less=True)
        m.d.sync += [
            note_en.eq(leaves | grows),
            note_addr.eq(Cat(burst.len[: self.beat_bits], burst_id)),
            note_ends.eq(ends),
            note_parts.eq(parts),
            rows_en.eq(self.take),
            note_rows.eq(rows),
        ]
        m.d.comb += [
            self.note_en.eq(note_en),
            self.note_addr.eq(note_addr),
            self.ends.eq(note_ends),
            self.parts.eq(note_parts),
            self.rows_en.eq(rows_en),
            self.rows_addr.eq(note_addr[self.beat_bits :]),
            self.rows.eq(note_rows),
        ]
        return m
