"""predicates that look at one node: which are asked, in which order, and the number of pods. What node objects say:
``framework/test_node_filters``."""

from __future__ import annotations

import numpy as np
import pytest

from pumice.columns.rows import NodeRows
from pumice.framework.plugin import points
from pumice.framework.plugin.filter_result import Code
from pumice.model.node import Taint
from pumice.model.pod import NodeSelectorTerm, Requirement
from pumice.volcano.plugins.predicates import TOO_MANY_PODS
from tests.unit.volcano.cluster import Cluster, node, pod, spec

CORDONED = "node(s) were unschedulable"
TAINTED = "node(s) had untolerated taint(s)"
FULL = "node(s) pod number exceeded"

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
NAMES = {n.name for n in NODES}


def term(*labels: Requirement, names: tuple[str, ...] = (), operator: str = "In") -> NodeSelectorTerm:
    return NodeSelectorTerm(labels, (Requirement("metadata.name", operator, names),) if names else ())


def test_filters_can_be_turned_off() -> None:
    wanting = pod("p", node_selector=(("disk", "ssd"),))
    off = {"predicate.NodeAffinityEnable": False, "predicate.TaintTolerationEnable": False}
    assert Cluster(NODES, [wanting], "predicates", **off).reasons("p") == CORDONS


def test_a_full_node_is_said_before_what_else_is_wrong() -> None:
    nodes = [
        node("full", pods=1),
        node("full-tainted", pods=1, taints=[Taint("t")]),
        node("free", pods=2),
        node("none", pods=0),
    ]
    there = [pod("a", "full"), pod("b", "full-tainted"), pod("c", "free")]
    cluster = Cluster(nodes, [*there, pod("p")], "predicates")
    assert cluster.reasons("p") == {"full": [FULL], "full-tainted": [FULL, TAINTED], "none": [FULL]}
    filter_result = cluster.plugin("predicates").node_filters(
        cluster.task("p").cls, cluster.rows("full", "full-tainted")
    )
    codes = [[unfit.code for unfit in filter_result.why[c]] for c in filter_result.codes]
    assert codes == [[Code.UNSCHEDULABLE], [Code.UNSCHEDULABLE, Code.UNRESOLVABLE]]


def test_a_node_fills_up_while_pods_are_placed() -> None:
    cluster = Cluster([node("n", pods=2)], [pod("a"), pod("b"), pod("p")], "predicates")
    cluster.place("a", "n")
    assert cluster.reasons("p") == {}
    cls, rows = cluster.task("p").cls, cluster.rows()
    ahead = NodeRows(cluster.tables, rows.rows, after=np.array([1.0]), cls=cls.row)
    node_filters = cluster.plugin("predicates").node_filters
    assert node_filters(cls, rows) is None, "nothing is against any node"
    assert [
        filter_result.why[code] for filter_result in [node_filters(cls, ahead)] for code in filter_result.codes
    ] == [(TOO_MANY_PODS,)]
    cluster.place("b", "n")
    assert cluster.reasons("p") == {"n": [FULL]}


def test_one_node_at_a_time_gives_the_same() -> None:
    cluster = Cluster(NODES, [pod("p", node_selector=(("disk", "ssd"),))], "predicates")
    together = cluster.reasons("p")
    assert together == {name: why for n in NAMES for name, why in cluster.reasons("p", n).items()}


@pytest.mark.parametrize(
    ("terms", "arguments", "reason"),
    [
        pytest.param({}, {}, None, id="nothing"),
        pytest.param(
            {"node_required": (NodeSelectorTerm((), tuple(Requirement("metadata.name", "In", (n,)) for n in "ab")),)},
            {},
            "plugin NodeAffinity pre-predicates failed pod affinity terms conflict",
            id="names that exclude each other",
        ),
        pytest.param(
            {"node_required": (term(names=("a",)), term(Requirement("x", "Exists")))}, {}, None, id="a way out by label"
        ),
        pytest.param(
            {"claim_names": ("data",)},
            {},
            'plugin VolumeBinding pre-predicates failed persistentvolumeclaim "data" not found',
            id="a volume whose claim is not there",
        ),
        pytest.param(
            {"claim_names": ("data",)},
            {f"predicate.{name}Enable": False for name in ("VolumeBinding", "VolumeZone", "NodeVolumeLimits")},
            None,
            id="volumes are nobody's business",
        ),
        pytest.param(
            {"resource_claims": ("gpu",)},
            {},
            "plugin DynamicResources pre-predicates failed resourceclaim ns/gpu not found",
            id="a resource claim that is not there",
        ),
    ],
)
def test_pre_filters(terms: dict[str, object], arguments: dict[str, bool], reason: str | None) -> None:
    cluster = Cluster([node("n")], [pod("p", spec=spec(**terms))], "predicates", **arguments)
    unfit = cluster.ssn.ask(points.task_refused, cluster.task("p"))
    assert (unfit.reason if unfit else None) == reason
