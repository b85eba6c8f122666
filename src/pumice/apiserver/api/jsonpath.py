"""JSONPath of printer columns: fields, indices, wildcards, and filters for one equal value."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

_PART = re.compile(
    r"\.(?P<field>[\w-]+|\*)"
    r"|\[(?P<index>-?\d{1,9}|\*)\]"
    r"|\['(?P<quoted>[^']*)'\]"
    r"|\[\?\(@\.(?P<left>[\w.-]+)\s*==\s*[\"'](?P<right>[^\"']*)[\"']\)\]"
)
_Part = tuple[str, str, str]  # kind, name, value


@lru_cache(maxsize=1024)
def _parts(path: str) -> tuple[_Part, ...] | None:
    """Return the parts of a path, or None if it is invalid."""
    found: list[_Part] = []
    text = path.strip("{}").replace("\\.", "\0")
    text = text if text.startswith((".", "[")) else f".{text}"
    at = 0
    while at < len(text):
        match = _PART.match(text, at)
        if match is None:
            return _escaped(text)
        at = match.end()
        kind = str(match.lastgroup)
        found.append(("filter", match["left"], match["right"]) if kind == "right" else (kind, match[kind], ""))
    return tuple(found)


def _escaped(text: str) -> tuple[_Part, ...] | None:
    r"""Return a path whose names contain dots, written ``\.``."""
    if "\0" not in text or "[" in text:
        return None
    return tuple(("field", name.replace("\0", "."), "") for name in text.split(".") if name)


def lookup(obj: Any, path: str) -> list[Any]:
    """Return every value at a path, in order."""
    parts = _parts(path)
    if parts is None:
        return []
    found = [obj]
    for part in parts:
        found = [below for each in found for below in _step(each, part)]
    return found


def _step(value: Any, part: _Part) -> list[Any]:
    kind, name, wanted = part
    if isinstance(value, dict):
        if kind in ("field", "quoted"):
            return list(value.values()) if name == "*" else [value[name]] if name in value else []
        return []
    if not isinstance(value, list):
        return []
    if kind == "index" and name != "*":
        return value[int(name) :][:1]
    if kind == "filter":
        return [item for item in value if lookup(item, f".{name}") == [wanted]]
    return list(value) if name == "*" else []
