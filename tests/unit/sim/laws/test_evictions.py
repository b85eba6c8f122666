"""Each law of evictions is seen to be broken where it is."""

from __future__ import annotations

from msgspec.structs import replace

from pumice.model.decisions import Bind, Evict
from pumice.model.workloads.podgroup import PodGroup
from pumice.sim.cluster import SimCluster
from pumice.sim.laws.evictions import EvictionLaws
from tests.unit.sim.kit import bind, node, pod, world

NOTES = {"scheduling.k8s.io/group-name": "g"}


def running(**labels: str) -> tuple[SimCluster, dict[str, str], EvictionLaws]:
    """A gang of two that needs both, on a node of 4 cores, and one that waits; what is promised is the test's."""
    cluster, _ = world(node("n0"))
    cluster.put(PodGroup("ns", "g", "g", min_member=2))
    for name in ("a", "b"):
        cluster.put(pod(name, cpu=2, annotations=NOTES, labels=labels))
        bind(cluster, f"ns/{name}", "n0")
    cluster.put(pod("new", cpu=2))
    promised: dict[str, str] = {}
    return cluster, promised, EvictionLaws(cluster, lambda: promised)


def evict(cluster: SimCluster, name: str, reason: str) -> None:
    cluster.submit([Evict(f"ns/{name}", f"uid-{name}", "n0", "ns/g", reason)])


def test_an_eviction_for_nobody() -> None:
    cluster, _, laws = running()
    evict(cluster, "a", "preempt")
    assert laws.check() == "S5: ns/a were evicted, and no pod was promised a node"
    assert laws.check() == "", "each is told once"


def test_one_of_shuffle_needs_nobody() -> None:
    cluster, _, laws = running()
    evict(cluster, "a", "shuffle")
    assert laws.check() == ""


def test_a_promise_that_does_not_fit() -> None:
    cluster, promised, laws = running()
    promised["ns/new"] = "n0"
    assert laws.check() == "S5: node n0 is promised to ns/new and will have cpu 6000 of 4000 taken"
    cluster.grace_s = 30.0
    evict(cluster, "a", "gangpreempt")
    assert laws.check() == "", "who is on his way out holds nothing for long"


def test_a_promise_where_an_eviction_was_refused_is_nobodys_fault() -> None:
    cluster, promised, laws = running()
    promised["ns/new"] = "n0"
    cluster.objection = lambda _: "the server is busy"
    evict(cluster, "a", "preempt")
    assert laws.check() == ""


def test_a_gang_below_its_minimum() -> None:
    cluster, promised, laws = running()
    promised["ns/new"] = "n0"
    evict(cluster, "a", "reclaim")
    assert laws.check() == "S6: gang ns/g has 1 of minMember 2 after reclaim"
    group = cluster.groups["ns/g"]
    cluster.put(replace(group, min_member=0))
    evict(cluster, "b", "reclaim")
    assert laws.check() == ""


def test_a_victim_that_says_no() -> None:
    cluster, promised, laws = running(**{"volcano.sh/preemptable": "false"})
    promised["ns/new"] = "n0"
    evict(cluster, "a", "gangreclaim")
    assert laws.check() == "S7: ns/a was evicted (gangreclaim) although it is not preemptable"


def test_an_eviction_for_a_pod_that_had_room_and_whose_bind_was_refused() -> None:
    cluster, promised, laws = running()
    cluster.put(node("n1"))
    promised["ns/new"] = "n0"
    cluster.objection = lambda decision: "queue full" if isinstance(decision, Bind) else None
    cluster.submit([Bind("ns/new", "uid-new", "n1", "ns/new")])
    cluster.grace_s = 30.0
    evict(cluster, "a", "consolidation")
    assert laws.check() == "S14: ns/a were evicted for ns/new, for which there was room"
    evict(cluster, "b", "consolidation")
    assert laws.check() == "", "refusals are those of one cycle"
