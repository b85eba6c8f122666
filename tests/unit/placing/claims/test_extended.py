"""Extended resources that devices back: which nodes have them, what claim is made, and whose devices it takes."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from pumice.model.decisions import CLAIMS, ClaimGrant
from pumice.model.devices.claims import AllocatedDevice, Allocation, DeviceClass, ResourceClaim
from pumice.model.devices.extended import ExtendedRequests, RequestMapping, extended_requests
from pumice.model.devices.numa import ContainerRequests
from pumice.model.events import Gone, Seen
from pumice.model.pod import PodSpec
from pumice.model.resources import Resource
from pumice.state.store import Store
from pumice.testing.build import cluster, node, pod, podgroup, run
from pumice.testing.devices import claim, offered
from tests.unit.placing.claims.kit import CONF, GPU, claiming, on

NPU = "example.com/npu"
BACKED = DeviceClass("gpu.com", extended_resource=NPU)
IMPLICIT = "deviceclass.resource.kubernetes.io/gpu.com"


def asking(name: str, count: float, resource: str = NPU, **more: Any) -> Any:
    made = pod(name, name, **more)
    scalars = {**(made.spec.request.scalars or {}), resource: 1000.0 * count}
    return replace(made, spec=replace(made.spec, request=replace(made.spec.request, scalars=scalars)))


def world(*objects: Any, names: str = "ab") -> Store:
    groups = [podgroup(name, 1, phase="Inqueue", creation=float(i)) for i, name in enumerate(names)]
    return cluster(node("n1"), node("n2"), *objects, groups)


def plugged(name: str, count: int) -> Any:
    """A node whose device plugin offers the resource."""
    made = node(name)
    scalars = {**(made.allocatable.scalars or {}), NPU: 1000.0 * count}
    return replace(made, allocatable=replace(made.allocatable, scalars=scalars))


def grants(store: Store) -> dict[str, tuple[ClaimGrant, ...]]:
    return {bind.pod: bind.context.get(CLAIMS, ()) for bind in run(store, CONF).decisions}


def binds(store: Store) -> dict[str, str]:
    return dict(run(store, CONF).binds)


@pytest.mark.parametrize("resource", [NPU, IMPLICIT])
def test_a_pod_is_given_devices_where_the_node_does_not_offer_the_resource_itself(resource: str) -> None:
    (grant,) = grants(world(BACKED, offered("n2", 2), asking("a", 2, resource)))["ns/a"]
    assert (grant.claim, grant.allocation) == (
        "ns/a/extended-resources",
        Allocation(tuple(AllocatedDevice("container-0-request-1", "gpu.com", "n2", str(i)) for i in (0, 1)), on("n2")),
    )
    assert grant.extended is not None
    assert grant.extended.mappings == (RequestMapping(0, resource, "container-0-request-1"),)


def test_a_node_with_a_device_plugin_gives_the_resource_without_a_claim() -> None:
    store = world(BACKED, plugged("n1", 1), offered("n2", 1), asking("a", 1), asking("b", 1))
    found = grants(store)
    assert found.keys() == {"ns/a", "ns/b"}
    assert sorted(map(len, found.values())) == [0, 1]


def test_devices_of_a_node_with_a_device_plugin_are_not_given_for_the_resource() -> None:
    store = world(BACKED, plugged("n1", 1), offered("n1", 4), asking("a", 2))
    assert not binds(store)


def test_a_device_that_a_claim_holds_is_not_given_for_the_resource_and_the_other_way_round() -> None:
    store = world(BACKED, offered("n1", 1), claim("c", gpu_com=1), claiming("a", "c"), asking("b", 1))
    assert binds(store) == {"ns/a": "n1"}
    store = world(BACKED, offered("n1", 1), claim("c", gpu_com=1), asking("a", 1), claiming("b", "c"))
    assert binds(store) == {"ns/a": "n1"}


def test_more_than_the_devices_of_a_node_is_given_nowhere() -> None:
    assert not binds(world(BACKED, offered("n1", 1), offered("n2", 1), asking("a", 2)))


def test_without_a_class_that_names_the_resource_the_pod_waits() -> None:
    assert not binds(world(GPU, offered("n1", 1), asking("a", 1)))


def test_a_class_and_devices_that_come_later_are_taken_in() -> None:
    store = world(asking("a", 1, IMPLICIT))
    assert not binds(store)
    store.apply_all([Seen(GPU), Seen(offered("n2", 1))])
    assert binds(store) == {"ns/a": "n2"}
    store.apply_all([Gone(DeviceClass, "gpu.com")])
    assert not binds(store)


def test_a_pod_that_comes_after_its_class_is_taken_in() -> None:
    store = world(GPU, offered("n2", 1), asking("a", 1, "unknown.com/it"))
    assert not binds(store)
    store.apply_all([Seen(asking("b", 1, IMPLICIT))])
    assert binds(store) == {"ns/b": "n2"}


def test_the_newest_class_that_names_the_resource_backs_it() -> None:
    classes = BACKED, DeviceClass("new", ('device.driver == "new.com"',), NPU, creation=5.0)
    store = world(*classes, offered("n1", 1), offered("n2", 1, driver="new.com"), asking("a", 1))
    assert binds(store) == {"ns/a": "n2"}


def made(pod_uid: str) -> ResourceClaim:
    given = Allocation((AllocatedDevice("container-0-request-1", "gpu.com", "n1", "0"),), on("n1"))
    return replace(claim("made", gpu_com=1), allocation=given, for_pod=pod_uid, reserved_for=(pod_uid,))


def test_the_claim_of_a_running_pod_holds_its_device_and_it_counts_once() -> None:
    runs = asking("a", 1, on="n1")
    store = world(BACKED, offered("n1", 2), made(runs.uid), runs, asking("b", 1))
    (grant,) = grants(store)["ns/b"]
    assert grant.allocation is not None
    assert [each.device for each in grant.allocation.devices] == ["1"]


def test_a_decision_in_flight_holds_its_device_until_the_claim_is_seen() -> None:
    store = world(BACKED, offered("n1", 2), asking("a", 1))
    decisions = run(store, CONF).decisions
    store.assume(decisions)
    store.apply_all([Seen(asking("b", 1))])
    assert [each.device for (grant,) in grants(store).values() for each in grant.allocation.devices] == ["1"]  # type: ignore[union-attr]
    store.apply_all([Seen(made(decisions[0].uid))])
    held = [claim.key for claim in store.snapshot().tables.claims.objs]
    assert held == ["ns/made"], "the claim that was in flight is the one that was made"


def test_an_init_container_uses_devices_of_the_containers_after_it() -> None:
    two, one, three = (Resource(100.0, scalars={NPU: 1000.0 * count}) for count in (2, 1, 3))
    spec = PodSpec(Resource(), containers=ContainerRequests((one, two), ((one, True), (three, False))))
    found = extended_requests(spec, [(NPU, "gpu.com")])
    assert [(each.name, each.options[0].count) for each in found.requests] == [
        ("container-0-request-1", 1),
        ("container-2-request-1", 1),
        ("container-3-request-1", 2),
    ]
    assert [(each.container, each.request) for each in found.mappings if each.container == 1] == [
        (1, "container-2-request-1"),
        (1, "container-3-request-1"),
    ]


def test_the_largest_need_of_init_containers_is_enough_for_all_of_them() -> None:
    one, three = (Resource(scalars={NPU: 1000.0 * count}) for count in (1, 3))
    spec = PodSpec(Resource(), containers=ContainerRequests((Resource(10.0),), ((one, False), (three, False))))
    found = extended_requests(spec, [(NPU, "gpu.com")])
    assert [(each.name, each.options[0].count) for each in found.requests] == [("container-1-request-0", 3)]
    assert {each.request for each in found.mappings} == {"container-1-request-0"}


def test_a_pod_without_the_resource_asks_for_nothing() -> None:
    assert extended_requests(PodSpec(Resource(100.0)), [(NPU, "gpu.com")]) == ExtendedRequests()
