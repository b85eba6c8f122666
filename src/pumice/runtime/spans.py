"""Lengths of time as users write them: ``90``, ``90s``, ``1h30m``, ``7d``."""

from __future__ import annotations

from pumice.model.quantity import DurationError, parse_duration

_DAY_S = 86_400.0
_SPAN_MAX_S = 100 * 365.25 * _DAY_S
SPAN_WANTED = "wanted a time above 0 such as 90s, 1h30m or 7d"


def span_seconds(text: str) -> float:
    """Return the seconds of a length of time. Raises: ValueError for what is none, is not above 0, or is over a
    century."""
    written = text.strip()
    try:
        seconds = _plain(written)
        if seconds is None:
            seconds = parse_duration(written)
    except DurationError:
        seconds = -1.0
    if not 0 < seconds <= _SPAN_MAX_S:
        raise ValueError(f"found {written[:40]!r}, {SPAN_WANTED}")
    return seconds


def _plain(text: str) -> float | None:
    """Seconds as a bare number, or days; None for anything else."""
    number, factor = (text[:-1], _DAY_S) if text.endswith("d") else (text, 1.0)
    try:
        return float(number) * factor
    except ValueError:
        return None
