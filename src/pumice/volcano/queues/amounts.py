"""Sum up what the jobs of each queue hold, request and were promised, for plugins that share the cluster among queues
and for the status of queues. Source: Volcano proportion and capacity plugins.

The sums are kept between calls; only jobs whose rows changed are read again.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pumice.algorithms.sums import sums_by
from pumice.columns.counting import HELD, PENDING
from pumice.columns.dtypes import F64, I64, AnyArray, Bool
from pumice.columns.jobs import INQUEUE_PHASE, RUNNING_PHASE
from pumice.columns.tables import Tables
from pumice.framework.cycle.session import Session
from pumice.volcano.queues.admitted import without_gated

#: Up to this number of changed jobs, plain Python is faster than arrays.
_FEW = 6
#: Indexes of the fields of ``QueueAmounts``: five amounts, and ``has_jobs``.
_AMOUNTS, _HAS_JOBS = range(5), 5
#: Below 2^53, sums of whole numbers are exact in any order.
_EXACT = 2.0**53


class QueueAmounts(NamedTuple):
    """Amounts of a queue's own jobs, all (Q, R). Read-only.

    ``allocated``: what tasks hold. ``elastic``: the part of it above the jobs' minimums. ``request``: allocated plus
    pending tasks. ``inqueue``: what the minimums of jobs exceed their allocated amounts by, for jobs that are
    admitted, or that run and hold their minimum in number. ``claimed``: the same with the whole minimum of admitted
    jobs. ``has_jobs`` (Q,): whether the queue has any job.
    """

    allocated: F64
    elastic: F64
    request: F64
    inqueue: F64
    claimed: F64
    has_jobs: Bool


def queue_amounts(ssn: Session) -> QueueAmounts:
    """Return the amounts as they were when first asked for in the session."""
    return ssn.shared(QueueAmounts, lambda: queue_amounts_now(ssn))


def queue_amounts_now(ssn: Session) -> QueueAmounts:
    """Return the present amounts: the same object as long as they are equal."""
    jobs, queues, width = ssn.tables.jobs, len(ssn.tables.queues), len(ssn.tables.axis)
    shape = jobs.capacity, queues, width
    sums = ssn.memo.get("sums of jobs", shape, lambda: _Sums(*shape), jobs.capacity * 8 * (5 * width + 2))
    return sums.now(ssn)


class _Sums:
    """Sums that are updated job by job.

    ``seen`` (J,): stamps of jobs when they were last read. ``queue`` (J,) and ``parts`` (J, 5, R): their queue then,
    and what each added there, in the order of ``QueueAmounts``. ``sums`` (5, Q + 1, R) and ``counts`` (Q + 1,): over
    all jobs, with jobs of no queue in the last place. ``amounts``: what was last returned. ``stale``: fields of it
    that have changed since.
    """

    __slots__ = ("amounts", "counts", "exact", "parts", "queue", "seen", "stale", "sums")

    def __init__(self, jobs: int, queues: int, width: int) -> None:
        self.seen: I64 = np.full(jobs, -1, dtype=np.int64)
        self.queue: I64 = np.full(jobs, queues, dtype=np.int64)
        self.parts: F64 = np.zeros((jobs, 5, width))
        self.sums: F64 = np.zeros((5, queues + 1, width))
        self.counts: I64 = np.zeros(queues + 1, dtype=np.int64)
        self.amounts = QueueAmounts._make((*self.sums[:, :-1], self.counts[:-1] > 0))
        self.stale = {*_AMOUNTS, _HAS_JOBS}
        self.exact = True

    def now(self, ssn: Session) -> QueueAmounts:
        """Return the sums for the present tables."""
        stamps = ssn.tables.jobs.stamps
        assert stamps is not None
        rows = (stamps != self.seen).nonzero()[0]
        if len(rows):
            if len(rows) <= _FEW:
                for row in rows.tolist():
                    self._change_one(ssn, row)
            else:
                self._change_many(ssn, rows)
            self.seen = stamps.copy()
        if self.stale:
            # Updating floating-point sums gives other last digits than summing in order, and decisions must not depend
            # on history. As long as all sums are exact, both agree.
            if not self.exact or np.maximum.reduce(self.sums, axis=None) >= _EXACT:
                self._sum_anew()
            self._hand_out()
        return self.amounts

    def _change_one(self, ssn: Session, row: int) -> None:
        """Update the sums for one job that changed."""
        jobs, before, old = ssn.tables.jobs, int(self.queue[row]), self.parts[row]
        queue, new = int(jobs.queue[row]), _part(ssn, row)
        if queue < 0 or not jobs.alive[row]:
            queue = len(self.counts) - 1
        moved = queue != before
        if moved:
            self.counts[before] -= 1
            self.counts[queue] += 1
            self.queue[row] = queue
            self.stale.add(_HAS_JOBS)
        for amount, was, now in zip(_AMOUNTS, old.tolist(), new, strict=True):
            if was != now or (moved and any(now)):
                self.sums[amount, before] -= old[amount]
                old[amount] = now
                self.sums[amount, queue] += old[amount]
                self.stale.add(amount)

    def _change_many(self, ssn: Session, rows: AnyArray) -> None:
        """Update many jobs and compute all sums again."""
        jobs = ssn.tables.jobs
        queue = jobs.queue[rows].astype(np.int64)
        queue[(queue < 0) | ~jobs.alive[rows]] = len(self.counts) - 1
        self.queue[rows], self.parts[rows] = queue, _parts(ssn, rows)
        self._sum_anew()

    def _sum_anew(self) -> None:
        """Compute the sums in the order of jobs."""
        count, (jobs, five, width) = len(self.counts), self.parts.shape
        sums = sums_by(self.queue, self.parts.reshape(jobs, five * width), count)
        self.sums = sums.reshape(count, five, width).transpose(1, 0, 2).copy()
        self.counts = np.bincount(self.queue, minlength=count)
        self.stale, self.exact = {*_AMOUNTS, _HAS_JOBS}, bool(self.sums.max() < _EXACT)

    def _hand_out(self) -> None:
        """Replace the arrays that have changed."""
        fields: list[Any] = list(self.amounts)
        # Fields that are equal keep their array, so readers can tell by identity that nothing changed. The others are
        # copied, because the sums go on changing.
        for field in self.stale:
            fields[field] = self.counts[:-1] > 0 if field == _HAS_JOBS else self.sums[field, :-1].copy()
            fields[field].setflags(write=False)
        self.amounts, self.stale = QueueAmounts._make(fields), set()


def _part(ssn: Session, row: int) -> list[list[float]]:
    """Return what a job adds to the sums of its queue, in the order of ``QueueAmounts``."""
    jobs = ssn.tables.jobs
    held: list[float] = jobs.allocated[row].tolist()
    least: list[float] = jobs.min_resources[row].tolist()
    missing = [max(a - b, 0.0) for a, b in zip(least, held, strict=True)]
    elastic = [max(a - b, 0.0) for a, b in zip(held, least, strict=True)]
    request = held
    if jobs.counts[row, PENDING]:
        request = [a + b for a, b in zip(held, _pending_of(ssn.tables, row), strict=True)]
    admitted, running = _promised_one(ssn.tables, row)
    if not (admitted or running):
        missing = least = [0.0] * len(held)
    elif jobs.gated[row]:
        one = np.array([row])
        missing, least = (without_gated(ssn, one, np.array([each]))[0].tolist() for each in (missing, least))
    return [held, elastic, request, missing, least if admitted else missing]


def _parts(ssn: Session, rows: AnyArray) -> F64:
    """Return what jobs add to the sums of their queues. Shape (rows, 5, R)."""
    jobs = ssn.tables.jobs
    held, least = jobs.allocated[rows], jobs.min_resources[rows]
    admitted, running = _promised(ssn.tables, rows)
    missing = without_gated(ssn, rows, np.maximum(least - held, 0.0)) * (admitted | running)[:, None]
    claimed = np.where(admitted[:, None], without_gated(ssn, rows, least.copy()), missing)
    request = held + _pending(ssn.tables, rows)
    return np.stack((held, np.maximum(held - least, 0.0), request, missing, claimed), axis=1)


def _promised_one(tables: Tables, row: int) -> tuple[bool, bool]:
    """Return whether a job is promised its minimum because it is admitted, or because it runs and holds its minimum in
    number. Source: Volcano GetInqueueResource."""
    jobs = tables.jobs
    phase, has_min = int(jobs.phase[row]), bool(jobs.has_min[row])
    running = has_min and phase == RUNNING_PHASE and bool(jobs.counts[row] @ HELD >= jobs.min_available[row])
    return has_min and phase == INQUEUE_PHASE, running


def _promised(tables: Tables, rows: AnyArray) -> tuple[Bool, Bool]:
    """Return for jobs what ``_promised_one`` returns for one. Shapes (rows,)."""
    jobs = tables.jobs
    phase, has_min = jobs.phase[rows], jobs.has_min[rows]
    running = has_min & (phase == RUNNING_PHASE) & (jobs.counts[rows] @ HELD >= jobs.min_available[rows])
    return has_min & (phase == INQUEUE_PHASE), running


def _pending_of(tables: Tables, row: int) -> list[float]:
    """Return the request of a job's pending tasks, as a list (R,)."""
    tasks, members = tables.tasks, tables.jobs.tasks[row]
    pending = members[tasks.status[members] == PENDING]
    found: list[float] = tables.classes.req[tasks.cls[pending]].sum(axis=0).tolist()
    return found


def _pending(tables: Tables, rows: AnyArray) -> F64:
    """Return the request of the pending tasks of each job. Shape (rows, R)."""
    jobs, tasks, req = tables.jobs, tables.tasks, tables.classes.req
    pending = (tasks.status == PENDING).nonzero()[0]
    pending = pending[tasks.job[pending] >= 0]
    return sums_by(tasks.job[pending], req[tasks.cls[pending]], jobs.capacity)[rows]
