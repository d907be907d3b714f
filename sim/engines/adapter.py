"""The text of `dut.h`: one engine's C++ class of a core behind the face that harness.cpp wants."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .ports import ACTIVITY_PORT, Port, tells_activity

__all__ = ["Dialect", "adapter_header"]

HALF_PERIOD_NS = 5


@dataclass(frozen=True)
class Dialect:
    """What differs between engines, as C++.

    Parameters
    ----------
    includes : lines before everything else.
    member : name of a port in the class of the core.
    set_value, get_value : format strings of statements with {member} and {value}.
    set_beat, get_beat : the same for bus data, which is an array of 32-bit words.
    low, high : statements that settle logic with the clock low, and make the rising edge.
    fields : declarations of the core and what it needs, the core as `top`.
    trace, dump, finish : statements that open the waveform file `path`, write the moment `now`
        (in ns) into it, and close it; empty without waveforms.
    """

    includes: str
    member: Callable[[str], str]
    set_value: str
    get_value: str
    set_beat: str
    get_beat: str
    low: str
    high: str
    fields: str
    trace: str = ""
    dump: str = ""
    finish: str = ""


def _block(lines: Sequence[str]) -> str:
    return "\n".join(f"        {line}" for text in lines for line in text.splitlines())


def adapter_header(dialect: Dialect, ports: Sequence[Port], probes: Sequence[Port]) -> str:
    """`dut.h` for these ports and further outputs."""
    settle, sample = [], []
    for port in ports:
        member = f"top.{dialect.member(port.name)}"
        if port.is_input:
            pattern = dialect.set_beat if port.is_beat else dialect.set_value
            settle.append(pattern.format(member=member, value=f"in.{port.name}"))
        else:
            pattern = dialect.get_beat if port.is_beat else dialect.get_value
            sample.append(pattern.format(member=member, value=f"out.{port.name}"))
    for name, value in (("rst", "uint64_t(reset)"), ("clk", "uint64_t(0)")):
        member = f"top.{dialect.member(name)}"
        settle.append(dialect.set_value.format(member=member, value=value))
    probe = [
        dialect.get_value.format(member=f"top.{dialect.member(port.name)}", value=f"values[{i}]")
        for i, port in enumerate(probes)
    ]
    activity = ""
    if tells_activity(probes):
        member = f"top.{dialect.member(ACTIVITY_PORT)}"
        activity = dialect.get_value.format(member=member, value="bits")
    clock = f"top.{dialect.member('clk')}"
    high = [dialect.set_value.format(member=clock, value="uint64_t(1)"), dialect.high]
    names = ",".join(port.name for port in probes)
    return f"""// Made by sim/engines/adapter.py.
#pragma once
{dialect.includes}

#include <cstdint>
#include <cstring>

#include "glue.h"

namespace mxu {{

class Dut {{
public:
    Dut() = default;

    ~Dut() {{
{_block([dialect.finish])}
    }}

    void settle(const Inputs &in, bool reset) {{
{_block([*settle, dialect.low])}
        dump();
    }}

    void sample(Outputs &out) const {{
{_block(sample)}
    }}

    void probe(uint64_t *values) const {{
        (void)values;
{_block(probe)}
    }}

    uint64_t activity() const {{
        uint64_t bits = 0;
{_block([activity])}
        return bits;
    }}

    static const char *probe_names() {{ return "{names}"; }}

    void clock() {{
{_block(high)}
        dump();
    }}

    void trace(const char *path) {{
        (void)path;
{_block([dialect.trace])}
    }}

private:
    void dump() {{
        uint64_t now = {HALF_PERIOD_NS} * moment++;
        (void)now;
{_block([dialect.dump])}
    }}

    uint64_t moment = 0;
{_block([dialect.fields])}
}};

}} // namespace mxu
"""
