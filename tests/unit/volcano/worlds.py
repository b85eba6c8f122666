"""Random small clusters whose pods have terms about each other."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count
from typing import Any

from hypothesis import strategies as st

from pumice.model.node import Node, Taint
from pumice.model.pod import (
    HostPort,
    LabelSelector,
    Pod,
    PodAffinityTerm,
    Requirement,
    Toleration,
    TopologySpreadConstraint,
)
from tests.unit.volcano.cluster import HOST, ZONE, node, pod

KEYS = (HOST, ZONE, "rack")
NAMESPACES = ("ns", "other")


@dataclass(slots=True)
class World:
    nodes: list[Node]
    placed: list[tuple[Pod, Node]]
    pending: Pod

    @property
    def pods(self) -> list[Pod]:
        return [p for p, _ in self.placed] + [self.pending]


def _requirements() -> st.SearchStrategy[Requirement]:
    key, value = st.sampled_from(["app", "app", "tier"]), st.sampled_from(["a", "b"])
    some = st.builds(lambda k, op, v: Requirement(k, op, (v,)), key, st.sampled_from(["In", "In", "NotIn"]), value)
    return some | st.builds(Requirement, key, st.sampled_from(["Exists", "DoesNotExist"]))


ONE = _requirements().map(lambda r: LabelSelector((r,)))
SELECTORS = ONE | ONE | st.lists(_requirements(), max_size=2).map(lambda r: LabelSelector(tuple(r))) | st.none()
LABELS = st.fixed_dictionaries(
    {"app": st.sampled_from(["a", "a", "b"])}, optional={"tier": st.sampled_from(["a", "b"])}
)
NAMED = st.just(LabelSelector((Requirement("kubernetes.io/metadata.name", "In", ("other",)),)))
SPACES = st.sampled_from([(("ns",), None), (("ns", "other"), None), ((), LabelSelector())]) | NAMED.map(
    lambda s: ((), s)
)


def _term(weighted: bool) -> st.SearchStrategy[PodAffinityTerm]:
    weight = st.integers(1, 100) if weighted else st.just(0)
    return st.builds(
        lambda key, selector, space, w: PodAffinityTerm(key, selector, *space, w),
        st.sampled_from(KEYS),
        SELECTORS,
        SPACES,
        weight,
    )


#: Fields that make a pod mean others, and what is in them. Few at a time, so that an example is about something.
TERMS = {
    "pod_required": _term(False),
    "anti_required": _term(False),
    "pod_preferred": _term(True),
    "anti_preferred": _term(True),
}
CONSTRAINTS = st.builds(
    TopologySpreadConstraint,
    st.integers(1, 2),
    st.sampled_from(KEYS),
    st.sampled_from(["DoNotSchedule", "ScheduleAnyway"]),
    SELECTORS,
    st.integers(1, 3),
    st.sampled_from(["Honor", "Ignore"]),
    st.sampled_from(["Honor", "Ignore"]),
)
PORTS = st.builds(
    HostPort, st.integers(1, 2), st.sampled_from(["TCP", "UDP"]), st.sampled_from(["0.0.0.0", "10.0.0.1", "10.0.0.2"])
)
TAINTS = st.builds(Taint, st.just("t"), st.sampled_from("ab"), st.sampled_from(["NoSchedule", "PreferNoSchedule"]))
TOLERATIONS = st.builds(Toleration, st.just("t"), st.sampled_from(["Equal", "Exists"]), st.sampled_from("ab"))


@st.composite
def worlds(draw: st.DrawFn) -> World:
    zones = st.fixed_dictionaries({ZONE: st.sampled_from("xyz")}, optional={"rack": st.sampled_from("xy")}) | st.just(
        {}
    )
    nodes = [
        node(f"n{i}", labels=draw(zones), taints=draw(st.lists(TAINTS, max_size=2)))
        for i in range(draw(st.integers(2, 5)))
    ]
    number = count()

    def some(names: list[str], strategies: dict[str, st.SearchStrategy[Any]]) -> dict[str, Any]:
        chosen = draw(st.lists(st.sampled_from(names), max_size=2, unique=True))
        return {name: tuple(draw(st.lists(strategies[name], min_size=1, max_size=2))) for name in chosen}

    def one(on: str = "") -> Pod:
        if on:
            more = some([*TERMS, "host_ports"], {**TERMS, "host_ports": PORTS})
            more["deletion"] = 1.0 if draw(st.integers(0, 5)) == 5 else None
        else:
            more = some(
                [*TERMS, "host_ports", "spread", "spread"], {**TERMS, "host_ports": PORTS, "spread": CONSTRAINTS}
            )
            more["tolerations"] = tuple(draw(st.lists(TOLERATIONS, max_size=1)))
            more["node_selector"] = draw(st.sampled_from([(), ((ZONE, "x"),)]))
        return pod(f"p{next(number)}", on, labels=draw(LABELS), ns=draw(st.sampled_from(NAMESPACES)), **more)

    homes = draw(st.lists(st.sampled_from(nodes), min_size=1, max_size=6))
    return World(nodes, [(one(home.name), home) for home in homes], one())
