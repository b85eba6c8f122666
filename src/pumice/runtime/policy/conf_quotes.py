"""Hints about numbers and switches in quotes: YAML reads them as text, which a message with the value does not show."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

_NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?")
_SWITCH = ("true", "false")


def hint_on_quotes(document: Any, problem: str) -> str:
    """Return what to add to a problem of ``read_policy`` about such a value: that it is in quotes; "" for others."""
    for place, text in _quoted(document):
        if f"{place}: found {text!r}, wanted" in problem:
            return f": the quotes make it a string; write {text}"
    return ""


def _quoted(document: Any) -> Iterator[tuple[str, str]]:
    """Yield (place, text) of each text in arguments and switches that would have another type without quotes."""
    for where, entry in _entries(document):
        for key, value in entry.items():
            if _is_quoted(value):
                yield f"{where}: {key}", value
        arguments = entry.get("arguments")
        for key, value in arguments.items() if isinstance(arguments, Mapping) else ():
            if _is_quoted(value):
                yield f"{where}: argument {key}", value


def _entries(document: Any) -> Iterator[tuple[str, Mapping[Any, Any]]]:
    """Yield plugins and configurations with their places."""
    for tier in _list(document, "tiers"):
        for plugin in _list(tier, "plugins"):
            if isinstance(plugin, Mapping):
                yield f"({plugin.get('name')})", plugin
    for entry in _list(document, "configurations"):
        if isinstance(entry, Mapping):
            yield f"configurations: {entry.get('name')}", entry


def _list(holder: Any, key: str) -> list[Any]:
    found = holder.get(key) if isinstance(holder, Mapping) else None
    return found if isinstance(found, list) else []


def _is_quoted(value: Any) -> bool:
    return isinstance(value, str) and (value.lower() in _SWITCH or _NUMBER.fullmatch(value) is not None)
