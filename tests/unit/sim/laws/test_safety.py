"""Each law is seen to be broken where it is, with object and numbers."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from pumice.model.decisions import Bind
from pumice.model.devices.shared_devices import ASSIGNED_IDS_ANNOTATION
from pumice.model.pod import LabelSelector, Pod, Requirement
from pumice.model.queue import Queue
from pumice.model.topology import HyperNode, HyperNodeMember
from pumice.model.workloads.podgroup import NetworkTopology, PodGroup, PodGroupCondition, SubGroupPolicy
from pumice.sim.cluster import SimCluster
from pumice.sim.controller import Controller
from pumice.sim.laws.safety import LawBroken, Laws
from pumice.sim.measures.history import History
from pumice.sim.world import Simulation
from pumice.testing.devices import shared_gpus
from tests.unit.sim.kit import FirstFit, bind, job, node, pod, resource, world


def gang(size: int, **changes: object) -> tuple[SimCluster, Laws, list[Pod]]:
    """Two nodes of 4 cores, a gang of this size, not bound yet."""
    cluster, _ = world(node("n0"), node("n1"))
    laws = Laws(cluster)
    group = PodGroup("ns", "g", "u", min_member=size)
    cluster.put(replace(group, **changes))  # type: ignore[arg-type]
    notes = {"scheduling.k8s.io/group-name": "g", "volcano.sh/task-spec": "worker"}
    pods = [pod(f"g-worker-{i}", annotations=notes, labels={"part": str(i // 2)}) for i in range(size)]
    for each in pods:
        cluster.put(each)
    return cluster, laws, pods


def test_a_good_run_breaks_none() -> None:
    cluster, controller = world(node("n0"), node("n1"))
    controller.submit_all(job(f"j{i}", 1 + i % 5, seconds=30, at=7 * i) for i in range(30))
    history = History(cluster, controller)
    laws = Laws(cluster, controller, usage=history.usage, known=lambda: cluster.pods)
    sim = Simulation(
        cluster,
        controller,
        FirstFit(cluster),
        history=history,
        after_event=laws.after_event,
        after_cycle=laws.after_cycle,
    )
    assert sim.run().completed == 30
    assert laws.checks > 100


def test_s1_overcommit() -> None:
    cluster, _ = world(node("n0", cpu=4))
    laws = Laws(cluster)
    for name in ("a", "b"):
        cluster.put(pod(name, cpu=4))
    bind(cluster, "ns/a", "n0")
    laws.after_event()
    bind(cluster, "ns/b", "n0")
    with pytest.raises(LawBroken, match=r"S1: node n0 has cpu 8000 of 4000 taken by ns/a, ns/b"):
        laws.after_event()


def test_s13_a_card_that_is_overcommitted() -> None:
    cluster, _ = world(shared_gpus("n0"))
    laws = Laws(cluster)
    for name in ("a", "b"):
        cluster.put(pod(name, annotations={ASSIGNED_IDS_ANNOTATION: "n0-0,NVIDIA,9000,60:"}))
    bind(cluster, "ns/a", "n0")
    laws.after_event()
    bind(cluster, "ns/b", "n0")
    with pytest.raises(
        LawBroken, match=r"S13: card n0-0 of node n0 has memory 18000 of 16384, 120 cores, 2 of 10: ns/a"
    ):
        laws.after_event()


def test_s1_counts_pods() -> None:
    cluster, _ = world(node("n0", cpu=1000))
    laws = Laws(cluster)
    for i in range(111):
        cluster.put(pod(f"p{i}"))
        bind(cluster, f"ns/p{i}", "n0")
    with pytest.raises(LawBroken, match=r"S1: node n0 has pods 111 of 110 taken by ns/p0, .* and 106 more"):
        laws.after_event()


@pytest.mark.parametrize("watched", [True, False])
def test_s1_queue_limits(watched: bool) -> None:
    cluster, _, pods = gang(3, queue="q")
    laws = Laws(cluster, queue_limits=watched)
    cluster.put(Queue("q", capability=resource(2, pods=0)))
    for each in pods[:2]:
        bind(cluster, each.key, "n0")
    bind(cluster, pods[2].key, "n1")
    if watched:
        with pytest.raises(LawBroken, match="S1: queue q has cpu 3000 of capability 2000"):
            laws.after_cycle()
    else:
        laws.after_cycle()
    laws.after_cycle()  # a limit that was lowered later is no violation: only queues of new binds are looked at


def test_s2_a_part_of_a_gang() -> None:
    cluster, laws, pods = gang(3)
    for each in pods[:2]:
        bind(cluster, each.key, "n0")
    with pytest.raises(LawBroken, match=r"S2: gang ns/g has 2 of minMember 3 with the binds of this cycle"):
        laws.after_cycle()


def test_s2_a_refused_bind_counts_as_asked_for() -> None:
    cluster, laws, pods = gang(3)
    cluster.objection = lambda decision: "busy" if decision.pod == pods[2].key else None
    for each in pods:
        cluster.submit([Bind(each.key, each.uid, "n0", "ns/g")])
    laws.after_cycle()
    assert cluster.refusals == 1


def test_s2_what_runs_already_counts() -> None:
    cluster, laws, pods = gang(2)
    for each in pods:
        bind(cluster, each.key, "n0")
    laws.after_cycle()
    cluster.put(pod("g-worker-9", annotations=pods[0].annotations))
    bind(cluster, "ns/g-worker-9", "n1")
    laws.after_cycle()


def test_s2_roles() -> None:
    cluster, laws, pods = gang(3, min_member=2, min_task_member={"worker": 1, "ps": 1})
    for each in pods[:2]:
        bind(cluster, each.key, "n0")
    with pytest.raises(LawBroken, match="S2: gang ns/g has 0 of 1 'ps'"):
        laws.after_cycle()


def test_s2_roles_are_off_when_they_ask_for_more_than_the_gang() -> None:
    cluster, laws, pods = gang(3, min_member=2, min_task_member={"worker": 2, "ps": 1})
    for each in pods[:2]:
        bind(cluster, each.key, "n0")
    laws.after_cycle()


def test_s2_sub_groups() -> None:
    policy = SubGroupPolicy("parts", sub_group_size=2, min_sub_groups=2, match_label_keys=("part",))
    cluster, laws, pods = gang(4, min_member=2, sub_groups=(policy,))
    for each in (pods[0], pods[2]):
        bind(cluster, each.key, "n0")
    with pytest.raises(LawBroken, match="S2: gang ns/g has 0 of 2 sub-groups 'parts'"):
        laws.after_cycle()


@pytest.mark.parametrize(
    "member",
    [
        HyperNodeMember("Node", exact="n0"),
        HyperNodeMember("Node", regex="^n0$"),
        HyperNodeMember("Node", labels=LabelSelector((Requirement("rack", "In", ("r0",)),))),
    ],
)
def test_s2_topology(member: HyperNodeMember) -> None:
    cluster, laws, pods = gang(2, topology=NetworkTopology("hard", 1))
    cluster.put(replace(node("n0"), labels={"rack": "r0"}))
    cluster.put(HyperNode("r0", 1, (member,)))
    cluster.put(HyperNode("r1", 1, (HyperNodeMember("Node", exact="n1"),)))
    cluster.put(HyperNode("hall", 2, tuple(HyperNodeMember("HyperNode", exact=name) for name in ("r0", "r1", "hall"))))
    bind(cluster, pods[0].key, "n0")
    bind(cluster, pods[1].key, "n1")
    with pytest.raises(LawBroken, match="S2: gang ns/g spans n0, n1, within no HyperNode of tier 1 or less"):
        laws.after_cycle()


def test_s2_topology_of_a_tier_that_is_wide_enough() -> None:
    cluster, laws, pods = gang(2, topology=NetworkTopology("hard", 2))
    cluster.put(HyperNode("hall", 2, (HyperNodeMember("Node", regex="n"),)))
    bind(cluster, pods[0].key, "n0")
    bind(cluster, pods[1].key, "n1")
    laws.after_cycle()


def test_s3_twice_in_one_cycle() -> None:
    cluster, laws, pods = gang(1)
    bind(cluster, pods[0].key, "n0")
    with pytest.raises(LawBroken, match="S3: ns/g-worker-0 bound twice in one cycle: n0, n1"):
        cluster.submit([Bind(pods[0].key, pods[0].uid, "n1", "ns/g")])
    assert laws.checks == 0


def test_s3_on_a_node_that_is_not_there() -> None:
    cluster, laws, _ = gang(1)
    cluster.pods["ns/ghost"] = pod("ghost", node_name="gone")
    with pytest.raises(LawBroken, match="S3: pods are on node gone, which does not exist: ns/ghost"):
        laws.after_event()


def test_s3_moved() -> None:
    cluster, laws, pods = gang(1)
    bind(cluster, pods[0].key, "n0")
    laws.after_event()
    cluster.pods[pods[0].key] = replace(cluster.pods[pods[0].key], node_name="n1")
    with pytest.raises(LawBroken, match="S3: ns/g-worker-0 moved from n0 to n1"):
        laws.after_event()


def test_s3_a_bind_nobody_asked_for() -> None:
    _, laws, pods = gang(1)
    with pytest.raises(LawBroken, match="S3: ns/g-worker-0 is reported as bound to n0 without a decision"):
        laws.after_cycle([Bind(pods[0].key, pods[0].uid, "n0", "ns/g")])


def test_s4_a_lost_pod() -> None:
    cluster, controller = world(node("n0"))
    laws = Laws(cluster, controller)
    controller.submit(job("j", 2))
    cluster.engine.advance(0)
    del cluster.pods["ns/j-worker-1"]
    with pytest.raises(LawBroken, match="S4: job ns/j lost 1 of 2 pods: ns/j-worker-1"):
        laws.after_event()


def test_s4_a_pod_the_scheduler_forgot() -> None:
    cluster, controller = world(node("n0"))
    known: set[str] = set()
    laws = Laws(cluster, controller, known=lambda: known)
    cluster.put(pod("a"))
    laws.after_cycle()  # not delivered yet
    cluster.drain()
    with pytest.raises(LawBroken, match="S4: the scheduler has lost 1 pods: ns/a"):
        laws.after_cycle()
    known.add("ns/a")
    laws.after_cycle()


def test_s4_a_pod_of_another_scheduler_need_not_be_known() -> None:
    cluster, controller = world(node("n0"))
    laws = Laws(cluster, controller, known=tuple)
    cluster.put(replace(pod("a"), scheduler_name="default-scheduler"))
    cluster.drain()
    laws.after_cycle()


def test_s9_sums() -> None:
    cluster, _ = world(node("n0"))
    history = History(cluster, Controller(cluster))
    laws = Laws(cluster, usage=history.usage)
    cluster.put(pod("a"))
    bind(cluster, "ns/a", "n0")
    laws.after_event()
    for hook in cluster.hooks.bound:
        hook({"ns/b": pod("b", node_name="n0")})  # of which the cluster knows nothing
    with pytest.raises(LawBroken, match="S9: node n0: cpu stored as 2000, recomputed as 1000"):
        laws.after_event()


def test_s19_scheduled_and_unschedulable_at_once() -> None:
    cluster, _, _ = gang(2)
    laws = Laws(cluster, one_condition=True)
    (group,) = cluster.groups.values()
    scheduled = PodGroupCondition("Scheduled", "True")
    for other in ("False", "True"):
        conditions = scheduled, PodGroupCondition("Unschedulable", other)
        cluster.put(replace(group, status=replace(group.status, conditions=conditions)))
        if other == "False":
            laws.after_cycle()
    with pytest.raises(LawBroken, match=r"S19: gang .* has the conditions Scheduled and Unschedulable, both True"):
        laws.after_cycle()
