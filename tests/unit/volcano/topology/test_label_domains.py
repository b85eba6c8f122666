"""Domains of a node label for Kubernetes' own PodGroups, in Volcano's language."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from pumice.framework.cycle.session import Session
from pumice.model.events import Object
from pumice.model.pod import Pod
from pumice.model.workloads.gang import Gang, TopologyConstraint
from pumice.model.workloads.native_group import NativeGroup
from pumice.model.workloads.podgroup import PodGroup
from pumice.testing.build import cluster, node, pod, queue, run, session
from pumice.volcano.topology.label_domains import label_domains
from tests.unit.volcano.evicting import LEVELS, PREEMPT, gang

ALLOCATE = """
actions: "allocate, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}]
- plugins: [{name: predicates}, {name: nodeorder}]
"""


def racked(name: str, count: int, minimum: int = 0, **more: Any) -> list[Object]:
    """A gang of Kubernetes' own that must be in one rack."""
    group, *members = gang(name, count, minimum or count, **more)
    assert isinstance(group, PodGroup)
    topology = Gang(topology=TopologyConstraint("", "rack"))
    return [replace(group, gang=topology, native=NativeGroup("scheduling.k8s.io/v1beta1")), *members]


def in_rack(name: str, cpu: int, rack: str) -> Object:
    return node(name, cpu, labels={"rack": rack})


def domains_of(ssn: Session, name: str) -> list[list[str]]:
    tables = ssn.tables
    job = list(tables.jobs.uids).index(f"ns/{name}")
    (sub,) = tables.jobs.subs[job]
    rows = [row for row in tables.jobs.tasks[job].tolist() if tables.tasks.node[row] < 0]
    names = tables.nodes.facts.names
    return [[names[row] for row in each.nodes.rows.tolist()] for each in label_domains(ssn, job, sub, rows)]


RACKS = [in_rack("a", 8, "a"), in_rack("b0", 2, "b"), in_rack("b1", 2, "b"), in_rack("c", 1, "c"), node("none", 9)]


def test_domains_with_room_are_tried_that_with_the_least_room_first() -> None:
    ssn = session(cluster(LEVELS, RACKS, racked("g", 6, 3)), ALLOCATE)
    assert domains_of(ssn, "g") == [["b0", "b1"], ["a"]]


def placed(objects: list[Object], **on: str) -> list[Object]:
    """The objects, with some pods on nodes."""
    return [
        replace(each, node_name=on[each.name.replace("-", "_")], phase="Running")
        if isinstance(each, Pod) and each.name.replace("-", "_") in on
        else each
        for each in objects
    ]


def test_a_gang_of_which_some_runs_has_its_domain_alone() -> None:
    ssn = session(cluster(LEVELS, RACKS, placed(racked("g", 3, 1), g_0="a")), ALLOCATE)
    assert domains_of(ssn, "g") == [["a"]]


def test_a_gang_that_is_in_two_domains_or_in_none_has_no_place() -> None:
    for on in ({"g_0": "a", "g_1": "b0"}, {"g_0": "none"}):
        ssn = session(cluster(LEVELS, RACKS, placed(racked("g", 3, 1), **on)), ALLOCATE)
        assert domains_of(ssn, "g") == []


def test_filters_that_part_pods_send_the_gang_to_another_domain() -> None:
    """Counted by resources both racks hold it."""
    fills = [pod("x", "", on="b0", cpu=1, phase="Running")]
    found = run(cluster(LEVELS, RACKS, fills, racked("g", 2, cpu=2)), ALLOCATE)
    assert set(found.binds.values()) == {"a"}


FULL: list[Any] = [in_rack("a0", 1, "a"), in_rack("a1", 1, "a"), *(in_rack(f"b{i}", 1, "b") for i in range(3))]
FILLED = [fill for i, each in enumerate(("a0", "a1", "b0", "b1", "b2")) for fill in gang(f"low{i}", 1, on=each)]


def test_preempt_leaves_it_to_gangpreempt_which_vacates_one_domain() -> None:
    for size, nodes in ((2, {"a0", "a1"}), (3, {"b0", "b1", "b2"}), (4, set())):
        state = LEVELS, FULL, FILLED, racked("high", size, level="high")
        assert not run(cluster(*state), PREEMPT).evicted
        found = run(cluster(*state), PREEMPT, actions="gangpreempt")
        assert set(found.pipelined.values()) <= nodes and len(found.pipelined) == (size if nodes else 0)
        assert len(found.evicted) == len(found.pipelined), "as many as are needed, and where it goes"


def test_gangreclaim_vacates_one_domain() -> None:
    conf = f"{ALLOCATE.replace('nodeorder', 'proportion')}"
    queues = [queue("rich", weight=1), queue("poor", weight=1)]
    nodes = [each.name for each in FULL]
    fills = [fill for name in nodes for fill in gang(f"of-{name}", 1, of="rich", on=name)]
    mine = [replace(each, queue="poor") if isinstance(each, PodGroup) else each for each in racked("g", 2)]
    found = run(cluster(LEVELS, queues, FULL, fills, mine), conf, actions="gangreclaim")
    racks = {each.rstrip("0123456789") for each in found.pipelined.values()}
    assert len(found.pipelined) == len(found.evicted) == 2 and len(racks) == 1


def test_a_gang_that_runs_in_part_vacates_its_own_domain_alone() -> None:
    mine = placed(racked("high", 2, level="high"), high_0="a0")
    fills = [each for each in FILLED if getattr(each, "node_name", "") != "a0"]
    found = run(cluster(LEVELS, FULL, fills, mine), PREEMPT, actions="gangpreempt")
    assert (found.pipelined, found.evicted) == ({"ns/high-1": "a1"}, ["ns/low1-0"])


def test_a_domain_that_was_vacated_for_a_gang_is_kept_for_it() -> None:
    """In the cycle after the evictions its victims are still leaving."""
    freed = ("b0", "b1")
    leaving = [replace(each, deletion=1.0) if getattr(each, "node_name", "") in freed else each for each in FILLED]
    mine = [
        replace(each, nominated_node=f"b{each.name[-1]}") if isinstance(each, Pod) else each
        for each in racked("high", 2, level="high")
    ]
    found = run(cluster(LEVELS, FULL, leaving, mine), PREEMPT, actions="allocate, gangpreempt")
    assert (found.pipelined, found.evicted) == ({"ns/high-0": "b0", "ns/high-1": "b1"}, [])
    others = [replace(each, nominated_node="") if isinstance(each, Pod) else each for each in mine]
    assert not run(cluster(LEVELS, FULL, leaving, others), ALLOCATE).pipelined, "nothing was evicted for it"


def test_pods_without_requests_go_to_one_domain() -> None:
    free: dict[str, Any] = {"cpu": 0, "memory": 0}
    found = run(cluster(LEVELS, RACKS, racked("g", 4, 4, **free)), ALLOCATE)
    assert len(found.binds) == 4 and len({each[0] for each in found.binds.values()}) == 1
    joined = placed(racked("g", 3, 1, **free), g_0="b0")
    assert {each[0] for each in run(cluster(LEVELS, RACKS, joined), ALLOCATE).binds.values()} == {"b"}
    lost = placed(racked("g", 3, 1, **free), g_0="b0", g_1="a")
    assert not run(cluster(LEVELS, RACKS, lost), ALLOCATE).binds
