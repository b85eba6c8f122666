"""Inter-pod affinity and anti-affinity that must hold, and the anti-affinity of pods that are there already.

Source: kube-scheduler InterPodAffinity (1.36), with the rule for the first pod of a series that wants to be near
itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from pumice.columns.dtypes import I32
from pumice.columns.nodes import LabelColumn
from pumice.columns.rows import NodeRows
from pumice.columns.views import Task
from pumice.framework.filters.pods import PodIndex, PodSet, means
from pumice.framework.filters.standing import Looks, StandingTerms, Weighted
from pumice.framework.verdict import Code, Unfit, Verdict
from pumice.model.pod import Pod, PodAffinityTerm, PodSpec

AFFINITY = Unfit("node(s) didn't match pod affinity rules", Code.UNRESOLVABLE)
ANTI_AFFINITY = Unfit("node(s) didn't match pod anti-affinity rules")
EXISTING_ANTI_AFFINITY = Unfit("node(s) didn't satisfy existing pods anti-affinity rules")
#: Of several that a node breaks the last one is told.
WHY = ((), (EXISTING_ANTI_AFFINITY,), (ANTI_AFFINITY,), (AFFINITY,))
_EXISTING, _ANTI, _AFFINITY = 1, 2, 3


def _anti_terms(spec: PodSpec) -> Iterator[Weighted]:
    return ((term, 1) for term in spec.affinity.anti_required)


class _OfKey(NamedTuple):
    """What holds in the domains of one topology key. ``apart``: pods that must not be there, each with the code of the
    rule; ``near``: whether pods that required affinity is about must be."""

    key: str
    label: LabelColumn
    apart: tuple[tuple[PodSet, int], ...]
    near: bool


class _Rules(NamedTuple):
    """All that holds for tasks of a class that look alike. ``near``: the pods that required affinity is about, None
    without."""

    by_key: tuple[_OfKey, ...]
    near: PodSet | None


class InterPodFilter:
    """Asked only for tasks of classes that it ``concerns``."""

    def __init__(self, index: PodIndex) -> None:
        self._index = index
        self._standing = StandingTerms(index, "required anti-affinity", _anti_terms)
        self._rules: dict[tuple[int, Looks], _Rules] = {}

    def concerns(self, cls: int) -> bool:
        """Whether the class has required terms, or a pod that may be there wants to be apart from a task of it."""
        affinity = self._index.tables.classes.specs[cls].affinity
        return bool(affinity.pod_required or affinity.anti_required) or self._standing.about_class(cls)

    def verdict(self, task: Task, nodes: NodeRows) -> Verdict:
        """The rule that a node breaks: affinity, then anti-affinity, then that of others. Shape (rows,)."""
        cls = task.cls
        question = cls.row, self._standing.looks(task.row)
        rules = self._rules.get(question)
        if rules is None:
            rules = self._rules[question] = self._rules_of(cls.row, task.row)
        near = rules.near
        is_first = near is not None and self._is_first(near, task.pod, cls.spec.affinity.pod_required)
        codes: I32 | None = None
        for each in rules.by_key:
            by_domain = np.zeros(len(each.label.values) + 1, dtype=np.int32)
            for pods, code in each.apart:
                by_domain[pods.per_domain(each.key) > 0] = code
            if each.near and near is not None:
                by_domain[-1 if is_first else near.per_domain(each.key) == 0] = _AFFINITY
            found = by_domain[nodes.pick(each.label.codes)]
            codes = found if codes is None else np.maximum(codes, found)
        return Verdict(np.zeros(len(nodes), dtype=np.int32) if codes is None else codes, WHY)

    def _rules_of(self, cls: int, row: int) -> _Rules:
        affinity = self._index.tables.classes.specs[cls].affinity
        apart: dict[str, list[tuple[PodSet, int]]] = {term.topology_key: [] for term in affinity.pod_required}
        for standing in self._standing.about(row):
            apart.setdefault(standing.term.topology_key, []).append((standing.owners, _EXISTING))
        for term in affinity.anti_required:
            apart.setdefault(term.topology_key, []).append((self._index.matching((term,)), _ANTI))
        near = {term.topology_key for term in affinity.pod_required}
        label = self._index.derived.label
        by_key = tuple(_OfKey(key, label(key), tuple(pods), key in near) for key, pods in apart.items())
        return _Rules(by_key, self._index.matching(affinity.pod_required) if near else None)

    def _is_first(self, near: PodSet, pod: Pod, terms: tuple[PodAffinityTerm, ...]) -> bool:
        """Whether the pod is the first of a series that wants to be near itself: then labels are enough."""
        if any(near.per_domain(term.topology_key).any() for term in terms):
            return False
        return all(means(term, pod) for term in terms)
