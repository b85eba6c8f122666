"""Inter-pod affinity and anti-affinity that must hold: where a pod may go beside which others."""

from __future__ import annotations

import pytest

from pumice.model.pod import LabelSelector, Pod, PodAffinityTerm
from pumice.placing.filters.interpod import AFFINITY, ANTI_AFFINITY, EXISTING_ANTI_AFFINITY
from tests.unit.volcano.cluster import HOST, ZONE, pod
from tests.unit.volcano.pods import near, reasons, web

NEAR, ANTI, EXISTING = AFFINITY.reason, ANTI_AFFINITY.reason, EXISTING_ANTI_AFFINITY.reason


@pytest.mark.parametrize(
    ("there", "pending", "expected"),
    [
        pytest.param(
            [],
            pod("p", pod_required=(near("web"),)),
            dict.fromkeys(("x1", "x2", "y1", "bare"), NEAR),
            id="nobody to be near",
        ),
        pytest.param(
            [web("a", "x1")],
            pod("p", pod_required=(near("web"),)),
            {"y1": NEAR, "bare": NEAR},
            id="near one in the zone",
        ),
        pytest.param(
            [],
            web("p", pod_required=(near("web"),)),
            {"bare": NEAR},
            id="the first of its kind: anywhere with a zone",
        ),
        pytest.param(
            [web("a", "bare")],
            web("p", pod_required=(near("web"),)),
            {"bare": NEAR},
            id="one of its kind, but in no zone",
        ),
        pytest.param(
            [web("a", "y1")],
            web("p", pod_required=(near("web"),)),
            {"x1": NEAR, "x2": NEAR, "bare": NEAR},
            id="not the first",
        ),
        pytest.param(
            [web("a", "x1", ns="other")],
            pod("p", pod_required=(near("web"),)),
            dict.fromkeys(("x1", "x2", "y1", "bare"), NEAR),
            id="a namespace that is not meant",
        ),
        pytest.param(
            [web("a", "x1", ns="other")],
            pod("p", pod_required=(near("web", namespaces=(), namespace_selector=LabelSelector()),)),
            {"y1": NEAR, "bare": NEAR},
            id="every namespace",
        ),
        pytest.param(
            [web("a", "x1"), pod("b", "y1", labels={"app": "db"})],
            pod("p", pod_required=(near("web"), near("db"))),
            dict.fromkeys(("x1", "x2", "y1", "bare"), NEAR),
            id="one pod must match all terms",
        ),
        pytest.param(
            [web("a", "x1")], pod("p", anti_required=(near("web"),)), {"x1": ANTI, "x2": ANTI}, id="apart by zone"
        ),
        pytest.param([web("a", "x1")], pod("p", anti_required=(near("web", HOST),)), {"x1": ANTI}, id="apart by host"),
        pytest.param([web("a", "bare")], pod("p", anti_required=(near("web"),)), {}, id="apart: no zone is no domain"),
        pytest.param(
            [pod("a", "x1", anti_required=(near("web"),))],
            web("p"),
            {"x1": EXISTING, "x2": EXISTING},
            id="the other wants to be apart",
        ),
        pytest.param([pod("a", "x1", anti_required=(near("db"),))], web("p"), {}, id="the other means somebody else"),
        pytest.param([pod("a", anti_required=(near("web"),))], web("p"), {}, id="the other is nowhere yet"),
        pytest.param(
            [web("a", "x1", anti_required=(near("web", HOST),))],
            web("p", anti_required=(near("web", HOST),)),
            {"x1": ANTI},
            id="own rule is said first",
        ),
        pytest.param(
            [web("a", "x1")],
            pod("p", anti_required=(PodAffinityTerm(ZONE, None, ("ns",)),)),
            {},
            id="no selector means nobody",
        ),
    ],
)
def test_where_a_pod_may_be(there: list[Pod], pending: Pod, expected: dict[str, str]) -> None:
    assert reasons(there, pending) == expected
