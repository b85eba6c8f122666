"""Which waiting jobs may be admitted: the question that plugins answer at ``job_enqueueable``, put for each queue and
ask once. Source: Volcano enqueue (spec 03 §1)."""

from __future__ import annotations

from heapq import heapify, heappop, heapreplace
from typing import NamedTuple

import numpy as np

from pumice.columns.dtypes import AnyArray
from pumice.columns.jobs import INQUEUE_PHASE, PENDING_PHASE
from pumice.columns.views import Job, Queue
from pumice.framework.cycle.session import Session
from pumice.framework.cycle.trace import Admitted
from pumice.framework.memo import ground_of_rows
from pumice.framework.plugin.errors import PluginFault
from pumice.model.blockers import ADMISSION, Refused
from pumice.volcano import points


class Kind(NamedTuple):
    """Jobs, by row, that are of one queue and ask for equal amounts (``ask`` as in the table of jobs)."""

    queue: int
    ask: int
    rows: AnyArray


def waiting_kinds(ssn: Session) -> list[Kind]:
    """Pending jobs by kind."""
    jobs = ssn.tables.jobs
    rows = (jobs.alive & (jobs.queue >= 0) & (jobs.phase == PENDING_PHASE) & ~jobs.barred).nonzero()[0]
    if not len(rows):
        return []
    rests_on = (rows.tobytes(), ground_of_rows(jobs.stamps, rows))
    return ssn.memo.get("waiting by queue and ask", rests_on, lambda: _by_queue_and_ask(ssn, rows), rows.nbytes)


def _by_queue_and_ask(ssn: Session, rows: AnyArray) -> list[Kind]:
    """Some jobs by kind."""
    jobs = ssn.tables.jobs
    ask = jobs.ask[rows] + 1
    kinds = int(ask.max()) + 1
    number = jobs.queue[rows].astype(np.int64) * kinds + ask
    if len(ssn.tables.queues) * kinds <= np.iinfo(np.int16).max:
        number = number.astype(np.int16)  # these are sorted several times as fast
    order = number.argsort(kind="stable")
    number, rows = number[order], rows[order]
    starts = [0, *((number[1:] != number[:-1]).nonzero()[0] + 1).tolist()]
    each = zip(number[starts].tolist(), starts, [*starts[1:], len(rows)], strict=True)
    return [Kind(one // kinds, one % kinds - 1, rows[start:end]) for one, start, end in each]


class Admission:
    """Asks for jobs one by one; where only amounts are looked at, a rejection stands for all jobs of the queue that ask
    as much, for admitting others never makes room."""

    def __init__(self, ssn: Session) -> None:
        self.ssn = ssn
        self.by_amount = ssn.hooks.forms(points.job_enqueueable) == {"amount"}
        self._said: dict[tuple[int, int], str | None] = {}  # by queue and ask, until a job is admitted

    def rejects_all(self, kinds: list[Kind], *, remembered: bool = False) -> bool:
        """Reject everybody, if nobody can be admitted now: then no order matters. ``remembered``: from one cycle to the
        next."""
        if not self.by_amount:
            return False
        try:
            texts = self._known(kinds) if remembered else self._rejections(kinds)
        except PluginFault:  # it costs the job its turn for which it happens, and that is not now
            return False
        for kind, text in zip(kinds, texts, strict=False):
            self._tell(kind.rows, text)
        return bool(texts)

    def _known(self, kinds: list[Kind]) -> tuple[str, ...]:
        """``_rejections`` as an earlier cycle found them, if all that they rest on is the same."""
        ssn = self.ssn
        if ssn.policy.python_plugins:  # such a plugin may keep anything, so it is not known what its answer rests on
            return self._rejections(kinds)
        reading = ssn.hooks.reading(points.job_enqueueable)
        rests_on = (*reading.rests_on(ssn.world), ssn.world.stamps("queue").tobytes())
        question = "rejected", tuple([(kind.queue, kind.ask) for kind in kinds])
        return ssn.memo.get(question, rests_on, lambda: self._rejections(kinds))

    def _rejections(self, kinds: list[Kind]) -> tuple[str, ...]:
        """Why each kind is not admitted; nothing where a job of one of them would be."""
        texts = []
        for kind in kinds:
            text = self._rejection(kind, kind.rows[0])
            if text is None:
                return ()
            texts.append(text)
        return tuple(texts)

    def _rejection(self, kind: Kind, row: int) -> str | None:
        """None to admit the job, which is of the kind, else why not; empty where the plugin has nothing to tell."""
        tables, asked = self.ssn.tables, (kind.queue, kind.ask)
        if kind.ask < 0:  # it does not say what it needs
            return None
        if not self.by_amount:
            return self.ssn.ask(points.job_rejected, Job(tables, row))
        if asked not in self._said:
            queue, least = Queue(tables, kind.queue), tables.jobs.min_resources[row]
            self._said[asked] = self.ssn.ask(points.amount_rejected, queue, least)
        return self._said[asked]

    def go_through(self, kinds: list[Kind]) -> None:
        """The waiting jobs of one queue, in their order. Of a kind that is rejected no other job is asked for."""
        if self.rejects_all(kinds):
            return
        ssn, jobs = self.ssn, self.ssn.tables.jobs
        ordered = np.array(ssn.order.jobs_in_order(np.concatenate([kind.rows for kind in kinds])))
        asks = jobs.ask[ordered]
        places = [iter((asks == kind.ask).nonzero()[0].tolist()) for kind in kinds]
        due = [(next(each), number) for number, each in enumerate(places)]  # of each kind the next place to look at
        heapify(due)
        while due:
            place, number = due[0]
            row, is_over, kind = int(ordered[place]), False, kinds[number]
            with ssn.turn(jobs.uids[row]):
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

    def _tell(self, rows: AnyArray, text: str) -> None:
        if text:
            self.ssn.trace.rejected.append((rows, Refused(ADMISSION, text)))

    def _admit(self, row: int) -> None:
        ssn = self.ssn
        self._said.clear()
        ssn.ask(points.job_enqueued, Job(ssn.tables, row))
        ssn.journal.put(ssn.tables.jobs["phase"], row, INQUEUE_PHASE)
        ssn.trace.tell(ssn.tables.jobs.uids[row], Admitted())
