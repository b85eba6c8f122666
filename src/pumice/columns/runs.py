"""Tasks that move together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from pumice.algorithms.groups import all_equal
from pumice.columns.dtypes import F64, AnyArray
from pumice.columns.placement import Placement
from pumice.columns.rows import TaskRows
from pumice.columns.tables import Tables


class Tally:
    """The different rows of a list, and how often each appears. ``rows`` has them in order of first appearance."""

    # ``column[rows] += change`` adds only once for a row that appears twice, so changes are summed by row before.

    __slots__ = ("_once", "_where", "rows")

    def __init__(self, where: Sequence[int]) -> None:
        # A dict and not ``np.unique``: most placements have a few rows, for which NumPy's overhead is larger.
        each = dict.fromkeys(where)
        self._where = where
        # The usual case: gangs are often spread one task a node, and then nothing has to be summed.
        self._once = len(each) == len(where)
        self.rows: AnyArray = np.array(list(each))

    def of_each(self, change: F64) -> F64:
        """Return the sum for each row if every appearance adds the same ``change``. Shape (rows, …), or that of
        ``change`` if it is the same for all rows."""
        if self._once:
            return change
        times = np.array(list(Counter(self._where).values()), dtype=np.float64)
        return times.reshape(-1, *(1,) * change.ndim) * change

    def of_all(self, changes: F64) -> F64:
        """Return the sum for each row of ``changes`` (appearances, …). Shape (rows, …)."""
        if self._once:
            return changes
        found = np.zeros((len(self.rows), *changes.shape[1:]))
        place = {row: i for i, row in enumerate(self.rows.tolist())}
        np.add.at(found, [place[row] for row in self._where], changes)
        return found


class TaskRun:
    """Tasks of one sub-job that are placed, or leave their nodes, together: ``rows[i]`` on ``nodes[i]``.

    ``index`` has the rows as an index of columns.
    """

    __slots__ = ("_classes", "_job", "_tally", "index", "nodes", "rows", "tables")

    def __init__(self, tables: Tables, placement: Placement) -> None:
        self.tables = tables
        self.rows: Sequence[int] = placement.rows
        self.nodes: Sequence[int] = placement.nodes
        # Many runs have one task, and reading or writing one element is several times faster than a list of one.
        self.index: Any = self.rows[0] if len(self.rows) == 1 else np.array(self.rows)
        # Kept, as every plugin's event handler asks for them. Classes and jobs of tasks do not change in a session.
        self._classes: list[int] | None = None
        self._job: int | None = None
        self._tally: Tally | None = None

    @classmethod
    def where_they_are(cls, tables: Tables, rows: Sequence[int]) -> TaskRun:
        """Return a run of tasks on their present nodes. Each of them must be on a node."""
        node = tables.tasks.node
        nodes = [int(node[rows[0]])] if len(rows) == 1 else node[list(rows)].tolist()
        return cls(tables, Placement(rows, nodes))

    @classmethod
    def on_nodes(cls, tables: Tables, rows: Sequence[int], nodes: Sequence[int] | AnyArray) -> TaskRun:
        """Return a run of those tasks whose node is not -1. It may be empty."""
        listed: list[int] = np.asarray(nodes).tolist()
        if listed and min(listed) >= 0:
            return cls(tables, Placement(rows, listed))
        there = [(row, node) for row, node in zip(rows, listed, strict=True) if node >= 0]
        return cls(tables, Placement([row for row, _ in there], [node for _, node in there]))

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def tasks(self) -> TaskRows:
        """The tasks."""
        return TaskRows(self.tables, np.array(self.rows))

    @property
    def job(self) -> int:
        """The row of their job, -1 for none."""
        if self._job is None:
            self._job = int(self.tables.tasks.job[self.rows[0]])
        return self._job

    @property
    def sub(self) -> int:
        """The row of their sub-job."""
        return int(self.tables.tasks.sub[self.rows[0]])

    @property
    def is_of_one_part(self) -> bool:
        """True if all tasks are of one sub-job and in one state, as sums of the run as a whole require."""
        if len(self.rows) == 1:
            return True
        tasks = self.tables.tasks
        return all_equal(tasks.sub[self.index].tolist()) and all_equal(tasks.status[self.index].tolist())

    @property
    def queue(self) -> int:
        """The row of the job's queue, -1 for none."""
        job = self.job
        return int(self.tables.jobs.queue[job]) if job >= 0 else -1

    @property
    def classes(self) -> list[int]:
        """The class of each task, or a list of one class if all tasks have the same."""
        if self._classes is None:
            if len(self.rows) == 1:
                self._classes = [int(self.tables.tasks.cls[self.index])]
            else:
                found = self.tables.tasks.cls[self.index].tolist()
                self._classes = found[:1] if all_equal(found) else found
        return self._classes

    @property
    def total(self) -> F64:
        """The sum of their requests. Shape (R,)."""
        # One multiplication for tasks of one class. Amounts are whole numbers, so both ways give the same result.
        req, classes = self.tables.classes.req, self.classes
        total: F64 = len(self.rows) * req[classes[0]] if len(classes) == 1 else req[classes].sum(axis=0)
        return total

    def by_node(self, of_class: F64) -> tuple[Any, F64]:
        """Return the nodes, each once, and the sums over the tasks of each node of ``of_class`` (C, …), an amount of
        each class. The result is an index of nodes and what to add there."""
        classes = self.classes
        if len(self.rows) == 1:
            return self.nodes[0], of_class[classes[0]]
        if self._tally is None:
            self._tally = Tally(self.nodes)
        tally = self._tally
        return tally.rows, tally.of_each(of_class[classes[0]]) if len(classes) == 1 else tally.of_all(of_class[classes])
