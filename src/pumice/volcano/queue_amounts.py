"""What the jobs of each queue hold and ask for: sums that every plugin which shares the cluster among queues begins
with, and that queues' statuses state. Source: Volcano proportion and capacity (spec 04 §7)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from pumice.algorithms.sums import sums_by
from pumice.columns.counting import PENDING
from pumice.columns.dtypes import F64, I32, read_only
from pumice.framework.memo import Ground, ground
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
    held = held_by_queue(ssn)
    rows, wanted = (np.concatenate(both) for both in zip(*promised(ssn), strict=True))
    inqueue = sums_by(ssn.tables.jobs.queue[rows], wanted, len(ssn.tables.queues))
    return QueueAmounts(held.allocated, held.elastic, requested_by_queue(ssn), inqueue)


class Held(NamedTuple):
    """``allocated`` and ``elastic`` of queues as they are now."""

    allocated: F64
    elastic: F64


def held_rests_on(ssn: Session) -> Ground:
    """What ``held_by_queue`` rests on."""
    jobs = ssn.tables.jobs
    return ground(jobs["alive"], jobs["queue"], jobs["allocated"], jobs["min_resources"])


def held_by_queue(ssn: Session) -> Held:
    """What each queue holds now. Not to be written on."""
    return ssn.memo.get("held by queue", (len(ssn.tables.queues), *held_rests_on(ssn)), lambda: _held(ssn))


def _held(ssn: Session) -> Held:
    jobs, count = ssn.tables.jobs, len(ssn.tables.queues)
    rows = jobs.holding
    given = jobs.queue[rows], jobs.allocated[rows], jobs.min_resources[rows]
    # Where jobs come that hold nothing yet, it is the same.
    same = (count, jobs.allocated.shape[1], *(each.tobytes() for each in given))
    return ssn.memo.get("sums of queues", same, lambda: _sums(*given, count))


def _sums(queue: I32, holds: F64, minima: F64, count: int) -> Held:
    width = holds.shape[1]
    sums = sums_by(queue, np.hstack((holds, np.maximum(holds - minima, 0.0))), count)
    return Held(read_only(sums[:, :width]), read_only(sums[:, width:]))


def request_rests_on(ssn: Session) -> Ground:
    """What ``requested_by_queue`` rests on."""
    tables = ssn.tables
    tasks, req = tables.tasks, tables.classes["req"]
    return *held_rests_on(ssn), *ground(tasks["status"], tasks["job"], tasks["cls"], req)


def requested_by_queue(ssn: Session) -> F64:
    """What jobs of each queue hold and their pending tasks ask for (Q, R). Not to be written on."""
    rests_on = (len(ssn.tables.queues), *request_rests_on(ssn))
    return ssn.memo.get("requested by queue", rests_on, lambda: read_only(held_by_queue(ssn).allocated + _pending(ssn)))


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
