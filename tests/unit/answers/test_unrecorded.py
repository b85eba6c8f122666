"""Sentences about obstacles of which the cycle recorded nothing."""

from __future__ import annotations

from msgspec.structs import replace

from pumice.answers.codes import Code
from pumice.answers.lifts import Lift
from pumice.answers.unrecorded import sentence_of
from pumice.answers.world import Trials
from pumice.model.devices.claims import Allocation, DeviceOption, DeviceRequest, ResourceClaim
from pumice.model.node import Taint
from pumice.model.volumes import PersistentVolumeClaim
from pumice.testing.build import node, podgroup, pods, queue
from tests.unit.answers.test_ways import world


def sentence(code: Code) -> str:
    taint = Taint("dedicated", "ml", "NoSchedule")
    nodes = [
        replace(node("n0", cpu=1), taints=(taint,)),
        replace(node("n1", cpu=1), unschedulable=True),
        replace(node("n2", cpu=1), taints=(replace(taint, effect="PreferNoSchedule"),)),
    ]
    (pod,) = pods("ask", 1, cpu=1)
    pod = replace(pod, spec=replace(pod.spec, claim_names=tuple("abcd"), resource_claims=tuple("efgh")))
    claims = [
        PersistentVolumeClaim("ns", "a", class_name="local", size=5 * 2.0**30),
        PersistentVolumeClaim("ns", "b", volume="disk"),
        ResourceClaim("ns", "e", (DeviceRequest("gpu", (DeviceOption("gpu.example.com", count=2),)),)),
        ResourceClaim("ns", "f", (DeviceRequest("gpu", (DeviceOption("gpu.example.com", count=2),)),)),
        ResourceClaim("ns", "g", allocation=Allocation()),
    ]
    found = world("volcano", queue("default"), *nodes, *claims, podgroup("ask", 1), pod)
    return sentence_of(found, Trials(found, 0).base.outcome.tables, "ns/ask", Lift(code), 0)


def test_taints_and_cordons_are_named_with_their_nodes() -> None:
    assert sentence(Code.TAINT) == (
        "taints or cordons keep it off nodes: n0 (dedicated=ml:NoSchedule) and n1 (cordoned)"
    )


def test_claims_of_devices_are_named_with_what_they_ask_for() -> None:
    assert sentence(Code.DEVICE) == (
        "a claim of devices cannot be met: claims ns/e and ns/f for 2 devices of class gpu.example.com each have"
        " none, claim ns/g has its devices and claim ns/h does not exist"
    )


def test_claims_are_named_with_what_they_have() -> None:
    assert sentence(Code.VOLUME) == (
        "a volume cannot be bound or reached: claim ns/a of class local for 5 GiB has no volume,"
        " claim ns/b has volume disk and claims ns/c and ns/d do not exist"
    )
