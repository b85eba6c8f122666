"""Who goes first: queues, jobs, sub-jobs and tasks, by what plugins say and then by age and UID.

When every plugin at a point gives keys, an element's whole key is computed when it is pushed and the heap compares
tuples; as soon as one plugin compares pairs, elements are compared live. Both give the same order as long as nobody's
key changes while it waits, which holds for every action: what an action changes is what it has just popped.

Jobs of a queue that only wait stand in a ``Line``, sorted once; a ``Heap`` is for elements that keep coming back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cmp_to_key
from heapq import heapify, heappop, heappush
from typing import Any

import numpy as np

from pumice.algorithms.groups import all_equal, runs
from pumice.columns.dtypes import AnyArray, some
from pumice.columns.job_rows import JobRows
from pumice.columns.rows import TaskRows
from pumice.columns.tables import Tables
from pumice.columns.views import Job, Queue, Task
from pumice.framework.plugin import points
from pumice.framework.plugin.hooks import Hooks
from pumice.framework.plugin.point import ROWS, Question
from pumice.model.pod_order import compare_pods

Keyer = Callable[[list[int]], list[Any]]
Entry = tuple[Any, int]  # a row with its key


class Heap:
    """A heap of rows under keys that a keyer computes at push: that of a row which waits may change."""

    __slots__ = ("_heap", "_keys")

    def __init__(self, keyer: Keyer, rows: Sequence[int] = ()) -> None:
        self._keys = keyer
        self._heap: list[tuple[Any, int]] = list(zip(keyer(list(rows)), rows, strict=True)) if rows else []
        heapify(self._heap)

    def __len__(self) -> int:
        return len(self._heap)

    def push(self, row: int) -> None:
        heappush(self._heap, (self._keys([row])[0], row))

    def peek(self) -> int:
        return self._heap[0][1]

    def pop(self) -> int:
        return heappop(self._heap)[1]

    def rows(self) -> list[int]:
        """All that wait, in no order that means anything."""
        return [row for _, row in self._heap]

    def pop_all(self) -> list[int]:
        """All that wait, in order; none waits after it."""
        rows = [row for _, row in sorted(self._heap)]
        self._heap.clear()
        return rows

    def copy(self) -> Heap:
        twin = Heap(self._keys)
        twin._heap = list(self._heap)
        return twin


class Line:
    """Jobs of one queue, the first one first. What is pushed back takes its place among them; what waits does not
    change its key, so nobody else's is worked out before."""

    __slots__ = ("_head", "_keys", "_pushed", "_rows")

    def __init__(self, keys: Keyer, rows: Sequence[int] = ()) -> None:
        """``rows``: in order."""
        self._keys, self._rows = keys, list(reversed(rows))
        self._pushed: list[Entry] = []
        self._head: Entry | None = None  # of what was not pushed, as far as it was asked for

    def __len__(self) -> int:
        return len(self._rows) + len(self._pushed)

    def peek(self) -> int:
        return self._pushed[0][1] if self._is_pushed_first() else self._rows[-1]

    def pop(self) -> int:
        return heappop(self._pushed)[1] if self._is_pushed_first() else self._rows.pop()

    def push(self, job: int) -> None:
        heappush(self._pushed, (self._keys([job])[0], job))

    def _is_pushed_first(self) -> bool:
        if not self._pushed or not self._rows:
            return bool(self._pushed)
        job = self._rows[-1]
        if self._head is None or self._head[1] != job:
            self._head = (self._keys([job])[0], job)
        return self._pushed[0] < self._head

    def next(self, count: int) -> list[int]:
        """The next ones of those that were not pushed, in no order that means anything."""
        return self._rows[-count:]

    def rows(self) -> list[int]:
        """All that wait, in no order that means anything."""
        return [*self._rows, *(row for _, row in self._pushed)]

    def pop_all(self) -> list[int]:
        """All that wait, in order; none waits after it."""
        rows = [self.pop() for _ in range(len(self))] if self._pushed else self._rows[::-1]
        self._rows.clear()
        return rows

    def skip(self, leading: Callable[[Iterable[int]], int]) -> bool:
        """Take out as many of the first as ``leading`` says of all in order. Whether any."""
        before = len(self)
        while self._pushed and leading((self.peek(),)):
            self.pop()
        if not self._pushed and (count := leading(reversed(self._rows))):
            del self._rows[-count:]
        return len(self) < before


def live(compare: Callable[[int, int], int]) -> Keyer:
    """Keys that compare rows when they meet."""
    wrap = cmp_to_key(compare)
    return lambda rows: [wrap(r) for r in rows]


def older(creation: Sequence[float] | AnyArray, names: Sequence[str], left: int, right: int) -> int:
    """Below 0: left is older or, of the same age, has the smaller name."""
    if creation[left] != creation[right]:
        return -1 if creation[left] < creation[right] else 1
    return (names[left] > names[right]) - (names[left] < names[right])


class Ordering:
    """Orders rows as the plugins of a session say, ties by creation and UID."""

    __slots__ = ("_hooks", "_tables")

    def __init__(self, tables: Tables, hooks: Hooks) -> None:
        self._tables, self._hooks = tables, hooks

    def _is_keyed(self, point: Question) -> bool:
        return self._hooks.forms(point) <= {"key"}

    def job_columns(self, rows: AnyArray) -> list[AnyArray] | None:
        """What plugins say of some jobs, a column of keys from each, smaller first and the first that differs decides;
        None where one compares pairs."""
        if not self._is_keyed(points.job_order):
            return None
        return self._hooks.ask(points.jobs_keyed, JobRows(self._tables, rows))

    def task_columns(self, rows: AnyArray) -> list[AnyArray] | None:
        """The same of some tasks, of whatever jobs."""
        if not self._is_keyed(points.task_order):
            return None
        return self._hooks.ask(points.tasks_keyed, TaskRows(self._tables, rows))

    def rests_on_rows(self) -> bool:
        """Whether plugins give keys of jobs and of tasks, which change only with the job or the task itself."""
        hooks = self._hooks.at(points.job_order, points.task_order)
        return all(hook.form == "key" and hook.reads == (ROWS,) for hook in hooks)

    # -- jobs ---------------------------------------------------------------------------------------------------------

    def job_keys(self) -> Keyer:
        """Keys of jobs: plugins, creation, UID."""
        jobs, tables, ask = self._tables.jobs, self._tables, self._hooks.ask
        if not self._is_keyed(points.job_order):
            return live(lambda a, b: self.compare_jobs(a, b) or older(jobs.creation, jobs.uids, a, b))

        def keys(rows: list[int]) -> list[Any]:
            columns = ask(points.jobs_keyed, JobRows(tables, np.array(rows, dtype=np.int64)))
            listed = [column.tolist() for column in columns]
            return list(zip(*listed, jobs.creation[rows].tolist(), [jobs.uids[r] for r in rows], strict=True))

        return keys

    def jobs_in_order(self, rows: AnyArray) -> list[int]:
        """Waiting jobs, the first one first; by one sort over arrays where plugins give keys."""
        listed: list[int] = rows.tolist()
        if len(rows) < 2:
            return listed
        if not self._is_keyed(points.job_order):
            return [row for _, row in sorted(zip(self.job_keys()(listed), listed, strict=True))]
        jobs = self._tables.jobs
        columns = [*self._hooks.ask(points.jobs_keyed, JobRows(self._tables, rows)), jobs.creation[rows]]
        columns = [column for column in columns if some(column != column[0])]  # the others tell nobody apart
        order = np.lexsort(columns[::-1]) if columns else np.arange(len(rows))
        equal = np.ones(len(rows) - 1, dtype=bool)  # to the one before
        for column in columns:
            column = column[order]
            equal &= column[1:] == column[:-1]
        ordered: list[int] = rows[order].tolist()
        for start, end in runs(equal.nonzero()[0].tolist()):
            ordered[start : end + 1] = sorted(ordered[start : end + 1], key=jobs.uids.__getitem__)
        return ordered

    def lines(self, rows: AnyArray, depth: int | None = None) -> dict[int, Line]:
        """Waiting jobs by queue, of each queue no more than so many."""
        found: dict[int, list[int]] = {}
        ordered = self.jobs_in_order(rows)
        for job, queue in zip(ordered, self._tables.jobs.queue[ordered].tolist(), strict=True):
            found.setdefault(queue, []).append(job)
        keys = self.job_keys()
        return {queue: Line(keys, jobs[:depth]) for queue, jobs in found.items()}

    def compare_jobs(self, left: int, right: int) -> int:
        """What plugins say about two jobs, 0 without opinion. Source: Volcano JobOrderCompare."""
        return self._hooks.ask(points.jobs_compared, Job(self._tables, left), Job(self._tables, right))

    # -- queues -------------------------------------------------------------------------------------------------------

    def queue_keys(self) -> Keyer:
        """Keys of queues: plugins, creation, name."""
        queues, tables, ask = self._tables.queues, self._tables, self._hooks.ask
        if not self._is_keyed(points.queue_order):
            return live(self.compare_queues)
        return lambda rows: [
            (*ask(points.queue_keyed, Queue(tables, r)), queues.creation[r], queues.names[r]) for r in rows
        ]

    def compare_queues(self, left: int, right: int) -> int:
        """Which of two queues goes first; 0 only for the same queue."""
        queues = self._tables.queues
        said = self._hooks.ask(points.queues_compared, Queue(self._tables, left), Queue(self._tables, right))
        return said or older(queues.creation, queues.names, left, right)

    # -- tasks --------------------------------------------------------------------------------------------------------

    def sorted_tasks(self, rows: AnyArray) -> AnyArray:
        """Task rows of one job, which come in fallback order, as plugins order them."""
        if len(rows) < 2 or not self._hooks.has(points.task_order):
            return rows
        if self._is_keyed(points.task_order):
            columns = self._hooks.ask(points.tasks_keyed, TaskRows(self._tables, rows))
            if all(all_equal(column.tolist()) for column in columns):
                return rows
            found: AnyArray = rows[np.lexsort(columns[::-1])]
            return found
        compare = cmp_to_key(self._say_of_tasks)
        return np.array(sorted(rows.tolist(), key=compare), dtype=np.int64)

    def _say_of_tasks(self, left: int, right: int) -> int:
        return self._hooks.ask(points.tasks_compared, Task(self._tables, left), Task(self._tables, right))

    def compare_tasks(self, left: int, right: int) -> int:
        """Which of two tasks goes first, of whatever jobs: plugins, then index in the name, age, UID."""
        pods = self._tables.tasks.pods
        return self._say_of_tasks(left, right) or compare_pods(pods[left], pods[right])
