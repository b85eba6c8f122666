"""enqueue: admit waiting jobs, best queue first, best job first. Source: Volcano enqueue (spec 03 §1)."""

from __future__ import annotations

import numpy as np

from pumice.columns.dtypes import AnyArray
from pumice.columns.jobs import INQUEUE_PHASE, PENDING_PHASE
from pumice.columns.views import Job
from pumice.framework.memo import ground
from pumice.framework.ordering import Heap
from pumice.framework.session import Session
from pumice.volcano import points


def enqueue(ssn: Session) -> None:
    """Each pending job is asked for once; a job that is rejected is tried again in the next session.

    A job without minResources is admitted without asking. Admission changes neither the order of queues nor that of
    jobs, so each queue is gone through once.
    """
    jobs = ssn.tables.jobs
    waiting = (jobs.alive & (jobs.queue >= 0) & (jobs.phase == PENDING_PHASE) & ~jobs.barred).nonzero()[0]
    if not len(waiting):
        return
    admission = _Admission(ssn)
    alike = _by_queue_and_ask(ssn, waiting)
    queues = Heap(ssn.order.queue_keys(), list(alike))
    while queues:
        admission.go_through(alike[queues.pop()])


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


class _Admission:
    """Asks for jobs one by one; where only amounts are looked at, a rejection stands for all jobs of the queue that ask
    as much, for admitting others never makes room."""

    def __init__(self, ssn: Session) -> None:
        self.ssn = ssn
        self.by_amount = ssn.hooks.forms(points.job_enqueueable) == {"amount"}
        hooks = ssn.hooks.at(points.job_enqueueable) if self.by_amount else []
        #: Columns that a rejection rests on; None where nobody knows, for a plugin may keep anything.
        self.rests_on = None if ssn.policy.python_plugins else ssn.hooks.read(ssn.world, hooks)

    def go_through(self, alike: list[AnyArray]) -> None:
        """The waiting jobs of one queue, in groups that ask for equal amounts."""
        if self.by_amount and self._rejects_all(alike):
            return
        rejected: dict[int, str] = {}  # by what is asked for
        ssn, asks = self.ssn, self.ssn.tables.jobs.ask
        groups = {int(asks[rows[0]]): rows for rows in alike}
        for row in ssn.order.jobs_in_order(np.concatenate(alike)):
            if int(asks[row]) in rejected:
                continue
            with ssn.turn(ssn.tables.jobs.uids[row]):
                text = self._rejection(row)
                if text is None:
                    self._admit(row)
                elif self.by_amount:
                    rejected[int(asks[row])] = text
                    left = groups[int(asks[row])]
                    self._tell(left[ssn.tables.jobs.phase[left] == PENDING_PHASE], text)
                else:
                    self._tell(np.array([row]), text)

    def _rejects_all(self, alike: list[AnyArray]) -> bool:
        """Reject all jobs of the queue, if none of them can be admitted now; then their order does not matter."""
        texts = self._known_rejections([int(rows[0]) for rows in alike])
        if not texts:
            return False
        for rows, text in zip(alike, texts, strict=True):
            self._tell(rows, text)
        return True

    def _known_rejections(self, rows: list[int]) -> tuple[str, ...]:
        """The same as ``_rejections`` of jobs of one queue, found anew only where something has changed."""
        jobs, stamps = self.ssn.tables.jobs, self.ssn.tables.queues.stamps
        if self.rests_on is None:
            return self._rejections(rows)
        assert stamps is not None
        queue = int(jobs.queue[rows[0]])
        question = ("rejected", queue, tuple(jobs.ask[rows].tolist()))
        rests_on = (int(stamps[queue]), *ground(*self.rests_on))
        return self.ssn.memo.get(question, rests_on, lambda: self._rejections(rows))

    def _rejections(self, rows: list[int]) -> tuple[str, ...]:
        """Why each of these jobs is not admitted; empty where one of them would be."""
        texts = []
        for row in rows:
            text = self._rejection(row)
            if text is None:
                return ()
            texts.append(text)
        return tuple(texts)

    def _rejection(self, row: int) -> str | None:
        """None to admit the job, else why not; empty where the plugin has nothing to tell."""
        if not self.ssn.tables.jobs.has_min[row]:
            return None
        return self.ssn.ask(points.job_rejected, Job(self.ssn.tables, row))

    def _tell(self, rows: AnyArray, text: str) -> None:
        if text:
            self.ssn.story.rejected.append((rows, text))

    def _admit(self, row: int) -> None:
        ssn = self.ssn
        ssn.ask(points.job_enqueued, Job(ssn.tables, row))
        ssn.journal.put(ssn.tables.jobs["phase"], row, INQUEUE_PHASE)
        ssn.story.tell(ssn.tables.jobs.uids[row], "admitted")
