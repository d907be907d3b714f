"""What is done to CXXRTL's C++: modules at rest are skipped, and the source is cut into files.

That it still computes the same is for the tests in which the engines agree.
"""

import pytest

from sim.engines.cxxrtl_text import remember_inputs, split_source

MODULE = """struct p_{name} : public module {{
	/*input*/ value<8> p_a;
	/*output*/ wire<8> p_b;
	/*input*/ value<1> p_clk;

	bool eval(performer *performer = nullptr) override;

	template<class ObserverT>
	bool commit(ObserverT &observer) {{
		bool changed = false;
		if (p_b.commit(observer)) changed = true;
		return changed;
	}}
}}; // struct p_{name}
"""
BODY = """
bool p_{name}::eval(performer *performer) {{
	bool converged = true;
	{filler}return converged;
}}
"""
NAMES = ("one", "two", "three")


def design() -> tuple[str, str]:
    header = "\n".join(MODULE.format(name=name) for name in NAMES)
    bodies = "".join(
        BODY.format(name=name, filler="x();\n\t" * 10 * number) for number, name in enumerate(NAMES)
    )
    source = f'#include "core.h"\nnamespace cxxrtl_design {{\n{bodies}\n'
    return header, source + "} // namespace cxxrtl_design\n\nextern void last();\n"


def test_every_module_remembers_its_inputs() -> None:
    header, source = remember_inputs(*design())
    assert header.count("if (!stale && seen_p_a == p_a && seen_p_clk == p_clk)") == len(NAMES)
    assert header.count("value<8> seen_p_a;") == len(NAMES)
    assert "seen_p_b" not in header
    assert header.count("return stale = changed;") == header.count("if (!ran)") == len(NAMES)
    assert source.count("::evaluate(performer *performer) {") == len(NAMES)
    assert "::eval(" not in source


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("override;", ";", "module p_one is not as expected"),
        ("public module", "module", "0 modules, 3 bodies"),
        ("\t\treturn changed;\n", "", "module p_one is not as expected"),
    ],
)
def test_other_headers_are_refused(old: str, new: str, message: str) -> None:
    header, source = design()
    with pytest.raises(ValueError, match=message):
        remember_inputs(header.replace(old, new), source)


def test_other_sources_are_refused() -> None:
    header, source = design()
    with pytest.raises(ValueError, match="3 modules, 0 bodies"):
        remember_inputs(header, source.replace("::eval", "::run"))
    with pytest.raises(ValueError, match="no namespace"):
        split_source("int x;", 2)


@pytest.mark.parametrize("count", [1, 2, 3, 8])
def test_parts_hold_each_function_once(count: int) -> None:
    _, source = design()
    parts = split_source(source, count)
    assert len(parts) == min(count, len(NAMES))
    for name in NAMES:
        assert sum(part.count(f"p_{name}::eval") for part in parts) == 1
    for part in parts:
        assert part.startswith('#include "core.h"\nnamespace cxxrtl_design {\n')
        assert part.count("} // namespace cxxrtl_design\n") == 1
        assert part.count("{") == part.count("}")
    assert [("last" in part) for part in parts] == [True] + [False] * (len(parts) - 1)
