"""Rows of a table together, for hooks that answer for many at once: read by name as arrays. No setters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeVar

import numpy as np

from pumice.algorithms.groups import all_equal
from pumice.columns.column import Column
from pumice.columns.dtypes import EPS, F64, I8, I32, I64, AnyArray, Bool
from pumice.columns.label_values import LabelValues
from pumice.columns.nodes import FUTURE, IDLE, USED, NodeFacts
from pumice.columns.tables import Tables
from pumice.columns.views import Node, Task, TaskClass
from pumice.model.pod import Pod, PodSpec

A = TypeVar("A", bound=AnyArray)


def scattered(values: A, rows: AnyArray, count: int) -> A:
    """An array of ``count`` rows with ``values`` (rows, …) at some of them, in their order, and zero elsewhere."""
    found = np.zeros((count, *values.shape[1:]), dtype=values.dtype)
    found[rows] = values
    return found  # type: ignore[return-value]


class NodeRows:
    """Some rows of the node table, as arrays. Shape (rows,) or (rows, R).

    ``whole``: they are all there are, in order. With ``after`` the rows are hypothetical: as they would be after that
    many more tasks of a class were placed on each. A hook cannot tell the difference, which is what lets a whole gang
    be placed with one call.
    """

    __slots__ = ("_after", "_by_amount", "_cls", "rows", "tables", "whole")

    def __init__(
        self, tables: Tables, rows: AnyArray, *, after: F64 | None = None, cls: int = -1, whole: bool = False
    ) -> None:
        self.tables = tables
        self.rows = rows
        self.whole = whole
        self._after = after
        self._cls = cls
        self._by_amount: F64 | None = None

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Node]:
        """One handle a row."""
        if self._after is None:
            return (Node(self.tables, row) for row in self.rows.tolist())
        each = zip(self.rows.tolist(), self._after.tolist(), strict=True)
        return (Node(self.tables, row, after, self._cls) for row, after in each)

    @property
    def further(self) -> F64 | None:
        """How many more tasks of the class are thought to be on each, None where the rows are as they are. For numbers
        that are no multiple of what one task adds; the others come with ``read``. Shape (rows,)."""
        return self._after

    @property
    def facts(self) -> NodeFacts:
        """What all nodes have, whatever runs on them; not of these rows alone: ``names``, ``objs``, ``allocatable`` and
        ``view_allocatable`` (N, R), ``max_pods``, ``unschedulable`` and ``taint_code`` (N,), ``taint_sets`` (the taints
        of each code), ``row_of`` (by name) and ``total`` (R,)."""
        return self.tables.nodes.facts

    @property
    def are_hypothetical(self) -> bool:
        """Whether they are shown as they would be with more tasks there."""
        return self._after is not None

    @property
    def names(self) -> list[str]:
        """The name of each."""
        names = self.tables.nodes.facts.names
        return [names[row] for row in self.rows.tolist()]

    @property
    def labels(self) -> list[Mapping[str, str]]:
        """The labels of each."""
        objs = self.tables.nodes.facts.objs
        return [objs[row].labels for row in self.rows.tolist()]

    def label(self, key: str) -> LabelValues:
        """The value that each has of one label. It looks at each node: ask for it once, of ``ssn.nodes`` as the plugin
        opens, and take the ``codes`` of rows with ``pick``."""
        objs = self.tables.nodes.facts.objs
        return LabelValues.of([objs[row].labels.get(key, "") for row in self.rows.tolist()])

    def scatter(self, values: A) -> A:
        """An array with a row for every node: ``values`` (rows, …) at these, zero elsewhere. What a column of nodes may
        begin with."""
        return scattered(values, self.rows, len(self.tables.nodes.facts))

    def pick(self, of_nodes: A) -> A:
        """The rows of something that every node has (…, N). Shape (…, rows). Not to be written on."""
        if self.whole:
            return of_nodes
        if of_nodes.ndim == 1:
            return of_nodes[self.rows]  # type: ignore[return-value]  # quicker than take()
        return of_nodes.take(self.rows, axis=-1)  # type: ignore[return-value]

    @property
    def allocatable(self) -> F64:
        """What tasks may hold of each. Shape (rows, R)."""
        return self.tables.nodes.facts.allocatable[self.rows]

    @property
    def view_allocatable(self) -> F64:
        """status.allocatable without oversubscription, as kube-scheduler's plugins see it."""
        return self.tables.nodes.facts.view_allocatable[self.rows]

    def read(self, column: Column[AnyArray]) -> F64:
        """The rows of a column of nodes, a plugin's own for instance. Shape (rows, …)."""
        found: F64 = column.array[self.rows]
        if self._after is not None and column.per_task is not None:
            found = found + np.multiply.outer(self._after, column.per_task[self._cls])
        return found

    def _book(self, book: int, sign: float) -> F64:
        found: F64 = self.tables.nodes.books[:, book]
        if not self.whole:
            found = found[self.rows]
        if self._after is not None:
            found = found + (sign * self._after)[:, None] * self.tables.classes.req[self._cls]
        return found

    def has_room(self, cls: int, book: int) -> Bool:
        """Whether a book (idle or future) has room for one task of a class. Shape (rows,)."""
        if len(self.rows) == 1 and self._after is None:
            left = self.tables.nodes.books[self.rows[0], book].tolist()
            return np.array([all(left[dimension] > limit for dimension, limit in self.tables.classes.asked[cls])])
        held, found = self.tables.nodes.books[:, book], None
        taken = self.tables.classes.req[self._cls].tolist() if self._after is not None else None
        for dimension, limit in self.tables.classes.asked[cls]:
            room = self.pick(held[:, dimension])
            if taken is not None:
                room = room - self._after * taken[dimension]
            enough = room > limit
            found = enough if found is None else np.logical_and(found, enough, out=found)
        return np.ones(len(self.rows), dtype=bool) if found is None else found

    def soon_free(self, dimension: int) -> F64:
        """What will be idle of one resource, as ``future`` says it. Shape (rows,)."""
        found: F64 = self.pick(self.tables.nodes.books[:, FUTURE, dimension])
        if self._after is not None:
            found = found - self._after * self.tables.classes.req[self._cls, dimension]
        return found

    @property
    def idle(self) -> F64:
        """What nobody holds of each. Shape (rows, R)."""
        return self._book(IDLE, -1.0)

    @property
    def used(self) -> F64:
        """What tasks hold of each. Shape (rows, R)."""
        return self._book(USED, 1.0)

    @property
    def future(self) -> F64:
        """What will be idle when those that leave have left and those that were promised have come. Shape (rows, R)."""
        return self._book(FUTURE, -1.0)

    @property
    def view_by_amount(self) -> F64:
        """``NodeTable.view`` of the rows, one amount after the other (R + 3, rows): requests, those with defaults,
        number of pods."""
        if self._by_amount is not None:
            return self._by_amount
        view = self.tables.nodes["view"]
        found: F64 = self.pick(view.array.T)
        if self._after is not None:
            if view.per_task is not None:
                found += view.per_task[self._cls][:, None] * self._after
            self._by_amount = found  # hypothetical rows are made for one question and do not change
        return found

    @property
    def view_pods(self) -> F64:
        """Number of pods on the node in kube-scheduler's view (rows,)."""
        if self._after is None:
            pods: F64 = self.pick(self.tables.nodes.view[:, -1])
            return pods
        last: F64 = self.view_by_amount[-1]
        return last


class Rows:
    """Some rows of one table."""

    __slots__ = ("rows", "tables")

    def __init__(self, tables: Tables, rows: AnyArray) -> None:
        self.tables = tables
        self.rows = rows

    def __len__(self) -> int:
        return len(self.rows)


class ClassRows(Rows):
    """Some classes of tasks, for hooks that answer for several at once: an answer a class, a row a node."""

    __slots__ = ()

    def __iter__(self) -> Iterator[TaskClass]:
        """One handle a class."""
        return (TaskClass(self.tables, row) for row in self.rows.tolist())

    @property
    def req(self) -> F64:
        """Request of each. Shape (classes, R)."""
        return self.tables.classes.req[self.rows]

    @property
    def nonzero(self) -> F64:
        """Request of each in kube-scheduler's non-zero terms: milli-cpu, bytes. Shape (classes, 2)."""
        return self.tables.classes.nonzero[self.rows]

    @property
    def specs(self) -> list[PodSpec]:
        """What the pods of each ask for, and where they may go."""
        specs = self.tables.classes.specs
        return [specs[row] for row in self.rows.tolist()]

    def have_room(self, nodes: NodeRows, book: int) -> Bool:
        """Whether a book (idle or future) of nodes as they are has room for one task of each class. Shape (classes,
        nodes)."""
        tables = self.tables
        compared = tables.classes.compared[self.rows]
        limits = np.where(compared, self.req - EPS, -np.inf)
        held, found = tables.nodes.books[:, book], None
        for dimension in np.flatnonzero(np.logical_or.reduce(compared)).tolist():
            enough = nodes.pick(held[:, dimension]) > limits[:, dimension, None]
            found = enough if found is None else np.logical_and(found, enough, out=found)
        return np.ones((len(self.rows), len(nodes)), dtype=bool) if found is None else found


class TaskRows(Rows):
    """Some rows of the task table, for hooks that answer for many tasks at once."""

    __slots__ = ("_classes",)

    def __init__(self, tables: Tables, rows: AnyArray) -> None:
        super().__init__(tables, rows)
        self._classes: list[int] | None = None

    def __iter__(self) -> Iterator[Task]:
        """One handle a row."""
        return (Task(self.tables, row) for row in self.rows.tolist())

    @property
    def classes(self) -> list[int]:
        """The row of each one's class."""
        if self._classes is None:
            self._classes = self.tables.tasks.cls[self.rows].tolist()
        return self._classes

    @property
    def alike(self) -> bool:
        """Whether all are of one class."""
        classes = self.classes
        return all_equal(classes)

    def scatter(self, values: A) -> A:
        """An array with a row for every task: ``values`` (rows, …) at these, zero elsewhere. What a column of tasks may
        begin with."""
        return scattered(values, self.rows, self.tables.tasks.capacity)

    @property
    def pods(self) -> list[Pod]:
        """The pods as they were last seen."""
        pods = self.tables.tasks.pods
        return [pods[row] for row in self.rows.tolist()]

    @property
    def names(self) -> list[str]:
        """The name of each one's pod."""
        return [pod.name for pod in self.pods]

    @property
    def namespaces(self) -> list[str]:
        """The namespace of each."""
        return [pod.namespace for pod in self.pods]

    @property
    def labels(self) -> list[Mapping[str, str]]:
        """The labels of each one's pod."""
        return [pod.labels for pod in self.pods]

    def label(self, key: str) -> LabelValues:
        """The value that each has of one label."""
        return LabelValues.of([pod.labels.get(key, "") for pod in self.pods])

    @property
    def annotations(self) -> list[Mapping[str, str]]:
        """The annotations of each one's pod."""
        return [pod.annotations for pod in self.pods]

    @property
    def node(self) -> I32:
        """Row of the node on which each is or is placed, -1 for none. Shape (rows,)."""
        return self.tables.tasks.node[self.rows]

    @property
    def status(self) -> I8:
        """State of each in this session, as numbers of TaskStatus. Shape (rows,)."""
        return self.tables.tasks.status[self.rows]

    @property
    def priority(self) -> I64:
        """Priority of each. Shape (rows,)."""
        return self.tables.tasks.priority[self.rows]

    @property
    def job(self) -> I32:
        """Row of each one's job, -1 for none."""
        return self.tables.tasks.job[self.rows]

    @property
    def queue(self) -> I32:
        """Row of each one's queue, -1 for none."""
        job = self.job
        return np.where(job >= 0, self.tables.jobs.queue[job], -1)

    @property
    def req(self) -> F64:
        """Request of each. Shape (rows, R)."""
        return self.tables.classes.req[self.classes]


class Candidates(TaskRows):
    """Tasks that may have to leave, of several nodes: those of one node after those of the other, in the order in which
    they would leave.

    ``starts`` (nodes + 1,): where the tasks of each node begin, and the end. A hook answers for every node as if
    there were no other: what it counts down victim by victim begins anew on each (``apart``).
    """

    __slots__ = ("starts",)

    def __init__(self, tables: Tables, rows: AnyArray, starts: AnyArray | None = None) -> None:
        super().__init__(tables, rows)
        self.starts = np.array([0, len(rows)]) if starts is None else starts

    @property
    def node_count(self) -> int:
        """How many nodes they are of."""
        return len(self.starts) - 1

    @property
    def nth(self) -> I64:
        """Which of the nodes each task is on, from 0. Shape (rows,)."""
        found: I64 = np.repeat(np.arange(self.node_count), np.diff(self.starts))
        return found

    def apart(self, group: AnyArray) -> AnyArray:
        """Numbers that are equal for tasks of one node and one group. Shapes (rows,) -> (rows,)."""
        if self.node_count == 1 or not len(group):
            return group
        found: AnyArray = self.nth * (int(group.max()) + 2) + group
        return found

    def of_node(self, nth: int) -> Candidates:
        """Those of one node."""
        return Candidates(self.tables, self.rows[self.starts[nth] : self.starts[nth + 1]])

    def nodes_where(self, mask: Bool) -> Bool:
        """Which of the nodes have a task that is marked. Shapes (rows,) -> (nodes,)."""
        before = np.concatenate(([0], mask.cumsum()))
        found: Bool = before[self.starts[1:]] > before[self.starts[:-1]]
        return found
