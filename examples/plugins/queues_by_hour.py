"""Let one queue go first during some hours of each day."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pumice.api import Queue, Session, plugin, points


@plugin("queues-by-hour")
class QueuesByHour:
    """Order one queue before the others from the hour `begin` to the hour `end` of each day, in UTC."""

    def __init__(self, ssn: Session, *, first: str = "night", begin: int = 20, end: int = 6) -> None:
        self.now, self.begin, self.end = ssn.now, begin, end
        since = (ssn.now / 3600 - begin) % 24  # hours since the last begin
        goes_first = since < (end - begin) % 24
        keys = [0.0 if goes_first and queue.name == first else 1.0 for queue in ssn.queues]
        self.key = ssn.column("queues-by-hour.key", "queue", values=np.array(keys))

    @staticmethod
    def problems(*, begin: int, end: int, **others: object) -> Iterator[str]:
        """What is wrong with the arguments, as the policy file is read."""
        for name, hour in (("begin", begin), ("end", end)):
            if not 0 <= hour < 24:
                yield f"argument {name}: found {hour}, wanted an hour from 0 to 23"

    @points.queue_order
    def queue_order(self, queue: Queue) -> float:
        return float(self.key.array[queue])

    def wakes_at(self) -> float:
        """The next moment at which the order changes although nothing else does."""
        day = self.now // 86_400 * 86_400
        moments = [day + 3600 * hour for hour in (self.begin, self.end, self.begin + 24, self.end + 24)]
        return min(moment for moment in moments if moment > self.now)
