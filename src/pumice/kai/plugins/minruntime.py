"""minruntime: protect jobs from eviction until they have run for a minimum time. Source: KAI minruntime plugin."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pumice.api import JOBS, NOW, PODS, QUEUES, ROWS, Bool, DurationError, Job, JobRows, Session, parse_duration, plugin
from pumice.kai import points
from pumice.kai.engine.parts import Scenario, active_of
from pumice.kai.engine.tree_order import queue_tree

LCA, QUEUE = "lca", "queue"
#: NOW, because a protection ends by the clock, while nothing else changes.
_READS = (ROWS, NOW, QUEUES, JOBS, PODS)


@plugin("minruntime")
class MinRuntime:
    """Protect jobs by the minimum runtime of their queue or of a queue above it.

    ``defaultPreemptMinRuntime`` and ``defaultReclaimMinRuntime`` are used if no queue on the path sets a time.
    ``reclaimResolveMethod`` chooses where the path starts when another queue reclaims: at the queue of the victim
    (queue), or one level below the lowest common ancestor of both queues (lca).
    """

    def __init__(
        self,
        ssn: Session,
        *,
        defaultPreemptMinRuntime: str = "0s",
        defaultReclaimMinRuntime: str = "0s",
        reclaimResolveMethod: str = LCA,
    ) -> None:
        self.ssn, self._path = ssn, queue_tree(ssn).path
        self._by_lca = reclaimResolveMethod == LCA
        self._default_preempt = parse_duration(defaultPreemptMinRuntime)
        self._default_reclaim = parse_duration(defaultReclaimMinRuntime)
        sharing = [queue.sharing for queue in ssn.tables.queues.objs]
        # None inherits the time of the queue above; 0 is a time of its own, and ends the protection by the queues
        # above.
        self._preempt = [each.preempt_min_runtime if each is not None else None for each in sharing]
        self._reclaim = [each.reclaim_min_runtime if each is not None else None for each in sharing]
        # Without any minimum, no job is protected. Dropping the points saves a call per candidate and scenario.
        if not any((self._default_preempt, *self._preempt)):
            self.unused_points: tuple[object, ...] = (points.preempt_victims, points.preempt_valid)
        else:
            self.unused_points = ()
        if not any((self._default_reclaim, *self._reclaim)):
            self.unused_points += (points.reclaim_victims, points.reclaim_valid)

    @staticmethod
    def problems(
        *, defaultPreemptMinRuntime: str, defaultReclaimMinRuntime: str, reclaimResolveMethod: str
    ) -> Iterator[str]:
        for name, text in (
            ("defaultPreemptMinRuntime", defaultPreemptMinRuntime),
            ("defaultReclaimMinRuntime", defaultReclaimMinRuntime),
        ):
            try:
                if parse_duration(text) < 0:
                    yield f'argument {name}: found "{text}", wanted a duration of 0 or more'
            except DurationError as error:
                yield f'argument {name}: found "{text}", wanted a duration ({error})'
        if reclaimResolveMethod not in (LCA, QUEUE):
            yield f'argument reclaimResolveMethod: found "{reclaimResolveMethod}", wanted {LCA} or {QUEUE}'

    # -- how long ------------------------------------------------------------------------------------------------------

    def preempt_runtime(self, victim: int) -> float:
        """Return for how many seconds a job is protected from jobs of its own queue."""
        return self._first(self._preempt, self._path[victim], self._default_preempt)

    def reclaim_runtime(self, queue: int, victim: int) -> float:
        """Return for how many seconds a job of queue ``victim`` is protected from jobs of ``queue``."""
        path = self._path[victim]
        if not self._by_lca:
            return self._first(self._reclaim, path, self._default_reclaim)
        common = set(self._path[queue])
        below = [each for each in path if each not in common]
        # The queues have no common ancestor: KAI then reads the victim's root queue only.
        if len(below) == len(path):
            return self._first(self._reclaim, path[-1:], self._default_reclaim)
        # ``path`` leads from the leaf to the root, so the last queue not in common is one level below the ancestor.
        start = len(below) - 1 if below else 0
        return self._first(self._reclaim, path[start:], self._default_reclaim)

    @staticmethod
    def _first(values: list[float | None], path: list[int], default: float) -> float:
        """Return the first value that is set on a path of queues, or the default."""
        return next((value for queue in path if (value := values[queue]) is not None), default)

    def _is_protected(self, job: int, runtime: float) -> bool:
        """Return True if a job started less than ``runtime`` seconds ago. A job without a start time is not
        protected."""
        gang = self.ssn.tables.jobs.groups[job].gang
        return gang is not None and gang.last_start is not None and self.ssn.now < gang.last_start + runtime

    def _runtime(self, preemptor: int, job: int) -> float:
        """Return for how many seconds ``job`` is protected from ``preemptor``."""
        queue = self.ssn.tables.jobs.queue
        mine, other = int(queue[preemptor]), int(queue[job])
        return self.preempt_runtime(other) if mine == other else self.reclaim_runtime(mine, other)

    # -- who -----------------------------------------------------------------------------------------------------------

    @points.preempt_victims(reads=_READS)
    def preempt_victims(self, job: Job, jobs: JobRows) -> Bool:
        """Return True for jobs that preempt may evict. Shape (rows,)."""
        return self._candidates(job, jobs, same_queue=True)

    @points.reclaim_victims(reads=_READS)
    def reclaim_victims(self, job: Job, jobs: JobRows) -> Bool:
        """Return True for jobs that reclaim may evict. Shape (rows,)."""
        return self._candidates(job, jobs, same_queue=False)

    def _candidates(self, job: Job, jobs: JobRows, *, same_queue: bool) -> Bool:
        """Return True for jobs that may be evicted, or that the action does not concern. Shape (rows,)."""
        queue, own = self.ssn.tables.jobs.queue, job.queue.row
        return np.array(
            [
                # Preempt looks for victims in the own queue only and reclaim in the others only. Each leaves out the
                # rest by itself, so that no start times are read for them here.
                (queue[row] == own) != same_queue
                # Elastic jobs may always lose tasks above their minimum. ``_keeps_minimums`` rejects scenarios that
                # take more.
                or self._is_elastic(row)
                or not self._is_protected(row, self._runtime(job.row, row))
                for row in jobs.rows.tolist()
            ],
            dtype=bool,
        )

    def _is_elastic(self, job: int) -> bool:
        """Return True if some pod set of a job has more pods than its minimum."""
        jobs, subs = self.ssn.tables.jobs, self.ssn.tables.subs
        return any(len(subs.tasks[sub]) > subs.min_available[sub] for sub in jobs.subs[job])

    @points.preempt_valid(reads=_READS)
    def preempt_valid(self, scenario: Scenario) -> bool:
        """Return True if protected jobs keep their minimum."""
        return self._keeps_minimums(scenario)

    @points.reclaim_valid(reads=_READS)
    def reclaim_valid(self, scenario: Scenario) -> bool:
        """Return True if protected jobs keep their minimum."""
        return self._keeps_minimums(scenario)

    def _keeps_minimums(self, scenario: Scenario) -> bool:
        """Return True if every protected job that loses tasks in the scenario keeps its minimums."""
        tables = self.ssn.tables
        tasks = tables.tasks
        gone = scenario.gone(tables)
        # Only pod sets that lose a task are tested: one that was short before is no reason against this scenario.
        for sub in dict.fromkeys(tasks.sub[gone].tolist()):
            job = int(tables.subs.job[sub])
            short = active_of(tables, sub) < tables.subs.min_available[sub]
            if short and self._is_protected(job, self._runtime(scenario.part.job, job)):
                return False
        return True
