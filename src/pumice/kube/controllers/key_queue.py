"""A queue of keys: each is handled once at a time and not too often, again after failures, and at given times."""

from __future__ import annotations

import asyncio
from collections.abc import Hashable
from typing import Generic, TypeVar

from pumice.kube.api.backoff import Backoff

Key = TypeVar("Key", bound=Hashable)


class KeyQueue(Generic[Key]):
    """Belongs to one event loop. A key that is added while it is handled comes again afterwards."""

    def __init__(self, retry_first_s: float = 0.1, retry_last_s: float = 60.0) -> None:
        self._retry_first_s, self._retry_last_s = retry_first_s, retry_last_s
        self._ready: dict[Key, None] = {}
        self._busy: dict[Key, bool] = {}  # -> whether it was added meanwhile
        self._timers: dict[Key, asyncio.TimerHandle] = {}
        self._rests: dict[Key, asyncio.TimerHandle] = {}
        self._backoffs: dict[Key, Backoff] = {}
        self._something = asyncio.Event()

    def __len__(self) -> int:
        """Number of keys that are ready, being handled or at rest. Keys that wait for a time are not counted."""
        return len(self._ready) + len(self._busy)

    @property
    def failing(self) -> int:
        """Number of keys that failed when they were last handled."""
        return len(self._backoffs)

    def add(self, key: Key) -> None:
        if key in self._busy:
            self._busy[key] = True
            return
        self._ready[key] = None
        self._something.set()

    def later(self, key: Key, after_s: float) -> None:
        """Add a key after a time. Of several times the earliest counts."""
        loop = asyncio.get_running_loop()
        when = loop.time() + max(after_s, 0.0)
        timer = self._timers.get(key)
        if timer is not None and timer.when() <= when:
            return
        if timer is not None:
            timer.cancel()
        self._timers[key] = loop.call_at(when, self._due, key)

    async def take(self) -> Key:
        """Return the next key, in the order of adding. It must be returned by ``done`` or ``failed``."""
        while not self._ready:
            self._something.clear()
            await self._something.wait()
        key = next(iter(self._ready))
        del self._ready[key]
        self._busy[key] = False
        return key

    def done(self, key: Key, rest_s: float = 0.0) -> None:
        """The key is handled. It comes again after ``rest_s`` at the earliest, however often it is added."""
        self._backoffs.pop(key, None)
        if rest_s > 0:
            self._rests[key] = asyncio.get_running_loop().call_later(rest_s, self._rested, key)
        else:
            self._give_back(key)

    def failed(self, key: Key) -> float:
        """Try the key again later. Return in how many seconds."""
        backoff = self._backoffs.setdefault(key, Backoff(self._retry_first_s, self._retry_last_s))
        delay = backoff.next()
        self._busy[key] = False  # additions meanwhile have to wait, too
        self._give_back(key)
        self.later(key, delay)
        return delay

    def close(self) -> None:
        for timers in (self._timers, self._rests):
            for timer in timers.values():
                timer.cancel()
            timers.clear()

    def _give_back(self, key: Key) -> None:
        if self._busy.pop(key):
            self.add(key)

    def _rested(self, key: Key) -> None:
        del self._rests[key]
        self._give_back(key)

    def _due(self, key: Key) -> None:
        del self._timers[key]
        self.add(key)
