"""task-topology: place tasks of related roles on one node, and keep others apart.

Source: Volcano task-topology plugin.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from pumice.api import (
    EPS,
    F64,
    I64,
    IDLE,
    MEMORY,
    PODS,
    ROWS,
    AnyArray,
    Bool,
    NodeRows,
    Session,
    Task,
    TaskRows,
    TaskStatus,
    plugin,
    points,
)
from pumice.columns.nodes import RELEASING
from pumice.model.pod import TASK_SPEC_KEY
from pumice.volcano.topology.task_groups import (
    AFFINITY_ANNOTATION,
    ANTI_AFFINITY_ANNOTATION,
    PRIORITY_MAX,
    Buckets,
    Member,
    Roles,
    TaskTopologyError,
    buckets_of,
    removals,
    topology_of,
)

_MIB = float(1 << 20)
#: Limits for the parts of a sort key: tasks of a job, and roles in an order. Larger values are equal.
_ROWS_MAX, _ROLES_MAX, _BITS = (1 << 20) - 1, (1 << 12) - 1, 60
_PENDING = int(TaskStatus.PENDING)


class Plan(NamedTuple):
    """The annotations of a job, evaluated. ``waited`` (tasks,): tasks in buckets without a node when the session
    began, and their role numbers."""

    roles: Roles
    buckets: Buckets
    waited: AnyArray
    waited_roles: AnyArray


@plugin("task-topology", spelled=("task-topology.weight",))
class TaskTopologies:
    """Order tasks and score nodes by buckets.

    ``task-topology.weight``: weight of the score. A PodGroup groups roles in the annotations
    ``volcano.sh/task-topology-affinity``, ``-anti-affinity`` (``ps,worker;chief``) and ``-task-order``. The annotation
    ``volcano.sh/task-spec`` of a pod names its role.
    """

    def __init__(self, ssn: Session, *, task_topology_weight: int = 1) -> None:
        self.ssn, self._weight = ssn, task_topology_weight
        # Where tasks run is read from the tables at each call, so there is nothing to update and nothing to roll back.
        self._plans: dict[int, Plan] = {}
        self._bucket_of: dict[int, int] = {}
        groups = ssn.tables.jobs.groups
        for job in ssn.live_jobs.tolist():
            notes = groups[job].annotations
            if AFFINITY_ANNOTATION in notes or ANTI_AFFINITY_ANNOTATION in notes:
                self._plan(job)
        self.unused_points = () if self._plans else (points.task_order, points.node_order)

    def _plan(self, job: int) -> None:
        """Evaluate the annotations of a job with pending tasks."""
        tables = self.ssn.tables
        rows, tasks, names = tables.jobs.tasks[job], tables.tasks, tables.nodes.facts.names
        # A job without pending tasks has nothing to order or to score.
        if not (tasks.status[rows] == _PENDING).any():
            return
        # The annotation only. Elsewhere in Volcano the label counts too, but not in this plugin.
        role_of = {row: tasks.pods[row].annotations.get(TASK_SPEC_KEY, "") for row in rows.tolist()}
        group = tables.jobs.groups[job]
        try:
            topology = topology_of(group.annotations, frozenset(role_of.values()), group.key)
        except TaskTopologyError:
            # Volcano ignores the topology of such a job.
            return
        roles = Roles(topology) if topology is not None else None
        if roles is None or not roles.names:
            return
        # Buckets are sorted by node name, as in Volcano, so nodes are numbered in that order.
        by_name = {name: place for place, name in enumerate(sorted({names[n] for n in tasks.node[rows] if n >= 0}))}
        members = [
            Member(
                row,
                roles.names[role],
                by_name[names[tasks.node[row]]] if tasks.node[row] >= 0 else -1,
                tasks.pods[row].name,
                self._amount(row),
            )
            for row, role in role_of.items()
            # Roles without a topology stay out of all buckets, and go after those in one.
            if role in roles.names
        ]
        buckets = buckets_of(members, roles)
        waited = [member for member in members if member.node < 0]
        of_each = (np.array([member[i] for member in waited], dtype=np.int64) for i in (0, 1))
        self._plans[job] = Plan(roles, buckets, *of_each)
        for number, each in enumerate(buckets.members):
            self._bucket_of |= dict.fromkeys(each.tolist(), number)

    def _amount(self, row: int) -> float:
        """Return the request of a task as one number: milli-cores, MiB, and other resources in their own unit."""
        amounts = self.ssn.tables.classes.req[self.ssn.tables.tasks.cls[row]].copy()
        # In MiB, so that memory does not outweigh all other resources: only the comparison of buckets reads the sum.
        amounts[MEMORY] /= _MIB
        return float(amounts.sum())

    # -- hooks --------------------------------------------------------------------------------------------------------

    @points.task_order(reads=(ROWS, PODS))
    def task_order(self, tasks: TaskRows) -> I64:
        """Return the order key: tasks in buckets first, buckets with many pending tasks first, then by role.
        Shape (rows,)."""
        waits = self._waits(tasks)
        each = zip(tasks.rows.tolist(), tasks.job.tolist(), strict=True)
        return np.array([self._key(row, job, waits) for row, job in each], dtype=np.int64)

    def _waits(self, tasks: TaskRows) -> dict[tuple[int, int], int]:
        """Return how many tasks are pending, by job and bucket."""
        node = self.ssn.tables.tasks.node
        jobs = [job for job in dict.fromkeys(tasks.job.tolist()) if job in self._plans]
        each = ((job, i, rows) for job in jobs for i, rows in enumerate(self._plans[job].buckets.members))
        return {(job, i): int((node[rows] < 0).sum()) for job, i, rows in each}

    def _key(self, row: int, job: int, waits: Mapping[tuple[int, int], int]) -> int:
        """Return the parts of the order as one number: no bucket, pending tasks, bucket, role."""
        bucket = self._bucket_of.get(row, -1)
        if bucket < 0:
            return 1 << _BITS
        plan = self._plans[job]
        order, priority = plan.roles.rank[plan.buckets.roles[row]].tolist()
        key = _ROWS_MAX - min(waits[job, bucket], _ROWS_MAX)
        # Packed into an integer, since the order takes one column of numbers; each part is clipped to its range.
        for part, most in (
            (bucket, _ROWS_MAX),
            (_ROLES_MAX - order, _ROLES_MAX),
            (PRIORITY_MAX - priority, PRIORITY_MAX),
        ):
            key = key * (most + 1) + min(max(part, 0), most)
        return int(key)

    @points.node_order(reads=(ROWS, PODS))
    def node_order(self, task: Task, nodes: NodeRows) -> F64 | None:
        """Return a score for nodes: tasks of the bucket that run there or would fit with the task, less tasks to keep
        apart. Shape (rows,).

        None for jobs without a topology.
        """
        job = task.job.row
        plan, bucket = self._plans.get(job), self._bucket_of.get(task.row, -1)
        if plan is None:
            return None
        if bucket < 0:
            return np.zeros(len(nodes))
        books = self.ssn.tables.nodes.books[nodes.rows]
        # Pipelined tasks are not subtracted, unlike elsewhere. Source: Volcano topology.go, calcBucketScore.
        room = books[:, IDLE] + books[:, RELEASING]
        score = self._on_nodes(plan.buckets.members[bucket])[nodes.rows].astype(np.float64)
        score -= self._on_nodes(self._to_keep_apart(plan, task.row))[nodes.rows]
        score += self._with_it(plan.buckets.members[bucket], task, room)
        # Relative to the largest bucket of the job, so that no score exceeds 100 times the weight.
        scale = 100.0 * self._weight / plan.buckets.largest
        return np.where(_too_small(room, task.req), 0.0, score * scale)

    def _on_nodes(self, rows: AnyArray) -> AnyArray:
        """Return how many of these tasks are on each node. Shape (N,)."""
        node = self.ssn.tables.tasks.node[rows]
        return np.bincount(node[node >= 0], minlength=len(self.ssn.tables.nodes.facts))

    def _to_keep_apart(self, plan: Plan, row: int) -> AnyArray:
        """Return the tasks to keep apart from the task."""
        against = plan.roles.apart[plan.buckets.roles[row]]
        # Quirk of Volcano, kept on purpose: only tasks that this session places count.
        found: AnyArray = plan.waited[against[plan.waited_roles] < 0]
        return found

    def _with_it(self, members: AnyArray, task: Task, room: F64) -> F64:
        """Return how many pending tasks of the bucket, including this one, each node has room for. Shape (nodes,)."""
        tables = self.ssn.tables
        waiting = members[tables.tasks.node[members] < 0]
        asked = tables.classes.req[tables.tasks.cls[waiting]]
        others = asked[waiting != task.row]
        return len(waiting) - removals(asked.sum(axis=0), others, room).astype(np.float64)


def _too_small(room: F64, req: F64) -> Bool:
    """Return the nodes that lack something of the request. Shapes (nodes, R), (R,) -> (nodes,)."""
    return np.asarray((room + EPS <= req).any(axis=1))
