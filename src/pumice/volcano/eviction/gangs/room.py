"""Count how many tasks of a gang fit into domains, by sums: a bound that refutes most domains without a trial."""

from __future__ import annotations

import numpy as np

from pumice.columns.dtypes import EPS, F64, AnyArray
from pumice.placing.feasibility import Feasibility
from pumice.volcano.eviction.gangs.plans import WaitingTasks


class GangRoom:
    """The room on nodes that have ``future`` (N, R) to give, ignoring filters that evictions can mend.

    ``nodes``: rows of the nodes that will be asked for; None: all. A class is counted on each node once, and summed up
    in each domain.
    """

    def __init__(self, feasible: Feasibility, future: F64, nodes: AnyArray | None = None) -> None:
        self._feasible, self._future, self._nodes = feasible, future, nodes
        self._by_class: dict[tuple[int, int], F64] = {}

    def holds(self, waiting: WaitingTasks, nodes: AnyArray) -> bool:
        """Return True unless these nodes have too little room for the tasks."""
        return all(self._fitting(cls, count, asks, nodes) >= count for cls, count, asks in waiting.wanted)

    def first_refused(self, waiting: WaitingTasks, nodes: AnyArray) -> int:
        """Return how many tasks come before the first one that finds no room on these nodes."""
        return waiting.first_that_fit(
            {cls: self._fitting(cls, count, asks, nodes) for cls, count, asks in waiting.wanted}
        )

    def _fitting(self, cls: int, count: int, asks: list[tuple[int, float]], nodes: AnyArray) -> int:
        """Return how many of ``count`` tasks of a class fit on each of these nodes alone, in sum."""
        found = self._by_class.get((cls, count))
        if found is None:
            found = self._by_class[cls, count] = self._count(cls, count, asks)
        return int(found[nodes].sum())

    def _count(self, cls: int, count: int, asks: list[tuple[int, float]]) -> F64:
        """Return how many tasks of a class fit on each node, at most ``count``. Shape (N,)."""
        future = self._future if self._nodes is None else self._future[self._nodes]
        # No eviction mends a selector or a taint, so nodes that refuse the class for good count for nothing.
        may = self._feasible.mendable(cls)
        # Each class is counted as if the others were not placed: an upper bound that costs one pass per class.
        fitting = np.where(may if self._nodes is None else may[self._nodes], float(count), 0.0)
        for dimension, asked in asks:
            np.minimum(fitting, np.floor((future[:, dimension] + EPS) / asked), out=fitting)
        if self._nodes is None:
            return fitting
        found = np.zeros(len(self._future))
        found[self._nodes] = fitting
        return found
