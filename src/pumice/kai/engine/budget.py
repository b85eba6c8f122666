"""Count the steps of KAI's searches in the shared ``Budget``, each by what it costs.

A step takes about 25 µs, as in Volcano's actions. Jobs for which victims are sought, sets of victims, placed tasks,
comparisons of queues and candidates count as many as they take; the weights were fitted to CPU times of the scenarios
of ``pumice bench``. Sets of nodes that are rejected by counting are free. A search that reaches the limit proves
nothing, and reports that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from pumice.columns.dtypes import AnyArray
from pumice.framework.cycle.budget import SEARCH_STEPS_MAX, Budget
from pumice.framework.cycle.session import Session
from pumice.kai.engine.parts import Part
from pumice.kai.engine.tree_order import TreeOrder

#: Default of ``maxSearchSteps`` of KAI's actions.
STEPS_MAX = SEARCH_STEPS_MAX
#: Default of consolidation, which places each victim again for every set that it tries: some 50 jobs are moved for in
#: one run.
CONSOLIDATION_STEPS_MAX = 40_000
#: Steps of a query for node subsets, and of a placement within one.
SUBSET_STEPS = 10
#: Steps of a search that begins; of a set of victims; of a victim that is offered a place; and of each placed task.
SEARCH_STEPS, SET_STEPS, OFFER_STEPS, TASK_STEPS = 4, 4, 1, 7
#: Steps of each operation that evicts victims of a set, after the first: the tasks of one pod set leave together. Where
#: GPUs are shared, the devices of each are counted anew.
OPERATION_STEPS, SHARED_OPERATION_STEPS = 2, 6
#: Steps of each task with claims of devices beside these: a base, and one for so many devices of the cluster, since
#: those that are free are found anew after each move.
CLAIM_STEPS, DEVICES_A_STEP = 20, 300
#: Steps of each task that shares GPUs beside these: its node and its devices are chosen for it alone.
SHARED_TASK_STEPS = 10
#: Shares of a step, of which it has ``_SHARES``: of a comparison of sibling queues, of each queue in it, of a task that
#: is evicted in a trial, and of a candidate for eviction.
_SHARES, _COMPARISON, _QUEUE, _EVICTED, _CANDIDATE = 16, 24, 6, 2, 1
#: Steps with which an account begins at least: a base, and some for each task and sub-group of its first job, so that
#: a large gang is searched for to the end in the cycle in which it comes first.
_FIRST, _FOR_EACH = 64, 64


class Steps:
    """The steps of the current action. Without a budget all are granted."""

    def __init__(self) -> None:
        self.budget: Budget | None = None
        self._shares = 0

    @property
    def cut(self) -> bool:
        """True if the current job reached its limit, so that its failure proves nothing."""
        return self.budget is not None and self.budget.is_cut()

    @property
    def taken(self) -> int:
        """The steps of the current job so far. 0 without a budget."""
        return self.budget.taken if self.budget is not None else 0

    def spend(self, steps: int) -> bool:
        """Take steps. Return False if they are not left."""
        return self.budget is None or self.budget.spend(steps)

    def compare(self, queues: int) -> bool:
        """Count the comparison of so many queues. Return False if no step is left for it."""
        return self._spend_shares(_COMPARISON + _QUEUE * queues)

    def evict(self, tasks: int, operations: int, *, shared: bool) -> bool:
        """Count a set of so many victims, which leave in so many operations. ``shared``: GPUs of the cluster are
        shared. Return False if no step is left for it."""
        more = (operations - 1) * (SHARED_OPERATION_STEPS if shared else OPERATION_STEPS)
        return self.spend(SET_STEPS + more) and self._spend_shares(_EVICTED * tasks)

    def consider(self) -> bool:
        """Count a candidate for eviction. Return False if no step is left for it."""
        return self._spend_shares(_CANDIDATE)

    def _spend_shares(self, shares: int) -> bool:
        """Take shares of a step."""
        # The rest is carried over: each is cheap, and only many of them make a step.
        steps, self._shares = divmod(self._shares + shares, _SHARES)
        return not steps or self.spend(steps)


def steps_to_place(ssn: Session, rows: Sequence[int]) -> int:
    """Return the steps of placing tasks on nodes that are known to have resources for them."""
    pods = ssn.tables.tasks.pods
    claiming = sum(bool(pods[row].spec.resource_claims) for row in rows)
    return TASK_STEPS * len(rows) + (claiming * _claim_steps(ssn) if claiming else 0)


def _claim_steps(ssn: Session) -> int:
    """Return the steps of a task with claims beside those of any task."""

    def count() -> int:
        return CLAIM_STEPS + sum(len(each.devices) for each in ssn.tables.slices.objs) // DEVICES_A_STEP

    return ssn.shared(_claim_steps, count)


def steps_of(ssn: Session) -> Steps:
    """Return the steps of the session's current action."""
    return ssn.shared(Steps, Steps)


def budget_for(ssn: Session, rows: AnyArray, steps: int) -> Budget:
    """Begin the budget of an action for jobs, by row. It counts until the next one begins."""
    jobs = ssn.tables.jobs

    def least(job: int) -> int:
        gang = jobs.groups[job].gang
        return _FIRST + _FOR_EACH * (int(jobs.size[job]) + (len(gang.sub_groups) if gang is not None else 0))

    budget = steps_of(ssn).budget = Budget(ssn, rows, steps, least=least)
    return budget


def in_turn(
    order: TreeOrder,
    budget: Budget,
    counted: Callable[[int], bool] = lambda _: True,
    skipped: Callable[[int], None] = lambda _: None,
) -> Iterator[tuple[int, Part | None]]:
    """Yield jobs that have steps left, each with its chunk: first those that the last cycle did not try.

    ``counted``: whether a job needs steps. All others are yielded in any case. ``skipped`` is called with each job that
    has no step left.
    """
    postponed: list[int] = []
    while True:
        for job, part in order:
            if not counted(job):
                yield job, part
            elif budget.is_postponed(job):
                postponed.append(job)
            elif budget.begin(job):
                yield job, part
            else:
                skipped(job)
        if not postponed:
            return
        # What the last cycle tried comes after what it did not reach. Otherwise the first jobs of an account would use
        # up its steps in every cycle, and those behind them would never be tried.
        budget.resume(order, postponed)
        postponed = []
