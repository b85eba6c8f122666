"""A work queue: any thread hands work over, and a few tasks on the event loop carry it out."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from threading import Lock
from typing import Generic, TypeVar

_log = logging.getLogger("pumice.kube")

T = TypeVar("T")


class WorkQueue(Generic[T]):
    """A bounded queue with workers: oldest first, one item per key, and never two at once with the same key.

    ``put`` may be called from any thread and returns at once. An item whose key is waiting replaces the waiting item:
    only the newest is wanted. ``do`` handles all errors itself; what it raises is logged.
    """

    def __init__(self, name: str, do: Callable[[T], Awaitable[None]], *, workers: int, waiting_max: int) -> None:
        self.name = name
        self.waiting_max = waiting_max
        self._do = do
        self._workers = workers
        self._lock = Lock()
        # A plain dict would search past all removed keys for its first one.
        self._waiting: OrderedDict[str, T] = OrderedDict()
        self._in_work: set[str] = set()
        self._later = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._news = asyncio.Event()
        self._notified = False  # avoids a call into the loop for each item
        self._settled = asyncio.Event()

    def __len__(self) -> int:
        """Number of waiting items."""
        return len(self._waiting)

    @property
    def left(self) -> int:
        """Number of items that wait, are under way, or will come back later."""
        return len(self._waiting) + len(self._in_work) + self._later

    def put(self, key: str, item: T) -> bool:
        """Hand an item over. Return False if the queue is full and nothing was done."""
        with self._lock:
            if key not in self._waiting and len(self._waiting) >= self.waiting_max:
                return False
            self._waiting[key] = item
            must_tell, self._notified = not self._notified, True
        if must_tell and self._loop is not None:
            self._loop.call_soon_threadsafe(self._news.set)
        return True

    def put_later(self, key: str, item: T, delay_s: float) -> None:
        """Hand an item over after a time. On the loop only. Never refused, because it was accepted before."""
        self._later += 1
        asyncio.get_running_loop().call_later(delay_s, self._back, key, item)

    def _back(self, key: str, item: T) -> None:
        self._later -= 1
        with self._lock:
            self._waiting.setdefault(key, item)
            self._notified = True
        self._news.set()

    async def run(self) -> None:
        """Run until cancelled."""
        self._loop = asyncio.get_running_loop()
        self._news.set()
        async with asyncio.TaskGroup() as group:
            for _ in range(self._workers):
                group.create_task(self._work())

    async def empty(self) -> None:
        """Wait until nothing is left."""
        while self.left:
            self._settled.clear()
            await self._settled.wait()

    async def _work(self) -> None:
        while True:
            taken = self._take()
            if taken is None:
                await self._news.wait()
                continue
            key, item = taken
            try:
                await self._do(item)
            except Exception:
                _log.exception("%s: a fault of this program", self.name)
            finally:
                self._in_work.discard(key)
                if key in self._waiting:
                    self._news.set()
                if not self.left:
                    self._settled.set()

    def _take(self) -> tuple[str, T] | None:
        """Return the oldest item whose key is not under way, or None: sleep until there is news."""
        with self._lock:
            key = next((key for key in self._waiting if key not in self._in_work), None)
            if key is None:
                self._notified = False
                self._news.clear()
                return None
            self._in_work.add(key)
            return key, self._waiting.pop(key)
