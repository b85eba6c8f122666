"""Evictions that wait: those of a cycle are sent after the nominations of the pods for which they make room.

If a scheduler ends in between, it leaves nominations for which no pod has left yet, and the next one can resume them.
In the other order, it would leave free nodes without a record of which pod they are for (decision 0016).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

from pumice.kube.writers.work_queue import WorkQueue
from pumice.model.decisions import PodNotice
from pumice.runtime.in_flight import InFlightDecision


class Evictions:
    """Sends evictions. ``send`` carries one out, ``nominate`` writes one nomination. ``hold_s``: how long an eviction
    waits for nominations at most, once it was released. Twice as many nominations as evictions may wait."""

    def __init__(
        self,
        send: Callable[[InFlightDecision], Awaitable[None]],
        nominate: Callable[[PodNotice], Awaitable[None]],
        workers: int,
        waiting_max: int,
        hold_s: float,
    ) -> None:
        self._send, self._hold_s = send, hold_s
        self._held: list[InFlightDecision] = []
        self.work_queue: WorkQueue[InFlightDecision] = WorkQueue(
            "evictions", self._send_after, workers=workers, waiting_max=waiting_max
        )
        self.nominations: WorkQueue[PodNotice] = WorkQueue(
            "nominations", nominate, workers=workers, waiting_max=2 * waiting_max
        )

    def __len__(self) -> int:
        """Number of waiting evictions."""
        return len(self.work_queue) + len(self._held)

    def hold(self, entry: InFlightDecision) -> None:
        """Accept an eviction, which waits for ``release``."""
        self._held.append(entry)

    def release(self) -> None:
        """Release evictions: the nominations of the cycle are known now."""
        held, self._held = self._held, []
        for entry in held:
            self.work_queue.put(entry.key, entry)

    async def _send_after(self, entry: InFlightDecision) -> None:
        if self.nominations.left:
            with suppress(TimeoutError):
                await asyncio.wait_for(self.nominations.empty(), self._hold_s)
        await self._send(entry)
