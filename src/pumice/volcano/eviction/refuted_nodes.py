"""Nodes of which a task like this one has found that victims there would not be enough, and which need not be asked
about again.

What plugins said of a node holds as long as nothing has changed that they read: the node, the jobs of the tasks that
run there, and what they declare besides (``reads=``). A task is like another one of its class, of a job with the same
scheduling signature, priority and tasks by state, where all hooks read the SIGNATURE; else it is like itself, while
nothing of its job changes.
"""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from pumice.columns.dtypes import I64, AnyArray, Bool
from pumice.columns.views import Task
from pumice.framework.cycle.world import World
from pumice.framework.memo import Ground, ground
from pumice.framework.plugin.hooks import Hooks
from pumice.framework.plugin.point import QUEUES, Question, by_signature
from pumice.framework.plugin.resolution import Reading
from pumice.model.status import PREEMPTABLE_STATUSES

_RUNS = sorted(map(int, PREEMPTABLE_STATUSES))


class Known:
    """``refuted`` (N,), as of some stamps of nodes, jobs and queues, and versions of what else was read; ``empty``:
    none is."""

    __slots__ = ("empty", "jobs", "nodes", "queues", "refuted", "versions")

    def __init__(self, nodes: int) -> None:
        self.refuted: Bool = np.zeros(nodes, dtype=bool)
        self.empty = True
        self.nodes: I64
        self.jobs: I64
        self.queues: I64
        self.versions: Ground


class Refuted:
    """What hooks at a point have refuted of nodes on which some tasks run: ``rows`` (K,) and the ``nodes`` (K,) they
    are on."""

    def __init__(self, world: World, hooks: Hooks, point: Question, rows: AnyArray, nodes: AnyArray) -> None:
        self._world, self._tables = world, world.tables
        job = self._tables.tasks.job[rows]
        order = job.argsort(kind="stable")
        self._nodes_by_job = nodes[order]
        self._job_starts = np.searchsorted(job[order], np.arange(self._tables.jobs.capacity + 1))
        about = hooks.at(point)
        self._alike = all(by_signature(hook.reads) for hook in about)
        read = {id(column): column for column in Reading.of(about).columns(world)}
        by_row = [column for axis in ("node", "job", "queue") for column in world.columns_on(axis)]
        self._columns = [c for c in read.values() if not any(c is other for other in by_row)]
        of_queues = world.columns_on("queue")
        self._asks_queues = any(hook.reads is not None and QUEUES in hook.reads for hook in about) or any(
            id(column) in read for column in of_queues
        )
        self._known: dict[Hashable, Known] = {}

    def of(self, task: Task, *more: Hashable) -> Known:
        """What is known for the task, as things stand. ``more``: what else it depends on."""
        kind = (*self._kind(task), *more)
        known = self._known.get(kind)
        if known is None:
            known = self._known[kind] = Known(len(self._tables.nodes.facts))
        if not known.empty:
            self._renew(known)
        return known

    def _kind(self, task: Task) -> tuple[Hashable, ...]:
        jobs, job = self._tables.jobs, task.job.row
        signature, counts = int(jobs.signature[job]), jobs.counts[job]
        if self._alike and signature >= 0 and not counts[_RUNS].any():
            own: tuple[Hashable, ...] = (signature, int(jobs.priority[job]), counts.tobytes())
        else:
            assert jobs.stamps is not None
            own = (task.row, int(jobs.stamps[job]))
        return (int(self._tables.tasks.cls[task.row]), int(self._tables.tasks.role[task.row]), task.priority, *own)

    def add(self, known: Known, nodes: AnyArray) -> None:
        """These nodes are refuted too, by what was asked since ``of``; nothing has changed since."""
        if not len(nodes):
            return
        if known.empty:
            known.nodes, known.jobs, known.queues = (stamps.copy() for stamps in self._stamps())
            known.versions, known.empty = ground(*self._columns), False
        known.refuted[nodes] = True

    def _stamps(self) -> tuple[I64, I64, I64]:
        nodes, jobs, queues = self._tables.nodes.stamps, self._tables.jobs.stamps, self._tables.queues.stamps
        assert nodes is not None and jobs is not None and queues is not None
        return nodes, jobs, queues

    def _renew(self, known: Known) -> None:
        """Forget what may be otherwise now."""
        (nodes, jobs, queues), versions = self._stamps(), ground(*self._columns)
        if known.versions != versions or (self._asks_queues and not np.array_equal(queues, known.queues)):
            known.refuted[:] = False
            known.versions, known.queues = versions, queues.copy()
        changed = (jobs != known.jobs).nonzero()[0]
        for job in changed.tolist():
            known.refuted[self._nodes_by_job[self._job_starts[job] : self._job_starts[job + 1]]] = False
        known.jobs[changed] = jobs[changed]
        changed = (nodes != known.nodes).nonzero()[0]
        known.refuted[changed] = False
        known.nodes[changed] = nodes[changed]
