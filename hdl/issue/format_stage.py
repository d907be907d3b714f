"""Stage D of the decoder: operand and output formats, and what mxcfg allows."""

from __future__ import annotations

from amaranth.hdl import Module, Mux, Signal

from .. import formats, isa
from ..formats import Format, Kind
from .register_word import RegisterSizes
from .stages import DecodeStage, carry

__all__ = ["FormatStage"]


def honours_sat(fmt: Format, out: Format, column: str) -> bool:
    """Does SAT clamp this output? (numerics.md section 4, SAT)"""
    if out.kind is Kind.FLOAT:
        return out.bits <= 8
    return column != "bovf" and fmt.name not in ("int64", "q32_32")


class FormatStage(DecodeStage):
    """Stage D of the decoder: operand and output formats, and what mxcfg allows."""

    BEFORE, AFTER = "c", "d"

    def elaborate(self, platform):
        m = Module()
        c, d = self.before, self.after
        carry(m, c, d)
        cfg = self.cfg

        def of_cfg(name):
            f = isa.MXCFG[name]
            return c.mxcfg[f.lo : f.lo + f.width]

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
                        d.ft.eq(index),
                        d.container_log2.eq(fmt.container.bit_length() - 3),
                    ]
                    with m.Switch(column):
                        for number, name in enumerate(columns):
                            out = formats.output_format(fmt, name)
                            if out is None:
                                continue
                            with m.Case(number):
                                m.d.comb += [
                                    pair_ok.eq(1),
                                    d.out.eq([o.name for o in cfg.output_formats].index(out.name)),
                                    d.width_log2.eq(out.container.bit_length() - 4),
                                    sat_counts.eq(honours_sat(fmt, out, name)),
                                    sat_counts_same.eq(honours_sat(fmt, fmt, name)),
                                ]
        rnd = of_cfg("rnd")
        same = c.vector & ~c.f7[isa.VECTOR["wide"].lo]
        m.d.comb += [
            d.bad.eq(
                ~pair_ok
                | ~acc_ok
                | (rnd > max(isa.Rounding))
                | of_cfg("reserved").any()
                | c.reserved_tile
            ),
            d.sat.eq(of_cfg("sat") & Mux(same, sat_counts_same, sat_counts)),
            d.rnd.eq(rnd),
        ]
        if cfg.xuantie:
            m.submodules.sizes = sizes = RegisterSizes(cfg)
            m.d.comb += [
                sizes.word.eq(c.x_word),
                sizes.size.eq(c.x_size),
                sizes.rounding.eq(c.x_rounding),
                d.x.eq(sizes.fields),
                d.illegal.eq(c.illegal | (c.x_word.on & sizes.bad)),
            ]
        return m
