"""proportion: compute the fair share of each queue, and order queues, limit jobs and validate reclaims by it.

Shares of CPU, memory and GPUs are independent of each other, over a tree of queues. Source: KAI proportion plugin.
"""

from __future__ import annotations

from itertools import accumulate

import numpy as np

from pumice.algorithms.queue_order import QueueKey, request_key
from pumice.algorithms.queue_tree import allocatable_share, fair_share
from pumice.algorithms.reclaimable import QueueStates, has_candidates, is_reclaimable, may_reclaim
from pumice.api import F64, HELD, QUEUES, ROWS, Bool, Job, JobRows, Queue, Session, TaskRun, plugin
from pumice.columns.gpus.claimed import claimed_gpus, offered_gpus
from pumice.kai import points
from pumice.kai.amounts import shared, shared_by_one
from pumice.kai.devices import reservations
from pumice.kai.engine.chunks import chunk_of
from pumice.kai.engine.parts import Scenario, amount_of
from pumice.kai.engine.points import QueueRequest
from pumice.kai.engine.tree_order import queue_tree
from pumice.kai.lumps import victim_lumps
from pumice.kai.reasons import NON_PREEMPTIBLE_OVER_QUOTA, OVER_LIMIT
from pumice.kai.usage import amounts_by_queue, past_shares, summed_up

_ZERO = (0.0, 0.0, 0.0)
#: Smallest units of a share: milli-cores, bytes, whole GPUs.
_UNIT = np.array([1.0, 1.0, 1000.0])


@plugin("proportion")
class Proportion:
    """Fair shares and usage of queues.

    Columns have shape (Q, 3): milli-cores, bytes, milli-devices. ``allocated`` is what a queue and all queues below it
    hold, including pipelined tasks; ``held_fast`` is the non-preemptible part of it.

    ``kValue``: weight of past usage in the over-quota share. ``relcaimerSaturationMultiplier`` (KAI's spelling): how
    much lower than its siblings' the saturation of a reclaiming queue must be.
    """

    def __init__(self, ssn: Session, *, kValue: float = 1.0, relcaimerSaturationMultiplier: float = 1.0) -> None:
        self.ssn, tables = ssn, ssn.tables
        queues = tables.queues
        self._path, self._whole = queue_tree(ssn).path, queue_tree(ssn).whole
        self._rows = [np.array(path) for path in self._path]
        # Below 1, a queue could reclaim from one that is less saturated than itself, which could then reclaim it back.
        self._multiplier = max(1.0, relcaimerSaturationMultiplier)
        self.total = self._total()
        allocated, held_fast, request = (summed_up(queue_tree(ssn), each) for each in amounts_by_queue(tables))
        self.allocated = ssn.column("proportion.allocated", "queue", values=allocated)
        self.held_fast = ssn.column("proportion.held_fast", "queue", values=held_fast)
        fair = self._fair_share(request, kValue)
        self.fair = ssn.column("proportion.fair", "queue", values=fair)
        self.fit = ssn.column(
            "proportion.allocatable", "queue", values=allocatable_share(queues.quota, queues.limit, fair)
        )
        # Order comparisons read single numbers; lists of floats are several times faster for that than NumPy elements.
        self._fair, self._fit = fair.tolist(), self.fit.array.tolist()
        self._quota, self._limit = queues.quota.tolist(), queues.limit.tolist()
        # A total of 0 would divide by zero in the dominant share. It is a column of queues, because keys of queues rest
        # on it: pods of no queue change it.
        self._most = [amount or 1.0 for amount in self.total.tolist()]
        most = ssn.column("proportion.most", "queue", values=np.tile(self._most, (len(fair), 1)))
        self._priority: list[float] = queues.priority.tolist()
        #: On what keys of queues rest, besides the rows of queues.
        self._rests_on = self.fair.version, self.fit.version, most.version
        self._before = self._states(allocated, held_fast)

    def _total(self) -> F64:
        """Return the resources of all nodes, less what pods without a job hold. Shape (3,)."""
        tables = self.ssn.tables
        tasks = tables.tasks
        # Pods without a job belong to no queue and are never evicted, so what they hold is not there to be shared.
        others = (tasks.alive & (tasks.job < 0) & (tasks.node >= 0) & (HELD[tasks.status] > 0)).nonzero()[0]
        # The GPU of a reservation pod is held by the pods that share the device, so it must not be deducted as well.
        others = others[~np.isin(others, reservations(tables, self.ssn.ledger.devices))]
        found = shared(tables, self.ssn.total - tables.classes.req[tasks.cls[others]].sum(axis=0))
        found[2] += offered_gpus(tables)
        return found

    def _fair_share(self, request: F64, k: float) -> F64:
        """Return the fair share of all queues. Shape (Q, 3)."""
        queues = self.ssn.tables.queues
        # By depth, from the roots downwards: the share of a queue is the total that its children divide. A queue whose
        # ancestors are missing has depth 0 and is in no level.
        depth = np.array([len(path) if self._whole[row] else 0 for row, path in enumerate(self._path)])
        levels = [(depth == level).nonzero()[0] for level in range(1, int(depth.max(initial=0)) + 1)]
        # Division rounds down to whole units, as in KAI, so GPUs are divided in devices and not in milli-devices.
        found: F64 = _UNIT * fair_share(
            self.total / _UNIT,
            levels,
            queues.parent,
            queues.priority,
            queues.quota / _UNIT,
            queues.limit / _UNIT,
            request / _UNIT,
            queues.over_weight,
            past_shares(self.ssn.tables),
            k,
            np.arange(len(queues)),
        )
        return found

    # -- order of queues -----------------------------------------------------------------------------------------------

    @points.queue_request_order(reads=(ROWS,))
    def queue_request_order(self, request: QueueRequest) -> QueueKey:
        """Return the place of a queue by its next job. Source: KAI proportion plugin, queue_order."""
        stamps, amount, victims = self.ssn.tables.queues.stamps, request.request, request.victims
        assert stamps is not None
        amounts = amount if amount is None else amount.tobytes(), victims if victims is None else victims.tobytes()
        question, rests_on = ("proportion.key", request.queue), (int(stamps[request.queue]), *amounts, *self._rests_on)
        return self.ssn.memo.get(question, rests_on, lambda: self._compute_key(request))

    def _compute_key(self, request: QueueRequest) -> QueueKey:
        """Compute the key of a queue."""
        queue = request.queue
        held = self.allocated.array[queue].tolist()
        more = shared_by_one(self.ssn.tables, request.request) if request.request is not None else _ZERO
        less = shared_by_one(self.ssn.tables, request.victims) if request.victims is not None else _ZERO
        fair, fit, quota = self._fair[queue], self._fit[queue], self._quota[queue]
        return QueueKey(request_key(held, more, less, fair, quota, fit, self._most, self._priority[queue]), tuple(fit))

    # -- limits --------------------------------------------------------------------------------------------------------

    @points.may_take(reads=(QUEUES,))
    def may_take(self, queue: Queue, amount: F64, preemptible: bool) -> str:
        """Return the reason why a queue, or a queue above it, may not take an amount, or "" if it may. Source: KAI
        proportion plugin, capacity_policy."""
        asked = shared_by_one(self.ssn.tables, amount)
        # The limit of a queue holds for all queues below it together, so the whole path is checked, from the leaf
        # upwards.
        for row in self._path[queue.row]:
            held, fast = self.allocated.array[row].tolist(), self.held_fast.array[row].tolist()
            # Resources that are not asked for are not checked: a queue over its CPU limit may still take GPUs.
            for i, more in enumerate(asked):
                if more and held[i] + more > self._limit[row][i]:
                    return OVER_LIMIT
                if more and not preemptible and fast[i] + more > self._quota[row][i]:
                    return NON_PREEMPTIBLE_OVER_QUOTA
        return ""

    @points.may_reclaim(reads=(ROWS, QUEUES))
    def may_reclaim(self, job: Job, amount: F64) -> bool:
        """Return True if the queue of a job stays within its fair share with this amount. Source: KAI proportion
        plugin, CanReclaimResources."""
        preemptible = bool(self.ssn.tables.jobs.preemptible[job.row])
        return may_reclaim(
            self._states(self.allocated.array, self.held_fast.array),
            job.queue.row,
            shared(self.ssn.tables, amount),
            preemptible,
        )

    @points.reclaim_victims(reads=(ROWS, QUEUES))
    def reclaim_victims(self, job: Job, jobs: JobRows) -> Bool:
        """Return which jobs are in queues that may lose something to the job's queue. Source: KAI proportion plugin,
        reclaim victim filter."""
        part = chunk_of(self.ssn, job.row)
        if part is None:
            return np.zeros(len(jobs.rows), dtype=bool)
        states = self._states(self.allocated.array, self.held_fast.array)
        need = shared(self.ssn.tables, part.amount(self.ssn.tables))
        # One answer for each queue, since there are fewer of them than of jobs; the last one is for jobs without one.
        # Marks and no sort: every waiting job asks, and each time about all jobs.
        queues = self.ssn.tables.jobs.queue[jobs.rows]
        has_jobs, may = np.zeros((2, len(self._path) + 1), dtype=bool)
        has_jobs[queues] = True
        for each in has_jobs[:-1].nonzero()[0].tolist():
            may[each] = has_candidates(states, job.queue.row, need, each)
        return np.asarray(may[queues])

    def _states(self, allocated: F64, held_fast: F64) -> QueueStates:
        """Return the inputs of the reclaim rules."""
        queues = self.ssn.tables.queues
        return QueueStates(queues.parent, allocated, held_fast, queues.quota, self.fair.array, self.fit.array)

    @points.solution_start
    def solution_start(self) -> None:
        """Save the state of queues before the search evicts anything."""
        # The columns change while scenarios are simulated, and reclaim validates against the state before them: hence
        # copies.
        self._before = self._states(self.allocated.array.copy(), self.held_fast.array.copy())

    @points.reclaim_valid(reads=(ROWS, QUEUES))
    def reclaim_valid(self, scenario: Scenario) -> bool:
        """Return True if the victims of a scenario may be reclaimed, judged by the state when the search began.
        Source: KAI proportion plugin, Reclaimable."""
        tables, part = self.ssn.tables, scenario.part
        lumps = victim_lumps(tables, scenario.gone(tables))
        # Every victim has found another place, so no queue loses anything by the scenario.
        if not lumps:
            return True
        leaves = np.array([queue for queue, _ in lumps])
        rows = [row for _, each in lumps for row in each]
        amounts = shared(tables, tables.classes.req[tables.tasks.cls[rows]])
        if len(tables.claims):
            amounts[:, 2] += claimed_gpus(tables, rows)
        # Usually each lump is one task. Only lumps with several tasks need the sum.
        if len(rows) > len(lumps):
            starts = list(accumulate((len(each) for _, each in lumps[:-1]), initial=0))
            amounts = np.add.reduceat(amounts, starts, axis=0)
        need = shared(tables, part.amount(tables))
        queue, preemptible = int(tables.jobs.queue[part.job]), bool(tables.jobs.preemptible[part.job])
        return is_reclaimable(self._before, queue, need, preemptible, leaves, amounts, self._multiplier)

    # -- books ---------------------------------------------------------------------------------------------------------

    @points.on_allocate
    def on_allocate(self, run: TaskRun) -> None:
        self._add(run, 1.0)

    @points.on_deallocate
    def on_deallocate(self, run: TaskRun) -> None:
        self._add(run, -1.0)

    def _add(self, run: TaskRun, sign: float) -> None:
        """Add the amount of tasks to their queue and all queues above it."""
        queue = run.queue
        # Jobs whose queue does not exist hold resources but no share.
        if queue < 0:
            return
        tables, path = self.ssn.tables, self._rows[queue]
        amount = sign * shared(tables, amount_of(tables, run.rows))
        # Simulated placements and evictions count too: the search compares queues by what they would hold at that
        # point. The journal takes it back with the simulation.
        self.ssn.journal.add(self.allocated, path, amount)
        if not tables.jobs.preemptible[run.job]:
            self.ssn.journal.add(self.held_fast, path, amount)

    def figures(self) -> dict[str, F64]:
        """Return the numbers of queues for metrics and reports, by name. Shapes (Q, 3)."""
        return {"queue.allocated": self.allocated.array, "queue.fair_share": self.fair.array}
