"""Components of which a design holds many equal ones: converted to text once, then instantiated.

Amaranth converts every instance anew, which takes most of the time for an array of sub-arrays.
`Sharing` stands in for a platform while `hdl.emit` converts a design; simulators give none, and
then `shared` is an ordinary constructor.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

from amaranth.hdl import ClockSignal, Fragment, Instance, ResetSignal
from amaranth.lib import wiring
from amaranth.lib.wiring import In

__all__ = ["Sharing", "Template", "shared", "target"]


@dataclass(frozen=True)
class Template:
    """A component that is converted once.

    Parameters
    ----------
    name : its module's name, different from all others of the design.
    component : the only one that is elaborated.
    """

    name: str
    component: wiring.Component


@dataclass
class Sharing:
    """What a design shares.

    Parameters
    ----------
    top : name of the top module; names of templates start with it.
    platform : what the design is made for, if anything.
    templates : what was asked for so far, in that order.
    """

    top: str
    platform: object = None
    templates: dict[Hashable, Template] = field(default_factory=dict)

    def template(self, make: Callable[..., wiring.Component], arguments: tuple) -> Template:
        key = (make, *arguments)
        if key not in self.templates:
            stem = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", make.__name__).lower()
            name = f"{self.top}.{stem}"
            taken = {template.name for template in self.templates.values()}
            count = 1
            while name in taken:
                count += 1
                name = f"{self.top}.{stem}{count}"
            self.templates[key] = Template(name, make(*arguments))
        return self.templates[key]


class _Copy(wiring.Component):
    """An instance of a template, with the same members."""

    def __init__(self, template: Template):
        self.template = template
        super().__init__(template.component.signature)

    def elaborate(self, platform: object) -> Fragment:
        ports = {"i_clk": ClockSignal(), "i_rst": ResetSignal()}
        for path, member, value in self.signature.flatten(self):
            direction = "i" if member.flow is In else "o"
            ports[f"{direction}_{'__'.join(map(str, path))}"] = value
        return Instance(self.template.name, **ports)


def target(platform: object) -> object:
    """What the design is made for: the platform itself, or that for which `Sharing` stands in."""
    return platform.platform if isinstance(platform, Sharing) else platform


def shared(
    platform: object, make: Callable[..., wiring.Component], *arguments: Hashable
) -> wiring.Component:
    """`make(*arguments)`, or while text is made an instance of the one that is converted.

    Use only the members of its signature. Shared components inside it are not shared further.
    """
    if not isinstance(platform, Sharing):
        return make(*arguments)
    return _Copy(platform.template(make, arguments))
