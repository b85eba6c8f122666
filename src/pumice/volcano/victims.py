"""Who is evicted first. Source: Volcano BuildVictimsPriorityQueue (spec 02 §8.6)."""

from __future__ import annotations

from collections.abc import Iterable

from pumice.columns.views import Queue
from pumice.framework.ordering import Heap, live
from pumice.framework.session import Session
from pumice.volcano import points


def victim_queue(ssn: Session, victims: Iterable[int], preemptor: int) -> Heap:
    """Task rows to evict for a preemptor, popped in this order.

    Of one job: the task that would go last. Of jobs of one queue: the job that would go last, else by task. Of two
    queues: as plugins say with the preemptor's queue in mind, else the queue that would go last. A task whose job is
    not in the session goes before all others; when the preemptor's is not, queues are not looked at.
    """
    return Heap(live(_Order(ssn, preemptor).compare), list(victims))


class _Order:
    def __init__(self, ssn: Session, preemptor: int) -> None:
        self._ssn = ssn
        self._preemptor_queue = self._queue_of(preemptor)

    def _queue_of(self, task: int) -> int:
        """The queue of a task's job, -1 when its job is not in the session."""
        job = int(self._ssn.tables.tasks.job[task])
        return int(self._ssn.tables.jobs.queue[job]) if job >= 0 else -1

    def compare(self, left: int, right: int) -> int:
        """Below 0: left is evicted first."""
        ssn, jobs, order = self._ssn, self._ssn.tables.tasks.job, self._ssn.order
        if jobs[left] == jobs[right]:
            return -order.compare_tasks(left, right)
        a, b = self._queue_of(left), self._queue_of(right)
        if a < 0 or b < 0:
            return int(a >= 0) - int(b >= 0) or -order.compare_tasks(left, right)
        if a == b or self._preemptor_queue < 0:
            return -order.compare_jobs(int(jobs[left]), int(jobs[right])) or -order.compare_tasks(left, right)
        queues = [Queue(ssn.tables, row) for row in (a, b, self._preemptor_queue)]
        return ssn.ask(points.victim_queue_order, *queues) or -order.compare_queues(a, b)
