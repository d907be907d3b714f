"""A small stand-in for a core, with its ports, that keeps all of them busy.

Requests, by inst[1:0]: 0 answers rs1 + rs2; 1 reads inst[15:8] bursts from rs1 on, one a line, and
answers the sum of all 64-bit words (a bus error is the answer's error); 2 writes inst[15:8] bursts
to rs1 on with data made from rs2, and answers at once; 3 does 1 and 2 together, reading from rs1
and writing to rs2. inst[11:7] returns in rd, inst[2] sets wb. inst[31:24] of request 0 breaks the
core in the way that FAULTS has there, from then on.
"""

from collections import namedtuple

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import Out

from hdl.interfaces import host_members, l2_read_members, l2_write_members

FAULTS = (
    "none",
    "hang",
    "no_ready",
    "busy_stuck",
    "busy_low",
    "busy_rises",
    "late_read",
    "wrong_tag",
    "extra_response",
    "response_drops",
    "response_changes",
    "read_id",
    "read_line",
    "read_unaligned",
    "read_drops",
    "read_changes",
    "no_read_ready",
    "wlast_early",
    "wlast_missing",
    "data_first",
    "fullline_short",
    "fullline_strobe",
    "write_drops",
    "data_changes",
)

Request = namedtuple("Request", "inst rs1 rs2")


def add(rs1, rs2, fault="none"):
    return Request(FAULTS.index(fault) << 24 | 4, rs1, rs2)


def read(addr, lines):
    return Request(1 | 4 | lines << 8, addr, 0)


def write(addr, lines, value):
    return Request(2 | lines << 8, addr, value)


def both(source, target, lines):
    return Request(3 | 4 | lines << 8, source, target)


class DummyCore(wiring.Component):
    def __init__(self, cfg):
        self.cfg = cfg
        members = host_members(cfg) | l2_read_members(cfg) | l2_write_members(cfg)
        super().__init__(members | {"busy": Out(1), "phase": Out(3), "time": Out(40)})

    def elaborate(self, platform):
        m = Module()
        cfg = self.cfg
        line, lanes = cfg.line_bytes_log2, cfg.bus_bits // 64
        working, reading, answer = Signal(), Signal(), Signal()
        words = Signal(64)
        failed = Signal()
        m.d.sync += self.time.eq(self.time + 1)
        m.d.comb += self.phase.eq(Cat(working, reading, answer))

        # reads
        r_left, r_open = Signal(8), Signal(9)
        r_used = Signal(cfg.l2_ids)
        r_send = self.dsa_pad_req_rvalid & self.pad_dsa_req_rready
        r_take = self.pad_dsa_resp_rvalid & self.dsa_pad_resp_rready
        r_last = r_take & self.pad_dsa_resp_rlast
        r_addr, r_id = Signal(cfg.addr_bits), Signal(cfg.id_bits)
        r_toggle = Signal(4, init=5)
        m.d.sync += r_toggle.eq(Cat(r_toggle[3] ^ r_toggle[2], r_toggle))
        m.d.comb += [
            self.dsa_pad_req_rvalid.eq((r_left != 0) & ~r_used.bit_select(r_id, 1)),
            self.dsa_pad_req_raddr.eq(r_addr),
            self.dsa_pad_req_rlen.eq(r_addr[line : line + cfg.len_bits]),
            self.dsa_pad_req_rid.eq(r_id),
            self.dsa_pad_resp_rready.eq(r_toggle != 0b0110),
        ]
        with m.If(r_send):
            m.d.sync += [
                r_left.eq(r_left - 1),
                r_addr.eq(r_addr + cfg.line_bytes),
                r_id.eq(r_id + 1),
                r_used.bit_select(r_id, 1).eq(1),
            ]
        with m.If(r_last):
            m.d.sync += r_used.bit_select(self.pad_dsa_resp_rid, 1).eq(0)
        m.d.sync += r_open.eq(r_open + r_send - r_last)
        with m.If(r_take):
            parts = [self.pad_dsa_resp_rdata.word_select(i, 64) for i in range(lanes)]
            total = words
            for part in parts:
                total = (total + part)[:64]
            m.d.sync += [words.eq(total), failed.eq(failed | self.pad_dsa_resp_rerr)]

        # writes
        w_left, w_open = Signal(8), Signal(9)
        w_used = Signal(cfg.l2_ids)
        w_addr, w_id = Signal(cfg.addr_bits), Signal(cfg.id_bits)
        w_owed, w_line, w_beat = Signal(8), Signal(cfg.len_bits), Signal(cfg.len_bits)
        w_value = Signal(64)
        full = cfg.beats_per_line - 1
        w_send = self.dsa_pad_req_wvalid & self.pad_dsa_req_wready
        w_done = self.pad_dsa_resp_wvalid & self.dsa_pad_resp_wready
        d_send = self.dsa_pad_req_wdvalid & self.pad_dsa_req_wdready
        length = w_addr[line : line + cfg.len_bits]
        m.d.comb += [
            self.dsa_pad_req_wvalid.eq((w_left != 0) & ~w_used.bit_select(w_id, 1)),
            self.dsa_pad_req_waddr.eq(w_addr),
            self.dsa_pad_req_wlen.eq(length),
            self.dsa_pad_req_wid.eq(w_id),
            self.dsa_pad_req_fullline.eq(length == full),
            self.dsa_pad_resp_wready.eq(r_toggle != 0b1001),
            self.dsa_pad_req_wdvalid.eq(w_owed != 0),
            self.dsa_pad_req_wdata.eq(Cat(*(w_value + i for i in range(lanes)))),
            self.dsa_pad_req_wstrb.eq(Mux(w_line == full, ~0, 0x5A5A_5A5A_5A5A_5A5A ^ w_value)),
            self.dsa_pad_req_wlast.eq(w_beat == w_line),
        ]
        with m.If(w_send):
            m.d.sync += [
                w_left.eq(w_left - 1),
                w_addr.eq(w_addr + cfg.line_bytes),
                w_id.eq(w_id + 1),
                w_used.bit_select(w_id, 1).eq(1),
            ]
        with m.If(w_done):
            m.d.sync += w_used.bit_select(self.pad_dsa_resp_wid, 1).eq(0)
        with m.If(d_send):
            m.d.sync += [w_beat.eq(w_beat + 1), w_value.eq(w_value * 5 + 1)]
            with m.If(self.dsa_pad_req_wlast):
                m.d.sync += [w_beat.eq(0), w_line.eq(w_line + 1)]
        m.d.sync += [
            w_open.eq(w_open + w_send - w_done),
            w_owed.eq(w_owed + w_send - (d_send & self.dsa_pad_req_wlast)),
        ]

        # host
        idle = ~working & ~answer & (w_open == 0) & (w_left == 0)
        m.d.comb += [
            self.host_req_ready.eq(idle),
            self.host_resp_valid.eq(answer),
            self.busy.eq(~idle),
        ]
        op = self.host_req_inst[:2]
        fault = Signal(8)
        with m.If(self.host_req_valid & self.host_req_ready):
            m.d.sync += [
                working.eq(1),
                reading.eq(op[0]),
                failed.eq(0),
                words.eq(Mux(op == 0, self.host_req_rs1 + self.host_req_rs2, 0)),
                self.host_resp_tag.eq(self.host_req_tag),
                self.host_resp_wb.eq(self.host_req_inst[2]),
                self.host_resp_rd.eq(self.host_req_inst[7:12]),
            ]
            with m.If(op == 0):
                m.d.sync += fault.eq(self.host_req_inst[24:])
            with m.If(op[0]):
                m.d.sync += [r_left.eq(self.host_req_inst[8:16]), r_addr.eq(self.host_req_rs1)]
            with m.If(op[1]):
                target = Mux(op[0], self.host_req_rs2, self.host_req_rs1)
                m.d.sync += [
                    w_left.eq(self.host_req_inst[8:16]),
                    w_addr.eq(target),
                    w_line.eq(target[line : line + cfg.len_bits]),
                    w_value.eq(self.host_req_rs2),
                ]
        with m.If(working & ((r_left == 0) & (r_open == 0))):
            m.d.sync += [
                working.eq(0),
                answer.eq(1),
                self.host_resp_data.eq(words),
                self.host_resp_error.eq(Mux(failed, 3, 0)),
            ]
        with m.If(self.host_resp_valid & self.host_resp_ready):
            m.d.sync += answer.eq(0)

        self._break(m, fault, working, answer, r_used, w_owed, w_beat)
        return m

    def _break(self, m, fault, working, answer, r_used, w_owed, w_beat):
        flip = self.time[0]
        quiet = Signal(6)
        with m.If(working | answer):
            m.d.sync += quiet.eq(1)
        with m.Elif(quiet != 0):
            m.d.sync += quiet.eq(quiet + 1)
        full = self.cfg.beats_per_line - 1
        comb, sync = m.d.comb, m.d.sync
        with m.Switch(fault):
            with m.Case(FAULTS.index("hang")):
                comb += self.host_resp_valid.eq(0)
            with m.Case(FAULTS.index("no_ready")):
                comb += self.host_req_ready.eq(0)
            with m.Case(FAULTS.index("busy_stuck")):
                comb += self.busy.eq(1)
            with m.Case(FAULTS.index("busy_low")):
                comb += self.busy.eq(0)
            with m.Case(FAULTS.index("busy_rises")):
                comb += self.busy.eq((quiet == 12) | working | answer)
            with m.Case(FAULTS.index("late_read")), m.If(quiet == 10):
                comb += self.dsa_pad_req_rvalid.eq(1)
            with m.Case(FAULTS.index("wrong_tag")), m.If(working):
                sync += self.host_resp_tag.eq(0x55)
            with m.Case(FAULTS.index("extra_response")):
                comb += self.host_resp_valid.eq((quiet == 5) | answer)
            with m.Case(FAULTS.index("response_drops")):
                comb += self.host_resp_valid.eq(answer & flip)
            with m.Case(FAULTS.index("response_changes")), m.If(answer):
                sync += self.host_resp_data.eq(self.time)
            with m.Case(FAULTS.index("read_id")):
                sync += r_used.eq(0)
            with m.Case(FAULTS.index("read_line")):
                comb += self.dsa_pad_req_rlen.eq(~0)
                comb += self.dsa_pad_req_raddr[self.cfg.bus_bytes_log2].eq(1)
            with m.Case(FAULTS.index("read_unaligned")):
                comb += self.dsa_pad_req_raddr[self.cfg.bus_bytes_log2 - 1].eq(1)
            with m.Case(FAULTS.index("read_drops")), m.If(flip):
                comb += self.dsa_pad_req_rvalid.eq(0)
            with m.Case(FAULTS.index("read_changes")):
                comb += self.dsa_pad_req_rlen.eq(flip)
            with m.Case(FAULTS.index("no_read_ready")):
                comb += self.dsa_pad_resp_rready.eq(0)
            with m.Case(FAULTS.index("wlast_early")):
                comb += self.dsa_pad_req_wlast.eq(1)
            with m.Case(FAULTS.index("wlast_missing")):
                comb += self.dsa_pad_req_wlast.eq(0)
            with m.Case(FAULTS.index("data_first")):
                comb += self.dsa_pad_req_wdvalid.eq((w_owed != 0) | self.dsa_pad_req_wvalid)
            with m.Case(FAULTS.index("fullline_short")):
                comb += self.dsa_pad_req_fullline.eq(1)
            with m.Case(FAULTS.index("fullline_strobe")), m.If(w_beat == full):
                comb += self.dsa_pad_req_wstrb[3].eq(0)
            with m.Case(FAULTS.index("write_drops")), m.If(flip):
                comb += self.dsa_pad_req_wvalid.eq(0)
            with m.Case(FAULTS.index("data_changes")):
                comb += self.dsa_pad_req_wdata[0].eq(flip)
