"""The CSRs of both front ends."""

from __future__ import annotations

from functools import reduce
from operator import or_

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ..config import VERSION_CODE, Config
from ..formats import FORMATS
from ..isa import (
    CSR_RESET,
    MXCFG_BITS,
    MXINFO,
    MXSTATUS_BITS,
    MXTILE_BITS,
    READ_ONLY,
    XMCSR,
    XMCSR_RESET,
    XUANTIE_CSRS,
    Csr,
    MsState,
    XCsr,
    XuanTieAccess,
    built_csrs,
    built_xuantie_csrs,
    xmisa_value,
)

__all__ = ["CsrFile", "CsrSelect", "csr_access", "csr_order", "mxinfo"]


def csr_order(cfg: Config) -> tuple[int, ...]:
    """Numbers of all CSRs that a core has, in the order of `CsrSelect.select`."""
    base = tuple(cfg.csr_base + csr for csr in built_csrs(cfg))
    return (*base, XMCSR, *(built_xuantie_csrs(cfg) if cfg.xuantie else ()))


def csr_access(cfg: Config) -> data.StructLayout:
    """What a word asks of the CSRs.

    `on`: it is a CSR instruction. `allowed`: and a legal one; only then are the others set:
    `select`, which CSR (one bit each); `write`, its value is replaced; `after_all`,
    `after_decode`, as in `CsrSelect`. `swap`, `clear`: of the operand's bits the CSR gets all, or
    loses those that are set; else it gains them.
    """
    return data.StructLayout(
        {
            "on": 1,
            "allowed": 1,
            "select": len(csr_order(cfg)),
            "write": 1,
            "swap": 1,
            "clear": 1,
            "after_all": 1,
            "after_decode": 1,
        }
    )


def mxinfo(cfg: Config) -> int:
    """The constant that mxinfo reads (isa.md section 2)."""
    formats = sum(1 << bit for bit, name in enumerate(FORMATS) if name in cfg.formats)
    return (
        MXINFO["formats"].put(formats)
        | MXINFO["tiles_log2"].put(cfg.tiles_log2)
        | MXINFO["rows_log2"].put(cfg.rows_log2)
        | MXINFO["banks_log2"].put(cfg.banks_log2)
        | sum(MXINFO[unit].put(unit in cfg.units) for unit in ("vector", "mx", "pool", "symstat"))
        | MXINFO["split"].put(cfg.accumulators == "split")
        | MXINFO["version"].put(VERSION_CODE)
    )


class CsrSelect(wiring.Component):
    """Which CSR a number names, and how it may be accessed; combinational.

    Members
    -------
    number : CSR named by an instruction.
    select : one bit for each of `csr_order`.
    known, read_only : it exists; it must not be written.
    after_all, after_decode : the access waits for all older work; for older decoding.
    """

    def __init__(self, cfg: Config):
        self.cfg = cfg
        super().__init__(
            {
                "number": In(12),
                "select": Out(len(csr_order(cfg))),
                "known": Out(1),
                "read_only": Out(1),
                "after_all": Out(1),
                "after_decode": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        cfg = self.cfg
        m.d.comb += [
            self.select.eq(Cat(self.number == number for number in csr_order(cfg))),
            self.known.eq(self.select.any()),
        ]
        with m.Switch(self.number):
            for csr in built_csrs(cfg):
                with m.Case(cfg.csr_base + csr):
                    m.d.comb += [
                        self.read_only.eq(csr in READ_ONLY),
                        self.after_all.eq(csr == Csr.MXSTATUS),
                    ]
            with m.Case(XMCSR):
                m.d.comb += self.after_decode.eq(1)
            for csr in built_xuantie_csrs(cfg) if cfg.xuantie else ():
                facts = XUANTIE_CSRS[csr]
                with m.Case(csr):
                    m.d.comb += [
                        self.read_only.eq(facts.access is XuanTieAccess.READ_ONLY),
                        self.after_all.eq(facts.waits),
                    ]
        return m


class CsrFile(wiring.Component):
    """Holds mxcfg, mxtile, mxstatus and xmcsr; one access a cycle.

    Members
    -------
    select : CSR named by an instruction, one bit for each of `csr_order`.
    value : what it reads.
    write, write_data : write it at the end of this cycle, unless it is read-only.
    mxcfg, mxtile : current values.
    off : xmcsr's MS is off, so only CSR accesses are legal.
    status : bits of mxstatus to set.
    dirty, initial : a tile is going to be written; mrelease.
    resize, new_size (front end xuantie): write xmsize. saturated : set xmxsat. xmsize, xmxrm :
        current values.
    """

    def __init__(self, cfg: Config):
        self.cfg = cfg
        super().__init__(
            {
                "select": In(len(csr_order(cfg))),
                "value": Out(64),
                "write": In(1),
                "write_data": In(64),
                "mxcfg": Out(MXCFG_BITS),
                "mxtile": Out(MXTILE_BITS),
                "off": Out(1),
                "status": In(MXSTATUS_BITS),
                "dirty": In(1),
                "initial": In(1),
                **self._registers(cfg),
            }
        )

    @staticmethod
    def _registers(cfg: Config) -> dict[str, wiring.Member]:
        if not cfg.xuantie:
            return {}
        size, rounding = (XUANTIE_CSRS[csr].bits for csr in (XCsr.XMSIZE, XCsr.XMXRM))
        return {
            "resize": In(1),
            "new_size": In(size),
            "saturated": In(1),
            "xmsize": Out(size),
            "xmxrm": Out(rounding),
        }

    def elaborate(self, platform):
        m = Module()
        cfg = self.cfg
        mxcfg = Signal(MXCFG_BITS, init=CSR_RESET[Csr.MXCFG])
        mxtile = Signal(MXTILE_BITS, init=CSR_RESET[Csr.MXTILE])
        mxstatus = Signal(MXSTATUS_BITS, init=CSR_RESET[Csr.MXSTATUS])
        state = Signal(2, init=XMCSR_RESET)
        m.d.comb += [
            self.mxcfg.eq(mxcfg),
            self.mxtile.eq(mxtile),
            self.off.eq(state == MsState.OFF),
        ]

        with m.If(self.dirty):
            m.d.sync += state.eq(MsState.DIRTY)
        with m.If(self.initial):
            m.d.sync += state.eq(MsState.INITIAL)
        m.d.sync += mxstatus.eq(mxstatus | self.status)

        if cfg.xuantie:
            self._stored = {
                csr: Signal(facts.bits, name=csr.name.lower(), init=facts.reset)
                for csr, facts in XUANTIE_CSRS.items()
                if facts.reset is not None
            }
            size, saturated = self._stored[XCsr.XMSIZE], self._stored[XCsr.XMXSAT]
            m.d.comb += [
                self.xmsize.eq(size),
                self.xmxrm.eq(self._stored[XCsr.XMXRM]),
            ]
            with m.If(self.resize):
                m.d.sync += size.eq(self.new_size)
            with m.If(self.saturated):
                m.d.sync += saturated.eq(1)

        selected = dict(zip(csr_order(cfg), self.select, strict=True))
        values = []

        def register(number: int, value, written=None) -> None:
            """`value` is read where `number` is selected; `written` is what a write stores."""
            values.append(Mux(selected[number], value, 0))
            if written is not None:
                with m.If(self.write & selected[number]):
                    m.d.sync += value.eq(written)

        storage = {Csr.MXCFG: mxcfg, Csr.MXTILE: mxtile, Csr.MXSTATUS: mxstatus}
        for csr in built_csrs(cfg):
            if csr == Csr.MXINFO:
                register(cfg.csr_base + csr, mxinfo(cfg))
            else:
                register(cfg.csr_base + csr, storage[csr], self.write_data)
        register(XMCSR, state, self.write_data)
        constants = {
            XCsr.XMREGSIZE: cfg.x_rows * cfg.row_bytes,
            XCsr.XMLENB: cfg.row_bytes,
            XCsr.XMISA: xmisa_value(cfg) if cfg.xuantie else 0,
        }
        for csr in built_xuantie_csrs(cfg) if cfg.xuantie else ():
            access = XUANTIE_CSRS[csr].access
            if XUANTIE_CSRS[csr].reset is None:
                register(csr, constants[csr])
            elif access is XuanTieAccess.READ_ONLY:
                register(csr, self._stored[csr])
            else:
                written = 0 if access is XuanTieAccess.CLEARED else self.write_data
                register(csr, self._stored[csr], written)
        m.d.comb += self.value.eq(reduce(or_, values))
        return m
