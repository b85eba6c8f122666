"""Changes as users write them: what a cycle then decides."""

from __future__ import annotations

from msgspec.structs import replace

from pumice.answers.edits import drain
from pumice.answers.world import Draft, Trials
from pumice.model.devices.claims import (
    AllocatedDevice,
    Allocation,
    Device,
    DeviceClass,
    DeviceOption,
    DeviceRequest,
    ResourceClaim,
    ResourceSlice,
)
from pumice.model.devices.gpu import GPU_GROUP_LABEL, GpuShare
from pumice.model.pod import Pod
from pumice.testing.build import node, podgroup, pods, queue
from tests.unit.answers.test_ways import each_language, world


@each_language
def test_pods_of_a_drained_node_get_another_one(language: str) -> None:
    nodes = [node(f"n{number}", cpu=2) for number in range(3)]
    runs = [replace(pod, node_name=f"n{at}", phase="Running") for at, pod in enumerate(pods("a", 2, cpu=2))]
    draft = Draft(world(language, queue("default"), *nodes, podgroup("a", 2, phase="Running"), *runs))
    trials = Trials(draft.world, 9)
    assert trials.base.decisions == ()
    drain(draft, "n0")
    assert trials.run(draft).binds == {"ns/a-0": "n2"}
    assert trials.run(Draft(draft.world)).decisions == ()


def test_ended_and_bare_pods_of_a_drained_node_are_gone() -> None:
    ended, bare = (replace(pod, node_name="n0") for pod in pods("a", 2, cpu=1))
    ended, bare = replace(ended, phase="Succeeded"), replace(bare, phase="Running", annotations={})
    draft = Draft(world("volcano", queue("default"), node("n0"), node("n1"), podgroup("a"), ended, bare))
    drain(draft, "n0")
    assert [draft.get(Pod, pod.key) for pod in (ended, bare)] == [None, None]


def test_a_drained_pod_leaves_the_devices_of_the_claim_that_was_made_for_it() -> None:
    request = DeviceRequest("gpu", (DeviceOption("gpu.example.com", 1, "gpu"),))
    slices = [
        ResourceSlice(f"{name}-slice", "gpu.example.com", name, node_name=name, devices=(Device("d0"),))
        for name in ("n0", "n1")
    ]
    (pod,) = pods("a", 1, cpu=1)
    pod = replace(pod, node_name="n0", phase="Running", made_claims=("made",))
    pod = replace(pod, spec=replace(pod.spec, resource_claims=("made",)))
    given = Allocation((AllocatedDevice("gpu", "gpu.example.com", "n0", "d0"),))
    claim = ResourceClaim("ns", "made", (request,), allocation=given, reserved_for=(pod.uid,))
    nodes = [node("n0"), node("n1")]
    objects = [queue("default"), *nodes, DeviceClass("gpu.example.com"), *slices, claim, podgroup("a"), pod]
    draft = Draft(world("volcano", *objects))
    drain(draft, "n0")
    assert Trials(draft.world, 9).run(draft).binds == {pod.key: "n1"}


def test_a_drained_pod_leaves_the_device_that_it_shares() -> None:
    (pod,) = pods("a", 1, cpu=1)
    spec = replace(pod.spec, gpu_share=GpuShare(fraction=0.5))
    pod = replace(pod, spec=spec, node_name="n0", phase="Running", labels={GPU_GROUP_LABEL: "shared"})
    draft = Draft(world("kai", queue("default"), node("n0", gpu=1), node("n1", gpu=1), podgroup("a"), pod))
    drain(draft, "n0")
    found = draft.get(Pod, pod.key)
    assert isinstance(found, Pod) and found.labels == {}
    assert Trials(draft.world, 9).run(draft).binds == {pod.key: "n1"}
