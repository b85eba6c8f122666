"""Who goes first: queues, jobs, sub-jobs and tasks, by what plugins say and then by age and UID.

When every plugin at a point gives keys, an element's whole key is computed when it is pushed and the heap compares
tuples; as soon as one plugin compares pairs, elements are compared live. Both give the same order as long as nobody's
key changes while it waits, which holds for every action: what an action changes is what it has just popped.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cmp_to_key
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, Any

import numpy as np

from pumice.columns.dtypes import AnyArray, Bool
from pumice.columns.rows import JobRows, TaskRows
from pumice.columns.views import Job, Queue, SubJob, Task
from pumice.framework import points
from pumice.model.pod_order import compare_pods

if TYPE_CHECKING:
    from pumice.framework.session import Session

Keyer = Callable[[list[int]], list[Any]]


class Heap:
    """A heap of rows under keys that a keyer computes at push."""

    __slots__ = ("_heap", "_keys")

    def __init__(self, keyer: Keyer, rows: Sequence[int] = ()) -> None:
        self._keys = keyer
        self._heap: list[tuple[Any, int]] = list(zip(keyer(list(rows)), rows, strict=True)) if rows else []
        heapify(self._heap)

    @classmethod
    def of(cls, keyer: Keyer, entries: list[tuple[Any, int]]) -> Heap:
        """Of rows whose keys are known."""
        heap = cls(keyer)
        heap._heap = entries
        heapify(entries)
        return heap

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


def heaps_by(keyer: Keyer, rows: AnyArray, group: AnyArray) -> dict[int, Heap]:
    """A heap for each group of rows, with all keys asked for at once."""
    entries: dict[int, list[tuple[Any, int]]] = {}
    listed: list[int] = rows.tolist()
    for of, key, row in zip(group.tolist(), keyer(listed) if listed else (), listed, strict=True):
        entries.setdefault(of, []).append((key, row))
    return {of: Heap.of(keyer, members) for of, members in entries.items()}


def _forms(ssn: Session, point: points.Point) -> list[tuple[str, Any]]:
    return [hook for tier in ssn.tiers(point) for hook in tier]


def job_keyer(ssn: Session) -> Keyer:
    """Keys of jobs: plugins, creation, UID."""
    hooks = _forms(ssn, points.job_order)
    jobs = ssn.tables.jobs
    if all(form == "key" for form, _ in hooks):

        def keys(rows: list[int]) -> list[Any]:
            handle = JobRows(ssn.tables, np.array(rows, dtype=np.int64))
            columns = [hook(handle).tolist() for _, hook in hooks]
            return list(zip(*columns, jobs.creation[rows].tolist(), [jobs.uids[r] for r in rows], strict=True))

        return keys
    return _live(lambda a, b: compare_jobs(ssn, a, b) or _older(jobs.creation, jobs.uids, a, b))


class JobsInOrder:
    """Waiting jobs in order, by one sort over arrays where plugins give keys. Equal keys and age are told apart by UID
    only where it comes to it."""

    __slots__ = ("_rows", "_run", "_told_apart", "_uids")

    def __init__(self, ssn: Session, keyer: Keyer, rows: AnyArray) -> None:
        hooks = _forms(ssn, points.job_order)
        self._uids = ssn.tables.jobs.uids
        self._told_apart = 0  # so many of the rows are in their final order
        if all(form == "key" for form, _ in hooks):
            columns = [hook(JobRows(ssn.tables, rows)) for _, hook in hooks] + [ssn.tables.jobs.creation[rows]]
            order = np.lexsort(columns[::-1])
            differs = np.zeros(len(rows), dtype=bool)
            for column in columns:
                differs[1:] |= column[order][1:] != column[order][:-1]
            self._rows, self._run = rows[order], differs.cumsum()
        else:
            keyed = sorted(zip(keyer(rows.tolist()), rows.tolist(), strict=True))
            self._rows, self._run = np.array([row for _, row in keyed], dtype=np.int64), np.arange(len(rows))

    def __len__(self) -> int:
        return len(self._rows)

    def rows(self) -> AnyArray:
        """All that wait; only the first one is sure to be in its place."""
        if len(self._rows) and not self._told_apart:
            end = int(self._run.searchsorted(self._run[0], "right"))
            if end > 1:
                self._rows[:end] = sorted(self._rows[:end].tolist(), key=self._uids.__getitem__)
            self._told_apart = end
        return self._rows

    def drop_first(self) -> None:
        self._rows, self._run, self._told_apart = self._rows[1:], self._run[1:], self._told_apart - 1

    def keep(self, those: Bool) -> None:
        """Only those of ``rows`` wait on."""
        self._told_apart = int(np.count_nonzero(those[: self._told_apart]))
        self._rows, self._run = self._rows[those], self._run[those]


def compare_jobs(ssn: Session, left: int, right: int) -> int:
    """What plugins say about two jobs, 0 without opinion. Source: Volcano JobOrderCompare."""
    pair = JobRows(ssn.tables, np.array([left, right]))
    return _compare(
        _forms(ssn, points.job_order), lambda hook: hook(pair).tolist(), Job(ssn.tables, left), Job(ssn.tables, right)
    )


def queue_keyer(ssn: Session) -> Keyer:
    """Keys of queues: plugins, creation, name."""
    hooks = _forms(ssn, points.queue_order)
    queues = ssn.tables.queues
    if all(form == "key" for form, _ in hooks):
        return lambda rows: [
            (*(hook(Queue(ssn.tables, r)) for _, hook in hooks), queues.creation[r], queues.names[r]) for r in rows
        ]
    return _live(lambda a, b: compare_queues(ssn, a, b))


def compare_queues(ssn: Session, left: int, right: int) -> int:
    """Which of two queues goes first; 0 only for the same queue."""
    a, b = Queue(ssn.tables, left), Queue(ssn.tables, right)
    queues = ssn.tables.queues
    answer = _compare(_forms(ssn, points.queue_order), lambda hook: (hook(a), hook(b)), a, b)
    return answer or _older(queues.creation, queues.names, left, right)


def _compare(hooks: list[tuple[str, Any]], keys: Callable[[Any], Sequence[Any]], left: Any, right: Any) -> int:
    for form, hook in hooks:
        if form == "key":
            a, b = keys(hook)
            answer = int(a > b) - int(a < b)  # keys may be NumPy numbers
        else:
            answer = hook(left, right)
        if answer:
            return int(answer)
    return 0


def _older(creation: Sequence[float] | AnyArray, names: Sequence[str], left: int, right: int) -> int:
    if creation[left] != creation[right]:
        return -1 if creation[left] < creation[right] else 1
    return (names[left] > names[right]) - (names[left] < names[right])


def _live(compare: Callable[[int, int], int]) -> Keyer:
    wrap = cmp_to_key(compare)
    return lambda rows: [wrap(r) for r in rows]


def sorted_tasks(ssn: Session, rows: AnyArray) -> AnyArray:
    """Task rows of one job, which come in fallback order, as plugins order them."""
    hooks = _forms(ssn, points.task_order)
    if not hooks or len(rows) < 2:
        return rows
    if all(form == "key" for form, _ in hooks):
        columns = [hook(TaskRows(ssn.tables, rows)) for _, hook in hooks]
        if all((column == column[0]).all() for column in columns):
            return rows
        return rows[np.lexsort(columns[::-1])]

    def compare(a: int, b: int) -> int:
        def keys(hook: Any) -> Any:
            return hook(TaskRows(ssn.tables, np.array([a, b]))).tolist()

        return _compare(hooks, keys, Task(ssn.tables, a), Task(ssn.tables, b))

    return np.array(sorted(rows.tolist(), key=cmp_to_key(compare)), dtype=np.int64)


def compare_tasks(ssn: Session, left: int, right: int) -> int:
    """Which of two tasks goes first, of whatever jobs: plugins, then index in the name, age, UID."""
    pair = TaskRows(ssn.tables, np.array([left, right]))
    a, b = Task(ssn.tables, left), Task(ssn.tables, right)
    answer = _compare(_forms(ssn, points.task_order), lambda hook: hook(pair).tolist(), a, b)
    return answer or compare_pods(a.pod, b.pod)


def sub_job_keyer(ssn: Session, first: frozenset[int] = frozenset()) -> Keyer:
    """Keys of sub-jobs: those in ``first`` first, then plugins, match index, UID."""
    hooks = _forms(ssn, points.sub_job_order)
    subs = ssn.tables.subs
    if all(form == "key" for form, _ in hooks):
        return lambda rows: [
            (r not in first, *(hook(SubJob(ssn.tables, r)) for _, hook in hooks), subs.match_index[r], subs.uids[r])
            for r in rows
        ]

    def compare(a: int, b: int) -> int:
        if (a in first) != (b in first):
            return -1 if a in first else 1
        left, right = SubJob(ssn.tables, a), SubJob(ssn.tables, b)
        answer = _compare(hooks, lambda hook: (hook(left), hook(right)), left, right)
        return answer or _older(subs.match_index, subs.uids, a, b)

    return _live(compare)
