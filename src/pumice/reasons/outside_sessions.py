"""Notices for pods that no action sees: their PodGroup, or its queue, does not exist, or KAI's language passes over
their gang. Statuses of PodGroups of Kubernetes' own that cannot be read.

Nothing else says why they wait. Volcano and KAI leave them without a word.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pumice.framework.cycle.outcome import Outcome
from pumice.kai.engine.members import may_wait
from pumice.kai.status import why_not_placed
from pumice.model.blockers import NATIVE_PODGROUP, PODGROUP, QUEUE, Missing
from pumice.model.decisions import PodGroupUpdate, PodNotice
from pumice.model.pod import NATIVE_GROUP_MARK
from pumice.model.status import TaskStatus
from pumice.model.workloads.native_group import SCHEDULER_ERROR
from pumice.reasons.nearest import NearestBlockers
from pumice.reasons.sentences import sentence

#: For so long nothing is said: a controller creates the PodGroup of a pod after the pod. Kubernetes' own PodGroups are
#: created before their pods.
GRACE_S = 10.0
REASON = "Unschedulable"


def notices_outside(outcome: Outcome) -> Iterator[PodNotice]:
    """Yield a notice for each waiting pod whose PodGroup or queue has been missing since the pod was created."""
    tasks, jobs = outcome.tables.tasks, outcome.tables.jobs
    waits = tasks.alive & (tasks.status == TaskStatus.PENDING) & (tasks.job >= 0)
    rows = waits.nonzero()[0]
    rows = rows[jobs.queue[tasks.job[rows]] < 0]
    texts: dict[int, str] = {}
    for row, job in zip(rows.tolist(), np.asarray(tasks.job)[rows].tolist(), strict=True):
        pod = tasks.pods[row]
        if pod.gates or pod.deletion is not None:
            continue
        is_native = NATIVE_GROUP_MARK in pod.annotations
        if not is_native and outcome.now - pod.creation < GRACE_S:
            continue
        if job not in texts:
            group = jobs.groups[job]
            of_kind = NATIVE_PODGROUP if is_native else PODGROUP
            found = Missing(of_kind, jobs.uids[job]) if group is None else Missing(QUEUE, group.queue)
            texts[job] = sentence(found)
        yield PodNotice(pod.key, pod.uid, REASON, texts[job])


def notices_passed_over(outcome: Outcome) -> Iterator[PodNotice]:
    """Yield a notice for each waiting pod of a gang that KAI's language does not try, since it cannot be read or has
    too few pods. Volcano's language says so itself."""
    if outcome.policy.dialect.name != "kai":
        return
    tables, tasks = outcome.tables, outcome.tables.tasks
    jobs, tried = tables.jobs, why_not_placed(outcome.trace).keys()
    live, nearest = outcome.live_jobs, NearestBlockers(outcome)
    for job in live[jobs.counts[live, TaskStatus.PENDING] > 0].tolist():
        if job in tried or (not jobs.quarantined[job] and may_wait(tables, job)):
            continue
        group, rows = jobs.groups[job], jobs.tasks[job]
        pods = [tasks.pods[row] for row in rows[tasks.status[rows] == TaskStatus.PENDING].tolist()]
        # The pods of a gang are created one after the other.
        is_new = outcome.now - max(pod.creation for pod in pods) < GRACE_S
        is_silent = group.gang is not None and not group.gang.mark_unschedulable
        if is_silent or (is_new and not jobs.quarantined[job]):
            continue
        text = sentence(nearest.of(job))
        yield from (PodNotice(pod.key, pod.uid, REASON, text) for pod in pods if not pod.gates and pod.deletion is None)


def unreadable_groups(outcome: Outcome) -> Iterator[PodGroupUpdate]:
    """Yield an update for each PodGroup of Kubernetes' own of which no pod is placed because it cannot be read, or is
    in no tree. Source: kube-scheduler, reason SchedulerError."""
    jobs = outcome.tables.jobs
    for row in (jobs.alive & jobs.quarantined).nonzero()[0].tolist():
        group = jobs.groups[row]
        if group is None or group.native is None or not group.quarantined:
            continue
        error, type_ = "; ".join(group.unparsable), group.native.condition
        # A tenant may have thousands of such groups, and usually their conditions are written.
        if not any(
            (each.type, each.reason, each.message) == (type_, SCHEDULER_ERROR, error)
            for each in group.status.conditions
        ):
            yield PodGroupUpdate(group.key, group.status, error=error)
