"""Who is told of each phase of a cycle as it begins: the core reads no clock, so that the shell does the timing."""

from __future__ import annotations

from collections.abc import Callable

Observer = Callable[[str], None]


def nobody(phase: str) -> None:
    """The observer of a cycle that nobody watches."""
