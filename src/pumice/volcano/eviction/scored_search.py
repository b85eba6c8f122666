"""Make room for a whole gang across nodes: which of its tasks goes where, and who leaves for it.

Volcano tries the tasks of a gang in order, each on the first node on which evictions make room. So one task takes the
node that only another could use, or more leaves for it than a queue has to give back. This search orders tasks and
nodes by score, goes back where a task finds no node, and evicts what fits best. Volcano has nothing like it. Source:
best-fit decreasing (Johnson, Near-Optimal Bin Packing Algorithms, 1973), with backtracking.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations

import numpy as np

from pumice.columns.dtypes import F64
from pumice.columns.nodes import FUTURE
from pumice.columns.views import Task
from pumice.framework.cycle.budget import Budget
from pumice.framework.cycle.session import Session
from pumice.framework.cycle.statement import Statement
from pumice.volcano.eviction.node_search import NodeSearch, VictimChoice, Victims
from pumice.volcano.gangs.starving import is_starving

#: Placements of one task on one node that are tried for a gang, and steps that one takes.
TRIES_MAX, _TRY_STEPS = 256, 4
#: Tasks of a gang that is searched for. The tries would not suffice for more, and each is a call within a call.
TASKS_MAX = 32
#: Victims on one node of which all subsets are looked at; of more the first ones in order of eviction.
_VICTIMS_MAX = 6
#: Sets of victims that are tried on one node, those that fit best.
_SETS_MAX = 3


class ScoredSearch:
    """``victims_of``: returns the tasks that plugins allow to be evicted for a task. ``fits``: returns whether a task
    may be placed on a node as the session is now."""

    def __init__(
        self,
        ssn: Session,
        search: NodeSearch,
        budget: Budget,
        victims_of: Callable[[Task], Victims],
        fits: Callable[[Task, int], bool],
        reason: str,
    ) -> None:
        self._ssn, self._search, self._budget, self._reason = ssn, search, budget, reason
        self._victims_of, self._fits = victims_of, fits
        self._tries = 0

    def place(self, stmt: Statement, job: int, rows: Sequence[int]) -> bool:
        """Pipeline tasks of a job until it is not starving, or do nothing. Return True if it worked."""
        if len(rows) > TASKS_MAX:
            return False
        tasks, self._tries = self._ssn.tables.tasks, 0
        # Stable, so that equal tasks keep their order.
        order = sorted(rows, key=lambda row: -self._size(int(tasks.cls[row])))
        return self._place(stmt, job, order)

    def _place(self, stmt: Statement, job: int, rows: Sequence[int]) -> bool:
        if not is_starving(self._ssn, job):
            return True
        if not rows:
            return False
        task = Task(self._ssn.tables, rows[0])
        for node, victims in self._choices(task):
            self._tries += 1
            # Bounded: the placements of a gang are more than can be tried.
            if self._tries > TRIES_MAX or not self._budget.spend(_TRY_STEPS):
                return False
            mark = stmt.mark()
            for row in victims:
                stmt.evict([row], self._reason)
            placed = self._fits(task, node) and stmt.pipeline([task.row], [node], evicted=bool(victims)) is None
            if placed and self._place(stmt, job, rows[1:]):
                return True
            # Not remembered: users read the reasons of the search task by task.
            stmt.rollback(mark, remember=False)
        return False

    def _choices(self, task: Task) -> Iterator[tuple[int, tuple[int, ...]]]:
        """Yield nodes with who would leave there, the best first: least evicted, then least left over."""
        books = self._ssn.tables.nodes.books
        found: list[tuple[float, float, int, tuple[int, ...]]] = []
        reachable = self._search.reachable(task)
        for node in reachable.nonzero()[0].tolist():
            if self._search.has_room(task, node):
                found.append((0.0, self._part(books[node, FUTURE]), node, ()))
        victims = self._victims_of(task)
        # Before plugins are asked about all of these nodes.
        if not self._budget.spend(self._search.cost(victims, reachable)):
            return
        for choice in victims.on(self._search.in_row_order(reachable & victims.nodes())):
            if not self._search.has_room(task, choice.node):
                found += self._sets(task, choice)
        for _, _, node, rows in sorted(found):
            yield node, rows

    def _sets(self, task: Task, choice: VictimChoice) -> list[tuple[float, float, int, tuple[int, ...]]]:
        """Return sets of victims of a node that make room, those that fit best."""
        tables, victims = self._ssn.tables, choice.victims[:_VICTIMS_MAX]
        requests = {row: tables.classes.req[tables.tasks.cls[row]] for row in victims}
        future, asked = tables.nodes.books[choice.node, FUTURE], tables.classes.asked[tables.tasks.cls[task.row]]
        found = []
        for count in range(1, len(victims) + 1):
            for rows in combinations(victims, count):
                freed = np.sum([requests[row] for row in rows], axis=0)
                if all(future[d] + freed[d] > limit for d, limit in asked):
                    found.append((self._part(freed), self._part(future + freed), choice.node, rows))
        return sorted(found)[:_SETS_MAX]

    def _size(self, cls: int) -> float:
        return self._part(self._ssn.tables.classes.req[cls])

    def _part(self, amount: F64) -> float:
        """Return the largest part of the cluster that an amount is, of any resource."""
        total = self._ssn.total
        return float(np.divide(amount, total, out=np.zeros_like(total), where=total > 0).max(initial=0.0))
