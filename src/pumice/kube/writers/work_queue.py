"""A lane: work that any thread hands over and a few tasks on the event loop carry out."""

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
    """A bounded queue with workers: oldest first, one item a key, and never two at once of the same key.

    ``put`` may be called from any thread and returns at once. An item of a key that waits already takes its place: only
    the newest is wanted. ``do`` deals with everything that goes wrong by itself; what escapes it is logged.
    """

    def __init__(self, name: str, do: Callable[[T], Awaitable[None]], *, workers: int, waiting_max: int) -> None:
        self.name = name
        self.waiting_max = waiting_max
        self._do = do
        self._workers = workers
        self._lock = Lock()
        self._waiting: OrderedDict[str, T] = OrderedDict()  # a dict looks for its first key past all that were taken
        self._in_work: set[str] = set()
        self._later = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._news = asyncio.Event()
        self._told = False  # that there is news; spares a call into the loop for each item
        self._settled = asyncio.Event()

    def __len__(self) -> int:
        """How many items wait."""
        return len(self._waiting)

    @property
    def left(self) -> int:
        """How many items wait, are under way, or will come back later."""
        return len(self._waiting) + len(self._in_work) + self._later

    def put(self, key: str, item: T) -> bool:
        """Hand an item over. False: the lane is full, and nothing was done."""
        with self._lock:
            if key not in self._waiting and len(self._waiting) >= self.waiting_max:
                return False
            self._waiting[key] = item
            must_tell, self._told = not self._told, True
        if must_tell and self._loop is not None:
            self._loop.call_soon_threadsafe(self._news.set)
        return True

    def put_later(self, key: str, item: T, delay_s: float) -> None:
        """Hand an item over in a while. On the loop only. Never refused: it has been let in before."""
        self._later += 1
        asyncio.get_running_loop().call_later(delay_s, self._back, key, item)

    def _back(self, key: str, item: T) -> None:
        self._later -= 1
        with self._lock:
            self._waiting.setdefault(key, item)
            self._told = True
        self._news.set()

    async def run(self) -> None:
        """Work until cancelled."""
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
        """The oldest item whose key is not under way; none: sleep until there is news."""
        with self._lock:
            key = next((key for key in self._waiting if key not in self._in_work), None)
            if key is None:
                self._told = False
                self._news.clear()
                return None
            self._in_work.add(key)
            return key, self._waiting.pop(key)
