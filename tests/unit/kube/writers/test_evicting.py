"""When a PodGroup of Kubernetes' own is said to be evicted as a whole, and that it is said in the end."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.kube.api.errors import ApiError
from pumice.kube.informers.informer_cache import InformerCache
from pumice.kube.writers.event_recorder import EventRecorder
from pumice.kube.writers.evicting import eviction_of_group
from pumice.kube.writers.statuses import Statuses
from pumice.model.decisions import Bind, Decision, Evict, PodGroupUpdate
from pumice.model.events import Gone, Seen
from pumice.model.pod import Pod
from pumice.model.workloads.native_group import NativeGroup
from pumice.model.workloads.podgroup import PodGroup
from pumice.runtime.in_flight import InFlightDecision, InFlightDecisions
from pumice.testing.build import pod
from tests.unit.kube.silence import SILENT

RUNS = pod("old", group="g", on="n1", phase="Running")
ALSO_RUNS = pod("other", group="g", on="n1", phase="Running")
WAITS = pod("new", group="g")
GROUP = PodGroup("ns", "g", "u", native=NativeGroup("scheduling.k8s.io/v1beta1"))
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
    cache.apply([Seen(GROUP), *(Seen(each) for each in (RUNS, *others))])
    for decision in decisions:
        in_flight.add(InFlightDecision(decision))
    assert eviction_of_group(cache, in_flight, "ns/g") == reason


class Server:
    """Refuses so many writes of statuses, and keeps the others."""

    def __init__(self, refusals: int) -> None:
        self.refusals = refusals
        self.written: list[Any] = []

    async def served(self, kind: object, subresource: str) -> bool:
        return True

    async def patch(self, path: str, body: Any, retries: object) -> bytes:
        if self.refusals:
            self.refusals -= 1
            raise ApiError(409, "Conflict", "it has changed", f"PATCH {path}")
        self.written.append(body["status"]["conditions"])
        return b'{"metadata": {"resourceVersion": "9"}}'


async def test_an_eviction_whose_status_was_not_written_is_said_after_the_pods_are_gone() -> None:
    cache, in_flight, server = InformerCache(lambda: None), InFlightDecisions(lambda: 0.0), Server(1)
    statuses = Statuses(server, cache, EventRecorder(SILENT, "volcano"), 30.0)  # type: ignore[arg-type]
    cache.apply([Seen(GROUP), Seen(RUNS)])
    entry = InFlightDecision(EVICT)
    in_flight.add(entry)
    for is_last in (False, True):
        update = PodGroupUpdate("ns/g", GROUP.status, eviction=statuses.eviction_of("ns/g", in_flight))
        assert statuses.begin_group(update)
        cache.apply([Gone(Pod, RUNS.key)])
        in_flight.end(entry)
        await statuses.write_group(update)
        assert statuses.unwritten_evictions() == ([] if is_last else ["ns/g"])
    assert [(each["type"], each["status"]) for each in server.written[0]] == [("DisruptionTarget", "True")]


async def test_an_eviction_that_was_not_written_is_forgotten_when_the_group_runs_again() -> None:
    cache, in_flight = InformerCache(lambda: None), InFlightDecisions(lambda: 0.0)
    statuses = Statuses(Server(0), cache, EventRecorder(SILENT, "volcano"), 30.0)  # type: ignore[arg-type]
    cache.apply([Seen(GROUP), Seen(RUNS)])
    entry = InFlightDecision(EVICT)
    in_flight.add(entry)
    assert statuses.eviction_of("ns/g", in_flight) == "reclaim"
    in_flight.end(entry)
    cache.apply([Gone(Pod, RUNS.key), Seen(ALSO_RUNS)])
    assert statuses.eviction_of("ns/g", in_flight) == ""
    assert statuses.unwritten_evictions() == []
