"""Evictions on their way: those of a cycle go out when it is written who was promised a node for them.

A scheduler that ends in between leaves nominations for which nobody left yet, which whoever goes on can take up; the
other way round it would leave free nodes of which nobody knows whose they are (decision 0017).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

from pumice.kube.binding.in_flight import InFlightDecision
from pumice.kube.writers.work_queue import WorkQueue
from pumice.model.decisions import PodNotice


class Evictions:
    """``send`` carries one out, ``nominate`` writes one nomination. ``hold_s``: how long an eviction waits for
    nominations at most, once it was let go. Twice as many of these may wait as evictions."""

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
        self.lane: WorkQueue[InFlightDecision] = WorkQueue(
            "evictions", self._send_after, workers=workers, waiting_max=waiting_max
        )
        self.nominations: WorkQueue[PodNotice] = WorkQueue(
            "nominations", nominate, workers=workers, waiting_max=2 * waiting_max
        )

    def __len__(self) -> int:
        """How many wait."""
        return len(self.lane) + len(self._held)

    def hold(self, flight: InFlightDecision) -> None:
        """Take one on. It waits for ``let_go``."""
        self._held.append(flight)

    def let_go(self) -> None:
        """Whoever decided has said whom it promised which nodes, or will say nothing more."""
        held, self._held = self._held, []
        for flight in held:
            self.lane.put(flight.key, flight)

    async def _send_after(self, flight: InFlightDecision) -> None:
        if self.nominations.left:
            with suppress(TimeoutError):
                await asyncio.wait_for(self.nominations.empty(), self._hold_s)
        await self._send(flight)
