"""Score nodes by the pod's preferred node affinity, and by taints that should be avoided.

The raw score of every node is cached while no node changes, and scaled over the candidates of each call. Source:
kube-scheduler NodeAffinity and TaintToleration (1.36), DefaultNormalizeScore.
"""

from __future__ import annotations

import numpy as np

from pumice.columns.dtypes import F64, I64
from pumice.model.pod import PodSpec
from pumice.placing.derived import Derived
from pumice.placing.filters.nodes import node_term, untolerated_count

AVOID = ("PreferNoSchedule",)


#: Raw score per node (N,), and the scaled score if it is the same for any candidates.
Raw = tuple[I64, float | None]


def preferred_weight(facts: Derived, spec: PodSpec) -> Raw:
    """Return the sum of weights of preferred node terms that match."""

    def build() -> Raw:
        total = np.zeros(len(facts), dtype=np.int64)
        for preferred in spec.affinity.node_preferred:
            total += preferred.weight * node_term(facts, preferred.term)
        return total, _everywhere(total, reverse=False)

    return facts.get(("preferred nodes", spec.affinity.node_preferred), build)


def avoided_count(facts: Derived, spec: PodSpec) -> Raw:
    """Return the number of PreferNoSchedule taints that the pod does not tolerate."""

    def build() -> Raw:
        # A toleration of another effect says nothing about taints that should only be avoided.
        tolerations = [t for t in spec.tolerations if t.effect in ("", *AVOID)]
        count = untolerated_count(facts, tolerations, AVOID)
        return count, _everywhere(count, reverse=True)

    return facts.get(("avoided taints", spec.tolerations), build)


def scaled(raw: I64, *, reverse: bool = False) -> F64:
    """Return ``⌊100 · raw / max⌋``, or 100 minus that. If no value is above 0, all are 0, or 100."""
    top = int(raw.max(initial=0))
    # In whole numbers, as kube-scheduler: the quotient is cut and not rounded.
    score = raw * 100 // top if top else np.zeros(len(raw), dtype=np.int64)
    return (100 - score if reverse else score).astype(np.float64)


def _everywhere(raw: I64, *, reverse: bool) -> float | None:
    """Return the score of any candidates if all have the same, else None."""
    # The scale depends on the candidates only if their scores differ.
    if len(raw) and (raw != raw[0]).any():
        return None
    return float(scaled(raw[:1], reverse=reverse).sum())
