"""drf: the job with the smaller dominant share first; with hierarchy also between queues. Source: Volcano drf (spec 04
§6)."""

from __future__ import annotations

from pumice.algorithms.shares import dominant_share, largest_part
from pumice.columns.dtypes import F64
from pumice.columns.rows import JobRows, TaskRun
from pumice.columns.views import Queue, Task
from pumice.framework import points
from pumice.framework.combine import Vote
from pumice.framework.plugin import plugin
from pumice.framework.session import Session
from pumice.volcano.share_tree import ShareTree

SAME = 1e-6


@plugin("drf", by_shape=True)
class Drf:
    """``allocated`` (J, R) and ``share`` (J,) include what is promised to pipelined tasks in this session."""

    def __init__(self, ssn: Session, *, hierarchy: bool = False) -> None:
        self.ssn = ssn
        self.allocated = ssn.tables.jobs.allocated.copy()
        self.share = ssn.column(len(self.allocated))
        self._total: list[float] = ssn.total.tolist()
        held = ssn.holding_jobs()
        self.share[held] = dominant_share(self.allocated[held], ssn.total)
        self.unused_points = () if hierarchy else (points.queue_order, points.reclaimable)
        self.tree = ShareTree(ssn, self.allocated) if hierarchy else None

    @points.job_order
    def job_order(self, jobs: JobRows) -> F64:
        return self.share[jobs.rows]

    @points.queue_order
    def queue_order(self, left: Queue, right: Queue) -> int:
        assert self.tree is not None
        return self.tree.compare(left, right)

    @points.preemptable
    def preemptable(self, preemptor: Task, candidates: list[Task]) -> tuple[list[Task], Vote]:
        """Tasks of jobs that, without the task, would still have a share no smaller than the preemptor's with its
        task."""
        total = self.ssn.total
        own = float(dominant_share(self.allocated[preemptor.job.row] + preemptor.req, total))
        left: dict[int, F64] = {}
        victims = []
        for task in candidates:
            job = task.job.row
            allocated = left[job] = left.get(job, self.allocated[job]) - task.req
            share = float(dominant_share(allocated, total))
            if own < share or abs(own - share) <= SAME:
                victims.append(task)
        return victims, Vote.PERMIT

    @points.reclaimable
    def reclaimable(self, reclaimer: Task, candidates: list[Task]) -> tuple[list[Task], Vote]:
        """Tasks whose queue would still come after the reclaimer's, were the reclaimer placed and the task gone."""
        assert self.tree is not None
        victims = self.tree.reclaimable(reclaimer, candidates)
        return victims, Vote.PERMIT

    @points.on_allocate
    def on_allocate(self, run: TaskRun) -> None:
        self._move(run, 1.0)

    @points.on_deallocate
    def on_deallocate(self, run: TaskRun) -> None:
        self._move(run, -1.0)

    def _move(self, run: TaskRun, sign: float) -> None:
        job = run.job
        if job < 0:
            return
        self.ssn.journal.add(self.allocated, job, (sign * len(run)) * run.req)
        share = max(0.0, largest_part(self.allocated[job].tolist(), self._total))
        self.ssn.journal.put(self.share, job, share)
        if self.tree is not None:
            self.tree.stale = True
