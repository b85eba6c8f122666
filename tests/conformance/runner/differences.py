"""Comparing what was found with what was expected, and saying where they differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from typing import Any

_SHOWN_MAX = 4
_ABSENT = "nothing"


class Differences:
    """Differences found so far, each a line."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def __bool__(self) -> bool:
        return bool(self.lines)

    @property
    def text(self) -> str:
        more = len(self.lines) - _SHOWN_MAX
        return "; ".join(self.lines[:_SHOWN_MAX]) + (f"; and {more} more differences" if more > 0 else "")

    def value(self, what: str, expected: Any, found: Any) -> None:
        if expected != found:
            self.lines.append(f"{what}: expected {_shown(expected)}, found {_shown(found)}")

    def mapping(self, what: str, expected: Mapping[str, Any], found: Mapping[str, Any]) -> None:
        """Exactly the same keys with the same values."""
        for key in sorted(expected.keys() | found.keys()):
            self.value(f"{what} of {key}", expected.get(key, _ABSENT), found.get(key, _ABSENT))

    def multiset(self, what: str, expected: Iterable[Hashable], found: Iterable[Hashable]) -> None:
        """The same values, each as often, in whatever order."""
        if Counter(expected_list := list(expected)) != Counter(found_list := list(found)):
            self.value(what, sorted(expected_list, key=str), sorted(found_list, key=str))

    def numbers(self, what: str, expected: Mapping[str, float], found: Mapping[str, float], eps: float) -> None:
        """The same keys with values within ``eps``; a key that is not there means 0."""
        for key in sorted(expected.keys() | found.keys()):
            a, b = float(expected.get(key, 0.0)), float(found.get(key, 0.0))
            if not abs(a - b) <= eps:
                self.lines.append(f"{what} of {key}: expected {a:g}, found {b:g}")


def _shown(value: Any) -> str:
    return value if isinstance(value, str) and value == _ABSENT else repr(value)
