"""Disruption budgets and claims of devices, read."""

from __future__ import annotations

import re
from typing import Any

import pytest

from pumice.kube.api.encode_objects import object_of
from pumice.model.devices.claims import (
    AllocatedDevice,
    Allocation,
    CapacityPolicy,
    CounterUse,
    Device,
    DeviceClass,
    DeviceOption,
    DeviceRequest,
    ResourceClaim,
    ResourceSlice,
    SameAttribute,
)
from pumice.model.disruption import PodDisruptionBudget
from pumice.model.manifest import Decoder, ManifestError
from pumice.model.manifest.claims import COUNTERS_MAX
from pumice.model.pod import LabelSelector, NodeSelectorTerm, Requirement
from pumice.testing.devices import claim, claim_template, offered

WEB = LabelSelector((Requirement("app", "In", ("web",)),))
HERE = (NodeSelectorTerm(fields=(Requirement("metadata.name", "In", ("n",)),)),)
SHARED = Device(
    "0",
    capacity=(("d/cores", 8.0), ("d/memory", 80.0)),
    multiple=True,
    policies=(
        ("d/cores", CapacityPolicy(1.0, values=(1.0, 2.0, 4.0))),
        ("d/memory", CapacityPolicy(minimum=10.0, maximum=40.0, step=0.5)),
    ),
)
METADATA = {"namespace": "ns", "name": "x"}


def read(kind: str, version: str, **parts: Any) -> Any:
    return Decoder().decode({"apiVersion": version, "kind": kind, "metadata": METADATA, **parts})


@pytest.mark.parametrize(
    ("spec", "status", "found"),
    [
        pytest.param(
            {"selector": {"matchLabels": {"app": "web"}}, "minAvailable": 1},
            {"disruptionsAllowed": 2, "disruptedPods": {"b": "2026-01-01T00:00:00Z", "a": "2026-01-01T00:00:00Z"}},
            PodDisruptionBudget("ns", "x", WEB, 2, ("a", "b")),
            id="one that its controller has seen",
        ),
        pytest.param({"selector": {}}, {}, PodDisruptionBudget("ns", "x", LabelSelector(), 0), id="one it has not"),
        pytest.param({}, {}, PodDisruptionBudget("ns", "x", None, 0), id="one that says nothing"),
    ],
)
def test_a_budget(spec: Any, status: Any, found: PodDisruptionBudget) -> None:
    assert read("PodDisruptionBudget", "policy/v1", spec=spec, status=status) == found


def test_a_budget_that_allows_less_than_nothing() -> None:
    with pytest.raises(ManifestError, match="disruptionsAllowed"):
        read("PodDisruptionBudget", "policy/v1", status={"disruptionsAllowed": -1})


def devices(*requests: Any) -> Any:
    return {"devices": {"requests": list(requests)}}


@pytest.mark.parametrize(
    ("spec", "found"),
    [
        pytest.param({}, (), id="nothing"),
        pytest.param(devices({"exactly": {"deviceClassName": "gpu", "count": 2}}), (("gpu", 2),), id="so many"),
        pytest.param(devices({"exactly": {"deviceClassName": "gpu"}}), (("gpu", 1),), id="one without a number"),
        pytest.param(devices({"deviceClassName": "gpu", "count": 3}), (("gpu", 3),), id="as in v1beta1"),
        pytest.param(
            devices({"firstAvailable": [{"deviceClassName": "big"}, {"deviceClassName": "small", "count": 2}]}),
            (("big", 1),),
            id="of several the first",
        ),
        pytest.param(
            devices(
                {"exactly": {"deviceClassName": "nic"}},
                {"exactly": {"deviceClassName": "gpu"}},
                {"exactly": {"deviceClassName": "nic", "count": 4}},
            ),
            (("gpu", 1), ("nic", 5)),
            id="by class",
        ),
    ],
)
def test_a_claim_and_a_template(spec: Any, found: tuple[tuple[str, int], ...]) -> None:
    claim = read("ResourceClaim", "resource.k8s.io/v1", spec=spec)
    template = read("ResourceClaimTemplate", "resource.k8s.io/v1beta1", spec={"spec": spec})
    assert claim.devices == found
    assert claim.requests == template.requests


@pytest.mark.parametrize(
    "value",
    [
        PodDisruptionBudget("ns", "x", WEB, 2, ("a",)),
        PodDisruptionBudget("ns", "x", LabelSelector(), 0),
        PodDisruptionBudget("ns", "x"),
        claim("x", gpu=2, nic=1),
        claim_template("x", 'device.driver == "d"', gpu=2),
        ResourceClaim(
            "ns",
            "x",
            (DeviceRequest("r", (DeviceOption("big", name="a"), DeviceOption("small", 2, "b", every=True))),),
            (SameAttribute("d/numa", ("r",)),),
            {"queue": "q"},
            "u",
            Allocation((AllocatedDevice("r/a", "d", "p", "0"),), HERE),
            ("u-1", "u-2"),
        ),
        ResourceClaim(
            "ns",
            "x",
            (DeviceRequest("r", (DeviceOption("gpu", capacity=(("d/memory", 2.5),)),)),),
            (SameAttribute("d/index", distinct=True),),
            allocation=Allocation((AllocatedDevice("r", "d", "p", "0", (("d/memory", 2.5),)),)),
            for_pod="u",
        ),
        DeviceClass("gpu", ('device.attributes["d"].model == "m"',)),
        DeviceClass("gpu", extended_resource="example.com/gpu", creation=1_700_000_000.0),
        ResourceSlice("n-d", "d", "n", "n", devices=(SHARED,)),
        offered("n", each=({"model": "m", "d/numa": 1, "healthy": True, "sick": False},)),
        offered("", 2, nodes=HERE, generation=3, slice_count=2),
        offered("", 1),
        offered("n", counters=(CounterUse("gpu-0", "memory", 80_000.0), CounterUse("gpu-0", "slices", 1500.0))),
        ResourceSlice(
            "n-d", "d", "n", "n", devices=(Device("0", consumes=(CounterUse("gpu-0", "memory", 10_000.0),)),)
        ),
    ],
)
def test_what_is_written_down_is_read_as_it_was(value: Any) -> None:
    assert Decoder().decode(object_of(value)) == value


def with_policy(**policy: Any) -> Any:
    device = {"name": "0", "capacity": {"d/memory": {"value": "80", "requestPolicy": policy}}}
    return {"driver": "d", "nodeName": "n", "devices": [device]}


@pytest.mark.parametrize(
    ("kind", "spec", "why"),
    [
        pytest.param(
            "DeviceClass",
            {"extendedResourceName": "cpu"},
            'spec.extendedResourceName: found "cpu", wanted the name of an extended resource, as example.com/gpu',
            id="a resource of Kubernetes",
        ),
        pytest.param(
            "ResourceSlice",
            with_policy(validRange={"min": "1", "step": "0"}),
            'spec.devices[0].capacity.d/memory.requestPolicy.validRange.step: found "0", wanted more than 0',
            id="steps of nothing",
        ),
        pytest.param(
            "ResourceSlice",
            with_policy(validValues=["1", "many"]),
            'spec.devices[0].capacity.d/memory.requestPolicy.validValues[1]: found "many", wanted a quantity',
            id="a value that is no quantity",
        ),
    ],
)
def test_what_cannot_be_read_of_devices_is_named(kind: str, spec: Any, why: str) -> None:
    with pytest.raises(ManifestError, match=re.escape(why)):
        read(kind, "resource.k8s.io/v1", spec=spec)


def test_a_claim_is_for_the_pod_that_owns_it_only_if_a_scheduler_made_it_for_that() -> None:
    owner = {"kind": "Pod", "name": "a", "uid": "u", "controller": True}
    mark = {"resource.kubernetes.io/extended-resource-claim": "true"}
    found = [
        Decoder().decode(
            {
                "apiVersion": "resource.k8s.io/v1",
                "kind": "ResourceClaim",
                "metadata": {**METADATA, "annotations": annotations, "ownerReferences": [owner]},
            }
        )
        for annotations in ({}, mark)
    ]
    assert [each.for_pod for each in found if isinstance(each, ResourceClaim)] == ["", "u"]


def test_a_device_that_is_shared_and_consumes_counters_is_never_given() -> None:
    uses = [{"counterSet": "gpu", "counters": {"memory": {"value": "1"}}}]
    device = {"name": "0", "allowMultipleAllocations": True, "consumesCounters": uses}
    found = read("ResourceSlice", "resource.k8s.io/v1", spec={"driver": "d", "nodeName": "n", "devices": [device]})
    assert found.devices[0].unknown == "consumes counters and can be given several times"


def test_a_set_of_counters_is_bounded() -> None:
    counters = {str(i): {"value": "1"} for i in range(COUNTERS_MAX + 1)}
    spec = {"driver": "d", "sharedCounters": [{"name": "s", "counters": counters}]}
    why = f"spec.sharedCounters[0].counters: found {COUNTERS_MAX + 1} counters, wanted at most {COUNTERS_MAX}"
    with pytest.raises(ManifestError, match=re.escape(why)):
        read(
            "ResourceSlice", "resource.k8s.io/v1", spec=spec | {"sharedCounters": [{"name": "s", "counters": counters}]}
        )
