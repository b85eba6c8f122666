"""The end of a session under KAI's language: conditions of gangs, times, what queues hold, and where it is reported."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from pumice.cycle import run_cycle
from pumice.framework.memo import Memo
from pumice.kube.api.encode_kai import kai_pod_group
from pumice.kube.api.encode_statuses import kai_group_status
from pumice.model.events import Seen
from pumice.model.manifest import Decoder
from pumice.model.queue import Queue, QueueUsage
from pumice.model.resources import EMPTY, Resource
from pumice.model.topology import Topology
from pumice.model.workloads.gang import (
    Gang,
    GangTimes,
    GroupResources,
    SchedulingCondition,
    SubGroup,
    TopologyConstraint,
    gang_at,
)
from pumice.model.workloads.podgroup import PodGroup
from pumice.reasons.nearest import NearestBlockers, why_pods_wait
from pumice.state.store import Store
from tests.unit.kai.cluster import ALL, GPU, NOW, Planner, cycle, job, node, policy, queue, store

GRACE = {"stalegangeviction": {"defaultStalenessGracePeriod": 60.0}}


def carry_out(found: Store, memo: Memo, now: float = NOW) -> list[str]:
    """A cycle whose statuses are written; the jobs that were."""
    outcome = run_cycle(found.snapshot(), policy(), now, Planner(), memo=memo)
    assert not outcome.faults
    jobs = outcome.tables.jobs
    groups = {group.key: group for group in jobs.groups if group is not None}
    for update in outcome.groups:
        group = groups[update.job]
        found.apply(Seen(replace(group, status=update.status, gang=gang_at(group.gang, update.times))))
    for name, held in outcome.queues.items():
        found.apply(Seen(replace(found.queues[name], allocated=held, usage=outcome.writes.usages[name])))
    return [*(update.job for update in outcome.groups), *outcome.queues]


def test_a_gang_without_a_place_is_unschedulable_on_its_pool() -> None:
    ran = cycle(store(node("n", 2), queue("q"), job("j", "q", ["", ""], gpus=2)))
    (update,) = ran.outcome.groups
    (condition,) = update.status.scheduling
    assert condition.node_pool == "default" and condition.transition_id == "1"
    assert condition.message == (
        "Resources were found for 1 pods while 2 are required for gang scheduling. Additional pods cannot be scheduled"
        " due to: 0/1 nodes are available: 1 node(s) have room for it, but not for all 2 pods that must start together."
    )
    assert condition.reasons == (("PodSchedulingErrors", condition.message),)
    assert [notice.pod for notice in ran.outcome.notices()] == ["ns/j-0", "ns/j-1"]


def test_who_waits_for_others_to_leave_a_node_is_nominated_to_it() -> None:
    leaving = job("goes", "q", ["n"], pod={"deletion": NOW})
    (notice,) = cycle(store(node("n", 1), queue("q"), leaving, job("j", "q", [""]))).outcome.notices()
    assert (notice.pod, notice.nominated_node) == ("ns/j-0", "n")
    assert notice.message == "promised node n, which others are leaving"


@pytest.mark.parametrize("priority", [50, 100], ids=["preemptible", "not preemptible"])
def test_a_gang_says_what_its_pods_hold_and_ask_for(priority: int) -> None:
    """And what is written says no more once it is read again."""
    ran = cycle(store(node("n"), queue("q"), job("j", "q", ["n", "n", ""], gpus=3, minimum=1, priority=priority)))
    (update,) = ran.outcome.groups
    held, more = Resource(2_000.0, 2e9, {GPU: 6_000.0}), Resource(3_000.0, 3e9, {GPU: 9_000.0})
    assert update.status.resources == GroupResources(held, EMPTY if priority < 100 else held, more)
    written = kai_group_status(update.status)
    assert written["resourcesStatus"]["requested"] == {"cpu": "3", "memory": "3000000000", GPU: "9"}
    assert ("allocatedNonPreemptible" in written["resourcesStatus"]) is (priority == 100)
    group = kai_pod_group(ran.outcome.tables.jobs.groups[0], Gang(), {"name": "j", "namespace": "ns"})
    read = Decoder().decode(group | {"status": written})
    assert isinstance(read, PodGroup) and read.status.resources == update.status.resources


def test_what_a_queue_has_no_more_of_is_said_in_numbers() -> None:
    found = store(node("n"), queue("top"), queue("q", limit=3, parent="top"), job("a", "q", ["n", "n"]))
    ran = cycle(store(node("n"), queue("top"), queue("q", limit=3, parent="top"), job("b", "q", [""], gpus=4)))
    (condition,) = ran.outcome.groups[0].status.scheduling
    assert condition.reasons[0][0] == "OverLimit"
    assert condition.message == "q has reached its limit of GPUs: the limit is 3, 0 allocated, the workload asks for 4"
    assert not cycle(found).outcome.groups[0].status.scheduling


def test_a_quota_binds_who_is_not_preemptible() -> None:
    ran = cycle(store(node("n"), queue("q", quota=1), job("b", "q", ["", ""], priority=100)))
    (condition,) = ran.outcome.groups[0].status.scheduling
    assert condition.reasons[0][0] == "NonPreemptibleOverQuota" and "quota: that of q is 1 GPUs" in condition.message


def test_statuses_are_written_once() -> None:
    found, memo = store(node("n", 2), queue("q"), job("j", "q", [""], gpus=4), job("k", "q", ["n"])), Memo()
    assert carry_out(found, memo) == ["ns/j", "ns/k", "q"]
    assert carry_out(found, memo) == []
    assert carry_out(found, Memo()) == []


@pytest.mark.parametrize(
    ("tasks", "gpus", "left"),
    [
        pytest.param([""], 1, ["default", "a100"], id="a bind may fail"),
        pytest.param([""], 9, ["a100", "default"], id="a new reason of this pool"),
        pytest.param(["n", ""], 8, ["default", "a100"], id="a pod waits beside one that runs"),
        pytest.param(["n"], 1, [], id="all run"),
    ],
)
def test_conditions_of_all_pools_go_when_no_pod_waits_for_a_place_or_a_bind(
    tasks: list[str], gpus: int, left: list[str]
) -> None:
    other, ours = SchedulingCondition("a100", "full", transition_id="7"), SchedulingCondition("default", "full")
    objects = job("j", "q", tasks, gpus=gpus, minimum=1)
    group = objects[1]
    objects[1] = replace(group, status=replace(group.status, scheduling=(ours, other)))  # type: ignore[arg-type, union-attr]
    (update,) = cycle(store(node("n"), queue("q"), objects)).outcome.groups
    assert [each.node_pool for each in update.status.scheduling] == left


def test_a_gang_that_says_so_has_no_notices() -> None:
    ran = cycle(store(node("n", 2), queue("q"), job("j", "q", [""], gpus=4, mark_unschedulable=False)))
    assert list(ran.outcome.notices()) == [] and ran.outcome.groups


def test_a_pod_of_a_sub_group_that_is_not_there_says_so_and_counts_for_nothing() -> None:
    subs = [SubGroup("a", 1)]
    ran = cycle(store(node("n", 8), queue("q"), job("j", "q", ["/a", "/nope"], minimum=1, sub_groups=subs)))
    assert [bind.pod for bind in ran.decisions] == ["ns/j-0"]
    text = 'Pod references subgroup "nope", which does not exist in PodGroup ns/j'
    assert {each.pod: each.message for each in ran.outcome.notices()} == {"ns/j-1": text}


def test_a_pod_of_no_sub_group_does_not_wait_for_what_its_job_waits_for() -> None:
    subs = [SubGroup("a", 1)]
    parts = job("j", "q", ["/a", "/nope"], gpus=9, minimum=1, sub_groups=subs, preemption_delay=60.0)
    said = {each.pod: each.message for each in cycle(store(node("n", 8), queue("q"), parts)).outcome.notices()}
    assert said["ns/j-1"].startswith("Pod references subgroup") and "delay window" in said["ns/j-0"]


def test_no_delay_is_told_of_a_job_without_pods_to_place() -> None:
    subs = [SubGroup("a", 1)]
    parts = job("j", "q", ["/a", "/nope"], minimum=1, sub_groups=subs, preemption_delay=60.0)
    ran = cycle(store(node("n", 8), queue("q"), parts))
    assert [each.pod for each in ran.outcome.notices()] == ["ns/j-1"] and not ran.outcome.groups[0].status.scheduling


def test_a_start_and_a_gang_below_its_minimum_are_noted_with_their_times() -> None:
    started, stale, whole = job("j", "q", [""]), job("k", "q", ["n"], minimum=2), job("l", "q", ["n"], stale_since=1.0)
    ran = cycle(store(node("n"), queue("q"), started, stale, whole), policy(ALL, **GRACE))
    times = {update.job: update.times for update in ran.outcome.groups}
    assert times == {"ns/j": GangTimes(NOW, None), "ns/k": GangTimes(None, NOW), "ns/l": GangTimes(None, None)}


def test_queues_say_what_they_and_those_below_hold_and_ask_for() -> None:
    found = store(
        node("n"),
        queue("top"),
        queue("q", parent="top"),
        job("a", "q", ["n", "n"]),
        job("b", "q", ["n"], priority=100),
        job("c", "q", [""], gpus=16),
    )
    ran = cycle(found)
    held = Resource(3000.0, 3e9, {GPU: 3000.0})
    usage = QueueUsage(Resource(1000.0, 1e9, {GPU: 1000.0}), Resource(4000.0, 4e9, {GPU: 19000.0}))
    assert ran.outcome.queues == {"top": held, "q": held}
    assert ran.outcome.writes.usages == {"q": usage, "top": replace(usage, children=("q",))}


@pytest.mark.parametrize(
    ("queues", "said"),
    [
        ((queue("q", parent="r"), queue("r", parent="q")), "queue q has parents that go round in a circle"),
        ((queue("q", parent="q"),), "queue q has parents that go round in a circle"),
        ((queue("q", parent="away"),), "queue q has a parent that is not there: away"),
        ((queue("q", parent="p"), queue("p", parent="away")), "queue p has a parent that is not there: away"),
        ((queue("q"), queue("r", parent="q")), "queue q has queues below it: only those that have none run workloads"),
    ],
)
def test_a_queue_that_runs_nothing_is_said_and_the_rest_is_served(queues: Sequence[Queue], said: str) -> None:
    found = store(node("n"), *queues, queue("other"), job("j", "q", [""]), job("k", "other", [""]))
    ran = cycle(found)
    assert ran.binds == {"k-0": "n"}
    (condition,) = next(each for each in ran.outcome.groups if each.job == "ns/j").status.scheduling
    assert condition.reasons == (("QueueDoesNotExist", said),)
    assert [notice.message for notice in ran.outcome.notices()] == [said]
    assert why_pods_wait(NearestBlockers(ran.outcome))["ns/j-0"] == said


def quota(amount: float) -> dict[str, Any]:
    return {"metadata": {"name": "q"}, "spec": {"resources": {"gpu": {"quota": amount, "limit": -1}}}}


def sub_groups(*parents: tuple[str, str]) -> dict[str, Any]:
    listed = [{"name": name, "parent": parent, "minMember": 1} for name, parent in parents]
    return {"metadata": {"name": "j", "namespace": "ns"}, "spec": {"queue": "q", "minMember": 1, "subGroups": listed}}


@pytest.mark.parametrize(
    ("kind", "api", "obj", "said"),
    [
        ("Queue", "v2", quota(-5), "resources.gpu.quota"),
        ("Queue", "v2", quota(1e300), "resources.gpu.quota"),
        ("PodGroup", "v2alpha2", sub_groups(("a", "b"), ("b", "a")), "go round in a circle"),
        ("PodGroup", "v2alpha2", sub_groups(("a", "a")), "go round in a circle"),
        ("PodGroup", "v2alpha2", sub_groups(*((f"s{i}", "") for i in range(2000))), "2000 sub-groups"),
    ],
)
def test_what_cannot_be_read_of_an_object_holds_back_its_own_and_nobody_else(
    kind: str, api: str, obj: dict[str, Any], said: str
) -> None:
    reading = Decoder().read_as(f"scheduling.run.ai/{api}", kind, obj)
    assert said in reading.why
    objects = [node("n"), queue("q"), queue("other"), *job("j", "q", [""]), *job("k", "other", [""])]
    replaced = [each for each in objects if (type(each), each.name) != (type(reading.value), reading.value.name)]  # type: ignore[union-attr]
    ran = cycle(store(*replaced, reading.value))  # type: ignore[arg-type]
    assert ran.binds == {"k-0": "n"}


def test_an_unknown_topology_or_level_and_minimums_above_sizes_keep_their_gang_waiting() -> None:
    for required in (TopologyConstraint("away", "rack"), TopologyConstraint("t", "shelf")):
        topology = Topology("t", ("rack",))
        found = store(node("n", labels={"rack": "r"}), topology, queue("q"), job("j", "q", [""], topology=required))
        ran = cycle(found)
        assert ran.binds == {} and ran.outcome.groups[0].status.scheduling
    few = cycle(store(node("n"), queue("q"), job("j", "q", [""], minimum=3), job("k", "q", [""])))
    assert few.binds == {"k-0": "n"}
    assert why_pods_wait(NearestBlockers(few.outcome))["ns/j-0"] == "1 of the 3 pods of minMember exist"


def test_a_limit_below_its_quota_is_what_a_queue_has_at_most() -> None:
    ran = cycle(store(node("n"), queue("q", quota=8, limit=1), job("j", "q", [""]), job("k", "q", [""])))
    assert len(ran.binds) == 1


def test_a_status_that_was_not_written_is_handed_out_again() -> None:
    found, memo = store(node("n", 1), queue("q"), job("j", "q", [""], gpus=2)), Memo()
    carry_out(found, memo)
    found.apply(Seen(queue("q", limit=1.0)))
    for _ in range(2):  # no controller writes it
        outcome = run_cycle(found.snapshot(), policy(), NOW, Planner(), memo=memo)
        (update,) = outcome.groups
        assert [reason for reason, _ in update.status.scheduling[0].reasons] == ["OverLimit"]


@pytest.mark.parametrize("memo", [Memo(), None], ids=["with a memory", "without"])
def test_numbers_of_a_condition_are_kept_for_a_minute_and_updated_then(memo: Memo | None) -> None:
    found = store(node("n", 1), queue("q"), job("j", "q", [""], gpus=2))
    assert "ns/j" in carry_out(found, memo or Memo())
    found.apply(Seen(node("m", 1)))
    assert "ns/j" not in carry_out(found, memo or Memo(), NOW + 59)
    assert "ns/j" in carry_out(found, memo or Memo(), NOW + 60)
    group = next(group for group in found.snapshot().tables.jobs.groups if group is not None)
    assert "0/2 nodes" in group.status.scheduling[0].message
    assert "ns/j" not in carry_out(found, memo or Memo(), NOW + 200)
