"""Rows of jobs and sub-jobs: their tasks, and what depends on their PodGroup.

A PodGroup may come before or after its pods, and a job has a row as soon as one of them exists. It takes part in cycles
once it has a PodGroup and its queue exists. Source: Volcano ``JobInfo``, ``SubJobInfo`` and cache.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import Any

import numpy as np

from pumice.algorithms.groups import neighbours
from pumice.algorithms.numbers import Numbers
from pumice.columns.dtypes import AnyArray
from pumice.columns.jobs import PENDING_PHASE, PHASE_CODE
from pumice.columns.ledger import Ledger
from pumice.columns.tables import Tables
from pumice.columns.tasks import GATED
from pumice.model.pod import Pod
from pumice.model.queue import PriorityClass
from pumice.model.status import ALLOCATED_STATUSES
from pumice.model.workloads.estimate import job_estimate_s
from pumice.model.workloads.gang import DEFAULT_PRIORITY, SubGroup
from pumice.model.workloads.podgroup import PodGroup
from pumice.model.workloads.subgroups import SubJobKey, has_parts, min_available, sub_job_of, topology_of
from pumice.state.shared_rows import RoleNumbers
from pumice.state.task_order import order_rows

PHASE_OF_NAME: dict[str, int] = {phase.value: code for phase, code in PHASE_CODE.items()}
_HOLDING = [int(status) for status in ALLOCATED_STATUSES]
_MOST = int(np.iinfo(np.int32).max)
_NO_ROWS: AnyArray = np.zeros(0, dtype=np.int64)
_NO_ROWS.setflags(write=False)  # all new jobs have the same array
#: The fields of a PodGroup from which rows are filled, except for the phase.
_spec_of = attrgetter(
    "queue",
    "min_member",
    "min_task_member",
    "min_resources",
    "priority_class_name",
    "topology",
    "sub_groups",
    "gang",
    "creation",
    "annotations",
    "labels",
    "quarantined",
)


class JobKeeper:
    """Keeps rows of jobs and sub-jobs up to date with pods and PodGroups."""

    def __init__(self, tables: Tables, ledger: Ledger, roles: RoleNumbers, default_queue: str) -> None:
        self.default_queue = default_queue
        self._tables = tables
        self._ledger = ledger
        self._roles = roles
        self._row_of: dict[str, int] = {}
        self._members: dict[int, dict[int, None]] = {}  # job -> tasks, in a dict for its order
        self._subs: dict[int, dict[str, int]] = {}  # job -> sub-job uid -> row
        self._asks, self._signatures = Numbers(), Numbers()
        # Jobs whose lists of tasks, sub-jobs or signature must be made again. Many events about one job cost one sort.
        self._stale: set[int] = set()
        self._stale_priority: set[int] = set()

    def row_of(self, key: str) -> int | None:
        """Return the row of a job by ``namespace/podgroup``, or None."""
        return self._row_of.get(key)

    # -- pod groups ---------------------------------------------------------------------------------------------------

    def group_seen(self, group: PodGroup) -> None:
        """Take in a new or changed PodGroup."""
        row = self._job_row(group.key)
        jobs = self._tables.jobs
        before, phase = jobs.groups[row], PHASE_OF_NAME.get(group.status.phase, PENDING_PHASE)
        same = before is not None and before.uid == group.uid and _spec_of(before) == _spec_of(group)
        # Written only where it differs: a write gives the column a new version, and answers that rest on phases would
        # be lost.
        if phase == jobs.phase[row]:
            jobs.write(row, groups=group)
        else:
            jobs.write(row, groups=group, phase=phase)
        # Most updates are statuses that the scheduler wrote itself.
        if same:
            return
        has_other_parts = (
            before is None
            or before.sub_groups != group.sub_groups
            or before.topology != group.topology
            or _sub_groups_of(before) != _sub_groups_of(group)
        )
        if has_other_parts:
            self._remake_subs(row)
        elif before is not None and before.min_member != group.min_member and not has_parts(group):
            # The only sub-job is the gang, of which nothing else has changed.
            for sub in self._subs[row].values():
                self._tables.subs.write(sub, min_available=group.min_member)
        self._fill(row, group)
        # A group without pods has no lists to make again.
        if self._members[row]:
            self._stale.add(row)
        self._stale_priority.add(row)

    def group_gone(self, key: str) -> None:
        """Remove a PodGroup that was deleted."""
        # Its pods keep the job's row: they still hold resources, and the group may be created again.
        row = self._row_of.get(key)
        if row is None:
            return
        self._tables.jobs.write(row, groups=None, queue=-1)
        self._drop_if_empty(row)

    def _fill(self, row: int, group: PodGroup) -> None:
        tables, jobs = self._tables, self._tables.jobs
        jobs.write(
            row,
            min_available=group.min_member,
            creation=group.creation,
            role_min=self._role_minima(row, group),
            role_total=min(sum(group.min_task_member.values()), _MOST),  # a sum of many 32-bit numbers can overflow
            has_min=group.min_resources is not None,
            min_resources=tables.axis.vector(group.min_resources),
            ask=-1 if group.min_resources is None else self._asks.of(group.min_resources),
            has_policy=has_parts(group),
            has_topology=group.topology is not None
            or any(policy.topology for policy in group.sub_groups)
            or any(sub.topology for sub in _sub_groups_of(group))
            or (group.gang is not None and group.gang.topology is not None),
            quarantined=group.quarantined,
            queue=self._queue_of(group),
        )

    def _role_minima(self, row: int, group: PodGroup) -> dict[int, int]:
        """Return the minimums of roles by number, and give back the numbers of the present ones."""
        # The new numbers are taken first, so that a role in both keeps its number.
        found = {self._roles.take(role): n for role, n in sorted(group.min_task_member.items()) if n}
        for number in self._tables.jobs.role_min[row]:
            self._roles.give_back(number)
        return found

    def _queue_of(self, group: PodGroup) -> int:
        return self._tables.queues.row_of.get(group.queue or self.default_queue, -1)

    # -- tasks --------------------------------------------------------------------------------------------------------

    def place_of(self, pod: Pod) -> tuple[int, int]:
        """Return the rows of the pod's job and sub-job, new ones if they do not exist; -1 for a pod without a group."""
        if not pod.group_key:
            return -1, -1
        job = self._job_row(pod.group_key)
        return job, self._sub_row(job, pod)

    def add_tasks(self, rows: Sequence[int]) -> None:
        """Add equal new tasks to the members of their job."""
        tables, count = self._tables, len(rows)
        job = int(tables.tasks.job[rows[0]])
        self._members[job].update(dict.fromkeys(rows))
        gated = count if tables.tasks.gate[rows[0]] == GATED else 0
        tables.jobs.write(job, size=tables.jobs.size[job] + count, gated=tables.jobs.gated[job] + gated)
        self._stale.add(job)

    def remove_tasks(self, rows: Sequence[int]) -> None:
        """Remove equal tasks of one job from its members. They must have left all sums before."""
        tables, count = self._tables, len(rows)
        job = int(tables.tasks.job[rows[0]])
        if job < 0:
            return
        members = self._members[job]
        for row in rows:
            del members[row]
        gated = count if tables.tasks.gate[rows[0]] == GATED else 0
        tables.jobs.write(job, size=tables.jobs.size[job] - count, gated=tables.jobs.gated[job] - gated)
        self._stale.add(job)
        self._drop_if_empty(job)

    # -- rows ---------------------------------------------------------------------------------------------------------

    def _job_row(self, key: str) -> int:
        row = self._row_of.get(key)
        if row is None:
            row, *_ = self._tables.jobs.new_rows(1, uids=key, tasks=_NO_ROWS, subs=(), role_min={})
            self._row_of[key], self._members[row], self._subs[row] = row, {}, {}
        return row

    def _drop_if_empty(self, job: int) -> None:
        jobs = self._tables.jobs
        if self._members[job] or jobs.groups[job] is not None:
            return
        for sub in self._subs.pop(job).values():
            self._tables.subs.free_row(sub)
        for number in jobs.role_min[job]:
            self._roles.give_back(number)
        del self._row_of[jobs.uids[job]], self._members[job]
        self._stale.discard(job)
        self._stale_priority.discard(job)
        jobs.free_row(job)

    def _sub_row(self, job: int, pod: Pod) -> int:
        tables = self._tables
        group = tables.jobs.groups[job]
        key = tables.jobs.uids[job]
        found = sub_job_of(pod.labels, group, pod.annotations) if group is not None and has_parts(group) else None
        uid = found.id if found is not None else key
        row = self._subs[job].get(uid)
        return row if row is not None else self._new_sub(job, uid, found)

    def _new_sub(self, job: int, uid: str, key: SubJobKey | None) -> int:
        tables = self._tables
        group = tables.jobs.groups[job]
        own: dict[str, Any] = {"gids": tables.jobs.uids[job]}
        if group is not None:
            # Without a key: the default sub-job, which is named after the job.
            named = key or SubJobKey(group.key, group.key)
            own = {
                "gids": named.gid,
                "match_index": named.match_index,
                "min_available": min_available(named, group),
                "topologies": topology_of(named, group),
            }
        row, *_ = tables.subs.new_rows(1, job=job, uids=uid, tasks=_NO_ROWS, **own)
        self._subs[job][uid] = row
        return row

    def _remake_subs(self, job: int) -> None:
        """Replace the sub-jobs of a job after its policies have changed: each task may belong to another one."""
        tables, jobs = self._tables, self._tables.jobs
        # A sub-job that exists before and after stays in its hypernode, where its pods run.
        held = {tables.subs.uids[s]: int(tables.subs.hypernode[s]) for s in tables.jobs.subs[job]}
        booked = [(row, int(tables.tasks.status[row])) for row in self._members[job]]
        for row, status in booked:
            # Out of all sums first: they are by sub-job, and the rows of the old sub-jobs are about to be freed.
            self._ledger.count(row, status, -1)
        for sub in self._subs[job].values():
            tables.subs.free_row(sub)
        self._subs[job] = {}
        jobs.write(job, subs=())
        for row, status in booked:
            sub = self._sub_row(job, tables.tasks.pods[row])
            tables.tasks.write(row, sub=sub)
            tables.subs.write(sub, hypernode=held.get(tables.subs.uids[sub], -1))
            self._ledger.count(row, status, 1)

    def measure(self) -> None:
        """Compute again what jobs hold, after a change of the axis of resources."""
        tables = self._tables
        tasks, held = tables.tasks, np.zeros_like(tables.jobs.allocated)
        rows = np.array([row for members in self._members.values() for row in members], dtype=np.int64)
        rows = rows[np.isin(tasks.status[rows], _HOLDING)]
        np.add.at(held, tasks.job[rows], tables.classes.req[tasks.cls[rows]])
        tables.jobs.write(slice(None), allocated=held)
        # Signatures are made from identities of classes, which are new on another axis.
        self._stale.update(self._row_of.values())

    # -- before a snapshot --------------------------------------------------------------------------------------------

    def refresh(self) -> None:
        """Update the lists of tasks and sub-jobs of all jobs that changed."""
        tables = self._tables
        # Sorted, because signatures are numbered in the order in which they are first seen.
        for job in sorted(self._stale):
            pods = tables.tasks.pods
            rows = order_rows({row: pods[row] for row in self._members[job]})
            listed = _fixed(rows)
            by_sub: dict[int, list[int]] = {}
            for row, sub in zip(rows, tables.tasks.sub[listed].tolist(), strict=True):
                by_sub.setdefault(sub, []).append(row)
            for uid, sub in list(self._subs[job].items()):
                if sub not in by_sub:
                    del self._subs[job][uid]
                    tables.subs.free_row(sub)
            for sub, members in by_sub.items():
                inside = _fixed(members) if len(by_sub) > 1 else listed
                most = max(int(tables.subs.priority[sub]), *tables.tasks.priority[inside].tolist())
                tables.subs.write(sub, tasks=inside, priority=most)
            tables.jobs.write(
                job,
                tasks=listed,
                subs=tuple(sorted(by_sub, key=lambda s: tables.subs.uids[s])),
                signature=self._signature_of(job, listed),
                estimate_s=self._estimate_of(job, listed),
            )
        self._stale.clear()

    def _signature_of(self, job: int, rows: AnyArray) -> int:
        """Return a number that jobs have in common if they are equal for every decision (``JobTable.signature``)."""
        tasks, jobs, classes = self._tables.tasks, self._tables.jobs, self._tables.classes
        # Such jobs are equal to none: what one of them holds of the topology changes what fits for the next.
        if jobs.has_policy[job] or jobs.has_topology[job] or not len(rows):
            return -1
        columns = (classes.identities(tasks.cls[rows]), tasks.role[rows], tasks.priority[rows], tasks.gate[rows])
        # Roles by name: the number of a role is given to another one after its last user is gone.
        kinds = tuple(
            (identity, self._roles.name(role), priority, gate, count)
            for (identity, role, priority, gate), count in neighbours(columns)
        )
        group = jobs.groups[job]
        minima = () if group is None else tuple(sorted((role, n) for role, n in group.min_task_member.items() if n))
        return self._signatures.of((kinds, int(jobs.min_available[job]), minima))

    def _estimate_of(self, job: int, rows: AnyArray) -> float:
        """Return how long the job is expected to run, in seconds, 0 if unknown."""
        tasks = self._tables.tasks
        # One pod of each class, because the pods of a template say the same.
        _, first = np.unique(tasks.cls[rows], return_index=True)
        return job_estimate_s(self._tables.jobs.groups[job], (tasks.pods[row] for row in rows[first].tolist()))

    def all_queues_stale(self) -> None:
        """Find the queues of all jobs again, in a new queue table."""
        jobs = self._tables.jobs
        for row in self._row_of.values():
            group = jobs.groups[row]
            queue = -1 if group is None else self._queue_of(group)
            # Only where it differs: a write would give the row a new stamp.
            if queue != jobs.queue[row]:
                jobs.write(row, queue=queue)

    def all_priorities_stale(self) -> None:
        """Let ``refresh_priorities`` look at all jobs."""
        self._stale_priority.update(self._row_of.values())

    def refresh_priorities(self, classes: Mapping[str, PriorityClass]) -> None:
        """Update priorities: that of the named class, else of the global default, else 0 (KAI: 50).

        Whether a job is preemptible is updated too, because in KAI it depends on the priority.
        """
        if not self._stale_priority:
            return
        # Kubernetes allows one global default only. If there are two, the choice must not depend on their order.
        default = max((c for c in classes.values() if c.global_default), key=lambda c: c.name, default=None)
        for row in self._stale_priority:
            group = self._tables.jobs.groups[row]
            named = classes.get(group.priority_class_name) if group is not None else None
            chosen = named or default
            gang = group.gang if group is not None else None
            value = chosen.value if chosen is not None else DEFAULT_PRIORITY if gang is not None else 0
            preemptible = group is not None and (group.preemptable if gang is None else gang.preemptible(value))
            if value != self._tables.jobs.priority[row] or preemptible != self._tables.jobs.preemptible[row]:
                self._tables.jobs.write(row, priority=value, preemptible=preemptible)
        self._stale_priority.clear()


def _fixed(rows: list[int]) -> AnyArray:
    found = np.array(rows, dtype=np.int64)
    found.setflags(write=False)
    return found


def _sub_groups_of(group: PodGroup) -> tuple[SubGroup, ...]:
    return group.gang.sub_groups if group.gang is not None else ()
