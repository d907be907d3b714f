"""Chunks of a C row: from the row to the elements of a block, and back."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ..registers import copies
from .logic import any_of
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
        plan = self.plan
        # Every place at which a chunk of some format may start, and whether this one does.
        self._places = [
            (out, low)
            for out in plan.outputs
            for low in range(0, plan.cfg.row_bits, _chunk_bits(plan, out.container))
        ]
        starts = {low: Signal(name=f"at{low}") for _, low in self._places}
        for low, here in starts.items():
            m.d.comb += here.eq(self.byte == low // 8)
        self._taken = [self.out[plan.outputs.index(out)] & starts[low] for out, low in self._places]
        skips = copies(m, "skip", self.skip, plan.cfg.n_par)
        for n, skip in enumerate(skips):
            reg = Signal(plan.out_bits, name=f"element{n}", reset_less=True)
            m.d.sync += reg.eq(self._element(m, n))
            # A register reset, which costs no logic on most targets.
            with m.If(skip):
                m.d.sync += reg.eq(0)
            m.d.comb += self.elements[n].eq(reg)
        return m

    def _element(self, m: Module, n: int) -> Value:
        """Element `n` of the chunk, in the output format of this uop."""
        places = {
            i: (out, low + n * out.container)
            for i, (out, low) in enumerate(self._places)
            if n < self.plan.cfg.uop_columns(out.container)
        }
        registers: dict[tuple[int, ...], Value] = {}

        def taken_from(sources: dict[int, list[int]]) -> Value:
            """The bit of the row, of these numbers, whose list names the place of the chunk."""
            terms = []
            for bit, numbers in sources.items():
                key = tuple(numbers)
                if key not in registers:
                    # Elements are wide: each has its own registers of what decides on it.
                    taken = any_of(self._taken[i] for i in numbers)
                    (registers[key],) = copies(m, f"take{n}_{len(registers)}", taken, 1)
                terms.append(registers[key] & self.row[bit])
            return any_of(terms)

        signs: dict[tuple[int, ...], Signal] = {}
        bits = []
        for bit in range(self.plan.out_bits):
            # Chunks that have this bit in the same place of the row share an input.
            sources: dict[int, list[int]] = {}
            extended = []
            for i, (out, low) in places.items():
                if bit < (out.container if out.is_float else out.bits):
                    sources.setdefault(low + bit, []).append(i)
                elif not out.is_float:
                    extended.append(i)
            value = taken_from(sources)
            if extended:
                key = tuple(extended)
                if key not in signs:
                    tops: dict[int, list[int]] = {}
                    for i in extended:
                        out, low = places[i]
                        tops.setdefault(low + out.bits - 1, []).append(i)
                    signs[key] = Signal(name=f"sign{n}_{len(signs)}")
                    m.d.comb += signs[key].eq(taken_from(tops))
                value = value | signs[key]
            bits.append(value)
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
