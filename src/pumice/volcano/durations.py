"""Arguments of plugins that are durations: what they are worth, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Iterator

from pumice.model.quantity import duration_or, duration_or_none


def argument_s(text: str, default: str) -> float:
    """Return seconds of an argument, 0 or more; of what is no duration, those of the default."""
    return max(0.0, duration_or(text, duration_or(default, 0.0)))


def duration_problems(argument: str, text: str, default: str, such_as: str = "") -> Iterator[str]:
    """Yield that an argument is no duration. ``such_as``: an example, where there is no default."""
    if text != default and duration_or_none(text) is None:
        instead = f"it is {default}" if default else "there is none"
        yield f"argument {argument}: found {text[:80]!r}, wanted a duration such as {default or such_as}; {instead}"
