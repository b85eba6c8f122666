"""The clock of a simulation: what happens next, and when. Idle time costs nothing.

Events are ordered by (time, priority, ID). IDs increase, so events with equal time and priority run in the order in
which they were scheduled. Nothing else decides, so every run is the same. Source: the design of SimPy's core.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterable
from enum import IntEnum
from typing import Any, TypeVar

_COMPACT_FROM = 1024

V = TypeVar("V")

#: Handle of an event, for ``cancel``.
EventId = int


class Priority(IntEnum):
    """Order within one moment: what ends frees resources before what arrives requests them."""

    FAULT = 0
    END = 1
    ARRIVE = 2
    START = 3
    DELIVER = 4


class Engine:
    """A virtual clock and a heap of calls. ``now`` is in seconds and changes only in ``advance``."""

    def __init__(self, start: float = 0.0) -> None:
        self.now = start
        self.events_run = 0
        self._heap: list[tuple[float, int, EventId]] = []
        self._calls: dict[EventId, tuple[Callable[..., object], tuple[Any, ...]]] = {}
        self._next_id = 0
        self._running: tuple[float, int, EventId] | None = None

    def __len__(self) -> int:
        """Number of future events."""
        return len(self._calls)

    def at(self, time: float, call: Callable[..., object], *values: Any, priority: int = Priority.END) -> EventId:
        """Schedule ``call(*values)`` at ``time``.

        Raises: ValueError for a time that is past or not a number.
        """
        if not (self.now <= time < math.inf):
            raise ValueError(f"cannot schedule at {time}: wanted a time from {self.now} on")
        event = self._next_id
        self._next_id += 1
        self._calls[event] = (call, values)
        heapq.heappush(self._heap, (time, priority, event))
        return event

    def at_all(self, due: Iterable[tuple[float, V]], call: Callable[[V], object], priority: int = Priority.END) -> None:
        """Schedule ``call(value)`` for each (time, value), as ``at`` would one after the other.

        Raises: ValueError for a time that is past or not a number; then nothing is scheduled.
        """
        due = list(due)
        if wrong := [time for time, _ in due if not (self.now <= time < math.inf)]:
            raise ValueError(f"cannot schedule at {wrong[0]}: wanted a time from {self.now} on")
        for event, (time, value) in enumerate(due, self._next_id):
            self._calls[event] = (call, (value,))
            heapq.heappush(self._heap, (time, priority, event))
        self._next_id += len(due)

    def after(self, delay: float, call: Callable[..., object], *values: Any, priority: int = Priority.END) -> EventId:
        """Schedule ``call(*values)`` ``delay`` seconds from now."""
        return self.at(self.now + delay, call, *values, priority=priority)

    def go_on(self, call: Callable[..., object], *values: Any) -> None:
        """Continue the present event with this call: at the same time and with the same priority and ID, after events
        that it has caused and that come first.

        Raises: ValueError if no event is running.
        """
        if self._running is None:
            raise ValueError("no event is running that could continue")
        self._calls[self._running[2]] = (call, values)
        heapq.heappush(self._heap, self._running)

    def cancel(self, event: EventId) -> bool:
        """Cancel an event. Return False if it has run or was cancelled before."""
        if self._calls.pop(event, None) is None:
            return False
        if len(self._heap) > _COMPACT_FROM and len(self._heap) > 2 * len(self._calls):
            self._heap = [entry for entry in self._heap if entry[2] in self._calls]
            heapq.heapify(self._heap)
        return True

    def next_time(self) -> float | None:
        """Return the time of the next event, or None."""
        heap = self._heap
        while heap and heap[0][2] not in self._calls:
            heapq.heappop(heap)
        return heap[0][0] if heap else None

    def step(self) -> bool:
        """Run the next event and set the clock to its time. Return False if there is none."""
        time = self.next_time()
        if time is None:
            return False
        self._running = heapq.heappop(self._heap)
        call, values = self._calls.pop(self._running[2])
        self.now = time
        self.events_run += 1
        call(*values)
        self._running = None
        return True

    def advance(self, time: float, after_each: Callable[[], object] | None = None) -> int:
        """Run every event up to and including ``time``, including those that are added meanwhile, and set the clock to
        ``time``. Return how many ran."""
        count = 0
        while (due := self.next_time()) is not None and due <= time:
            self.step()
            count += 1
            if after_each is not None:
                after_each()
        self.now = max(self.now, time)
        return count
