"""List candidates for eviction, the worst first: the order of queues and jobs reversed, and elastic jobs lose extra
tasks one by one. Source: KAI victims queue, GetTasksToEvict.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Collection, Iterable, Iterator
from heapq import merge
from itertools import islice
from typing import Any

import numpy as np

from pumice.columns.dtypes import F64, AnyArray
from pumice.columns.job_rows import JobRows
from pumice.framework.cycle.session import Session
from pumice.framework.plugin import points
from pumice.kai.engine.budget import steps_of
from pumice.kai.engine.chunks import active_tasks, victims_of
from pumice.kai.engine.job_order import Entry, SortedJobs
from pumice.kai.engine.parts import Chunk, amount_of
from pumice.kai.engine.points import QueueRequest
from pumice.kai.engine.tree_order import best_leaf

_Left = dict[int, list[int]]


class _Line:
    """Jobs of one queue, taken from the end: jobs in their sorted order, and jobs that lost tasks and came back."""

    def __init__(self, entries: list[Entry], may_leave: Callable[[int], bool]) -> None:
        # An index into the shared list instead of a copy: a search usually takes few of many jobs.
        self._entries, self._may_leave, self._at = entries, may_leave, len(entries)
        self.back: list[Entry] = []

    def last(self) -> Entry | None:
        """Return the worst job, None if there is none left."""
        while self._at and not self._may_leave(self._entries[self._at - 1][1]):
            self._at -= 1
        own = self._entries[self._at - 1] if self._at else None
        if not self.back:
            return own
        return self.back[-1] if own is None or self.back[-1] > own else own

    def pop(self, entry: Entry) -> None:
        """Remove the worst job."""
        if self.back and self.back[-1] is entry:
            self.back.pop()
        else:
            self._at -= 1


class Candidates:
    """Jobs with tasks that may be evicted, in ``queues``.

    ``may_leave``: whether a job may be evicted. ``most``: only so many jobs may, the worst ones; below 0 there is no
    limit. ``known``: chunks in order, as far as they have been computed. ``simple``: per chunk, whether it is a whole
    job on one node.
    """

    def __init__(
        self,
        ssn: Session,
        sorted_jobs: SortedJobs,
        queues: Collection[int],
        may_leave: Callable[[int], bool],
        *,
        most: int = -1,
    ) -> None:
        self._ssn, self._sorted, self._queues, self._may_leave = ssn, sorted_jobs, queues, may_leave
        self._worst = None if most < 0 else self._worst_jobs(most)
        self._steps = steps_of(ssn)
        self.known: list[Chunk] = []
        self.simple: list[bool] = []
        self._place_of: dict[int, int] = {}
        self._node: AnyArray = np.zeros(0, dtype=np.int64)
        self._held: F64 = np.zeros((0, len(ssn.tables.axis)))
        # Lazy: most searches end after few of perhaps thousands of candidates.
        self._coming = self.chunks(())

    def _worst_jobs(self, most: int) -> dict[int, list[Entry]]:
        """Return, by queue, the entries of the worst jobs that may be evicted, sorted."""
        found: dict[int, list[Entry]] = {}
        # KAI cuts the list in the order of a Go map, which is random, and keeps one job more than the limit. Here,
        # those that the job order would evict first are kept.
        in_order = merge(*(reversed(self._sorted.line(leaf)) for leaf in self._queues), reverse=True)
        allowed = (entry for entry in in_order if self._may_leave(entry[1]))
        for entry in islice(allowed, most):
            found.setdefault(int(self._ssn.tables.jobs.queue[entry[1]]), []).append(entry)
        return {leaf: entries[::-1] for leaf, entries in found.items()}

    def _line(self, leaf: int) -> _Line:
        """Return the jobs of a queue that may be evicted."""
        entries = self._sorted.line(leaf) if self._worst is None else self._worst.get(leaf, [])
        return _Line(entries, self._may_leave)

    def __bool__(self) -> bool:
        return self.reach(1) > 0

    def reach(self, count: int) -> int:
        """Compute up to ``count`` chunks, and return how many are known."""
        while len(self.known) < count:
            chunk = next(self._coming, None)
            if chunk is None:
                break
            self.known.append(chunk)
            held = int(self._ssn.tables.jobs.size[chunk.job])
            # Such chunks can be counted as rows of arrays, because what they free is on one node and nothing of the job
            # remains.
            self.simple.append(len(chunk.nodes) == 1 and held == len(chunk.rows))
        return len(self.known)

    def places(self, rows: Iterable[int], count: int) -> list[int]:
        """Return which of the first ``count`` chunks begin with one of these rows."""
        for place in range(len(self._place_of), len(self.known)):
            self._place_of[self.known[place].rows[0]] = place
        found = (self._place_of.get(row, count) for row in rows)
        return [place for place in found if place < count]

    def in_rows(self, count: int) -> tuple[AnyArray, F64]:
        """Return the node and the resources of each of the first ``count`` chunks, which must be simple.
        Shapes (count,), (count, R)."""
        done = len(self._node)
        # Only new chunks are converted; the arrays grow with the window.
        if count > done:
            tables, new = self._ssn.tables, self.known[done:count]
            rows: AnyArray = np.array([row for chunk in new for row in chunk.rows])
            held = tables.classes.frees[tables.tasks.cls[rows]]
            if len(rows) > len(new):
                lengths = [len(chunk.rows) for chunk in new]
                held = np.add.reduceat(held, np.concatenate(([0], np.cumsum(lengths)[:-1])), axis=0)
            self._node = np.concatenate((self._node, [chunk.nodes[0] for chunk in new])).astype(np.int64)
            self._held = np.concatenate((self._held, held))
        return self._node[:count], self._held[:count]

    def chunks(self, recorded: Collection[int]) -> Iterator[Chunk]:
        """Yield all chunks, the worst first. Chunks with a recorded victim are left out, and their other tasks follow
        separately."""
        ssn, tables = self._ssn, self._ssn.tables
        lines = {leaf: self._line(leaf) for leaf in self._queues}
        left: dict[int, _Left] = {}
        popped: dict[int, F64] = {}
        if len(lines) == 1:
            yield from self._alone(next(iter(lines.values())), recorded)
        while True:
            last = {leaf: entry for leaf, line in lines.items() if (entry := line.last()) is not None}
            # With many queues this comparison is the largest cost of a search on a full cluster.
            if not last or not self._steps.compare(len(last)):
                return
            leaf = self._last(last, left, popped)
            entry = last[leaf]
            lines[leaf].pop(entry)
            job = entry[1]
            tasks = left.get(job)
            if tasks is None:
                tasks = active_tasks(ssn, job)
            rows = victims_of(ssn, job, tasks)
            if len(lines) > 1:
                # Later comparisons count a queue without what was taken from it, although nothing is evicted yet.
                popped[leaf] = popped.get(leaf, 0.0) + _held(ssn, tasks)
            skipped = bool(recorded) and any(row in recorded for row in rows)
            gone: Collection[int] = recorded if skipped else rows
            # A job that loses one of its extra tasks stays a candidate with the others.
            if skipped or len(rows) < sum(map(len, tasks.values())):
                rest = {sub: kept for sub, each in tasks.items() if (kept := [row for row in each if row not in gone])}
                if rest:
                    left[job] = rest
                    # Sorted among those that came back, since with fewer tasks a job may have another place in the
                    # order.
                    insort(lines[leaf].back, (self._key(job, rest), job))
            if rows and not skipped:
                if not self._steps.consider():
                    return
                yield Chunk(job, tuple(rows), tuple(dict.fromkeys(tables.tasks.node[rows].tolist())))

    def _alone(self, line: _Line, recorded: Collection[int]) -> Iterator[Chunk]:
        """Yield the last jobs of the only queue while they have one task each."""
        tables, known = self._ssn.tables, self._sorted.alone
        # With one queue nothing is compared, and the chunk of a job with one task is the same in every search, so it
        # is cached.
        size, tasks = tables.jobs.size, tables.jobs.tasks
        while (entry := line.last()) is not None:
            job = entry[1]
            chunk = known.get(job)
            if chunk is None:
                if size[job] != 1:
                    return
                row = int(tasks[job][0])
                chunk = known[job] = Chunk(job, (row,), (int(tables.tasks.node[row]),))
            line.pop(entry)
            # A pod may name a node that does not exist. Its eviction would free nothing.
            if chunk.rows[0] not in recorded and chunk.nodes[0] >= 0:
                if not self._steps.consider():
                    return
                yield chunk

    def _last(self, last: dict[int, Entry], left: dict[int, _Left], popped: dict[int, F64]) -> int:
        """Return the queue that is last, without what was taken from it and what would be taken next."""
        if len(last) == 1:
            return next(iter(last))
        requests = {}
        for leaf, (_, job) in last.items():
            tasks = left.get(job)
            held = _held(self._ssn, tasks if tasks is not None else active_tasks(self._ssn, job))
            requests[leaf] = QueueRequest(leaf, None, popped.get(leaf, 0.0) + held)
        # Victims come from the queue that would be served last. It is the same comparison as for pending jobs,
        # reversed, so that a queue does not lose what it would at once be given back.
        return best_leaf(self._ssn, requests, last=True)

    def _key(self, job: int, rest: _Left) -> Any:
        """Return the key of a job as if only these tasks were left."""
        ssn, tables = self._ssn, self._ssn.tables
        # Hooks of the job order read how many tasks are active, which the tables do not say: nothing has been evicted
        # yet.
        active = {sub: len(rest.get(sub, ())) for sub in tables.jobs.subs[job]}
        rows = JobRows(tables, np.array([job]), active)
        columns = [column.tolist() for column in ssn.ask(points.jobs_keyed, rows)]
        return (*(column[0] for column in columns), float(tables.jobs.creation[job]), tables.jobs.uids[job])


def _held(ssn: Session, tasks: _Left) -> F64:
    """Return what tasks hold. Shape (R,)."""
    return amount_of(ssn.tables, [row for each in tasks.values() for row in each])
