"""What is said of KAI's objects that cannot mean what they say."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

import pytest
from msgspec.structs import replace

from pumice.model.devices.gpu import GPU_GROUP_LABEL, GpuShare
from pumice.model.node import Node
from pumice.model.pod import GROUP_NAME_ANNOTATION, Pod, PodSpec
from pumice.model.queue import Queue, QueueSharing, Quota
from pumice.model.resources import Resource
from pumice.model.topology import Topology
from pumice.model.workloads.gang import SUB_GROUP_LABEL, Gang, SubGroup, TopologyConstraint
from pumice.model.workloads.podgroup import PodGroup
from pumice.runtime.problems.validation import validate_cluster

ROOM = Resource(8000.0, 1e9, {"nvidia.com/gpu": 2000.0}, 10)
NODE = Node("a", ROOM, labels={"nvidia.com/gpu.memory": "1000"})
TREE = Topology("racks", ("zone", "rack"))
ALIASED = Topology("racks", ("zone", "rack"), aliases=("", "shelf"))


def group(**gang: Any) -> PodGroup:
    return PodGroup("n", "g", "u", "q", 1, gang=Gang(**gang))


def pod(name: str = "p", pod_set: str = "", share: GpuShare | None = None) -> Pod:
    spec = PodSpec(Resource(100.0, 1e6), gpu_share=share)
    labels = {SUB_GROUP_LABEL: pod_set} if pod_set else {}
    return Pod("n", name, name, spec, labels=labels, annotations={GROUP_NAME_ANNOTATION: "g"})


def sharer(name: str, on: str, group: str = "") -> Pod:
    labels = {GPU_GROUP_LABEL: group} if group else {}
    return replace(pod(name, share=GpuShare(0.5)), node_name=on, labels=labels, phase="Running")


@pytest.mark.parametrize(
    ("objects", "reports"),
    [
        ((group(sub_groups=(SubGroup("a"), SubGroup("b"))), pod("p", "A"), pod("r", "b")), []),
        (
            (group(sub_groups=(SubGroup("a", 2),)), pod("p", "a"), pod("r", "x")),
            [
                "warning: PodGroup n/g: sub-group a has a minMember of 2, but 1 pods",
                "warning: PodGroup n/g: has no sub-group x, but pods that name it: these are not placed",
            ],
        ),
        (
            (group(min_sub_group=2, sub_groups=(SubGroup("a", 1, min_sub_group=1),)), pod("p", "a")),
            [
                "warning: PodGroup n/g: has a minSubGroup of 2, but 1 sub-groups: it never has its minimum",
                "warning: PodGroup n/g: sub-group a has a minSubGroup of 1, but no sub-groups: it has no effect",
            ],
        ),
        (
            (group(sub_groups=(SubGroup("s", 3, min_sub_group=2), SubGroup("a", 1, "s"))), pod("p", "a")),
            [
                "warning: PodGroup n/g: sub-group s has a minSubGroup of 2, but 1 sub-groups: it never has its minimum",
                "warning: PodGroup n/g: sub-group s has a minMember of 3 beside sub-groups: it has no effect",
            ],
        ),
        (
            (group(topology=TopologyConstraint("rack", "zone")), TREE, pod()),
            ["error: PodGroup n/g: Topology rack does not exist; did you mean racks?"],
        ),
        (
            (group(topology=TopologyConstraint("racks", "zone", "racks")), TREE, pod()),
            ["error: PodGroup n/g: Topology racks has no level racks; did you mean rack?"],
        ),
        ((group(topology=TopologyConstraint("racks", "zone", "shelf")), ALIASED, pod()), []),
        (
            (group(topology=TopologyConstraint("racks", "shelv")), ALIASED, pod()),
            ["error: PodGroup n/g: Topology racks has no level shelv; did you mean shelf?"],
        ),
        (
            (group(), pod(share=GpuShare(memory_mib=2000))),
            ["warning: Pod n/p: annotation gpu-memory asks for 2000 MiB of a GPU: the largest device has 1000"],
        ),
        (
            (group(), pod(share=GpuShare(1.0, problem="annotation x: found y, wanted z"))),
            ["warning: Pod n/p: annotation x: found y, wanted z; it fits no node where GPUs are shared"],
        ),
        (
            (group(), *(sharer(name, on="a") for name in "pq"), sharer("r", on="a", group="g")),
            [
                "warning: Node a: has 2 GPUs, but the pods there use 3: groups without a GPU take in no more pods",
            ],
        ),
        ((group(), *(sharer(name, on="a", group="g") for name in "pqr"), sharer("s", on="a")), []),
    ],
)
def test_gangs_topologies_and_shares(objects: tuple[Any, ...], reports: list[str]) -> None:
    _, problems = validate_cluster((Queue("q"), NODE, *objects))
    assert [str(problem) for problem in problems] == reports


@pytest.mark.parametrize(
    ("quota", "reports"),
    [
        (Quota(2.0, 1.0), ["warning: Queue q: limit is below its quota of gpu: the limit applies"]),
        (Quota(None, 1.0), ["warning: Queue q: limit is below its quota of gpu: the limit applies"]),
        (Quota(2.0, None), []),
        (Quota(2.0, 2.0), []),
    ],
)
def test_a_limit_below_the_quota(quota: Quota, reports: list[str]) -> None:
    _, problems = validate_cluster((NODE, Queue("q", sharing=QueueSharing(gpu=quota))))
    assert [str(problem) for problem in problems] == reports


def test_queues_that_go_round_in_a_circle_are_named() -> None:
    queues = [Queue("a", parent="b", sharing=QueueSharing()), Queue("b", parent="a", sharing=QueueSharing())]
    _, problems = validate_cluster((NODE, *queues))
    assert [str(problem) for problem in problems] == ["error: Queue a: parents form a cycle: a -> b -> a"]


def work_of_validation(count: int) -> int:
    """Lines and calls that run while so many gangs are validated."""
    gangs = [replace(group(sub_groups=(SubGroup("a"),)), name=f"g{i}", uid=f"u{i}") for i in range(count)]
    pods = [replace(pod(f"p{i}", "x"), annotations={GROUP_NAME_ANNOTATION: f"g{i}"}) for i in range(count)]
    work = 0

    def count_events(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal work
        work += 1
        return count_events

    before = sys.gettrace()
    sys.settrace(count_events)
    try:
        validate_cluster((NODE, Queue("q"), *gangs, *pods))
    finally:
        sys.settrace(before)
    return work


def test_validation_of_gangs_costs_as_much_as_there_are_gangs() -> None:
    assert work_of_validation(160) < 5 * work_of_validation(40)
