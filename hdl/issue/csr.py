"""The CSRs of both front ends."""

from __future__ import annotations

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
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

__all__ = ["CsrFile", "mxinfo"]


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


class CsrFile(wiring.Component):
    """Holds mxcfg, mxtile, mxstatus and xmcsr; one access a cycle.

    Members
    -------
    number : CSR named by an instruction.
    value : what it reads.
    known, read_only : it exists; it must not be written.
    after_all, after_decode : the access waits for all older work; for older decoding.
    write, write_data : write it at the end of this cycle.
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
                "number": In(12),
                "value": Out(64),
                "known": Out(1),
                "read_only": Out(1),
                "after_all": Out(1),
                "after_decode": Out(1),
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

        storage = {Csr.MXCFG: mxcfg, Csr.MXTILE: mxtile, Csr.MXSTATUS: mxstatus}
        with m.Switch(self.number):
            for csr in built_csrs(cfg):
                with m.Case(cfg.csr_base + csr):
                    m.d.comb += [
                        self.known.eq(1),
                        self.read_only.eq(csr in READ_ONLY),
                        self.after_all.eq(csr == Csr.MXSTATUS),
                        self.value.eq(mxinfo(cfg) if csr == Csr.MXINFO else storage[csr]),
                    ]
                    if csr in storage:
                        with m.If(self.write):
                            m.d.sync += storage[csr].eq(self.write_data)
            with m.Case(XMCSR):
                m.d.comb += [
                    self.known.eq(1),
                    self.after_decode.eq(1),
                    self.value.eq(state),
                ]
                with m.If(self.write):
                    m.d.sync += state.eq(self.write_data)
            if cfg.xuantie:
                self._xuantie(m)
        return m

    def _xuantie(self, m: Module) -> None:
        """Cases of the CSRs of the front end `xuantie`, inside the switch over the number."""
        cfg = self.cfg
        constants = {
            XCsr.XMREGSIZE: cfg.x_rows * cfg.row_bytes,
            XCsr.XMLENB: cfg.row_bytes,
            XCsr.XMISA: xmisa_value(cfg),
        }
        for csr in built_xuantie_csrs(cfg):
            facts = XUANTIE_CSRS[csr]
            with m.Case(csr):
                m.d.comb += [
                    self.known.eq(1),
                    self.read_only.eq(facts.access is XuanTieAccess.READ_ONLY),
                    self.after_all.eq(facts.waits),
                ]
                if facts.reset is None:
                    m.d.comb += self.value.eq(constants[csr])
                    continue
                value = self._stored[csr]
                m.d.comb += self.value.eq(value)
                if facts.access is not XuanTieAccess.READ_ONLY:
                    written = 0 if facts.access is XuanTieAccess.CLEARED else self.write_data
                    with m.If(self.write):
                        m.d.sync += value.eq(written)
