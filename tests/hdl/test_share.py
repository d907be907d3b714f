"""hdl.share: one conversion, many instances, the same design."""

from __future__ import annotations

from amaranth.hdl import Module, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from test_emit import EQUIVALENCE, Multiply, instances, modules
from yosys_tool import run_yosys

from hdl.emit import rtlil_text
from hdl.share import shared


class Counted(Multiply):
    """A `Multiply` that counts how often it is elaborated."""

    elaborated = 0

    def elaborate(self, platform) -> Module:
        Counted.elaborated += 1
        return super().elaborate(platform)


class Bank(wiring.Component):
    """Shared parts of two kinds."""

    def __init__(self, offsets: list[int]):
        self.offsets = offsets
        super().__init__(
            {"a": In(signed(4)), "b": In(signed(4)), "out": Out(signed(9)).array(len(offsets))}
        )

    def elaborate(self, platform) -> Module:
        m = Module()
        for index, offset in enumerate(self.offsets):
            m.submodules[f"part{index}"] = part = shared(platform, Counted, offset)
            m.d.comb += [part.a.eq(self.a), part.b.eq(self.b), self.out[index].eq(part.out)]
        return m


OFFSETS = [1, 2, 1, 1]


def test_each_kind_is_elaborated_once() -> None:
    Counted.elaborated = 0
    text = rtlil_text(Bank(OFFSETS), "bank")
    assert Counted.elaborated == 2
    assert modules(text) == ["bank", "bank__counted", "bank__counted2"]
    kinds = [kind for kind in instances(text) if kind.startswith("bank__")]
    assert kinds == ["bank__counted", "bank__counted2", "bank__counted", "bank__counted"]


def test_it_is_the_same_design(tmp_path) -> None:
    """Against the text in which nothing is shared, proved equal by yosys."""
    for version, share in (("whole", False), ("shared", True)):
        (tmp_path / f"{version}.il").write_text(rtlil_text(Bank(OFFSETS), "bank", share=share))
    run_yosys(EQUIVALENCE.format(whole="whole.il", shared="shared.il", name="bank"), tmp_path)
