"""Chunks of a C row: from the row to the elements of a block, and back."""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

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
                m.d.sync += reg.eq(self._element(n, chunk))
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
            word = Signal(unit, name=f"word{j}")
            if count == 1:
                m.d.comb += word.eq(options[0])
            else:
                low = (step * unit // 8).bit_length() - 1
                with m.Switch(self.byte[low : low + (count - 1).bit_length()]):
                    for i, option in enumerate(options):
                        with m.Case(i):
                            m.d.comb += word.eq(option)
            words.append(word)
        return Cat(words)

    def _element(self, n: int, chunk: Value) -> Value:
        """Element `n` of the chunk in the output format of this uop."""
        plan = self.plan
        value: Value = Const(0, plan.out_bits)
        for i, out in enumerate(plan.outputs):
            if n >= plan.cfg.uop_columns(out.container):
                continue
            field = chunk[n * out.container : (n + 1) * out.container]
            if not out.is_float:
                field = field[: out.bits].as_signed()
            wide = _extend(field, plan.out_bits)
            value = wide if len(plan.outputs) == 1 else Mux(self.out[i], wide, value)
        return value


def _extend(field: Value, bits: int) -> Value:
    missing = bits - len(field)
    return Cat(field, (field[-1] if field.shape().signed else Const(0, 1)).replicate(missing))


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
