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
from pumice.testing.build import cluster, node, pod, run, session
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


def test_nothing_is_evicted_for_it_and_pods_without_requests_wait() -> None:
    full = [in_rack("a", 1, "a"), *gang("low", 1, on="a")]
    assert not run(cluster(LEVELS, full, racked("high", 1, level="high")), PREEMPT).evicted
    assert not run(cluster(LEVELS, RACKS, racked("g", 1, cpu=0, memory=0)), ALLOCATE).binds
