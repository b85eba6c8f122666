"""The end of a session: plugins close, PodGroup phases and conditions are recomputed, differences are handed out.

Source: Volcano CloseSession, job updater (phase rules, when to write) and queue status.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pumice.algorithms.sums import sums_by
from pumice.columns.counting import RELEASING
from pumice.columns.counting import SCHEDULED as ON_NODE
from pumice.columns.dtypes import AnyArray
from pumice.columns.jobs import INQUEUE_PHASE
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
    for instance in reversed(ssn.opened):
        if hasattr(instance, "on_session_close"):
            instance.on_session_close(ssn)
    outcome = Outcome(ssn)
    looked_at = ssn.jobs_to_close()
    updates = [new_status(ssn, facts) for facts in facts_of(ssn, looked_at)]
    outcome.groups = sorted((u for u in updates if u is not None), key=lambda update: update.job)
    calm = np.array([update is None for update in updates], dtype=bool)
    outcome.settled = looked_at[calm & ~ssn.touched[looked_at]]
    outcome.settled_as = ssn.failed_as[outcome.settled]
    for job in sorted(ssn.moved_hypernodes):
        outcome.job_hypernodes[job] = int(ssn.tables.jobs.hypernode[job])
        for sub in ssn.tables.jobs.subs[job]:
            outcome.sub_hypernodes[sub] = int(ssn.tables.subs.hypernode[sub])
    queue_status(ssn, outcome)
    return outcome


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


def new_status(ssn: Session, facts: Facts) -> PodGroupUpdate | None:
    """The status a PodGroup should have now; None when it has it already.

    Conditions are compared without their time and transition.
    """
    group = ssn.tables.jobs.groups[facts.job]
    fresh = ssn.conditions.by_job.get(facts.job, {})
    old = group.status
    phase = phase_of(ssn, facts, UNSCHEDULABLE in fresh).value
    if (phase, facts.running, facts.succeeded, facts.failed) == (
        old.phase,
        old.running,
        old.succeeded,
        old.failed,
    ) and all(_is_said(condition, old.conditions) for condition in fresh.values()):
        return None
    conditions = _merge(group, fresh)
    return PodGroupUpdate(group.key, PodGroupStatus(phase, conditions, facts.running, facts.succeeded, facts.failed))


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


def queue_status(ssn: Session, outcome: Outcome) -> None:
    """status.allocated of queues where it changed. A job directly in ``root`` counts twice in root, as in Volcano."""
    jobs, queues, axis = ssn.tables.jobs, ssn.tables.queues, ssn.tables.axis
    hold = jobs.holding().nonzero()[0] if ssn.standing else ssn.holding_jobs()
    sums = sums_by(jobs.queue[hold], jobs.allocated[hold], len(queues))
    root = queues.row_of.get("root", -1)
    if root >= 0:
        own = sums.copy()
        for row in range(len(queues)):
            parent, steps = (queues.parent[row] if row != root else root), 0
            while parent >= 0 and steps <= len(queues):
                sums[parent] += own[row]
                parent, steps = (queues.parent[parent] if parent != root else -1), steps + 1
    for row in (sums != queues.stated).any(axis=1).nonzero()[0].tolist():
        outcome.queues[queues.names[row]] = axis.resource(sums[row])
