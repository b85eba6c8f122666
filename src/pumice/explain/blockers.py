"""What stands in the way of each job that waits, made from what one cycle left behind.

The trace holds findings that equal jobs share; here the blockers of one job are made from them, for that job alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np
from msgspec.structs import replace

from pumice.algorithms.groups import distinct
from pumice.columns.counting import PIPELINED
from pumice.columns.dtypes import AnyArray
from pumice.columns.jobs import PENDING_PHASE
from pumice.columns.tasks import NO_GATE
from pumice.columns.views import Job
from pumice.framework.cycle.outcome import Outcome
from pumice.framework.cycle.trace import Entry, is_invalid
from pumice.framework.plugin.filter_result import FitErrors
from pumice.kai.engine.parts import may_wait
from pumice.kai.engine.tree_order import QueueTree
from pumice.kai.status import why_not_placed, why_not_tried
from pumice.kai.words import Waits
from pumice.model.blockers import (
    CLOSED,
    DESERVED,
    TASK,
    Behind,
    Blocker,
    GangIncomplete,
    GangPartial,
    Gated,
    NotAdmitted,
    QueueLimit,
    Refused,
    Reserved,
    Shortage,
    Unreadable,
)
from pumice.model.status import TaskStatus


class Blockers:
    """Of the jobs of one session. Shapes: J jobs, R resources."""

    def __init__(self, outcome: Outcome) -> None:
        self._outcome, self._tables, self._trace = outcome, outcome.tables, outcome.trace

    @property
    def waiting(self) -> AnyArray:
        """Rows of the jobs that wait for admission, or of which some pod waits for a node, rising."""
        jobs, live = self._tables.jobs, self._outcome.live_jobs
        counts = jobs.counts[live]
        waits = (counts[:, TaskStatus.PENDING] > 0) | (counts[:, PIPELINED] > 0)
        asks = (jobs.phase[live] == PENDING_PHASE) & ~np.array(
            [self._is_gang(job) for job in live.tolist()], dtype=bool
        )
        found: AnyArray = live[waits | asks]
        return found

    def _is_gang(self, job: int) -> bool:
        """Return True for a gang of KAI's, which needs no admission."""
        return self._tables.jobs.groups[job].gang is not None

    def of(self, job: int) -> tuple[Blocker, ...]:
        """Of one that waits, by row: at least one, the nearest first."""
        group, uid = self._tables.jobs.groups[job], self._tables.jobs.uids[job]
        if group.unread:
            return (Unreadable(f"PodGroup {uid}", group.unread[0]),)
        own = self._of_gang(job) if self._is_gang(job) else self._of_job(job)
        return tuple(dict.fromkeys([*self._reserved(job), *own])) or (Behind(),)

    # -- both languages ------------------------------------------------------------------------------------------------

    def _reserved(self, job: int) -> Iterator[Reserved]:
        tables = self._tables
        rows = tables.jobs.tasks[job]
        nodes = distinct(tables.tasks.node[rows[tables.tasks.status[rows] == TaskStatus.PIPELINED]])
        if len(nodes):
            leaving = np.isin(tables.tasks.node, nodes) & (tables.tasks.status == TaskStatus.RELEASING)
            names = tuple(tables.nodes.facts.names[node] for node in nodes.tolist())
            yield Reserved(tables.jobs.uids[job], names, leaving=bool(leaving.any()))

    def _gated(self, job: int) -> Iterator[Gated]:
        """Gates that hold back so many of its waiting pods that it cannot start; of one that runs, all of them."""
        tasks, rows = self._tables.tasks, self._waiting_rows(job)
        held = [row for row in rows if tasks.gate[row] != NO_GATE]
        if held and len(rows) - len(held) < max(1, Job(self._tables, job).missing_count):
            yield Gated(tuple(sorted({gate for row in held for gate in tasks.pods[row].gates})), len(held))

    def _waiting_rows(self, job: int) -> list[int]:
        rows = self._tables.jobs.tasks[job]
        found: list[int] = rows[self._tables.tasks.status[rows] == TaskStatus.PENDING].tolist()
        return found

    # -- Volcano's jobs ------------------------------------------------------------------------------------------------

    def _of_job(self, job: int) -> Iterator[Blocker]:
        jobs, queues = self._tables.jobs, self._tables.queues
        queue = int(jobs.queue[job])
        if jobs.phase[job] == PENDING_PHASE:
            closed = () if queues.open[queue] else (QueueLimit(queues.names[queue], CLOSED),)
            yield NotAdmitted((*closed, *self._rejected.get(job, ())))
            return
        findings = [entry.finding for entry in self._found.get(jobs.uids[job], ())]
        own = [finding for finding in findings if isinstance(finding, Blocker)]
        yield from (finding for finding in own if is_invalid(finding))
        if not any(isinstance(finding, GangIncomplete) for finding in own):
            yield from self._incomplete(job)
        against = [*self._no_node(job), *(finding for finding in own if not is_invalid(finding))]
        if self._placed(job):
            first = against[0] if against else None
            yield GangPartial(self._placed(job), int(jobs.min_available[job]), first)
        yield from against
        yield from self._gated(job)
        if not own and any(each.finding == QueueLimit(each.subject, DESERVED) for each in self._of_queue(queue)):
            yield QueueLimit(queues.names[queue], DESERVED)

    def _incomplete(self, job: int) -> Iterator[GangIncomplete]:
        """An action that asks of single tasks passes over a gang with too few pods without a word."""
        handle = Job(self._tables, job)
        if handle.valid_count < handle.min_available:
            yield GangIncomplete("", handle.valid_count, handle.min_available)

    def _of_queue(self, queue: int) -> list[Entry]:
        return self._found.get(self._tables.queues.names[queue], [])

    def _no_node(self, job: int) -> Iterator[Blocker]:
        """What stood in the way of the first of its tasks that found no node."""
        for row, errors in self._trace.errors_of(job).items():
            if not errors.skipped:
                yield from self.of_task(row, errors)
                return

    def of_task(self, row: int, errors: FitErrors) -> Iterator[Blocker]:
        """What stood in the way of one task, that which most nodes say first."""
        if errors.message:
            yield Refused(TASK, errors.message)
        job = int(self._tables.tasks.job[row])
        wanted = max(1, int(self._tables.jobs.min_available[job]) - self._placed(job))
        for each in sorted(errors.against, key=lambda each: -each.nodes):
            yield replace(each, wanted=wanted) if isinstance(each, Shortage) else each

    def _placed(self, job: int) -> int:
        """How many of its tasks the last try had placed before it was undone."""
        trace = self._trace.undone_of(job)
        return 0 if trace is None else int(np.count_nonzero(trace.status == TaskStatus.ALLOCATED))

    @cached_property
    def _found(self) -> dict[str, list[Entry]]:
        """What the trace says of a job or a queue, by its key."""
        found: dict[str, list[Entry]] = {}
        for entry in self._trace.entries:
            found.setdefault(entry.subject, []).append(entry)
        return found

    @cached_property
    def _rejected(self) -> dict[int, list[Blocker]]:
        found: dict[int, list[Blocker]] = {}
        for rows, why in self._trace.rejected:
            for row in rows.tolist():
                found.setdefault(row, []).append(why)
        return found

    # -- gangs of KAI --------------------------------------------------------------------------------------------------

    def _of_gang(self, job: int) -> Iterator[Blocker]:
        waits = self._not_placed.get(job)
        yield from self._gated(job)
        for entry in self._found.get(self._tables.jobs.uids[job], ()):
            if isinstance(entry.finding, Blocker):
                yield entry.finding
        if waits is not None:
            yield waits.why
            yield from waits.cut
        elif not may_wait(self._tables, job):
            rows, minimum = self._tables.jobs.tasks[job], int(self._tables.jobs.min_available[job])
            yield GangIncomplete("", len(rows), minimum)

    @cached_property
    def _not_placed(self) -> dict[int, Waits]:
        if all(group is None or group.gang is None for group in self._tables.jobs.groups):
            return {}
        return why_not_placed(self._trace) | why_not_tried(self._tables, QueueTree(self._tables))


def blockers_of(outcome: Outcome) -> dict[str, tuple[Blocker, ...]]:
    """By PodGroup key: what stands in the way of each job of the session that waits."""
    found = Blockers(outcome)
    return {outcome.tables.jobs.uids[job]: found.of(job) for job in found.waiting.tolist()}
