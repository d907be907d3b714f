"""`FIELD=VALUE` texts of command lines, applied to a Config (pure Python)."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from .config import Config, ConfigError

__all__ = ["apply_settings"]


_SWITCHES = {"true": True, "false": False}


def _number(field: str, text: str) -> int:
    try:
        return int(text, 0)
    except ValueError:
        raise ConfigError(
            f"{field} = {text!r} is not a whole number: write it like 16 or 0x10"
        ) from None


def _names(text: str) -> tuple[str, ...]:
    return tuple(name for name in (part.strip() for part in text.split(",")) if name)


def _value(field: dataclasses.Field, text: str) -> object:
    """`text` as the type that the Config declares for `field`."""
    if field.type == "int":
        return _number(field.name, text)
    if field.type == "bool":
        if text.lower() not in _SWITCHES:
            raise ConfigError(f"{field.name} = {text!r}: write {' or '.join(_SWITCHES)}")
        return _SWITCHES[text.lower()]
    if field.type.startswith("tuple"):
        return _names(text)
    if field.type.startswith("Mapping"):
        pairs = [item.partition(":") for item in _names(text)]
        if not all(colon for _, colon, _ in pairs):
            raise ConfigError(f"{field.name} = {text!r}: write it like {field.name}=bf16:40")
        return {name: _number(f"{field.name}.{name}", bits) for name, _, bits in pairs}
    return text


def apply_settings(cfg: Config, settings: Iterable[str]) -> Config:
    """`cfg` with `FIELD=VALUE` texts applied together, checked once.

    Numbers may be hexadecimal (0x7c0), lists are separated by commas (formats=int8,fp16), one
    entry of a mapping is set by its name (window.bf16=40). Raises `ConfigError`.
    """
    fields = {field.name: field for field in dataclasses.fields(Config) if field.name != "name"}
    changes: dict[str, object] = {}
    for setting in settings:
        name, equals, text = (part.strip() for part in setting.partition("="))
        if not equals or not name:
            raise ConfigError(f"{setting!r} is not of the form FIELD=VALUE, such as slots=4")
        name, dot, entry = name.partition(".")
        field = fields.get(name)
        if field is None:
            raise ConfigError(f"unknown field {name!r}: choose one of {', '.join(fields)}")
        if not dot:
            changes[name] = _value(field, text)
        elif field.type.startswith("Mapping"):
            old = changes.get(name, getattr(cfg, name))
            changes[name] = {**old, entry: _number(f"{name}.{entry}", text)}
        else:
            raise ConfigError(f"{name} has no entries: write {name}=VALUE")
    return cfg.replace(**changes) if changes else cfg
