"""Decoder of the front end `ame`: instruction words to checked `instr` bundles and responses."""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.fifo import SyncFIFOBuffered
from amaranth.lib.wiring import In, Out

from .. import formats, isa
from ..config import Config
from ..formats import Format, Kind
from ..interfaces import (
    ERROR_BADGEOM,
    ERROR_BUS,
    ERROR_ILLEGAL,
    ERROR_NONE,
    InstrKind,
    bits_for,
    host_request,
    host_response,
    instr,
    mac_flags,
)
from .csr import CsrFile
from .geometry import GroupMask, Spread
from .guard import SIDE, Guard

__all__ = ["Decode", "honours_sat"]

C_STRIDE = 4
"""Tiles between C groups in every mode but 4x4."""

MODES = 5
"""TILING's four, and 4x4."""

MODE_4X4 = 4

# Tiles of A and of B, log2, by mode.
_A_LOG2 = (*(t.a_tiles.bit_length() - 1 for t in isa.Tiling), 2)
_B_LOG2 = (*(t.b_tiles.bit_length() - 1 for t in isa.Tiling), 2)


def honours_sat(fmt: Format, out: Format, column: str) -> bool:
    """Does SAT clamp this output? (numerics.md section 4, SAT)"""
    if out.kind is Kind.FLOAT:
        return out.bits <= 8
    return column != "bovf" and fmt.name not in ("int64", "q32_32")


class Decode(wiring.Component):
    """Takes one instruction a cycle, checks all that can trap, answers in order, dispatches.

    The stages: A holds the word; B knows whether it is legal, and has done its CSR access; C has
    looked its formats up; D its mode; E its counts; F its tiles. F answers, and dispatches what
    has no error. Every instruction carries the mxcfg and mxtile it saw in A.

    Members
    -------
    req, resp : host streams (isa.md section 3).
    instrs : checked instructions; the dispatch.
    quiet : all older work is done, memory included.
    flags, flags_valid : MAC flags to gather in mxstatus.
    bus_error : a beat or write came back with an error.

    Latency: 6 cycles from a request's transfer to its dispatch when nothing waits, and one more to
    its response. Throughput: one instruction a cycle while slots are free.
    """

    STAGES = 6

    def __init__(self, cfg: Config):
        self.cfg = cfg
        super().__init__(
            {
                "req": In(stream.Signature(host_request(cfg))),
                "resp": Out(stream.Signature(host_response(cfg))),
                "instrs": Out(stream.Signature(instr(cfg))),
                "quiet": In(1),
                "flags": In(mac_flags()),
                "flags_valid": In(1),
                "bus_error": In(1),
                "idle": Out(1),
            }
        )

    # -- layouts of the pipeline registers, each what the stage knows -------------------------

    def _layouts(self) -> dict[str, data.StructLayout]:
        cfg = self.cfg
        word = {
            "tag": cfg.tag_bits,
            "rd": 5,
            "wb": 1,
            "data": 64,
            "error": 2,  # none yet, or illegal
            "mmacc": 1,
            "load": 1,
            "store": 1,
            "move": 1,
            "fence": 1,
            "release": 1,
            "f7": 7,
            "rd_tile": 5,
            "rs1_tile": 5,
            "rs2_tile": 5,
            "far": 1,  # base address above addr_bits
            "base": cfg.addr_bits,
            "stride": cfg.addr_bits,
            "tiling": isa.MXTILE["tiling"].width,
            "guard4x4": 1,
            "k": 8,
            "m": 8,
            "n": 8,
        }
        csrs = {"mxcfg": isa.MXCFG_BITS, "reserved_tile": 1}
        fmt = {
            "bad": 1,
            "ft": bits_for(len(cfg.format_rows)),
            "out": bits_for(len(cfg.output_formats)),
            "container_log2": 3,  # log2 of container bits / 4
            "width_log2": 2,
            "sat": 1,
            "rnd": 2,
        }
        mode = {"mode": 3, "fallback": 1}
        counts = {
            "row_bytes": cfg.row_bytes_log2,  # bytes of K elements, less one
            "tiles": 3,
            "down": 1,
            "slices_log2": 3,
            "stride_c": 3,
            "i_last": 3,
            "j_last": 3,
            "m_most": cfg.rows_log2,
            "m_last": cfg.rows_log2,
            "n_most": cfg.rows_log2,
            "n_last": cfg.rows_log2,
            "bytes_most": bits_for(cfg.group_bytes),
            "bytes_last": bits_for(cfg.group_bytes),
            "is_c": 1,
            "whole": 1,
        }
        return {
            "b": data.StructLayout(word | csrs),
            "c": data.StructLayout(word | fmt),
            "d": data.StructLayout(word | fmt | mode),
            "e": data.StructLayout(word | fmt | mode | counts),
            "f": data.StructLayout(
                {
                    "instr": instr(cfg),
                    "resp": host_response(cfg),
                    "dispatch": 1,
                    "fence": 1,
                    "release": 1,
                    "fallback": 1,
                }
            ),
        }

    def elaborate(self, platform):
        m = Module()
        cfg = self.cfg
        layouts = self._layouts()
        m.submodules.csr = csr = CsrFile(cfg)

        # -- pipeline skeleton ----
        names = ("a", "b", "c", "d", "e", "f")
        full = {name: Signal(name=f"{name}_full") for name in names}
        takes = {name: Signal(name=f"{name}_takes") for name in names}  # may load this cycle
        leaves = {name: Signal(name=f"{name}_leaves") for name in names}
        held_a = Signal()  # A waits for older work
        out_go = Signal()  # F may leave
        regs = {
            name: Signal(layout, name=name, reset_less=True) for name, layout in layouts.items()
        }
        a = Signal(host_request(cfg), name="a", reset_less=True)
        for name, following in zip(names, (*names[1:], None), strict=True):
            may = takes[following] if following else out_go
            if name == "a":
                may = may & ~held_a
            m.d.comb += [
                leaves[name].eq(full[name] & may),
                takes[name].eq(~full[name] | leaves[name]),
            ]
        for name, before in zip(names[1:], names[:-1], strict=True):
            with m.If(takes[name]):
                m.d.sync += full[name].eq(leaves[before])
        with m.If(takes["a"]):
            m.d.sync += full["a"].eq(self.req.valid)
        with m.If(takes["a"] & self.req.valid):
            m.d.sync += a.eq(self.req.payload)
        m.d.comb += self.req.ready.eq(takes["a"])

        def stage_into(name):
            """Values for stage `name`, stored when it takes."""
            values = Signal(layouts[name], name=f"{name}_next")
            with m.If(takes[name]):
                m.d.sync += regs[name].eq(values)
            return values

        def carry(values, source, layout):
            """Fields that only pass through."""
            for field, _ in layout:
                if field in layouts_fields[source]:
                    m.d.comb += values[field].eq(regs[source][field])

        layouts_fields = {name: dict(layout) for name, layout in layouts.items()}

        # Work of older instructions, seen from A: first the decoder's own, then everything.
        decode_empty = Signal()
        quiet_before = Signal()
        m.d.comb += decode_empty.eq(~(full["b"] | full["c"] | full["d"] | full["e"] | full["f"]))
        m.d.sync += quiet_before.eq(self.quiet)
        settled = Signal()  # for two cycles, so that late flags have arrived
        m.d.comb += settled.eq(self.quiet & quiet_before)

        self._stage_b(m, a, stage_into("b"), csr, leaves["a"], held_a, decode_empty, settled)
        c_next = stage_into("c")
        carry(c_next, "b", layouts["c"])
        self._stage_c(m, regs["b"], c_next)
        d_next = stage_into("d")
        carry(d_next, "c", layouts["d"])
        self._stage_d(m, regs["c"], d_next)
        e_next = stage_into("e")
        carry(e_next, "d", layouts["e"])
        self._stage_e(m, regs["d"], e_next)
        self._stage_f(m, regs["e"], stage_into("f"))

        # -- F: answer and dispatch ----
        f = regs["f"]
        m.submodules.responses = responses = SyncFIFOBuffered(
            width=host_response(cfg).size, depth=4
        )
        pending_bus = Signal()
        response = Signal(host_response(cfg))
        m.d.comb += [
            self.instrs.payload.eq(f.instr),
            self.instrs.valid.eq(full["f"] & f.dispatch & responses.w_rdy),
            out_go.eq(responses.w_rdy & (~f.dispatch | self.instrs.ready) & (~f.fence | settled)),
            response.eq(f.resp),
            responses.w_en.eq(leaves["f"]),
            responses.w_data.eq(response),
            self.resp.valid.eq(responses.r_rdy),
            self.resp.payload.eq(responses.r_data),
            responses.r_en.eq(self.resp.ready),
        ]
        with m.If(f.fence):
            m.d.comb += response.error.eq(Mux(pending_bus, ERROR_BUS, ERROR_NONE))
            with m.If(leaves["f"]):
                m.d.sync += pending_bus.eq(0)
        with m.If(self.bus_error):
            m.d.sync += pending_bus.eq(1)

        badgeom = leaves["f"] & (f.resp.error == ERROR_BADGEOM)
        fields = isa.MXSTATUS
        status = [Const(0)] * isa.MXSTATUS_BITS
        status[fields["guard_fallback"].lo] = leaves["f"] & f.dispatch & f.fallback
        status[fields["badgeom"].lo] = badgeom
        status[fields["bus_error"].lo] = self.bus_error
        for name, _ in mac_flags():
            status[fields[name].lo] = self.flags_valid & self.flags[name]
        m.d.comb += [
            csr.status.eq(Cat(status)),
            csr.dirty.eq(leaves["f"] & f.dispatch & f.instr.writes.any()),
            csr.initial.eq(leaves["f"] & f.release),
            self.idle.eq(decode_empty & ~full["a"] & ~responses.r_rdy),
        ]
        return m

    # -- stages ------------------------------

    def _stage_b(self, m, a, b, csr, leaves, held, decode_empty, settled):
        """Legal or not, by the instruction tables; the CSR access."""
        cfg = self.cfg
        inst = a.inst

        def field(f):
            return inst[f.lo : f.lo + f.width]

        built = isa.built_instructions(cfg)
        rows = [row for row in isa.AME if row.name in built]
        hit: dict[str, object] = {}
        for row in rows:
            match = (inst & row.mask) == row.match
            for operand in row.operands:
                if operand.limit is not None:
                    match = match & (field(operand.field) <= operand.limit)
                if operand.name == "cfile" and cfg.accumulators != "split":
                    match = match & ~field(operand.field).any()
            wire = Signal(name="is_" + row.name.replace(".", "_"))
            m.d.comb += wire.eq(match)
            hit[row.name] = wire

        def any_of(names):
            return Cat(wire for name, wire in hit.items() if name in names).any()

        csr_names = {funct3.name.lower() for funct3 in isa.CsrFunct3}
        is_csr = Signal()
        legal = Signal()
        m.d.comb += is_csr.eq(any_of(csr_names))

        # CSR access: csrrs and csrrc with register (or immediate) 0 do not write.
        funct3 = field(isa.FUNCT3)
        source_zero = field(isa.RS1) == 0
        swap = funct3[:2] == isa.CsrFunct3.CSRRW
        writes = Signal()
        operand = Signal(64)
        m.d.comb += [
            csr.number.eq(inst[20:32]),
            writes.eq(swap | ~source_zero),
            operand.eq(Mux(funct3[2], field(isa.RS1), a.rs1)),
            csr.write.eq(leaves & is_csr & legal & writes),
            csr.write_data.eq(
                Mux(
                    swap,
                    operand,
                    Mux(funct3[0], csr.value & ~operand, csr.value | operand),
                )
            ),
            legal.eq(
                Mux(
                    is_csr,
                    csr.known & ~(csr.read_only & writes),
                    Cat(hit.values()).any() & ~csr.off,
                )
            ),
            held.eq(
                is_csr
                & legal
                & ((csr.after_all & ~(decode_empty & settled)) | (csr.after_decode & ~decode_empty))
            ),
        ]
        mxtile = csr.mxtile

        def of_tile(name):
            f = isa.MXTILE[name]
            return mxtile[f.lo : f.lo + f.width]

        m.d.comb += [
            b.tag.eq(a.tag),
            b.rd.eq(field(isa.RD)),
            b.wb.eq(is_csr & legal & (field(isa.RD) != 0)),
            b.data.eq(Mux(is_csr & legal & (field(isa.RD) != 0), csr.value, 0)),
            b.error.eq(Mux(legal, ERROR_NONE, ERROR_ILLEGAL)),
            b.mmacc.eq(legal & hit["mmacc.t"]),
            b.load.eq(legal & any_of({f"mld{w.name.lower()}" for w in isa.LdstWhat})),
            b.store.eq(legal & any_of({f"mst{w.name.lower()}" for w in isa.LdstWhat})),
            b.move.eq(legal & any_of({"mmov", "mzero"})),
            b.fence.eq(legal & hit["mfence"]),
            b.release.eq(legal & hit["mrelease"]),
            b.f7.eq(field(isa.FUNCT7)),
            b.rd_tile.eq(field(isa.RD)),
            b.rs1_tile.eq(field(isa.RS1)),
            b.rs2_tile.eq(field(isa.RS2)),
            b.far.eq(a.rs1[cfg.addr_bits :].any()),
            b.base.eq(a.rs1),
            b.stride.eq(a.rs2),
            b.mxcfg.eq(csr.mxcfg),
            b.reserved_tile.eq(of_tile("reserved").any()),
        ]
        for name in ("tiling", "guard4x4", "k", "m"):
            m.d.comb += b[name].eq(of_tile(name))
        # N = 0 stands for M.
        m.d.comb += b.n.eq(Mux(of_tile("n") == 0, of_tile("m"), of_tile("n")))

    def _stage_c(self, m, b, c):
        """Formats: operand row, output row, what mxcfg allows."""
        cfg = self.cfg

        def of_cfg(name):
            f = isa.MXCFG[name]
            return b.mxcfg[f.lo : f.lo + f.width]

        pair_ok = Signal()
        sat_counts = Signal()
        columns = ("full", "bovf", "wide", "tf32", "bf16")
        column = Signal(range(len(columns)))
        acc = of_cfg("acc")
        m.d.comb += column.eq(Mux(acc == 0, of_cfg("bovf"), acc + 1))
        acc_ok = acc < 4

        with m.Switch(of_cfg("ft")):
            for index, fmt in enumerate(cfg.format_rows):
                codes = [
                    code
                    for code in range(1 << isa.MXCFG["ft"].width)
                    if formats.by_code(code) is fmt
                ]
                with m.Case(*codes):
                    m.d.comb += [
                        c.ft.eq(index),
                        c.container_log2.eq(fmt.container.bit_length() - 3),
                    ]
                    with m.Switch(column):
                        for number, name in enumerate(columns):
                            out = formats.output_format(fmt, name)
                            if out is None:
                                continue
                            with m.Case(number):
                                m.d.comb += [
                                    pair_ok.eq(1),
                                    c.out.eq([o.name for o in cfg.output_formats].index(out.name)),
                                    c.width_log2.eq(out.container.bit_length() - 4),
                                    sat_counts.eq(honours_sat(fmt, out, name)),
                                ]
        rnd = of_cfg("rnd")
        m.d.comb += [
            c.bad.eq(
                ~pair_ok
                | ~acc_ok
                | (rnd > max(isa.Rounding))
                | of_cfg("reserved").any()
                | b.reserved_tile
            ),
            c.sat.eq(of_cfg("sat") & sat_counts),
            c.rnd.eq(rnd),
        ]

    def _stage_d(self, m, c, d):
        """Mode of a mma, guard included."""
        m.submodules.guard = guard = Guard(self.cfg)
        m.d.comb += [
            guard.width_log2.eq(c.width_log2),
            guard.a.eq(c.rs1_tile),
            guard.b.eq(c.rs2_tile),
            guard.c.eq(c.rd_tile),
            d.mode.eq(c.tiling),
        ]
        with m.If(c.guard4x4):
            m.d.comb += [
                d.mode.eq(Mux(guard.grant, MODE_4X4, isa.Tiling.T2X2)),
                d.fallback.eq(~guard.grant),
            ]
        if not isa.GUARD4X4:
            m.d.comb += d.bad.eq(c.bad | (c.mmacc & c.guard4x4))

    def _stage_e(self, m, d, e):
        """Counts of tiles, rows, columns and bytes."""
        cfg = self.cfg
        ldst = isa.LDST

        def of_f7(f):
            return d.f7[f.lo : f.lo + f.width]

        bad = Signal()
        what = of_f7(ldst["what"])
        is_ldst = d.load | d.store
        n_log2 = of_f7(ldst["n_log2"])
        down = Signal()
        is_a = is_ldst & (what == isa.LdstWhat.A)
        is_b = is_ldst & (what == isa.LdstWhat.B)
        is_c = is_ldst & (what == isa.LdstWhat.C)
        whole = is_ldst & (what == isa.LdstWhat.R)
        m.d.comb += down.eq(of_f7(ldst["down"]))

        # K in elements and bytes.
        lanes = Signal(9)
        k_bad = Signal()
        bits = Signal(12)
        m.d.comb += [
            lanes.eq(cfg.lanes(4) >> d.container_log2),
            k_bad.eq((d.k == 0) | (d.k > lanes)),
            bits.eq(d.k << (d.container_log2 + 2)),
            e.row_bytes.eq((bits + 7 >> 3) - 1),
        ]

        # Slices of a result and distance of groups, by output width.
        slices_log2 = Signal(3)
        narrow = Signal()  # 4x4 packs the groups
        with m.Switch(d.width_log2):
            for width_log2 in range(4):
                with m.Case(width_log2):
                    slices = cfg.result_tiles(8 << width_log2)
                    m.d.comb += [
                        slices_log2.eq(slices.bit_length() - 1),
                        narrow.eq(width_log2 <= 1),
                    ]
        packed = Signal()
        m.d.comb += packed.eq(Mux(d.mmacc, d.mode == MODE_4X4, d.guard4x4 & narrow))
        stride_c = Signal(3)
        m.d.comb += stride_c.eq(Mux(packed, 1 << slices_log2, C_STRIDE))

        # Tiles of the macro in each direction.
        a_log2 = Signal(2)
        b_log2 = Signal(2)
        with m.Switch(d.mode):
            for mode in range(MODES):
                with m.Case(mode):
                    m.d.comb += [a_log2.eq(_A_LOG2[mode]), b_log2.eq(_B_LOG2[mode])]
        across_log2 = Signal(2)  # C groups of a load or store along a row
        m.d.comb += across_log2.eq(Mux(n_log2 > slices_log2, n_log2 - slices_log2, 0))
        m.submodules.rows = rows = Spread(cfg)
        m.submodules.columns = columns = Spread(cfg)
        m.d.comb += [
            rows.value.eq(Mux(is_b, d.n, d.m)),
            rows.tiles_log2.eq(Mux(d.mmacc, a_log2, Mux(down, n_log2, 0))),
            columns.value.eq(d.n),
            columns.tiles_log2.eq(Mux(d.mmacc, b_log2, Mux(down, 0, across_log2))),
        ]

        # Bytes of C's columns in a group, and whether the named tiles hold them.
        bytes_most = Signal(bits_for(cfg.group_bytes))
        bytes_last = Signal(bits_for(cfg.group_bytes))
        named_log2 = Signal(3)  # tiles of one group that are named
        c_bad = Signal()
        held = Signal(8)
        m.d.comb += [
            bytes_most.eq(((columns.rows_most + 1) << d.width_log2) - 1),
            bytes_last.eq(((columns.rows_last + 1) << d.width_log2) - 1),
            named_log2.eq(Mux(down, 0, Mux(n_log2 < slices_log2, n_log2, slices_log2))),
            held.eq(1 << named_log2),
            c_bad.eq(
                ((bytes_last >> cfg.row_bytes_log2) >= held)
                | ((bytes_most >> cfg.row_bytes_log2) >= held)
            ),
        ]

        # The outputs of 64 bits fill more than a group's four tiles, so one pair only.
        wide_bad = Signal()
        m.d.comb += wide_bad.eq(((1 << slices_log2) > C_STRIDE) & (d.mode != isa.Tiling.T1X1))
        modes = Signal()  # a mode that this release runs
        btr = of_f7(isa.IMM["btr"]) ^ isa.BTR_NATIVE
        m.d.comb += modes.eq(
            (d.guard4x4 | Cat(d.tiling == t for t in sorted(isa.TILINGS)).any())
            & Cat(btr == t for t in sorted(isa.TRANSPOSES)).any()
        )
        # Every user of mxcfg and mxtile checks what it does not use as well (isa.md, Traps).
        checked = d.bad | k_bad | (d.m == 0)
        with m.If(d.mmacc):
            m.d.comb += bad.eq(checked | rows.bad | columns.bad | wide_bad | ~modes)
        with m.Elif(is_a | is_b):
            m.d.comb += bad.eq(checked | rows.bad)
        with m.Elif(is_c):
            m.d.comb += bad.eq(checked | rows.bad | columns.bad | c_bad)

        m.d.comb += [
            e.bad.eq(bad),
            e.tiles.eq((1 << n_log2) - 1),
            e.down.eq(down),
            e.slices_log2.eq(Mux(d.mmacc | (is_c & ~down), slices_log2, 0)),
            e.stride_c.eq(Mux(d.mmacc | is_c, stride_c, 1)),
            e.i_last.eq(rows.last),
            e.j_last.eq(columns.last),
            e.m_most.eq(rows.rows_most),
            e.m_last.eq(rows.rows_last),
            e.n_most.eq(columns.rows_most),
            e.n_last.eq(columns.rows_last),
            e.bytes_most.eq(bytes_most),
            e.bytes_last.eq(bytes_last),
            e.is_c.eq(is_c),
            e.whole.eq(whole),
        ]
        with m.If(is_a | is_b):
            m.d.comb += [e.bytes_most.eq(e.row_bytes), e.bytes_last.eq(e.row_bytes)]
        with m.If(whole):
            m.d.comb += [
                e.i_last.eq(Mux(down, (1 << n_log2) - 1, 0)),
                e.m_most.eq(cfg.rows - 1),
                e.m_last.eq(cfg.rows - 1),
                e.bytes_most.eq(cfg.row_bytes - 1),
                e.bytes_last.eq(cfg.row_bytes - 1),
            ]
        with m.If(whole | is_a | is_b):
            m.d.comb += e.j_last.eq((1 << n_log2) - 1)

    def _stage_f(self, m, e, f):
        """Which tiles, in range and apart; the finished bundle and answer."""
        cfg = self.cfg
        rb_log2 = cfg.row_bytes_log2
        is_ldst = e.load | e.store
        out, mma, ldst, move = f.instr, f.instr.mma, f.instr.ldst, f.instr.move

        # Slices with bytes: of a C group of the mma, of a group of the load or store.
        slice_most = Signal(3)
        slice_last = Signal(3)
        m.d.comb += [
            slice_most.eq(e.bytes_most >> rb_log2),
            slice_last.eq(e.bytes_last >> rb_log2),
        ]

        # -- mma: masks of A, B and C ----
        m.submodules.a_mask = a_mask = GroupMask(cfg)
        m.submodules.b_mask = b_mask = GroupMask(cfg)
        m.d.comb += [
            a_mask.base.eq(e.rs1_tile),
            a_mask.group_last.eq(e.i_last),
            a_mask.stride.eq(1),
            b_mask.base.eq(e.rs2_tile),
            b_mask.group_last.eq(e.j_last),
            b_mask.stride.eq(1),
        ]
        relative = Signal(cfg.tiles)
        i_stride = Signal(5)
        row_slices = []
        for j in range(SIDE):
            last = Signal(3, name=f"slices{j}")
            m.d.comb += last.eq(Mux(e.j_last == j, slice_last, slice_most))
            mask = Signal(8, name=f"slice_mask{j}")
            m.d.comb += mask.eq(Mux(j <= e.j_last, (2 << last) - 1, 0))
            row_slices.append(mask)
        with m.Switch(Cat(e.mode, e.stride_c)):
            for mode in range(MODES):
                for stride in (1, 2) if mode == MODE_4X4 else (C_STRIDE,):
                    a_tiles, b_tiles = 1 << _A_LOG2[mode], 1 << _B_LOG2[mode]
                    with m.Case(mode | stride << 3):
                        groups = 0
                        for i in range(a_tiles):
                            for j in range(b_tiles):
                                offset = (i * b_tiles + j) * stride
                                if offset < cfg.tiles:
                                    groups = groups | Mux(i <= e.i_last, row_slices[j] << offset, 0)
                        m.d.comb += [relative.eq(groups), i_stride.eq(b_tiles * stride)]
        c_mask = Signal(cfg.tiles)
        c_end = Signal(cfg.tiles_log2 + 3)
        m.d.comb += [
            c_mask.eq(relative << e.rd_tile),
            c_end.eq(e.rd_tile + e.i_last * i_stride + e.j_last * e.stride_c + slice_last),
        ]
        operands = a_mask.mask | b_mask.mask
        mma_bad = a_mask.bad | b_mask.bad | (c_end >= cfg.tiles) | (c_mask & operands).any()

        # -- load and store: named tiles of a load, active tiles of a store ----------------------
        m.submodules.t_mask = t_mask = GroupMask(cfg)
        named_groups = Signal(3)
        named_slices = Signal(3)
        active_last = Signal(3)
        m.d.comb += [
            named_groups.eq(Mux(e.down, e.tiles, e.tiles >> e.slices_log2)),
            named_slices.eq(
                Mux(
                    e.tiles < (1 << e.slices_log2) - 1,
                    e.tiles,
                    (1 << e.slices_log2) - 1,
                )
            ),
            active_last.eq(Mux(e.down, e.i_last, e.j_last)),
            t_mask.base.eq(e.rd_tile),
            t_mask.stride.eq(e.stride_c),
            t_mask.group_last.eq(Mux(e.load, named_groups, active_last)),
            t_mask.slice_most.eq(Mux(e.load, named_slices, slice_most)),
            t_mask.slice_last.eq(Mux(e.load, named_slices, Mux(e.down, slice_most, slice_last))),
        ]
        walked = Signal(4)  # tiles from the first to the last active one of a row
        m.d.comb += walked.eq(Mux(e.down, 1, (e.j_last << e.slices_log2) + slice_last + 1))
        full_rows = (e.m_last == cfg.rows - 1) & (
            ~e.down | ((e.i_last == e.tiles) & ((e.i_last == 0) | (e.m_most == cfg.rows - 1)))
        )
        full_slices = e.down | (
            (e.j_last == named_groups)
            & (slice_last == named_slices)
            & ((e.j_last == 0) | (slice_most == named_slices))
        )

        # -- move ----
        size = e.f7[isa.MOVE["size"].lo : isa.MOVE["size"].lo + isa.MOVE["size"].width]
        op = e.f7[isa.MOVE["op"].lo : isa.MOVE["op"].lo + isa.MOVE["op"].width]
        zero = op == isa.MoveOp.MZERO
        count = Signal(isa.MAX_LOG2_TILES + 1)
        few = Signal(cfg.tiles)
        dst_mask = Signal(cfg.tiles)
        src_mask = Signal(cfg.tiles)
        m.d.comb += [
            count.eq(1 << size),
            few.eq((1 << count) - 1),
            dst_mask.eq(few << e.rd_tile),
            src_mask.eq(Mux(zero, 0, few << e.rs1_tile)),
        ]
        move_bad = (
            (e.rd_tile + count > cfg.tiles)
            | (~zero & (e.rs1_tile + count > cfg.tiles))
            | (~zero & (e.rd_tile != e.rs1_tile) & (dst_mask & src_mask).any())
        )

        # -- the answer ----
        bad = Signal()
        m.d.comb += bad.eq(
            (e.mmacc & (e.bad | mma_bad)) | (is_ldst & (e.bad | t_mask.bad)) | (e.move & move_bad)
        )
        error = Signal(2)
        with m.If(e.error != ERROR_NONE):
            m.d.comb += error.eq(e.error)
        with m.Elif(bad):
            m.d.comb += error.eq(ERROR_BADGEOM)
        with m.Elif(is_ldst & e.far):
            m.d.comb += error.eq(ERROR_BUS)
        m.d.comb += [
            f.resp.tag.eq(e.tag),
            f.resp.wb.eq(e.wb),
            f.resp.rd.eq(Mux(e.wb, e.rd, 0)),
            f.resp.data.eq(e.data),
            f.resp.error.eq(error),
            f.dispatch.eq((e.mmacc | is_ldst | e.move) & (error == ERROR_NONE)),
            f.fence.eq(e.fence),
            f.release.eq(e.release),
            f.fallback.eq(e.mmacc & e.fallback),
        ]

        # -- the bundle ----
        imm = isa.IMM
        m.d.comb += [
            out.kind.eq(
                Mux(
                    e.mmacc,
                    InstrKind.MMA,
                    Mux(e.load, InstrKind.LOAD, Mux(e.store, InstrKind.STORE, InstrKind.MOVE)),
                )
            ),
            out.reads.eq(
                Mux(e.mmacc, operands, Mux(e.store, t_mask.mask, Mux(e.move, src_mask, 0)))
            ),
            out.writes.eq(Mux(e.mmacc, c_mask, Mux(e.load, t_mask.mask, Mux(e.move, dst_mask, 0)))),
            mma.a.eq(e.rs1_tile),
            mma.b.eq(e.rs2_tile),
            mma.c.eq(e.rd_tile),
            mma.i_last.eq(e.i_last),
            mma.j_last.eq(e.j_last),
            mma.i_stride.eq(i_stride),
            mma.j_stride.eq(e.stride_c),
            mma.m_most.eq(e.m_most),
            mma.m_last.eq(e.m_last),
            mma.n_most.eq(e.n_most),
            mma.n_last.eq(e.n_last),
            mma.shared.eq((a_mask.mask & b_mask.mask).any()),
            mma.width_log2.eq(e.width_log2),
            mma.op.ft.eq(e.ft),
            mma.op.out.eq(e.out),
            mma.op.k.eq(e.k),
            mma.op.negate.eq(e.f7[imm["alpha"].lo]),
            mma.op.overwrite.eq(e.f7[imm["beta"].lo]),
            mma.op.sat.eq(e.sat),
            mma.op.rnd.eq(e.rnd),
            ldst.tile.eq(e.rd_tile),
            ldst.tiles.eq(Mux(e.load, e.tiles, Mux(e.down, e.i_last, 0))),
            ldst.down.eq(e.down),
            ldst.slices_log2.eq(e.slices_log2),
            ldst.group_stride.eq(e.stride_c),
            ldst.group_last.eq(e.j_last),
            ldst.tile_last.eq(e.i_last),
            ldst.rows_most.eq(e.m_most),
            ldst.rows_last.eq(e.m_last),
            ldst.bytes_most.eq(e.bytes_most),
            ldst.bytes_last.eq(e.bytes_last),
            ldst.base.eq(e.base),
            ldst.stride.eq(e.stride),
            ldst.contiguous.eq(e.stride == walked << rb_log2),
            ldst.fill.eq(e.load & ~(full_rows & full_slices)),
            move.dst.eq(e.rd_tile),
            move.src.eq(e.rs1_tile),
            move.tiles.eq(count - 1),
            move.zero.eq(zero),
        ]
