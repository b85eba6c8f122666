"""Why a gang waits, in numbers that people read.

Source: KAI's fit errors: which there are and which numbers they have.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple

import numpy as np

from pumice.columns.counting import PENDING
from pumice.columns.dtypes import EPS, F64
from pumice.columns.nodes import FUTURE
from pumice.columns.queues import SHARED
from pumice.columns.tables import Tables
from pumice.kai.amounts import shared
from pumice.kai.engine.parts import amount_of
from pumice.kai.engine.place_part import NO_ROOM
from pumice.kai.engine.tree_order import QueueTree
from pumice.kai.reasons import NON_PREEMPTIBLE_OVER_QUOTA, OVER_LIMIT, POD_SCHEDULING_ERRORS, QUEUE_DOES_NOT_EXIST
from pumice.kai.usage import amounts_by_queue, summed_up

#: What a reason begins with that is about the queue itself.
QUEUE = "queue "
#: How amounts of cpu, memory and GPUs are told: unit, and by what they are divided.
_UNITS = {"cpu": ("CPU cores", 1e3), "memory": ("GB of memory", 1e9), "gpu": ("GPUs", 1e3)}


class Told(NamedTuple):
    """A reason that programs know, and the message."""

    reason: str
    message: str


class Waits(NamedTuple):
    """``why``: what a try came to. ``cut``: which searches ended before they were through, so that it is no proof."""

    why: str
    cut: str = ""


def reason_of(why: str) -> str:
    """The reason that programs know, of what a try came to."""
    if why in (OVER_LIMIT, NON_PREEMPTIBLE_OVER_QUOTA):
        return why
    return QUEUE_DOES_NOT_EXIST if why.startswith(QUEUE) else POD_SCHEDULING_ERRORS


class Words:
    """What is to be said of the jobs of one session when it ends. Jobs that are alike are told the same text, which is
    made once."""

    def __init__(self, tables: Tables, tree: QueueTree) -> None:
        self._tables, self._tree = tables, tree
        self._known: dict[Hashable, Told] = {}
        self._sums: tuple[F64, F64] | None = None
        jobs = tables.jobs
        columns = (jobs.signature, jobs.queue, jobs.preemptible, jobs.counts[:, PENDING])
        self._alike: list[tuple[int, ...]] = list(zip(*(column.tolist() for column in columns), strict=True))

    def of(self, job: int, why: Waits) -> Told:
        """What is to be said of a job that waits."""
        alike = self._alike[job]
        key = (alike, why) if alike[0] >= 0 else (job, why)
        found = self._known.get(key)
        if found is None:
            found = self._told(job, why.why)
            if why.cut:
                found = found._replace(message=f"{found.message} Not all was tried: {why.cut}.")
            self._known[key] = found
        return found

    def _told(self, job: int, why: str) -> Told:
        reason = reason_of(why)
        if reason == QUEUE_DOES_NOT_EXIST:
            return Told(reason, why)
        return Told(reason, self._of_nodes(job, why) if reason == POD_SCHEDULING_ERRORS else self._of_quota(job, why))

    # -- queues --------------------------------------------------------------------------------------------------------

    def _of_quota(self, job: int, why: str) -> str:
        """Which queue on the way up has no more to give, and of what."""
        tables = self._tables
        queues, names = tables.queues, tables.queues.names
        asked = shared(tables, amount_of(tables, self._missing(job)))
        allocated, held_fast = self._sums_up()
        held, most = (allocated, queues.limit) if why == OVER_LIMIT else (held_fast, queues.quota)
        for queue in self._tree.path[int(tables.jobs.queue[job])]:
            for i, name in enumerate(SHARED):
                if asked[i] and held[queue, i] + asked[i] > most[queue, i]:
                    return _quota_text(names[queue], name, most[queue, i], held[queue, i], asked[i], why)
        return f"queue {names[int(tables.jobs.queue[job])]} had no more to give when it was the workload's turn"

    def _sums_up(self) -> tuple[F64, F64]:
        if self._sums is None:
            own = amounts_by_queue(self._tables)[:2]
            self._sums = summed_up(self._tree, own[0]), summed_up(self._tree, own[1])
        return self._sums

    def _missing(self, job: int) -> list[int]:
        """Waiting tasks of a job, as many as it lacks of its minimum, at least one."""
        tables = self._tables
        rows = [row for row in tables.jobs.tasks[job].tolist() if tables.tasks.status[row] == 0]
        lacks = max(int(tables.jobs.min_available[job]) - int(tables.jobs.counts[job, 1:6].sum()), 1)
        return rows[:lacks]

    # -- nodes ---------------------------------------------------------------------------------------------------------

    def _of_nodes(self, job: int, why: str) -> str:
        """How many nodes lack what for the first of its tasks, and what stands against the others."""
        tables, rows = self._tables, self._missing(job)
        request, free = tables.classes.req[tables.tasks.cls[rows[0]]], tables.nodes.books[:, FUTURE]
        short = (request > 0) & (free < request - EPS)
        counts = zip(tables.axis.names, short.sum(axis=0).tolist(), strict=False)
        parts = [f"{count} node(s) didn't have enough {name}" for name, count in sorted(counts) if count]
        others = len(free) - int(np.count_nonzero(short.any(axis=1)))
        if others and len(rows) > 1 and why == NO_ROOM:
            parts.append(
                f"{others} node(s) have room for it, but not for all {len(rows)} pods that must start together"
            )
        elif others or not parts:
            parts.append(f"{others} node(s) are out: {why}")
        return f"0/{len(free)} nodes are available for pod {tables.tasks.pods[rows[0]].name}: {'; '.join(parts)}."


def _quota_text(queue: str, name: str, most: float, held: float, asked: float, why: str) -> str:
    unit, by = _UNITS[name]
    limit, has, wants = (f"{amount / by:.4g}" for amount in (most, held, asked))
    if why == OVER_LIMIT:
        reached = f"{queue} has reached its limit of {unit}"
        return f"{reached}: the limit is {limit}, {has} allocated, the workload asks for {wants}"
    return (
        f"a workload that is not preemptible must stay within the quota: that of {queue} is {limit} {unit},"
        f" {has} allocated to such workloads, and it asks for {wants}; a preemptible one may go over the quota"
    )
