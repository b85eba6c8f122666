"""Order victims for eviction. Source: Volcano BuildVictimsPriorityQueue."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cmp_to_key
from itertools import pairwise
from typing import Any

import numpy as np

from pumice.columns.dtypes import I64, AnyArray
from pumice.columns.rows import Candidates
from pumice.columns.views import Queue
from pumice.framework.cycle.session import Session
from pumice.model.pod import Pod
from pumice.model.pod_order import compare_pods, name_index
from pumice.volcano import points


def eviction_order(ssn: Session, victims: Sequence[int], preemptor: int) -> list[int]:
    """Return task rows in the order in which they are evicted for a preemptor, by the state before the first eviction.

    Within a job, the last task in task order goes first. Between jobs of one queue, the last job. Between queues,
    plugins compare with the preemptor's queue in mind; without an answer the last queue goes first. Tasks whose job is
    not in the session precede all others. If the preemptor's job is not in the session, queues are not compared.
    """
    # A single victim is the commonest case, and needs no order.
    if len(victims) < 2:
        return list(victims)
    order = _Order(ssn, preemptor)
    rows = np.array(victims)
    job = ssn.tables.tasks.job[rows]
    found = order.by_keys(rows, job) if (job >= 0).all() else None
    return sorted(victims, key=cmp_to_key(order.compare)) if found is None else found


class _Order:
    """The eviction order for one preemptor."""

    def __init__(self, ssn: Session, preemptor: int) -> None:
        self._ssn = ssn
        self._preemptor_queue = self._queue_of(preemptor)

    def _queue_of(self, task: int) -> int:
        """Return the queue of a task's job, -1 if the job is not in the session."""
        job = int(self._ssn.tables.tasks.job[task])
        return int(self._ssn.tables.jobs.queue[job]) if job >= 0 else -1

    def by_keys(self, rows: AnyArray, job: AnyArray) -> list[int] | None:
        """Return rows in order by plugins' keys and then by pods, or None if plugins compare pairs."""
        ssn, queue = self._ssn, self._ssn.tables.jobs.queue[job]
        by_job, by_task = ssn.order.job_columns(job), ssn.order.task_columns(rows)
        if by_job is None or by_task is None:
            return None
        columns = [self.queue_ranks(queue), *(-column for column in by_job + by_task)]
        listed = rows.tolist()
        # Columns in which all tasks agree decide nothing; without them most sorts have one or two keys.
        differing = [column.tolist() for column in columns if (column != column[0]).any()]
        last_first = self._last_first(listed)
        return [row for _, row in sorted(zip(zip(*differing, last_first, strict=True), listed, strict=True))]

    def _last_first(self, rows: list[int]) -> list[Any]:
        """Return sort keys of pods, smaller for pods that are last in task order."""
        pods = [self._ssn.tables.tasks.pods[row] for row in rows]
        index = [name_index(pod.name) for pod in pods]
        # The index in a name is only compared if both names have one, so the order of pairs has no key.
        if None in index:
            last_first: Callable[[Pod], Any] = cmp_to_key(lambda a, b: compare_pods(b, a))
            return [last_first(pod) for pod in pods]
        order = sorted(range(len(pods)), key=lambda i: (index[i], pods[i].creation, pods[i].uid), reverse=True)
        place = dict(zip(order, range(len(pods)), strict=True))
        return [place[i] for i in range(len(pods))]

    def compare(self, left: int, right: int) -> int:
        """Return a number below 0 if ``left`` is evicted first."""
        jobs, order = self._ssn.tables.tasks.job, self._ssn.order
        if jobs[left] == jobs[right]:
            return -order.compare_tasks(left, right)
        a, b = self._queue_of(left), self._queue_of(right)
        if a < 0 or b < 0:
            return int(a >= 0) - int(b >= 0) or -order.compare_tasks(left, right)
        if a == b or self._preemptor_queue < 0:
            return -order.compare_jobs(int(jobs[left]), int(jobs[right])) or -order.compare_tasks(left, right)
        # Without tasks or jobs as a tie-break, as in Volcano: tasks of two queues that compare as equal keep the order
        # in which plugins named them.
        return self._compare_queues(a, b)

    def queue_ranks(self, queue: AnyArray) -> AnyArray:
        """Return ranks of queues, smaller for queues whose tasks are evicted first; equal if queues are not compared.
        Shapes (rows,) -> (rows,)."""
        if self._preemptor_queue < 0 or not (queue != queue[0]).any():
            return np.zeros(len(queue), dtype=np.int64)
        distinct, which = np.unique(queue, return_inverse=True)
        # Queues are sorted once and become numbers, since plugins compare them by a function.
        queues = sorted(distinct.tolist(), key=cmp_to_key(self._compare_queues))
        rank = {row: number for number, row in enumerate(queues)}
        found: AnyArray = np.array([rank[row] for row in distinct.tolist()])[which]
        return found

    def _compare_queues(self, a: int, b: int) -> int:
        """Compare two queues by whose tasks are evicted first."""
        queues = [Queue(self._ssn.tables, row) for row in (a, b, self._preemptor_queue)]
        return self._ssn.ask(points.victim_queue_order, *queues) or -self._ssn.order.compare_queues(a, b)


def eviction_order_by_node(ssn: Session, candidates: Candidates, preemptor: int) -> I64:
    """Return positions of candidates, node by node, each node's in the order of ``eviction_order``. Shape (rows,)."""
    if not len(candidates):
        return np.zeros(0, dtype=np.int64)
    order, job, keys = _Order(ssn, preemptor), candidates.job, [candidates.nth]
    by_job, by_task = ssn.order.job_columns(job), ssn.order.task_columns(candidates.rows)
    if by_job is not None and by_task is not None and (job >= 0).all():
        keys += [order.queue_ranks(candidates.queue), *(-column for column in by_job + by_task)]
    found = np.lexsort(keys[::-1])
    differs = np.zeros(len(found), dtype=bool)
    for key in keys:
        differs[1:] |= key[found][1:] != key[found][:-1]
    # Array keys settle most of the order. Only runs of equal keys are compared pair by pair.
    starts, rows = [0, *differs.nonzero()[0].tolist(), len(found)], candidates.rows.tolist()
    for start, end in pairwise(starts):
        if end - start > 1:
            equal: list[int] = found[start:end].tolist()
            found[start:end] = sorted(equal, key=cmp_to_key(lambda a, b: order.compare(rows[a], rows[b])))
    return found
