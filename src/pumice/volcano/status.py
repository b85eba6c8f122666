"""The end of a session in Volcano's words: PodGroup phases and conditions are recomputed, differences are handed out.

Source: Volcano CloseSession, job updater (phase rules, when to write) and queue status.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from pumice.columns.counting import RELEASING
from pumice.columns.counting import SCHEDULED as ON_NODE
from pumice.columns.dtypes import F64, I64, AnyArray, Bool
from pumice.columns.jobs import INQUEUE_PHASE
from pumice.framework.memo import ground
from pumice.framework.session import Session
from pumice.model.decisions import PodGroupUpdate, Writes
from pumice.model.podgroup import PodGroup, PodGroupCondition, PodGroupStatus
from pumice.model.resources import Resource
from pumice.model.status import PodGroupPhase, TaskStatus
from pumice.volcano.queue_amounts import queue_amounts_now
from pumice.volcano.queue_gates import removals
from pumice.volcano.queue_tree import QueueTree

UNSCHEDULABLE, SCHEDULED = "Unschedulable", "Scheduled"


@dataclass(slots=True)
class Conditions:
    """Conditions that plugins set while the session closes: by job, by type."""

    uid: str
    now: float
    by_job: dict[int, dict[str, PodGroupCondition]] = field(default_factory=dict)

    def set(self, job: int, kind: str, reason: str, message: str) -> None:
        """Set a condition True as of this session."""
        self.set_all([job], kind, reason, message)

    def set_all(self, jobs: Sequence[int], kind: str, reason: str, message: str) -> None:
        """Set the same condition of some jobs."""
        condition = PodGroupCondition(kind, "True", reason, message, self.uid, self.now)
        for job in jobs:
            self.by_job.setdefault(job, {})[kind] = condition


def conditions(ssn: Session) -> Conditions:
    """Those of this session."""
    return ssn.shared(Conditions, lambda: Conditions(ssn.uid, ssn.now))


@dataclass(slots=True)
class Settled:
    """Jobs whose status was found in order (J,): as what they were ``seen`` in the snapshot then, -1 for none, and what
    they had failed as."""

    seen: I64
    failed_as: I64


def _settled(ssn: Session) -> Settled:
    count = ssn.tables.jobs.capacity
    return ssn.memo.get(
        "settled", (count,), lambda: Settled(np.full(count, -1, dtype=np.int64), np.zeros(count, dtype=np.int64))
    )


def jobs_to_close(ssn: Session) -> AnyArray:
    """Rows of jobs whose status may have to be written: changed since it was last found in order, by the store or by
    this session, or failed in another way than then. What plugins keep of a job is no part of its status."""
    settled, rows, before = _settled(ssn), ssn.live_jobs, ssn.world.before.jobs.seen
    due = (before != settled.seen) | (ssn.story.failed_as != settled.failed_as) | _written(ssn)
    due[[*ssn.story.tried, *conditions(ssn).by_job]] = True
    found: AnyArray = rows[(due & ~ssn.tables.jobs.barred)[rows]]
    return found


def _written(ssn: Session) -> Bool:
    """Which jobs the session has written (J,)."""
    stamps = ssn.tables.jobs.stamps
    assert stamps is not None
    found: Bool = stamps > ssn.opened_at
    return found


def close(ssn: Session) -> Writes:
    """What should be written."""
    rows = jobs_to_close(ssn)
    fresh = conditions(ssn).by_job
    updates = [new_status(ssn, facts, fresh.get(facts.job, {})) for facts in facts_of(ssn, rows)]
    _settle(ssn, rows[[update is None for update in updates]] if len(rows) else rows)
    jobs, subs = ssn.tables.jobs, ssn.tables.subs
    moved = sorted(ssn.story.moved)
    return Writes(
        groups=tuple(sorted((u for u in updates if u is not None), key=lambda update: update.job)),
        queues=queue_status(ssn),
        job_hypernodes={job: int(jobs.hypernode[job]) for job in moved},
        sub_hypernodes={sub: int(subs.hypernode[sub]) for job in moved for sub in jobs.subs[job]},
        notes=ssn.notes,
        gates=tuple(removals(ssn)),
    )


def _settle(ssn: Session, calm: AnyArray) -> None:
    """The status of these jobs is in order. Of one that the session wrote it is not known what comes of that."""
    settled, before, failed_as = _settled(ssn), ssn.world.before.jobs.seen, ssn.story.failed_as
    settled.seen[calm], settled.failed_as[calm] = before[calm], failed_as[calm]
    settled.seen[_written(ssn)] = -1
    settled.seen[list(ssn.story.tried)] = -1


class Facts(NamedTuple):
    """What a PodGroup's phase follows from. ``scheduled``: tasks on a node, ended ones included."""

    job: int
    scheduled: int
    running: int
    succeeded: int
    failed: int


def facts_of(ssn: Session, jobs: AnyArray) -> list[Facts]:
    """The facts about some jobs, in their order."""
    counts = ssn.tables.jobs.counts[jobs]
    scheduled = counts @ ON_NODE
    for i in counts[:, RELEASING].nonzero()[0].tolist():
        scheduled[i] += releasing_scheduled(ssn, int(jobs[i]))
    columns = (jobs, scheduled, *(counts[:, s] for s in (TaskStatus.RUNNING, TaskStatus.SUCCEEDED, TaskStatus.FAILED)))
    return [Facts(*row) for row in zip(*(column.tolist() for column in columns), strict=True)]


def new_status(ssn: Session, facts: Facts, fresh: dict[str, PodGroupCondition]) -> PodGroupUpdate | None:
    """The status a PodGroup should have now, with ``fresh`` conditions by type; None when it has it already.

    Conditions are compared without their time and transition.
    """
    group = ssn.tables.jobs.groups[facts.job]
    old = group.status
    phase = phase_of(ssn, facts, UNSCHEDULABLE in fresh).value
    if (phase, facts.running, facts.succeeded, facts.failed) == (
        old.phase,
        old.running,
        old.succeeded,
        old.failed,
    ) and all(_is_said(condition, old.conditions) for condition in fresh.values()):
        return None
    merged = _merge(group, fresh)
    return PodGroupUpdate(group.key, PodGroupStatus(phase, merged, facts.running, facts.succeeded, facts.failed))


def _is_said(new: PodGroupCondition, said: tuple[PodGroupCondition, ...]) -> bool:
    old = next((c for c in said if c.type == new.type), None)
    return old is not None and (old.message, old.reason, old.status) == (new.message, new.reason, new.status)


def _merge(group: PodGroup, fresh: dict[str, PodGroupCondition]) -> tuple[PodGroupCondition, ...]:
    """Replace conditions of the same type in place, append new ones."""
    left = dict(fresh)
    kept = [left.pop(c.type, c) for c in group.status.conditions]
    return (*kept, *left.values())


def phase_of(ssn: Session, facts: Facts, unschedulable: bool) -> PodGroupPhase:
    """The phase rules, in order. ``unschedulable``: whether the gang was found incomplete in this session."""
    jobs = ssn.tables.jobs
    if facts.running and unschedulable:
        return PodGroupPhase.UNKNOWN
    if facts.scheduled >= jobs.groups[facts.job].min_member:
        ended = facts.failed + facts.succeeded
        return PodGroupPhase.COMPLETED if facts.scheduled == ended else PodGroupPhase.RUNNING
    return PodGroupPhase.INQUEUE if jobs.phase[facts.job] == INQUEUE_PHASE else PodGroupPhase.PENDING


def releasing_scheduled(ssn: Session, job: int) -> int:
    """Releasing tasks that are on a node."""
    tables = ssn.tables
    if not tables.jobs.counts[job, RELEASING]:
        return 0
    rows = tables.jobs.tasks[job]
    return int(np.count_nonzero((tables.tasks.status[rows] == RELEASING) & (tables.tasks.node[rows] >= 0)))


def queue_status(ssn: Session) -> dict[str, Resource]:
    """status.allocated of queues where it changed. A job directly in ``root`` counts twice in root, as in Volcano."""
    held = queue_amounts_now(ssn).allocated
    rests_on = (held.tobytes(), *ground(*ssn.tables.queues.columns.values()))
    return ssn.memo.get("queue status", rests_on, lambda: _queue_status(ssn, held.copy()))


def _queue_status(ssn: Session, sums: F64) -> dict[str, Resource]:
    queues, axis = ssn.tables.queues, ssn.tables.axis
    if axis.unoffered >= 0:
        sums[:, axis.unoffered] = 0.0  # it has no name to be stated by
    root = queues.row_of.get("root", -1)
    if root >= 0:
        own = sums[root].copy()
        tree = ssn.memo.get("tree of queues", ground(queues["parent"]), lambda: QueueTree.of(queues))
        sums = tree.summed_up(sums)
        sums[root] += own
    return {queues.names[row]: axis.resource(sums[row]) for row in (sums != queues.stated).any(axis=1).nonzero()[0]}
