"""Scores that follow from node objects and the pod's terms: preferred node affinity, and taints that are better
avoided.

The raw score of every node is kept while no node changes; it is scaled over the candidates of the moment.
Source: kube-scheduler NodeAffinity and TaintToleration (1.36), DefaultNormalizeScore.
"""

from __future__ import annotations

import numpy as np

from pumice.columns.dtypes import F64, I64, AnyArray
from pumice.columns.nodes import NodeFacts
from pumice.model.pod import PodSpec
from pumice.volcano.filters.static import node_term, untolerated_count

AVOID = ("PreferNoSchedule",)


def preferred_weight(facts: NodeFacts, spec: PodSpec) -> I64:
    """Sum of the weights of the preferred node terms that match (N,)."""

    def build() -> I64:
        total = np.zeros(len(facts), dtype=np.int64)
        for preferred in spec.affinity.node_preferred:
            total += preferred.weight * node_term(facts, preferred.term)
        return total

    return facts.remember(("preferred nodes", spec.affinity.node_preferred), build)


def avoided_count(facts: NodeFacts, spec: PodSpec) -> I64:
    """Number of PreferNoSchedule taints that the pod does not tolerate (N,)."""

    def build() -> I64:
        tolerations = [t for t in spec.tolerations if t.effect in ("", *AVOID)]
        return untolerated_count(facts, tolerations, AVOID)

    return facts.remember(("avoided taints", spec.tolerations), build)


def scaled(raw: I64, *, reverse: bool = False) -> F64:
    """``⌊100 · raw / max⌋``, or 100 minus that; without anything above 0 all are 0, or 100."""
    top = int(raw.max(initial=0))
    score = raw * 100 // top if top else np.zeros(len(raw), dtype=np.int64)
    return (100 - score if reverse else score).astype(np.float64)


def is_same_everywhere(raw: AnyArray) -> bool:
    """Whether scaling gives the same number to any candidates."""
    return not len(raw) or bool((raw == raw[0]).all())
