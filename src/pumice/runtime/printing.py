"""Make text from users safe to show: a name may try to move cursors, or to look like one of our lines."""

from __future__ import annotations

import json
from typing import Any


def escaped(text: str) -> str:
    """Return the text on one line, without characters that move a cursor."""
    return text if text.isprintable() else "".join(map(_escaped, text))


def escaped_lines(text: str) -> str:
    """Return the text with its lines, each escaped."""
    return text if text.isprintable() else "\n".join(map(escaped, text.split("\n")))


def _escaped(char: str) -> str:
    if char.isprintable():
        return char
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def json_text(value: Any, indent: int | None = None, *, dense: bool = False) -> str:
    r"""Return JSON of printable characters only; others are written as ``\uXXXX``, which is equivalent.

    ``dense``: without spaces. Raises: ValueError for a number that JSON does not have.
    """
    separators = (",", ":") if dense else None
    text = json.dumps(value, indent=indent, ensure_ascii=False, allow_nan=False, separators=separators)
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() or char == "\n" else json.dumps(char)[1:-1] for char in text)
