"""Close a session in KAI's language: conditions of pending gangs, start and stale times, and usage of queues.

Only differences to what the objects already say are written. Source: KAI status updater, podgroup controller, queue
controller.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence

import numpy as np

from pumice.algorithms.groups import distinct
from pumice.columns.counting import ACTIVE, HELD, PENDING, PIPELINED
from pumice.columns.dtypes import I64, AnyArray
from pumice.columns.tables import Tables
from pumice.framework.cycle.outcome import Outcome
from pumice.framework.cycle.session import Session
from pumice.framework.cycle.trace import CycleTrace, JobsEntry
from pumice.framework.memo import ground
from pumice.kai.delay import evicted_jobs
from pumice.kai.engine.tree_order import QueueTree, queue_tree
from pumice.kai.reasons import reason_of
from pumice.kai.stale import stale_jobs, will_be_whole
from pumice.kai.usage import Amounts, amounts_by_job, amounts_by_queue, amounts_of, summed_up
from pumice.kai.words import Explanation, Waits, Words, waits_for
from pumice.model.blockers import CIRCLE, HAS_CHILDREN, NO_PARENT, BadQueue, Blocker, Delayed, SearchCut
from pumice.model.decisions import PodGroupUpdate, PodNotice, Writes
from pumice.model.devices.gpu import GPU_RESOURCE
from pumice.model.queue import QueueUsage
from pumice.model.resources import Resource
from pumice.model.status import TaskStatus
from pumice.model.workloads.gang import GangTimes, GroupResources, SchedulingCondition, pod_set_of
from pumice.model.workloads.podgroup import PodGroup, PodGroupStatus

UNSCHEDULABLE = "Unschedulable"
#: The memo's question about gangs whose status needs no write.
_UP_TO_DATE = "status is up to date"
_CONDITIONS_MAX = 64
#: A gang with pods in one of these states waits for a place, or for a bind that may fail.
_UNSETTLED = [PENDING, TaskStatus.ALLOCATED, PIPELINED, TaskStatus.BINDING]
#: Seconds for which a condition keeps its numbers although they changed. Another reason is written at once.
NUMBERS_KEPT_S = 60.0


def close(ssn: Session) -> Writes:
    """Return what to write for gangs and queues."""
    why = why_not_placed(ssn.trace) | why_not_tried(ssn.tables, queue_tree(ssn))
    words = Words(ssn.tables, queue_tree(ssn))
    rows = _jobs_to_close(ssn, words, why)
    amounts = amounts_of(ssn.tables)
    updates = list(_Updates(ssn, rows, words, why, amounts).each())
    _keep(ssn, rows, [update is None for update in updates])
    allocated, usages = _queues(ssn, amounts)
    groups = sorted((update for update in updates if update is not None), key=lambda update: update.job)
    return Writes(groups=tuple(groups), queues=allocated, usages=usages, notes=ssn.notes)


def why_not_placed(trace: CycleTrace) -> dict[int, Waits]:
    """Return why each job that was tried was not placed, which of its searches were cut off, and its delay, by row."""
    entries = [entry for entry in trace.log if isinstance(entry, JobsEntry)]
    # The first failure names the cause; later actions fail because of it.
    first: dict[int, Blocker] = {}
    also: dict[int, dict[Blocker, None]] = {}
    for why, jobs in ((entry.finding, entry.jobs.tolist()) for entry in entries):
        if not isinstance(why, Blocker):
            continue
        is_extra = isinstance(why, Delayed) or (isinstance(why, SearchCut) and why.steps)
        for job in jobs:
            if is_extra:
                also.setdefault(job, {})[why] = None
            else:
                first.setdefault(job, why)
    found = {job: waits_for(why, tuple(also.get(job, ()))) for job, why in first.items()}
    # A job that is not placed by ``allocate`` at all has its delay as the only reason.
    return {job: Waits(next(iter(each))) for job, each in also.items() if isinstance(next(iter(each)), Delayed)} | found


def why_not_tried(tables: Tables, tree: QueueTree) -> dict[int, Waits]:
    """Return what is wrong with the queue of a pending job, by row, for jobs in queues that run none."""
    jobs = tables.jobs
    waits = jobs.alive & (jobs.queue >= 0) & (jobs.waits + jobs.best_effort > 0)
    rows = waits.nonzero()[0]
    rows = rows[~tree.leaf[jobs.queue[rows]]]
    why = {queue: Waits(_why_no_leaf(tables, tree, queue)) for queue in distinct(jobs.queue[rows]).tolist()}
    return {row: why[queue] for row, queue in zip(rows.tolist(), jobs.queue[rows].tolist(), strict=True)}


def _why_no_leaf(tables: Tables, tree: QueueTree, queue: int) -> BadQueue:
    """Return why a queue runs no jobs."""
    queues, at = tables.queues, queue
    if tree.whole[queue]:
        return BadQueue(queues.names[queue], HAS_CHILDREN)
    # The bound ends the walk in a cycle.
    for _ in range(len(queues)):
        if tree.parent[at] < 0:
            return BadQueue(queues.names[at], NO_PARENT, queues.objs[at].parent)
        at = tree.parent[at]
    return BadQueue(queues.names[queue], CIRCLE)


def notices(outcome: Outcome) -> Iterator[PodNotice]:
    """Yield notices for pods: the reason for pending pods of gangs, and the node for pods that wait for a release
    there."""
    yield from nominations(outcome)
    # What the job waits for is not why these pods wait.
    apart = {notice.pod: notice for notice in strays(outcome)}
    yield from apart.values()
    tables = outcome.tables
    tree, tasks = QueueTree(tables), tables.tasks
    words = Words(tables, tree)
    for job, why in (why_not_placed(outcome.trace) | why_not_tried(tables, tree)).items():
        group = tables.jobs.groups[job]
        # A gang may switch such conditions off by markUnschedulable.
        if group is None or (group.gang is not None and not group.gang.mark_unschedulable):
            continue
        rows = tables.jobs.tasks[job]
        pods = [tasks.pods[row] for row in rows[tasks.status[rows] == PENDING].tolist()]
        waiting = [pod for pod in pods if not pod.gates and pod.key not in apart]
        message = words.of(job, why).message if waiting else ""
        for pod in waiting:
            yield PodNotice(pod.key, pod.uid, UNSCHEDULABLE, message)


def strays(outcome: Outcome) -> Iterator[PodNotice]:
    """Yield a notice for each waiting pod that names a sub-group which its gang does not have. Such a pod counts for
    nothing. Source: KAI cluster_info, unknown sub-groups."""
    tables, tasks = outcome.tables, outcome.tables.tasks
    jobs, live = tables.jobs, outcome.live_jobs
    for job in live[jobs.has_policy[live] & (jobs.counts[live, PENDING] > 0)].tolist():
        group, key = jobs.groups[job], jobs.uids[job]
        if group.native is not None or group.gang is None or not group.gang.sub_groups:
            continue
        # Pods of no pod set are in a sub-job with the UID of the job.
        rows = [row for sub in jobs.subs[job] if tables.subs.uids[sub] == key for row in tables.subs.tasks[sub]]
        for pod in (tasks.pods[row] for row in rows if tasks.status[row] == PENDING):
            if not pod.gates:
                name = pod_set_of(pod.labels, pod.annotations)
                text = f'Pod references subgroup "{name}", which does not exist in PodGroup {key}'
                yield PodNotice(pod.key, pod.uid, UNSCHEDULABLE, text)


def nominations(outcome: Outcome) -> Iterator[PodNotice]:
    """Yield a notice with the node for each pod that waits for releases there; the node is kept for it
    (decision 0016)."""
    tables, tasks = outcome.tables, outcome.tables.tasks
    for row in (tasks.alive & (tasks.status == PIPELINED)).nonzero()[0].tolist():
        pod, node = tasks.pods[row], tables.nodes.facts.names[int(tasks.node[row])]
        moved = bool(pod.node_name)  # a victim that is moved; its pod still has the old node
        # A gang that is still incomplete could not start there, and its nominations would keep away the jobs for which
        # the node is being released.
        if not moved and will_be_whole(tables, int(tasks.job[row])):
            yield PodNotice(pod.key, pod.uid, UNSCHEDULABLE, f"promised node {node}, which others are leaving", node)


# -- gangs -------------------------------------------------------------------------------------------------------------


def _jobs_to_close(ssn: Session, words: Words, why: dict[int, Waits]) -> AnyArray:
    """Return the rows of jobs whose status may have to be written."""
    rows = ssn.live_jobs
    # Comparing the status of every job with its objects each cycle is what this avoids: jobs are due if they changed,
    # failed for another reason or in other numbers, or depend on time.
    due = ~ssn.memo.rows_kept(_UP_TO_DATE, _stamps(ssn)) | _written(ssn)
    due[_with_news(ssn, words, why)] = True
    found: AnyArray = rows[(due & ~ssn.tables.jobs.quarantined)[rows]]
    return found


def _keep(ssn: Session, rows: AnyArray, up_to_date: list[bool]) -> None:
    """Remember the jobs whose status is up to date, ``rows`` among them as given."""
    kept = ssn.memo.rows_kept(_UP_TO_DATE, _stamps(ssn))
    kept[rows] = up_to_date
    # A write may fail, and other components may answer a change of this session; these jobs are checked again.
    kept[_written(ssn)] = False
    ssn.memo.keep_rows(_UP_TO_DATE, kept, _stamps(ssn))


def _stamps(ssn: Session) -> I64:
    """Return the stamps of jobs in the snapshot. Shape (J,)."""
    stamps = ssn.world.before.jobs.stamps
    assert stamps is not None
    return stamps


def _written(ssn: Session) -> AnyArray:
    """Return True for jobs that changed in this session. Shape (J,)."""
    stamps = ssn.tables.jobs.stamps
    assert stamps is not None
    return np.asarray(stamps > ssn.opened_at)


def _with_news(ssn: Session, words: Words, why: dict[int, Waits]) -> list[int]:
    """Return the rows of pending jobs whose condition differs from the reason why they wait."""
    jobs, pool, found = ssn.tables.jobs, ssn.snapshot.node_pool, []
    holds: list[bool] = (jobs.counts @ ACTIVE > 0).tolist()
    for job, each in why.items():
        group = jobs.groups[job]
        if group is None or holds[job]:
            continue
        ours = next((one for one in group.status.scheduling if one.node_pool == pool), None)
        if ours is None or not (_is_recent(ours, reason_of(each.why), ssn.now) or _says(ours, words.of(job, each))):
            found.append(job)
    return found


def _says(condition: SchedulingCondition, explanation: Explanation) -> bool:
    """Return True if a condition has this reason and message."""
    return (condition.message, condition.reasons, condition.status) == (explanation.message, (explanation,), "True")


def _is_recent(condition: SchedulingCondition, reason: str, now: float) -> bool:
    """Return True if a condition has the reason, and is so recent that it keeps its numbers."""
    same = condition.status == "True" and [known for known, _ in condition.reasons] == [reason]
    return same and 0.0 <= now - condition.last_transition < NUMBERS_KEPT_S


class _Updates:
    """Updates of gangs. Equal gangs share one status object."""

    def __init__(self, ssn: Session, rows: AnyArray, words: Words, why: dict[int, Waits], amounts: Amounts) -> None:
        self._ssn, self._rows, self._words, self._why = ssn, rows.tolist(), words, why
        self._stale, self._evicted = frozenset(stale_jobs(ssn.tables).tolist()), evicted_jobs(ssn)
        self._statuses: dict[Hashable, PodGroupStatus] = {}
        counts, before = ssn.tables.jobs.counts[rows], ssn.world.before.jobs.counts[rows]
        # A gang starts when it holds something for the first time and waits for nothing more: minruntime counts from
        # then.
        starts = (counts @ HELD > 0) & (before @ HELD == 0) & (before[:, PENDING] > 0)
        # Columns become lists here, since the loop over gangs reads single numbers.
        self._starts: list[bool] = (starts & (counts[:, TaskStatus.PIPELINED] == 0)).tolist()
        self._holds: list[bool] = (counts @ ACTIVE > 0).tolist()
        pending = counts[:, [PENDING, TaskStatus.BOUND, TaskStatus.BINDING]].sum(axis=1, keepdims=True)
        ended = counts[:, [TaskStatus.RUNNING, TaskStatus.SUCCEEDED, TaskStatus.FAILED]]
        self._counts: list[list[int]] = np.hstack([ended, pending]).tolist()
        held, requested = amounts_by_job(ssn.tables, amounts)
        fast = held * ~ssn.tables.jobs.preemptible[:, None]
        self._amounts: list[list[float]] = np.hstack([each[rows] for each in (held, fast, requested)]).tolist()
        self._settled: list[bool] = (counts[:, _UNSETTLED].sum(axis=1) == 0).tolist()
        self._waits: list[bool] = (counts[:, PENDING] > 0).tolist()

    def each(self) -> Iterator[PodGroupUpdate | None]:
        """Yield the update of each job, None if its objects are up to date."""
        groups = self._ssn.tables.jobs.groups
        for i, job in enumerate(self._rows):
            group = groups[job]
            status, times = self._status(i, job, group), self._times(i, job, group)
            if times is None and status == group.status:
                yield None
            else:
                yield PodGroupUpdate(group.key, status, times)

    def _status(self, i: int, job: int, group: PodGroup) -> PodGroupStatus:
        """Return the status of a gang."""
        why, old = self._why.get(job), group.status
        explanation = self._words.of(job, why) if why and self._waits[i] and not self._holds[i] else None
        key = explanation, old.phase, *self._counts[i], *self._amounts[i]
        # An existing condition differs from gang to gang, by its transition ID and time, so such a status is not
        # shared.
        shareable = not (old.scheduling or old.conditions)
        found = self._statuses.get(key) if shareable else None
        if found is None:
            running, succeeded, failed, pending = self._counts[i]
            scheduling = _conditions(self._ssn, group, explanation, settled=self._settled[i])
            resources = GroupResources(*(_resource(self._amounts[i][at : at + 3]) for at in (0, 3, 6)))
            found = PodGroupStatus(
                old.phase, old.conditions, running, succeeded, failed, pending, scheduling, resources
            )
            if shareable:
                self._statuses[key] = found
        return found

    def _times(self, i: int, job: int, group: PodGroup) -> GangTimes | None:
        """Return the times of a gang, or None if they did not change."""
        if group.gang is None:
            return None
        evicted = job in self._evicted
        if not self._starts[i] and not evicted and group.gang.stale_since is None and job not in self._stale:
            return None
        old = group.gang.times
        started = self._ssn.now if self._starts[i] else old.last_start
        stale = (old.stale_since or self._ssn.now) if job in self._stale else None
        new = GangTimes(started, stale, self._ssn.now if evicted else old.last_eviction)
        return None if new == old else new


def _conditions(
    ssn: Session, group: PodGroup, explanation: Explanation | None, *, settled: bool
) -> tuple[SchedulingCondition, ...]:
    """Return scheduling conditions, one per node pool, the newest last. Those of all pools are removed once no pod of
    the gang waits for a place or a bind. Source: KAI status updater."""
    old, pool = group.status.scheduling, ssn.snapshot.node_pool
    if explanation is None:
        return () if settled else old
    ours = next((each for each in old if each.node_pool == pool), None)
    others = tuple(each for each in old if each is not ours)
    if ours is not None and (_is_recent(ours, explanation.reason, ssn.now) or _says(ours, explanation)):
        return old
    number = max((int(each.transition_id) for each in old if each.transition_id.isdecimal()), default=0) + 1
    # Transition IDs increase over all pools, so that readers can order them.
    reasons = ((explanation.reason, explanation.message),)
    condition = SchedulingCondition(pool, explanation.message, reasons, str(number), ssn.now)
    # Bounded, since pools may come and go without end.
    return (*others[-_CONDITIONS_MAX + 1 :], condition)


# -- queues ------------------------------------------------------------------------------------------------------------


def _queues(ssn: Session, amounts: Amounts) -> tuple[dict[str, Resource], dict[str, QueueUsage]]:
    """Return what queues hold, including queues below them, for queues whose status says otherwise."""
    tables, tree = ssn.tables, queue_tree(ssn)
    sums = [summed_up(tree, own) for own in amounts_by_queue(tables, amounts)]
    before, statuses = ssn.world.before.queues, tables.queue_statuses
    # If neither the sums nor the queues changed since all statuses were up to date, there is nothing to compare.
    rests_on = (*(each.tobytes() for each in sums), *ground(before["names"], before["objs"], statuses["objs"]))
    if ssn.memo.recall("settled queues", rests_on):
        return {}, {}
    allocated: dict[str, Resource] = {}
    usages: dict[str, QueueUsage] = {}
    children = _children(tables)
    for row, (name, status) in enumerate(zip(tables.queues.names, statuses.objs, strict=True)):
        held, fast, asked = (_resource(each[row].tolist()) for each in sums)
        usage = QueueUsage(fast, asked, tuple(children.get(row, ())))
        if (status.allocated, status.usage) != (held, usage):
            allocated[name], usages[name] = held, usage
    if not allocated:
        ssn.memo.keep("settled queues", rests_on, True)
    return allocated, usages


def _children(tables: Tables) -> dict[int, list[str]]:
    """Return the names of the queues below each queue, sorted."""
    found: dict[int, list[str]] = {}
    for row in sorted(range(len(tables.queues)), key=tables.queues.names.__getitem__):
        parent = int(tables.queues.parent[row])
        if parent >= 0:
            found.setdefault(parent, []).append(tables.queues.names[row])
    return found


def _resource(amounts: Sequence[float]) -> Resource:
    """Return a resource of CPU, memory and GPUs. No GPUs are left out, as KAI does."""
    cpu, memory, gpus = amounts
    return Resource(cpu, memory, {GPU_RESOURCE: gpus} if gpus else None)
