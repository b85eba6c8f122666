"""What each queue has and deserves after a cycle, for the history: as shares of the cluster, 0 to 1."""

from __future__ import annotations

import numpy as np

from pumice.algorithms.shares import dominant_share
from pumice.columns.dtypes import F64
from pumice.framework.session import Session
from pumice.sim.history import QueueShare
from pumice.volcano.plugins.proportion import Proportion


class ShareWatch:
    """Gives the shares of the queues that changed since the last cycle: of the resource that a queue has most of.

    What a queue deserves is what the plugin ``proportion`` says; without it, its weight among the queues with jobs.
    """

    def __init__(self) -> None:
        self._names: list[str] = []
        self._last: F64 = np.zeros((0, 2))
        self._seen: tuple[bytes, ...] = ()

    def changed(self, ssn: Session) -> dict[str, QueueShare]:
        queues = ssn.tables.queues
        proportion = ssn.plugin("proportion")
        if proportion is not None:
            seen = proportion.allocated.tobytes(), proportion.deserved.tobytes(), ssn.total.tobytes()
            if seen == self._seen and queues.names == self._names:
                return {}
            self._seen = seen
        now = np.stack(_shares(ssn, proportion), axis=1)
        same = queues.names == self._names
        rows = np.flatnonzero((now != self._last).any(axis=1)) if same else np.arange(len(now))
        self._names, self._last = list(queues.names), now
        return {self._names[row]: QueueShare(*now[row].tolist()) for row in rows.tolist()}


def _shares(ssn: Session, proportion: Proportion | None) -> tuple[F64, F64]:
    """(share, deserved) of each queue. Shape (Q,) each."""
    total = ssn.total.copy()
    total[ssn.tables.axis.pods] = 0.0
    if proportion is not None:
        return dominant_share(proportion.allocated, total), np.minimum(dominant_share(proportion.deserved, total), 1.0)
    jobs, queues = ssn.tables.jobs, ssn.tables.queues
    live = ssn.live_jobs()
    allocated = np.zeros((len(queues), len(ssn.tables.axis)))
    np.add.at(allocated, jobs.queue[live], jobs.allocated[live])
    weight = queues.weight * np.bincount(jobs.queue[live], minlength=len(queues)).astype(bool)
    return dominant_share(allocated, total), weight / max(float(weight.sum()), 1.0)
