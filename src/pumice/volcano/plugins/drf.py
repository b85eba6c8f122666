"""drf: order jobs by dominant share, and with hierarchy also queues. Source: Volcano drf plugin."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from pumice.algorithms.groups import in_turn
from pumice.algorithms.shares import dominant_share, largest_part
from pumice.api import (
    F64,
    JOBS,
    PODS,
    QUEUES,
    ROWS,
    AnyArray,
    Bool,
    Candidates,
    Column,
    JobRows,
    Queue,
    Session,
    Task,
    TaskRun,
    plugin,
    points,
    read_only,
)
from pumice.framework.memo import ground

if TYPE_CHECKING:
    from pumice.volcano.queues.share_tree import ShareTree

# Volcano's shareDelta: shares are quotients, which differ in the last digits.
SAME = 1e-6

#: What the tree of queues rests on: paths and weights of queues, and jobs with what they hold and ask for.
TREE = (QUEUES, JOBS, PODS, "drf.allocated")


@plugin("drf")
class Drf:
    """Shares of jobs. ``allocated`` (J, R) and ``share`` (J,) include pipelined tasks."""

    spares = "of jobs and queues with a smaller share"

    def __init__(self, ssn: Session, *, hierarchy: bool = False) -> None:
        self.ssn = ssn
        self._total: list[float] = ssn.total.tolist()
        jobs = ssn.tables.jobs
        rests_on = (ssn.tables.nodes.facts.version, *ground(jobs["allocated"], jobs["queue"]))
        # Most cycles of a quiet cluster change none of these.
        allocated, share = ssn.memo.get("drf", rests_on, lambda: _held(ssn))
        self.allocated = ssn.column("drf.allocated", "job", values=allocated)
        self.share = ssn.column("drf.share", "job", values=share)
        self.unused_points = () if hierarchy else (points.queue_order, points.reclaimable)
        self.tree = _tree(ssn, self.allocated) if hierarchy else None

    def figures(self) -> Mapping[str, AnyArray]:
        """Return the numbers of jobs for metrics and reports."""
        return {"job.share": self.share.array}

    @points.job_order(reads=(ROWS,))
    def job_order(self, jobs: JobRows) -> F64:
        """Return the order key of jobs, lower first. Shape (rows,)."""
        found: F64 = self.share.array[jobs.rows]
        return found

    @points.queue_order(reads=TREE)
    def queue_order(self, left: Queue, right: Queue) -> int:
        """Compare two queues in the tree."""
        assert self.tree is not None
        return self.tree.compare(left, right)

    @points.preemptable(reads=(ROWS,))
    def preemptable(self, preemptor: Task, candidates: Candidates) -> Bool:
        """Return the tasks of jobs whose share without the task would not be smaller than the preemptor's share with
        its task. Shape (rows,)."""
        total, allocated, jobs = self.ssn.total, self.allocated.array, candidates.job
        # With the task that preempts, since it is compared as it would be afterwards.
        own = float(dominant_share(allocated[preemptor.job.row] + preemptor.req, total))
        # Quirk of Volcano, kept on purpose: each candidate is subtracted from its job's share for the next one, even
        # if it is no victim.
        share = dominant_share(allocated[jobs] - taken_so_far(candidates.apart(jobs), candidates.req), total)
        return np.asarray((own < share) | (np.abs(own - share) <= SAME))

    @points.reclaimable(reads=TREE)
    def reclaimable(self, reclaimer: Task, candidates: Candidates) -> Bool:
        """Return the tasks whose queue would still come after the reclaimer's, with the reclaimer placed and the task
        gone. Shape (rows,)."""
        assert self.tree is not None
        return self.tree.reclaimable(reclaimer, candidates)

    @points.on_allocate
    def on_allocate(self, run: TaskRun) -> None:
        self._move(run, 1.0)

    @points.on_deallocate
    def on_deallocate(self, run: TaskRun) -> None:
        self._move(run, -1.0)

    def _move(self, run: TaskRun, sign: float) -> None:
        """Add tasks to their job, or subtract them."""
        job = run.job
        # Pods without a PodGroup have no job.
        if job < 0:
            return
        self.ssn.journal.add(self.allocated, job, sign * run.total)
        # Lists of floats: for one job this is faster than arrays.
        share = max(0.0, largest_part(self.allocated.array[job].tolist(), self._total))
        self.ssn.journal.put(self.share, job, share)


def _tree(ssn: Session, allocated: Column[F64]) -> ShareTree:
    """Return the tree of queues."""
    # Imported late: few policies use the hierarchy.
    from pumice.volcano.queues.share_tree import ShareTree

    return ShareTree(ssn, allocated)


def _held(ssn: Session) -> tuple[F64, F64]:
    """Return what jobs hold when the session begins (J, R), and their shares (J,). Read-only."""
    jobs = ssn.tables.jobs
    # Jobs without a queue have no share.
    shares = dominant_share(jobs.allocated, ssn.total) * (jobs.queue >= 0)
    return read_only(jobs.allocated.copy()), read_only(shares)


def taken_so_far(group: AnyArray, amounts: F64) -> F64:
    """Return for each row the sum of amounts in its group up to that row. Shapes (rows,), (rows, R) -> (rows, R)."""
    found, taken = np.empty_like(amounts), np.zeros_like(amounts)
    for rows, groups in in_turn(group):
        taken[groups] += amounts[rows]
        found[rows] = taken[groups]
    return found
