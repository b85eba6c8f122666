"""Observers of a cycle, which are called at the beginning of each phase. The core reads no clock; the shell measures
time."""

from __future__ import annotations

from collections.abc import Callable

Observer = Callable[[str], None]


def unobserved(phase: str) -> None:
    """Ignore the phase: for a cycle without an observer."""
