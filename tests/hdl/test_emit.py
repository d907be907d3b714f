"""hdl.emit: equal modules are written once, different ones are not, and the bytes never change."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from amaranth.hdl import Module, Signal, signed
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out
from yosys_tool import run_yosys

from hdl import emit
from hdl.emit import EmitError, rtlil_text, share_modules, verilog_text

ROOT = Path(__file__).resolve().parents[2]


class Multiply(wiring.Component):
    """out accumulates a * b + offset."""

    def __init__(self, offset: int):
        self.offset = offset
        super().__init__({"a": In(signed(4)), "b": In(signed(4)), "out": Out(signed(9))})

    def elaborate(self, platform) -> Module:
        m = Module()
        total = Signal(signed(9))
        m.d.sync += total.eq(total + self.a * self.b + self.offset)
        m.d.comb += self.out.eq(total)
        return m


class Pair(wiring.Component):
    """Two `Multiply` whose results are added."""

    def __init__(self, offsets: tuple[int, int]):
        self.offsets = offsets
        super().__init__({"a": In(signed(4)), "b": In(signed(4)), "out": Out(signed(10))})

    def elaborate(self, platform) -> Module:
        m = Module()
        parts = [Multiply(offset) for offset in self.offsets]
        for index, part in enumerate(parts):
            m.submodules[f"part_{index}"] = part
            m.d.comb += [part.a.eq(self.a), part.b.eq(self.b)]
        m.d.comb += self.out.eq(parts[0].out + parts[1].out)
        return m


class Grid(wiring.Component):
    """Pairs fed by neighbouring inputs, so that the nets round each one come in another order."""

    def __init__(self, offsets: list[tuple[int, int]]):
        self.offsets = offsets
        count = len(offsets)
        super().__init__(
            {f"in_{index}": In(signed(4)) for index in range(count)}
            | {f"out_{index}": Out(signed(10)) for index in range(count)}
        )

    def elaborate(self, platform) -> Module:
        m = Module()
        count = len(self.offsets)
        for index, offsets in enumerate(self.offsets):
            m.submodules[f"pair_{index}"] = pair = Pair(offsets)
            m.d.comb += [
                pair.a.eq(getattr(self, f"in_{index}")),
                pair.b.eq(getattr(self, f"in_{(index + 1) % count}")),
                getattr(self, f"out_{index}").eq(pair.out),
            ]
        return m


class Store(wiring.Component):
    """A small memory with some first contents."""

    def __init__(self, init: list[int]):
        self.init = init
        super().__init__({"addr": In(2), "data": In(8), "enable": In(1), "out": Out(8)})

    def elaborate(self, platform) -> Module:
        m = Module()
        m.submodules.mem = mem = memory.Memory(shape=8, depth=4, init=self.init)
        read, write = mem.read_port(), mem.write_port()
        m.d.comb += [
            read.addr.eq(self.addr),
            read.en.eq(1),
            write.addr.eq(self.addr),
            write.data.eq(self.data),
            write.en.eq(self.enable),
            self.out.eq(read.data),
        ]
        return m


class Stores(wiring.Component):
    """Memories side by side."""

    def __init__(self, inits: list[list[int]]):
        self.inits = inits
        super().__init__(
            {"addr": In(2), "data": In(8), "enable": In(len(inits))}
            | {f"out_{index}": Out(8) for index in range(len(inits))}
        )

    def elaborate(self, platform) -> Module:
        m = Module()
        for index, init in enumerate(self.inits):
            m.submodules[f"store_{index}"] = store = Store(init)
            m.d.comb += [
                store.addr.eq(self.addr),
                store.data.eq(self.data),
                store.enable.eq(self.enable[index]),
                getattr(self, f"out_{index}").eq(store.out),
            ]
        return m


def modules(text: str) -> list[str]:
    return re.findall(r"^module \\(\S+)", text, re.MULTILINE)


def instances(text: str) -> list[str]:
    """Kinds of the instances of other modules."""
    return re.findall(r"^  cell \\(\S+) ", text, re.MULTILINE)


def test_equal_trees_are_written_once() -> None:
    whole = rtlil_text(Grid([(1, 2)] * 4), "grid", share=False)
    assert len(modules(whole)) == 1 + 4 + 8
    shared = rtlil_text(Grid([(1, 2)] * 4), "grid")
    # one Pair, and its two different children; the last pair's inputs come in another order
    assert modules(shared) == [
        "grid",
        "grid__pair_0",
        "grid__pair_0__part_0",
        "grid__pair_0__part_1",
    ]
    assert instances(shared).count("grid__pair_0") == 4


def test_equal_leaves_of_different_parents_are_written_once() -> None:
    shared = rtlil_text(Grid([(1, 2), (2, 1)]), "grid")
    assert modules(shared) == [
        "grid",
        "grid__pair_0",
        "grid__pair_0__part_0",
        "grid__pair_0__part_1",
        "grid__pair_1",
    ]
    body = shared[shared.index("module \\grid__pair_1") :]
    assert instances(body) == ["grid__pair_0__part_1", "grid__pair_0__part_0"]


def test_different_constants_deep_below_are_not_merged() -> None:
    shared = rtlil_text(Grid([(1, 2), (1, 2), (1, 3)]), "grid")
    assert modules(shared).count("grid__pair_0") == 1
    assert "grid__pair_2" in modules(shared) and "grid__pair_1" not in modules(shared)


def test_memories_are_told_apart_by_their_contents() -> None:
    shared = rtlil_text(Stores([[1, 2], [1, 2], [1, 3]]), "stores")
    assert "stores__store_1" not in modules(shared)
    assert "stores__store_2" in modules(shared)


def test_sharing_shared_text_changes_nothing() -> None:
    shared = rtlil_text(Stores([[1, 2], [1, 2], [1, 3]]), "stores")
    ports = ("addr", "data", "enable", "out_0", "out_1", "out_2")
    assert share_modules(shared, ports=ports) == shared


def test_names_that_collide_stay_apart() -> None:
    text = "".join(
        f"module \\{name}\n\n  wire width 1 \\w{index}\n\nend\n\n"
        for index, name in enumerate(("a", "a.b", "a__b"))
    )
    assert modules(share_modules(text)) == ["a", "a__b", "a__b_2"]


def test_ports_of_the_top_stand_in_the_order_of_its_signature() -> None:
    text = verilog_text(Grid([(1, 2)] * 2), "grid")
    assert "module grid(clk, rst, in_0, in_1, out_0, out_1);" in text


def test_verilog_is_plain() -> None:
    text = verilog_text(Grid([(1, 2)] * 2), "grid")
    for word in ("(* src", "assert", "$display", "always_ff", "logic", str(ROOT)):
        assert word not in text
    assert not re.search(r"^module \\", text, re.MULTILINE), "a module name needs an escape"


def test_same_bytes_in_every_process() -> None:
    program = (
        "import sys; sys.path.insert(0, 'tests/hdl'); import test_emit as t;"
        "sys.stdout.write(t.verilog_text(t.Grid([(1, 2), (2, 1)]), 'grid'))"
    )
    found = set()
    for seed in ("0", "77"):
        env = {**os.environ, "PYTHONHASHSEED": seed}
        run = subprocess.run(
            [sys.executable, "-c", program], cwd=ROOT, env=env, capture_output=True, check=True
        )
        found.add(run.stdout)
    assert found == {verilog_text(Grid([(1, 2), (2, 1)]), "grid").encode()}


def test_a_failure_of_yosys_is_one_line() -> None:
    with pytest.raises(EmitError, match=r"yosys failed.*no_such_command") as caught:
        emit._yosys("no_such_command\n")
    assert "\n" not in str(caught.value)


EQUIVALENCE = """
read_rtlil {whole}
proc
flatten
memory
opt_clean
rename {name} gold
design -stash whole
read_rtlil {shared}
hierarchy -check -top {name}
proc
flatten
memory
opt_clean
rename {name} gate
design -copy-from whole -as gold gold
equiv_make gold gate equiv
hierarchy -top equiv
equiv_simple
equiv_status -assert
"""


@pytest.mark.parametrize(
    ("kind", "parts"),
    [(Grid, [(1, 2), (2, 1), (1, 2)]), (Stores, [[1, 2], [1, 2], [1, 3]])],
    ids=["grid", "stores"],
)
def test_shared_text_is_the_same_design(kind: type, parts: list, tmp_path: Path) -> None:
    """The whole text and the shared one, proved equal by yosys."""
    name = kind.__name__.lower()
    for version, share in (("whole", False), ("shared", True)):
        (tmp_path / f"{version}.il").write_text(rtlil_text(kind(parts), name, share=share))
    run_yosys(EQUIVALENCE.format(whole="whole.il", shared="shared.il", name=name), tmp_path)
