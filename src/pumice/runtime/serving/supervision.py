"""Parts that run forever side by side: a fault in one object is logged and ends nothing."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple

_REPORTED_MAX = 20
_SHOWN_MAX = 200


class Health(NamedTuple):
    """Whether a part works, and a note about it."""

    well: bool = True
    note: str = ""


class SkippedObjects:
    """Objects that a part skipped because of faults. Each is logged once per fault."""

    def __init__(self, log: logging.Logger, part: str) -> None:
        self._log, self._part = log, part
        self.count = 0
        self._last = ""

    @contextmanager
    def guard(self, what: str) -> Iterator[None]:
        """Log a fault with the named object, and continue after the block."""
        try:
            yield
        except Exception as error:
            self.count += 1
            self._last = f"{what}: {type(error).__name__}: {error}"[:_SHOWN_MAX]
            if self.count <= _REPORTED_MAX:
                last = " (further errors are only counted)" if self.count == _REPORTED_MAX else ""
                self._log.exception("%s: %s is skipped because of an internal error%s", self._part, what, last)

    @property
    def note(self) -> str:
        """A note, "" if no object was skipped."""
        return f"objects skipped: {self.count}, the last {self._last}" if self.count else ""


class SupervisedTask:
    """A part that should run forever. If it ends, it is started again, at first soon, then after longer times.

    ``work``: called for each start; no start after ``stop`` is set. It counts as well again once it has run for
    ``steady_s``.
    """

    def __init__(
        self,
        log: logging.Logger,
        name: str,
        work: Callable[[], Awaitable[None]],
        *,
        stop: asyncio.Event | None = None,
        first_s: float = 0.2,
        last_s: float = 30.0,
        steady_s: float = 5.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.name = name
        self._log, self._work, self._stop = log, work, stop or asyncio.Event()
        self._first_s, self._last_s, self._steady_s, self._clock = first_s, last_s, steady_s, clock
        self._why = ""
        self._since: float | None = None  # of the present run

    async def run(self) -> None:
        """Run until cancelled, or until the part ends after ``stop``."""
        delay_s = self._first_s
        while not self._stop.is_set():
            self._since = self._clock()
            try:
                await self._work()
                self._why = "it ended"
            except Exception as error:
                self._why = f"{type(error).__name__}: {error}"[:_SHOWN_MAX]
                self._log.exception("%s stopped", self.name)
            if self._clock() - self._since >= self._steady_s:
                delay_s = self._first_s
            self._since = None
            if not self._stop.is_set():
                self._log.warning("%s restarts in %.1f s", self.name, delay_s)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stop.wait(), delay_s)
            delay_s = min(2 * delay_s, self._last_s)

    def health(self) -> Health:
        if not self._why:
            return Health()
        if self._since is not None and self._clock() - self._since >= self._steady_s:
            return Health(True, f"it was restarted after {self._why}")
        return Health(False, self._why)
