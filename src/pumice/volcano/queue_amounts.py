"""What the jobs of each queue hold and ask for: sums that every plugin which shares the cluster among queues begins
with. Source: Volcano proportion and capacity (spec 04 §7)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pumice.algorithms.sums import sums_by
from pumice.columns.counting import PENDING
from pumice.columns.dtypes import F64
from pumice.framework.session import Session
from pumice.volcano.admission import promised


@dataclass(frozen=True, slots=True)
class QueueAmounts:
    """All (Q, R), of a queue's own jobs when the session opened. ``allocated``: what tasks hold; ``elastic``: what of
    it is above their jobs' minima; ``request``: with what pending tasks ask for; ``inqueue``: promised to admitted jobs
    and not held yet."""

    allocated: F64
    elastic: F64
    request: F64
    inqueue: F64


def queue_amounts(ssn: Session) -> QueueAmounts:
    """Those of this session. Not to be written on."""
    return ssn.shared(QueueAmounts, lambda: _summed(ssn))


def _summed(ssn: Session) -> QueueAmounts:
    jobs, held, count, width = ssn.tables.jobs, ssn.holding_jobs, len(ssn.tables.queues), len(ssn.tables.axis)
    queue_of, holds = jobs.queue[held], jobs.allocated[held]
    above = np.maximum(holds - jobs.min_resources[held], 0.0)
    allocated, elastic = np.hsplit(sums_by(queue_of, np.hstack((holds, above)), count), (width,))
    rows, wanted = (np.concatenate(both) for both in zip(*promised(ssn), strict=True))
    inqueue = sums_by(jobs.queue[rows], wanted, count)
    return QueueAmounts(allocated, elastic, allocated + _pending(ssn), inqueue)


def _pending(ssn: Session) -> F64:
    """What pending tasks ask for, by queue (Q, R)."""
    tables = ssn.tables
    req = tables.classes.req
    rows = (tables.tasks.status == PENDING).nonzero()[0]
    rows = rows[tables.tasks.job[rows] >= 0]
    if not len(rows):
        return np.zeros((len(tables.queues), len(tables.axis)))
    queue = tables.jobs.queue[tables.tasks.job[rows]]
    rows, queue = rows[queue >= 0], queue[queue >= 0]
    shape = len(tables.queues), len(req)
    if shape[0] * shape[1] > len(rows):
        return sums_by(queue, req[tables.tasks.cls[rows]], len(tables.queues))
    counts = np.bincount(queue.astype(np.int64) * shape[1] + tables.tasks.cls[rows], minlength=shape[0] * shape[1])
    return counts.reshape(shape).astype(np.float64) @ req
