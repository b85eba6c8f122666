"""S18 is broken where a pod is evicted for pods that would have had idle room, and only there."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from pumice.model.decisions import Evict
from pumice.model.pod import Pod
from pumice.model.queue import PriorityClass, Queue, QueueSharing, Quota
from pumice.model.workloads.gang import Gang, TopologyConstraint
from pumice.model.workloads.podgroup import PodGroup
from pumice.sim.laws.idle_room import needless_evictions
from tests.unit.sim.kit import bind, node, pod, world

UNLIMITED = Quota(quota=None, limit=None)
SHARING = QueueSharing(cpu=UNLIMITED, memory=UNLIMITED, gpu=UNLIMITED)
BROKEN = "S18: ns/old were evicted, and ns/new (1 pods) would have had idle room"


def found(
    *,
    names: str = "ab",
    reason: str = "reclaim",
    gang: Gang | None = None,
    limit: float | None = None,
    taken: bool = False,
) -> str:
    """Nodes a and b of 4 cores: ``old`` was evicted from a, where it had all, for ``new``."""
    cluster, _ = world(*map(node, names))
    cluster.put(Queue("q", sharing=replace(SHARING, cpu=Quota(None, limit))))
    cluster.put(PriorityClass("low", 10))
    gang = gang or Gang(preemptibility="preemptible")
    cluster.put(PodGroup("ns", "new", "new", queue="q", priority_class_name="low", gang=gang))
    cluster.put(pod("old", cpu=4))
    bind(cluster, "ns/old", "a")
    cluster.put(pod("new", cpu=2, annotations={"scheduling.k8s.io/group-name": "new"}))
    promised = {"ns/new": "a"}
    if taken:
        cluster.put(pod("other", cpu=4, annotations={"scheduling.k8s.io/group-name": "other"}))
        promised["ns/other"] = "b"
    before: dict[str, Pod] = {"ns/old": cluster.pods["ns/old"]}
    cluster.remove_pod("ns/old")
    return needless_evictions(cluster, promised, [Evict("ns/old", "uid-old", "a", "ns/old", reason)], before)


def test_there_was_room_beside_the_victim() -> None:
    assert found() == BROKEN


@pytest.mark.parametrize(
    "case",
    [
        pytest.param({"names": "a"}, id="there is no other node"),
        pytest.param({"reason": "stalegangeviction"}, id="the victim left for no other"),
        pytest.param(
            {"gang": Gang(topology=TopologyConstraint("t", "rack"))}, id="a topology may have been in the way"
        ),
        pytest.param({"gang": Gang(preemptibility="non-preemptible")}, id="a quota may have been in the way"),
        pytest.param({"limit": 4000.0}, id="a limit may have been in the way"),
        pytest.param({"taken": True}, id="the idle room is reserved for others"),
    ],
)
def test_something_else_than_idle_room_may_have_been_missing(case: dict[str, object]) -> None:
    assert found(**case) == ""  # type: ignore[arg-type]
