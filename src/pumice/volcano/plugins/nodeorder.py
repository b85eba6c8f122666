"""nodeorder: kube-scheduler's scores. Source: Volcano nodeorder (spec 04 §10), kube-scheduler 1.36.

What a node is worth by itself is answered for a class: how full it would be, which images it has. What is scaled over
the candidates, or counts other pods, is answered for a task; as long as that is one number for all candidates it is
given as that number.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from pumice.columns.dtypes import F64, I64
from pumice.columns.rows import NodeRows
from pumice.columns.views import Task, TaskClass
from pumice.framework import points
from pumice.framework.plugin import plugin
from pumice.framework.session import Session
from pumice.model.pod import PodSpec
from pumice.volcano.filters.pods import classes_where, has_pod_terms, pod_index
from pumice.volcano.scorers.allocation import Allocation
from pumice.volcano.scorers.images import image_scores, known_images
from pumice.volcano.scorers.interpod import InterPodScore
from pumice.volcano.scorers.spread import SpreadScore
from pumice.volcano.scorers.terms import avoided_count, is_same_everywhere, preferred_weight, scaled


class Plan(NamedTuple):
    """What counts for a class: a number for every node, and scores of the candidates with their weights.

    ``same`` None: nothing was scored. ``parts`` empty: ``same`` is the whole answer, for every task of the class.
    """

    same: float | None
    parts: tuple[tuple[Callable[[Task, NodeRows], F64], int], ...]


@plugin("nodeorder", by_shape=True)
class NodeOrder:
    """Each argument is the weight of one of kube-scheduler's scores (0 to 100 a node); weight 0 leaves it out."""

    def __init__(
        self,
        ssn: Session,
        *,
        leastrequested_weight: int = 1,
        mostrequested_weight: int = 0,
        balancedresource_weight: int = 1,
        nodeaffinity_weight: int = 2,
        podaffinity_weight: int = 2,
        tainttoleration_weight: int = 3,
        imagelocality_weight: int = 1,
        podtopologyspread_weight: int = 2,
    ) -> None:
        self.ssn = ssn
        self._facts = ssn.tables.nodes.facts
        self._cls = ssn.tables.tasks.cls
        self.allocation = Allocation(ssn.tables, leastrequested_weight, mostrequested_weight, balancedresource_weight)
        self._node_affinity, self._taints = nodeaffinity_weight, tainttoleration_weight
        self._pod_affinity, self._spread = podaffinity_weight, podtopologyspread_weight
        self._images = imagelocality_weight
        self._plans: dict[int, Plan] = {}
        self.unused_points = () if imagelocality_weight and known_images(self._facts) else (points.node_order,)

    @points.node_order
    def image_locality(self, cls: TaskClass, nodes: NodeRows) -> F64:
        """How much of the images is there. Shape (rows,)."""
        return image_scores(self._facts, cls.spec).take(nodes.rows) * self._images

    @points.batch_node_order
    def room(self, cls: TaskClass, nodes: NodeRows) -> F64:
        """LeastAllocated, MostAllocated and BalancedAllocation. Shape (rows,)."""
        return self.allocation(cls, nodes)

    @points.batch_node_order
    def among_candidates(self, task: Task, nodes: NodeRows) -> F64 | float | None:
        """Preferred node affinity, taints to avoid, wishes between pods, topology spread. Shape (rows,)."""
        cls = int(self._cls[task.row])
        plan = self._plans.get(cls)
        if plan is None:
            plan = self._plans[cls] = self._plan(cls)
        if not plan.parts:
            return plan.same
        total = np.full(len(nodes), plan.same or 0.0)
        for score, weight in plan.parts:
            total += weight * score(task, nodes)
        return total

    def _plan(self, cls: int) -> Plan:
        spec = self.ssn.tables.classes.specs[cls]
        same: float | None = None
        parts: list[tuple[Callable[[Task, NodeRows], F64], int]] = []
        for raw, weight, reverse in self._by_node_objects(spec):
            if is_same_everywhere(raw):
                same = (same or 0.0) + weight * float(scaled(raw[:1], reverse=reverse).sum())
            else:
                parts.append((_scaled_over(raw, reverse), weight))
        if self._pod_affinity and classes_where(self.ssn.tables, "pod terms", has_pod_terms):
            pods = self.ssn.shared(InterPodScore, lambda: InterPodScore(pod_index(self.ssn)))
            if pods.concerns(cls):
                parts.append((pods.score, self._pod_affinity))
        if self._spread and spec.spread:
            spread = self.ssn.shared(SpreadScore, lambda: SpreadScore(pod_index(self.ssn)))
            if spread.concerns(cls):
                parts.append((spread.score, self._spread))
        return Plan(same, tuple(parts))

    def _by_node_objects(self, spec: PodSpec) -> list[tuple[I64, int, bool]]:
        """Raw scores that only node objects decide, with weight and whether less is better."""
        found = []
        if self._taints:
            found.append((avoided_count(self._facts, spec), self._taints, True))
        if self._node_affinity and spec.affinity.node_preferred:
            found.append((preferred_weight(self._facts, spec), self._node_affinity, False))
        return found


def _scaled_over(raw: I64, reverse: bool) -> Callable[[Task, NodeRows], F64]:
    """A score that scales ``raw`` over the candidates."""

    def score(task: Task, nodes: NodeRows) -> F64:
        return scaled(raw.take(nodes.rows), reverse=reverse)

    return score
