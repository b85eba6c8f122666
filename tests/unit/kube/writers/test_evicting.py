"""When a PodGroup of Kubernetes' own is said to be evicted as a whole."""

from __future__ import annotations

import pytest

from pumice.kube.informers.informer_cache import InformerCache
from pumice.kube.writers.evicting import eviction_of_group
from pumice.model.decisions import Bind, Decision, Evict
from pumice.model.events import Seen
from pumice.model.pod import Pod
from pumice.model.workloads.native_group import NativeGroup
from pumice.model.workloads.podgroup import PodGroup
from pumice.runtime.in_flight import InFlightDecision, InFlightDecisions
from pumice.testing.build import pod

RUNS = pod("old", group="g", on="n1", phase="Running")
ALSO_RUNS = pod("other", group="g", on="n1", phase="Running")
WAITS = pod("new", group="g")
EVICT = Evict(RUNS.key, RUNS.uid, "n1", "ns/g", "reclaim")


@pytest.mark.parametrize(
    ("others", "decisions", "reason"),
    [
        pytest.param([], [EVICT], "reclaim", id="the only pod"),
        pytest.param([WAITS], [EVICT], "reclaim", id="another waits"),
        pytest.param([ALSO_RUNS], [EVICT], "", id="another stays"),
        # Its pod is not on a node in the cache yet.
        pytest.param([WAITS], [EVICT, Bind(WAITS.key, WAITS.uid, "n1", "ns/g")], "", id="another is being bound"),
    ],
)
def test_all_pods_that_hold_nodes_are_evicted(others: list[Pod], decisions: list[Decision], reason: str) -> None:
    cache, in_flight = InformerCache(lambda: None), InFlightDecisions(lambda: 0.0)
    group = PodGroup("ns", "g", "u", native=NativeGroup("scheduling.k8s.io/v1beta1"))
    cache.hear([Seen(group), *(Seen(each) for each in (RUNS, *others))])
    for decision in decisions:
        in_flight.add(InFlightDecision(decision))
    assert eviction_of_group(cache, in_flight, "ns/g") == reason
