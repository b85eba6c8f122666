"""deviceshare: the policy, against the slow and plain way, and what manifests say."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from pumice.framework.plugin.errors import PolicyError
from pumice.model.devices import shared_devices as words
from pumice.model.devices.shared_devices import DeviceAsk
from pumice.model.manifest import Decoder
from pumice.model.node import Node
from pumice.model.pod import Pod
from pumice.testing.build import cluster, pod, podgroup, policy, run
from pumice.testing.devices import shared_gpus, vgpu
from tests.unit.volcano.devices.given import cards_of, conf

# -- against the slow and plain way


def test_whoever_waits_fits_no_node_and_no_card_is_overcommitted() -> None:
    for seed in range(12):
        dice = Random(seed)
        nodes = [shared_gpus(f"n{i}", dice.randint(1, 3)) for i in range(3)]
        asks = [vgpu(dice.choice((0, 3000, 9000)), dice.randint(1, 2), dice.choice((0, 30, 100))) for _ in range(14)]
        waiting = [pod(f"p{i}", "g", cpu="1m", memory=0, devices=ask) for i, ask in enumerate(asks)]
        policy_ = conf(VGPUEnable=True, SchedulePolicy=dice.choice(("", "binpack", "spread")), ScheduleWeight=1)
        given = cards_of(run(cluster(nodes, podgroup("g"), waiting), policy_))
        held: dict[str, list[tuple[int, int]]] = {f"{n.name}-{i}": [] for n in nodes for i in range(_count(n))}
        for text in given.values():
            for entry in text.split(":")[:-1]:
                card, _, memory, cores = entry.split(",")
                held[card].append((int(memory), int(cores)))
        for parts in held.values():
            assert sum(memory for memory, _ in parts) <= 16_384
            assert sum(cores for _, cores in parts) <= 100
            assert len(parts) == 1 or all(cores < 100 for _, cores in parts)
        for i, ask in enumerate(asks):
            if f"p{i}" not in given:
                assert not any(_fits(ask, [held[f"{n.name}-{c}"] for c in range(_count(n))]) for n in nodes), seed


def _count(has: Node) -> int:
    return has.annotations[words.REGISTER_ANNOTATION].count(":")


def _fits(ask: DeviceAsk, cards: list[list[tuple[int, int]]]) -> bool:
    named = dict(ask.containers[0])
    memory, cores = named.get(words.VGPU_MEMORY, 16_384), named.get(words.VGPU_CORES, 0)
    open_to = 0
    for parts in cards:
        left, used = 16_384 - sum(m for m, _ in parts), sum(c for _, c in parts)
        alone = cores < 100 or not parts
        open_to += left >= memory and used + cores <= 100 and alone and not (used == 100 and not cores)
    return open_to >= named[words.VGPU_NUMBER]


# -- policies and manifests


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"GPUSharingEnable": True, "GPUNumberEnable": True}, "found true beside deviceshare.GPUNumberEnable"),
        ({"GPUNumberEnable": True, "VGPUEnable": True}, "found true beside deviceshare.VGPUEnable"),
        ({"SchedulePolicy": "pack"}, "wanted binpack or spread"),
        ({"AscendMindClusterVNPUEnable": True}, "NPUs of MindCluster are not shared out by this version yet"),
        ({"KnownGeometriesCMName": "No such"}, "CMName: found 'No such', wanted the name of a ConfigMap"),
        ({"KnownGeometriesCMName": 7}, "CMName: found 7, wanted a text"),
        ({"KnownGeometriesCMNamespace": "a.b"}, "CMNamespace: found 'a.b', wanted the name of a namespace"),
        (
            {"VGPUEnable": True, "KnownGeometriesCMName": "cuts"},
            "CMName: the ConfigMap kube-system/cuts is not read: put its device-config.yaml under deviceshare.DeviceC",
        ),
        (
            {"AscendHAMiVNPUEnable": True, "KnownGeometriesCMNamespace": "gpu"},
            "CMNamespace: the ConfigMap gpu/volcano-vgpu-device-config is not read",
        ),
        ({"GPUExclusiveRules": "a=b"}, "wanted a list of at most 64 mappings"),
        ({"GPUExclusiveRules": [{"a": 1}]}, "wanted texts for labels and values"),
        ({"DeviceConfig": {"nvidia": []}}, "nvidia: found a list, wanted a mapping"),
        ({"DeviceConfig": {"vnpus": [{"commonWord": ""}]}}, "vnpus[0].commonWord: found '', wanted a text"),
    ],
)
def test_a_policy_that_cannot_be_is_refused(arguments: dict[str, Any], problem: str) -> None:
    with pytest.raises(PolicyError) as error:
        policy(conf(**arguments))
    assert problem in str(error.value)


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param({"VGPUEnable": True, "KnownGeometriesCMName": "volcano-vgpu-device-config"}, id="Volcano's own"),
        pytest.param({"GPUNumberEnable": True, "KnownGeometriesCMName": "cuts"}, id="a kind that is not in it"),
        pytest.param(
            {"VGPUEnable": True, "KnownGeometriesCMName": "cuts", "DeviceConfig": {"nvidia": {"gpuMemoryFactor": 10}}},
            id="what it says is in the policy",
        ),
    ],
)
def test_a_config_map_may_be_named_where_nothing_in_it_is_missed(arguments: dict[str, Any]) -> None:
    assert not policy(conf(**arguments)).warnings


def test_a_manifest_says_what_containers_may_use_and_sums_leave_out_what_is_counted_by_card() -> None:
    limits = {"cpu": "1", words.VGPU_NUMBER: "2", words.VGPU_MEMORY: "3k", words.VGPU_CORES: "30"}
    annotations = {words.USE_ID_ANNOTATION: "a", "other": "b"}
    manifest = {
        "metadata": {"name": "p", "namespace": "ns", "annotations": annotations},
        "spec": {"containers": [{"name": "c", "resources": {"limits": limits, "requests": limits}}, {"name": "d"}]},
    }
    spec = Decoder().decode_as("v1", "Pod", manifest).spec
    asked = ((words.VGPU_CORES, 30), (words.VGPU_MEMORY, 3000), (words.VGPU_NUMBER, 2))
    assert spec.devices == DeviceAsk((asked, ()), (), ((words.USE_ID_ANNOTATION, "a"),))
    assert set(spec.request.scalars) == {words.VGPU_NUMBER, "pods"}
    manifest["spec"]["containers"][0]["resources"] = {}
    assert Decoder().decode_as("v1", "Pod", manifest).spec.devices is None


def test_pods_that_differ_in_preferences_alone_are_distinguished_by_one_reader() -> None:
    decoder = Decoder()

    def annotations(
        annotations: dict[str, str], resource: str = words.VGPU_NUMBER
    ) -> tuple[tuple[str, str], ...] | None:
        resources = {"limits": {resource: "1"}, "requests": {resource: "1"}}
        metadata = {"name": "p", "namespace": "ns", "annotations": annotations}
        raw = {"metadata": metadata, "spec": {"containers": [{"name": "c", "resources": resources}]}}
        found = decoder.decode_as("v1", "Pod", raw)
        assert isinstance(found, Pod)
        return None if found.spec.devices is None else found.spec.devices.annotations

    assert annotations({}) == ()
    assert annotations({words.USE_ID_ANNOTATION: "a"}) == ((words.USE_ID_ANNOTATION, "a"),)
    assert annotations({words.USE_ID_ANNOTATION: "b"}) == ((words.USE_ID_ANNOTATION, "b"),)
    assert annotations({"hami.io/use-x-uuid": "a", "hami.io/vgpu-node": "n"}) == (("hami.io/use-x-uuid", "a"),)
    assert annotations({words.USE_ID_ANNOTATION: "a"}, "example.com/other") is None
