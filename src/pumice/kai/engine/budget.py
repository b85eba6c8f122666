"""Count the steps of KAI's searches in the shared ``Budget``.

A step is a simulated scenario of a few tasks, a query for node subsets, a placement within one subset, or a number of
comparisons of queues. A scenario of many tasks counts as several steps. Subsets that are rejected by counting are free.
A search that reaches the limit proves nothing, and reports that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from pumice.columns.dtypes import AnyArray
from pumice.framework.cycle.budget import Budget
from pumice.framework.cycle.session import Session
from pumice.kai.engine.parts import Part
from pumice.kai.engine.tree_order import TreeOrder

#: Default of ``maxSearchSteps`` of KAI's actions. A step costs more than one of Volcano's: it places jobs again.
STEPS_MAX = 2048
#: Tasks of a scenario that make one step. Each task is evicted or placed, so the work grows with their number.
_TASKS_A_STEP = 8
#: Comparisons of sibling queues that make one step.
_COMPARISONS_A_STEP = 32
#: Steps with which an account begins at least: a base, and some for each task and sub-group of its first job, so that
#: a large gang is searched for to the end in the cycle in which it comes first.
_FIRST, _FOR_EACH = 16, 2


class Steps:
    """The steps of the current action. Without a budget all are granted."""

    def __init__(self) -> None:
        self.budget: Budget | None = None
        self._comparisons = 0

    @property
    def cut(self) -> bool:
        """True if the current job reached its limit, so that its failure proves nothing."""
        return self.budget is not None and self.budget.is_cut()

    def spend(self, tasks: int = 0) -> bool:
        """Take one step, or as many as a scenario of so many tasks counts. Return False if they are not left."""
        return self.budget is None or self.budget.spend(1 + tasks // _TASKS_A_STEP)

    def compare(self, queues: int) -> bool:
        """Count the comparison of so many queues. Return False if no step is left for it."""
        self._comparisons += queues
        # The rest is carried over: a comparison is cheap, and only many of them make a step.
        steps, self._comparisons = divmod(self._comparisons, _COMPARISONS_A_STEP)
        return not steps or self.budget is None or self.budget.spend(steps)


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
    order: TreeOrder, budget: Budget, counted: Callable[[int], bool] = lambda _: True
) -> Iterator[tuple[int, Part | None]]:
    """Yield jobs that have steps left, each with its chunk: first those that the last cycle did not try.

    ``counted``: whether a job needs steps. All others are yielded in any case.
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
        if not postponed:
            return
        # What the last cycle tried comes after what it did not reach. Otherwise the first jobs of an account would use
        # up its steps in every cycle, and those behind them would never be tried.
        budget.resume(order, postponed)
        postponed = []
