"""Inter-pod affinity and anti-affinity that must hold, and the anti-affinity of pods that are there already.

Source: kube-scheduler InterPodAffinity (1.36), with the rule for the first pod of a series that wants to be near
itself.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pumice.columns.dtypes import I64, AnyArray, Bool
from pumice.columns.rows import NodeRows
from pumice.columns.views import Task
from pumice.framework.filters.pods import PodIndex, PodSet, means
from pumice.framework.filters.standing import StandingTerms, Weighted
from pumice.framework.verdict import Code, Unfit, Verdict
from pumice.model.pod import Pod, PodAffinityTerm, PodSpec

AFFINITY = Unfit("node(s) didn't match pod affinity rules", Code.UNRESOLVABLE)
ANTI_AFFINITY = Unfit("node(s) didn't match pod anti-affinity rules")
EXISTING_ANTI_AFFINITY = Unfit("node(s) didn't satisfy existing pods anti-affinity rules")
WHY = ((), (AFFINITY,), (ANTI_AFFINITY,), (EXISTING_ANTI_AFFINITY,))


def _anti_terms(spec: PodSpec) -> Iterator[Weighted]:
    return ((term, 1) for term in spec.affinity.anti_required)


class InterPodFilter:
    """Asked only for tasks of classes that it ``concerns``."""

    def __init__(self, index: PodIndex) -> None:
        self._index = index
        self._standing = StandingTerms(index, "required anti-affinity", _anti_terms)

    def concerns(self, cls: int) -> bool:
        """Whether the class has required terms, or a pod that may be there wants to be apart from a task of it."""
        affinity = self._index.tables.classes.specs[cls].affinity
        return bool(affinity.pod_required or affinity.anti_required) or self._standing.about_class(cls)

    def verdict(self, task: Task, nodes: NodeRows) -> Verdict:
        """The first rule that a node breaks. Shape (rows,)."""
        affinity = task.cls.spec.affinity
        codes = np.zeros(len(nodes), dtype=np.int32)
        for standing in self._standing.about(task.row):
            codes[self._count(standing.owners, standing.term, nodes.rows) > 0] = 3
        for term in affinity.anti_required:
            codes[self._count(self._index.matching((term,)), term, nodes.rows) > 0] = 2
        if affinity.pod_required:
            codes[~self._near(task.pod, affinity.pod_required, nodes.rows)] = 1
        return Verdict(codes, WHY)

    def _count(self, pods: PodSet, term: PodAffinityTerm, rows: AnyArray) -> I64:
        """How many of the pods are in the node's domain; 0 where the node has no such label."""
        label = self._index.derived.label(term.topology_key)
        return pods.per_domain(term.topology_key)[label.codes[rows]]

    def _near(self, pod: Pod, terms: tuple[PodAffinityTerm, ...], rows: AnyArray) -> Bool:
        """Nodes that have every topology label and, in each of those domains, a pod that all terms are about."""
        facts = self._index.derived
        pods = self._index.matching(terms)
        labelled = np.ones(len(rows), dtype=bool)
        near = labelled.copy()
        for term in terms:
            labelled &= facts.label(term.topology_key).codes[rows] >= 0
            near &= self._count(pods, term, rows) > 0
        alone = not any(pods.per_domain(term.topology_key).any() for term in terms)
        if alone and all(means(term, pod) for term in terms):
            return labelled
        return near
