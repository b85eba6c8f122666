"""Ways out: the smallest amount that does, and not the whole obstacle."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from pumice.answers.codes import Code
from pumice.answers.edits import assign
from pumice.answers.explanation import Explanation, explain
from pumice.answers.ways import draft_of, least_count
from pumice.answers.world import Draft, Trials, World, starts
from pumice.framework.plugin.policy_file import Policy
from pumice.kai.table import DEFAULT_PLUGINS
from pumice.model.devices.claims import Device, DeviceClass, DeviceOption, DeviceRequest, ResourceClaim, ResourceSlice
from pumice.model.events import Object
from pumice.model.node import Node, Taint
from pumice.model.pod import Pod
from pumice.model.queue import Queue, QueueSharing, Quota
from pumice.model.resources import Resource
from pumice.model.workloads.gang import Gang
from pumice.model.workloads.podgroup import PodGroup
from pumice.runtime.policy.conf import policy_of
from pumice.runtime.policy.languages import builtin_registry
from pumice.testing.build import node, podgroup, pods, queue, resource
from pumice.volcano.table import DEFAULT_CONF

_FREE = Quota(None, None, 1.0)
each_language = pytest.mark.parametrize("language", ["volcano", "kai"])


def policy(language: str) -> Policy:
    plugins = ", ".join(f"{{name: {each}}}" for each in DEFAULT_PLUGINS)
    kai = f"dialect: kai\ntiers:\n- plugins: [{plugins}]\n"
    return policy_of(kai if language == "kai" else DEFAULT_CONF, builtin_registry())


def world(language: str, *objects: Object) -> World:
    """Return a world of Volcano's objects, in either language."""
    found = policy(language)
    names = (found.dialect.scheduler,)
    asked = [replace(obj, scheduler_name=names[0]) if isinstance(obj, Pod) else obj for obj in objects]
    if language == "kai":
        asked = [replace(obj, gang=Gang()) if isinstance(obj, PodGroup) else obj for obj in asked]
        asked = [_shared(obj) if isinstance(obj, Queue) and obj.sharing is None else obj for obj in asked]
    return World(asked, found, 0.0, names)


def _shared(found: Queue) -> Queue:
    return replace(found, sharing=QueueSharing(_FREE, _FREE, _FREE))


def with_claims(language: str, count: int, offered: int) -> World:
    """Return two nodes, of which one has devices, and a pod that claims some."""
    devices = tuple(Device(f"d{number}") for number in range(offered))
    request = DeviceRequest("gpu", (DeviceOption("gpu.example.com", count, "gpu"),))
    group, (pod,) = podgroup("ask", 1), pods("ask", 1, cpu=1)
    return world(
        language,
        queue("default"),
        node("n0", cpu=4),
        node("n1", cpu=4),
        DeviceClass("gpu.example.com"),
        ResourceSlice("n0-slice", "gpu.example.com", "n0", node_name="n0", devices=devices),
        ResourceClaim("ns", "gpus", (request,)),
        group,
        replace(pod, spec=replace(pod.spec, resource_claims=("gpus",))),
    )


def texts(found: Explanation) -> list[str]:
    return ["; ".join(way.text) for way in found.ways]


@each_language
def test_a_claim_of_too_many_devices_is_met_by_as_many_more_or_as_many_fewer(language: str) -> None:
    found = explain(with_claims(language, 4, 2), "ns/ask")
    assert [part.code for part in found.parts] == [Code.DEVICE]
    assert "2 more devices like d0 of gpu.example.com on node n0" in texts(found)
    fewer = next(way for way in found.ways if way.text == ("claims for 2 devices instead of 4",))
    assert fewer.commands == (
        "kubectl get resourceclaim gpus -n ns -o json"
        " | jq '(.spec.devices.requests[].exactly | select(.count > 2) | .count) = 2' | kubectl replace --force -f -",
    )


@each_language
def test_each_way_of_devices_places_the_pod(language: str) -> None:
    asked = with_claims(language, 3, 1)
    found = explain(asked, "ns/ask")
    assert found.ways and all("drop" not in text for text in texts(found)[:2])
    for way in found.ways:
        draft = draft_of(asked, way.chosen)
        fresh = World(draft.objects(), draft.policy, 0.0, asked.scheduler_names)
        assert starts(Trials(fresh, 0).base, fresh, "ns/ask")


def unlike(small: int, large: int) -> list[Object]:
    """A gang that fits on nodes of 8 and 2 cores if its small pods go to the small node. They come first by name."""
    members = [*pods("ask", 2, cpu=small), *pods("ask", 2, first=2, cpu=large)]
    return [node("n0", cpu=8), node("n1", cpu=2), queue("default"), podgroup("ask", 4), *members]


def test_a_gang_that_fits_although_it_is_not_placed_pod_by_pod_is_told_which_switch_places_it() -> None:
    first, *others = explain(world("volcano", *unlike(1, 4)), "ns/ask").ways
    assert first.text == (
        "action allocate: secondTries true instead of false, so its pods are packed, the largest first",
    )
    assert first.commands == ("# in the policy file, arguments of allocate: secondTries: true",)
    assert others and all("secondTries" not in text for way in others for text in way.text)


@pytest.mark.parametrize(
    ("language", "objects"),
    [
        pytest.param("volcano", unlike(2, 4), id="it does not fit packed either"),
        pytest.param("volcano", unlike(4, 4), id="its pods are equal"),
        pytest.param("kai", unlike(1, 4), id="the language has no such switch"),
    ],
)
def test_no_other_gang_is_told_so(language: str, objects: list[Object]) -> None:
    assert not any("secondTries" in text for text in texts(explain(world(language, *objects), "ns/ask")))


def test_limits_of_kai_are_raised_together_by_what_is_missing() -> None:
    limits = QueueSharing(Quota(4_000.0, 4_000.0), _FREE, Quota(4_000.0, 4_000.0))
    limited = replace(queue("limited"), sharing=limits)
    objects = [node("n0", cpu=16, gpu=8), limited, podgroup("ask", 8, queue="limited"), *pods("ask", 8, cpu=1, gpu=1)]
    found = explain(world("kai", *objects), "ns/ask")
    assert [part.code for part in found.parts] == [Code.QUEUE_LIMIT]
    first = found.ways[0]
    assert first.text == ("queue limited: gpu limit +4 GPUs; queue limited: cpu limit +4 cores",)
    change = '{"spec":{"resources":{"gpu":{"limit":8},"cpu":{"limit":8000}}}}'
    assert first.commands == (f"kubectl patch queue limited --type merge -p '{change}'",)
    assert first.changes == (
        "--set queue/limited.resources.gpu.limit=8",
        "--set queue/limited.resources.cpu.limit=8000",
    )


@pytest.mark.parametrize("likely", [0, 1, 11, 12, 13, 40])
def test_the_least_count_does_not_depend_on_what_seems_likely(likely: int) -> None:
    assert least_count(40, lambda count: count >= 12, likely) == 12


@pytest.mark.parametrize("likely", [0, 999, 500, 510, 490])
def test_a_large_count_is_found_to_a_thirty_second(likely: int) -> None:
    asked: list[int] = []

    def enough(count: int) -> bool:
        asked.append(count)
        return count >= 500

    assert 500 <= least_count(1000, enough, likely) <= 516
    assert len(asked) <= 18


def test_a_gang_for_which_many_nodes_are_missing_is_told_how_many() -> None:
    machine: Node = node("n0", cpu=16, gpu=8)
    asked = world("volcano", queue("default"), machine, podgroup("ask", 202), *pods("ask", 202, cpu=1, gpu=8))
    found, reason = explain(asked, "ns/ask"), explain(asked, "ns/ask", ways=False)
    assert "201 more nodes like n0 (8 GPUs, 16 cores, 32 GiB of memory)" in texts(found)
    assert found.trials - reason.trials < 10


def test_slots_of_pods_that_are_set_count_in_both_places_where_a_node_has_them() -> None:
    draft = Draft(world("volcano", queue("default"), node("n0", cpu=4)))
    assign(draft, "node/n0.allocatable.pods=4")
    (changed,) = draft.nodes()
    assert (changed.allocatable.get("pods"), changed.allocatable.max_task_num) == (4.0, 4)


def test_a_group_whose_pods_do_not_exist_yet_has_ways_for_its_minimum() -> None:
    larger = podgroup("ask", 2, min_resources=resource(gpu=104))
    asked = world("volcano", queue("default", weight=1), node("n0", cpu=4, gpu=8), larger)
    found = explain(asked, "ns/ask")
    assert isinstance(found, Explanation) and found.parts
    assert found.ways[0].text == ("2 more nodes (52 GPUs, 4 cores, 32 GiB of memory)",)


@each_language
def test_a_way_that_makes_the_changes_of_another_and_more_is_not_given(language: str) -> None:
    closed = [replace(node(name, cpu=4), unschedulable=True) for name in ("n0", "n1")]
    found = explain(world(language, queue("default"), *closed, podgroup("ask", 1), *pods("ask", 1, cpu=1)), "ns/ask")
    texts = [way.text[0] for way in found.ways if "n0" in way.text[0]]
    assert texts[0] == "uncordon node n0" and not any("cordons" in text for text in texts)


def test_a_taint_of_a_cordon_goes_with_it_and_others_are_named() -> None:
    taints = (Taint("node.kubernetes.io/unschedulable", "", "NoSchedule"), Taint("dedicated", "ml", "NoSchedule"))
    closed = replace(node("n0", cpu=4), unschedulable=True, taints=taints)
    found = explain(world("volcano", queue("default"), closed, podgroup("ask", 1), *pods("ask", 1, cpu=1)), "ns/ask")
    assert found.ways[0].text == ("uncordon node n0 and remove its taint dedicated=ml:NoSchedule",)
    assert found.ways[0].commands == ("kubectl uncordon n0", "kubectl taint nodes n0 dedicated:NoSchedule-")


def test_a_node_is_made_larger_by_what_it_lacks_and_equal_nodes_are_named_once() -> None:
    nodes = [node(f"n{number}", cpu=16, gpu=4) for number in range(3)]
    runs = replace(pods("run", 1, cpu=1, gpu=4)[0], node_name="n0", phase="Running")
    objects = [queue("default"), *nodes, podgroup("run", 1), runs, podgroup("ask", 1), *pods("ask", 1, cpu=1, gpu=6)]
    larger = [text for text in texts(explain(world("volcano", *objects), "ns/ask")) if "more on node" in text]
    assert larger == ["2 GPUs more on node n1"]


def test_one_resource_of_a_limit_is_raised_before_all_of_them() -> None:
    limit = Resource(1_000.0, 64 * 2.0**30, {"nvidia.com/gpu": 8_000.0})
    limited = replace(queue("q"), capability=limit)
    gang = (podgroup("ask", 2, queue="q"), *pods("ask", 2, cpu=2, gpu=1))
    found = explain(world("volcano", limited, node("n0", cpu=16, gpu=8), *gang), "ns/ask")
    assert texts(found)[:2] == [
        "queue q: capability +3 cores",
        "queue q: capability +2 GPUs and +4 cores and +2 GiB of memory",
    ]
