"""Arguments of plugins that are lengths of time."""

from __future__ import annotations

from collections.abc import Iterator

from pumice.model.quantity import DurationError, parse_days

# The bound of an estimate as well: beyond it a plan says nothing.
_MAX_S = 366 * 86_400.0


def seconds_of(text: str) -> float:
    """Return the seconds of an argument that ``wrong_seconds`` found right."""
    return parse_days(text)


def wrong_seconds(name: str, text: str, least: float = 1) -> Iterator[str]:
    """Yield what is wrong with an argument that must be a duration from ``least`` seconds to a year."""
    try:
        found = parse_days(text)
    except DurationError as error:
        yield f"argument {name}: {error}"
        return
    if not least <= found <= _MAX_S:
        yield f"argument {name}: found {text!r}, wanted {least:g}s to {_MAX_S / 86_400:.0f}d"
