"""Lengths of time in manifests: ``pumice.dev/duration: "90m"`` and ``pumice.dev/arrival: "5m"``."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from pumice.model.quantity import DurationError, parse_days

DURATION_ANNOTATION = "pumice.dev/duration"  # how long a job (or a pod on its own) runs once it has started
ARRIVAL_ANNOTATION = "pumice.dev/arrival"  # when it comes, from the start of the simulation on

#: A hundred years. In a clock that counts seconds in a float, much longer spans would swallow a second.
SPAN_MAX_S = 100 * 365.25 * 86400


class SpanError(ValueError):
    """An annotation is not a usable length of time."""


@lru_cache(maxsize=4096)
def parse_span(text: str) -> float:
    """Return seconds of a duration such as ``90m`` or ``2d`` from 0 to a hundred years.

    Raises: SpanError with what was found and what is wanted.
    """
    try:
        seconds = parse_days(text)
    except DurationError as error:
        raise SpanError(str(error)) from None
    if not 0 <= seconds <= SPAN_MAX_S:
        raise SpanError(f"{text!r} is not from 0 to 100 years")
    return seconds


def seconds_of(annotations: Mapping[str, str], key: str) -> float | None:
    """Return the span in an annotation, or None if it is absent or unusable (``span_problem`` reports that)."""
    text = annotations.get(key)
    if text is None:
        return None
    try:
        return parse_span(text)
    except SpanError:
        return None


def span_problem(annotations: Mapping[str, str], key: str) -> str | None:
    """Return what is wrong with a span annotation, or None."""
    text = annotations.get(key)
    if text is None:
        return None
    try:
        parse_span(text)
    except SpanError as error:
        return f"annotation {key}: {error}"
    return None
