"""Topology-aware preemption: compare nodes by how much their victims matter, found by simulation. Source: Volcano
preempt action with enableTopologyAwarePreemption, and DefaultPreemption of kube-scheduler.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import NamedTuple

from pumice.columns.dtypes import F64
from pumice.columns.nodes import FUTURE
from pumice.columns.views import Node, Task
from pumice.framework.cycle.session import Session
from pumice.volcano import points
from pumice.volcano.eviction.node_search import VictimChoice
from pumice.volcano.eviction.victim_order import eviction_order

#: Added to every priority, so that negative ones do not make a sum smaller for more victims. Source: kube-scheduler.
_NO_LESS = 1 << 31


class Limits(NamedTuple):
    """How many nodes to compare: a percentage of all, with a lower and an upper limit."""

    percentage: int
    least: int
    most: int

    def of(self, nodes: int) -> int:
        """Return how many of these nodes to compare."""
        return min(max(nodes * self.percentage // 100, self.least), self.most, nodes)


def least_harmful_first(ssn: Session, task: Task, found: Iterable[VictimChoice], wanted: int) -> list[VictimChoice]:
    """Return the first ``wanted`` nodes on which evictions can make room, the least harmful first.

    Nodes are compared by the priority of their first victim, the sum of priorities, the number of victims, and the
    start of the most important ones, younger first.
    """
    # Volcano starts at a random node and takes the ones that its workers finish first. Here the first rows are taken,
    # so that the result is the same in each run.
    tried = (_WhatIf(ssn, task, each.node).victims_among(each.victims) for each in found)
    worth_it = islice((each for each in tried if each is not None), wanted)
    return sorted(worth_it, key=lambda each: _harm(ssn, each))


def _harm(ssn: Session, found: VictimChoice) -> tuple[float, ...]:
    """Return the sort key of a node, lower for less harm."""
    pods = [ssn.tables.tasks.pods[row] for row in found.victims]
    priorities = [pod.spec.priority or 0 for pod in pods]
    highest = max(priorities)
    starts = [
        ssn.now if pod.start_time is None else pod.start_time
        for pod, priority in zip(pods, priorities, strict=True)
        if priority == highest
    ]
    # The criteria of kube-scheduler's pickOneNodeForPreemption in its order, without that of PodDisruptionBudgets.
    return priorities[0], sum(priorities) + len(pods) * _NO_LESS, len(pods), -min(starts)


class _WhatIf:
    """A simulation of evictions on one node.

    Nothing is evicted: plugins are notified by their simulate hooks, freed resources are added up apart, and the
    journal is rolled back at the end.
    """

    def __init__(self, ssn: Session, task: Task, node: int) -> None:
        self.ssn, self.task = ssn, task
        self.node, self.queue = Node(ssn.tables, node), task.queue
        self.future: F64 = ssn.tables.nodes.books[node, FUTURE].copy()

    def victims_among(self, victims: list[int]) -> VictimChoice | None:
        """Return the victims that are needed, the most important ones spared first, or None if all are not enough or
        none is needed."""
        mark = self.ssn.journal.mark()
        try:
            found = self._victims_among(victims)
        finally:
            self.ssn.journal.rollback(mark)
        return VictimChoice(self.node.row, found) if found else None

    def _victims_among(self, victims: list[int]) -> list[int]:
        """Return the victims that are needed, in order, or none."""
        gone = list[int]()
        for row in eviction_order(self.ssn, victims, self.task.row):
            # In the order of eviction, so that those that remain are the most important ones.
            gone.append(row)
            if not self._leaves(row):
                return []
            if self._fits():
                break
        if not gone or self.ssn.ask(points.simulate_predicate, self.task, self.node) is not None:
            return []
        found = []
        # Reprieve, as in kube-scheduler: the last to be evicted is the most important one, and is put back first.
        for row in reversed(gone):
            if not self._comes_back(row):
                return []
            if not self._fits():
                if not self._leaves(row):
                    return []
                found.append(row)
        return found

    def _leaves(self, row: int) -> bool:
        """Remove a task. Return False if a plugin fails."""
        gone = Task(self.ssn.tables, row)
        self.future += gone.req
        return self.ssn.ask(points.simulate_remove_task, self.task, gone, self.node) is None

    def _comes_back(self, row: int) -> bool:
        """Put a task back. Return False if a plugin fails."""
        back = Task(self.ssn.tables, row)
        self.future -= back.req
        return self.ssn.ask(points.simulate_add_task, self.task, back, self.node) is None

    def _fits(self) -> bool:
        """Return True if the task fits with the tasks gone that were removed."""
        ssn, asked = self.ssn, self.ssn.tables.classes.asked[self.task.cls.row]
        if any(self.future[dimension] <= limit for dimension, limit in asked):
            return False
        if not ssn.ask(points.simulate_allocatable, self.queue, self.task):
            return False
        return ssn.ask(points.simulate_predicate, self.task, self.node) is None
