"""What node objects alone decide: cordons, node selectors and affinity, taints. Texts are kube-scheduler 1.36's."""

from __future__ import annotations

import pytest

from pumice.model.node import Taint
from pumice.model.pod import NodeSelectorTerm, Requirement, Toleration
from pumice.placing.filters.nodes import names_conflict, tolerates
from tests.unit.volcano.cluster import Cluster, node, pod, spec

CORDONED = "node(s) were unschedulable"
ELSEWHERE = "node(s) didn't match Pod's node affinity/selector"
TAINTED = "node(s) had untolerated taint(s)"

NODES = [
    node("plain"),
    node("ssd", labels={"disk": "ssd", "rank": "7"}),
    node("hdd", labels={"disk": "hdd", "rank": "x"}),
    node("cordoned", unschedulable=True, taints=[Taint("node.kubernetes.io/unschedulable")]),
    node("cordoned-only", unschedulable=True, labels={"disk": "ssd"}),
    node("tainted", taints=[Taint("team", "a")]),
    node("evicting", taints=[Taint("team", "b", "NoExecute")]),
    node("avoided", taints=[Taint("team", "c", "PreferNoSchedule")]),
]
CORDONS = {"cordoned": [CORDONED], "cordoned-only": [CORDONED]}
TAINTS = {"tainted": [TAINTED], "evicting": [TAINTED]}
NAMES = {n.name for n in NODES}


def others(*fit: str) -> dict[str, list[str]]:
    """Everything but the named nodes is out: a cordon is said first, then that the node is not meant."""
    return {n: CORDONS.get(n, [ELSEWHERE]) for n in NAMES - set(fit)}


def term(*labels: Requirement, names: tuple[str, ...] = (), operator: str = "In") -> NodeSelectorTerm:
    return NodeSelectorTerm(labels, (Requirement("metadata.name", operator, names),) if names else ())


@pytest.mark.parametrize(
    ("terms", "expected"),
    [
        pytest.param({}, CORDONS | TAINTS, id="no terms"),
        pytest.param({"node_selector": (("disk", "ssd"),)}, others("ssd"), id="selector"),
        pytest.param({"node_selector": (("disk", "ssd"), ("rank", "8"))}, others(), id="selector: all of it"),
        pytest.param({"node_required": (term(Requirement("disk", "Exists")),)}, others("ssd", "hdd"), id="affinity"),
        pytest.param(
            {"node_required": (term(Requirement("disk", "In", ("ssd",))), term(Requirement("disk", "In", ("hdd",))))},
            others("ssd", "hdd"),
            id="terms are alternatives",
        ),
        pytest.param({"node_required": (term(Requirement("rank", "Gt", ("6",))),)}, others("ssd"), id="greater than"),
        pytest.param({"node_required": (term(),)}, others(), id="an empty term matches no node"),
        pytest.param({"node_required": ()}, others(), id="no terms match no node"),
        pytest.param({"node_required": (term(names=("hdd",)),)}, others("hdd"), id="by name"),
        pytest.param(
            {"node_required": (term(Requirement("disk", "Exists"), names=("hdd",), operator="NotIn"),)},
            others("ssd"),
            id="not by name",
        ),
        pytest.param(
            {"node_selector": (("disk", "hdd"),), "node_required": (term(Requirement("disk", "Exists")),)},
            others("hdd"),
            id="selector and affinity",
        ),
        pytest.param(
            {"tolerations": (Toleration("team", "Equal", "a"),)}, CORDONS | {"evicting": [TAINTED]}, id="equal"
        ),
        pytest.param({"tolerations": (Toleration("team", "Exists"),)}, CORDONS, id="exists"),
        pytest.param(
            {"tolerations": (Toleration("team", "Exists", effect="NoExecute"),)},
            CORDONS | {"tainted": [TAINTED]},
            id="one effect",
        ),
        pytest.param({"tolerations": (Toleration(operator="Exists"),)}, {}, id="tolerates everything, cordons too"),
        pytest.param(
            {"tolerations": (Toleration("node.kubernetes.io/unschedulable", "Exists"),)}, TAINTS, id="tolerates cordons"
        ),
        pytest.param({"tolerations": (Toleration("team", "Near"),)}, CORDONS | TAINTS, id="unknown operator"),
    ],
)
def test_stable_filters(terms: dict[str, object], expected: dict[str, list[str]]) -> None:
    assert Cluster(NODES, [pod("p", spec=spec(**terms))], "predicates").reasons("p") == expected


ANY, NO_SCHEDULE = Toleration(operator="Exists"), Taint("k", "v", "NoSchedule")


@pytest.mark.parametrize(
    ("toleration", "covers"),
    [
        pytest.param(Toleration("k", "Equal", "v"), True, id="equal"),
        pytest.param(Toleration("k", "", "v"), True, id="no operator is Equal"),
        pytest.param(Toleration("k", "Equal", "w"), False, id="another value"),
        pytest.param(Toleration("k", "Exists", "w"), True, id="exists asks for no value"),
        pytest.param(Toleration("j", "Exists"), False, id="another key"),
        pytest.param(ANY, True, id="no key is any key"),
        pytest.param(Toleration("k", "Exists", effect="NoExecute"), False, id="another effect"),
        pytest.param(Toleration("k", "Lt", "v"), False, id="an operator that is not known"),
    ],
)
def test_tolerations(toleration: Toleration, covers: bool) -> None:
    assert tolerates(toleration, NO_SCHEDULE) is covers


@pytest.mark.parametrize(
    ("terms", "conflict"),
    [
        pytest.param(None, False, id="nothing required"),
        pytest.param((), False, id="no terms"),
        pytest.param((NodeSelectorTerm((), (Requirement("metadata.name", "In", ("a", "b")),)),), False, id="names"),
        pytest.param(
            (NodeSelectorTerm((), tuple(Requirement("metadata.name", "In", (n,)) for n in "ab")),), True, id="a and b"
        ),
        pytest.param(
            (
                NodeSelectorTerm((), tuple(Requirement("metadata.name", "In", (n,)) for n in "ab")),
                NodeSelectorTerm((), (Requirement("metadata.name", "In", ("c",)),)),
            ),
            False,
            id="another term leaves a name",
        ),
        pytest.param((NodeSelectorTerm((), (Requirement("metadata.name", "NotIn", ("a",)),)),), False, id="not a"),
    ],
)
def test_names_that_exclude_each_other(terms: tuple[NodeSelectorTerm, ...] | None, conflict: bool) -> None:
    assert names_conflict(spec(node_required=terms)) is conflict
