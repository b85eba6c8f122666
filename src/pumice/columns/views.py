"""Handles: flyweights that read one row (or some rows) by name. No setters, no cache, equal by row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from pumice.columns.counting import HELD, PENDING, READY, SCHEDULED, VALID, Counters, Row
from pumice.columns.dtypes import F64, I32, I64, AnyArray, Bool
from pumice.columns.jobs import PHASES
from pumice.columns.ledger import Tally, tally
from pumice.columns.nodes import FUTURE, IDLE, USED, NodeFacts
from pumice.columns.tables import Tables
from pumice.model.node import Node as NodeObject
from pumice.model.pod import Pod, PodSpec
from pumice.model.podgroup import PodGroup
from pumice.model.queue import Queue as QueueObject
from pumice.model.status import PodGroupPhase, TaskStatus


class TaskClass(Row):
    """What equal tasks share. A hook that takes it cannot see the single task, so its answer is kept for the class."""

    __slots__ = ()

    @property
    def spec(self) -> PodSpec:
        return self.tables.classes.specs[self.row]

    @property
    def req(self) -> F64:
        """Request (R,)."""
        return self.tables.classes.req[self.row]

    @property
    def nonzero(self) -> F64:
        """Request in kube-scheduler's non-zero terms: milli-cpu, bytes."""
        return self.tables.classes.nonzero[self.row]


class Task(Row):
    """One pod. A hook that takes it is asked each time."""

    __slots__ = ()

    @property
    def pod(self) -> Pod:
        return self.tables.tasks.pods[self.row]

    @property
    def key(self) -> str:
        return self.pod.key

    @property
    def cls(self) -> TaskClass:
        return TaskClass(self.tables, int(self.tables.tasks.cls[self.row]))

    @property
    def req(self) -> F64:
        found: F64 = self.tables.classes.req[self.tables.tasks.cls[self.row]]
        return found

    @property
    def job(self) -> Job:
        return Job(self.tables, int(self.tables.tasks.job[self.row]))

    @property
    def sub_job(self) -> SubJob:
        return SubJob(self.tables, int(self.tables.tasks.sub[self.row]))

    @property
    def role(self) -> str:
        return self.tables.roles[self.tables.tasks.role[self.row]]

    @property
    def status(self) -> TaskStatus:
        return TaskStatus(int(self.tables.tasks.status[self.row]))

    @property
    def node(self) -> int:
        """Row of its node, -1 for none."""
        return int(self.tables.tasks.node[self.row])

    @property
    def node_name(self) -> str:
        return self.tables.nodes.facts.names[self.node] if self.node >= 0 else ""

    @property
    def priority(self) -> int:
        return int(self.tables.tasks.priority[self.row])

    @property
    def best_effort(self) -> bool:
        return bool(self.tables.tasks.best_effort[self.row])

    @property
    def preemptable(self) -> bool:
        return bool(self.tables.tasks.preemptable[self.row])

    @property
    def job_hypernode(self) -> int:
        """Hypernode its job holds while this task is being placed, -1 none."""
        return int(self.tables.tasks.job_hypernode[self.row])


class SubJob(Counters):
    __slots__ = ()

    @property
    def _table(self) -> Any:
        return self.tables.subs

    @property
    def uid(self) -> str:
        return self.tables.subs.uids[self.row]

    @property
    def gid(self) -> str:
        return self.tables.subs.gids[self.row]

    @property
    def job(self) -> Job:
        return Job(self.tables, int(self.tables.subs.job[self.row]))

    @property
    def match_index(self) -> int:
        return int(self.tables.subs.match_index[self.row])

    @property
    def hypernode(self) -> int:
        """The hypernode its tasks live in, -1 none."""
        return int(self.tables.subs.hypernode[self.row])

    @property
    def tasks(self) -> AnyArray:
        return self.tables.subs.tasks[self.row]


class Job(Counters):
    __slots__ = ()

    @property
    def _table(self) -> Any:
        return self.tables.jobs

    @property
    def key(self) -> str:
        """``namespace/podgroup``."""
        return self.tables.jobs.uids[self.row]

    @property
    def group(self) -> PodGroup:
        return self.tables.jobs.groups[self.row]

    @property
    def queue(self) -> int:
        """Row of its queue, -1 when there is no such queue."""
        return int(self.tables.jobs.queue[self.row])

    @property
    def priority(self) -> int:
        return int(self.tables.jobs.priority[self.row])

    @property
    def creation(self) -> float:
        return float(self.tables.jobs.creation[self.row])

    @property
    def phase(self) -> PodGroupPhase:
        found: PodGroupPhase = PHASES[self.tables.jobs.phase[self.row]]
        return found

    @property
    def tasks(self) -> AnyArray:
        """Rows of its tasks."""
        return self.tables.jobs.tasks[self.row]

    @property
    def sub_jobs(self) -> tuple[int, ...]:
        return self.tables.jobs.subs[self.row]

    @property
    def size(self) -> int:
        return int(self.tables.jobs.size[self.row])

    @property
    def held_count(self) -> int:
        """Tasks that hold resources (Succeeded not counted)."""
        return int(self.counts @ HELD)

    @property
    def valid_count(self) -> int:
        return int(self.counts @ VALID)

    @property
    def scheduled_count(self) -> int:
        return int(self.counts @ SCHEDULED)

    @property
    def roles_matter(self) -> bool:
        """Whether role minima are looked at: they are not when they add up to more than the job's minimum."""
        return bool(self.role_min) and self.min_available >= int(self.tables.jobs.role_total[self.row])

    @property
    def role_min(self) -> dict[int, int]:
        return self.tables.jobs.role_min[self.row]

    def role_counts(self, statuses: I32, *, with_best_effort: bool = False) -> dict[int, int]:
        """For each role with a minimum: its tasks whose state is marked in ``statuses`` (0/1 per state), plus pending
        ones without request when asked for."""
        tasks, rows = self.tables.tasks, self.tasks
        counted = statuses.astype(bool)[tasks.status[rows]]
        if with_best_effort and self.best_effort_count:
            counted |= (tasks.status[rows] == PENDING) & tasks.best_effort[rows]
        counts = Counter(tasks.role[rows][counted].tolist())
        return {role: counts[role] for role in self.role_min}


class Queue(Row):
    __slots__ = ()

    @property
    def obj(self) -> QueueObject:
        return self.tables.queues.objs[self.row]

    @property
    def name(self) -> str:
        return self.tables.queues.names[self.row]

    key = name

    @property
    def open(self) -> bool:
        return bool(self.tables.queues.open[self.row])


class Node(Row):
    """One node, for hooks written one node at a time."""

    __slots__ = ()

    @property
    def obj(self) -> NodeObject:
        return self.tables.nodes.facts.objs[self.row]

    @property
    def name(self) -> str:
        return self.tables.nodes.facts.names[self.row]

    key = name

    @property
    def labels(self) -> Mapping[str, str]:
        return self.obj.labels

    @property
    def allocatable(self) -> F64:
        found: F64 = self.tables.nodes.facts.allocatable[self.row]
        return found

    @property
    def idle(self) -> F64:
        found: F64 = self.tables.nodes.books[self.row, IDLE]
        return found

    @property
    def used(self) -> F64:
        found: F64 = self.tables.nodes.books[self.row, USED]
        return found

    @property
    def future(self) -> F64:
        found: F64 = self.tables.nodes.books[self.row, FUTURE]
        return found


class NodeRows:
    """Some rows of the node table, as arrays. Shape (rows,) or (rows, R).

    With ``after`` the rows are as they would be after that many more tasks of a class were placed on each: a hook over
    rows cannot tell the difference, which is what lets a whole gang be placed with one call.
    """

    __slots__ = ("_after", "_by_amount", "_cls", "rows", "tables")

    def __init__(self, tables: Tables, rows: AnyArray, *, after: F64 | None = None, cls: int = -1) -> None:
        self.tables = tables
        self.rows = rows
        self._after = after
        self._cls = cls
        self._by_amount: F64 | None = None

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def is_real(self) -> bool:
        """Whether these are the rows as they are now."""
        return self._after is None

    def __iter__(self) -> Iterator[Node]:
        """One handle a row; only for rows as they are now."""
        assert self.is_real
        return (Node(self.tables, row) for row in self.rows.tolist())

    @property
    def facts(self) -> NodeFacts:
        return self.tables.nodes.facts

    @property
    def allocatable(self) -> F64:
        return self.tables.nodes.facts.allocatable[self.rows]

    @property
    def view_allocatable(self) -> F64:
        """status.allocatable without oversubscription, as kube-scheduler's plugins see it."""
        return self.tables.nodes.facts.view_allocatable[self.rows]

    def _book(self, book: int, sign: float) -> F64:
        found = self._read(book)
        if self._after is not None:
            found = found + (sign * self._after)[:, None] * self.tables.classes.req[self._cls]
        return found

    def _read(self, book: int) -> F64:
        """One book as it is now (rows, R)."""
        books = self.tables.nodes.books
        found: F64 = books.reshape(-1, books.shape[2]).take(self.rows * books.shape[1] + book, axis=0)
        return found

    def has_room(self, cls: int, book: int) -> Bool:
        """Whether a book (idle or future) has room for one task of a class. Shape (rows,)."""
        asked = self.tables.classes.asked[cls]
        held, found = self._read(book), np.ones(len(self.rows), dtype=bool)
        taken = self.tables.classes.req[self._cls].tolist() if self._after is not None else None
        for dimension, limit in asked:
            room = held[:, dimension]
            if taken is not None:
                room = room - self._after * taken[dimension]
            np.logical_and(found, room > limit, out=found)
        return found

    @property
    def idle(self) -> F64:
        return self._book(IDLE, -1.0)

    @property
    def used(self) -> F64:
        return self._book(USED, 1.0)

    @property
    def future(self) -> F64:
        return self._book(FUTURE, -1.0)

    @property
    def view_by_amount(self) -> F64:
        """``NodeTable.view`` of the rows, one amount after the other (R + 3, rows): requests, those with defaults,
        number of pods."""
        if self._by_amount is not None:
            return self._by_amount
        found = np.ascontiguousarray(self.tables.nodes.view.take(self.rows, axis=0).T)
        if self._after is not None:
            if self.tables.nodes.view_follows:
                found += self.tables.classes.steps[self._cls][:, None] * self._after
            self._by_amount = found  # rows as they would be are made for one question and do not change
        return found

    @property
    def view_pods(self) -> F64:
        """Number of pods on the node in kube-scheduler's view (rows,)."""
        if self._after is None:
            pods: F64 = self.tables.nodes.view[self.rows, -1]
            return pods
        last: F64 = self.view_by_amount[-1]
        return last


class JobRows:
    """Some rows of the job table, for hooks that answer for many jobs at once."""

    __slots__ = ("rows", "tables")

    def __init__(self, tables: Tables, rows: AnyArray) -> None:
        self.tables = tables
        self.rows = rows

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def priority(self) -> I64:
        return self.tables.jobs.priority[self.rows]

    @property
    def creation(self) -> F64:
        return self.tables.jobs.creation[self.rows]

    @property
    def ready(self) -> Bool:
        """IsReady of each."""
        jobs = self.tables.jobs
        have = jobs.counts[self.rows] @ READY + jobs.best_effort[self.rows]
        return np.asarray(have >= jobs.min_available[self.rows])


class TaskRows:
    """Some rows of the task table, for hooks that order many tasks at once."""

    __slots__ = ("rows", "tables")

    def __init__(self, tables: Tables, rows: AnyArray) -> None:
        self.tables = tables
        self.rows = rows

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def priority(self) -> I64:
        return self.tables.tasks.priority[self.rows]


class TaskRun:
    """Equal tasks of one job that were placed, or left their nodes, together: ``rows[i]`` on ``nodes[i]``."""

    __slots__ = ("_tally", "nodes", "rows", "tables")

    def __init__(self, tables: Tables, rows: Sequence[int], nodes: Sequence[int]) -> None:
        self.tables = tables
        self.rows = rows
        self.nodes = nodes
        self._tally: Tally | None = None

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def job(self) -> int:
        return int(self.tables.tasks.job[self.rows[0]])

    @property
    def sub(self) -> int:
        return int(self.tables.tasks.sub[self.rows[0]])

    @property
    def queue(self) -> int:
        """Row of the job's queue, -1 without."""
        job = self.job
        return int(self.tables.jobs.queue[job]) if job >= 0 else -1

    @property
    def cls(self) -> int:
        return int(self.tables.tasks.cls[self.rows[0]])

    @property
    def req(self) -> F64:
        """Request of one of them. Shape (R,)."""
        return self.tables.classes.req[self.cls]

    @property
    def tally(self) -> Tally:
        """The nodes, and how many of the tasks went to each."""
        if self._tally is None:
            self._tally = tally(self.nodes)
        return self._tally
