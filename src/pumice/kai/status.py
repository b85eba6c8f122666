"""The end of a session in KAI's words: which gangs could not be scheduled and why, when they started or fell below
their minimum, and what queues hold. Differences are handed out.

Source: KAI status updater, podgroup controller, queue controller.
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
from pumice.kai.engine.tree_order import QueueTree, queue_tree
from pumice.kai.reasons import reason_of
from pumice.kai.stale import stale_jobs, will_be_whole
from pumice.kai.usage import Amounts, amounts_by_job, amounts_by_queue, amounts_of, summed_up
from pumice.kai.words import Told, Waits, Words
from pumice.model.blockers import CIRCLE, HAS_CHILDREN, NO_PARENT, BadQueue, Blocker, SearchCut
from pumice.model.decisions import PodGroupUpdate, PodNotice, Writes
from pumice.model.devices.gpu import GPU_RESOURCE
from pumice.model.queue import QueueUsage
from pumice.model.resources import Resource
from pumice.model.status import TaskStatus
from pumice.model.workloads.gang import GangTimes, GroupResources, SchedulingCondition
from pumice.model.workloads.podgroup import PodGroup, PodGroupStatus

UNSCHEDULABLE = "Unschedulable"
_CONDITIONS_MAX = 64
#: Seconds for which a condition stands though its numbers have changed; another reason is told at once.
NUMBERS_STAND_S = 60.0


def close(ssn: Session) -> Writes:
    """What should be written."""
    why = why_not_placed(ssn.trace) | why_not_tried(ssn.tables, queue_tree(ssn))
    words = Words(ssn.tables, queue_tree(ssn))
    rows = _jobs_to_close(ssn, words, why)
    amounts = amounts_of(ssn.tables)
    updates = list(_Updates(ssn, rows, words, why, amounts).each())
    _settle(ssn, rows, [update is None for update in updates])
    allocated, usages = _queues(ssn, amounts)
    groups = sorted((update for update in updates if update is not None), key=lambda update: update.job)
    return Writes(groups=tuple(groups), queues=allocated, usages=usages, notes=ssn.notes)


def why_not_placed(trace: CycleTrace) -> dict[int, Waits]:
    """What the first try to place a job came to, by row, for those that found no place, and which were cut off."""
    entries = [told for told in trace.told if isinstance(told, JobsEntry)]
    cuts: dict[int, list[SearchCut]] = {}
    for entry in entries:
        if isinstance(entry.finding, SearchCut) and entry.finding.steps:
            for job in entry.jobs.tolist():
                cuts.setdefault(job, []).append(entry.finding)
    found: dict[int, Waits] = {}
    for entry in entries:
        if isinstance(entry.finding, Blocker) and not (isinstance(entry.finding, SearchCut) and entry.finding.steps):
            for job in entry.jobs.tolist():
                found.setdefault(job, Waits(entry.finding, tuple(cuts.get(job, ()))))
    return found


def why_not_tried(tables: Tables, tree: QueueTree) -> dict[int, Waits]:
    """What is wrong with the queue of a job that waits, by row, for those whose queue runs none."""
    jobs = tables.jobs
    waits = jobs.alive & (jobs.queue >= 0) & (jobs.waits + jobs.best_effort > 0)
    rows = waits.nonzero()[0]
    rows = rows[~tree.leaf[jobs.queue[rows]]]
    told = {queue: Waits(_why_no_leaf(tables, tree, queue)) for queue in distinct(jobs.queue[rows]).tolist()}
    return {row: told[queue] for row, queue in zip(rows.tolist(), jobs.queue[rows].tolist(), strict=True)}


def _why_no_leaf(tables: Tables, tree: QueueTree, queue: int) -> BadQueue:
    queues, at = tables.queues, queue
    if tree.whole[queue]:
        return BadQueue(queues.names[queue], HAS_CHILDREN)
    for _ in range(len(queues)):
        if tree.parent[at] < 0:
            return BadQueue(queues.names[at], NO_PARENT, queues.objs[at].parent)
        at = tree.parent[at]
    return BadQueue(queues.names[queue], CIRCLE)


def notices(outcome: Outcome) -> Iterator[PodNotice]:
    """For every waiting pod of a gang that was tried, unless the gang says that nobody is to be told; and for pods that
    were promised a node which others are leaving, which one: it is held for them in the next cycles (decision 0017)."""
    yield from nominations(outcome)
    tables = outcome.tables
    tree, tasks = QueueTree(tables), tables.tasks
    words = Words(tables, tree)
    for job, why in (why_not_placed(outcome.trace) | why_not_tried(tables, tree)).items():
        group = tables.jobs.groups[job]
        if group is None or (group.gang is not None and not group.gang.mark_unschedulable):
            continue
        rows = tables.jobs.tasks[job]
        waiting = [row for row in rows[tasks.status[rows] == PENDING].tolist() if not tasks.pods[row].gates]
        message = words.of(job, why).message if waiting else ""
        for row in waiting:
            yield PodNotice(tasks.pods[row].key, tasks.pods[row].uid, UNSCHEDULABLE, message)


def nominations(outcome: Outcome) -> Iterator[PodNotice]:
    """For pods that were promised a node which others are leaving, which one. Not of a gang that is not whole with it:
    it could not start there, and would keep those away for whom the others leave."""
    tables, tasks = outcome.tables, outcome.tables.tasks
    for row in (tasks.alive & (tasks.status == PIPELINED)).nonzero()[0].tolist():
        pod, node = tasks.pods[row], tables.nodes.facts.names[int(tasks.node[row])]
        moved = bool(pod.node_name)  # it is on a node still
        if not moved and will_be_whole(tables, int(tasks.job[row])):
            yield PodNotice(pod.key, pod.uid, UNSCHEDULABLE, f"promised node {node}, which others are leaving", node)


# -- gangs -------------------------------------------------------------------------------------------------------------


def _settled(ssn: Session) -> I64:
    """Stamps that jobs had in the snapshot when their status was found in order, -1 for none (J,)."""
    count = ssn.tables.jobs.capacity
    return ssn.memo.get("settled gangs", (count,), lambda: np.full(count, -1))


def _settle(ssn: Session, rows: AnyArray, calm: list[bool]) -> None:
    """Of some jobs it was found whether their status is in order. Whether what is written of the others arrives is not
    known, nor what becomes of those that the session wrote."""
    settled = _settled(ssn).copy()
    settled[rows] = np.where(np.array(calm, dtype=bool), _before(ssn)[rows], -1)
    settled[_written(ssn)] = -1
    ssn.memo.keep("settled gangs", (len(settled),), settled)


def _before(ssn: Session) -> I64:
    """Stamps of jobs in the snapshot (J,)."""
    stamps = ssn.world.before.jobs.stamps
    assert stamps is not None
    return stamps


def _written(ssn: Session) -> AnyArray:
    stamps = ssn.tables.jobs.stamps
    assert stamps is not None
    return np.asarray(stamps > ssn.opened_at)


def _jobs_to_close(ssn: Session, words: Words, why: dict[int, Waits]) -> AnyArray:
    """Rows of the jobs whose status may have to be written: changed since it was last found in order, or failed for
    another reason than then or in other numbers, or below their minimum, which changes with time."""
    rows = ssn.live_jobs
    due = (_before(ssn) != _settled(ssn)) | _written(ssn)
    due[_told_anew(ssn, words, why)] = True
    found: AnyArray = rows[(due & ~ssn.tables.jobs.barred)[rows]]
    return found


def _told_anew(ssn: Session, words: Words, why: dict[int, Waits]) -> list[int]:
    """Rows of jobs that hold nothing and whose condition does not say why they wait."""
    jobs, pool, found = ssn.tables.jobs, ssn.snapshot.node_pool, []
    holds: list[bool] = (jobs.counts @ ACTIVE > 0).tolist()
    for job, each in why.items():
        group = jobs.groups[job]
        if group is None or holds[job]:
            continue
        ours = next((one for one in group.status.scheduling if one.node_pool == pool), None)
        if ours is None or not (_stands(ours, reason_of(each.why), ssn.now) or _says(ours, words.of(job, each))):
            found.append(job)
    return found


def _says(condition: SchedulingCondition, told: Told) -> bool:
    """Whether a condition says this."""
    return (condition.message, condition.reasons, condition.status) == (told.message, (told,), "True")


def _stands(condition: SchedulingCondition, reason: str, now: float) -> bool:
    """Whether a condition has the reason, and was written so short a time ago that its numbers may stand."""
    same = condition.status == "True" and [known for known, _ in condition.reasons] == [reason]
    return same and 0.0 <= now - condition.last_transition < NUMBERS_STAND_S


class _Updates:
    """What should be written on gangs. Those that are alike share a status, and what it is made of."""

    def __init__(self, ssn: Session, rows: AnyArray, words: Words, why: dict[int, Waits], amounts: Amounts) -> None:
        self._ssn, self._rows, self._words, self._why = ssn, rows.tolist(), words, why
        self._stale = frozenset(stale_jobs(ssn.tables).tolist())
        self._statuses: dict[Hashable, PodGroupStatus] = {}
        counts, before = ssn.tables.jobs.counts[rows], ssn.world.before.jobs.counts[rows]
        starts = (counts @ HELD > 0) & (before @ HELD == 0) & (before[:, PENDING] > 0)
        self._starts: list[bool] = (starts & (counts[:, TaskStatus.PIPELINED] == 0)).tolist()
        self._holds: list[bool] = (counts @ ACTIVE > 0).tolist()
        pending = counts[:, [PENDING, TaskStatus.BOUND, TaskStatus.BINDING]].sum(axis=1, keepdims=True)
        ended = counts[:, [TaskStatus.RUNNING, TaskStatus.SUCCEEDED, TaskStatus.FAILED]]
        self._counts: list[list[int]] = np.hstack([ended, pending]).tolist()
        held, requested = amounts_by_job(ssn.tables, amounts)
        fast = held * ~ssn.tables.jobs.preemptible[:, None]
        self._amounts: list[list[float]] = np.hstack([each[rows] for each in (held, fast, requested)]).tolist()
        self._waits: list[bool] = (counts[:, PENDING] > 0).tolist()

    def each(self) -> Iterator[PodGroupUpdate | None]:
        """For each of the rows; None where it says so already."""
        groups = self._ssn.tables.jobs.groups
        for i, job in enumerate(self._rows):
            group = groups[job]
            status, times = self._status(i, job, group), self._times(i, job, group)
            if times is None and status == group.status:
                yield None
            else:
                yield PodGroupUpdate(group.key, status, times)

    def _status(self, i: int, job: int, group: PodGroup) -> PodGroupStatus:
        why, old = self._why.get(job), group.status
        told = self._words.of(job, why) if why and self._waits[i] and not self._holds[i] else None
        key = told, self._holds[i], old.phase, *self._counts[i], *self._amounts[i]
        plain = not (old.scheduling or old.conditions)
        found = self._statuses.get(key) if plain else None
        if found is None:
            running, succeeded, failed, pending = self._counts[i]
            scheduling = _conditions(self._ssn, group, told, holds=self._holds[i])
            resources = GroupResources(*(_resource(self._amounts[i][at : at + 3]) for at in (0, 3, 6)))
            found = PodGroupStatus(
                old.phase, old.conditions, running, succeeded, failed, pending, scheduling, resources
            )
            if plain:
                self._statuses[key] = found
        return found

    def _times(self, i: int, job: int, group: PodGroup) -> GangTimes | None:
        """When it started, if it did now; since when it is below its minimum. None: as it says already."""
        if group.gang is None:
            return None
        if not self._starts[i] and group.gang.stale_since is None and job not in self._stale:
            return None
        old = GangTimes(group.gang.last_start, group.gang.stale_since)
        started = self._ssn.now if self._starts[i] else old.last_start
        stale = (old.stale_since or self._ssn.now) if job in self._stale else None
        new = GangTimes(started, stale)
        return None if new == old else new


def _conditions(ssn: Session, group: PodGroup, told: Told | None, *, holds: bool) -> tuple[SchedulingCondition, ...]:
    """One a pool of nodes, the newest last. The one of this pool goes when the gang holds something. Source: KAI."""
    old, pool = group.status.scheduling, ssn.snapshot.node_pool
    ours = next((each for each in old if each.node_pool == pool), None)
    others = tuple(each for each in old if each is not ours)
    if told is None:
        return others if holds else old
    if ours is not None and (_stands(ours, told.reason, ssn.now) or _says(ours, told)):
        return old
    number = max((int(each.transition_id) for each in old if each.transition_id.isdecimal()), default=0) + 1
    condition = SchedulingCondition(pool, told.message, ((told.reason, told.message),), str(number), ssn.now)
    return (*others[-_CONDITIONS_MAX + 1 :], condition)


# -- queues ------------------------------------------------------------------------------------------------------------


def _queues(ssn: Session, amounts: Amounts) -> tuple[dict[str, Resource], dict[str, QueueUsage]]:
    """What queues hold, with all below them, where it is not what their status says."""
    tables, tree = ssn.tables, queue_tree(ssn)
    sums = [summed_up(tree, own) for own in amounts_by_queue(tables, amounts)]
    before = ssn.world.before.queues
    assert before.stamps is not None
    rests_on = (*(each.tobytes() for each in sums), before.stamps.tobytes())
    if ssn.memo.recall("settled queues", rests_on):
        return {}, {}
    allocated: dict[str, Resource] = {}
    usages: dict[str, QueueUsage] = {}
    children = _children(tables)
    for row, queue in enumerate(tables.queues.objs):
        held, fast, asked = (_resource(each[row].tolist()) for each in sums)
        usage = QueueUsage(fast, asked, tuple(children.get(row, ())))
        if (queue.allocated, queue.usage) != (held, usage):
            allocated[queue.name], usages[queue.name] = held, usage
    if not allocated:
        ssn.memo.keep("settled queues", rests_on, True)
    return allocated, usages


def _children(tables: Tables) -> dict[int, list[str]]:
    found: dict[int, list[str]] = {}
    for row in sorted(range(len(tables.queues)), key=tables.queues.names.__getitem__):
        parent = int(tables.queues.parent[row])
        if parent >= 0:
            found.setdefault(parent, []).append(tables.queues.names[row])
    return found


def _resource(amounts: Sequence[float]) -> Resource:
    cpu, memory, gpus = amounts
    return Resource(cpu, memory, {GPU_RESOURCE: gpus} if gpus else None)
