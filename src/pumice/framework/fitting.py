"""Why tasks of a job found no node, noted while actions run, and the texts users read about it.

Source: Volcano job fit errors (texts kept byte for byte).
"""

from __future__ import annotations

from collections import Counter
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pumice.columns.counting import ALLOCATED, PENDING
from pumice.columns.views import Job
from pumice.framework.verdict import FitErrors
from pumice.model.status import TaskStatus

if TYPE_CHECKING:
    from pumice.framework.session import Session

UNSCHEDULABLE, SCHEDULABLE = "Unschedulable", "Schedulable"


class Fared(NamedTuple):
    """``placed``: pending tasks that an undone try had placed. ``text``: the job's text up to the origin."""

    placed: int
    text: str


class FitNotes:
    """Fit errors of this session by job and task."""

    def __init__(self, ssn: Session) -> None:
        self._ssn = ssn
        self.by_job: dict[int, dict[int, FitErrors]] = {}

    def note(self, row: int, errors: FitErrors) -> None:
        """Note why a task found no node; replaces an older note."""
        job = int(self._ssn.tables.tasks.job[row])
        self.note_again(job, row, errors)
        self._ssn.touched[job] = True

    def note_again(self, job: int, row: int, errors: FitErrors) -> None:
        """The same where it may be no news."""
        self.by_job.setdefault(job, {})[row] = errors

    def of(self, row: int) -> FitErrors | None:
        return self.by_job.get(int(self._ssn.tables.tasks.job[row]), {}).get(row)

    def reset_job(self, job: int) -> None:
        self.by_job.pop(job, None)

    def reset_sub(self, sub: int) -> None:
        """Forget the notes of one sub-job."""
        notes = self.by_job.get(int(self._ssn.tables.subs.job[sub]))
        for row in [r for r in notes or () if self._ssn.tables.tasks.sub[r] == sub]:
            assert notes is not None
            del notes[row]

    def failed_roles(self, sub: int) -> set[int]:
        """Roles of tasks of the sub-job that found no node."""
        tasks = self._ssn.tables.tasks
        notes = self.by_job.get(int(self._ssn.tables.subs.job[sub]))
        return {int(tasks.role[r]) for r in notes if tasks.sub[r] == sub} if notes else set()

    # -- texts --------------------------------------------------------------------------------------------------------

    def last_or_live(self, row: int) -> tuple[int, int, bool]:
        """Status, node and whether an eviction happened for it: of the transaction discarded last, else as it is."""
        tasks = self._ssn.tables.tasks
        if tasks.last_status[row] >= 0:
            return int(tasks.last_status[row]), int(tasks.last_node[row]), bool(tasks.last_evicted[row])
        return int(tasks.status[row]), int(tasks.node[row]), bool(tasks.evicted_for[row])

    def task_reason(self, row: int) -> tuple[str, str, str]:
        """(reason, message, nominated node) for one task. Source: Volcano TaskSchedulingReason."""
        tables = self._ssn.tables
        status, node, evicted = self.last_or_live(row)
        key = tables.tasks.pods[row].key
        name = tables.nodes.facts.names[node] if node >= 0 else ""
        if status == TaskStatus.ALLOCATED:
            return SCHEDULABLE, f"Pod {key} can possibly be assigned to {name}, once minAvailable is satisfied", ""
        if status == TaskStatus.PIPELINED:
            message = (
                f"Pod {key} can possibly be assigned to {name}, once resource is released and minAvailable is satisfied"
            )
            return UNSCHEDULABLE, message, name if evicted else ""
        if status == TaskStatus.PENDING:
            errors = self.of(row)
            return UNSCHEDULABLE, errors.text if errors else "", ""
        return TaskStatus(status).label, "", ""

    def job_text(self, job: int) -> str:
        """``pod group is not ready, 8 Pending, 8 minAvailable; Pending: …. Origin reason is …``

        The origin is the first failing task in task order, where Volcano takes any.
        """
        return self.fared(job).text + self.origin(job)

    def origin(self, job: int) -> str:
        """The end of the job's text, empty when none of its tasks failed."""
        tables, notes = self._ssn.tables, self.by_job.get(job)
        if not notes:
            return ""
        row = next((row for row in tables.jobs.tasks[job].tolist() if row in notes), None)
        return "" if row is None else f". Origin reason is {tables.tasks.pods[row].name}: {notes[row].text}"

    def fared(self, job: int) -> Fared:
        """How a job's tasks fared."""
        tasks, jobs = self._ssn.tables.tasks, self._ssn.tables.jobs
        rows = jobs.tasks[job]
        undone = tasks.last_status[rows][tasks.status[rows] == PENDING]
        handle = Job(self._ssn.tables, job)
        return _fared(tuple(handle.counts.tolist()), undone.tobytes(), handle.min_available, handle.is_ready)


@lru_cache(maxsize=1024)
def _fared(counts: tuple[int, ...], undone: bytes, min_available: int, ready: bool) -> Fared:
    """``counts``: tasks by state. ``undone``: for each pending task the state of the last undone try, a byte each."""
    parts = sorted(
        [f"{count} {TaskStatus(s).label}" for s, count in enumerate(counts) if count]
        + [f"{min_available} minAvailable"]
    )
    text = ", ".join(["pod group is ready" if ready else "pod group is not ready", *parts])
    lasts = np.frombuffer(undone, dtype=np.int8).tolist()
    if lasts:
        reasons = Counter(map(_pending_label, lasts))
        text += "; Pending: " + ", ".join(sorted(f"{n} {reason}" for reason, n in reasons.items()))
    return Fared(lasts.count(ALLOCATED), text)


def _pending_label(last: int) -> str:
    if last == ALLOCATED:
        return SCHEDULABLE
    if last in (-1, TaskStatus.PENDING, TaskStatus.PIPELINED):
        return UNSCHEDULABLE
    return TaskStatus(last).label
