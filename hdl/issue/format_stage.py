"""Stage C of the decoder: operand and output formats, and what mxcfg allows."""

from __future__ import annotations

from amaranth.hdl import Module, Mux, Signal

from .. import formats, isa
from ..formats import Format, Kind
from .stages import DecodeStage, carry

__all__ = ["FormatStage"]


def honours_sat(fmt: Format, out: Format, column: str) -> bool:
    """Does SAT clamp this output? (numerics.md section 4, SAT)"""
    if out.kind is Kind.FLOAT:
        return out.bits <= 8
    return column != "bovf" and fmt.name not in ("int64", "q32_32")


class FormatStage(DecodeStage):
    """Stage C of the decoder: operand and output formats, and what mxcfg allows."""

    BEFORE, AFTER = "b", "c"

    def elaborate(self, platform):
        m = Module()
        b, c = self.before, self.after
        carry(m, b, c)
        cfg = self.cfg

        def of_cfg(name):
            f = isa.MXCFG[name]
            return b.mxcfg[f.lo : f.lo + f.width]

        pair_ok = Signal()
        sat_counts = Signal()
        sat_counts_same = Signal()  # where z of the vector mode has the operands' format
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
                                    sat_counts_same.eq(honours_sat(fmt, fmt, name)),
                                ]
        rnd = of_cfg("rnd")
        same = b.vector & ~b.f7[isa.VECTOR["wide"].lo]
        m.d.comb += [
            c.bad.eq(
                ~pair_ok
                | ~acc_ok
                | (rnd > max(isa.Rounding))
                | of_cfg("reserved").any()
                | b.reserved_tile
            ),
            c.sat.eq(of_cfg("sat") & Mux(same, sat_counts_same, sat_counts)),
            c.rnd.eq(rnd),
        ]
        return m
