"""drf: the job with the smaller dominant share first; with hierarchy also between queues. Source: Volcano drf (spec 04
§6)."""

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
    SIGNATURE,
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

SAME = 1e-6

#: What the tree of queues is made of: their paths and weights, whose jobs are whose, what they hold and still ask for.
TREE = (QUEUES, JOBS, PODS, "drf.allocated")


@plugin("drf")
class Drf:
    """``allocated`` (J, R) and ``share`` (J,) include what is promised to pipelined tasks in this session."""

    spares = "of jobs and queues with a smaller share"

    def __init__(self, ssn: Session, *, hierarchy: bool = False) -> None:
        self.ssn = ssn
        self._total: list[float] = ssn.total.tolist()
        jobs = ssn.tables.jobs
        rests_on = (ssn.tables.nodes.facts.version, *ground(jobs["allocated"], jobs["queue"]))
        allocated, share = ssn.memo.get("drf", rests_on, lambda: _held(ssn))
        self.allocated = ssn.column("drf.allocated", "job", values=allocated)
        self.share = ssn.column("drf.share", "job", values=share)
        self.unused_points = () if hierarchy else (points.queue_order, points.reclaimable)
        self.tree = _tree(ssn, self.allocated) if hierarchy else None

    def figures(self) -> Mapping[str, AnyArray]:
        return {"job.share": self.share.array}

    @points.job_order(reads=(ROWS,))
    def job_order(self, jobs: JobRows) -> F64:
        found: F64 = self.share.array[jobs.rows]
        return found

    @points.queue_order(reads=TREE)
    def queue_order(self, left: Queue, right: Queue) -> int:
        assert self.tree is not None
        return self.tree.compare(left, right)

    @points.preemptable(reads=(ROWS, SIGNATURE))
    def preemptable(self, preemptor: Task, candidates: Candidates) -> Bool:
        """Tasks of jobs that, without the task, would still have a share no smaller than the preemptor's with its
        task. Each candidate is taken off its job's share, victim or not. Shape (rows,)."""
        total, allocated, jobs = self.ssn.total, self.allocated.array, candidates.job
        own = float(dominant_share(allocated[preemptor.job.row] + preemptor.req, total))
        share = dominant_share(allocated[jobs] - taken_so_far(candidates.apart(jobs), candidates.req), total)
        return np.asarray((own < share) | (np.abs(own - share) <= SAME))

    @points.reclaimable(reads=(*TREE, SIGNATURE))
    def reclaimable(self, reclaimer: Task, candidates: Candidates) -> Bool:
        """Tasks whose queue would still come after the reclaimer's, were the reclaimer placed and the task gone."""
        assert self.tree is not None
        return self.tree.reclaimable(reclaimer, candidates)

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
        self.ssn.journal.add(self.allocated, job, sign * run.total)
        share = max(0.0, largest_part(self.allocated.array[job].tolist(), self._total))
        self.ssn.journal.put(self.share, job, share)


def _tree(ssn: Session, allocated: Column[F64]) -> ShareTree:
    """Queues by their paths, with what their jobs hold."""
    from pumice.volcano.queues.share_tree import ShareTree  # few policies share by a tree

    return ShareTree(ssn, allocated)


def _held(ssn: Session) -> tuple[F64, F64]:
    """What jobs hold as the session begins (J, R), and their shares (J,). Not to be written on."""
    jobs, total = ssn.tables.jobs, ssn.total.tobytes()
    assert jobs.stamps is not None
    shares = ssn.memo.by_row("drf.share", (total,), jobs.stamps, lambda rows: _shares(ssn, rows))
    return read_only(jobs.allocated.copy()), shares


def _shares(ssn: Session, rows: AnyArray) -> F64:
    """The shares of some jobs as the session begins; none of what belongs to no queue. Shape (rows,)."""
    jobs = ssn.tables.jobs
    return dominant_share(jobs.allocated[rows], ssn.total) * (jobs.queue[rows] >= 0)


def taken_so_far(group: AnyArray, amounts: F64) -> F64:
    """For each row the sum of the amounts of its group up to and with it. Shapes (rows,), (rows, R) -> (rows, R)."""
    found, taken = np.empty_like(amounts), np.zeros_like(amounts)
    for rows, groups in in_turn(group):
        taken[groups] += amounts[rows]
        found[rows] = taken[groups]
    return found
