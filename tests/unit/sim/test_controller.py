"""Jobs from arrival to end: gang semantics, evictions, what is cleared away."""

from __future__ import annotations

import math

import pytest

from pumice.model.decisions import Evict, PodGroupUpdate
from pumice.model.node import Node
from pumice.model.pod import Pod
from pumice.model.workloads.podgroup import PodGroup, PodGroupStatus
from pumice.sim.cluster import SimCluster
from pumice.sim.controller import Controller
from pumice.sim.engine import Engine
from pumice.sim.workloads.work import LooseGang
from tests.unit.sim.kit import bind, job, node, pod, seen, world


def keys(name: str, count: int) -> list[str]:
    return [f"ns/{name}-worker-{i}" for i in range(count)]


def test_an_arrival_becomes_a_pod_group_and_its_pods() -> None:
    cluster, controller = world(node("n0"))
    controller.submit(job("j", 2, at=5, minimum=1))
    cluster.drain()
    cluster.engine.advance(4)
    assert cluster.drain() == []
    cluster.engine.advance(5)
    events = cluster.drain()
    (group,) = seen(events, PodGroup)
    assert isinstance(group, PodGroup)
    assert (group.key, group.min_member, group.status.phase, group.creation) == ("ns/j", 1, "Pending", 5)
    assert group.min_resources is not None
    assert group.min_resources.milli_cpu == 1000
    pods = seen(events, Pod)
    assert [p.key for p in pods] == keys("j", 2)
    assert {(p.group_key, p.role, p.creation, p.phase) for p in pods} == {("ns/j", "worker", 5, "Pending")}
    assert pods[0].spec is pods[1].spec


def test_pods_come_when_the_group_is_admitted() -> None:
    cluster, controller = world(node("n0"))
    controller.submit(job("j", 2, waits=True))
    cluster.engine.advance(0)
    assert (list(cluster.groups), list(cluster.pods)) == (["ns/j"], [])
    cluster.write_group(PodGroupUpdate("ns/j", PodGroupStatus("Pending", running=1)))
    cluster.engine.advance(1)
    assert not cluster.pods
    for moment in (2, 3):  # written twice, made once
        cluster.engine.advance(moment)
        cluster.write_group(PodGroupUpdate("ns/j", PodGroupStatus("Inqueue")))
        cluster.engine.advance(moment)
        assert [(p.key, p.creation) for p in cluster.pods.values()] == [(key, 2) for key in keys("j", 2)]
    assert controller.problems == []


def test_the_duration_counts_from_the_last_of_the_minimum() -> None:
    cluster, controller = world(node("n0"), start_latency_s=1)
    controller.submit(job("j", 3, seconds=60, minimum=2))
    engine = cluster.engine
    engine.advance(0)
    bind(cluster, keys("j", 3)[0], "n0")
    engine.advance(10)
    bind(cluster, keys("j", 3)[1], "n0")
    engine.advance(11)
    run = controller.live["ns/j"]
    assert (run.started, run.whole) == (11, True)
    bind(cluster, keys("j", 3)[2], "n0")  # one more, later: ends with the others
    engine.advance(70.5)
    assert controller.ended_count == 0
    engine.advance(71)
    assert (controller.ended_count, run.ended) == (1, 71)
    assert (cluster.pods, cluster.groups, controller.live) == ({}, {}, {})
    assert cluster.pods_on == {"n0": {}}


def test_pods_that_never_started_go_with_their_job() -> None:
    cluster, controller = world(node("n0"))
    controller.submit(job("j", 3, seconds=60, minimum=1))
    cluster.engine.advance(0)
    bind(cluster, keys("j", 3)[1], "n0")
    cluster.engine.advance(60)
    assert cluster.pods == {}


def test_an_evicted_pod_comes_back_and_a_broken_gang_starts_over() -> None:
    cluster, controller = world(node("n0"))
    controller.submit(job("j", 2, seconds=60))
    engine = cluster.engine
    engine.advance(0)
    for key in keys("j", 2):
        bind(cluster, key, "n0")
    engine.advance(50)
    first = cluster.pods[keys("j", 2)[0]]
    assert not cluster.submit([Evict(first.key, first.uid, "n0", "ns/j", "preempt")])
    again = cluster.pods[first.key]
    assert (again.uid, again.node_name, again.phase, again.creation) == (f"{first.uid}~1", "", "Pending", 50)
    run = controller.live["ns/j"]
    assert (run.whole, run.restarts, run.started) == (False, 1, 0)
    engine.advance(100)
    assert controller.ended_count == 0
    bind(cluster, first.key, "n0")
    engine.advance(159)
    assert controller.ended_count == 0
    engine.advance(160)
    assert controller.ended_count == 1


def test_an_elastic_gang_survives_the_loss_of_a_spare_pod() -> None:
    cluster, controller = world(node("n0"))
    controller.submit(job("j", 3, seconds=60, minimum=2))
    cluster.engine.advance(0)
    for key in keys("j", 3):
        bind(cluster, key, "n0")
    cluster.engine.advance(10)
    cluster.delete(Pod, keys("j", 3)[2])
    cluster.engine.advance(60)
    assert controller.ended_count == 1


def test_a_vanished_node_costs_its_pods_not_the_job() -> None:
    cluster, controller = world(node("n0"), node("n1"))
    controller.submit(job("j", 2))
    cluster.engine.advance(0)
    for key in keys("j", 2):
        bind(cluster, key, "n0")
    cluster.engine.advance(1)
    cluster.delete(Node, "n0")
    assert [(p.node_name, p.phase) for p in cluster.pods.values()] == [("", "Pending")] * 2
    assert controller.live["ns/j"].remade == 2


def test_a_job_can_wait_for_its_phase_to_be_seen() -> None:
    cluster = SimCluster(Engine())
    controller = Controller(cluster, keep_until_completed=True)
    cluster.put(node("n0"))
    controller.submit(job("j", 3, seconds=60, minimum=2))
    cluster.engine.advance(0)
    for key in keys("j", 3)[:2]:
        bind(cluster, key, "n0")
    cluster.engine.advance(60)
    assert controller.ended_count == 1
    assert [p.phase for p in cluster.pods.values()] == ["Succeeded", "Succeeded"]
    assert cluster.pods_on["n0"] == {}
    cluster.write_group(PodGroupUpdate("ns/j", PodGroupStatus("Completed", succeeded=2)))
    cluster.engine.advance(60)
    assert (cluster.pods, cluster.groups, controller.live) == ({}, {}, {})


def test_names_are_given_once() -> None:
    _, controller = world()
    controller.submit(job("j", 1))
    with pytest.raises(ValueError, match="job ns/j exists already"):
        controller.submit(job("j", 2))


def test_a_pod_whose_name_is_taken_is_named_and_not_made() -> None:
    cluster, controller = world(node("n0"))
    cluster.put(pod("j-worker-0"))
    controller.submit(job("j", 2))
    cluster.engine.advance(0)
    assert controller.problems == ["job ns/j: pod ns/j-worker-0 exists already and was not created"]
    assert list(cluster.pods) == keys("j", 2)


def test_a_gang_without_a_job_ends_with_its_pods_and_nobody_makes_them_again() -> None:
    cluster, controller = world(node("n0"))
    notes = {"scheduling.k8s.io/group-name": "g", "pumice.dev/duration": "30s"}
    pods = (pod("a", annotations=notes), pod("b", annotations=notes))
    gang = LooseGang(PodGroup("ns", "g", "u", min_member=1), pods, kept=False)
    assert math.isinf(gang.duration_s)
    controller.submit(gang)
    cluster.engine.advance(0)
    bind(cluster, "ns/a", "n0")
    cluster.engine.advance(10)
    bind(cluster, "ns/b", "n0")
    cluster.engine.advance(39)
    assert (cluster.pods["ns/a"].phase, cluster.pods["ns/b"].phase) == ("Succeeded", "Running")
    cluster.engine.advance(40)
    assert (controller.ended_count, cluster.pods) == (1, {})


@pytest.mark.parametrize("kept", [True, False])
def test_who_made_the_pod_group_makes_what_was_evicted_again(kept: bool) -> None:
    cluster, controller = world(node("n0"))
    bare = pod("a", annotations={"scheduling.k8s.io/group-name": "g"})
    controller.submit(LooseGang(PodGroup("ns", "g", "u", min_member=1), (bare,), kept=kept))
    cluster.engine.advance(0)
    bind(cluster, "ns/a", "n0")
    cluster.engine.advance(1)
    cluster.submit([Evict("ns/a", bare.uid, "n0", "ns/g", "test")])
    cluster.engine.advance(2)
    assert [(each.uid != bare.uid, each.node_name) for each in cluster.pods.values()] == [(True, "")] * kept
    run = controller.live["ns/g"]
    assert (run.started, run.whole, run.recreates) == (0.0, False, kept)


def test_a_job_without_pods_stays_and_waits() -> None:
    cluster, controller = world()
    controller.submit(LooseGang(PodGroup("ns", "g", "u", min_member=1), ()))
    cluster.engine.advance(0)
    assert list(controller.live) == ["ns/g"]
