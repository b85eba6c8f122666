"""Decide which pending jobs may be admitted: ask plugins at ``job_enqueueable`` once per queue and request. Source:
Volcano enqueue action.
"""

from __future__ import annotations

from heapq import heapify, heappop, heapreplace
from typing import NamedTuple

import numpy as np

from pumice.columns.dtypes import AnyArray
from pumice.columns.jobs import INQUEUE_PHASE, PENDING_PHASE
from pumice.columns.views import Job, Queue
from pumice.framework.cycle.session import Session
from pumice.framework.cycle.trace import Admitted
from pumice.framework.plugin.combine import Rejection
from pumice.framework.plugin.errors import PluginFault
from pumice.model.blockers import ADMISSION, Refused
from pumice.volcano import points


class Kind(NamedTuple):
    """Jobs of one queue with equal requests. ``ask`` as in the table of jobs; ``rows`` are the jobs."""

    queue: int
    ask: int
    rows: AnyArray


def waiting_kinds(ssn: Session) -> list[Kind]:
    """Return the pending jobs by kind."""
    jobs = ssn.tables.jobs
    # A job that cannot be read is never admitted: its minimum is unknown.
    rows = (jobs.alive & (jobs.queue >= 0) & (jobs.phase == PENDING_PHASE) & ~jobs.quarantined).nonzero()[0]
    if not len(rows):
        return []
    ask = jobs.ask[rows] + 1
    # ``ask`` is -1 for jobs without minResources, so it is moved to begin at 0.
    kinds = int(ask.max()) + 1
    number = jobs.queue[rows].astype(np.int64) * kinds + ask
    if len(ssn.tables.queues) * kinds <= np.iinfo(np.int16).max:
        number = number.astype(np.int16)  # NumPy uses radix sort for 16 bits, which is several times as fast
    order = number.argsort(kind="stable")
    number, rows = number[order], rows[order]
    starts = [0, *((number[1:] != number[:-1]).nonzero()[0] + 1).tolist()]
    each = zip(number[starts].tolist(), starts, [*starts[1:], len(rows)], strict=True)
    return [Kind(one // kinds, one % kinds - 1, rows[start:end]) for one, start, end in each]


class Admission:
    """Ask for pending jobs.

    If plugins look at amounts only, a rejection holds for all jobs of the queue with an equal request, because
    admitting other jobs never makes room.
    """

    def __init__(self, ssn: Session) -> None:
        self.ssn = ssn
        # Only if all plugins look at amounts: one that is given the job may treat equal amounts differently.
        self.by_amount = ssn.hooks.forms(points.job_enqueueable) == {"amount"}
        # By queue and request; valid until an admission.
        self._rejections_by_ask: dict[tuple[int, int], Rejection | None] = {}

    def rejects_all(self, kinds: list[Kind]) -> bool:
        """Reject all jobs and return True, if none can be admitted now."""
        if not self.by_amount:
            return False
        # If every job is rejected, their order does not matter, and sorting them is saved.
        try:
            texts = self._rejections(kinds)
        except PluginFault:
            # A fault belongs to the job that was asked about. The regular loop asks again and attributes it.
            return False
        for kind, text in zip(kinds, texts, strict=False):
            self._tell(kind.rows, text)
        return bool(texts)

    def _rejections(self, kinds: list[Kind]) -> tuple[Rejection, ...]:
        """Return why each kind is rejected, or nothing if a job of some kind would be admitted."""
        texts = []
        for kind in kinds:
            text = self._rejection(kind, kind.rows[0])
            if text is None:
                return ()
            texts.append(text)
        return tuple(texts)

    def _rejection(self, kind: Kind, row: int) -> Rejection | None:
        """Return why a job of a kind is rejected, "" if plugins give no reason, or None to admit it."""
        tables, asked = self.ssn.tables, (kind.queue, kind.ask)
        # Volcano admits a job without minResources without asking.
        if kind.ask < 0:
            return None
        if not self.by_amount:
            return self.ssn.ask(points.job_rejected, Job(tables, row))
        if asked not in self._rejections_by_ask:
            queue, least = Queue(tables, kind.queue), tables.jobs.min_resources[row]
            self._rejections_by_ask[asked] = self.ssn.ask(points.amount_rejected, queue, least)
        return self._rejections_by_ask[asked]

    def go_through(self, kinds: list[Kind]) -> None:
        """Ask for the pending jobs of one queue, in order. After a rejection, no other job of that kind is asked
        for."""
        if self.rejects_all(kinds):
            return
        ssn, jobs = self.ssn, self.ssn.tables.jobs
        ordered = np.array(ssn.order.jobs_in_order(np.concatenate([kind.rows for kind in kinds])))
        asks = jobs.ask[ordered]
        # A merge of the kinds by position in the job order: a kind that is rejected drops out at once, however many
        # jobs it has.
        places = [iter((asks == kind.ask).nonzero()[0].tolist()) for kind in kinds]
        due = [(next(each), number) for number, each in enumerate(places)]  # per kind, its next position
        heapify(due)
        while due:
            place, number = due[0]
            row, is_over, kind = int(ordered[place]), False, kinds[number]
            with ssn.fault_scope(jobs.uids[row]):
                text = self._rejection(kind, row)
                if text is None:
                    self._admit(row)
                elif self.by_amount:
                    left, is_over = kind.rows, True
                    self._tell(left[jobs.phase[left] == PENDING_PHASE], text)
                else:
                    self._tell(np.array([row]), text)
            following = None if is_over else next(places[number], None)
            if following is None:
                heappop(due)
            else:
                heapreplace(due, (following, number))

    def _tell(self, rows: AnyArray, why: Rejection) -> None:
        """Record a rejection, unless it has no reason."""
        if why:
            self.ssn.trace.rejected.append((rows, Refused(ADMISSION, why) if isinstance(why, str) else why))

    def _admit(self, row: int) -> None:
        """Admit a job."""
        ssn = self.ssn
        # An admission may turn acceptances into rejections.
        self._rejections_by_ask.clear()
        ssn.ask(points.job_enqueued, Job(ssn.tables, row))
        ssn.journal.put(ssn.tables.jobs["phase"], row, INQUEUE_PHASE)
        ssn.trace.tell(ssn.tables.jobs.uids[row], Admitted())
