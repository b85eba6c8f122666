"""Topology-aware preemption: of some nodes the one whose victims matter least, each found out by trying what if they
were gone. Source: Volcano preempt with enableTopologyAwarePreemption (spec 03 §4.6; kube-scheduler's
DefaultPreemption)."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import NamedTuple

from pumice.columns.dtypes import F64
from pumice.columns.nodes import FUTURE
from pumice.columns.views import Node, Task
from pumice.framework.cycle.session import Session
from pumice.volcano import points
from pumice.volcano.eviction.node_search import Found
from pumice.volcano.eviction.victim_order import eviction_order

#: Added to every priority, so that no sum is smaller for more victims. Source: kube-scheduler.
_NO_LESS = 1 << 31


class Limits(NamedTuple):
    """How many nodes are compared: a percentage of those there are, no fewer and no more than so many."""

    percentage: int
    least: int
    most: int

    def of(self, nodes: int) -> int:
        return min(max(nodes * self.percentage // 100, self.least), self.most, nodes)


def least_harmful_first(ssn: Session, task: Task, found: Iterable[Found], wanted: int) -> list[Found]:
    """The first ``wanted`` nodes on which evictions can make room for the task, those with the least important victims
    first: the lowest first one, the least sum of priorities, the fewest, the youngest; else the first node.

    Volcano begins anywhere in the list of nodes and takes those that its workers find first; here they are the first
    rows.
    """
    tried = (_WhatIf(ssn, task, each.node).victims_among(each.victims) for each in found)
    worth_it = islice((each for each in tried if each is not None), wanted)
    return sorted(worth_it, key=lambda each: _harm(ssn, each))


def _harm(ssn: Session, found: Found) -> tuple[float, ...]:
    pods = [ssn.tables.tasks.pods[row] for row in found.victims]
    priorities = [pod.spec.priority or 0 for pod in pods]
    highest = max(priorities)
    starts = [
        ssn.now if pod.start_time is None else pod.start_time
        for pod, priority in zip(pods, priorities, strict=True)
        if priority == highest
    ]
    return priorities[0], sum(priorities) + len(pods) * _NO_LESS, len(pods), -min(starts)


class _WhatIf:
    """What if some tasks had left a node: within a block whose writes are taken back. Nothing is evicted here:
    plugins are told by their simulate hooks, and what that frees is added up beside the books."""

    def __init__(self, ssn: Session, task: Task, node: int) -> None:
        self.ssn, self.task = ssn, task
        self.node, self.queue = Node(ssn.tables, node), task.queue
        self.future: F64 = ssn.tables.nodes.books[node, FUTURE].copy()

    def victims_among(self, victims: list[int]) -> Found | None:
        """As few of the victims as it takes, the most important ones spared first; None where all of them are not
        enough, or nobody has to go."""
        mark = self.ssn.journal.mark()
        try:
            found = self._victims_among(victims)
        finally:
            self.ssn.journal.rollback(mark)
        return Found(self.node.row, found) if found else None

    def _victims_among(self, victims: list[int]) -> list[int]:
        gone = list[int]()
        for row in eviction_order(self.ssn, victims, self.task.row):
            gone.append(row)
            if not self._leaves(row):
                return []
            if self._fits():
                break
        if not gone or self.ssn.ask(points.simulate_predicate, self.task, self.node) is not None:
            return []
        found = []
        for row in reversed(gone):
            if not self._comes_back(row):
                return []
            if not self._fits():
                if not self._leaves(row):
                    return []
                found.append(row)
        return found

    def _leaves(self, row: int) -> bool:
        gone = Task(self.ssn.tables, row)
        self.future += gone.req
        return self.ssn.ask(points.simulate_remove_task, self.task, gone, self.node) is None

    def _comes_back(self, row: int) -> bool:
        back = Task(self.ssn.tables, row)
        self.future -= back.req
        return self.ssn.ask(points.simulate_add_task, self.task, back, self.node) is None

    def _fits(self) -> bool:
        ssn, asked = self.ssn, self.ssn.tables.classes.asked[self.task.cls.row]
        if any(self.future[dimension] <= limit for dimension, limit in asked):
            return False
        if not ssn.ask(points.simulate_allocatable, self.queue, self.task):
            return False
        return ssn.ask(points.simulate_predicate, self.task, self.node) is None
