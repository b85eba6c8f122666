"""Placing in turn order: the part that room is made for, and those that left for it, each offered one chunk.

Who would get what if all of them asked now is what keeps a job from taking what its victims deserve. All jobs that wait
take part in comparing queues, and are passed over when their turn comes. Source: KAI TryToVirtuallyAllocatePreemptor.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from pumice.columns.dtypes import F64, AnyArray, Bool
from pumice.columns.rows import JobRows
from pumice.framework import points
from pumice.framework.session import Session
from pumice.framework.statement import Statement
from pumice.scenario.chunks import chunk_of
from pumice.scenario.parts import Part, amount_of
from pumice.scenario.placing import placer
from pumice.scenario.points import Turn
from pumice.scenario.turns import best_leaf

_Entry = tuple[Any, int]


class Waiting:
    """All jobs that wait, by queue, the best one first; kept in step with what is committed."""

    def __init__(self, ssn: Session, rows: AnyArray) -> None:
        self._ssn = ssn
        self._requests: dict[int, tuple[float, ...]] = {}
        self._key_of: dict[int, Any] = {}
        self.queues: dict[int, list[_Entry]] = {}
        queue = ssn.tables.jobs.queue
        for key, job in sorted(zip(ssn.order.job_keys()(rows.tolist()), rows.tolist(), strict=True)):
            self.queues.setdefault(int(queue[job]), []).append((key, job))
            self._key_of[job] = key

    def request(self, job: int) -> tuple[float, ...]:
        """What a job would be tried with, as a value."""
        found = self._requests.get(job)
        if found is None:
            part = chunk_of(self._ssn, job)
            amount = amount_of(self._ssn.tables, part.rows).tolist() if part is not None else ()
            found = self._requests[job] = tuple(amount)
        return found

    def changed(self, jobs: Iterable[int]) -> None:
        """Tasks of some jobs moved for good."""
        ssn = self._ssn
        for job in jobs:
            queue = int(ssn.tables.jobs.queue[job])
            self._requests.pop(job, None)
            old = self._key_of.pop(job, None)
            if old is not None:
                self.queues[queue].remove((old, job))
            if old is not None and chunk_of(ssn, job) is not None:
                key = self._key_of[job] = ssn.order.job_keys()([job])[0]
                insort(self.queues[queue], (key, job))


class Contest:
    """``evicted``: rows that left; ``within`` (N,): where all are placed."""

    def __init__(
        self,
        ssn: Session,
        stmt: Statement,
        part: Part,
        evicted: Sequence[int],
        waiting: Waiting,
        within: Bool,
    ) -> None:
        self._ssn, self._stmt, self._part, self._within, self._waiting = ssn, stmt, part, within, waiting
        tables = ssn.tables
        job_of = tables.tasks.job
        self._evicted: dict[int, set[int]] = {}
        for row in evicted:
            self._evicted.setdefault(int(job_of[row]), set()).add(row)
        self._entries: dict[int, list[_Entry]] = {}
        keys = ssn.order.job_keys()(list(self._evicted)) if self._evicted else []
        for key, job in zip(keys, self._evicted, strict=True):
            self._entries.setdefault(int(tables.jobs.queue[job]), []).append((key, job))
        own = self._key_of_part()
        self._entries.setdefault(int(tables.jobs.queue[part.job]), []).append((own, part.job))
        for each in self._entries.values():
            each.sort()

    def _key_of_part(self) -> Any:
        """A part is a job of which nothing is placed yet."""
        ssn, tables, job = self._ssn, self._ssn.tables, self._part.job
        rows = JobRows(tables, np.array([job]), dict.fromkeys(tables.jobs.subs[job], 0))
        columns = [column.tolist() for column in ssn.ask(points.jobs_keyed, rows)]
        return (*(column[0] for column in columns), float(tables.jobs.creation[job]), tables.jobs.uids[job])

    def run(self) -> bool:
        """Whether the part was placed."""
        entries = self._entries
        passed = dict.fromkeys(self._waiting.queues, 0)
        while entries:
            leaf = self._next(passed) if len(entries) > 1 else next(iter(entries))
            if leaf not in entries:
                continue
            _, job = entries[leaf].pop(0)
            if not entries[leaf]:
                del entries[leaf]
            if not self._place(job):
                return False
        return True

    def _place(self, job: int) -> bool:
        """Offer a job its chunk. False: it was the part, and it found no place."""
        if job == self._part.job:
            return placer(self._ssn).place(self._stmt, self._part, self._within, virtual=True)
        chunk = chunk_of(self._ssn, job, self._evicted[job])
        if chunk is not None:
            placer(self._ssn).place(self._stmt, chunk, self._within, virtual=True)
        return True

    def _next(self, passed: dict[int, int]) -> int:
        """The queue that goes next; -1 where a job of it that takes no part was passed over."""
        turns: dict[int, Turn] = {}
        bystander: dict[int, _Entry | None] = {}
        for leaf in {**dict.fromkeys(self._waiting.queues), **dict.fromkeys(self._entries)}:
            request = self._turn(leaf, passed, bystander)
            if request is not None:
                turns[leaf] = Turn(leaf, request)
        leaf = best_leaf(self._ssn, turns)
        if leaf not in bystander:
            return leaf
        self._pass_over(leaf, passed, bystander[leaf])
        return -1

    def _turn(self, leaf: int, passed: dict[int, int], bystander: dict[int, _Entry | None]) -> F64 | None:
        waiting, at = self._waiting.queues.get(leaf, ()), passed.get(leaf, 0)
        while at < len(waiting) and self._takes_part(waiting[at][1]):
            at = passed[leaf] = at + 1
        own = self._entries.get(leaf)
        if at < len(waiting) and (not own or waiting[at] < own[0]):
            bystander[leaf] = own[0] if own else None
            return np.array(self._waiting.request(waiting[at][1]))
        if not own:
            return None
        return self._request(own[0][1])

    def _takes_part(self, job: int) -> bool:
        return job == self._part.job or job in self._evicted

    def _request(self, job: int) -> F64 | None:
        if job == self._part.job:
            return amount_of(self._ssn.tables, self._part.rows)
        chunk = chunk_of(self._ssn, job, self._evicted[job])
        return amount_of(self._ssn.tables, chunk.rows) if chunk is not None else None

    def _pass_over(self, leaf: int, passed: dict[int, int], before: _Entry | None) -> None:
        """Pass over the next job of a queue, and those behind it that ask for as much: nothing was placed, so the queue
        goes on being the one that goes next."""
        waiting, at = self._waiting.queues[leaf], passed[leaf]
        request = self._waiting.request(waiting[at][1])
        while at < len(waiting) and (before is None or waiting[at] < before):
            job = waiting[at][1]
            if not self._takes_part(job) and self._waiting.request(job) != request:
                break
            at += 1
        passed[leaf] = at
