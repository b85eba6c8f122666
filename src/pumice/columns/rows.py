"""Many rows of a table, read by name as arrays, for hooks that answer for many at once. There are no setters."""

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
    """Return an array of ``count`` rows with ``values`` (rows, …) at ``rows`` and zero elsewhere."""
    found = np.zeros((count, *values.shape[1:]), dtype=values.dtype)
    found[rows] = values
    return found  # type: ignore[return-value]


class NodeRows:
    """Some nodes, as arrays of shape (rows,) or (rows, R).

    ``whole`` is True if they are all nodes, in order. The rows may be hypothetical: as they would be after more tasks
    of a class were placed on each. A hook cannot tell the difference, so one call answers for a whole gang.
    """

    # ``after`` (rows,) has the number of further tasks, ``cls`` their class.

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
        """Iterate over the nodes."""
        if self._after is None:
            return (Node(self.tables, row) for row in self.rows.tolist())
        each = zip(self.rows.tolist(), self._after.tolist(), strict=True)
        return (Node(self.tables, row, after, self._cls) for row, after in each)

    @property
    def further(self) -> F64 | None:
        """The number of further tasks that each hypothetical row has, None if the rows are not hypothetical. Needed
        only for numbers that do not grow in proportion to the tasks; ``read`` adds the others. Shape (rows,)."""
        return self._after

    @property
    def facts(self) -> NodeFacts:
        """What does not depend on tasks, for all nodes and not only these rows: ``names``, ``objs``, ``allocatable``
        and ``view_allocatable`` (N, R), ``max_pods``, ``unschedulable`` and ``taint_code`` (N,), ``taint_sets`` (the
        taints of each code), ``row_of`` (by name) and ``total`` (R,)."""
        return self.tables.nodes.facts

    @property
    def are_hypothetical(self) -> bool:
        """True if the rows are as they would be with more tasks on them."""
        return self._after is not None

    @property
    def names(self) -> list[str]:
        """The name of each node."""
        names = self.tables.nodes.facts.names
        return [names[row] for row in self.rows.tolist()]

    @property
    def labels(self) -> list[Mapping[str, str]]:
        """The labels of each node."""
        objs = self.tables.nodes.facts.objs
        return [objs[row].labels for row in self.rows.tolist()]

    def label(self, key: str) -> LabelValues:
        """Return the value of one label for each node. It reads every node: call it once, on ``ssn.nodes``, as the
        plugin opens, and select the ``codes`` of rows with ``pick``."""
        objs = self.tables.nodes.facts.objs
        return LabelValues.of([objs[row].labels.get(key, "") for row in self.rows.tolist()])

    def scatter(self, values: A) -> A:
        """Return an array for all nodes with ``values`` (rows, …) at these rows and zero elsewhere: initial values for
        a column of nodes."""
        return scattered(values, self.rows, len(self.tables.nodes.facts))

    def pick(self, of_nodes: A) -> A:
        """Select these rows from an array of all nodes (…, N). Shape (…, rows). Do not write to the result."""
        # All nodes: the array itself and not a copy, which is why the result must not be written to.
        if self.whole:
            return of_nodes
        if of_nodes.ndim == 1:
            return of_nodes[self.rows]  # type: ignore[return-value]  # faster than take()
        return of_nodes.take(self.rows, axis=-1)  # type: ignore[return-value]

    @property
    def allocatable(self) -> F64:
        """What tasks may hold of each node. Shape (rows, R)."""
        return self.tables.nodes.facts.allocatable[self.rows]

    @property
    def view_allocatable(self) -> F64:
        """status.allocatable of each node without oversubscription, as kube-scheduler's plugins see it. Shape (rows,
        R)."""
        return self.tables.nodes.facts.view_allocatable[self.rows]

    def read(self, column: Column[AnyArray]) -> F64:
        """Return the rows of a column of nodes, for example of a plugin's own. Shape (rows, …)."""
        found: F64 = column.array[self.rows]
        if self._after is not None and column.per_task is not None:
            # What a task adds is known per class, so a plugin's hook sees its own column as it would be after each
            # further task, without being notified of any.
            found = found + np.multiply.outer(self._after, column.per_task[self._cls])
        return found

    def _book(self, book: int, sign: float) -> F64:
        """Return a book; ``sign`` says whether a further task adds to it or takes from it."""
        found: F64 = self.tables.nodes.books[:, book]
        # Indexing with all rows would copy the book.
        if not self.whole:
            found = found[self.rows]
        if self._after is not None:
            found = found + (sign * self._after)[:, None] * self.tables.classes.req[self._cls]
        return found

    def has_room(self, cls: int, book: int) -> Bool:
        """Return True where a book (idle or future) has room for one task of a class. Shape (rows,)."""
        # One row, as after each placement: Python numbers are faster than arrays of one element.
        if len(self.rows) == 1 and self._after is None:
            left = self.tables.nodes.books[self.rows[0], book].tolist()
            return np.array([all(left[dimension] > limit for dimension, limit in self.tables.classes.asked[cls])])
        held, found = self.tables.nodes.books[:, book], None
        taken = self.tables.classes.req[self._cls].tolist() if self._after is not None else None
        # One resource after the other: a class compares few of them, and in memory one resource of all nodes is
        # contiguous (``rows_last``).
        for dimension, limit in self.tables.classes.asked[cls]:
            room = self.pick(held[:, dimension])
            if taken is not None:
                room = room - self._after * taken[dimension]
            enough = room > limit
            found = enough if found is None else np.logical_and(found, enough, out=found)
        return np.ones(len(self.rows), dtype=bool) if found is None else found

    def soon_free(self, dimension: int) -> F64:
        """Return what ``future`` has of one resource. Shape (rows,)."""
        found: F64 = self.pick(self.tables.nodes.books[:, FUTURE, dimension])
        if self._after is not None:
            found = found - self._after * self.tables.classes.req[self._cls, dimension]
        return found

    @property
    def idle(self) -> F64:
        """What no task holds of each node. Shape (rows, R)."""
        return self._book(IDLE, -1.0)

    @property
    def used(self) -> F64:
        """What tasks hold of each node. Shape (rows, R)."""
        return self._book(USED, 1.0)

    @property
    def future(self) -> F64:
        """What will be idle when releasing tasks have left and pipelined tasks have come. Shape (rows, R)."""
        return self._book(FUTURE, -1.0)

    @property
    def view_by_amount(self) -> F64:
        """What kube-scheduler's plugins see, one amount after the other: requests, milli-cpu and bytes with defaults
        for containers without requests, number of pods. Shape (R + 3, rows)."""
        if self._by_amount is not None:
            return self._by_amount
        view = self.tables.nodes["view"]
        found: F64 = self.pick(view.array.T)
        if self._after is not None:
            if view.per_task is not None:
                found += view.per_task[self._cls][:, None] * self._after
            # Kept for hypothetical rows only: they serve one question, while real rows may be written in between.
            self._by_amount = found
        return found

    @property
    def view_pods(self) -> F64:
        """The number of pods on each node in kube-scheduler's view. Shape (rows,)."""
        # Most filters need this one amount, so it is read without ``view_by_amount``.
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
    """Some task classes, for hooks that answer for several classes at once."""

    __slots__ = ()

    def __iter__(self) -> Iterator[TaskClass]:
        """Iterate over the classes."""
        return (TaskClass(self.tables, row) for row in self.rows.tolist())

    @property
    def req(self) -> F64:
        """The request of each class. Shape (classes, R)."""
        return self.tables.classes.req[self.rows]

    @property
    def nonzero(self) -> F64:
        """Milli-cpu and bytes of each class, with kube-scheduler's defaults for containers without requests. Shape
        (classes, 2)."""
        return self.tables.classes.nonzero[self.rows]

    @property
    def specs(self) -> list[PodSpec]:
        """The part of the pod spec that the pods of each class have in common."""
        specs = self.tables.classes.specs
        return [specs[row] for row in self.rows.tolist()]

    def have_room(self, nodes: NodeRows, book: int) -> Bool:
        """Return True where a book (idle or future) has room for one task of a class. The nodes must not be
        hypothetical. Shape (classes, nodes)."""
        tables = self.tables
        compared = tables.classes.compared[self.rows]
        # A class that does not compare a resource gets a limit that every node passes.
        limits = np.where(compared, self.req - EPS, -np.inf)
        held, found = tables.nodes.books[:, book], None
        for dimension in np.flatnonzero(np.logical_or.reduce(compared)).tolist():
            enough = nodes.pick(held[:, dimension]) > limits[:, dimension, None]
            found = enough if found is None else np.logical_and(found, enough, out=found)
        return np.ones((len(self.rows), len(nodes)), dtype=bool) if found is None else found


class TaskRows(Rows):
    """Some tasks, for hooks that answer for many tasks at once."""

    __slots__ = ("_classes",)

    def __init__(self, tables: Tables, rows: AnyArray) -> None:
        super().__init__(tables, rows)
        self._classes: list[int] | None = None

    def __iter__(self) -> Iterator[Task]:
        """Iterate over the tasks."""
        return (Task(self.tables, row) for row in self.rows.tolist())

    @property
    def classes(self) -> list[int]:
        """The row of each task's class."""
        if self._classes is None:
            self._classes = self.tables.tasks.cls[self.rows].tolist()
        return self._classes

    @property
    def equal(self) -> bool:
        """True if all tasks are of one class."""
        classes = self.classes
        return all_equal(classes)

    def scatter(self, values: A) -> A:
        """Return an array for all tasks with ``values`` (rows, …) at these rows and zero elsewhere: initial values for
        a column of tasks."""
        return scattered(values, self.rows, self.tables.tasks.capacity)

    @property
    def pods(self) -> list[Pod]:
        """The latest pods."""
        pods = self.tables.tasks.pods
        return [pods[row] for row in self.rows.tolist()]

    @property
    def names(self) -> list[str]:
        """The name of each pod."""
        return [pod.name for pod in self.pods]

    @property
    def namespaces(self) -> list[str]:
        """The namespace of each pod."""
        return [pod.namespace for pod in self.pods]

    @property
    def labels(self) -> list[Mapping[str, str]]:
        """The labels of each pod."""
        return [pod.labels for pod in self.pods]

    def label(self, key: str) -> LabelValues:
        """Return the value of one label for each pod."""
        return LabelValues.of([pod.labels.get(key, "") for pod in self.pods])

    @property
    def annotations(self) -> list[Mapping[str, str]]:
        """The annotations of each pod."""
        return [pod.annotations for pod in self.pods]

    @property
    def node(self) -> I32:
        """The row of the node that each task is or will be on, -1 for none. Shape (rows,)."""
        return self.tables.tasks.node[self.rows]

    @property
    def status(self) -> I8:
        """The state of each task in this session, as numbers of TaskStatus. Shape (rows,)."""
        return self.tables.tasks.status[self.rows]

    @property
    def priority(self) -> I64:
        """The priority of each task. Shape (rows,)."""
        return self.tables.tasks.priority[self.rows]

    @property
    def job(self) -> I32:
        """The row of each task's job, -1 for none. Shape (rows,)."""
        return self.tables.tasks.job[self.rows]

    @property
    def queue(self) -> I32:
        """The row of each task's queue, -1 for none. Shape (rows,)."""
        # Row -1 reads the last job's queue first; ``where`` replaces that, so no mask has to be applied before.
        job = self.job
        return np.where(job >= 0, self.tables.jobs.queue[job], -1)

    @property
    def req(self) -> F64:
        """The request of each task. Shape (rows, R)."""
        return self.tables.classes.req[self.classes]


class Candidates(TaskRows):
    """Candidates for eviction on several nodes: node after node, and for each node in the order of eviction.

    ``starts`` (nodes + 1,) has the index of the first task of each node, and the number of all tasks. A hook answers
    for each node by itself: what it counts down victim by victim begins again on each node (``apart``).
    """

    __slots__ = ("starts",)

    def __init__(self, tables: Tables, rows: AnyArray, starts: AnyArray | None = None) -> None:
        super().__init__(tables, rows)
        self.starts = np.array([0, len(rows)]) if starts is None else starts

    @property
    def node_count(self) -> int:
        """The number of nodes."""
        return len(self.starts) - 1

    @property
    def nth(self) -> I64:
        """The index of each task's node among these nodes, from 0. Shape (rows,)."""
        found: I64 = np.repeat(np.arange(self.node_count), np.diff(self.starts))
        return found

    def apart(self, group: AnyArray) -> AnyArray:
        """Return numbers that are equal for tasks of one node and one group. Shapes (rows,) -> (rows,)."""
        if self.node_count == 1 or not len(group):
            return group
        # Groups are rows, or -1 for none: one more than the largest row, plus one for -1.
        found: AnyArray = self.nth * (int(group.max()) + 2) + group
        return found

    def of_node(self, nth: int) -> Candidates:
        """Return the candidates of one node, by its index among these nodes."""
        return Candidates(self.tables, self.rows[self.starts[nth] : self.starts[nth + 1]])

    def nodes_where(self, mask: Bool) -> Bool:
        """Return which nodes have a task that is marked. Shapes (rows,) -> (nodes,)."""
        # By running counts: ``reduceat`` would be wrong for a node without tasks.
        before = np.concatenate(([0], mask.cumsum()))
        found: Bool = before[self.starts[1:]] > before[self.starts[:-1]]
        return found
