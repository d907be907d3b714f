"""What the README shows is true."""

from __future__ import annotations

import ast
import functools
import re
from pathlib import Path

import pytest

from hdl import top
from hdl.config import preset
from sim import gemm, ops
from sim.engines import ENGINES

TEXT = (Path(__file__).resolve().parents[1] / "README.md").read_text()


def test_python_example(monkeypatch) -> None:
    (block,) = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    monkeypatch.setattr(ops, "mma", functools.partial(ops.mma, engine="model"))
    names: dict[str, object] = {}
    shown = []
    for statement in ast.parse(block).body:
        if isinstance(statement, ast.Expr):
            code = compile(ast.Expression(statement.value), "README.md", "eval")
            shown.append(eval(code, names))
        else:
            exec(compile(ast.Module([statement], []), "README.md", "exec"), names)
    assert shown[0].tolist() == [[100, 5]]
    assert shown[1:] == [("0x7fff", True), 262144]


def test_commands_are_accepted() -> None:
    """Every option that a command line of the README uses exists."""
    parsers = {"hdl.top": top._parser(), "sim.gemm": gemm._parser()}
    found = re.findall(r"^(?:\$ )?python -m (\S+) ([^#\n]*)", TEXT, re.MULTILINE)
    assert len(found) >= 6
    for module, arguments in found:
        parsers[module].parse_args(arguments.split())


def test_gemm_example() -> None:
    """The lines of the example, the figures of the engine apart, and its bound."""
    example = TEXT[TEXT.index("$ python -m sim.gemm 64 64 64") :]
    example = example[: example.index("```")]
    lines = dict(re.findall(r"^(.{12}) (\S.*)$", example, re.MULTILINE))
    assert lines["GEMM        "] == "64 x 64 x 64, int8 to int16"
    bound = int(lines["utilisation "].split()[-1].replace(",", ""))
    cycles = int(lines["cycles      "].replace(",", ""))
    assert bound == 1024 and lines["utilisation "].startswith(f"{100 * bound / cycles:.1f} %")
    assert lines["MAC/cycle   "] == f"{64**3 / cycles:.1f} of 256 at peak"


@pytest.mark.parametrize("name", [name for name in ENGINES if name != "auto"])
def test_every_engine_is_named(name: str) -> None:
    assert f"| `{name}` |" in TEXT


def test_base_cell_is_as_described() -> None:
    cfg = preset("ame32")
    assert f"{cfg.m_par} x {cfg.n_par} sub-arrays" in TEXT
    assert f"{cfg.tiles} tiles of {cfg.rows} rows x {cfg.row_bits} bit in four banks" in TEXT
    assert f"{cfg.l2_ids} requests in flight" in TEXT
    assert f"{cfg.m_par * cfg.n_par * cfg.row_bits // 8} INT8 pairs a cycle" in TEXT
