"""overcommit: admit jobs up to a multiple of the cluster's resources. Source: Volcano overcommit plugin."""

from __future__ import annotations

import numpy as np

from pumice.api import F64, USED, Job, Queue, QueueLimit, Session, Vote, plugin, points, read_only
from pumice.framework.memo import ground
from pumice.volcano.queues.admitted import cluster_limit, exceeded, minimum
from pumice.volcano.queues.amounts import queue_amounts

DEFAULT_FACTOR = 1.2


@plugin("overcommit", spelled=("overcommit-factor",))
class Overcommit:
    """Vote on admission. ``overcommit-factor``: a value below 1 means 1.2."""

    def __init__(self, ssn: Session, *, overcommit_factor: float = DEFAULT_FACTOR) -> None:
        self.ssn = ssn
        # A factor below 1 would refuse jobs that fit. Source: Volcano overcommit.go.
        factor = overcommit_factor if overcommit_factor >= 1 else DEFAULT_FACTOR
        self._most = ssn.total * factor
        self._used = ssn.memo.get("overcommit.used", ground(ssn.tables.nodes["books"]), lambda: _used(ssn))
        self.idle = ssn.column("overcommit.idle", values=read_only(self._most - self._used))
        # Per queue for other plugins, one sum for this one: the factor is about the cluster as a whole.
        claimed = np.add.reduce(queue_amounts(ssn).claimed, axis=0, keepdims=True)
        self.inqueue = ssn.column("overcommit.inqueue", values=claimed)

    @points.job_enqueueable
    def job_enqueueable(self, queue: Queue, asked: F64) -> Vote | QueueLimit:
        """Vote on the admission of a request."""
        # Many jobs ask for equal amounts, and the answer is the same for all queues.
        rests_on = (self.inqueue.version, self.idle.version)
        return self.ssn.memo.get(("overcommit", asked.tobytes()), rests_on, lambda: self._answer(asked))

    def _answer(self, asked: F64) -> Vote | QueueLimit:
        """Permit if the request fits into the idle resources less what was promised."""
        over = exceeded(self.ssn, self.inqueue.array[0] + asked, self.idle.array, asked)
        if not over:
            return Vote.PERMIT
        promised = self.inqueue.array[0]
        return cluster_limit(self.ssn, over, self._most, self._used, promised, asked)

    @points.job_enqueued
    def job_enqueued(self, job: Job) -> None:
        """Count the minimum of an admitted job."""
        # Jobs without minResources are admitted without a vote and promise nothing.
        if self.ssn.tables.jobs.has_min[job.row]:
            self.ssn.journal.add(self.inqueue, 0, minimum(self.ssn, job))


def _used(ssn: Session) -> F64:
    """Return what runs on all nodes. Shape (R,). Read-only."""
    return read_only(ssn.tables.nodes.books[:, USED].sum(axis=0))
