"""KAI's kinds and words, read: what they mean, and a clear word for what means nothing."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.model.bind_request import BindRequest
from pumice.model.devices.gpu import GpuShare, gpu_groups, gpu_share, mig_gpus, node_gpu_memory
from pumice.model.manifest import Decoder, ManifestError
from pumice.model.manifest.reading.fields import INT32_MAX
from pumice.model.queue import Queue, QueueSharing, Quota
from pumice.model.topology import Topology
from pumice.model.workloads.gang import Gang, SubGroup, TopologyConstraint

Raw = dict[str, Any]
READ = Decoder()


def queue(**spec: Any) -> Raw:
    return {"apiVersion": "scheduling.run.ai/v2", "kind": "Queue", "metadata": {"name": "q"}, "spec": spec}


def group(annotations: Raw | None = None, **spec: Any) -> Raw:
    metadata = {"name": "g", "namespace": "n", "annotations": annotations or {}}
    return {"apiVersion": "scheduling.run.ai/v2alpha2", "kind": "PodGroup", "metadata": metadata, "spec": spec}


def topology(*labels: Any) -> Raw:
    spec = {"levels": [{"nodeLabel": label} for label in labels]}
    return {"apiVersion": "kai.scheduler/v1alpha1", "kind": "Topology", "metadata": {"name": "t"}, "spec": spec}


# -- queues


def test_a_queue_has_quotas_in_whole_units_and_minus_one_is_unlimited() -> None:
    amounts = {"quota": 2.5, "limit": -1, "overQuotaWeight": 3}
    found = READ.decode(
        queue(parentQueue="d", resources={"gpu": amounts, "memory": {"quota": 7}}, reclaimMinRuntime="1h30m")
    )
    assert found == Queue(
        "q",
        parent="d",
        priority=100,
        sharing=QueueSharing(memory=Quota(7e6), gpu=Quota(2500.0, None, 3.0), reclaim_min_runtime=5400.0),
    )


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        (
            {"resources": {"gpu": {"quota": -2}}},
            "spec.resources.gpu.quota: found -2, wanted a number from 0 to 1e+12, or -1",
        ),
        ({"resources": {"gpu": {"limit": float("nan")}}}, "spec.resources.gpu.limit: found NaN, wanted a number"),
        ({"resources": {"cpu": {"quota": "8"}}}, 'spec.resources.cpu.quota: found "8", wanted a number'),
        ({"preemptMinRuntime": "-1s"}, 'spec.preemptMinRuntime: found "-1s", wanted a duration of 0 or more'),
        ({"priority": 1.5}, "spec.priority: found 1.5, wanted an integer"),
    ],
)
def test_a_queue_that_cannot_be_read_is_closed_and_says_why(spec: Raw, why: str) -> None:
    found = READ.read(queue(parentQueue="d", **spec))
    assert isinstance(found.value, Queue)
    assert why in found.why and found.effect == "it accepts no jobs"
    assert (found.value.parent, found.value.state, found.value.reclaimable) == ("d", "Closed", False)


# -- pod groups


def test_a_pod_group_is_a_tree_with_minimums_and_topology() -> None:
    rack = {"topology": "t", "requiredTopologyLevel": "rack"}
    found = READ.decode(
        group(
            {
                "kai.scheduler/last-start-timestamp": "1970-01-01T00:01:00Z",
                "kai.scheduler/stale-podgroup-timestamp": "?",
            },
            queue="q",
            minMember=4,
            preemptibility="non-preemptible",
            stalenessGracePeriod="-1s",
            preemptionDelay="5m",
            minSubGroup=0,
            topologyConstraint={"topology": "t", "preferredTopologyLevel": "zone"},
            subGroups=[
                {"name": "all"},
                {"name": "Workers", "parent": "ALL", "minMember": 3, "topologyConstraint": rack},
                {"name": "head", "parent": "all"},
            ],
        )
    )
    assert found.gang == Gang(
        (
            SubGroup("all"),
            SubGroup("workers", 3, "all", TopologyConstraint("t", "rack")),
            SubGroup("head", 0, "all"),
        ),
        TopologyConstraint("t", preferred="zone"),
        min_sub_group=0,
        preemptibility="non-preemptible",
        staleness_grace=-1.0,
        preemption_delay=300.0,
        last_start=60.0,
    )
    assert [each.name for each in found.gang.pod_sets()] == ["workers", "head"]
    assert [each.name for each in found.gang.children()["all"]] == ["head", "workers"]
    assert not found.gang.preemptible(0)
    assert Gang().preemptible(99) and not Gang().preemptible(100)


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        (
            {"subGroups": [{"name": "a", "parent": "b"}, {"name": "b", "parent": "a"}]},
            "round in a circle, wanted a tree",
        ),
        ({"subGroups": [{"name": "a", "parent": "a"}]}, "round in a circle, wanted a tree"),
        (
            {"subGroups": [{"name": "a", "parent": "c"}]},
            'spec.subGroups[0]: found parent "c", wanted the name of a sub-',
        ),
        (
            {"subGroups": [{"name": str(i), "parent": str(i - 1) if i else ""} for i in range(9)]},
            "spec.subGroups[8]: found a sub-group 9 levels deep, wanted at most 8 levels",
        ),
        ({"subGroups": [{"name": "a"}, {"name": "A"}]}, 'spec.subGroups[1]: found a second sub-group "a"'),
        ({"subGroups": [{"name": "a", "minMember": -1}]}, "spec.subGroups[0].minMember: found -1"),
        ({"subGroups": [{"name": str(i)} for i in range(1025)]}, "found 1025 sub-groups, wanted at most 1024"),
        ({"preemptibility": "maybe"}, 'spec.preemptibility: found "maybe", wanted preemptible or non-preemptible'),
        ({"topologyConstraint": {"requiredTopologyLevel": "rack"}}, "spec.topologyConstraint.topology: found nothing"),
        ({"minMember": -1}, "spec.minMember: found -1"),
    ],
)
def test_of_a_pod_group_that_cannot_be_read_nothing_is_placed(spec: Raw, why: str) -> None:
    found = READ.read(group(**spec))
    assert why in found.why and found.effect == "its pods are not placed"
    assert found.value.min_member == INT32_MAX  # type: ignore[union-attr]


# -- topologies and bind requests


def test_a_topology_is_levels_of_labels() -> None:
    assert READ.decode(topology("zone", "rack")) == Topology("t", ("zone", "rack"))


@pytest.mark.parametrize(
    ("labels", "why"),
    [
        (("zone", "zone"), 'spec.levels[1].nodeLabel: found "zone", wanted labels that differ'),
        (("",), 'spec.levels[0].nodeLabel: found "", wanted a string that is not empty'),
        (tuple("abcdefghijklmnopq"), "spec.levels: found 17 levels, wanted at most 16"),
    ],
)
def test_by_a_topology_that_cannot_be_read_nothing_is_placed(labels: tuple[str, ...], why: str) -> None:
    found = READ.read(topology(*labels))
    assert why in found.why and found.effect == "it is not used for placement"
    assert found.value == Topology("t", unparsable=(why,))


def test_an_alias_is_another_name_of_its_level() -> None:
    found = READ.decode(aliased(("cloud/rack", "rack"), ("cloud/host", "")))
    assert isinstance(found, Topology)
    assert found == Topology("t", ("cloud/rack", "cloud/host"), aliases=("rack", ""))
    names = ("rack", "cloud/rack", "zone", "")
    assert [found.label(name) for name in names] == ["cloud/rack", "cloud/rack", "zone", ""]


@pytest.mark.parametrize("levels", [(("a", "x"), ("b", "x")), (("a", "b"), ("b", "")), (("a", "a"),)])
def test_an_alias_that_is_also_another_name_is_refused(levels: tuple[tuple[str, str], ...]) -> None:
    found = READ.read(aliased(*levels))
    assert "wanted a name that no other level and no label has" in found.why


def aliased(*levels: tuple[str, str]) -> Raw:
    listed = [{"nodeLabel": label, **({"alias": alias} if alias else {})} for label, alias in levels]
    return topology() | {"spec": {"levels": listed}}


def request(spec: Raw, status: Raw) -> Raw:
    metadata = {"name": "p", "namespace": "n"}
    head = {"apiVersion": "scheduling.run.ai/v1alpha2", "kind": "BindRequest", "metadata": metadata}
    return head | {"spec": {"podName": "p", "selectedNode": "node"} | spec, "status": status}


@pytest.mark.parametrize(
    ("spec", "status", "live"),
    [
        ({}, {}, True),
        ({}, {"phase": "Failed"}, False),
        ({"backoffLimit": 2}, {"phase": "Failed", "failedAttempts": 1}, True),
        ({"backoffLimit": 2}, {"phase": "Failed", "failedAttempts": 2}, False),
        ({"selectedNode": ""}, {}, False),
        ({"backoffLimit": -1}, {}, False),  # cannot be read
    ],
)
def test_a_bind_request_counts_until_it_failed_for_good(spec: Raw, status: Raw, live: bool) -> None:
    found = READ.read(request(spec, status)).value
    assert isinstance(found, BindRequest)
    assert (found.pod_key, found.is_live) == ("n/p", live)


def test_an_object_without_a_name_is_nothing() -> None:
    with pytest.raises(ManifestError, match=r"metadata\.name"):
        READ.read(topology() | {"metadata": {}})


# -- pods and nodes


def pod(annotations: Raw) -> Raw:
    metadata = {"name": "p", "namespace": "n", "annotations": annotations}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [{"name": "c"}]}}


def test_a_pod_names_its_group_and_its_part_of_a_gpu_and_equal_pods_share_a_spec() -> None:
    half = {"pod-group-name": "g", "gpu-fraction": "0.5"}
    first, second = READ.decode(pod(half)), READ.decode(pod(half | {"note": "x"}))
    assert first.group_key == "n/g"  # type: ignore[union-attr]
    assert first.spec is second.spec and first.spec.gpu_share == GpuShare(0.5)  # type: ignore[union-attr]
    assert READ.decode(pod({})).spec.gpu_share is None  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("annotations", "share"),
    [
        ({"gpu-fraction": "0.333", "gpu-fraction-num-devices": "2"}, GpuShare(0.33, devices=2)),
        ({"gpu-memory": "2000"}, GpuShare(memory_mib=2000)),
        ({"nvidia.com/mig-1g.10gb": "1"}, GpuShare(legacy_mig=True)),
    ],
)
def test_parts_of_gpus(annotations: Raw, share: GpuShare) -> None:
    assert gpu_share(annotations) == share


@pytest.mark.parametrize(
    ("annotations", "why"),
    [
        ({"gpu-fraction": "0"}, 'annotation gpu-fraction: found "0", wanted a number from 0.01 to below 1'),
        ({"gpu-fraction": "1.5"}, 'found "1.5"'),
        ({"gpu-fraction": "1e-9"}, 'found "1e-9"'),
        ({"gpu-fraction": "nan"}, 'found "nan"'),
        ({"gpu-fraction": "."}, 'found "."'),
        ({"gpu-fraction": "0.5", "gpu-memory": "5"}, "wanted no gpu-memory beside it"),
        ({"gpu-fraction": "0.5", "gpu-fraction-num-devices": "1000000000"}, "wanted a whole number from 1 to 1024"),
        ({"gpu-fraction-num-devices": "2"}, "wanted gpu-fraction or gpu-memory beside it"),
        ({"gpu-memory": "0"}, "wanted a whole number of MiB, 1 or more"),
        ({"gpu-memory": "9" * 400}, "wanted a whole number of MiB, 1 or more"),
    ],
)
def test_a_part_of_a_gpu_that_means_nothing_counts_as_whole_devices(annotations: Raw, why: str) -> None:
    share = gpu_share(annotations)
    assert share is not None
    assert why in share.problem and (share.fraction, share.memory_mib) == (1.0, 0)


def test_groups_of_devices_are_labels() -> None:
    assert gpu_groups({"runai-gpu-group/b": "b", "runai-gpu-group/a": "a", "x": "y"}) == ("a", "b")
    assert gpu_groups({"runai-gpu-group": "one"}) == ("one",)


@pytest.mark.parametrize(("label", "mib"), [("81920", 81900), (str(80 << 30), 81900), ("x", 0), ("", 0), ("99", 0)])
def test_what_a_node_says_of_its_gpu_memory(label: str, mib: int) -> None:
    assert node_gpu_memory({"nvidia.com/gpu.memory": label}) == mib


@pytest.mark.parametrize(
    ("name", "gpus"), [("nvidia.com/mig-3g.40gb", 3), ("nvidia.com/mig-x", 0), ("nvidia.com/gpu", 0)]
)
def test_what_a_mig_instance_counts(name: str, gpus: int) -> None:
    assert mig_gpus(name) == gpus
