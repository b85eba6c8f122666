"""What befell one job befalls the next one like it: failures that need not be found out again.

A waiting job of which nothing is placed fails in the same way as the last one of its shape and queue, as long as
nothing has been placed in between. Then what that try left behind (notes, and where the undone tries had put tasks) is
written for the new job as if it had been tried. Only where all plugins of the policy declare that they answer by shape,
and none has anything to say about a single task, such as by its labels, which no shape holds.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pumice.columns.counting import PENDING
from pumice.columns.dtypes import I8, I32, AnyArray, Bool
from pumice.columns.views import Task
from pumice.framework import points
from pumice.framework.placing import constant_scores, unopposed
from pumice.framework.session import Session
from pumice.framework.verdict import FitErrors
from pumice.volcano.placement import note_skipped_role

#: Failures kept at most; when there are more, all are forgotten.
KNOWN_MAX = 20_000


class Aftermath(NamedTuple):
    """What an undone try left on the tasks of a job, by their position; errors in the order of noting, None for a task
    whose role had failed before."""

    status: I8
    node: I32
    evicted: Bool
    errors: tuple[tuple[int, FitErrors | None], ...]

    @property
    def is_nothing(self) -> bool:
        return not self.errors and bool((self.status < 0).all())

    def befall(self, ssn: Session, rows: AnyArray) -> None:
        """Leave the same on the tasks of another job."""
        tasks = ssn.tables.tasks
        tried = (self.status >= 0).nonzero()[0]
        if len(tried):
            tasks.last_status[rows[tried]] = self.status[tried]
            tasks.last_node[rows[tried]] = self.node[tried]
            tasks.last_evicted[rows[tried]] = self.evicted[tried]
        for position, errors in self.errors:
            if errors is None:
                note_skipped_role(ssn, int(rows[position]))
            else:
                ssn.fit_notes.note(int(rows[position]), errors)


class Watch:
    """Sees what one try leaves on tasks that had no notes before it."""

    __slots__ = ("_before", "_rows", "_ssn")

    def __init__(self, ssn: Session, rows: AnyArray) -> None:
        self._ssn, self._rows = ssn, rows
        tasks = ssn.tables.tasks
        self._before = tasks.last_status[rows]
        tasks.last_status[rows] = -1

    def leave(self) -> None:
        """What an earlier try had left is there again where this one left nothing."""
        tasks, rows = self._ssn.tables.tasks, self._rows
        untouched = tasks.last_status[rows] < 0
        tasks.last_status[rows[untouched]] = self._before[untouched]

    def end(self, job: int) -> Aftermath:
        """The same, and what was left."""
        rows, tasks = self._rows, self._ssn.tables.tasks
        left = Aftermath(
            tasks.last_status[rows], tasks.last_node[rows], tasks.last_evicted[rows], self._errors(job, rows)
        )
        self.leave()
        return left

    def _errors(self, job: int, rows: AnyArray) -> tuple[tuple[int, FitErrors | None], ...]:
        notes = self._ssn.fit_notes.by_job.get(job)
        if not notes:
            return ()
        position = {row: i for i, row in enumerate(rows.tolist())}
        return tuple(
            (position[row], None if errors.skipped else errors) for row, errors in notes.items() if row in position
        )


class Failure(NamedTuple):
    """``standing`` is how much stood in the session when it was found out, ``told`` what the story says of the job."""

    standing: int
    aftermath: Aftermath
    leaves_something: bool
    told: tuple[tuple[str, str], ...]


class Failures:
    """Failures of whole jobs found in this action so far, by queue and shape. Not ``usable`` under plugins that look at
    more of a job than its shape."""

    def __init__(self, ssn: Session) -> None:
        self._ssn = ssn
        self._known: dict[tuple[int, int], Failure] = {}
        self._by_class: dict[int, bool] = {}
        self._nominations = bool((ssn.tables.tasks.nominated >= 0).any())
        self.usable = all(option.spec.by_shape for tier in ssn.policy.tiers for option in tier) and not ssn.has(
            points.best_node
        )

    def repeat(self, job: int) -> bool:
        """Let the job fail like the last one of its kind, if it would; False when it has to be tried."""
        ssn, jobs = self._ssn, self._ssn.tables.jobs
        known = self._known.get((int(jobs.queue[job]), int(jobs.shape[job])))
        if known is None or known.standing != ssn.standing or not self._is_fresh(job):
            return False
        if known.leaves_something:
            known.aftermath.befall(ssn, jobs.tasks[job])
            ssn.touched[job] = True
        for what, detail in known.told:
            ssn.tell(jobs.uids[job], what, detail)
        return True

    def watch(self, job: int) -> Watch | None:
        """Call before a job is tried, and ``note`` after it. None: its failure would say nothing about others."""
        if not self._is_fresh(job):
            return None
        return Watch(self._ssn, self._ssn.tables.jobs.tasks[job])

    def note(self, job: int, watch: Watch, standing: int, told: int) -> None:
        """Keep how a job failed, if it did. ``standing`` and ``told``: how much stood and was told before the try."""
        ssn, jobs = self._ssn, self._ssn.tables.jobs
        if ssn.standing != standing:
            watch.leave()
            return
        left = watch.end(job)
        story = ssn.story[told:]
        if any(entry.subject != jobs.uids[job] for entry in story):
            return
        if ssn.job_ready(job) or not self._is_by_class(job):
            return  # it comes back for what is left of it, or its like may fare otherwise
        if len(self._known) >= KNOWN_MAX:
            self._known.clear()
        self._known[int(jobs.queue[job]), int(jobs.shape[job])] = Failure(
            standing, left, not left.is_nothing, tuple((entry.what, entry.detail) for entry in story)
        )

    def _is_fresh(self, job: int) -> bool:
        ssn, jobs = self._ssn, self._ssn.tables.jobs
        return (
            self.usable
            and jobs.shape[job] >= 0
            and jobs.counts[job, PENDING] == jobs.size[job]
            and not ssn.fit_notes.by_job.get(job)
            and not (self._nominations and (ssn.tables.tasks.nominated[jobs.tasks[job]] >= 0).any())
        )

    def _is_by_class(self, job: int) -> bool:
        """Whether all that is said about single tasks of the job is said of their whole class; once for jobs of a
        shape."""
        ssn, jobs, shape = self._ssn, self._ssn.tables.jobs, int(self._ssn.tables.jobs.shape[job])
        found = self._by_class.get(shape)
        if found is None:
            rows = jobs.tasks[job]
            _, firsts = np.unique(ssn.tables.tasks.cls[rows], return_index=True)
            tasks = [Task(ssn.tables, row) for row in rows[firsts].tolist()]
            found = self._by_class[shape] = all(
                unopposed(ssn, task, ssn.all_nodes) and constant_scores(ssn, task, ssn.all_nodes) for task in tasks
            )
        return found
