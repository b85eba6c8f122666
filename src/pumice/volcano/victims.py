"""Who is evicted first. Source: Volcano BuildVictimsPriorityQueue (spec 02 §8.6)."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cmp_to_key

import numpy as np

from pumice.columns.dtypes import AnyArray
from pumice.columns.views import Queue
from pumice.framework.session import Session
from pumice.model.pod_order import compare_pods
from pumice.volcano import points


class VictimQueue:
    """Task rows to evict for a preemptor, the next one as things stand when it is asked for.

    Of one job: the task that would go last. Of jobs of one queue: the job that would go last, else by task. Of two
    queues: as plugins say with the preemptor's queue in mind, else the queue that would go last. A task whose job is
    not in the session goes before all others; when the preemptor's is not, queues are not looked at.
    """

    def __init__(self, ssn: Session, victims: Iterable[int], preemptor: int) -> None:
        self._ssn = ssn
        self._left = list(victims)
        self._preemptor_queue = self._queue_of(preemptor)
        self._keyed = ssn.hooks.forms(points.job_order, points.task_order) <= {"key"}

    def __len__(self) -> int:
        return len(self._left)

    def pop(self) -> int:
        found = self._left[0] if len(self._left) == 1 else self._first()
        self._left.remove(found)
        return found

    def _first(self) -> int:
        job = self._ssn.tables.tasks.job[self._left]
        if not self._keyed or (job < 0).any():
            return min(self._left, key=cmp_to_key(self.compare))
        return self._last_by_keys(np.array(self._left), job)

    def _last_by_keys(self, rows: AnyArray, job: AnyArray) -> int:
        """By keys, the last one first, which of those that no key tells apart the pods do."""
        ssn, tables = self._ssn, self._ssn.tables
        queue = tables.jobs.queue[job]
        if self._preemptor_queue >= 0 and (queue != queue[0]).any():
            first = min(np.unique(queue).tolist(), key=cmp_to_key(self._compare_queues))
            rows, job = rows[queue == first], job[queue == first]
        columns = (ssn.order.job_columns(job) or []) + (ssn.order.task_columns(rows) or [])
        left = np.arange(len(rows))
        for column in columns:
            if len(left) > 1:
                of_these = column[left]
                left = left[of_these == of_these.max()]
        pods = tables.tasks.pods
        return max(rows[left].tolist(), key=cmp_to_key(lambda a, b: compare_pods(pods[a], pods[b])))

    def _queue_of(self, task: int) -> int:
        """The queue of a task's job, -1 when its job is not in the session."""
        job = int(self._ssn.tables.tasks.job[task])
        return int(self._ssn.tables.jobs.queue[job]) if job >= 0 else -1

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
