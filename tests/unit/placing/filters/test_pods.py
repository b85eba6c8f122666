"""Pods by selector, counted by where they are; which pods a term is about."""

from __future__ import annotations

import pytest

from pumice.model.pod import LabelSelector, PodAffinityTerm, Requirement
from pumice.placing.filters.pods import classes_where, covers, has_pod_terms, means, pod_index
from tests.unit.volcano.cluster import HOST, ZONE, Cluster, pod, spec
from tests.unit.volcano.pods import NODES, app, near, web

NAMED = LabelSelector((Requirement("kubernetes.io/metadata.name", "In", ("other",)),))


@pytest.mark.parametrize(
    ("term", "namespaces"),
    [
        pytest.param(PodAffinityTerm(ZONE, app("web"), ("ns",)), {"ns"}, id="by name"),
        pytest.param(PodAffinityTerm(ZONE, app("web"), ("ns",), NAMED), {"ns", "other"}, id="by name or by label"),
        pytest.param(PodAffinityTerm(ZONE, app("web"), (), LabelSelector()), {"ns", "other", "third"}, id="all"),
        pytest.param(PodAffinityTerm(ZONE, app("web")), set(), id="none"),
    ],
)
def test_which_namespaces_a_term_covers(term: PodAffinityTerm, namespaces: set[str]) -> None:
    assert {name for name in ("ns", "other", "third") if covers(term, name)} == namespaces
    assert {name for name in ("ns", "other", "third") if means(term, web("p", ns=name))} == namespaces


def test_pods_are_counted_where_they_are_and_counted_anew_when_they_move() -> None:
    pods = [web("a", "x1"), web("b", "x2"), web("c", "bare"), web("d"), pod("e", "y1"), web("f", "y1", ns="other")]
    cluster = Cluster(NODES, pods, "predicates")
    found = pod_index(cluster.ssn).matching((near("web"),))
    assert {cluster.tables.tasks.pods[row].name for row in found.rows.tolist()} == {"a", "b", "c", "d"}
    x, y, none = sorted(found.per_domain(ZONE).tolist(), reverse=True)
    assert (x, y, none) == (2, 0, 0), "who is in no zone is in no domain"
    assert found.per_node().sum() == 3
    cluster.place("d", "y1")
    assert sorted(found.per_domain(ZONE).tolist()) == [0, 1, 2]
    assert found.per_node()[cluster.node_of["y1"]] == 1
    assert pod_index(cluster.ssn).matching((near("web", HOST),)).rows.tolist() == found.rows.tolist()


@pytest.mark.parametrize(
    ("terms", "names"),
    [
        pytest.param((), set(), id="no terms are about nobody"),
        pytest.param((near("web"), near("db")), set(), id="all of them must hold"),
        pytest.param((near("db"),), {"b"}, id="one"),
        pytest.param((near("web"), PodAffinityTerm(ZONE, None, ("ns",))), set(), id="one that is about nobody"),
    ],
)
def test_pods_that_every_term_is_about(terms: tuple[PodAffinityTerm, ...], names: set[str]) -> None:
    cluster = Cluster(NODES, [web("a", "x1"), pod("b", "x1", labels={"app": "db"})], "predicates")
    rows = pod_index(cluster.ssn).matching(terms).rows.tolist()
    assert {cluster.tables.tasks.pods[row].name for row in rows} == names


def test_pods_of_a_namespace_that_stay() -> None:
    pods = [web("a", "x1"), web("b", "x1", deletion=1.0), web("c", "x1", ns="other"), pod("d", "x1")]
    cluster = Cluster(NODES, pods, "predicates")
    index = pod_index(cluster.ssn)
    assert index.in_namespace(app("web"), "ns").rows.tolist() == [cluster.row_of["a"]]
    assert len(index.in_namespace(LabelSelector(), "ns")) == len(index.in_namespace(None, "ns")) == 0


def test_classes_are_found_by_their_spec() -> None:
    cluster = Cluster(NODES, [web("a", anti_required=(near("web"),)), web("b"), web("c")], "predicates")
    assert classes_where(cluster.ssn, "terms", has_pod_terms) == (cluster.task("a").cls.row,)
    for field in ("pod_required", "anti_required", "pod_preferred", "anti_preferred"):
        assert has_pod_terms(spec(**{field: (near("web"),)}))
    assert not has_pod_terms(spec())


def test_a_selector_over_many_labels_finds_the_same_pods_as_over_few() -> None:
    """From the ninth label on, pods are looked up by label instead of one after the other."""
    pods = [pod(name, "x1", labels={f"l{k}": "v" for k in range(k)}) for k, name in enumerate("abcdefghijkl")]
    index = pod_index(Cluster(NODES, pods, "predicates").ssn)
    found = [
        index.in_namespace(LabelSelector((Requirement(f"l{k}", operator, values),)), "ns").rows.tolist()
        for k in range(12)
        for operator, values in (("Exists", ()), ("In", ("v",)), ("NotIn", ("v",)))
    ]
    with_label = [[row for row in range(12) if row > k] for k in range(12)]

    assert found == [rows for one in with_label for rows in (one, one, [r for r in range(12) if r not in one])]
