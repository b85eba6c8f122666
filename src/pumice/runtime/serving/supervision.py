"""Work that goes on for ever beside others: what one object or one fault does to it is told, and ends nothing."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple

_SPARED_TOLD_MAX = 20
_SHOWN_MAX = 200


class Health(NamedTuple):
    """Whether a part is at work, and what there is to say about it."""

    well: bool = True
    note: str = ""


class Spared:
    """Objects that a part could not deal with: it left them alone and went on. Each is told once for each fault."""

    def __init__(self, log: logging.Logger, part: str) -> None:
        self._log, self._part = log, part
        self.count = 0
        self._last = ""

    @contextmanager
    def whatever(self, what: str) -> Iterator[None]:
        """What goes wrong in here with the object that is named is told, and ends here."""
        try:
            yield
        except Exception as error:
            self.count += 1
            self._last = f"{what}: {type(error).__name__}: {error}"[:_SHOWN_MAX]
            if self.count <= _SPARED_TOLD_MAX:
                last = " (further errors are only counted)" if self.count == _SPARED_TOLD_MAX else ""
                self._log.exception("%s: %s is skipped because of an internal error%s", self._part, what, last)

    @property
    def note(self) -> str:
        """Empty where there were none."""
        return f"objects skipped: {self.count}, the last {self._last}" if self.count else ""


class Supervised:
    """A part that is to run for ever. Where it ends it is started again, at first soon, then after a longer while.

    ``work`` is called for each start; none comes after ``stop`` is set. It counts as well again once it has run for
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
        self._since: float | None = None  # of the start that is running

    async def run(self) -> None:
        """Until cancelled, or until it ends after ``stop``."""
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
