"""Policies that evict, and gangs of two levels of priority, for tests of evictions."""

from __future__ import annotations

from typing import Any

from pumice.model.events import Object
from pumice.model.queue import PriorityClass
from pumice.testing.build import podgroup, pods

PREEMPT = """
actions: "preempt"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: predicates}, {name: nodeorder}]
"""
AWARE = (
    PREEMPT
    + """
configurations:
- {name: preempt, arguments: {enableTopologyAwarePreemption: true, minCandidateNodesPercentage: 100}}
"""
)
RECLAIM = """
actions: "reclaim"
tiers:
- plugins: [{name: gang}, {name: conformance}, {name: proportion}, {name: predicates}]
"""
LEVELS = [PriorityClass("low", 1), PriorityClass("high", 9)]


def gang(name: str, count: int, minimum: int = 0, of: str = "default", level: str = "low", **same: Any) -> list[Object]:
    """A PodGroup and its pods, admitted."""
    group = podgroup(name, minimum, of, priority_class=level, phase="Inqueue", creation=same.get("creation", 0.0))
    return [group, *pods(name, count, **{"priority": 9 if level == "high" else 1} | same)]
