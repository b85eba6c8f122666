"""Required topology spread constraints (DoNotSchedule).

Source: kube-scheduler PodTopologySpread (1.36), with minDomains and both node inclusion policies. The default
constraints of the cluster are preferences (ScheduleAnyway), so this filter does not have them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import and_

import numpy as np
from msgspec import Struct

from pumice.algorithms.selectors import matches
from pumice.columns.dtypes import I32, I64, Bool
from pumice.columns.rows import NodeRows, TaskRows
from pumice.columns.views import Task
from pumice.framework.plugin.filter_result import Code, FilterResult, Unfit
from pumice.framework.plugin.incremental import FilterInTurn
from pumice.model.pod import Pod, PodSpec, TopologySpreadConstraint
from pumice.placing.derived import Derived
from pumice.placing.filters.nodes import node_affinity, tolerated
from pumice.placing.filters.pods import PodIndex, PodSet

SKEWED = Unfit("node(s) didn't match pod topology spread constraints")
NO_LABEL = Unfit("node(s) didn't match pod topology spread constraints (missing required label)", Code.UNRESOLVABLE)
WHY = ((), (SKEWED,), (NO_LABEL,))
HARD, SOFT = "DoNotSchedule", "ScheduleAnyway"


class Prepared(Struct, frozen=True):
    """A constraint over the nodes: their domains (N,), whose pods count (N,), and which domains exist (D + 1,)."""

    constraint: TopologySpreadConstraint
    codes: I32
    counted: Bool
    domains: Bool

    def too_many(self, counts: I64, pod: Pod) -> Bool:
        """Return the domains that the pod would put too far above the emptiest one. ``counts``: matching pods in each.
        Shape (D + 1,)."""
        constraint = self.constraint
        present = counts[self.domains]
        # With fewer domains than ``minDomains``, the missing ones count as empty, as in Kubernetes.
        least = int(present.min()) if len(present) >= max(1, constraint.min_domains) else 0
        # The pod counts itself only if it matches its own selector, which Kubernetes does not demand.
        own = constraint.selector is not None and matches(constraint.selector, pod.labels)
        found: Bool = counts > constraint.max_skew + least - int(own)
        return found


def constraints_of(spec: PodSpec, kind: str) -> tuple[TopologySpreadConstraint, ...]:
    return tuple(c for c in spec.spread if c.when_unsatisfiable == kind)


def prepare(facts: Derived, spec: PodSpec, kind: str) -> tuple[Prepared, ...]:
    """Return the constraints of one kind. Only nodes with the labels of all of them take part."""
    constraints = constraints_of(spec, kind)
    labelled = np.ones(len(facts), dtype=bool)
    for constraint in constraints:
        # A node without one of the labels counts for no constraint, not even for those whose label it has. Source:
        # kube-scheduler, nodeLabelsMatchSpreadConstraints.
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
        # Only domains with a node that counts can be the emptiest one.
        domains[label.codes[counted]] = True
        prepared.append(Prepared(constraint, label.codes, counted, domains))
    return tuple(prepared)


def prepared_of(index: PodIndex, cls: int, kind: str) -> tuple[Prepared, ...]:
    """Return the constraints of a class."""
    nodes, specs = index.derived, index.tables.classes.specs
    return nodes.of_class(("spread", kind), cls, lambda: prepare(nodes, specs[cls], kind), size=len(nodes))


class SpreadFilter:
    """Filters nodes for tasks of classes that it ``concerns``."""

    def __init__(self, index: PodIndex) -> None:
        self._index = index

    def concerns(self, cls: int) -> bool:
        return bool(self._of(cls))

    def filter_result(self, task: Task, nodes: NodeRows) -> FilterResult:
        """Return the first constraint that each node breaks: no such label, or too many pods. Shape (rows,)."""
        cls, pod = task.cls.row, task.pod
        codes: I32 | None = None
        for i, prepared in enumerate(self._of(cls)):
            by_domain = prepared.too_many(self._counts((HARD, cls, i), prepared, pod), pod).astype(np.int32)
            # Nodes without the label come last in the array, with a reason of their own.
            by_domain[-1] = 2
            found = by_domain[nodes.pick(prepared.codes)]
            codes = found if codes is None else np.where(codes > 0, codes, found)
        return FilterResult(np.zeros(len(nodes), dtype=np.int32) if codes is None else codes, WHY)

    def _of(self, cls: int) -> tuple[Prepared, ...]:
        return prepared_of(self._index, cls, HARD)

    def _counts(self, kind: tuple[str, int, int], prepared: Prepared, pod: Pod) -> I64:
        """Return how many matching pods are in each domain. Shape (D + 1,)."""
        key = prepared.constraint.topology_key
        return self._pods(prepared, pod).per_domain(key, prepared.counted, kind)

    def _pods(self, prepared: Prepared, pod: Pod) -> PodSet:
        return self._index.in_namespace(prepared.constraint.selector, pod.namespace)

    def in_turn(self, tasks: TaskRows, nodes: NodeRows) -> FilterInTurn:
        """Return an incremental filter for tasks of one class that are placed one after the other."""
        cls, pods = tasks.classes[0], tasks.pods
        each = []
        for i, prepared in enumerate(self._of(cls)):
            domains = self._index.derived.label(prepared.constraint.topology_key).domain_of[:-1]
            # Copied, because each placement is counted here and in no other answer.
            counts = self._counts((HARD, cls, i), prepared, pods[0]).copy()
            joins = self._pods(prepared, pods[0]).joined_by(tasks)
            each.append(_Following(prepared, domains, nodes, counts, joins, pods))
        return _SpreadInTurn(each, len(pods))


class _Following:
    """The state of a constraint. ``domains``, ``counted`` (rows,): domains of nodes, and whether pods on them count.
    ``counts`` (D + 1,): matching pods in each domain. ``joins``: whether the task of a step becomes one of these."""

    def __init__(
        self, prepared: Prepared, domains: I64, nodes: NodeRows, counts: I64, joins: list[int], pods: Sequence[Pod]
    ) -> None:
        self._prepared, self._counts, self._joins, self._pods = prepared, counts, joins, pods
        self._domains, self._counted = nodes.pick(domains), nodes.pick(prepared.counted)
        self._open = self._open_to(0)

    def _open_to(self, step: int) -> Bool:
        """Return the domains that take the task of a step. Shape (D + 1,)."""
        found = ~self._prepared.too_many(self._counts, self._pods[step])
        found[-1] = False
        return found

    @property
    def open_nodes(self) -> Bool:
        """Nodes that take the present task. Shape (rows,)."""
        return self._open[self._domains]

    def placed(self, step: int, place: int) -> bool:
        if self._joins[step] and self._counted[place]:
            self._counts[self._domains[place]] += 1
        # The emptiest domain may be another one now, so all domains are compared anew.
        before, self._open = self._open, self._open_to(step + 1)
        return bool((before != self._open).any())


class _SpreadInTurn(FilterInTurn):
    """The filter for tasks that are placed one after the other."""

    def __init__(self, constraints: Sequence[_Following], count: int) -> None:
        self.count, self._constraints = count, constraints

    def open_to(self, step: int) -> Bool:
        return reduce(and_, [each.open_nodes for each in self._constraints])

    def placed(self, step: int, place: int) -> bool:
        # A list, so that each constraint is notified even if the first one changes.
        changes = [each.placed(step, place) for each in self._constraints]
        return any(changes)
