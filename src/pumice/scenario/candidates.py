"""Who would leave, the worst first: queues and jobs in the order of turns, backwards; an elastic job gives its extra
tasks one by one. Source: KAI victims queue, GetTasksToEvict."""

from __future__ import annotations

from bisect import insort
from collections.abc import Collection, Iterator
from typing import Any

import numpy as np

from pumice.columns.dtypes import F64, AnyArray
from pumice.columns.rows import JobRows
from pumice.framework import points
from pumice.framework.session import Session
from pumice.scenario.chunks import active_tasks, victims_of
from pumice.scenario.parts import Chunk, amount_of
from pumice.scenario.points import Turn
from pumice.scenario.turns import best_leaf

_Waiting = tuple[Any, int]


class Candidates:
    """Jobs of which tasks may leave."""

    def __init__(self, ssn: Session, jobs: AnyArray) -> None:
        self._ssn = ssn
        self._jobs = jobs
        keys = ssn.order.job_keys()(jobs.tolist())
        self._sorted: dict[int, list[_Waiting]] = {}
        queue = ssn.tables.jobs.queue
        for key, job in sorted(zip(keys, jobs.tolist(), strict=True)):
            self._sorted.setdefault(int(queue[job]), []).append((key, job))

    def chunks(self, recorded: Collection[int]) -> Iterator[Chunk]:
        """All chunks, the worst first; those that hold a recorded victim are left out, and their other tasks come later
        by themselves."""
        ssn, tables = self._ssn, self._ssn.tables
        waiting = {leaf: list(each) for leaf, each in self._sorted.items()}
        left: dict[int, dict[int, list[int]]] = {}
        popped: dict[int, F64] = {}
        node = tables.tasks.node
        while waiting:
            leaf = self._last(waiting, left, popped)
            _, job = waiting[leaf].pop()
            tasks = left.get(job)
            if tasks is None:
                tasks = active_tasks(ssn, job)
            rows = victims_of(ssn, job, tasks)
            popped[leaf] = popped.get(leaf, 0.0) + amount_of(tables, [row for each in tasks.values() for row in each])
            gone: Collection[int] = rows
            skipped = bool(recorded) and not recorded_free(rows, recorded)
            if skipped:
                gone = recorded
            rest = {sub: kept for sub, each in tasks.items() if (kept := [row for row in each if row not in gone])}
            if rest:
                left[job] = rest
                insort(waiting[leaf], (self._key(job, rest), job))
            if not waiting[leaf]:
                del waiting[leaf]
            if rows and not skipped:
                yield Chunk(job, tuple(rows), tuple(dict.fromkeys(node[rows].tolist())))

    def _last(self, waiting: dict[int, list[_Waiting]], left: dict[int, dict[int, list[int]]], popped: Any) -> int:
        """The queue whose turn is the last, counting off what went of it and what would go next."""
        if len(waiting) == 1:
            return next(iter(waiting))
        turns = {}
        for leaf, jobs in waiting.items():
            job = jobs[-1][1]
            tasks = left.get(job)
            held = (
                amount_of(self._ssn.tables, [row for each in tasks.values() for row in each])
                if tasks is not None
                else self._ssn.tables.jobs.allocated[job]
            )
            turns[leaf] = Turn(leaf, None, popped.get(leaf, 0.0) + held)
        return best_leaf(self._ssn, turns, last=True)

    def _key(self, job: int, rest: dict[int, list[int]]) -> Any:
        """The key of a job of which only so many tasks are left."""
        ssn, tables = self._ssn, self._ssn.tables
        active = {sub: len(rest.get(sub, ())) for sub in tables.jobs.subs[job]}
        rows = JobRows(tables, np.array([job]), active)
        columns = [column.tolist() for column in ssn.ask(points.jobs_keyed, rows)]
        return (*(column[0] for column in columns), float(tables.jobs.creation[job]), tables.jobs.uids[job])


def recorded_free(rows: list[int], recorded: Collection[int]) -> bool:
    """Whether none of the rows is recorded."""
    return not any(row in recorded for row in rows)
