"""Remember nodes on which victims would not free enough for a task, so that plugins are not asked about them again.

Votes about a node hold while all is unchanged that plugins read: the node, the jobs of the tasks that run there, and
what the hooks declare besides (``reads=``). If all hooks answer equally for equal jobs, tasks are equal if their class
is equal and their jobs agree in scheduling signature, priority and tasks by status. Otherwise a task is equal to itself
only, while its job is unchanged.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple

import numpy as np

from pumice.columns.dtypes import I64, AnyArray, Bool
from pumice.columns.rows import Candidates
from pumice.columns.views import Task
from pumice.framework.cycle.session import Session
from pumice.framework.memo import Ground, ground
from pumice.framework.plugin.point import QUEUES, MultiFormQuestion
from pumice.framework.plugin.resolution import Reading
from pumice.model.status import PREEMPTABLE_STATUSES

#: A question about victims.
Votes = MultiFormQuestion[[Task, Candidates], Bool]
#: Up to so many changed jobs are looked up one by one.
#: Either way gives the same answer; a pass over all tasks pays off for many jobs only.
_FEW = 16
_RUNS = sorted(map(int, PREEMPTABLE_STATUSES))


class Refutation(NamedTuple):
    """Nodes that are ruled out, ``refuted`` (N,), as of these stamps of nodes, jobs and queues. Replaced and never
    modified."""

    refuted: Bool
    nodes: I64
    jobs: I64
    queues: I64


class RefutedNodes:
    """The nodes that ``votes`` rule out, for tasks by row (K,) and where they run.

    The answers are in the memo, under the versions of what was read besides rows. Rows of nodes that changed are
    dropped. ``offered``: which of the tasks are offered.
    """

    def __init__(self, ssn: Session, votes: Votes, rows: AnyArray, offered: Hashable = ()) -> None:
        world, self._tables, self._memo = ssn.world, ssn.tables, ssn.memo
        tasks, nodes = ssn.tables.tasks, ssn.tables.nodes
        job, node = tasks.job[rows], tasks.node[rows]
        # Sorted by job, so that a job that changed finds its nodes by a slice.
        order = job.argsort(kind="stable")
        self._nodes_by_job, self._jobs_in_order = node[order], job[order]
        self._job_starts = np.searchsorted(job[order], np.arange(self._tables.jobs.capacity + 1))
        about = ssn.hooks.at(votes.points[0])
        self._equal = all(hook.for_equals for hook in about)
        read = {id(column): column for column in Reading.of(about).columns(world)}
        by_row = [column for axis in ("node", "job", "queue") for column in world.columns_on(axis)]
        # Columns by row are left to the stamps of their rows, so that one changed node does not end the answers about
        # all others.
        self._columns = [c for c in read.values() if not any(c is other for other in by_row)]
        of_queues = world.columns_on("queue")
        self._asks_queues = any(hook.reads is not None and QUEUES in hook.reads for hook in about) or any(
            id(column) in read for column in of_queues
        )
        self._kind = "refuted", votes, offered
        there = rows.tobytes(), node.tobytes(), job.tobytes()
        self._ground = *there, nodes.facts.version, self._tables.jobs.capacity, len(self._tables.queues)

    def of(self, task: Task, *more: Hashable) -> Bool | None:
        """Return the nodes that are ruled out for a task (N,), or None. ``more``: what else the answer depends on.
        Read-only."""
        question, rests_on = self._question(task, more), self._rests_on()
        known: Refutation | None = self._memo.recall(question, rests_on)
        if known is None:
            return None
        still = self._still(known)
        if still is not known.refuted:
            self._memo.keep(question, rests_on, self._as_of_now(still))
        return still

    def add(self, task: Task, nodes: AnyArray, *more: Hashable) -> None:
        """Rule out these nodes as well."""
        if not len(nodes):
            return
        known = self.of(task, *more)
        refuted = np.zeros(len(self._tables.nodes.facts), dtype=bool) if known is None else known.copy()
        refuted[nodes] = True
        self._memo.keep(self._question(task, more), self._rests_on(), self._as_of_now(refuted))

    def _question(self, task: Task, more: tuple[Hashable, ...]) -> Hashable:
        """Return the memo key for a task."""
        jobs, job = self._tables.jobs, task.job.row
        signature, counts = int(jobs.signature[job]), jobs.counts[job]
        # A job with running tasks is a special case: its own tasks may be candidates.
        if self._equal and signature >= 0 and not counts[_RUNS].any():
            own: tuple[Hashable, ...] = (signature, int(jobs.priority[job]), counts.tobytes())
        else:
            assert jobs.stamps is not None
            own = (task.row, int(jobs.stamps[job]))
        cls, role = int(self._tables.tasks.cls[task.row]), int(self._tables.tasks.role[task.row])
        whose = int(jobs.queue[job]), cls, self._tables.classes.identity(cls), role, task.priority
        return (*self._kind, *whose, *own, *more)

    def _rests_on(self) -> Ground:
        """Return the versions on which the answers rest."""
        return (*self._ground, *ground(*self._columns))

    def _as_of_now(self, refuted: Bool) -> Refutation:
        """Return the answer with the present stamps."""
        # Copied, because the session writes into the stamps.
        return Refutation(refuted, *(stamps.copy() for stamps in self._stamps()))

    def _stamps(self) -> tuple[I64, I64, I64]:
        """Return the stamps of nodes, jobs and queues."""
        nodes, jobs, queues = self._tables.nodes.stamps, self._tables.jobs.stamps, self._tables.queues.stamps
        assert nodes is not None and jobs is not None and queues is not None
        return nodes, jobs, queues

    def _still(self, known: Refutation) -> Bool:
        """Return what still holds of an answer; the same array if nothing has changed."""
        nodes, jobs, queues = self._stamps()
        if self._asks_queues and not np.array_equal(queues, known.queues):
            return np.zeros(len(known.refuted), dtype=bool)
        of_nodes, of_jobs = (nodes != known.nodes).nonzero()[0], (jobs != known.jobs).nonzero()[0]
        if not len(of_nodes) and not len(of_jobs):
            return known.refuted
        refuted = known.refuted.copy()
        refuted[of_nodes] = False
        # One pass over the tasks where many jobs changed, as when the statuses of all are written.
        if len(of_jobs) > _FEW:
            changed = np.zeros(len(jobs), dtype=bool)
            changed[of_jobs] = True
            refuted[self._nodes_by_job[changed[self._jobs_in_order]]] = False
            return refuted
        for job in of_jobs.tolist():
            refuted[self._nodes_by_job[self._job_starts[job] : self._job_starts[job + 1]]] = False
        return refuted
