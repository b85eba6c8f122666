"""Handles: flyweights that read one row by name. No setters, no cache, equal by row. For many rows: ``rows``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from pumice.columns.counting import HELD, PENDING, VALID, Counters, Row, scheduled_in
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


class TaskClass(Row):
    """What equal tasks share. A hook that takes it cannot see the single task, so its answer is kept for the class."""

    __slots__ = ()

    @property
    def spec(self) -> PodSpec:
        """What its pods ask for, and where they may go."""
        return self.tables.classes.specs[self.row]

    @property
    def req(self) -> F64:
        """Request (R,)."""
        found: F64 = self.tables.classes.req[self.row]
        return found

    @property
    def nonzero(self) -> F64:
        """Request in kube-scheduler's non-zero terms: milli-cpu, bytes."""
        found: F64 = self.tables.classes.nonzero[self.row]
        return found


class Task(Row):
    """One pod. A hook that takes it is asked each time."""

    __slots__ = ()

    @property
    def pod(self) -> Pod:
        """The pod as it was last seen."""
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
        """What it shares with equal tasks."""
        return TaskClass(self.tables, int(self.tables.tasks.cls[self.row]))

    @property
    def req(self) -> F64:
        """Request (R,)."""
        found: F64 = self.tables.classes.req[self.tables.tasks.cls[self.row]]
        return found

    @property
    def job(self) -> Job:
        """Its job (the pod group), false without one."""
        return Job(self.tables, int(self.tables.tasks.job[self.row]))

    @property
    def queue(self) -> Queue:
        """The queue of its job, false without one."""
        job = int(self.tables.tasks.job[self.row])
        return Queue(self.tables, int(self.tables.jobs.queue[job]) if job >= 0 else -1)

    @property
    def sub_job(self) -> SubJob:
        """Its part of the job: those whose placement is decided together."""
        return SubJob(self.tables, int(self.tables.tasks.sub[self.row]))

    @property
    def role(self) -> str:
        """Its role in the gang, from the annotation; empty without."""
        return self.pod.role

    @property
    def status(self) -> TaskStatus:
        """Its state in this session."""
        return TaskStatus(int(self.tables.tasks.status[self.row]))

    @property
    def node(self) -> Node:
        """The node on which it is or is placed, false for none."""
        return Node(self.tables, int(self.tables.tasks.node[self.row]))

    @property
    def priority(self) -> int:
        """Its pod's priority."""
        return int(self.tables.tasks.priority[self.row])

    @property
    def best_effort(self) -> bool:
        """Whether it asks for nothing."""
        return bool(self.tables.tasks.best_effort[self.row])

    @property
    def preemptable(self) -> bool:
        """Whether it says of itself that it may be evicted."""
        return bool(self.tables.tasks.preemptable[self.row])

    @property
    def job_hypernode(self) -> int:
        """Hypernode its job holds while this task is being placed, -1 none."""
        return int(self.tables.tasks.job_hypernode[self.row])


class SubJob(Counters):
    """A part of a job whose tasks stay together; most jobs are one."""

    __slots__ = ()

    @property
    def _table(self) -> Any:
        return self.tables.subs

    @property
    def uid(self) -> str:
        """Unique among all."""
        return self.tables.subs.uids[self.row]

    @property
    def gid(self) -> str:
        """That of its policy: sub-jobs of one policy have it in common."""
        return self.tables.subs.gids[self.row]

    @property
    def job(self) -> Job:
        """Its job."""
        return Job(self.tables, int(self.tables.subs.job[self.row]))

    @property
    def match_index(self) -> int:
        """Its place among the sub-jobs of its policy."""
        return int(self.tables.subs.match_index[self.row])

    @property
    def hypernode(self) -> int:
        """The hypernode its tasks live in, -1 none."""
        return int(self.tables.subs.hypernode[self.row])

    @property
    def tasks(self) -> AnyArray:
        """Rows of its tasks."""
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
        """The pod group's labels, and those of its first pod that the group does not have."""
        rows, own = self.tasks, self.group.labels
        return {**self.tables.tasks.pods[rows[0]].labels, **own} if len(rows) else own

    @property
    def annotations(self) -> Mapping[str, str]:
        """The pod group's annotations."""
        return self.group.annotations

    @property
    def group(self) -> PodGroup:
        """The pod group as it was last seen. Nothing is asked again because its status changed, but for the phase."""
        return self.tables.jobs.groups[self.row]

    @property
    def queue(self) -> Queue:
        """Its queue, false when there is no such queue."""
        return Queue(self.tables, int(self.tables.jobs.queue[self.row]))

    @property
    def priority(self) -> int:
        """Its priority class's value."""
        return int(self.tables.jobs.priority[self.row])

    @property
    def creation(self) -> float:
        """When its group was created, seconds since the epoch."""
        return float(self.tables.jobs.creation[self.row])

    @property
    def phase(self) -> PodGroupPhase:
        """The phase of its group in this session."""
        found: PodGroupPhase = PHASES[self.tables.jobs.phase[self.row]]
        return found

    @property
    def tasks(self) -> AnyArray:
        """Rows of its tasks."""
        return self.tables.jobs.tasks[self.row]

    @property
    def sub_jobs(self) -> tuple[int, ...]:
        """Rows of its sub-jobs."""
        return self.tables.jobs.subs[self.row]

    @property
    def size(self) -> int:
        """How many tasks it has."""
        return int(self.tables.jobs.size[self.row])

    @property
    def held_count(self) -> int:
        """Tasks that hold resources (Succeeded not counted)."""
        return int(self.counts @ HELD)

    @property
    def valid_count(self) -> int:
        """Tasks that are ready, promised a place, or pending."""
        return int(self.counts @ VALID)

    @property
    def scheduled_count(self) -> int:
        """Tasks that are bound or running, or have ended."""
        return scheduled_in(self.counts.tolist())

    @property
    def roles_matter(self) -> bool:
        """Whether role minima are looked at: they are not when they add up to more than the job's minimum."""
        return bool(self.role_min) and self.min_available >= int(self.tables.jobs.role_total[self.row])

    @property
    def role_min(self) -> Mapping[int, int]:
        """The least number of tasks by role, as rows of roles."""
        return self.tables.jobs.role_min[self.row]

    def role_counts(self, statuses: I32, *, with_best_effort: bool = False) -> dict[int, int]:
        """For each role with a minimum: its tasks whose state is marked in ``statuses`` (0/1 per state), plus pending
        ones without request when asked for."""
        tasks, rows = self.tables.tasks, self.tasks
        counted = statuses.astype(bool)[tasks.status[rows]]
        if with_best_effort and self.best_effort_count:
            empty = (tasks.status[rows] == PENDING) & tasks.best_effort[rows]
            if np.count_nonzero(empty) > self.best_effort_count:  # those behind a gate are not in the job's sum
                empty &= tasks.gate[rows] == NO_GATE
            counted |= empty
        roles = tasks.role[rows][counted].tolist()
        return {role: roles.count(role) for role in self.role_min}


class Queue(Row):
    """What shares of the cluster are given to."""

    __slots__ = ()

    @property
    def obj(self) -> QueueObject:
        """The queue as it was last seen. Nothing is asked again because its status changed."""
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
        """Whether it takes jobs."""
        return bool(self.tables.queues.open[self.row])


class Node(Row):
    """One node, for hooks written one node at a time; as it would be with ``after`` more tasks of a class on it."""

    __slots__ = ("_after", "_cls")

    def __init__(self, tables: Tables, row: int, after: float = 0.0, cls: int = -1) -> None:
        super().__init__(tables, row)
        self._after, self._cls = after, cls

    @property
    def obj(self) -> NodeObject:
        """The node as it was last seen."""
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
        return found + (sign * self._after) * self.tables.classes.req[self._cls] if self._after else found

    @property
    def idle(self) -> F64:
        """What nobody holds (R,)."""
        return self._book(IDLE, -1.0)

    @property
    def used(self) -> F64:
        """What tasks hold (R,)."""
        return self._book(USED, 1.0)

    @property
    def future(self) -> F64:
        """What will be idle when those that leave have left and those that were promised have come (R,)."""
        return self._book(FUTURE, -1.0)
