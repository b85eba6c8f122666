"""Jobs and sub-jobs in the columns: which tasks they have, and what follows from their PodGroup.

A PodGroup may come before or after its pods; a job exists as soon as either does, and belongs to snapshots once it has
a PodGroup and its queue exists. Source: Volcano JobInfo, SubJobInfo and cache.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from pumice.algorithms.numbers import Numbers
from pumice.columns.jobs import PENDING_PHASE, PHASE_CODE
from pumice.columns.ledger import Ledger
from pumice.columns.tables import Tables
from pumice.columns.tasks import GATED
from pumice.model.pod import Pod
from pumice.model.podgroup import PodGroup
from pumice.model.quantity import DurationError, parse_duration
from pumice.model.queue import PriorityClass
from pumice.model.subgroups import SubJobKey, sub_job_of
from pumice.state.task_order import order_rows

PHASE_OF_NAME: dict[str, int] = {phase.value: code for phase, code in PHASE_CODE.items()}
SLA_ANNOTATIONS = ("volcano.sh/sla-waiting-time", "sla-waiting-time")


class JobKeeper:
    """Keeps job and sub-job rows in step with pods and PodGroups."""

    def __init__(self, tables: Tables, ledger: Ledger, default_queue: str) -> None:
        self.default_queue = default_queue
        self._tables = tables
        self._ledger = ledger
        self._row_of: dict[str, int] = {}
        self._members: dict[int, dict[int, None]] = {}
        self._subs: dict[int, dict[str, int]] = {}  # job -> sub-job uid -> row
        self._asks, self._shapes = Numbers(), Numbers()
        self._stale: set[int] = set()  # membership, sub-jobs or spec
        self._stale_priority: set[int] = set()

    def groups(self) -> Iterator[PodGroup]:
        """Every PodGroup known."""
        return (g for row in self._row_of.values() if (g := self._tables.jobs.groups[row]) is not None)

    def inherit(self, old: JobKeeper) -> None:
        """Take over from the keeper of other tables, with the same jobs, what cannot be read off the objects."""
        ours, theirs = self._tables, old._tables
        for key, job in self._row_of.items():
            before = old._row_of[key]
            ours.jobs.hypernode[job] = theirs.jobs.hypernode[before]
            for uid, sub in self._subs[job].items():
                was = old._subs[before][uid]
                for column in ("hypernode", "nominated", "priority"):
                    getattr(ours.subs, column)[sub] = getattr(theirs.subs, column)[was]

    def row_of(self, key: str) -> int | None:
        return self._row_of.get(key)

    # -- pod groups ---------------------------------------------------------------------------------------------------

    def group_seen(self, group: PodGroup) -> None:
        """A PodGroup came or changed."""
        row = self._job_row(group.key)
        jobs = self._tables.jobs
        before = jobs.groups[row]
        jobs.groups[row] = group
        jobs.phase[row] = PHASE_OF_NAME.get(group.status.phase, PENDING_PHASE)
        jobs.settled[row] = False
        if before is not None and _same_spec(before, group):
            return
        resubbed = before is None or before.sub_groups != group.sub_groups or before.topology != group.topology
        if resubbed or before.min_member != group.min_member:
            self._resub(row)
        self._fill(row, group)
        self._stale.add(row)
        self._stale_priority.add(row)

    def group_gone(self, key: str) -> None:
        """A PodGroup went; its pods stay known and wait for it to come back."""
        row = self._row_of.get(key)
        if row is None:
            return
        self._tables.jobs.groups[row] = None  # type: ignore[call-overload]
        self._tables.jobs.queue[row] = -1
        self._drop_if_empty(row)

    def _fill(self, row: int, group: PodGroup) -> None:
        tables, jobs = self._tables, self._tables.jobs
        jobs.min_available[row] = group.min_member
        jobs.creation[row] = group.creation
        jobs.role_min[row] = {tables.roles.number(role): n for role, n in sorted(group.min_task_member.items()) if n}
        jobs.role_total[row] = min(sum(group.min_task_member.values()), np.iinfo(np.int32).max)
        jobs.has_min[row] = group.min_resources is not None
        jobs.min_resources[row] = tables.axis.vector(group.min_resources)
        jobs.ask[row] = -1 if group.min_resources is None else self._asks.of(group.min_resources)
        jobs.has_policy[row] = bool(group.sub_groups)
        jobs.has_topology[row] = group.topology is not None or any(p.topology for p in group.sub_groups)
        jobs.sla_wait[row] = _waiting_time(group.annotations)
        self._resolve_queue(row)

    def _resolve_queue(self, row: int) -> None:
        group = self._tables.jobs.groups[row]
        name = (group.queue or self.default_queue) if group is not None else ""
        self._tables.jobs.queue[row] = self._tables.queues.row_of.get(name, -1)

    # -- tasks --------------------------------------------------------------------------------------------------------

    def add_task(self, row: int, pod: Pod) -> None:
        """File a new task under its job and sub-job; it is booked afterwards."""
        job = self._job_row(pod.group_key)
        tasks = self._tables.tasks
        tasks.job[row] = job
        self._members[job][row] = None
        tasks.sub[row] = self._sub_row(job, pod)
        jobs = self._tables.jobs
        jobs.size[job] += 1
        jobs.gated[job] += int(tasks.gate[row] == GATED)
        self._stale.add(job)

    def remove_task(self, row: int) -> None:
        """Take a task, already out of the books, from its job."""
        tasks, jobs = self._tables.tasks, self._tables.jobs
        job = int(tasks.job[row])
        if job < 0:
            return
        del self._members[job][row]
        jobs.size[job] -= 1
        jobs.gated[job] -= int(tasks.gate[row] == GATED)
        self._stale.add(job)
        self._drop_if_empty(job)

    def changed(self, row: int) -> None:
        """A task of the job moved between states."""
        job = self._tables.tasks.job[row]
        if job >= 0:
            self._tables.jobs.settled[job] = False

    # -- rows ---------------------------------------------------------------------------------------------------------

    def _job_row(self, key: str) -> int:
        row = self._row_of.get(key)
        if row is None:
            jobs = self._tables.jobs
            row = self._row_of[key] = jobs.new_row()
            self._members[row], self._subs[row] = {}, {}
            jobs.uids[row] = key
            jobs.tasks[row], jobs.subs[row], jobs.role_min[row] = np.zeros(0, dtype=np.int64), (), {}
        return row

    def _drop_if_empty(self, job: int) -> None:
        jobs = self._tables.jobs
        if self._members[job] or jobs.groups[job] is not None:
            return
        for sub in self._subs.pop(job).values():
            self._tables.subs.free_row(sub)
        del self._row_of[jobs.uids[job]], self._members[job]
        self._stale.discard(job)
        self._stale_priority.discard(job)
        jobs.free_row(job)

    def _sub_row(self, job: int, pod: Pod) -> int:
        tables = self._tables
        group = tables.jobs.groups[job]
        key = tables.jobs.uids[job]
        found = sub_job_of(pod.labels, group) if group is not None and group.sub_groups else None
        uid = found.id if found is not None else key
        row = self._subs[job].get(uid)
        return row if row is not None else self._new_sub(job, uid, found)

    def _new_sub(self, job: int, uid: str, key: SubJobKey | None) -> int:
        tables, subs = self._tables, self._tables.subs
        group = tables.jobs.groups[job]
        row = self._subs[job][uid] = subs.new_row()
        subs.job[row], subs.uids[row] = job, uid
        policy = key.policy if key is not None else None
        if key is None or policy is None:
            subs.gids[row] = tables.jobs.uids[job]
            has_policy = group is not None and bool(group.sub_groups)
            subs.min_available[row] = 1 if has_policy else (group.min_member if group is not None else 0)
            subs.topologies[row] = group.topology if group is not None else None
        else:
            subs.gids[row] = key.gid
            subs.match_index[row] = key.match_index
            subs.min_available[row] = policy.sub_group_size if policy.sub_group_size is not None else 1
            subs.topologies[row] = policy.topology
        subs.tasks[row] = np.zeros(0, dtype=np.int64)
        return row

    def _resub(self, job: int) -> None:
        """The policies changed: every task may belong to another sub-job."""
        tables, jobs = self._tables, self._tables.jobs
        held = {tables.subs.uids[s]: int(tables.subs.hypernode[s]) for s in tables.jobs.subs[job]}
        booked = [(row, int(tables.tasks.status[row])) for row in self._members[job]]
        for row, status in booked:
            self._ledger.count(row, status, -1)
        for sub in self._subs[job].values():
            tables.subs.free_row(sub)
        self._subs[job] = {}
        jobs.subs[job] = ()
        for row, status in booked:
            sub = tables.tasks.sub[row] = self._sub_row(job, tables.tasks.pods[row])
            tables.subs.hypernode[sub] = held.get(tables.subs.uids[sub], -1)
            self._ledger.count(row, status, 1)

    # -- before a snapshot --------------------------------------------------------------------------------------------

    def refresh(self) -> None:
        """Put the lists of jobs whose membership changed in order."""
        tables, jobs = self._tables, self._tables.jobs
        for job in self._stale:
            rows = order_rows(list(self._members[job]), tables.tasks.pods)
            jobs.tasks[job] = np.array(rows, dtype=np.int64)
            by_sub: dict[int, list[int]] = {}
            for row, sub in zip(rows, tables.tasks.sub[rows].tolist(), strict=True):
                by_sub.setdefault(sub, []).append(row)
            for uid, sub in list(self._subs[job].items()):
                if sub not in by_sub:
                    del self._subs[job][uid]
                    tables.subs.free_row(sub)
            jobs.subs[job] = tuple(sorted(by_sub, key=lambda s: tables.subs.uids[s]))
            for sub, members in by_sub.items():
                tables.subs.tasks[sub] = np.array(members, dtype=np.int64)
                tables.subs.priority[sub] = max(
                    int(tables.subs.priority[sub]), int(tables.tasks.priority[members].max())
                )
            jobs.settled[job] = False
            jobs.shape[job] = self._shape_of(job, rows)
        self._stale.clear()

    def _shape_of(self, job: int, rows: list[int]) -> int:
        tasks, jobs = self._tables.tasks, self._tables.jobs
        if jobs.has_policy[job] or jobs.has_topology[job] or not rows:
            return -1
        kinds = tuple(
            zip(
                tasks.cls[rows].tolist(),
                tasks.role[rows].tolist(),
                tasks.priority[rows].tolist(),
                tasks.gate[rows].tolist(),
                strict=True,
            )
        )
        return self._shapes.of((kinds, int(jobs.min_available[job]), tuple(sorted(jobs.role_min[job].items()))))

    def all_queues_stale(self) -> None:
        for row in self._row_of.values():
            self._resolve_queue(row)

    def all_priorities_stale(self) -> None:
        self._stale_priority.update(self._row_of.values())

    def refresh_priorities(self, classes: Mapping[str, PriorityClass]) -> None:
        """Job priority: the named class, else the global default, else 0."""
        default = max((c for c in classes.values() if c.global_default), key=lambda c: c.name, default=None)
        for row in self._stale_priority:
            group = self._tables.jobs.groups[row]
            named = classes.get(group.priority_class_name) if group is not None else None
            chosen = named or default
            self._tables.jobs.priority[row] = chosen.value if chosen is not None else 0
        self._stale_priority.clear()


def _same_spec(a: PodGroup, b: PodGroup) -> bool:
    return (
        a.queue == b.queue
        and a.min_member == b.min_member
        and a.min_task_member == b.min_task_member
        and a.min_resources == b.min_resources
        and a.priority_class_name == b.priority_class_name
        and a.topology == b.topology
        and a.sub_groups == b.sub_groups
        and a.creation == b.creation
        and a.annotations == b.annotations
        and a.labels == b.labels
    )


def _waiting_time(annotations: Mapping[str, str]) -> float:
    for key in SLA_ANNOTATIONS:
        text = annotations.get(key)
        if text is None:
            continue
        try:
            seconds = parse_duration(text)
        except DurationError:
            continue
        if seconds > 0:
            return seconds
    return 0.0
