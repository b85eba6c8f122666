"""Who is evicted first. Source: Volcano BuildVictimsPriorityQueue (spec 02 §8.6)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cmp_to_key
from typing import Any

import numpy as np

from pumice.columns.dtypes import AnyArray
from pumice.columns.views import Queue
from pumice.framework.session import Session
from pumice.model.pod import Pod
from pumice.model.pod_order import compare_pods, name_index
from pumice.volcano import points


def eviction_order(ssn: Session, victims: Sequence[int], preemptor: int) -> list[int]:
    """Task rows to evict for a preemptor, one after the other, by what is so before the first one goes.

    Of one job: the task that would go last. Of jobs of one queue: the job that would go last, else by task. Of two
    queues: as plugins say with the preemptor's queue in mind, else the queue that would go last. A task whose job is
    not in the session goes before all others; when the preemptor's is not, queues are not looked at.
    """
    if len(victims) < 2:
        return list(victims)
    order = _Order(ssn, preemptor)
    rows = np.array(victims)
    job = ssn.tables.tasks.job[rows]
    found = order.by_keys(rows, job) if (job >= 0).all() else None
    return sorted(victims, key=cmp_to_key(order.compare)) if found is None else found


class _Order:
    def __init__(self, ssn: Session, preemptor: int) -> None:
        self._ssn = ssn
        self._preemptor_queue = self._queue_of(preemptor)

    def _queue_of(self, task: int) -> int:
        """The queue of a task's job, -1 when its job is not in the session."""
        job = int(self._ssn.tables.tasks.job[task])
        return int(self._ssn.tables.jobs.queue[job]) if job >= 0 else -1

    def by_keys(self, rows: AnyArray, job: AnyArray) -> list[int] | None:
        """By keys as plugins give them, and then by pods; None where plugins compare pairs."""
        ssn, queue = self._ssn, self._ssn.tables.jobs.queue[job]
        by_job, by_task = ssn.order.job_columns(job), ssn.order.task_columns(rows)
        if by_job is None or by_task is None:
            return None
        columns = [-column for column in by_job + by_task]
        if self._preemptor_queue >= 0 and (queue != queue[0]).any():
            queues = sorted(set(queue.tolist()), key=cmp_to_key(self._compare_queues))
            turn = {row: number for number, row in enumerate(queues)}
            columns.insert(0, np.array([turn[row] for row in queue.tolist()]))
        listed = rows.tolist()
        keys = zip(*(column.tolist() for column in columns), self._last_first(listed), strict=True)
        return [row for _, row in sorted(zip(keys, listed, strict=True))]

    def _last_first(self, rows: list[int]) -> list[Any]:
        """Keys of pods by which the one that would go last comes first."""
        pods = [self._ssn.tables.tasks.pods[row] for row in rows]
        index = [name_index(pod.name) for pod in pods]
        if None in index:  # then that does not count for all pairs, and there are no plain keys
            last_first: Callable[[Pod], Any] = cmp_to_key(lambda a, b: compare_pods(b, a))
            return [last_first(pod) for pod in pods]
        order = sorted(range(len(pods)), key=lambda i: (index[i], pods[i].creation, pods[i].uid), reverse=True)
        place = dict(zip(order, range(len(pods)), strict=True))
        return [place[i] for i in range(len(pods))]

    def compare(self, left: int, right: int) -> int:
        """Below 0: left is evicted first."""
        jobs, order = self._ssn.tables.tasks.job, self._ssn.order
        if jobs[left] == jobs[right]:
            return -order.compare_tasks(left, right)
        a, b = self._queue_of(left), self._queue_of(right)
        if a < 0 or b < 0:
            return int(a >= 0) - int(b >= 0) or -order.compare_tasks(left, right)
        if a == b or self._preemptor_queue < 0:
            return -order.compare_jobs(int(jobs[left]), int(jobs[right])) or -order.compare_tasks(left, right)
        return self._compare_queues(a, b)

    def _compare_queues(self, a: int, b: int) -> int:
        queues = [Queue(self._ssn.tables, row) for row in (a, b, self._preemptor_queue)]
        return self._ssn.ask(points.victim_queue_order, *queues) or -self._ssn.order.compare_queues(a, b)
