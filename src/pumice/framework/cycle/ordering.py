"""Order queues, jobs, sub-jobs and tasks by what plugins say, then by age and UID.

If every plugin at a point gives keys, the whole key of an element is computed when it is pushed, and the heap compares
tuples. If one plugin compares pairs, elements are compared when they meet. Both give the same order while no key of a
waiting element changes. That holds for all actions: an action only changes what it has just popped.

Jobs of a queue are in a ``Line``, sorted once. A ``Heap`` is for elements that are pushed again and again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cmp_to_key
from heapq import heapify, heappop, heappush

import numpy as np

from pumice.algorithms.groups import all_equal, runs
from pumice.columns.dtypes import AnyArray, some
from pumice.columns.job_rows import JobRows
from pumice.columns.rows import TaskRows
from pumice.columns.tables import Tables
from pumice.columns.views import Job, Queue, Task
from pumice.framework.plugin import points
from pumice.framework.plugin.hooks import Hooks
from pumice.framework.plugin.point import Key, Question
from pumice.model.pod_order import compare_pods

Keyer = Callable[[list[int]], Sequence[Key]]
Entry = tuple[Key, int]  # a row with its key


class Heap:
    """A heap of rows, with keys that are computed at each push, because the key of a row may have changed by then."""

    __slots__ = ("_heap", "_keys")

    def __init__(self, keyer: Keyer, rows: Sequence[int] = ()) -> None:
        self._keys = keyer
        # All keys in one call: plugins answer for an array of jobs, which costs little more than for one.
        self._heap: list[Entry] = list(zip(keyer(list(rows)), rows, strict=True)) if rows else []
        heapify(self._heap)

    def __len__(self) -> int:
        return len(self._heap)

    def push(self, row: int) -> None:
        """Add a row with its present key."""
        # The row itself is the last part of the entry, so equal keys never compare further.
        heappush(self._heap, (self._keys([row])[0], row))

    def peek(self) -> int:
        """Return the first row."""
        return self._heap[0][1]

    def pop(self) -> int:
        """Remove and return the first row."""
        return heappop(self._heap)[1]

    def rows(self) -> list[int]:
        """Return all rows in arbitrary order."""
        return [row for _, row in self._heap]

    def pop_all(self) -> list[int]:
        """Remove and return all rows in order."""
        rows = [row for _, row in sorted(self._heap)]
        self._heap.clear()
        return rows

    def copy(self) -> Heap:
        """Return a heap with the same rows and keys."""
        # Keys are copied and not computed again. The copy is for a trial, which must see the order as it is now.
        twin = Heap(self._keys)
        twin._heap = list(self._heap)
        return twin


class Line:
    """The waiting jobs of a queue in order. Jobs that are pushed back are inserted by their key.

    Keys of waiting jobs do not change, so a key is computed only when the job must be compared with one that was
    pushed.
    """

    __slots__ = ("_head", "_keys", "_pushed", "_rows")

    def __init__(self, keys: Keyer, rows: Sequence[int] = ()) -> None:
        """``rows``: in order."""
        # Reversed, because removing from the end of a list is cheap.
        self._keys, self._rows = keys, list(reversed(rows))
        self._pushed: list[Entry] = []
        #: The first of ``_rows`` with its key, once it was needed.
        self._head: Entry | None = None

    def __len__(self) -> int:
        return len(self._rows) + len(self._pushed)

    def peek(self) -> int:
        """Return the first job."""
        return self._pushed[0][1] if self._is_pushed_first() else self._rows[-1]

    def pop(self) -> int:
        """Remove and return the first job."""
        return heappop(self._pushed)[1] if self._is_pushed_first() else self._rows.pop()

    def push(self, job: int) -> None:
        """Add a job with its present key."""
        heappush(self._pushed, (self._keys([job])[0], job))

    def _is_pushed_first(self) -> bool:
        """Return True if the first job is one that was pushed."""
        if not self._pushed or not self._rows:
            return bool(self._pushed)
        job = self._rows[-1]
        # Computed for one job at a time: most queues are worked off without a job that comes back.
        if self._head is None or self._head[1] != job:
            self._head = (self._keys([job])[0], job)
        return self._pushed[0] < self._head

    def next(self, count: int) -> list[int]:
        """Return the next jobs that were not pushed, in arbitrary order."""
        return self._rows[-count:]

    def rows(self) -> list[int]:
        """Return all jobs in arbitrary order."""
        return [*self._rows, *(row for _, row in self._pushed)]

    def pop_all(self) -> list[int]:
        """Remove and return all jobs in order."""
        # Without pushed jobs no key is needed, since the rows are in order already.
        rows = [self.pop() for _ in range(len(self))] if self._pushed else self._rows[::-1]
        self._rows.clear()
        return rows

    def skip(self, leading: Callable[[Iterable[int]], int]) -> bool:
        """Remove as many of the first jobs as ``leading`` says when it is given all in order. Return True if any."""
        before = len(self)
        while self._pushed and leading((self.peek(),)):
            self.pop()
        # Only if no pushed job is left: one might belong between the others.
        if not self._pushed and (count := leading(reversed(self._rows))):
            del self._rows[-count:]
        return len(self) < before


# Slow, but right for plugins that compare pairs: each comparison asks them as things are at that moment.
def live(compare: Callable[[int, int], int]) -> Keyer:
    """Return keys that compare rows when they meet."""
    wrap = cmp_to_key(compare)
    return lambda rows: [wrap(r) for r in rows]


def older(creation: Sequence[float] | AnyArray, names: Sequence[str], left: int, right: int) -> int:
    """Return a negative number if left is older or, at the same age, has the smaller name."""
    # As in Volcano (session_plugins.go): without a final tie-break by name, equal jobs would be ordered by chance.
    if creation[left] != creation[right]:
        return -1 if creation[left] < creation[right] else 1
    return (names[left] > names[right]) - (names[left] < names[right])


class Ordering:
    """Orders rows as the plugins of a session say, and ties by creation and UID."""

    __slots__ = ("_hooks", "_tables")

    def __init__(self, tables: Tables, hooks: Hooks) -> None:
        self._tables, self._hooks = tables, hooks

    def _is_keyed(self, point: Question) -> bool:
        """Return True if all hooks at the point give keys."""
        # Also without any hook: then creation and UID decide alone.
        return self._hooks.forms(point) <= {"key"}

    def job_columns(self, rows: AnyArray) -> list[AnyArray] | None:
        """Return the keys of jobs, one column per plugin, smaller first and the first column that differs decides, or
        None if a plugin compares pairs."""
        if not self._is_keyed(points.job_order):
            return None
        return self._hooks.ask(points.jobs_keyed, JobRows(self._tables, rows))

    def task_columns(self, rows: AnyArray) -> list[AnyArray] | None:
        """Return the keys of tasks, as ``job_columns``. Tasks may be of several jobs."""
        if not self._is_keyed(points.task_order):
            return None
        return self._hooks.ask(points.tasks_keyed, TaskRows(self._tables, rows))

    # -- jobs ---------------------------------------------------------------------------------------------------------

    def job_keys(self) -> Keyer:
        """Return a keyer for jobs: keys of plugins, creation, UID."""
        jobs, tables, ask = self._tables.jobs, self._tables, self._hooks.ask
        if not self._is_keyed(points.job_order):
            return live(lambda a, b: self.compare_jobs(a, b) or older(jobs.creation, jobs.uids, a, b))

        def keys(rows: list[int]) -> Sequence[Key]:
            columns = ask(points.jobs_keyed, JobRows(tables, np.array(rows, dtype=np.int64)))
            listed = [column.tolist() for column in columns]
            # Python values and not NumPy's: tuples of them are compared several times as fast, and a heap compares
            # often.
            return list(zip(*listed, jobs.creation[rows].tolist(), [jobs.uids[r] for r in rows], strict=True))

        return keys

    def jobs_in_order(self, rows: AnyArray) -> list[int]:
        """Return waiting jobs in order."""
        listed: list[int] = rows.tolist()
        # One job needs no keys, for which plugins would have to be asked.
        if len(rows) < 2:
            return listed
        if not self._is_keyed(points.job_order):
            return [row for _, row in sorted(zip(self.job_keys()(listed), listed, strict=True))]
        jobs = self._tables.jobs
        columns = [*self._hooks.ask(points.jobs_keyed, JobRows(self._tables, rows)), jobs.creation[rows]]
        # Most plugins do not distinguish these jobs, and each key of a sort costs time.
        columns = [column for column in columns if some(column != column[0])]
        order = np.lexsort(columns[::-1]) if columns else np.arange(len(rows))
        equal = np.ones(len(rows) - 1, dtype=bool)  # to the one before
        for column in columns:
            column = column[order]
            equal &= column[1:] == column[:-1]
        ordered: list[int] = rows[order].tolist()
        # UIDs are texts, which lexsort cannot compare, so only runs of equal jobs are sorted by them.
        for start, end in runs(equal.nonzero()[0].tolist()):
            ordered[start : end + 1] = sorted(ordered[start : end + 1], key=jobs.uids.__getitem__)
        return ordered

    def lines(self, rows: AnyArray, depth: int | None = None) -> dict[int, Line]:
        """Return waiting jobs by queue, at most ``depth`` of each."""
        found: dict[int, list[int]] = {}
        ordered = self.jobs_in_order(rows)
        for job, queue in zip(ordered, self._tables.jobs.queue[ordered].tolist(), strict=True):
            found.setdefault(queue, []).append(job)
        keys = self.job_keys()
        # Sorted once for all queues and divided after: plugins order jobs without regard to queues, and one call costs
        # less than one per queue.
        return {queue: Line(keys, jobs[:depth]) for queue, jobs in found.items()}

    def compare_jobs(self, left: int, right: int) -> int:
        """Return what plugins say about two jobs, 0 for no opinion. Source: Volcano JobOrderCompare."""
        return self._hooks.ask(points.jobs_compared, Job(self._tables, left), Job(self._tables, right))

    # -- queues -------------------------------------------------------------------------------------------------------

    def queue_keys(self) -> Keyer:
        """Return a keyer for queues: keys of plugins, creation, name."""
        queues, tables, ask = self._tables.queues, self._tables, self._hooks.ask
        if not self._is_keyed(points.queue_order):
            return live(self.compare_queues)
        return lambda rows: [
            (*ask(points.queue_keyed, Queue(tables, r)), queues.creation[r], queues.names[r]) for r in rows
        ]

    def compare_queues(self, left: int, right: int) -> int:
        """Compare two queues. 0 only for the same queue."""
        queues = self._tables.queues
        said = self._hooks.ask(points.queues_compared, Queue(self._tables, left), Queue(self._tables, right))
        return said or older(queues.creation, queues.names, left, right)

    # -- tasks --------------------------------------------------------------------------------------------------------

    def sorted_tasks(self, rows: AnyArray) -> AnyArray:
        """Return task rows of one job, given in the fallback order, as plugins order them."""
        # Most policies have no order of tasks, and rows are in the fallback order already.
        if len(rows) < 2 or not self._hooks.has(points.task_order):
            return rows
        if self._is_keyed(points.task_order):
            columns = self._hooks.ask(points.tasks_keyed, TaskRows(self._tables, rows))
            # The usual case: tasks of a job have equal priorities, and need no sort.
            if all(all_equal(column.tolist()) for column in columns):
                return rows
            # A stable sort keeps the fallback order between equal tasks.
            found: AnyArray = rows[np.lexsort(columns[::-1])]
            return found
        compare = cmp_to_key(self._say_of_tasks)
        return np.array(sorted(rows.tolist(), key=compare), dtype=np.int64)

    def _say_of_tasks(self, left: int, right: int) -> int:
        """Return what plugins say about two tasks, 0 for no opinion."""
        return self._hooks.ask(points.tasks_compared, Task(self._tables, left), Task(self._tables, right))

    def compare_tasks(self, left: int, right: int) -> int:
        """Compare two tasks of any jobs: by plugins, then index in the name, age, UID."""
        pods = self._tables.tasks.pods
        return self._say_of_tasks(left, right) or compare_pods(pods[left], pods[right])
