"""Handles: small objects that read one row by name. They have no setters and no cache, and are equal by row.

``rows`` has their counterparts for many rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from pumice.columns.counting import HELD, PENDING, Counters, Row, scheduled_in
from pumice.columns.dtypes import F64, I32, AnyArray
from pumice.columns.jobs import PHASES
from pumice.columns.nodes import FUTURE, IDLE, USED
from pumice.columns.tables import Tables
from pumice.columns.tasks import NO_GATE
from pumice.model.node import Node as NodeObject
from pumice.model.pod import Pod, PodSpec
from pumice.model.queue import Queue as QueueObject
from pumice.model.status import PodGroupPhase, TaskStatus
from pumice.model.workloads.podgroup import PodGroup


# No handle caches what it reads: a placement may have changed it since.
class TaskClass(Row):
    """What equal tasks have in common. A hook that takes it cannot see the single task, so its answer is kept for all
    tasks of the class."""

    __slots__ = ()

    @property
    def spec(self) -> PodSpec:
        """The part of the pod spec that its pods have in common."""
        return self.tables.classes.specs[self.row]

    @property
    def req(self) -> F64:
        """The request (R,)."""
        found: F64 = self.tables.classes.req[self.row]
        return found

    @property
    def nonzero(self) -> F64:
        """Milli-cpu and bytes with kube-scheduler's defaults for containers without requests. Shape (2,)."""
        found: F64 = self.tables.classes.nonzero[self.row]
        return found


class Task(Row):
    """One pod. A hook that takes it is asked for each task."""

    __slots__ = ()

    @property
    def pod(self) -> Pod:
        """The latest pod."""
        return self.tables.tasks.pods[self.row]

    @property
    def key(self) -> str:
        """``namespace/name``."""
        return self.pod.key

    @property
    def name(self) -> str:
        """The pod's name."""
        return self.pod.name

    @property
    def namespace(self) -> str:
        """The pod's namespace."""
        return self.pod.namespace

    @property
    def labels(self) -> Mapping[str, str]:
        """The pod's labels."""
        return self.pod.labels

    @property
    def annotations(self) -> Mapping[str, str]:
        """The pod's annotations."""
        return self.pod.annotations

    @property
    def cls(self) -> TaskClass:
        """Its class: what it has in common with equal tasks."""
        return TaskClass(self.tables, int(self.tables.tasks.cls[self.row]))

    @property
    def req(self) -> F64:
        """The request (R,)."""
        found: F64 = self.tables.classes.req[self.tables.tasks.cls[self.row]]
        return found

    @property
    def job(self) -> Job:
        """Its job (the pod group), false for none."""
        # A handle with row -1 is false, so a hook writes ``if task.job`` and needs no None.
        return Job(self.tables, int(self.tables.tasks.job[self.row]))

    @property
    def queue(self) -> Queue:
        """The queue of its job, false for none."""
        job = int(self.tables.tasks.job[self.row])
        return Queue(self.tables, int(self.tables.jobs.queue[job]) if job >= 0 else -1)

    @property
    def sub_job(self) -> SubJob:
        """Its sub-job: the tasks of the job that are placed together with it."""
        return SubJob(self.tables, int(self.tables.tasks.sub[self.row]))

    @property
    def role(self) -> str:
        """Its role in the gang, from the pod's annotation; empty for none."""
        return self.pod.role

    @property
    def status(self) -> TaskStatus:
        """Its state in this session."""
        return TaskStatus(int(self.tables.tasks.status[self.row]))

    @property
    def node(self) -> Node:
        """The node that it is or will be on, false for none."""
        return Node(self.tables, int(self.tables.tasks.node[self.row]))

    @property
    def priority(self) -> int:
        """The pod's priority."""
        return int(self.tables.tasks.priority[self.row])

    @property
    def best_effort(self) -> bool:
        """True if it requests nothing."""
        return bool(self.tables.tasks.best_effort[self.row])

    @property
    def preemptable(self) -> bool:
        """True if the pod may be evicted: volcano.sh/preemptable does not forbid it."""
        return bool(self.tables.tasks.preemptable[self.row])

    @property
    def job_hypernode(self) -> int:
        """The row of the hypernode that its job holds while this task is being placed, -1 for none."""
        return int(self.tables.tasks.job_hypernode[self.row])


class SubJob(Counters):
    """A part of a job with a minimum and a topology of its own. Most jobs have one sub-job."""

    __slots__ = ()

    @property
    def _table(self) -> Any:
        return self.tables.subs

    @property
    def uid(self) -> str:
        """Its identity, unique among all sub-jobs."""
        return self.tables.subs.uids[self.row]

    @property
    def gid(self) -> str:
        """The identity of its sub-group policy, which sub-jobs of one policy have in common."""
        return self.tables.subs.gids[self.row]

    @property
    def job(self) -> Job:
        """Its job."""
        return Job(self.tables, int(self.tables.subs.job[self.row]))

    @property
    def match_index(self) -> int:
        """Its position among the sub-jobs of its policy."""
        return int(self.tables.subs.match_index[self.row])

    @property
    def hypernode(self) -> int:
        """The row of the hypernode that holds its tasks, -1 for none."""
        return int(self.tables.subs.hypernode[self.row])

    @property
    def tasks(self) -> AnyArray:
        """The rows of its tasks."""
        return self.tables.subs.tasks[self.row]


class Job(Counters):
    """A pod group and its pods: a gang."""

    __slots__ = ()

    @property
    def _table(self) -> Any:
        return self.tables.jobs

    @property
    def key(self) -> str:
        """``namespace/podgroup``."""
        return self.tables.jobs.uids[self.row]

    @property
    def name(self) -> str:
        """The pod group's name."""
        return self.key.partition("/")[2]

    @property
    def namespace(self) -> str:
        """The pod group's namespace."""
        return self.key.partition("/")[0]

    @property
    def labels(self) -> Mapping[str, str]:
        """The pod group's labels, completed by labels of its first pod that the group does not have."""
        rows, own = self.tasks, self.group.labels
        # PodGroups that a controller made often carry no labels; their pods do. Own labels win, since a user wrote
        # them.
        return {**self.tables.tasks.pods[rows[0]].labels, **own} if len(rows) else own

    @property
    def annotations(self) -> Mapping[str, str]:
        """The pod group's annotations."""
        return self.group.annotations

    @property
    def group(self) -> PodGroup:
        """The latest pod group."""
        return self.tables.jobs.groups[self.row]

    @property
    def queue(self) -> Queue:
        """Its queue, false if there is no such queue."""
        return Queue(self.tables, int(self.tables.jobs.queue[self.row]))

    @property
    def priority(self) -> int:
        """The value of its priority class."""
        return int(self.tables.jobs.priority[self.row])

    @property
    def creation(self) -> float:
        """The creation time of its pod group, seconds since the epoch."""
        return float(self.tables.jobs.creation[self.row])

    @property
    def estimate_s(self) -> float:
        """Seconds that it is expected to run, 0 if unknown."""
        return float(self.tables.jobs.estimate_s[self.row])

    @property
    def phase(self) -> PodGroupPhase:
        """The phase of its pod group in this session."""
        found: PodGroupPhase = PHASES[self.tables.jobs.phase[self.row]]
        return found

    @property
    def tasks(self) -> AnyArray:
        """The rows of its tasks."""
        return self.tables.jobs.tasks[self.row]

    @property
    def sub_jobs(self) -> tuple[int, ...]:
        """The rows of its sub-jobs."""
        return self.tables.jobs.subs[self.row]

    @property
    def size(self) -> int:
        """The number of its tasks."""
        return int(self.tables.jobs.size[self.row])

    @property
    def held_count(self) -> int:
        """The number of tasks that hold resources. Succeeded tasks do not."""
        return int(self.counts @ HELD)

    @property
    def scheduled_count(self) -> int:
        """The number of tasks that are bound, running, or have ended."""
        return scheduled_in(self.counts.tolist())

    @property
    def roles_matter(self) -> bool:
        """True if the minimums of roles apply: some are given, and they add up to no more than the job's minimum."""
        # Volcano checks roles only then (job_info.go, CheckTaskValid): with a smaller minimum of the job, any mix of
        # roles may start it.
        return bool(self.role_min) and self.min_available >= int(self.tables.jobs.role_total[self.row])

    @property
    def role_min(self) -> Mapping[int, int]:
        """The minimum number of tasks of each role, by the number of the role."""
        return self.tables.jobs.role_min[self.row]

    def role_counts(self, statuses: I32, *, with_best_effort: bool = False) -> dict[int, int]:
        """Return the number of tasks of each role with a minimum whose state is marked in ``statuses`` (0 or 1 for each
        state). ``with_best_effort`` adds pending tasks that request nothing."""
        tasks, rows = self.tables.tasks, self.tasks
        counted = statuses.astype(bool)[tasks.status[rows]]
        if with_best_effort and self.best_effort_count:
            empty = (tasks.status[rows] == PENDING) & tasks.best_effort[rows]
            # Tasks with a scheduling gate are not in the job's count, so a greater number means that some have one.
            if np.count_nonzero(empty) > self.best_effort_count:
                empty &= tasks.gate[rows] == NO_GATE
            counted |= empty
        # A list and ``count``: jobs have few roles, and a gang of ten tasks is counted faster so than by NumPy.
        roles = tasks.role[rows][counted].tolist()
        return {role: roles.count(role) for role in self.role_min}


class Queue(Row):
    """A queue: jobs belong to it, and shares of the cluster are computed for it."""

    __slots__ = ()

    @property
    def obj(self) -> QueueObject:
        """The latest queue, without its status."""
        return self.tables.queues.objs[self.row]

    @property
    def name(self) -> str:
        """Its name, empty for none."""
        return self.tables.queues.names[self.row] if self.row >= 0 else ""

    key = name

    @property
    def labels(self) -> Mapping[str, str]:
        """Its labels."""
        return self.obj.labels

    @property
    def annotations(self) -> Mapping[str, str]:
        """Its annotations."""
        return self.obj.annotations

    @property
    def open(self) -> bool:
        """True if it accepts jobs."""
        return bool(self.tables.queues.open[self.row])


class Node(Row):
    """One node, for hooks that are written for one node at a time. It may be hypothetical, like ``NodeRows``."""

    # ``after`` is the number of further tasks that it is shown with, ``cls`` their class.
    __slots__ = ("_after", "_cls")

    def __init__(self, tables: Tables, row: int, after: float = 0.0, cls: int = -1) -> None:
        super().__init__(tables, row)
        self._after, self._cls = after, cls

    @property
    def obj(self) -> NodeObject:
        """The latest node."""
        return self.tables.nodes.facts.objs[self.row]

    @property
    def name(self) -> str:
        """Its name, empty for none."""
        return self.tables.nodes.facts.names[self.row] if self.row >= 0 else ""

    key = name

    @property
    def labels(self) -> Mapping[str, str]:
        """Its labels."""
        return self.obj.labels

    @property
    def annotations(self) -> Mapping[str, str]:
        """Its annotations."""
        return self.obj.annotations

    @property
    def allocatable(self) -> F64:
        """What tasks may hold of it (R,)."""
        found: F64 = self.tables.nodes.facts.allocatable[self.row]
        return found

    def _book(self, book: int, sign: float) -> F64:
        found: F64 = self.tables.nodes.books[self.row, book]
        # Computed and not booked: a node "after three more tasks" is a question, and books are facts.
        return found + (sign * self._after) * self.tables.classes.req[self._cls] if self._after else found

    @property
    def idle(self) -> F64:
        """What no task holds (R,)."""
        return self._book(IDLE, -1.0)

    @property
    def used(self) -> F64:
        """What tasks hold (R,)."""
        return self._book(USED, 1.0)

    @property
    def future(self) -> F64:
        """What will be idle when releasing tasks have left and pipelined tasks have come (R,)."""
        return self._book(FUTURE, -1.0)
