"""enqueue: admit waiting jobs, best queue first, best job first. Source: Volcano enqueue (spec 03 §1)."""

from __future__ import annotations

from typing import Any

import numpy as np

from pumice.columns.dtypes import F64, AnyArray
from pumice.columns.jobs import INQUEUE_PHASE, PENDING_PHASE
from pumice.columns.views import Job, Queue
from pumice.framework import points
from pumice.framework.ordering import Heap, JobsInOrder, job_keyer, queue_keyer
from pumice.framework.session import Session


def enqueue(ssn: Session) -> None:
    """Each pending job is asked for once; a job that is turned down is tried again in the next session.

    A job without minResources is admitted without asking. Admission changes neither the order of queues nor that of
    jobs, so each queue is gone through once.
    """
    jobs = ssn.tables.jobs
    waiting = (jobs.alive & (jobs.queue >= 0) & (jobs.phase == PENDING_PHASE)).nonzero()[0]
    if not len(waiting):
        return
    alike = _by_queue_and_ask(ssn, waiting)
    door = _Door(ssn)
    keyer = job_keyer(ssn)
    queues = Heap(queue_keyer(ssn), list(alike))
    while queues:
        queue = queues.pop()
        if not door.refuses_all(queue, alike[queue]):
            door.admit_from(queue, JobsInOrder(ssn, keyer, np.concatenate(alike[queue])))


def _by_queue_and_ask(ssn: Session, rows: AnyArray) -> dict[int, list[AnyArray]]:
    """Jobs in groups that are of one queue and ask for equal amounts."""
    jobs = ssn.tables.jobs
    kind = jobs.queue[rows].astype(np.int64) << 32 | jobs.ask[rows] + 1
    order = kind.argsort(kind="stable")
    rows, kind = rows[order], kind[order]
    ends = [*((kind[1:] != kind[:-1]).nonzero()[0] + 1).tolist(), len(rows)]
    groups: dict[int, list[AnyArray]] = {}
    start = 0
    for end in ends:
        groups.setdefault(int(jobs.queue[rows[start]]), []).append(rows[start:end])
        start = end
    return groups


class _Door:
    """Asks for jobs one by one; where only amounts are looked at, a rejection stands for all jobs that ask as much."""

    def __init__(self, ssn: Session) -> None:
        self.ssn = ssn
        hooks = [hook for tier in ssn.tiers(points.job_enqueueable) for hook in tier]
        self.by_amount = bool(hooks) and all(form == "amount" for form, _ in hooks)
        self.tiers = [[hook for _, hook in tier] for tier in ssn.tiers(points.job_enqueueable)]

    def refuses_all(self, queue: int, alike: list[AnyArray]) -> bool:
        """Turn all jobs of a queue down, if none of them can be admitted now; then their order does not matter."""
        if not self.by_amount:
            return False
        refused = []
        for rows in alike:
            text = self._refusal(queue, int(rows[0]))
            if text is None:
                return False
            if text:
                refused.append((rows, text))
        self.ssn.turned_down += refused
        return True

    def admit_from(self, queue: int, waiting: JobsInOrder) -> None:
        """Go through the jobs of one queue in order."""
        jobs = self.ssn.tables.jobs
        while waiting:
            rows = waiting.rows()
            row = int(rows[0])
            text = self._refusal(queue, row)
            if text is None:
                self._admit(row)
                waiting.drop_first()
                continue
            equal = (jobs.ask[rows] == jobs.ask[row]) if self.by_amount else np.arange(len(rows)) == 0
            if text:
                self.ssn.turned_down.append((rows[equal], text))
            waiting.keep(~equal)

    def _refusal(self, queue: int, row: int) -> str | None:
        """None to admit the job, else why not (empty where the plugin has told already, or has nothing to tell)."""
        ssn, jobs = self.ssn, self.ssn.tables.jobs
        if not jobs.has_min[row]:
            return None
        if self.by_amount:
            return _vote(self.tiers, Queue(ssn.tables, queue), jobs.min_resources[row])
        return None if ssn.ask(points.job_enqueueable, Job(ssn.tables, row)) else ""

    def _admit(self, row: int) -> None:
        job = Job(self.ssn.tables, row)
        self.ssn.ask(points.job_enqueued, job)
        self.ssn.set_phase(row, INQUEUE_PHASE)
        self.ssn.tell(job.key, "admitted")


def _vote(tiers: list[list[Any]], queue: Queue, asked: F64) -> str | None:
    """``combine.vote`` for hooks that may reject with a text: that text, or None when the job may be admitted."""
    for tier in tiers:
        permitted = False
        for hook in tier:
            answer = hook(queue, asked)
            if isinstance(answer, str):
                return answer
            if answer < 0:
                return ""
            permitted = permitted or answer > 0
        if permitted:
            return None
    return None
