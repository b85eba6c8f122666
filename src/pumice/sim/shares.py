"""What each queue has and deserves after a cycle, for the history: as shares of the cluster, 0 to 1."""

from __future__ import annotations

import numpy as np

from pumice.algorithms.shares import dominant_share
from pumice.columns.dtypes import F64
from pumice.framework.outcome import Outcome
from pumice.sim.history import QueueShare


class ShareWatch:
    """Gives the shares of the queues that changed since the last cycle: of the resource that a queue has most of.

    What a queue deserves is what a plugin publishes as ``queue.deserved``; without one, its weight among the queues
    with jobs.
    """

    def __init__(self) -> None:
        self._names: list[str] = []
        self._last: F64 = np.zeros((0, 2))
        self._seen: tuple[bytes, ...] = ()

    def changed(self, outcome: Outcome) -> dict[str, QueueShare]:
        queues, figures = outcome.tables.queues, outcome.figures
        names = list(queues.names)
        if "queue.deserved" in figures:
            amounts = (figures["queue.allocated"], figures["queue.deserved"], outcome.total)
            seen = tuple(amount.tobytes() for amount in amounts)
            if seen == self._seen and names == self._names:
                return {}
            self._seen = seen
        now = np.stack(_shares(outcome), axis=1)
        same = names == self._names
        rows = np.flatnonzero((now != self._last).any(axis=1)) if same else np.arange(len(now))
        self._names, self._last = names, now
        return {self._names[row]: QueueShare(*now[row].tolist()) for row in rows.tolist()}


def _shares(outcome: Outcome) -> tuple[F64, F64]:
    """(share, deserved) of each queue. Shape (Q,) each."""
    tables, figures = outcome.tables, outcome.figures
    total = outcome.total.copy()
    total[tables.axis.pods] = 0.0
    if "queue.deserved" in figures:
        deserved = np.minimum(dominant_share(figures["queue.deserved"], total), 1.0)
        return dominant_share(figures["queue.allocated"], total), deserved
    jobs, queues, live = tables.jobs, tables.queues, outcome.live_jobs
    allocated = np.zeros((len(queues), len(tables.axis)))
    np.add.at(allocated, jobs.queue[live], jobs.allocated[live])
    weight = queues.weight * np.bincount(jobs.queue[live], minlength=len(queues)).astype(bool)
    return dominant_share(allocated, total), weight / max(float(weight.sum()), 1.0)
