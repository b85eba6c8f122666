"""allocate: chunks one by one, binpack, waiting for what leaves."""

import pytest
from msgspec.structs import replace

from pumice.kai.plugins.predicates import CLAIMED
from pumice.model.pod import PodSpec
from pumice.model.resources import Resource
from pumice.model.topology import Topology
from pumice.model.workloads.gang import SubGroup, TopologyConstraint
from tests.unit.kai.cluster import NOW, cycle, job, node, policy, queue, store

ALLOCATE = policy(["allocate"])


def test_a_gang_is_placed_whole_or_not_at_all() -> None:
    found = store(node("a", 4), queue("q"), job("big", "q", [""] * 5), job("small", "q", [""] * 3, age=-1))
    assert cycle(found, ALLOCATE).binds == {f"small-{i}": "a" for i in range(3)}


def test_an_elastic_job_grows_in_turn_with_others() -> None:
    one = job("one", "p", [""] * 4, minimum=1, age=10)
    other = job("other", "q", [""] * 4, minimum=1)
    ran = cycle(store(node("a", 4), queue("p", 0), queue("q", 0), one, other), ALLOCATE)
    assert sorted(ran.binds) == ["one-0", "one-1", "other-0", "other-1"]


def test_tasks_fill_the_fullest_node_that_fits() -> None:
    found = store(node("a"), node("b"), queue("q"), job("runs", "q", ["b"] * 5), job("new", "q", [""] * 4))
    assert list(cycle(found, ALLOCATE).binds.values()) == ["b", "b", "b", "a"]


def test_equal_nodes_are_taken_by_name_whatever_their_age() -> None:
    old = node("z")
    young = replace(old, name="a", creation=5.0)
    assert cycle(store(old, young, queue("q"), job("j", "q", [""])), ALLOCATE).binds == {"j-0": "a"}


def test_nothing_waits_for_a_pod_that_is_stuck_in_its_deletion() -> None:
    stuck = job("goes", "q", ["a"], gpus=8, pod={"deletion": NOW - 121.0})
    ran = cycle(store(node("a"), queue("q"), stuck, job("new", "q", [""])), ALLOCATE)
    assert ran.states == {"goes-0": "StuckInReleasing@a", "new-0": "Pending"}


def test_a_gang_waits_whole_when_a_part_of_it_must_wait() -> None:
    leaving = job("goes", "q", ["a"], pod={"deletion": NOW})
    ran = cycle(store(node("a", 2), queue("q"), leaving, job("g", "q", [""] * 2)), ALLOCATE)
    assert ran.decisions == []
    assert (ran.states["g-0"], ran.states["g-1"]) == ("Pipelined@a", "Pipelined@a")


def test_a_bind_that_is_refused_is_undone_and_the_queue_has_its_share_again() -> None:
    jobs = (job("first", "q", [""], age=1), job("second", "q", [""]))
    ran = cycle(store(node("a"), queue("q", limit=1), *jobs), ALLOCATE, refuses={"first-0"})
    assert ran.binds == {"second-0": "a"}


def test_limits_hold_at_every_level_and_quota_for_who_is_not_preemptible() -> None:
    queues = (queue("top", limit=2), queue("q", 1, "top"))
    jobs = (job("build", "q", [""] * 2, priority=100, age=1), job("train", "q", [""] * 3), job("fits", "q", [""] * 2))
    assert sorted(cycle(store(node("a"), *queues, *jobs), ALLOCATE).binds) == ["fits-0", "fits-1"]


def test_a_queue_without_its_parent_runs_nothing() -> None:
    assert cycle(store(node("a"), queue("q", parent="gone"), job("j", "q", [""])), ALLOCATE).binds == {}


def test_queues_that_are_their_own_ancestors_run_nothing() -> None:
    queues = (queue("p", parent="q"), queue("q", parent="p"), queue("leaf", parent="p"), queue("ok"))
    ran = cycle(store(node("a"), *queues, job("j", "leaf", [""]), job("k", "ok", [""])), ALLOCATE)
    assert ran.binds == {"k-0": "a"}


def test_nothing_is_placed_where_there_are_no_nodes() -> None:
    assert cycle(store(queue("q"), job("j", "q", [""]))).decisions == []


def test_claims_that_no_plugin_looks_at_are_placed_nowhere() -> None:
    claims = PodSpec(Resource(1000.0, 1e9, {"pods": 1.0}), resource_claims=("ns/claim",))
    group, pod = job("j", "q", [""])[1:]
    part = replace(pod, spec=claims)
    ran = cycle(store(node("a"), queue("q"), group, part), ALLOCATE)
    assert ran.binds == {}
    assert CLAIMED.reason in [entry.finding.detail for entry in ran.outcome.entries]  # type: ignore[union-attr]


def test_a_pod_set_grows_whose_share_of_its_minimum_is_the_smallest() -> None:
    sets = (SubGroup("big", 2), SubGroup("small", 1))
    tasks = ["a/big", "a/big", "/big", "a/small", "/small"]
    ran = cycle(store(node("a", 4), queue("q"), job("j", "q", tasks, sub_groups=sets)), ALLOCATE)
    assert ran.binds == {"j-2": "a"}  # equally full: by name


def test_a_group_that_must_be_near_goes_into_one_domain() -> None:
    racks = [node(f"n{i}", 2, labels={"rack": f"r{i // 2}"}) for i in range(4)]
    topology = Topology("topo", ("rack",))
    near = job("near", "q", [""] * 4, topology=TopologyConstraint("topo", "rack"))
    ran = cycle(store(*racks, topology, queue("q"), job("runs", "q", ["n0"]), near), ALLOCATE)
    assert set(ran.binds.values()) == {"n2", "n3"}
    lost = job("lost", "q", [""], topology=TopologyConstraint("none", "rack"))
    assert cycle(store(*racks, topology, queue("q"), lost), ALLOCATE).binds == {}
    lost = job("lost", "q", [""], topology=TopologyConstraint("topo", "row"))
    assert cycle(store(*racks, topology, queue("q"), lost), ALLOCATE).binds == {}


@pytest.mark.parametrize(("first", "who"), [(True, "late-0"), (False, "early-0")])
def test_what_was_freed_for_a_job_is_its_own_before_others_are_tried(first: bool, who: str) -> None:
    early, late = job("early", "q", [""], gpus=2, age=1), job("late", "q", [""], gpus=2, pod={"nominated_node": "a"})
    ran = cycle(store(node("a", 2), queue("q"), early, late), policy(["allocate"], allocate={"promisedFirst": first}))
    assert ran.binds == {who: "a"}


def test_a_nomination_to_a_node_that_others_took_puts_no_job_first() -> None:
    """It would take what was freed for another job, in each cycle anew."""
    stale = job("stale", "q", [""], gpus=2, age=1, pod={"nominated_node": "a"})
    late = job("late", "q", [""], gpus=2, pod={"nominated_node": "b"})
    leaving = job("goes", "q", ["b"], gpus=2, pod={"deletion": NOW})
    ran = cycle(store(node("a", 2), node("b", 2), queue("q"), job("runs", "q", ["a"]), leaving, stale, late), ALLOCATE)
    assert (ran.states["late-0"], ran.states["stale-0"]) == ("Pipelined@b", "Pending")


@pytest.mark.parametrize(("room", "where"), [(2, "b"), (1, "a")], ids=["it is free", "somebody has taken it"])
def test_a_task_goes_where_it_was_promised_a_place(room: int, where: str) -> None:
    """Its victims are nominated to other nodes: without that, they would take each other's."""
    waiting = job("late", "q", [""], gpus=2, pod={"nominated_node": "b"})
    ran = cycle(store(node("a", 2), node("b", room), queue("q"), waiting), ALLOCATE)
    assert ran.binds == {"late-0": where}


def test_a_promised_job_grows_in_turn_with_others() -> None:
    late = job("late", "q", [""] * 3, minimum=1, pod={"nominated_node": "a"})
    ran = cycle(store(node("a", 2), queue("q"), job("early", "q", [""], age=1), late), ALLOCATE)
    assert sorted(ran.binds) == ["early-0", "late-0"]


@pytest.mark.parametrize("actions", [["allocate"], ["allocate", "consolidation", "reclaim", "preempt"]], ids=len)
@pytest.mark.parametrize("nodes", [0, 1])
def test_a_pod_on_a_node_that_is_not_there_takes_part_in_nothing(nodes: int, actions: list[str]) -> None:
    """Its row of a node is -1, which is not the last node."""
    found = store(*[node("a", 1)][:nodes], queue("q"), job("lost", "q", ["gone"]), job("waits", "q", [""]))
    ran = cycle(found, policy(actions))
    assert (ran.binds, ran.outcome.faults) == ({"waits-0": "a"} if nodes else {}, [])
