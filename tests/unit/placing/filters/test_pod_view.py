"""The cluster as kube-scheduler's plugins see it follows what a session does, and what it takes back."""

from __future__ import annotations

from pumice.columns.runs import TaskRun
from pumice.placing.filters.interpod import ANTI_AFFINITY
from pumice.placing.filters.pod_view import View
from tests.unit.volcano.cluster import HOST, Cluster
from tests.unit.volcano.pods import NODES, near, web

ANTI = ANTI_AFFINITY.reason


def test_the_view_follows_placements_and_rollbacks() -> None:
    pods = [web(name, anti_required=(near("web", HOST),)) for name in "abp"]
    cluster = Cluster(NODES, pods, "predicates")
    before = cluster.tables.nodes.view.copy()
    stmt = cluster.ssn.statement()
    with stmt.trial():
        stmt.allocate([cluster.row_of["a"], cluster.row_of["b"]], [cluster.node_of["x1"], cluster.node_of["y1"]])
        assert cluster.reasons("p") == {"x1": [ANTI], "y1": [ANTI]}
        assert cluster.rows().view_pods.tolist() == [float(n in ("x1", "y1")) for n in cluster.names]
    assert cluster.reasons("p") == {}
    assert (cluster.tables.nodes.view == before).all()
    stmt.discard()


def test_a_victim_leaves_the_view_at_once() -> None:
    cluster = Cluster(NODES, [web("a", "x1"), web("p", anti_required=(near("web", HOST),))], "predicates")
    stmt = cluster.ssn.statement()
    stmt.evict([cluster.row_of["a"]], "make room")
    assert cluster.reasons("p") == {}
    assert not cluster.tables.nodes.view.any()
    stmt.discard()
    assert cluster.reasons("p") == {"x1": [ANTI]}


def test_who_is_in_the_view_is_not_counted_twice() -> None:
    """One that is there already stays where it is; the other comes in beside it."""
    cluster = Cluster(NODES, [web("a"), web("b")], "predicates")
    tables, x1, y1 = cluster.tables, cluster.node_of["x1"], cluster.node_of["y1"]
    a, b = cluster.row_of["a"], cluster.row_of["b"]
    cluster.place("a", "x1")
    seen = tables.nodes.view[x1].copy()
    View(cluster.ssn).enter(TaskRun.on_nodes(tables, [a, b], [y1, y1]))
    assert tables.tasks["view_node"].array[[a, b]].tolist() == [x1, y1]
    assert (tables.nodes.view[[x1, y1]] == seen).all()
    View(cluster.ssn).leave([a, b])
    View(cluster.ssn).leave([a])
    assert not tables.nodes.view.any()
