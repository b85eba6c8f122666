"""Text that comes from users, as it may be shown: names are made to move cursors, and to look like lines of ours."""

from __future__ import annotations

import json
from typing import Any


def escaped(text: str) -> str:
    """On one line, and nothing in it moves a cursor."""
    return text if text.isprintable() else "".join(map(_escaped, text))


def escaped_lines(text: str) -> str:
    """The same, where lines are meant."""
    return text if text.isprintable() else "\n".join(map(escaped, text.split("\n")))


def _escaped(char: str) -> str:
    if char.isprintable():
        return char
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def json_text(value: Any, indent: int | None = None, *, dense: bool = False) -> str:
    """JSON, every character of which may be printed: others are written as ``\\uXXXX``, which means the same.

    ``dense``: without spaces. Raises: ValueError for a number that JSON has not.
    """
    separators = (",", ":") if dense else None
    text = json.dumps(value, indent=indent, ensure_ascii=False, allow_nan=False, separators=separators)
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() or char == "\n" else json.dumps(char)[1:-1] for char in text)
