"""How long to wait before the next attempt, and how often to try at most."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable


class Backoff:
    """Delays that double from ``first_s`` to ``last_s``, each shortened at random by up to half."""

    __slots__ = ("_first_s", "_last_s", "_next_s")

    def __init__(self, first_s: float, last_s: float) -> None:
        self._first_s, self._last_s = first_s, last_s
        self._next_s = first_s

    def next(self, at_least_s: float | None = None) -> float:
        """Return the next delay, at least what the server asked for (at most ten times ``last_s``)."""
        delay = self._next_s * (0.5 + random.random() / 2)
        self._next_s = min(self._next_s * 2, self._last_s)
        return max(delay, min(at_least_s or 0.0, 10 * self._last_s))

    def reset(self) -> None:
        self._next_s = self._first_s


class TokenBucket:
    """At most ``rate`` per second in the long run, and ``burst`` at once. ``rate`` 0: no limit."""

    __slots__ = ("_burst", "_clock", "_rate", "_time", "_tokens")

    def __init__(self, rate: float, burst: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._burst, self._clock = rate, max(burst, 1.0), clock
        self._tokens, self._time = self._burst, clock()

    def wait_s(self) -> float:
        """Take a token, possibly in advance. Return how long to wait until it exists."""
        if self._rate <= 0:
            return 0.0
        now = self._clock()
        self._tokens = min(self._burst, self._tokens + (now - self._time) * self._rate) - 1.0
        self._time = now
        return 0.0 if self._tokens >= 0 else -self._tokens / self._rate

    def try_take(self) -> bool:
        """Take a token and return True if there is one."""
        if self.wait_s() == 0.0:
            return True
        self._tokens += 1.0
        return False

    async def take(self) -> None:
        delay = self.wait_s()
        if delay > 0:
            await asyncio.sleep(delay)
