"""Wrong input to the framework, and plugins that fail while they are asked."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from difflib import get_close_matches
from typing import Any

_SHOWN_MAX = 200

#: A function at a point. Only its point knows what it takes and what it answers.
HookFunction = Callable[..., Any]


class PluginError(Exception):
    """A plugin cannot be used as it is written."""


class PolicyError(ValueError):
    """A conf file cannot be used. ``problems``: all that were found, each with the place, what was found and what was
    wanted."""

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(self.problems))


class WrongAnswer(Exception):
    """A hook gave an answer that its point cannot use."""

    def __init__(self, hook: HookFunction, answer: object, wanted: str) -> None:
        self.hook = hook
        super().__init__(f"answered {in_short(repr(answer))}, wanted {wanted}")


def in_short(text: object) -> str:
    """Return a text of another program on one line, cut to a bounded length."""
    # A text with line breaks would look like several lines of a log.
    shown = " ".join(str(text).split())
    return shown if len(shown) <= _SHOWN_MAX else shown[:_SHOWN_MAX] + "…"


def problem_of(error: Exception) -> str:
    """Return an exception of a plugin on one line, with its type. If an attribute of an object of Pumice is missing,
    the attributes that exist are listed, those with a similar name first."""
    # Only for Pumice's objects: a list of what the plugin's own objects have would not help its author.
    if isinstance(error, AttributeError) and type(error.obj).__module__.startswith("pumice.") and error.name:
        known = [name for name in dir(error.obj) if not name.startswith("_")]
        # The near ones first and then all: a list alone would hide a misspelling among dozens of names.
        near = get_close_matches(error.name, known, n=3, cutoff=0.6)
        names = ", ".join([*near, *(name for name in known if name not in near)])
        return f"{type(error.obj).__name__} has no {error.name!r:.40}; it has {names}"
    return f"{type(error).__name__}: {in_short(error)}"


class PluginFault(Exception):
    """A plugin raised, or gave an answer that cannot be used. The job that was asked about is skipped.

    ``hook``: name of the function. ``where``: file and line that raised.
    """

    def __init__(self, plugin: str, point: str, hook: str, where: str, problem: str) -> None:
        self.plugin, self.point, self.hook, self.where, self.problem = plugin, point, hook, where, problem
        super().__init__(f"plugin {plugin}, {hook} at {point} ({where}): {problem}")


def did_you_mean(found: str, known: Iterable[str]) -> str:
    """Return ``; did you mean "x"?`` for the nearest known name, or the list of known names."""
    # Sorted before the search: of equally near names the first is suggested, and a set has no fixed order.
    known = sorted(known)
    near = get_close_matches(found, known, n=1, cutoff=0.6)
    if near:
        return f'; did you mean "{near[0]}"?'
    return f"; known: {', '.join(known)}" if known else ""
