"""Cuts a finding down: pieces are left out as long as the same law stays broken."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

TRIES_MAX = 120
Case = dict[str, Any]


def shrunk(case: Case, problems: Callable[[Case], list[str]], wanted: str) -> Case:
    """The smallest case that was found, in so many tries, to break the same law.

    ``problems``: the signs of what a case breaks; ``wanted`` is one of them.
    """
    tries = TRIES_MAX
    shrinks = True
    while shrinks and tries > 0:
        shrinks = False
        for smaller in _smaller(case):
            tries -= 1
            if tries <= 0:
                break
            if wanted in problems(smaller):
                case, shrinks = smaller, True
                break
    return case


def _smaller(case: Case) -> Iterator[Case]:
    """The case without some part: large parts first."""
    if "requests" in case:
        yield from (case | {"requests": left} for left in _without(case["requests"]))
        return
    for name, text in case["files"].items():
        mark = "\n---\n" if "\n---\n" in text else "\n"
        for left in _without(text.split(mark)):
            files = copy.copy(case["files"])
            files[name] = mark.join(left)
            yield case | {"files": files}


def _without(parts: list[Any]) -> Iterator[list[Any]]:
    size = len(parts) // 2
    while size:
        for start in range(0, len(parts), size):
            yield parts[:start] + parts[start + size :]
        size //= 2
