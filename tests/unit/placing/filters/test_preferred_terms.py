"""Preferred terms between pods: the pod's own, and those of others about it."""

from __future__ import annotations

import pytest

from pumice.model.pod import Pod, PodAffinityTerm
from pumice.placing.filters.pods import pod_index
from pumice.placing.filters.preferred_terms import HARD_POD_AFFINITY_WEIGHT, InterPodScore
from tests.unit.volcano.cluster import HOST, ZONE, Cluster, pod
from tests.unit.volcano.pods import NODES, app, web
from tests.unit.volcano.scorers.scoring import scores


def near(name: str, weight: int, key: str = ZONE) -> PodAffinityTerm:
    return PodAffinityTerm(key, app(name), ("ns",), weight=weight)


@pytest.mark.parametrize(
    ("pods", "expected"),
    [
        pytest.param([web("a", "x1"), pod("p")], (0, 0, 0, 0), id="no preferred term"),
        pytest.param([web("a", "x1"), pod("p", pod_preferred=(near("web", 5),))], (100, 100, 0, 0), id="near"),
        pytest.param([web("a", "x1"), pod("p", anti_preferred=(near("web", 5),))], (0, 0, 100, 100), id="apart"),
        pytest.param(
            [web("a", "x1"), pod("p", pod_preferred=(near("web", 9),), anti_preferred=(near("web", 3, HOST),))],
            (66, 100, 0, 0),
            id="both",
        ),
        pytest.param(
            [web("a", "x1"), web("b", "y1"), web("c", "y1"), pod("p", pod_preferred=(near("web", 5),))],
            (50, 50, 100, 0),
            id="more",
        ),
        pytest.param(
            [pod("a", "x1", pod_preferred=(near("web", 5),)), web("p")], (100, 100, 0, 0), id="preferred by the other"
        ),
        pytest.param(
            [pod("a", "x1", anti_preferred=(near("web", 5),)), web("p")],
            (0, 0, 100, 100),
            id="unpreferred by the other",
        ),
        pytest.param(
            [pod("a", "x1", pod_required=(near("web", 0),)), web("p")],
            (100 * HARD_POD_AFFINITY_WEIGHT,) * 2 + (0, 0),
            id="needed by the other",
        ),
        pytest.param(
            [
                pod("a", "x1", pod_preferred=(near("web", 5),) * 2),
                pod("b", "y1", pod_preferred=(near("web", 5),)),
                web("p"),
            ],
            (100, 100, 50, 0),
            id="a term that is given twice counts twice",
        ),
        pytest.param(
            [web("a", "bare"), pod("p", pod_preferred=(near("web", 5),))], (0, 0, 0, 0), id="nobody in a zone"
        ),
    ],
)
def test_how_much_each_node_is_preferred(pods: list[Pod], expected: tuple[int, ...]) -> None:
    assert tuple(scores(NODES, pods, podaffinity=1)[n.name] for n in NODES) == expected


def test_scores_are_scaled_among_the_candidates() -> None:
    """x1 is preferred and y1 more so: without y1, x1 is the best there is; alone, it is neither good nor bad."""
    pods = [web("a", "x1"), web("b", "y1"), web("c", "y1"), pod("p", pod_preferred=(near("web", 5),))]
    assert scores(NODES, pods, "x1", "bare", podaffinity=1) == {"x1": 100.0, "bare": 0.0}
    assert scores(NODES, pods, "x1", podaffinity=1) == {"x1": 0.0}


def test_only_pods_with_preferred_terms_and_pods_that_match_them_are_asked_about() -> None:
    cluster = Cluster(NODES, [pod("a", pod_preferred=(near("web", 5),)), web("w"), pod("p", cpu=1.0)], "predicates")
    concerns = InterPodScore(pod_index(cluster.ssn)).concerns
    assert [concerns(cluster.task(name).cls.row) for name in "awp"] == [True, True, False]
