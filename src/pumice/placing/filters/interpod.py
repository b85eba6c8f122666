"""Required inter-pod affinity and anti-affinity, and the required anti-affinity of existing pods.

Source: kube-scheduler InterPodAffinity (1.36), with its rule for the first pod of a series with affinity to itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from operator import and_, or_
from typing import NamedTuple

import numpy as np

from pumice.columns.dtypes import I32, Bool
from pumice.columns.nodes import LabelColumn
from pumice.columns.rows import NodeRows, TaskRows
from pumice.columns.views import Task
from pumice.framework.plugin.filter_result import Code, FilterResult, Unfit
from pumice.framework.plugin.incremental import FilterInTurn, equal_prefix_length
from pumice.model.pod import Pod, PodAffinityTerm, PodSpec
from pumice.placing.filters.existing_terms import ExistingTerms, Looks, Weighted
from pumice.placing.filters.pods import PodIndex, PodSet, means

AFFINITY = Unfit("node(s) didn't match pod affinity rules", Code.UNRESOLVABLE)
ANTI_AFFINITY = Unfit("node(s) didn't match pod anti-affinity rules")
EXISTING_ANTI_AFFINITY = Unfit("node(s) didn't satisfy existing pods anti-affinity rules")
#: Reasons by code. If a node breaks several rules, the last one is reported.
WHY = ((), (EXISTING_ANTI_AFFINITY,), (ANTI_AFFINITY,), (AFFINITY,))
_EXISTING, _ANTI, _AFFINITY = 1, 2, 3


def _anti_terms(spec: PodSpec) -> Iterator[Weighted]:
    return ((term, 1) for term in spec.affinity.anti_required)


class _OfKey(NamedTuple):
    """The rules in the domains of one topology key. ``apart``: pods that must not be there, each with the code of the
    rule. ``near``: whether pods that required affinity is about must be there."""

    key: str
    label: LabelColumn
    apart: tuple[tuple[PodSet, int], ...]
    near: bool


class _Rules(NamedTuple):
    """The rules for tasks of a class that look equal. ``near``: the pods that required affinity is about, None
    without."""

    by_key: tuple[_OfKey, ...]
    near: PodSet | None


class InterPodFilter:
    """Filters nodes for tasks of classes that it ``concerns``."""

    def __init__(self, index: PodIndex) -> None:
        self._index = index
        self._existing = ExistingTerms(index, "required anti-affinity", _anti_terms)
        self._rules: dict[tuple[int, Looks], _Rules] = {}

    def concerns(self, cls: int) -> bool:
        """Return True if the class has required terms, or a pod that may be placed has required anti-affinity to its
        tasks."""
        affinity = self._index.tables.classes.specs[cls].affinity
        return bool(affinity.pod_required or affinity.anti_required) or self._existing.about_class(cls)

    def filter_result(self, task: Task, nodes: NodeRows) -> FilterResult:
        """Return the rule that each node breaks: affinity, else anti-affinity, else that of other pods. Shape
        (rows,)."""
        cls = task.cls
        rules = self._rules_for(cls.row, task.row, self._existing.looks(task.row))
        near = rules.near
        is_first = near is not None and self._is_first(near, task.pod, cls.spec.affinity.pod_required)
        codes: I32 | None = None
        for each in rules.by_key:
            # One entry per domain and one for nodes without the label, so that rules are evaluated per domain and not
            # per node.
            by_domain = np.zeros(len(each.label.values) + 1, dtype=np.int32)
            for pods, code in each.apart:
                by_domain[pods.per_domain(each.key) > 0] = code
            if each.near and near is not None:
                # For the first pod of a series, every node with the label will do.
                by_domain[-1 if is_first else near.per_domain(each.key) == 0] = _AFFINITY
            found = by_domain[nodes.pick(each.label.codes)]
            codes = found if codes is None else np.maximum(codes, found)
        return FilterResult(np.zeros(len(nodes), dtype=np.int32) if codes is None else codes, WHY)

    def in_turn(self, tasks: TaskRows, nodes: NodeRows) -> FilterInTurn:
        """Return an incremental filter for tasks of one class that are placed one after the other."""
        looks = [self._existing.looks(row) for row in tasks.rows.tolist()]
        # The rules depend on the labels of a task, so the filter ends where these differ.
        count = equal_prefix_length(looks)
        return _PodsInTurn(self._rules_for(tasks.classes[0], int(tasks.rows[0]), looks[0]), tasks, nodes, count)

    def _rules_for(self, cls: int, row: int, looks: Looks) -> _Rules:
        """Return the rules for tasks of a class that look equal, cached."""
        # Tasks of a class may differ in labels, but those of one job rarely do.
        rules = self._rules.get((cls, looks))
        if rules is None:
            rules = self._rules[cls, looks] = self._rules_of(cls, row)
        return rules

    def _rules_of(self, cls: int, row: int) -> _Rules:
        """Return the rules for tasks of a class that look equal."""
        affinity = self._index.tables.classes.specs[cls].affinity
        # Keys of required affinity come first and also without pods to avoid, so that each gets its entry in
        # ``by_key``.
        apart: dict[str, list[tuple[PodSet, int]]] = {term.topology_key: [] for term in affinity.pod_required}
        for existing in self._existing.about(row):
            apart.setdefault(existing.topology_key, []).append((existing.owners, _EXISTING))
        for term in affinity.anti_required:
            apart.setdefault(term.topology_key, []).append((self._index.matching((term,)), _ANTI))
        # One set for all required terms: kube-scheduler counts only pods that match every term.
        near = {term.topology_key for term in affinity.pod_required}
        label = self._index.derived.label
        by_key = tuple(_OfKey(key, label(key), tuple(pods), key in near) for key, pods in apart.items())
        return _Rules(by_key, self._index.matching(affinity.pod_required) if near else None)

    def _is_first(self, near: PodSet, pod: Pod, terms: tuple[PodAffinityTerm, ...]) -> bool:
        """Return True if the pod is the first of a series with affinity to itself."""
        # If a matching pod is anywhere, no exception is needed.
        if any(near.per_domain(term.topology_key).any() for term in terms):
            return False
        return _means_itself(terms, pod)


def _means_itself(terms: tuple[PodAffinityTerm, ...], pod: Pod) -> bool:
    """Return True if all terms are about the pod itself."""
    return all(means(term, pod) for term in terms)


class _KeyInTurn:
    """The state of the domains of one topology key.

    ``domains`` (rows,): domains of the nodes. ``closed`` (D + 1,): domains with pods that must not be there. ``near``
    (D + 1,): domains with pods that must be there, None without. ``parts``, ``joins``: whether the task of a step
    becomes one of the first, or of the second.
    """

    __slots__ = ("closed", "domains", "joins", "near", "parts")

    def __init__(self, rules: _OfKey, near: PodSet | None, joins: list[int], tasks: TaskRows, nodes: NodeRows) -> None:
        self.domains = nodes.pick(rules.label.domain_of[:-1])
        self.closed = np.zeros(len(rules.label.values) + 1, dtype=bool)
        self.parts = [0] * len(tasks)
        for pods, _ in rules.apart:
            self.closed |= pods.per_domain(rules.key) > 0
            self.parts = list(map(or_, self.parts, pods.joined_by(tasks)))
        self.near = near.per_domain(rules.key) > 0 if rules.near and near is not None else None
        self.joins = joins

    def open_to(self, *, is_first: bool) -> Bool:
        """Return the nodes that keep the rules. Shape (rows,)."""
        found = ~self.closed
        if is_first and self.near is not None:
            found[-1] = False
        elif self.near is not None:
            found &= self.near
        return found[self.domains]

    def placed(self, step: int, place: int) -> bool:
        """Place the task of a step. Return True if that changes anything."""
        domain = self.domains[place]
        # The last entry is for nodes without the label, which are in no domain.
        if domain == len(self.closed) - 1:
            return False
        closes = self.parts[step] > 0 and not self.closed[domain]
        opens = self.near is not None and self.joins[step] > 0 and not self.near[domain]
        if closes:
            self.closed[domain] = True
        if opens and self.near is not None:
            self.near[domain] = True
        # A second pod in a domain changes nothing, so the answer for the next task is the same.
        return closes or opens


class _PodsInTurn(FilterInTurn):
    """The filter for tasks that are placed one after the other."""

    def __init__(self, rules: _Rules, tasks: TaskRows, nodes: NodeRows, count: int) -> None:
        self.count, self._pods, self._rows = count, tasks.pods, len(nodes)
        self._terms = tasks.tables.classes.specs[tasks.classes[0]].affinity.pod_required
        joins = [] if rules.near is None else rules.near.joined_by(tasks)
        self._keys = [_KeyInTurn(each, rules.near, joins, tasks, nodes) for each in rules.by_key]
        self._none_near = rules.near is not None and not self._some_near()
        self._open: Bool | None = None

    def _some_near(self) -> bool:
        return any(bool(key.near.any()) for key in self._keys if key.near is not None)

    def open_to(self, step: int) -> Bool:
        if self._open is None:
            is_first = self._none_near and _means_itself(self._terms, self._pods[step])
            each = [key.open_to(is_first=is_first) for key in self._keys]
            found = reduce(and_, each) if each else np.ones(self._rows, dtype=bool)
            if self._none_near:
                return found  # for the next one its labels count
            self._open = found
        return self._open

    def placed(self, step: int, place: int) -> bool:
        # A list, so that each key is notified even if the first one changes.
        changes = [key.placed(step, place) for key in self._keys]
        if not any(changes):
            return self._none_near  # the labels of the next one count
        self._open, self._none_near = None, self._none_near and not self._some_near()
        return True
