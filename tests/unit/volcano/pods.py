"""Pods that have terms about each other, in a few words, on four nodes in two zones and in none."""

from __future__ import annotations

from typing import Any

from pumice.model.pod import LabelSelector, Pod, PodAffinityTerm, Requirement, TopologySpreadConstraint
from tests.unit.volcano.cluster import ZONE, Cluster, node, pod

NODES = [node("x1", labels={ZONE: "x"}), node("x2", labels={ZONE: "x"}), node("y1", labels={ZONE: "y"}), node("bare")]


def app(name: str) -> LabelSelector:
    """Pods of an app."""
    return LabelSelector((Requirement("app", "In", (name,)),))


def near(name: str, key: str = ZONE, **more: Any) -> PodAffinityTerm:
    """A term about pods of an app. ``more`` are fields of PodAffinityTerm."""
    return PodAffinityTerm(key, app(name), **{"namespaces": ("ns",), **more})


def keep(skew: int, key: str = ZONE, when: str = "DoNotSchedule", **more: Any) -> TopologySpreadConstraint:
    """A constraint about pods of the app ``web``. ``more`` are fields of TopologySpreadConstraint."""
    return TopologySpreadConstraint(skew, key, when, **{"selector": app("web"), **more})


def web(name: str, on: str = "", **more: Any) -> Pod:
    """A pod of the app ``web``, as ``pod`` has it."""
    return pod(name, on, labels={"app": "web"}, **more)


def reasons(pods: list[Pod], pending: Pod, **arguments: bool) -> dict[str, str]:
    """What ``predicates`` says against each node: one reason each."""
    found = Cluster(NODES, [*pods, pending], "predicates", **arguments).reasons(pending.name)
    assert all(len(why) == 1 for why in found.values())
    return {name: why[0] for name, why in found.items()}
