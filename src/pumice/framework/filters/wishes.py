"""Wishes between pods: preferred (anti-)affinity of the pod, and what pods that are there wish about it.

Source: kube-scheduler InterPodAffinity (1.36). A required affinity of a pod that is there counts as a wish of weight
``HARD_POD_AFFINITY_WEIGHT``.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pumice.columns.dtypes import F64, I64
from pumice.columns.rows import NodeRows
from pumice.columns.views import Task
from pumice.framework.filters.pods import PodIndex, PodSet
from pumice.framework.filters.standing import Looks, StandingTerms, Weighted
from pumice.model.pod import PodSpec

#: kube-scheduler's default.
HARD_POD_AFFINITY_WEIGHT = 1


def _own_terms(spec: PodSpec) -> Iterator[Weighted]:
    for term in spec.affinity.pod_preferred:
        yield term, term.weight
    for term in spec.affinity.anti_preferred:
        yield term, -term.weight


def _standing_terms(spec: PodSpec) -> Iterator[Weighted]:
    if HARD_POD_AFFINITY_WEIGHT:
        for term in spec.affinity.pod_required:
            yield term, HARD_POD_AFFINITY_WEIGHT
    yield from _own_terms(spec)


class InterPodScore:
    """Asked only for tasks of classes that it ``concerns``."""

    def __init__(self, index: PodIndex) -> None:
        self._index = index
        self._standing = StandingTerms(index, "wishes about pods", _standing_terms)
        self._wishes: dict[tuple[int, Looks], tuple[tuple[str, list[tuple[PodSet, int]]], ...]] = {}

    def concerns(self, cls: int) -> bool:
        """Whether the class has wishes, or some pod that may be there has one about a task of it."""
        return any(True for _ in _own_terms(self._index.tables.classes.specs[cls])) or self._standing.about_class(cls)

    def score(self, task: Task, nodes: NodeRows) -> F64:
        """0 for the least wished candidate, 100 for the most wished one; all 0 when they are equal. Shape (rows,)."""
        cls = task.cls.row
        question = cls, self._standing.looks(task.row)
        wishes = self._wishes.get(question)
        if wishes is None:
            wishes = self._wishes[question] = self._wishes_of(cls, task.row)
        raw: I64 | None = None
        for key, weighted in wishes:
            label = self._index.derived.label(key)
            by_domain = np.zeros(len(label.values) + 1, dtype=np.int64)
            for pods, weight in weighted:
                by_domain += weight * pods.per_domain(key)
            found = by_domain[nodes.pick(label.codes)]
            raw = found if raw is None else raw + found
        if raw is None or not len(raw):
            return np.zeros(len(nodes))
        low = raw.min()
        spread = float(raw.max() - low)
        if not spread:
            return np.zeros(len(raw))
        return np.asarray(np.floor(100.0 * ((raw - low) / spread)))

    def _wishes_of(self, cls: int, row: int) -> tuple[tuple[str, list[tuple[PodSet, int]]], ...]:
        """By topology key, pods and how much it is wished to be where one of them is."""
        found: dict[str, list[tuple[PodSet, int]]] = {}
        for term, weight in _own_terms(self._index.tables.classes.specs[cls]):
            found.setdefault(term.topology_key, []).append((self._index.matching((term,)), weight))
        for standing in self._standing.about(row):
            found.setdefault(standing.term.topology_key, []).append((standing.owners, standing.weight))
        return tuple(found.items())
