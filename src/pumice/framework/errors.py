"""Wrong input at the framework's edge."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class PluginError(Exception):
    """A plugin that cannot be used as it is written."""


class PolicyError(ValueError):
    """A conf file that cannot be used; carries every problem found, each saying where, what was found and what was
    wanted."""

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(self.problems))


def did_you_mean(found: str, known: Iterable[str]) -> str:
    """``; did you mean "x"?`` for the nearest known name, else the list of known names."""
    known = sorted(known)
    near = get_close_matches(found, known, n=1, cutoff=0.6)
    if near:
        return f'; did you mean "{near[0]}"?'
    return f"; known: {', '.join(known)}" if known else ""
