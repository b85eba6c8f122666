"""Filters by node objects alone: cordons, node selectors and affinity, taints.

Everything is computed once for each distinct set of terms, and kept while no node object changes. All shapes are (N,).
Source: kube-scheduler NodeUnschedulable, NodeAffinity and TaintToleration (1.36); Volcano's "stable" filters.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from pumice.algorithms.selectors import EncodedColumn, holds_over
from pumice.columns.dtypes import I32, I64, Bool, some
from pumice.framework.plugin.filter_result import Code, Unfit
from pumice.model.node import Taint
from pumice.model.pod import NodeSelectorTerm, PodSpec, Requirement, Toleration
from pumice.placing.derived import Derived

UNSCHEDULABLE = Unfit("node(s) were unschedulable", Code.UNRESOLVABLE)
AFFINITY = Unfit("node(s) didn't match Pod's node affinity/selector", Code.UNRESOLVABLE)
TAINTED = Unfit("node(s) had untolerated taint(s)", Code.UNRESOLVABLE)
#: Reasons by the codes of ``stable_codes``.
STABLE_REASONS = (None, UNSCHEDULABLE, AFFINITY, TAINTED)

#: The taint of cordoned nodes. A pod that tolerates it may run there.
CORDON = Taint("node.kubernetes.io/unschedulable", "", "NoSchedule")
BLOCKING = ("NoSchedule", "NoExecute")
NAME_FIELD = "metadata.name"


class Stable(NamedTuple):
    """The first stable filter that rejects each node (N,), as an index into ``STABLE_REASONS``, and whether any is
    rejected."""

    codes: I32
    objects: bool


def stable_codes(facts: Derived, spec: PodSpec, *, affinity: bool, taints: bool) -> Stable:
    """Return the codes of stable filters. Each of them ends the search on a node."""

    def build() -> Stable:
        codes = np.zeros(len(facts), dtype=np.int32)
        # In reverse order of the filters, because the last one that writes a node is reported.
        if taints:
            codes[~tolerated(facts, spec.tolerations)] = 3
        if affinity:
            codes[~node_affinity(facts, spec)] = 2
        # As if a cordon were this taint: pods that must run on every node tolerate it, and may be placed on cordoned
        # ones.
        if not any(tolerates(t, CORDON) for t in spec.tolerations):
            codes[facts.facts.unschedulable] = 1
        return Stable(codes, some(codes != 0))

    # By the terms and not by the class, so that classes that differ in requests share the answer.
    key = ("stable", affinity, taints, spec.node_selector, spec.affinity.node_required, spec.tolerations)
    return facts.get(key, build)


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """Return True if the toleration covers the taint. An empty key or effect covers any."""
    # An empty field covers everything, as in the API.
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    match toleration.operator:
        case "" | "Equal":
            return toleration.value == taint.value
        case "Exists":
            return True
        # An operator that is not known tolerates nothing.
        case _:
            return False


def tolerated(facts: Derived, tolerations: tuple[Toleration, ...]) -> Bool:
    """Return the nodes without taints that reject the pod."""

    def build() -> Bool:
        return np.asarray(untolerated_count(facts, tolerations, BLOCKING) == 0)

    return facts.get(("tolerated", tolerations), build)


def untolerated_count(facts: Derived, tolerations: Sequence[Toleration], effects: tuple[str, ...]) -> I64:
    """Return how many taints with one of the effects the pod does not tolerate."""
    # Counted per distinct set of taints: thousands of nodes share a few.
    counts = [
        sum(taint.effect in effects and not any(tolerates(t, taint) for t in tolerations) for taint in taints)
        for taints in facts.facts.taint_sets
    ]
    return np.array(counts, dtype=np.int64)[facts.facts.taint_code]


def node_affinity(facts: Derived, spec: PodSpec) -> Bool:
    """Return the nodes that the node selector and the required node affinity accept."""

    def build() -> Bool:
        found = np.ones(len(facts), dtype=bool)
        for key, value in spec.node_selector:
            found &= holds_over(Requirement(key, "In", (value,)), facts.label(key))
        terms = spec.affinity.node_required
        if terms is not None:
            any_term = np.zeros(len(facts), dtype=bool)
            for term in terms:
                any_term |= node_term(facts, term)
            found &= any_term
        return found

    return facts.get(("node affinity", spec.node_selector, spec.affinity.node_required), build)


def node_term(facts: Derived, term: NodeSelectorTerm) -> Bool:
    """Return the nodes that a term of a node selector matches. An empty term matches none."""
    # Terms are alternatives, so an empty one must not accept all nodes.
    found = np.full(len(facts), bool(term.labels or term.fields))
    for requirement in term.labels:
        found &= holds_over(requirement, facts.label(requirement.key))
    for requirement in term.fields:
        found &= holds_over(requirement, _names(facts)) if requirement.key == NAME_FIELD else False
    return found


def _names(facts: Derived) -> EncodedColumn:
    return facts.get((NAME_FIELD,), lambda: EncodedColumn(facts.facts.names))


def names_conflict(spec: PodSpec) -> bool:
    """Return True if all terms name nodes by field and none of them leaves a name. Source: NodeAffinity PreFilter."""
    terms = spec.affinity.node_required
    return bool(terms) and all(_named(term) == set() for term in terms or ())


def _named(term: NodeSelectorTerm) -> set[str] | None:
    """Return the node names that a term allows by field, or None if it allows all."""
    named: set[str] | None = None
    for requirement in term.fields:
        # Other operators leave names that are not known here, so they refute nothing. Source: NodeAffinity PreFilter.
        if requirement.key == NAME_FIELD and requirement.operator == "In":
            values = set(requirement.values)
            named = values if named is None else named & values
    return named
