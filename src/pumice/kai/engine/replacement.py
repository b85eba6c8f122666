"""Place again in queue order: the part for which victims were evicted, and the victims, each offered one chunk.

The order by which all of them would be placed keeps a job from taking what its victims deserve. All pending jobs take
part in the comparison of queues, but are not placed. Source: KAI TryToVirtuallyAllocatePreemptor.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pumice.columns.dtypes import F64, Bool
from pumice.framework.cycle.session import Session
from pumice.framework.cycle.statement import Statement
from pumice.kai.engine.budget import OFFER_STEPS, steps_of, steps_to_place
from pumice.kai.engine.chunks import chunk_of
from pumice.kai.engine.job_order import Entry
from pumice.kai.engine.next_queue import NextQueue, Waiting
from pumice.kai.engine.parts import Part, needs_gpus
from pumice.kai.engine.placement.place_part import placer


class Replacement:
    """One placement after evictions. ``evicted``: rows of the victims. ``within`` (N,): nodes on which the part is
    placed, and victims with GPUs. ``every``: every victim must find a place, so that the first one without ends the
    simulation."""

    def __init__(
        self,
        ssn: Session,
        stmt: Statement,
        part: Part,
        evicted: Sequence[int],
        waiting: Waiting,
        within: Bool,
        *,
        every: bool = False,
    ) -> None:
        self._every, self._steps = every, steps_of(ssn)
        self.is_part_placed = False
        self._ssn, self._stmt, self._part, self._within = ssn, stmt, part, within
        evicted = list(evicted)
        self._chunks: dict[int, Part | None] = {}
        self._evicted: dict[int, list[int]] = {}
        for row, job in zip(evicted, ssn.tables.tasks.job[evicted].tolist(), strict=True):
            self._evicted.setdefault(job, []).append(row)
        #: By queue, the best one last. The key is None if it is not compared.
        self._entries: dict[int, list[Entry]] = {}
        jobs: dict[int, list[int]] = {}
        for job, leaf in zip(self._evicted, ssn.tables.jobs.queue[list(self._evicted)].tolist(), strict=True):
            jobs.setdefault(leaf, []).append(job)
        own = int(ssn.tables.jobs.queue[part.job])
        # Keys are only needed where victims compete with the part or with pending jobs.
        for leaf, each in jobs.items():
            self._entries[leaf] = self._keyed(each) if leaf == own or waiting.line(leaf) else self._ordered(each)
        # The part is one entry among the victims of its queue, and is placed when the order comes to it.
        self._entries.setdefault(own, []).append((waiting.key_of(part.job), part.job))
        if len(self._entries[own]) > 1:
            self._entries[own].sort(reverse=True)
        self._next = NextQueue(ssn, waiting, part.job, self._entries, {part.job: None, **self._evicted}, self._request)

    def _ordered(self, jobs: list[int]) -> list[Entry]:
        """Return entries without keys, for jobs that are compared with each other only."""
        if len(jobs) > 1:
            jobs = self._ssn.order.jobs_in_order(np.array(jobs))
        return [(None, job) for job in reversed(jobs)]

    def _keyed(self, jobs: list[int]) -> list[Entry]:
        """Return entries with keys, the best last."""
        return sorted(zip(self._ssn.order.job_keys()(jobs), jobs, strict=True), reverse=True)

    def run(self) -> bool:
        """Place in queue order. Return True if the part was placed, and every victim if that is demanded."""
        entries = self._entries
        while entries:
            leaf = self._next.choose() if len(entries) > 1 else next(iter(entries))
            if leaf < 0:
                return False
            _, job = entries[leaf].pop()
            if job == self._part.job:
                # Without the part, the rest of the simulation would be for nothing.
                if not self._place(self._part, self._within):
                    return False
                self.is_part_placed = True
            elif not self._offer(job):
                if self._every:
                    return False
                self._pass_over_equal(leaf, job)
            if not entries[leaf]:
                del entries[leaf]
        return True

    def _offer(self, job: int) -> bool:
        """Offer a victim its next chunk. Return True if it takes the chunk or has none."""
        if not self._steps.spend(OFFER_STEPS):
            return False
        if self._ssn.tables.jobs.groups[job].leaves_whole:
            return self._stays_whole(job)
        chunk = self._chunk(job)
        if chunk is None:
            return True
        within = self._room_of(chunk)
        # Counting first: most victims fit nowhere else, and a placement with all its questions would find the same.
        return not placer(self._ssn).refutes(chunk, within) and self._place(chunk, within)

    def _place(self, part: Part, within: Bool) -> bool:
        """Place a part, all of it or nothing. Return False also if no step is left for it."""
        enough = self._steps.spend(steps_to_place(self._ssn, part.rows))
        return enough and placer(self._ssn).place(self._stmt, part, within, virtual=True) is None

    def _room_of(self, chunk: Part) -> Bool:
        """Return the nodes to which a victim may go: those of the part, and all if it has a task without a GPU."""
        # KAI offers the nodes of the part to all, so that a victim without a GPU leaves although a node without GPUs
        # has room for it (KAI#1939). For a victim with GPUs the other nodes have none.
        return self._within if needs_gpus(self._ssn.tables, chunk) else np.ones_like(self._within)

    def _stays_whole(self, job: int) -> bool:
        """Let a gang that leaves only together keep its nodes. Return False, with nothing changed, if one of its tasks
        has no room there."""
        tables = self._ssn.tables
        with self._stmt.trial() as trial:
            for row in self._evicted[job]:
                # A task that moved would be evicted alone.
                there = np.zeros(len(self._within), dtype=bool)
                there[tables.tasks.node[row]] = True
                part = Part(job, {int(tables.tasks.sub[row]): [row]})
                if not self._place(part, there):
                    return False
            trial.keep()
        return True

    def _pass_over_equal(self, leaf: int, failed: int) -> None:
        """Skip the next jobs of a queue if they equal one that failed: jobs with one task of the same class."""
        entries = self._entries[leaf]
        if not self._is_plain(failed):
            return
        jobs, cls = self._ssn.tables.jobs, self._ssn.tables.tasks.cls
        # A failure changes nothing, so the same queue is chosen again and equal jobs fail again. With hundreds of
        # victims this avoids hundreds of attempts.
        kind = cls[self._evicted[failed][0]], jobs.preemptible[failed]
        while entries:
            job = entries[-1][1]
            # A pending job comes first; it may change which queue is chosen.
            if self._next.is_before(leaf, entries[-1]):
                return
            if job == self._part.job or not self._is_plain(job):
                return
            if (cls[self._evicted[job][0]], jobs.preemptible[job]) != kind:
                return
            entries.pop()

    def _is_plain(self, job: int) -> bool:
        """Return True if a victim job has one task and no topology constraint."""
        jobs = self._ssn.tables.jobs
        return bool(jobs.size[job] == 1 and not jobs.has_topology[job])

    def _request(self, job: int) -> F64 | None:
        """Return what a job asks for, or None for a victim without a chunk."""
        if job == self._part.job:
            return self._part.amount(self._ssn.tables)
        chunk = self._chunk(job)
        return chunk.amount(self._ssn.tables) if chunk is not None else None

    def _chunk(self, job: int) -> Part | None:
        """Return the chunk that a victim is offered; each victim is offered one."""
        if job not in self._chunks:
            self._chunks[job] = chunk_of(self._ssn, job, self._evicted[job])
        return self._chunks[job]
