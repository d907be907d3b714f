"""What is done to CXXRTL's C++ before it is compiled: skip idle modules, and cut it into files.

The hierarchy is kept, because one huge function compiles many times slower. What that costs is
delta cycles: each step evaluates every module again until nothing changes, eight times a clock
cycle in a core. So each module remembers its inputs, and is left alone when neither they nor
anything inside it has changed since its last evaluation; its result would be the same.
"""

from __future__ import annotations

import re

__all__ = ["remember_inputs", "split_source"]

_STRUCT = re.compile(r"^struct (\w+) : public module \{\n.*?^\}; // struct \1$", re.S | re.M)
_INPUT = re.compile(r"/\*input\*/ (value<\d+>) (\w+);")
_EVAL = "\tbool eval(performer *performer = nullptr) override;\n"
_BEGIN = "\t\tbool changed = false;\n"
_END = "\t\treturn changed;\n"
_BODY = re.compile(r"^bool (\w+)::eval\(performer \*performer\) \{$", re.M)
_NAMESPACE = "namespace cxxrtl_design {\n"
_CLOSE = "} // namespace cxxrtl_design\n"


def remember_inputs(header: str, source: str) -> tuple[str, str]:
    """Header and source in which modules that nothing has changed for are skipped.

    Raises `ValueError` for text that is not as write_cxxrtl writes it.
    """
    header, structs = _STRUCT.subn(_skipping, header)
    source, bodies = _BODY.subn(r"bool \1::evaluate(performer *performer) {", source)
    if not structs or structs != bodies:
        raise ValueError(f"cannot read CXXRTL's output: {structs} modules, {bodies} bodies")
    return header, source


def _skipping(match: re.Match[str]) -> str:
    text, name = match[0], match[1]
    if any(text.count(part) != 1 for part in (_EVAL, _BEGIN, _END)):
        raise ValueError(f"cannot read CXXRTL's output: module {name} is not as expected")
    inputs = _INPUT.findall(text)
    seen = "".join(f"\t{shape} seen_{name};\n" for shape, name in inputs)
    same = "".join(f" && seen_{name} == {name}" for _, name in inputs)
    store = "".join(f"\t\tseen_{name} = {name};\n" for _, name in inputs)
    evaluate = f"""{seen}\tbool stale = true; // something inside changed since the last evaluation
	bool ran = true; // there was one since the last commit

	bool evaluate(performer *performer);

	bool eval(performer *performer = nullptr) override {{
		if (!stale{same})
			return true;
{store}		ran = true;
		return evaluate(performer);
	}}
"""
    commit = "\t\tif (!ran)\n\t\t\treturn false;\n\t\tran = false;\n"
    return (
        text.replace(_EVAL, evaluate)
        .replace(_BEGIN, commit + _BEGIN)
        .replace(_END, "\t\treturn stale = changed;\n")
    )


def split_source(source: str, count: int) -> list[str]:
    """The source as up to `count` sources of like size.

    Raises `ValueError` for text that is not as write_cxxrtl writes it.
    """
    start, end = source.find(_NAMESPACE), source.rfind(_CLOSE)
    if start < 0 or end < 0:
        raise ValueError("cannot read CXXRTL's output: there is no namespace cxxrtl_design")
    start += len(_NAMESPACE)
    functions = [part + "\n}\n" for part in source[start:end].split("\n}\n") if part.strip()]
    groups: list[list[str]] = [[] for _ in range(min(count, len(functions)))]
    sizes = [0] * len(groups)
    for function in sorted(functions, key=len, reverse=True):
        smallest = sizes.index(min(sizes))
        groups[smallest].append(function)
        sizes[smallest] += len(function)
    head, rest = source[:start], source[end + len(_CLOSE) :]
    return [
        head + "".join(group) + _CLOSE + ("" if number else rest)
        for number, group in enumerate(groups)
    ]
