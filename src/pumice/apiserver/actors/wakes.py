"""When objects are due to be examined again, though nothing about them changes until then."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator
from typing import Generic, TypeVar

K = TypeVar("K", str, tuple[str, str])


class Wakes(Generic[K]):
    """Times by key, at most one each: the earliest that was asked for since the key was due last. ``len``: of keys."""

    def __init__(self) -> None:
        self._due: dict[K, float] = {}
        self._heap: list[tuple[float, K]] = []  # in which only entries count that ``_due`` has too

    def __len__(self) -> int:
        return len(self._due)

    def add(self, key: K, at: float) -> None:
        """Note that a key is due at a time, in seconds of the clock."""
        # Each change of an object asks for the same time again, which must not pile up. Rounded, because the sum of a
        # time and what is left until then differs in its last digits.
        at = round(at, 3)
        if at < self._due.get(key, math.inf):
            self._due[key] = at
            heapq.heappush(self._heap, (at, key))

    def drop(self, key: K) -> None:
        """Forget a key, if it is there."""
        self._due.pop(key, None)

    def take(self, now: float) -> Iterator[K]:
        """Yield the keys that are due, the earliest first. Each is forgotten as it is yielded."""
        while (at := self.next_at) is not None and at <= now:
            _, key = heapq.heappop(self._heap)
            del self._due[key]
            yield key

    @property
    def next_at(self) -> float | None:
        """When the next key is due, None if there is none."""
        while self._heap and self._due.get(self._heap[0][1]) != self._heap[0][0]:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None
