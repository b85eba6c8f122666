"""Terms of pods that are there: which of them are about a pod that comes."""

from __future__ import annotations

import pytest

from pumice.model.pod import LabelSelector, PodAffinityTerm, PodSpec, Requirement
from pumice.placing.filters.existing_terms import ExistingTerms
from pumice.placing.filters.pods import pod_index
from tests.unit.volcano.cluster import ZONE, Cluster, pod
from tests.unit.volcano.pods import NODES, near


def weighted(spec: PodSpec) -> list[tuple[PodAffinityTerm, int]]:
    return [(term, term.weight) for term in spec.affinity.pod_preferred]


def existing(cluster: Cluster) -> ExistingTerms:
    return ExistingTerms(pod_index(cluster.ssn), "terms", weighted)


def about(selector: LabelSelector | None, **more: object) -> PodAffinityTerm:
    return PodAffinityTerm(ZONE, selector, **{"namespaces": ("ns",), "weight": 3, **more})  # type: ignore[arg-type]


def wants(key: str, operator: str, *values: str) -> LabelSelector:
    return LabelSelector((Requirement(key, operator, values),))


@pytest.mark.parametrize(
    ("term", "is_about"),
    [
        pytest.param(about(wants("app", "In", "db", "web")), True, id="one of several values"),
        pytest.param(about(wants("app", "In", "db")), False, id="another value"),
        pytest.param(about(wants("tier", "In", "web")), False, id="another label of the same value"),
        pytest.param(about(wants("app", "NotIn", "db")), True, id="not this value"),
        pytest.param(about(wants("tier", "DoesNotExist")), True, id="a label that the pod has not"),
        pytest.param(
            about(LabelSelector((Requirement("tier", "DoesNotExist"), Requirement("app", "In", ("web",))))),
            True,
            id="what is wanted need not be said first",
        ),
        pytest.param(
            about(LabelSelector((Requirement("app", "In", ("web",)), Requirement("tier", "Exists")))),
            False,
            id="all of it must hold",
        ),
        pytest.param(about(LabelSelector()), True, id="an empty selector is about all"),
        pytest.param(about(None), False, id="none is about nobody"),
        pytest.param(about(LabelSelector(), namespaces=("other",)), False, id="another namespace"),
        pytest.param(
            about(LabelSelector(), namespaces=(), namespace_selector=LabelSelector()), True, id="any namespace"
        ),
    ],
)
def test_a_term_is_about_a_pod(term: PodAffinityTerm, is_about: bool) -> None:
    pods = [pod("there", "x1", pod_preferred=(term,)), pod("p", labels={"app": "web"})]
    cluster = Cluster(NODES, pods, "predicates")
    terms, row = existing(cluster), cluster.row_of["p"]
    assert [each.topology_key for each in terms.about(row)] == ([ZONE] if is_about else [])
    assert terms.about_class(cluster.task("p").cls.row) is is_about


def test_owners_of_equal_terms_are_counted_together_and_a_term_said_twice_twice() -> None:
    web = near("web", weight=5)
    pods = [
        pod("a", "x1", pod_preferred=(web, web)),
        pod("b", "y1", pod_preferred=(web,)),
        pod("p", labels={"app": "web"}),
    ]
    cluster = Cluster(NODES, pods, "predicates")
    found = existing(cluster).about(cluster.row_of["p"])
    names = [[cluster.tables.tasks.pods[row].name for row in each.owners.rows.tolist()] for each in found]
    assert [(each.topology_key, each.weight) for each in found] == [(ZONE, 5)]
    assert names == [["a", "a", "b"]]


def test_pods_of_a_class_are_distinguished_by_their_labels() -> None:
    """What is kept for one pod is not said of the next: labels are no part of a class."""
    pods = [pod("there", "x1", pod_preferred=(near("web", weight=5),)), pod("p", labels={"app": "web"}), pod("q")]
    cluster = Cluster(NODES, pods, "predicates")
    terms = existing(cluster)
    assert [len(terms.about(cluster.row_of[name])) for name in "pqp"] == [1, 0, 1]
    assert cluster.task("p").cls == cluster.task("q").cls
    assert terms.about_class(cluster.task("q").cls.row)
