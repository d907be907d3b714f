"""Chunks of a C row: from the row to the elements of a block, and back."""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ..registers import copies
from .logic import any_of, mux_one_hot, pick
from .plan import MacPlan

__all__ = ["ChunkRead", "chunk_row", "containers", "elements"]


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
    byte : where the chunk starts (`mac_op`'s c_byte).
    out : one-hot output format.
    skip : C takes no part.
    row : the row, one cycle after these three.
    elements : the elements, registered.

    Latency: `LATENCY` cycles, one of them before the row comes. Throughput: one row a cycle.
    Source: numerics.md section 3.
    """

    LATENCY = 2

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
        n_par = self.plan.cfg.n_par
        # Rows are wide: each has its own registers of what decides on them.
        (byte,) = copies(m, "byte", self.byte, 1)
        chunk = self._chunk(m, byte)
        skips = copies(m, "skip", self.skip, n_par)
        outs = copies(m, "out", self.out, n_par)
        for n in range(n_par):
            reg = Signal(self.plan.out_bits, name=f"element{n}", reset_less=True)
            # A register reset, which costs no logic on most targets.
            with m.If(skips[n]):
                m.d.sync += reg.eq(0)
            with m.Else():
                m.d.sync += reg.eq(self._element(m, n, chunk, outs[n]))
            m.d.comb += self.elements[n].eq(reg)
        return m

    def _chunk(self, m: Module, byte: Value) -> Value:
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
            m.d.comb += word.eq(pick(options, byte[low : low + (count - 1).bit_length()]))
            words.append(word)
        return Cat(words)

    def _element(self, m: Module, n: int, chunk: Value, out_is: Value) -> Value:
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
                signs.setdefault(n * out.container + out.bits - 1, []).append(out_is[i])
        if signs:
            m.d.comb += sign.eq(mux_one_hot([(any_of(c), chunk[at]) for at, c in signs.items()]))
        bits = []
        for bit in range(plan.out_bits):
            # Formats that find this bit in the same place of the chunk share an input.
            sources: dict[int, list[Value]] = {}
            extended = False
            for i, out in outs:
                if bit < (out.container if out.is_float else out.bits):
                    sources.setdefault(n * out.container + bit, []).append(out_is[i])
                elif not out.is_float:
                    extended = True
            options: list[tuple[Value, Value]] = [
                (any_of(c), chunk[at]) for at, c in sources.items()
            ]
            if extended or not options:
                options.append((Const(1, 1), sign))
            bits.append(mux_one_hot(options))
        return Cat(bits)


def containers(plan: MacPlan, out: Value) -> Value:
    """Which of `MacPlan.out_containers` the format of one-hot `out` has, one-hot."""
    return Cat(
        any_of(out[i] for i, o in enumerate(plan.outputs) if o.container == container)
        for container in plan.out_containers
    )


def chunk_row(plan: MacPlan, used: Value, values: list[Value]) -> Value:
    """A whole row made of copies of the chunk that holds the elements `values`.

    `used`: their container, see `containers`.
    """
    rows = []
    for container in plan.out_containers:
        columns = plan.cfg.uop_columns(container)
        chunk = Cat(values[n][:container] for n in range(columns))
        rows.append(Cat(chunk for _ in range(plan.cfg.row_bits // len(chunk))))
    result = rows[0]
    for i, row in enumerate(rows[1:], start=1):
        result = Mux(used[i], row, result)
    return result
