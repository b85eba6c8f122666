"""End a simulation between two cycles on Ctrl-C, when its figures are consistent."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TypeVar

T = TypeVar("T")


@contextmanager
def stopped_by_ctrl_c(observe: Callable[[T], object] | None) -> Iterator[Callable[[T], None]]:
    """Yield an observer that raises KeyboardInterrupt after Ctrl-C, and passes on what it observes before that. A
    second Ctrl-C does not wait for the observer to be called."""
    asked = False

    def ask(number: int, frame: FrameType | None) -> None:
        nonlocal asked
        asked = True
        signal.signal(signal.SIGINT, signal.default_int_handler)

    def watch(now: T) -> None:
        if observe is not None:
            observe(now)
        if asked:
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, ask)
    try:
        yield watch
    finally:
        signal.signal(signal.SIGINT, before)
