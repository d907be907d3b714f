"""What a proof is written with: a design under arbitrary inputs, properties, and its RTLIL text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from amaranth.back import rtlil
from amaranth.hdl import (
    Assert,
    Assume,
    ClockDomain,
    Cover,
    Elaboratable,
    Fragment,
    Instance,
    Module,
    Shape,
    Signal,
    Value,
    ValueCastable,
)
from amaranth.lib import wiring
from amaranth.lib.wiring import In

__all__ = ["Inside", "Proof"]


class Inside:
    """The signals that a part of the design drives, by name, and those of its submodules.

    Invariants talk about state that has no port. A name that a port and a register share means the
    register.

    Parameters
    ----------
    fragment : the elaborated part.
    name : its name, for messages.
    """

    def __init__(self, fragment: Fragment, name: str):
        self._name = name
        self._signals: dict[str, dict[str, list[Signal]]] = {}
        self._parts = {}
        for domain, statements in fragment.statements.items():
            for signal in statements._lhs_signals():
                by_domain = self._signals.setdefault(signal.name, {})
                by_domain.setdefault(domain, []).append(signal)
        for part, part_name, _ in fragment.subfragments:
            if part_name is not None:
                self._parts[part_name] = part

    def __call__(self, name: str, shape=None) -> Signal | ValueCastable:
        """The signal called `name`, seen as a `shape` (a layout) if one is given."""
        by_domain = self._signals.get(name, {})
        found = by_domain.get("sync") or by_domain.get("comb", [])
        if len(found) != 1:
            raise KeyError(f"{self._name} drives {len(found)} signals called {name!r}")
        return found[0] if shape is None else shape(found[0])

    def part(self, name: str) -> Inside:
        """A submodule."""
        return Inside(self._parts[name], f"{self._name}.{name}")

    def parts(self, pattern: str) -> list[Inside]:
        """The submodules whose names match `pattern`."""
        return [self.part(part) for part in self._parts if re.fullmatch(pattern, part)]

    def copies(self, name: str) -> list[Signal]:
        """The registers that `hdl.registers.copies` made under this name."""
        found = self.parts(rf"{name}_copy\d+")
        if not found:
            raise KeyError(f"{self._name} has no copies called {name!r}")
        return [part("value") for part in found]


class _Elaborated(Elaboratable):
    def __init__(self, fragment: Fragment):
        self._fragment = fragment

    def elaborate(self, platform):
        return self._fragment


class Proof:
    """A harness in the making.

    The design starts with every register, and every word of every memory, at an arbitrary value;
    the first cycle is a reset, as it is on a chip. Properties hold from the next cycle on.

    Attributes
    ----------
    m : module for the harness's own logic, in the domain `sync`.
    rst : the reset cycle.
    """

    TOP = "top"
    PREFIX = "property."  # of the names of properties

    def __init__(self):
        self.m = Module()
        self.m.domains.sync = domain = ClockDomain()
        self.rst = domain.rst
        self.m.submodules.initial = Instance("$initstate", o_Y=self.rst)
        self._ports: list[Value] = [domain.clk]
        self._names: set[str] = set()
        self._given = False

    # -- the design ----------------------------------------------------------------------------

    def add(self, name: str, component: wiring.Component, *, free: bool = False) -> Inside:
        """Put a component into the harness.

        Parameters
        ----------
        name : of the submodule.
        component : what to add.
        free : its inputs take any value in any cycle; else the harness drives them.
        """
        fragment = Fragment.get(component, None)
        self.m.submodules[name] = _Elaborated(fragment)
        if free:
            for path, member, value in component.signature.flatten(component):
                if member.flow is In:
                    self.m.d.comb += Value.cast(value).eq(
                        self.any(len(Value.cast(value)), f"{name}_{'_'.join(map(str, path))}")
                    )
        return Inside(fragment, name)

    def any(self, shape, name: str) -> Signal:
        """Any value, another one in every cycle."""
        value = Signal(shape, name=name)
        self._ports.append(Value.cast(value))
        return value

    def const(self, shape, name: str) -> Signal:
        """Any value, the same one in all cycles."""
        value = Signal(shape, name=name)
        width = len(Value.cast(value))
        if width:
            self.m.submodules[f"const_{name}"] = Instance(
                "$anyconst", p_WIDTH=width, o_Y=Value.cast(value)
            )
        return value

    def past(self, value, name: str, init: int = 0) -> Signal:
        """`value` of the cycle before; `init` in the first cycle after reset."""
        value = Value.cast(value)
        before = Signal(value.shape(), name=name, init=init)
        self.m.d.sync += before.eq(value)
        return before

    def signal(self, value, name: str) -> Signal:
        """`value` under a name that shows in waveforms; use it for what is used often."""
        value = Value.cast(value)
        wire = Signal(Shape.cast(value.shape()), name=name)
        self.m.d.comb += wire.eq(value)
        return wire

    # -- properties ----------------------------------------------------------------------------

    def _name(self, name: str) -> str:
        if name in self._names or not re.fullmatch(r"\w+", name):
            raise ValueError(f"the property name {name!r} is taken or no identifier")
        self._names.add(name)
        return name

    @contextmanager
    def given(self, on: bool = True) -> Iterator[None]:
        """While it lasts, checks are assumed: another task proves them of the same harness."""
        before, self._given = self._given, on
        try:
            yield
        finally:
            self._given = before

    def check(self, name: str, condition) -> None:
        """`condition` must hold in every cycle."""
        if self._given:
            self.assume(name, condition)
            return
        self.m.d.comb += Assert(self.rst | Value.cast(condition).bool(), self._name(name))

    def assume(self, name: str, condition) -> None:
        """Only inputs for which `condition` holds are looked at."""
        self.m.d.comb += Assume(self.rst | Value.cast(condition).bool(), self._name(name))

    def cover(self, name: str, condition) -> None:
        """There is a run in which `condition` holds."""
        self.m.d.comb += Cover(~self.rst & Value.cast(condition).bool(), self._name(name))

    # -- text ----------------------------------------------------------------------------------

    def rtlil(self) -> str:
        """The harness as RTLIL, with properties named and nothing initialised."""
        text = rtlil.convert(self.m, name=self.TOP, ports=self._ports, emit_src=False)
        # Amaranth takes $-cells for modules of a user.
        text = re.sub(r"^(  cell )\\\$", r"\1$", text, flags=re.MULTILINE)
        chunks = []
        for chunk in text.split("\n\n"):
            if re.search(r"^  cell \$meminit", chunk, re.MULTILINE):
                continue
            chunk = re.sub(r"^  attribute \\init .*\n", "", chunk, flags=re.MULTILINE)
            if named := re.search(r'parameter \\FORMAT "(\w+)"', chunk):
                chunk = re.sub(
                    r"(cell \$check )\S+", rf"\1\\{self.PREFIX}{named[1]}", chunk, count=1
                )
            chunks.append(chunk)
        return "\n\n".join(chunks)
