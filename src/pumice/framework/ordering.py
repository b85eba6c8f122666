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
from pumice.columns.views import Job, JobRows, Queue, SubJob, Task, TaskRows
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

    def __len__(self) -> int:
        return len(self._heap)

    def push(self, row: int) -> None:
        heappush(self._heap, (self._keys([row])[0], row))

    def peek(self) -> int:
        return self._heap[0][1]

    def pop(self) -> int:
        return heappop(self._heap)[1]

    def copy(self) -> Heap:
        twin = Heap(self._keys)
        twin._heap = list(self._heap)
        return twin


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


def sorted_jobs(ssn: Session, keyer: Keyer, rows: AnyArray) -> AnyArray:
    """Job rows in order, by one sort over arrays where plugins give keys; equal keys and age are told apart by UID."""
    hooks = _forms(ssn, points.job_order)
    jobs = ssn.tables.jobs
    if len(rows) > 1 and all(form == "key" for form, _ in hooks):
        columns = [hook(JobRows(ssn.tables, rows)) for _, hook in hooks] + [jobs.creation[rows]]
        order = np.lexsort(columns[::-1])
        same = np.ones(len(rows) - 1, dtype=bool)
        for column in columns:
            same &= column[order][1:] == column[order][:-1]
        return _by_uid_where_equal(rows[order], same, jobs.uids)
    keyed = sorted(zip(keyer(rows.tolist()), rows.tolist(), strict=True))
    return np.array([row for _, row in keyed], dtype=np.int64)


def _by_uid_where_equal(rows: AnyArray, same: Bool, uids: Sequence[str]) -> AnyArray:
    """``same[i]``: rows i and i + 1 are equal so far."""
    ends = (~same).nonzero()[0] + 1
    starts = np.concatenate(([0], ends))
    lengths = np.diff(np.concatenate((starts, [len(rows)])))
    for i in (lengths > 1).nonzero()[0].tolist():
        run = slice(int(starts[i]), int(starts[i] + lengths[i]))
        rows[run] = sorted(rows[run].tolist(), key=lambda row: uids[row])
    return rows


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
