"""Chunks of a C row: from the row to the elements of a block, and back."""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from .logic import any_of, mux_one_hot, pick
from .plan import MacPlan

__all__ = ["ChunkRead", "chunk_row", "elements"]


def elements(plan: MacPlan) -> data.ArrayLayout:
    """The containers of the n_par elements of a block row, each in the low bits of its place."""
    return data.ArrayLayout(plan.out_bits, plan.cfg.n_par)


def _chunk_bits(plan: MacPlan, container: int) -> int:
    return plan.cfg.uop_columns(container) * container


class ChunkRead(wiring.Component):
    """Takes the elements of a block out of one row of C.

    Integers come out sign-extended from their format's width; the bits above a float's container
    are undefined. Where C takes no part all elements are zero.

    Parameters
    ----------
    plan : sizes.

    Members
    -------
    row : the row.
    byte : where the chunk starts (`mac_op`'s c_byte).
    out : one-hot output format.
    skip : C takes no part.
    elements : the elements, registered.

    Latency: 1 cycle. Throughput: one row a cycle. Source: numerics.md section 3.
    """

    latency = 1

    def __init__(self, plan: MacPlan):
        self.plan = plan
        super().__init__(
            {
                "row": In(plan.cfg.row_bits),
                "byte": In(plan.cfg.row_bytes_log2),
                "out": In(len(plan.outputs)),
                "skip": In(1),
                "elements": Out(elements(plan)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        chunk = self._chunk(m)
        for n in range(self.plan.cfg.n_par):
            reg = Signal(self.plan.out_bits, name=f"element{n}", reset_less=True)
            # A register reset, which costs no logic on most targets.
            with m.If(self.skip):
                m.d.sync += reg.eq(0)
            with m.Else():
                m.d.sync += reg.eq(self._element(m, n, chunk))
            m.d.comb += self.elements[n].eq(reg)
        return m

    def _chunk(self, m: Module) -> Value:
        """The row rotated so that the chunk starts at bit 0, as far as chunks are wide."""
        plan = self.plan
        sizes = [_chunk_bits(plan, container) for container in plan.out_containers]
        unit = min(sizes)
        words = []
        for j in range(max(sizes) // unit):
            # Chunks that reach word j start at multiples of `step` words.
            step = min(size // unit for size in sizes if size // unit > j)
            count = plan.cfg.row_bits // unit // step
            options = [self.row.word_select(j + step * i, unit) for i in range(count)]
            low = (step * unit // 8).bit_length() - 1
            word = Signal(unit, name=f"word{j}")
            m.d.comb += word.eq(pick(options, self.byte[low : low + (count - 1).bit_length()]))
            words.append(word)
        return Cat(words)

    def _element(self, m: Module, n: int, chunk: Value) -> Value:
        """Element `n` of the chunk in the output format of this uop."""
        plan = self.plan
        outs = [
            (i, out)
            for i, out in enumerate(plan.outputs)
            if n < plan.cfg.uop_columns(out.container)
        ]
        sign = Signal(name=f"sign{n}")
        signs: dict[int, list[Value]] = {}
        for i, out in outs:
            if not out.is_float:
                signs.setdefault(n * out.container + out.bits - 1, []).append(self.out[i])
        if signs:
            m.d.comb += sign.eq(mux_one_hot([(any_of(c), chunk[at]) for at, c in signs.items()]))
        bits = []
        for bit in range(plan.out_bits):
            # Formats that find this bit in the same place of the chunk share an input.
            sources: dict[int, list[Value]] = {}
            extended = False
            for i, out in outs:
                if bit < (out.container if out.is_float else out.bits):
                    sources.setdefault(n * out.container + bit, []).append(self.out[i])
                elif not out.is_float:
                    extended = True
            options: list[tuple[Value, Value]] = [
                (any_of(c), chunk[at]) for at, c in sources.items()
            ]
            if extended or not options:
                options.append((Const(1, 1), sign))
            bits.append(mux_one_hot(options))
        return Cat(bits)


def chunk_row(plan: MacPlan, out: Value, values: list[Value]) -> Value:
    """A whole row made of copies of the chunk that holds the elements `values`."""
    by_container = []
    for container in plan.out_containers:
        columns = plan.cfg.uop_columns(container)
        chunk = Cat(values[n][:container] for n in range(columns))
        row = Cat(chunk for _ in range(plan.cfg.row_bits // len(chunk)))
        used = Cat(out[i] for i, o in enumerate(plan.outputs) if o.container == container).any()
        by_container.append((used, row))
    result = by_container[0][1]
    for used, row in by_container[1:]:
        result = Mux(used, row, result)
    return result
