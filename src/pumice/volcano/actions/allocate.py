"""allocate: place waiting gangs on idle resources, or promise them what is being released. Source: Volcano allocate
(spec 03 §2)."""

from __future__ import annotations

import numpy as np

from pumice.columns.jobs import INQUEUE_PHASE, PENDING_PHASE
from pumice.columns.views import Job, Queue
from pumice.framework import points
from pumice.framework.ordering import Heap, heaps_by, job_keyer, queue_keyer
from pumice.framework.session import Session
from pumice.volcano.alike import Failures
from pumice.volcano.domains import allocate_for_job
from pumice.volcano.dry_runs import DryRuns
from pumice.volcano.placement import Domain, allocate_tasks, try_nomination
from pumice.volcano.worksheet import Worksheet


def allocate(ssn: Session, *, predicateErrorCacheEnable: bool = True) -> None:
    """Best queue first, best job first; a job is placed up to its minimum a turn and comes back for the rest.

    What is ready is committed. What is only pipelined stays reserved for the session. Everything else is undone.
    """
    ssn.error_cache = predicateErrorCacheEnable
    _Allocation(ssn).run()


class _Allocation:
    def __init__(self, ssn: Session) -> None:
        self.ssn = ssn
        self.runs = DryRuns(ssn)
        self.failures = Failures(ssn)
        self.worksheets: dict[int, Worksheet] = {}

    def run(self) -> None:
        heaps = self._jobs_by_queue()
        if heaps:
            self._take_turns(heaps)
        self.failures.remember()

    def _take_turns(self, heaps: dict[int, Heap]) -> None:
        ssn = self.ssn
        queues = Heap(queue_keyer(ssn), list(heaps))
        while queues:
            queue = queues.pop()
            if ssn.ask(points.overused, Queue(ssn.tables, queue)):
                ssn.tell(ssn.tables.queues.names[queue], "queue overused")
                continue
            if not heaps[queue]:
                continue
            job, standing = heaps[queue].pop(), ssn.standing
            if self._allocate(job):
                heaps[queue].push(job)
            elif self.failures.usable and ssn.standing == standing:
                self._fail_on(heaps[queue])
            queues.push(queue)

    def _fail_on(self, jobs: Heap) -> None:
        """After a failure: the queue has the turn again as long as its next jobs fail as others did, for nothing that
        decides about turns has changed."""
        if not jobs or not self.failures.repeat(jobs.peek()):
            return
        jobs.pop()
        if len(jobs) > 1 and (known := self.failures.known_of_all(jobs.rows())) is not None:
            self.failures.repeat_all(jobs.pop_all(), known)
        while jobs and self.failures.repeat(jobs.peek()):
            jobs.pop()

    def _jobs_by_queue(self) -> dict[int, Heap]:
        """Jobs with tasks to place, by queue. Whether a job is valid is asked when its turn comes: nothing here
        changes that."""
        ssn, jobs = self.ssn, self.ssn.tables.jobs
        live = jobs.alive & (jobs.queue >= 0)
        pending = live & (jobs.phase == PENDING_PHASE)
        if pending.any() and not ssn.policy.has_action("enqueue"):
            for job in pending.nonzero()[0].tolist():
                ssn.set_phase(job, INQUEUE_PHASE)
            pending = np.zeros_like(pending)
        rows = (live & ~pending & (jobs.waits > 0)).nonzero()[0]
        if not len(rows):
            return {}
        return heaps_by(job_keyer(ssn), rows, jobs.queue[rows])

    def _allocate(self, job: int) -> bool:
        """One turn of a job. Whether it should come back."""
        ssn = self.ssn
        worksheet = self.worksheets.get(job)
        if worksheet is None:
            if self.failures.repeat(job) or not self._eligible(job):
                return False
            worksheet = Worksheet(ssn, job)
        if not worksheet:
            return False
        if ssn.tables.jobs.has_policy[job] or ssn.topology.has_hard(job):
            return self._in_best_domain(job, worksheet)
        watch = self.failures.watch(job)
        comes_back = self._anywhere(job, worksheet)
        if watch is not None:
            self.failures.note(job, watch)
        return comes_back

    def _eligible(self, job: int) -> bool:
        ssn = self.ssn
        invalid = ssn.ask(points.job_valid, Job(ssn.tables, job))
        if invalid is not None:
            ssn.tell(ssn.tables.jobs.uids[job], "invalid", invalid.message)
            return False
        if not ssn.tables.tree.ready and ssn.tables.jobs.has_topology[job]:
            ssn.tell(ssn.tables.jobs.uids[job], "hypernodes not ready")
            return False
        return True

    def _in_best_domain(self, job: int, worksheet: Worksheet) -> bool:
        ssn = self.ssn
        stmt = ssn.statement()
        left = allocate_for_job(ssn, stmt, job, worksheet, self.runs)
        if left is None:
            stmt.discard()
            return False
        if not ssn.job_ready(job):
            stmt.leave_standing()
            return False
        stmt.commit()
        ssn.moved_hypernodes.add(job)
        self.worksheets[job] = left
        return bool(left)

    def _anywhere(self, job: int, worksheet: Worksheet) -> bool:
        ssn = self.ssn
        sub = next((s for s in worksheet.sheets if ssn.tables.subs.uids[s] == ssn.tables.jobs.uids[job]), -1)
        if sub < 0:
            return False
        sheet = worksheet.sheets[sub]
        stmt = ssn.statement()
        nominated = ssn.tables.subs.nominated[sub] >= 0
        placed = nominated and try_nomination(ssn, stmt, sub, sheet)
        if not placed and not allocate_tasks(ssn, stmt, sub, sheet, Domain(ssn, ssn.tables.tree.top)):
            stmt.discard()
            return False
        if not ssn.job_ready(job):
            stmt.leave_standing()
            return False
        stmt.commit()
        if ssn.tables.subs.nominated[sub] >= 0:
            ssn.journal.put(ssn.tables.subs.nominated, sub, -1)
        self.worksheets[job] = worksheet
        return bool(sheet)
