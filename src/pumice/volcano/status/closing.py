"""Close a session in Volcano's language: compute phases and conditions of PodGroups, and return only what has changed.

Source: Volcano CloseSession, job updater (phase rules, when to write) and queue status.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from pumice.columns.counting import RELEASING, scheduled_in
from pumice.columns.dtypes import F64, I64, Bool
from pumice.columns.jobs import INQUEUE_PHASE, JobTable
from pumice.framework.cycle.session import Session
from pumice.framework.memo import ground
from pumice.model.decisions import PodGroupUpdate, Writes
from pumice.model.resources import Resource
from pumice.model.status import PodGroupPhase, TaskStatus
from pumice.model.workloads.podgroup import PodGroup, PodGroupCondition, PodGroupStatus
from pumice.volcano.queues.amounts import HELD_BY_QUEUES, held_by_queues
from pumice.volcano.queues.gates import removals
from pumice.volcano.queues.tree import QueueTree

UNSCHEDULABLE, SCHEDULED = "Unschedulable", "Scheduled"
#: The memo's question about jobs whose status needs no write.
_UP_TO_DATE = "status is up to date"
#: As plain integers, which index lists faster than members of an enumeration.
RUNNING, SUCCEEDED, FAILED = int(TaskStatus.RUNNING), int(TaskStatus.SUCCEEDED), int(TaskStatus.FAILED)


@dataclass(slots=True)
class Conditions:
    """Conditions that plugins set while the session closes, by job and type."""

    uid: str
    now: float
    by_job: dict[int, dict[str, PodGroupCondition]] = field(default_factory=dict)
    _made: dict[tuple[str, str, str, str], PodGroupCondition] = field(default_factory=dict)

    def set(self, job: int, kind: str, reason: str, message: str, *, status: str = "True") -> None:
        """Set a condition to a status as of this session."""
        # Thousands of jobs may get the same condition, so equal ones are one object.
        key = kind, status, reason, message
        if key not in self._made:
            self._made[key] = PodGroupCondition(kind, status, reason, message, self.uid, self.now)
        self.by_job.setdefault(job, {})[kind] = self._made[key]


def conditions(ssn: Session) -> Conditions:
    """Return the conditions of the session."""
    return ssn.shared(Conditions, lambda: Conditions(ssn.uid, ssn.now))


def jobs_to_close(ssn: Session) -> list[int]:
    """Return the rows of jobs whose status may have to be written, ascending."""
    return [row for row in _due(ssn) if _has_status(ssn.tables.jobs, row)]


def _due(ssn: Session) -> list[int]:
    """Return the rows whose status may be out of date, ascending: the store or this session changed them since it was
    up to date, they failed in another way than then, or a plugin has set a condition."""
    # Without the memo, every cycle would compare the status of every job.
    due = ~ssn.memo.rows_kept(_UP_TO_DATE, *_stamps(ssn)) | _written(ssn)
    return sorted({*due.nonzero()[0].tolist(), *ssn.trace.tried, *conditions(ssn).by_job})


def _stamps(ssn: Session) -> tuple[I64, I64]:
    """Return on what the status of a job rests: its stamp in the snapshot, and how it failed. Shapes (J,)."""
    stamps = ssn.world.before.jobs.stamps
    assert stamps is not None
    return stamps, ssn.trace.failed_as


def _written(ssn: Session) -> Bool:
    """Return True for jobs that this session has written. Shape (J,)."""
    stamps = ssn.tables.jobs.stamps
    assert stamps is not None
    return np.asarray(stamps > ssn.opened_at)


def _keep(ssn: Session, updates: Iterable[int]) -> None:
    """Remember that the status of all jobs is up to date, except of those with an update or written by this
    session."""
    up_to_date = ~_written(ssn)
    # Whether an update reaches the store is not known yet, so such jobs are checked again.
    up_to_date[[*updates, *ssn.trace.tried]] = False
    ssn.memo.keep_rows(_UP_TO_DATE, up_to_date, *_stamps(ssn))


def _has_status(jobs: JobTable, row: int) -> bool:
    """Return True if a row is a job of the session whose PodGroup could be read."""
    # Unused rows have no queue.
    return bool(jobs.queue[row] >= 0 and not jobs.quarantined[row])


def close(ssn: Session) -> Writes:
    """Return what should be written."""
    fresh, jobs, updates, rows = conditions(ssn).by_job, ssn.tables.jobs, {}, _due(ssn)
    for row in rows:
        update = new_status(ssn, row, fresh.get(row, {})) if _has_status(jobs, row) else None
        if update is not None:
            updates[row] = update
    if rows:
        _keep(ssn, updates)
    moved = sorted(ssn.trace.moved)
    return Writes(
        # By name and not by row, since rows depend on the order in which groups arrived.
        groups=tuple(sorted(updates.values(), key=lambda update: update.job)),
        queues=queue_status(ssn),
        job_hypernodes={job: int(jobs.hypernode[job]) for job in moved},
        sub_hypernodes={sub: int(ssn.tables.subs.hypernode[sub]) for job in moved for sub in jobs.subs[job]},
        notes=ssn.notes,
        gates=tuple(removals(ssn)),
    )


def new_status(ssn: Session, job: int, fresh: Mapping[str, PodGroupCondition]) -> PodGroupUpdate | None:
    """Return the new status of a PodGroup with ``fresh`` conditions by type, or None if it is up to date."""
    jobs = ssn.tables.jobs
    group, counts = jobs.groups[job], jobs.counts[job].tolist()
    incomplete = fresh.get(UNSCHEDULABLE)
    unschedulable = incomplete is not None and incomplete.status == "True"
    old, phase = group.status, phase_of(ssn, job, counts, unschedulable=unschedulable)
    running, succeeded, failed = counts[RUNNING], counts[SUCCEEDED], counts[FAILED]
    as_before = phase == old.phase and running == old.running and succeeded == old.succeeded and failed == old.failed
    # Times and transition IDs are not compared: they differ in every session, and would cause a write for every
    # waiting gang in every cycle.
    if as_before and _are_said(fresh.values(), old.conditions):
        return None
    return PodGroupUpdate(group.key, PodGroupStatus(phase.value, _merge(group, fresh), running, succeeded, failed))


def _are_said(fresh: Iterable[PodGroupCondition], said: tuple[PodGroupCondition, ...]) -> bool:
    """Return True if for each type the first existing condition equals the fresh one."""
    for new in fresh:
        for old in said:
            if old.type == new.type:
                break
        else:
            return False
        if (old.message, old.reason, old.status) != (new.message, new.reason, new.status):
            return False
    return True


def _merge(group: PodGroup, fresh: Mapping[str, PodGroupCondition]) -> tuple[PodGroupCondition, ...]:
    """Replace conditions of the same type in place and append new ones."""
    # Only the first condition of a type is replaced, as in Volcano.
    left = dict(fresh)
    kept = [left.pop(c.type, c) for c in group.status.conditions]
    return (*kept, *left.values())


def phase_of(ssn: Session, job: int, counts: list[int], *, unschedulable: bool) -> PodGroupPhase:
    """Return the phase by Volcano's rules, in order.

    ``counts``: tasks by status. ``unschedulable``: the gang was found incomplete in this session.
    """
    jobs = ssn.tables.jobs
    # First, so that a gang that runs in part is never shown as running. Source: Volcano jobStatus.
    if counts[RUNNING] and unschedulable:
        return PodGroupPhase.UNKNOWN
    scheduled = scheduled_in(counts) + (releasing_scheduled(ssn, job) if counts[RELEASING] else 0)
    if scheduled >= jobs.groups[job].min_member:
        ended = counts[FAILED] + counts[SUCCEEDED]
        return PodGroupPhase.COMPLETED if scheduled == ended else PodGroupPhase.RUNNING
    return PodGroupPhase.INQUEUE if jobs.phase[job] == INQUEUE_PHASE else PodGroupPhase.PENDING


def releasing_scheduled(ssn: Session, job: int) -> int:
    """Return the number of releasing tasks that are on a node."""
    tables = ssn.tables
    if not tables.jobs.counts[job, RELEASING]:
        return 0
    rows = tables.jobs.tasks[job]
    return int(np.count_nonzero((tables.tasks.status[rows] == RELEASING) & (tables.tasks.node[rows] >= 0)))


def queue_status(ssn: Session) -> dict[str, Resource]:
    """Return status.allocated of queues where it has changed. As in Volcano, a job in ``root`` counts twice in root."""
    queues, axis, jobs = ssn.tables.queues, ssn.tables.axis, ssn.tables.jobs
    columns = *[jobs[name] for name in HELD_BY_QUEUES], queues["names"], queues["parent"]
    sums = ssn.memo.get("what queues hold", (axis.unoffered, *ground(*columns)), lambda: _summed_up(ssn))
    differ = np.logical_or.reduce(sums != ssn.tables.queue_statuses.allocated, axis=1).nonzero()[0].tolist()
    return {queues.names[row]: axis.resource(sums[row]) for row in differ}


def _summed_up(ssn: Session) -> F64:
    """Return what queues hold including queues below them. Shape (Q, R)."""
    queues, axis, sums = ssn.tables.queues, ssn.tables.axis, held_by_queues(ssn)
    if axis.unoffered >= 0:
        sums[:, axis.unoffered] = 0.0  # the column of resources that no node offers has no name
    root = queues.row_of.get("root", -1)
    if root >= 0:
        own = sums[root].copy()
        sums = QueueTree.of(queues).summed_up(sums)
        # Quirk of Volcano, kept on purpose: a job directly in ``root`` counts twice there.
        sums[root] += own
    return sums
