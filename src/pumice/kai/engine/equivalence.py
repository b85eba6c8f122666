"""Skip jobs that are equal to a failed one: of the same queue, with equal tasks in equal order, none of them placed.

Jobs with tasks of several classes are excluded, since the placement of the first class affects the second. So are jobs
with topology constraints. No failure is shared if a hook that was asked may tell equal jobs apart
(``Hook.for_equals``).
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from pumice.columns.counting import ACTIVE
from pumice.columns.dtypes import AnyArray
from pumice.framework.cycle.session import Session
from pumice.framework.plugin import points
from pumice.framework.plugin.hooks import At
from pumice.framework.plugin.point import Question
from pumice.kai.engine.points import device_order
from pumice.model.blockers import Blocker

_Kind = tuple[int, int, bool, int]
#: Points that decide whether tasks of a job can be placed, and those that decide where.
_WHETHER = (points.pre_predicate, points.predicate)
_WHERE = (points.node_order, points.batch_node_order, device_order)


class EqualJobs:
    """Failures shared by equal jobs, of one action, which asks about each job at ``asks`` besides placing it."""

    def __init__(self, ssn: Session, rows: AnyArray, asks: tuple[Question, ...] = ()) -> None:
        self._ssn = ssn
        self._shares = answer_equally(ssn, (*_WHETHER, *asks))
        # With one task, any node will do. With several, where the first goes may decide whether there is room for all.
        self._shares_gangs = self._shares and answer_equally(ssn, _WHERE)
        jobs = ssn.tables.jobs
        # Preemptible jobs may go over the quota and others not, and the priority decides who may be evicted for them.
        columns = (jobs.queue, jobs.signature, jobs.preemptible, jobs.priority)
        # A negative signature marks a job that is compared with no other. A job that holds something needs less than
        # its equals.
        apart = (jobs.signature[rows] < 0) | (jobs.counts[rows] @ ACTIVE > 0)
        kinds: Iterable[_Kind] = zip(*(column[rows].tolist() for column in columns), strict=True)
        self._kind: dict[int, _Kind | None] = {
            job: None if alone else kind for job, kind, alone in zip(rows.tolist(), kinds, apart.tolist(), strict=True)
        }
        self._why: dict[_Kind | None, Blocker] = {}
        self._reported: list[tuple[int, Blocker]] = []

    def failed(self, job: int) -> bool:
        """Return True, and record the failure, if an equal job has failed."""
        why = self._why.get(self._kind[job])
        if why is None:
            return False
        self._reported.append((job, why))
        return True

    def leading(self, jobs: Iterable[int]) -> int:
        """Return how many of the first jobs are equal to failed ones."""
        count = 0
        for job in jobs:
            if not self.failed(job):
                break
            count += 1
        return count

    def fails(self, job: int, why: Blocker, *, equal: bool = True) -> None:
        """Record that a job failed. ``equal``: jobs equal to it fail too."""
        self._reported.append((job, why))
        kind = self._kind[job]
        if kind is not None and equal and self._is_shared(job):
            self._why[kind] = why

    def _is_shared(self, job: int) -> bool:
        """Return True if all tasks of a job are of one class, and all hooks answer equally for jobs that are equal."""
        tables = self._ssn.tables
        classes = tables.tasks.cls[tables.jobs.tasks[job]]
        return (self._shares_gangs if len(classes) > 1 else self._shares) and bool((classes == classes[0]).all())

    def placed(self, job: int) -> None:
        """Mark a job as equal to no other, since a part of it was placed."""
        self._kind[job] = None

    def forget(self) -> None:
        """Forget failures, because evictions have released resources."""
        self._why.clear()

    def tell(self) -> None:
        """Write all failures into the trace, one entry per reason."""
        by_reason: dict[Blocker, list[int]] = {}
        for job, why in self._reported:
            by_reason.setdefault(why, []).append(job)
        for why, jobs in by_reason.items():
            self._ssn.trace.tell_of_jobs(np.array(jobs), why)


def answer_equally(ssn: Session, asked: tuple[Question, ...]) -> bool:
    """Return True if all hooks at some points answer equally for equal jobs and tasks."""

    def find(at: At) -> bool:
        return all(hook.for_equals for hook in at(*asked))

    return ssn.hooks.known(("answer equally", asked), asked, find)
