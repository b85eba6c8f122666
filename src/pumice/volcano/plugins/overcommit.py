"""overcommit: admit somewhat more than the cluster has. Source: Volcano overcommit (spec 04 §5)."""

from __future__ import annotations

import numpy as np

from pumice.columns.dtypes import F64
from pumice.columns.nodes import USED
from pumice.columns.views import Job, Queue
from pumice.framework.combine import Vote
from pumice.framework.plugin import plugin
from pumice.framework.session import Session
from pumice.volcano import points
from pumice.volcano.admission import exceeded, minimum, promised, without_gated

DEFAULT_FACTOR = 1.2


@plugin("overcommit")
class Overcommit:
    """``overcommit-factor`` below 1 counts as 1.2."""

    def __init__(self, ssn: Session, *, overcommit_factor: float = DEFAULT_FACTOR) -> None:
        self.ssn = ssn
        factor = overcommit_factor if overcommit_factor >= 1 else DEFAULT_FACTOR
        idle = ssn.total * factor - ssn.tables.nodes.books[:, USED].sum(axis=0)
        self.idle = ssn.column("overcommit.idle", values=idle)
        inqueue = np.zeros((1, len(ssn.tables.axis)))
        (admitted, _), (_, still_wanted) = promised(ssn)
        if len(admitted):
            inqueue[0] += without_gated(ssn, admitted, ssn.tables.jobs.min_resources[admitted]).sum(axis=0)
        if len(still_wanted):
            inqueue[0] += still_wanted.sum(axis=0)
        self.inqueue = ssn.column("overcommit.inqueue", values=inqueue)

    @points.job_enqueueable
    def job_enqueueable(self, queue: Queue, asked: F64) -> Vote | str:
        rests_on = (self.inqueue.version, self.idle.version)
        return self.ssn.memo.get(("overcommit", asked.tobytes()), rests_on, lambda: self._answer(asked))

    def _answer(self, asked: F64) -> Vote | str:
        over = exceeded(self.ssn, self.inqueue.array[0] + asked, self.idle.array, asked)
        if not over:
            return Vote.PERMIT
        return "resource in cluster is overused: " + ", ".join(f"overused {name}" for name in over)

    @points.job_enqueued
    def job_enqueued(self, job: Job) -> None:
        if self.ssn.tables.jobs.has_min[job.row]:
            self.ssn.journal.add(self.inqueue, 0, minimum(self.ssn, job))
