"""The end of a session in Volcano's words: PodGroup phases and conditions are recomputed, differences are handed out.

Source: Volcano CloseSession, job updater (phase rules, when to write) and queue status.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

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
#: As plain numbers, which are quicker to look up with.
RUNNING, SUCCEEDED, FAILED = int(TaskStatus.RUNNING), int(TaskStatus.SUCCEEDED), int(TaskStatus.FAILED)


@dataclass(slots=True)
class Conditions:
    """Conditions that plugins set while the session closes: by job, by type."""

    uid: str
    now: float
    by_job: dict[int, dict[str, PodGroupCondition]] = field(default_factory=dict)
    _made: dict[tuple[str, str, str], PodGroupCondition] = field(default_factory=dict)

    def set(self, job: int, kind: str, reason: str, message: str) -> None:
        """Set a condition True as of this session."""
        key = kind, reason, message
        if key not in self._made:
            self._made[key] = PodGroupCondition(kind, "True", reason, message, self.uid, self.now)
        self.by_job.setdefault(job, {})[kind] = self._made[key]


def conditions(ssn: Session) -> Conditions:
    """Those of this session."""
    return ssn.shared(Conditions, lambda: Conditions(ssn.uid, ssn.now))


class Settled(NamedTuple):
    """Jobs of which nothing was left to write (J,): their ``stamps`` in the snapshot then, -1 for none, and as what
    they had failed. A value: it is replaced, and never written on."""

    stamps: I64
    failed_as: I64


class _News:
    """Jobs of which there is news in a session: the store or this session has changed them since nothing was left to
    write, or they failed in another way than then. What plugins keep of a job is no part of its status."""

    __slots__ = ("_as_of", "_before", "_found", "_settled", "_ssn", "_told")

    def __init__(self, ssn: Session) -> None:
        count, before = ssn.tables.jobs.capacity, ssn.world.before.jobs.stamps
        assert before is not None
        self._ssn, self._before, self._told = ssn, before, conditions(ssn).by_job
        self._settled: Settled = ssn.memo.get(
            "settled", (count,), lambda: Settled(np.full(count, -1), np.zeros(count, dtype=np.int64))
        )
        self._found: list[int] = []
        self._as_of = -1

    def rows(self) -> list[int]:
        """Their rows, rising, once the actions are over. They are a handful in most sessions, and gone through one by
        one."""
        ssn, now = self._ssn, self._ssn.tables.versions.next()
        if now != self._as_of + 1:  # every write takes a number
            due = (self._before != self._settled.stamps) | (ssn.trace.failed_as != self._settled.failed_as)
            self._found = (due | self._written()).nonzero()[0].tolist()
        self._as_of = now
        return sorted({*self._found, *ssn.trace.tried, *self._told})

    def _written(self) -> Bool:
        """Jobs that this session has written (J,)."""
        stamps = self._ssn.tables.jobs.stamps
        assert stamps is not None
        return np.asarray(stamps > self._ssn.opened_at)

    def settle(self, rows: list[int], updates: Mapping[int, PodGroupUpdate]) -> None:
        """Nothing is left to write of those of some jobs that have no update and that the session has not written."""
        if not rows:
            return
        ssn, (stamps, failed_as) = self._ssn, self._settled
        stamps, failed_as, written = stamps.copy(), failed_as.copy(), self._written()
        stamps[rows], failed_as[rows] = self._before[rows], ssn.trace.failed_as[rows]
        stamps[[row for row in rows if written[row] or row in ssn.trace.tried or row in updates]] = -1
        ssn.memo.keep("settled", (len(stamps),), Settled(stamps, failed_as))


def _news(ssn: Session) -> _News:
    return ssn.shared(_News, lambda: _News(ssn))


def jobs_to_close(ssn: Session) -> list[int]:
    """Rows of jobs whose status may have to be written, rising: those of which there is news."""
    return [row for row in _news(ssn).rows() if _has_status(ssn.tables.jobs, row)]


def _has_status(jobs: JobTable, row: int) -> bool:
    """Whether a row is a job of the session that can be read; a row that is not in use has no queue."""
    return bool(jobs.queue[row] >= 0 and not jobs.barred[row])


def close(ssn: Session) -> Writes:
    """What should be written."""
    news, fresh, jobs, updates = _news(ssn), conditions(ssn).by_job, ssn.tables.jobs, {}
    rows = news.rows()
    for row in rows:
        update = new_status(ssn, row, fresh.get(row, {})) if _has_status(jobs, row) else None
        if update is not None:
            updates[row] = update
    news.settle(rows, updates)
    moved = sorted(ssn.trace.moved)
    return Writes(
        groups=tuple(sorted(updates.values(), key=lambda update: update.job)),
        queues=queue_status(ssn),
        job_hypernodes={job: int(jobs.hypernode[job]) for job in moved},
        sub_hypernodes={sub: int(ssn.tables.subs.hypernode[sub]) for job in moved for sub in jobs.subs[job]},
        notes=ssn.notes,
        gates=tuple(removals(ssn)),
    )


def new_status(ssn: Session, job: int, fresh: Mapping[str, PodGroupCondition]) -> PodGroupUpdate | None:
    """The status a PodGroup should have now, with ``fresh`` conditions by type; None when it has it already.

    Conditions are compared without their time and transition.
    """
    jobs = ssn.tables.jobs
    group, counts = jobs.groups[job], jobs.counts[job].tolist()
    old, phase = group.status, phase_of(ssn, job, counts, unschedulable=UNSCHEDULABLE in fresh)
    running, succeeded, failed = counts[RUNNING], counts[SUCCEEDED], counts[FAILED]
    as_before = phase == old.phase and running == old.running and succeeded == old.succeeded and failed == old.failed
    if as_before and _are_said(fresh.values(), old.conditions):
        return None
    return PodGroupUpdate(group.key, PodGroupStatus(phase.value, _merge(group, fresh), running, succeeded, failed))


def _are_said(fresh: Iterable[PodGroupCondition], said: tuple[PodGroupCondition, ...]) -> bool:
    """Whether of each type the first condition says what the fresh one does."""
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
    """Replace conditions of the same type in place, append new ones."""
    left = dict(fresh)
    kept = [left.pop(c.type, c) for c in group.status.conditions]
    return (*kept, *left.values())


def phase_of(ssn: Session, job: int, counts: list[int], *, unschedulable: bool) -> PodGroupPhase:
    """The phase rules, in order. ``counts``: tasks by state. ``unschedulable``: whether the gang was found incomplete
    in this session."""
    jobs = ssn.tables.jobs
    if counts[RUNNING] and unschedulable:
        return PodGroupPhase.UNKNOWN
    scheduled = scheduled_in(counts) + (releasing_scheduled(ssn, job) if counts[RELEASING] else 0)
    if scheduled >= jobs.groups[job].min_member:
        ended = counts[FAILED] + counts[SUCCEEDED]
        return PodGroupPhase.COMPLETED if scheduled == ended else PodGroupPhase.RUNNING
    return PodGroupPhase.INQUEUE if jobs.phase[job] == INQUEUE_PHASE else PodGroupPhase.PENDING


def releasing_scheduled(ssn: Session, job: int) -> int:
    """Releasing tasks that are on a node."""
    tables = ssn.tables
    if not tables.jobs.counts[job, RELEASING]:
        return 0
    rows = tables.jobs.tasks[job]
    return int(np.count_nonzero((tables.tasks.status[rows] == RELEASING) & (tables.tasks.node[rows] >= 0)))


def queue_status(ssn: Session) -> dict[str, Resource]:
    """status.allocated of queues where it changed. A job directly in ``root`` counts twice in root, as in Volcano."""
    queues, axis, jobs = ssn.tables.queues, ssn.tables.axis, ssn.tables.jobs
    columns = *[jobs[name] for name in HELD_BY_QUEUES], queues["names"], queues["parent"]
    sums = ssn.memo.get("what queues hold", (axis.unoffered, *ground(*columns)), lambda: _summed_up(ssn))
    differ = np.logical_or.reduce(sums != queues.stated, axis=1).nonzero()[0].tolist()
    return {queues.names[row]: axis.resource(sums[row]) for row in differ}


def _summed_up(ssn: Session) -> F64:
    """What queues state that they hold, from what their own jobs do (Q, R)."""
    queues, axis, sums = ssn.tables.queues, ssn.tables.axis, held_by_queues(ssn)
    if axis.unoffered >= 0:
        sums[:, axis.unoffered] = 0.0  # it has no name to be stated by
    root = queues.row_of.get("root", -1)
    if root >= 0:
        own = sums[root].copy()
        tree = ssn.memo.get("tree of queues", ground(queues["parent"]), lambda: QueueTree.of(queues))
        sums = tree.summed_up(sums)
        sums[root] += own
    return sums
