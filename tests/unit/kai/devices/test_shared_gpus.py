"""Pods that share GPUs, each plugin by what it changes; what quotas count; what is wrong finds no node."""

from __future__ import annotations

import re

import pytest
from msgspec.structs import replace

from pumice.columns.runs import TaskRun
from pumice.framework.cycle.session import Session
from pumice.framework.plugin.plugin import plugin
from pumice.framework.plugin.policy_file import read_policy
from pumice.kai import points
from pumice.model.decisions import GPU_GROUPS, Bind, Refusal
from pumice.model.devices.gpu import GPU_GROUP_LABEL, RESERVATION_NAMESPACE, GpuShare, gpu_groups, gpu_share
from pumice.model.events import Object, Seen
from pumice.model.pod import Affinity, LabelSelector, Pod, PodAffinityTerm, Requirement
from pumice.runtime.files.known_objects import pods_in
from pumice.runtime.policy.languages import builtin_registry
from tests.unit.kai.cluster import NOW, PLUGINS, Ran, cycle, job, node, policy, queue, store

HALF = GpuShare(0.5)
SHARING = (*PLUGINS, "gpusharingorder", "gpupack")
MEMORY = {"nvidia.com/gpu.memory": "1000"}


def sharing(objects: list[Object], share: GpuShare, group: str = "") -> list[Object]:
    """A job whose pods share GPUs; those that run are in one group of devices."""
    return [
        replace(
            obj,
            spec=replace(obj.spec, gpu_share=share),
            labels={**obj.labels, GPU_GROUP_LABEL: group} if group else obj.labels,
        )
        if isinstance(obj, Pod)
        else obj
        for obj in objects
    ]


def job_of(name: str, tasks: list[str], share: GpuShare = HALF, group: str = "") -> list[Object]:
    return sharing(list(job(name, "q", tasks, gpus=0)), share, group)


def test_halves_share_a_device_and_a_third_one_takes_another() -> None:
    found = store(node("a", 2, labels=MEMORY), queue("q"), *job_of("j", [""] * 3))
    ran = cycle(found, policy(["allocate"], SHARING))
    groups = [each.context[GPU_GROUPS] for each in ran.decisions if isinstance(each, Bind)]
    assert len(groups) == 3 and groups[0] == groups[1] != groups[2]
    assert ran.binds == {"j-0": "a", "j-1": "a", "j-2": "a"}


@plugin("refuses")
@points.on_allocate
def refuses(ssn: Session, run: TaskRun) -> Refusal | None:
    return Refusal("not today")


def test_who_is_refused_a_part_of_a_gpu_is_not_placed() -> None:
    tiers = [{"plugins": [*({"name": name} for name in SHARING), {"name": "refuses"}]}]
    registry = builtin_registry().with_plugins("kai", (refuses,))
    refusing = read_policy({"dialect": "kai", "actions": "allocate", "tiers": tiers}, registry)
    ran = cycle(store(node("a", 2, labels=MEMORY), queue("q"), *job_of("j", [""])), refusing)
    assert (ran.decisions, ran.states) == ([], {"j-0": "Pending"})


def test_a_device_that_is_shared_is_no_whole_one() -> None:
    runs = job_of("runs", ["a"], group="g")
    full = store(node("a", 1, labels=MEMORY), queue("q"), *runs, *job("j", "q", [""]))
    assert cycle(full, policy(["allocate"], SHARING)).binds == {}
    free = store(node("a", 2, labels=MEMORY), queue("q"), *runs, *job("j", "q", [""]))
    assert cycle(free, policy(["allocate"], SHARING)).binds == {"j-0": "a"}


def test_who_can_join_a_device_goes_to_its_node() -> None:
    objects = (node("a", labels=MEMORY), node("b", labels=MEMORY), queue("q"), *job_of("r", ["b"], group="g"))
    spread = [{"name": "nodeplacement", "arguments": {"gpu": "spread"}} if n == "nodeplacement" else n for n in PLUGINS]
    found = store(*objects, *job_of("j", [""]))
    assert cycle(found, policy(["allocate"], spread)).binds == {"j-0": "a"}
    assert cycle(found, policy(["allocate"], [*spread, "gpusharingorder"])).binds == {"j-0": "b"}


@pytest.mark.parametrize(("plugin", "group"), [("gpupack", "full"), ("gpuspread", "empty")])
def test_devices_are_packed_or_spread(plugin: str, group: str) -> None:
    runs = [*job_of("r", ["a"], GpuShare(0.5), "full"), *job_of("s", ["a"], GpuShare(0.2), "empty")]
    found = store(node("a", 2, labels=MEMORY), queue("q"), *runs, *job_of("j", [""], GpuShare(0.3)))
    ran = cycle(found, policy(["allocate"], [*PLUGINS, plugin]))
    assert [each.context[GPU_GROUPS] for each in ran.decisions if isinstance(each, Bind)] == [(group,)]


def test_quotas_count_fractions_and_memory_as_what_it_is_of_a_device() -> None:
    for share in (GpuShare(0.5), GpuShare(memory_mib=500)):
        objects = (node("a", 4, labels=MEMORY), queue("q", 1, limit=1))
        found = store(*objects, *(each for i in range(3) for each in job_of(f"j{i}", [""], share)))
        assert len(cycle(found, policy(["allocate"], SHARING)).binds) == 2


def test_what_means_nothing_finds_no_node_and_the_rest_is_served() -> None:
    wrong = gpu_share({"gpu-fraction": "1e-9"})
    assert wrong is not None
    found = store(node("a", labels=MEMORY), queue("q"), *job_of("bad", [""], wrong), *job_of("good", [""]))
    assert list(cycle(found, policy(["allocate"], SHARING)).binds) == ["good-0"]


def test_a_group_fits_now_with_what_is_releasing_there() -> None:
    """A node whose shared device has room only once a half has left is as available as one with an idle GPU, so the
    fuller node is taken, and the half waits there. Source: KAI NodeInfo, isTaskAllocatable with shared groups."""
    stays, leaves = job_of("stays", ["b"], HALF, "g"), job_of("leaves", ["b"], HALF, "g")
    leaves = [replace(each, deletion=NOW) if isinstance(each, Pod) else each for each in leaves]
    found = store(node("a", 1, labels=MEMORY), node("b", 1, labels=MEMORY), queue("q"))
    for each in (*stays, *leaves, *job_of("new", [""])):
        found.apply(Seen(each))
    ran = cycle(found, policy(["allocate"]))
    assert ran.states["new-0"] == "Pipelined@b"


def test_where_no_node_has_gpus_nobody_shares_one() -> None:
    found = store(node("a", 0), queue("q"), *job_of("j", [""]))
    assert cycle(found, policy(["allocate"], SHARING)).binds == {}


def test_memory_above_every_device_finds_no_node() -> None:
    found = store(node("a", labels=MEMORY), queue("q"), *job_of("j", [""], GpuShare(memory_mib=10**9)))
    assert cycle(found, policy(["allocate"], SHARING)).binds == {}


def test_a_pod_stays_away_from_those_it_will_not_be_beside() -> None:
    x = LabelSelector((Requirement("app", "In", ("x",)),))
    apart = Affinity(anti_required=(PodAffinityTerm("host", x, ("ns",)),))
    group, wants = [o for o in job("j", "q", [""]) if not isinstance(o, Pod)], job("j", "q", [""])[-1]
    assert isinstance(wants, Pod)
    wants = replace(wants, spec=replace(wants.spec, affinity=apart))
    nodes = (node("a", labels={"host": "a"}), node("b", labels={"host": "b"}))
    found = store(*nodes, queue("q"), job("r", "q", ["a"], labels={0: {"app": "x"}}), *group, wants)
    assert cycle(found, policy(["allocate"])).binds == {"j-0": "b"}


def reservation(group: str = "g", on: str = "a", namespace: str = RESERVATION_NAMESPACE) -> Pod:
    """The pod that holds the device which a group shares."""
    (pod,) = [each for each in job("reservation", "q", [on]) if isinstance(each, Pod)]
    return replace(pod, namespace=namespace, annotations={}, labels={GPU_GROUP_LABEL: group}, scheduler_name="other")


def test_the_gpu_of_a_reservation_pod_is_the_device_that_others_share() -> None:
    runs, waits = job_of("runs", ["a"], group="g"), job("j", "q", [""])
    found = store(node("a", 2, labels=MEMORY), queue("q"), *runs, reservation(), *waits)
    assert cycle(found, policy(["allocate"], SHARING)).binds == {"j-0": "a"}
    both = store(node("a", 2, labels=MEMORY), queue("q"), *runs, reservation(), *job("j", "q", ["", ""]))
    assert cycle(both, policy(["allocate"], SHARING)).binds == {}
    for other in (reservation("another"), reservation(namespace="ns"), reservation(on="b")):
        objects = (node("a", 2, labels=MEMORY), node("b", 1), queue("q"), *runs, other, *job("j", "q", [""], gpus=1))
        bound = cycle(store(*objects), policy(["allocate"], SHARING)).binds
        assert bound == ({"j-0": "b"} if other.node_name == "a" else {"j-0": "a"})


_LABEL_VALUE = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")


def half(name: str, on: str = "") -> list[Object]:
    """A job of one pod with half a GPU, whose uid is one of Kubernetes'."""
    made = job_of(name, [on])
    return [
        replace(each, uid=f"0f8fad5b-d9cb-469f-a165-7086772{name}") if isinstance(each, Pod) else each for each in made
    ]


def groups_of(ran: Ran) -> list[tuple[str, ...]]:
    return [each.context[GPU_GROUPS] for each in ran.decisions if isinstance(each, Bind)]  # type: ignore[misc]


def test_names_of_groups_are_label_values_even_beside_a_pod_that_names_none() -> None:
    found = store(node("a", 2, labels=MEMORY), queue("q"), *half("89501", "a"), *half("89502"))
    (groups,) = groups_of(cycle(found, policy(["allocate"], SHARING)))
    assert all(_LABEL_VALUE.fullmatch(group) for group in groups), groups


@pytest.mark.parametrize("stale", [{}, {GPU_GROUP_LABEL: "of-an-earlier-attempt"}], ids=["unlabelled", "stale label"])
def test_a_pod_in_flight_keeps_the_groups_of_its_decision(stale: dict[str, str]) -> None:
    """The label arrives after the decision: until then, the next half joins the group that was decided."""
    found, sharing_policy = store(node("a", 4, labels=MEMORY), queue("q")), policy(["allocate"], SHARING)
    for each in half("89501"):
        found.apply(Seen(replace(each, labels=stale) if isinstance(each, Pod) else each))
    first = cycle(found, sharing_policy)
    found.assume(first.decisions)
    for each in half("89502"):
        found.apply(Seen(each))
    second = cycle(found, sharing_policy)
    assert groups_of(second) == groups_of(first)
    assert [len(groups) for groups in groups_of(first)] == [1]


def test_a_dump_has_the_groups_of_pods_in_flight() -> None:
    found = store(node("a", 4, labels=MEMORY), queue("q"), *half("89501"))
    ran = cycle(found, policy(["allocate"], SHARING))
    found.assume(ran.decisions)
    (in_flight,) = pods_in(found.snapshot().tables, NOW)
    assert (in_flight.node_name, gpu_groups(in_flight.labels)) == ("a", groups_of(ran)[0])


def test_nothing_is_moved_for_a_pod_whose_bind_was_refused_although_it_has_room() -> None:
    runs = [*job_of("r", ["a"], group="g"), *job_of("s", ["b"], group="h")]
    found = store(node("a", 6, labels=MEMORY), node("b", 6, labels=MEMORY), queue("q"), *runs, *half("89501"))
    assert cycle(found, policy(["allocate", "consolidation"], SHARING)).evicted == []
    ran = cycle(found, policy(["allocate", "consolidation"], SHARING), refuses=["89501-0"])
    assert (ran.evicted, ran.binds) == ([], {})
