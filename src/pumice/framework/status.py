"""The end of a session: plugins close, PodGroup phases and conditions are recomputed, differences are handed out.

Source: Volcano CloseSession, job updater (phase rules, when to write) and queue status.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from pumice.algorithms.sums import sums_by
from pumice.columns.jobs import PHASES
from pumice.columns.views import Job
from pumice.framework import points
from pumice.framework.outcome import Outcome
from pumice.model.decisions import PodGroupUpdate
from pumice.model.podgroup import PodGroup, PodGroupCondition, PodGroupStatus
from pumice.model.status import PodGroupPhase, TaskStatus

if TYPE_CHECKING:
    from pumice.framework.session import Session

UNSCHEDULABLE, SCHEDULED = "Unschedulable", "Scheduled"


class Conditions:
    """Conditions that plugins set while the session closes: by job, by type."""

    def __init__(self, ssn: Session) -> None:
        self._ssn = ssn
        self.by_job: dict[int, dict[str, PodGroupCondition]] = {}

    def set(self, job: int, kind: str, reason: str, message: str) -> None:
        """Set a condition True as of this session."""
        condition = PodGroupCondition(kind, "True", reason, message, self._ssn.uid, self._ssn.now)
        self.by_job.setdefault(job, {})[kind] = condition


def close_session(ssn: Session) -> Outcome:
    """Tell the plugins, recompute what changed, return it all."""
    ssn.action = "close"
    for hook in reversed([hook for tier in ssn.tiers(points.session_close) for _, hook in tier]):
        hook()
    for _, instance in reversed(ssn.plugins):
        if hasattr(instance, "on_session_close"):
            instance.on_session_close(ssn)
    outcome = Outcome(ssn)
    looked_at = ssn.jobs_to_close()
    calm = []
    for job in looked_at.tolist():
        status = new_status(ssn, job)
        group = ssn.tables.jobs.groups[job]
        if differs(status, group.status):
            outcome.groups.append(PodGroupUpdate(group.key, status))
        elif not ssn.touched[job]:
            calm.append(job)
    outcome.groups.sort(key=lambda update: update.job)
    outcome.settled = np.array(calm, dtype=np.int64)
    for job in sorted(ssn.moved_hypernodes):
        outcome.job_hypernodes[job] = int(ssn.tables.jobs.hypernode[job])
        for sub in ssn.tables.jobs.subs[job]:
            outcome.sub_hypernodes[sub] = int(ssn.tables.subs.hypernode[sub])
    queue_status(ssn, outcome)
    return outcome


def new_status(ssn: Session, job: int) -> PodGroupStatus:
    """The status a PodGroup should have now."""
    group = ssn.tables.jobs.groups[job]
    fresh = ssn.conditions.by_job.get(job, {})
    counts = ssn.tables.jobs.counts[job]
    return PodGroupStatus(
        phase_of(ssn, job, UNSCHEDULABLE in fresh).value,
        _merge(group, fresh),
        int(counts[TaskStatus.RUNNING]),
        int(counts[TaskStatus.SUCCEEDED]),
        int(counts[TaskStatus.FAILED]),
    )


def _merge(group: PodGroup, fresh: dict[str, PodGroupCondition]) -> tuple[PodGroupCondition, ...]:
    """Replace conditions of the same type in place, append new ones."""
    if not fresh:
        return group.status.conditions
    kept = [fresh.pop(c.type, c) for c in group.status.conditions]
    return (*kept, *fresh.values())


def phase_of(ssn: Session, job: int, unschedulable: bool) -> PodGroupPhase:
    """The phase rules, in order."""
    tables = ssn.tables
    handle = Job(tables, job)
    counts = handle.counts
    if counts[TaskStatus.RUNNING] and unschedulable:
        return PodGroupPhase.UNKNOWN
    scheduled = handle.scheduled_count + releasing_scheduled(ssn, job)
    completed = int(counts[TaskStatus.FAILED] + counts[TaskStatus.SUCCEEDED])
    if scheduled >= tables.jobs.groups[job].min_member:
        return PodGroupPhase.COMPLETED if scheduled == completed else PodGroupPhase.RUNNING
    return PodGroupPhase.INQUEUE if PHASES[tables.jobs.phase[job]] is PodGroupPhase.INQUEUE else PodGroupPhase.PENDING


def releasing_scheduled(ssn: Session, job: int) -> int:
    """Releasing tasks that are on a node."""
    tables = ssn.tables
    if not tables.jobs.counts[job, TaskStatus.RELEASING]:
        return 0
    rows = tables.jobs.tasks[job]
    return int(np.count_nonzero((tables.tasks.status[rows] == TaskStatus.RELEASING) & (tables.tasks.node[rows] >= 0)))


def differs(new: PodGroupStatus, old: PodGroupStatus) -> bool:
    """Whether the status must be written: conditions are compared in place without time and transition."""
    if replace(new, conditions=()) != replace(old, conditions=()) or len(new.conditions) != len(old.conditions):
        return True
    return any(
        (a.type, a.status, a.reason, a.message) != (b.type, b.status, b.reason, b.message)
        for a, b in zip(new.conditions, old.conditions, strict=True)
    )


def queue_status(ssn: Session, outcome: Outcome) -> None:
    """status.allocated of queues where it changed. A job directly in ``root`` counts twice in root, as in Volcano."""
    jobs, queues, axis = ssn.tables.jobs, ssn.tables.queues, ssn.tables.axis
    live = ssn.live_jobs()
    sums = sums_by(jobs.queue[live], jobs.allocated[live], len(queues))
    root = queues.row_of.get("root", -1)
    if root >= 0:
        own = sums.copy()
        for row in range(len(queues)):
            parent, steps = (queues.parent[row] if row != root else root), 0
            while parent >= 0 and steps <= len(queues):
                sums[parent] += own[row]
                parent, steps = (queues.parent[parent] if parent != root else -1), steps + 1
    for row, queue in enumerate(queues.objs):
        if queue.allocated is None or not np.array_equal(sums[row], axis.vector(queue.allocated)):
            outcome.queues[queue.name] = axis.resource(sums[row])
