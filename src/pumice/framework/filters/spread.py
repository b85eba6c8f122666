"""Topology spread constraints that must hold (DoNotSchedule).

Source: kube-scheduler PodTopologySpread (1.36) with minDomains and both node inclusion policies. The system's default
constraints are only wishes (ScheduleAnyway), so they are no matter of this filter.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pumice.algorithms.selectors import matches
from pumice.columns.dtypes import I32, I64, Bool
from pumice.columns.rows import NodeRows
from pumice.columns.views import Task
from pumice.framework.derived import Derived
from pumice.framework.filters.pods import PodIndex
from pumice.framework.node_filters import node_affinity, tolerated
from pumice.framework.verdict import Code, Unfit, Verdict
from pumice.model.pod import Pod, PodSpec, TopologySpreadConstraint

SKEWED = Unfit("node(s) didn't match pod topology spread constraints")
NO_LABEL = Unfit("node(s) didn't match pod topology spread constraints (missing required label)", Code.UNRESOLVABLE)
WHY = ((), (SKEWED,), (NO_LABEL,))
HARD, SOFT = "DoNotSchedule", "ScheduleAnyway"


@dataclass(frozen=True, slots=True)
class Prepared:
    """A constraint over the nodes: their domains (N,), whose pods count (N,), and which domains there are (D + 1,)."""

    constraint: TopologySpreadConstraint
    codes: I32
    counted: Bool
    domains: Bool


def constraints_of(spec: PodSpec, kind: str) -> tuple[TopologySpreadConstraint, ...]:
    return tuple(c for c in spec.spread if c.when_unsatisfiable == kind)


def prepare(facts: Derived, spec: PodSpec, kind: str) -> tuple[Prepared, ...]:
    """The constraints of one kind. Only nodes with the topology labels of all of them take part."""
    constraints = constraints_of(spec, kind)
    labelled = np.ones(len(facts), dtype=bool)
    for constraint in constraints:
        labelled &= facts.label(constraint.topology_key).codes >= 0
    prepared = []
    for constraint in constraints:
        counted = labelled.copy()
        if constraint.node_affinity_policy == "Honor":
            counted &= node_affinity(facts, spec)
        if constraint.node_taints_policy == "Honor":
            counted &= tolerated(facts, spec.tolerations)
        label = facts.label(constraint.topology_key)
        domains = np.zeros(len(label.values) + 1, dtype=bool)
        domains[label.codes[counted]] = True
        prepared.append(Prepared(constraint, label.codes, counted, domains))
    return tuple(prepared)


class SpreadFilter:
    """Asked only for tasks of classes that it ``concerns``."""

    def __init__(self, index: PodIndex) -> None:
        self._index = index
        self._prepared: dict[int, tuple[Prepared, ...]] = {}

    def concerns(self, cls: int) -> bool:
        return bool(self._of(cls))

    def verdict(self, task: Task, nodes: NodeRows) -> Verdict:
        """The first constraint that a node breaks: no such label, or one more pod is too many. Shape (rows,)."""
        cls, pod = task.cls.row, task.pod
        codes: I32 | None = None
        for i, prepared in enumerate(self._of(cls)):
            by_domain = (self._skew(pod, (HARD, cls, i), prepared) > prepared.constraint.max_skew).astype(np.int32)
            by_domain[-1] = 2
            found = by_domain[nodes.pick(prepared.codes)]
            codes = found if codes is None else np.where(codes > 0, codes, found)
        return Verdict(np.zeros(len(nodes), dtype=np.int32) if codes is None else codes, WHY)

    def _of(self, cls: int) -> tuple[Prepared, ...]:
        found = self._prepared.get(cls)
        if found is None:
            tables = self._index.tables
            found = self._prepared[cls] = prepare(self._index.derived, tables.classes.specs[cls], HARD)
        return found

    def _skew(self, pod: Pod, kind: tuple[str, int, int], prepared: Prepared) -> I64:
        """How far each domain would be above the emptiest one with the pod in it (D + 1,)."""
        constraint = prepared.constraint
        pods = self._index.in_namespace(constraint.selector, pod.namespace)
        counts = pods.per_domain(constraint.topology_key, prepared.counted, kind)
        present = counts[prepared.domains]
        least = int(present.min()) if len(present) >= max(1, constraint.min_domains) else 0
        own = constraint.selector is not None and matches(constraint.selector, pod.labels)
        return counts + (int(own) - least)
