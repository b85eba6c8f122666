"""Claims of devices and of volumes against a real server: written before the bind, and taken back where it fails."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from pumice.kube.api.client import Client
from pumice.kube.api.errors import ApiError
from pumice.kube.api.kinds import (
    DEVICE_CLASSES,
    POD_GROUPS,
    QUEUES,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    STORAGE_CLASSES,
    VOLUME_CLAIMS,
    VOLUMES_KIND,
)
from pumice.kube.binding.claims import ClaimBinding
from pumice.kube.binding.volumes import VolumeBinding
from tests.kube.objects import create
from tests.kube.proxy import FaultProxy, answer, meanwhile
from tests.kube.scheduling import CLAIMED, FOLLOWED, Scheduling, gang_pod, pod_group, scheduling
from tests.kube.waiting import until_answered

BINDING = r"/binding$"
NODE = "claims-n1"  # pods of other tests may stay bound to theirs: no garbage collector runs here
EVERYTHING = tuple(FOLLOWED) + tuple(CLAIMED)


@asynccontextmanager
async def one_pod(through: Client, client: Client, namespace: str, **spec: Any) -> AsyncIterator[Scheduling]:
    """A pod ``a`` on its way, with a scheduler that knows of all that it claims."""
    queue = {"apiVersion": QUEUES.api_version, "kind": "Queue", "metadata": {"name": f"{namespace}-q"}}
    await client.post(QUEUES.list_path, queue)
    group = pod_group(namespace, "job", 1)
    group["spec"]["queue"] = f"{namespace}-q"
    await client.post(POD_GROUPS.namespace_path(namespace), group)
    found = gang_pod(namespace, "a", "job")
    found["spec"] |= spec
    await create(client, found)
    hooks = (VolumeBinding(through, (0.1,) * 20), ClaimBinding(through))
    try:
        async with scheduling(through, client, namespace, NODE, follow=EVERYTHING, hooks=hooks) as at_work:
            await at_work.observe("a")
            yield at_work
    finally:
        await client.delete(QUEUES.path(f"{namespace}-q"))


@pytest.fixture
async def devices(client: Client, namespace: str) -> AsyncIterator[str]:
    """A claim ``c`` of a device of which there is one, on the node of these tests."""
    name = f"{namespace}.example.com"
    device_class = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": name},
        "spec": {"selectors": [{"cel": {"expression": f'device.driver == "{name}"'}}]},
    }
    pool = {"name": NODE, "generation": 1, "resourceSliceCount": 1}
    offered = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": name},
        "spec": {"driver": name, "nodeName": NODE, "pool": pool, "devices": [{"name": "gpu-0"}]},
    }
    asked = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"namespace": namespace, "name": "c"},
        "spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": name}}]}},
    }
    await client.post(DEVICE_CLASSES.list_path, device_class)
    await client.post(RESOURCE_SLICES.list_path, offered)
    await client.post(RESOURCE_CLAIMS.namespace_path(namespace), asked)
    yield name
    await client.delete(RESOURCE_SLICES.path(name))
    await client.delete(DEVICE_CLASSES.path(name))


CLAIMING = {"resourceClaims": [{"name": "gpu", "resourceClaimName": "c"}]}


async def test_a_claim_says_what_it_was_given_before_its_pod_is_bound(
    through: Client, client: Client, namespace: str, crds: None, devices: str
) -> None:
    async with one_pod(through, client, namespace, **CLAIMING) as at_work:
        await at_work.step(1_000.0)
        assert await at_work.bound("a") == NODE
        pod = await at_work.pod("a")
        status = (await client.get(RESOURCE_CLAIMS.path(f"{namespace}/c")))["status"]
    assert [each["uid"] for each in status["reservedFor"]] == [pod["metadata"]["uid"]]
    assert [(e["driver"], e["pool"], e["device"]) for e in status["allocation"]["devices"]["results"]] == [
        (devices, NODE, "gpu-0")
    ]


async def test_a_claim_gives_back_what_it_got_where_the_bind_fails(
    through: Client, client: Client, proxy: FaultProxy, namespace: str, crds: None, devices: str
) -> None:
    proxy.on("POST", BINDING, answer(403, "Forbidden"))
    async with one_pod(through, client, namespace, **CLAIMING) as at_work:
        await at_work.step(1_000.0)
        await at_work.given_back("a")
        claim = await client.get(RESOURCE_CLAIMS.path(f"{namespace}/c"))
        assert not claim.get("status")
        await at_work.settled()


async def test_a_claim_that_is_deleted_between_decision_and_bind(
    through: Client, client: Client, proxy: FaultProxy, namespace: str, crds: None, devices: str
) -> None:
    path = RESOURCE_CLAIMS.path(f"{namespace}/c")
    proxy.on("GET", "/resourceclaims/c$", meanwhile(lambda: client.delete(path)))
    async with one_pod(through, client, namespace, **CLAIMING) as at_work:
        await at_work.step(1_000.0)
        await at_work.given_back("a")
        assert proxy.count("POST", BINDING) == 0
        await at_work.settled()


@pytest.fixture
async def volumes(client: Client, namespace: str) -> AsyncIterator[str]:
    """A claim ``c`` of a local volume, called as is given, that is not bound before a pod wants it."""
    name = f"{namespace}-local"
    of_class = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": "kubernetes.io/no-provisioner",
        "volumeBindingMode": "WaitForFirstConsumer",
    }
    term = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [NODE]}]}
    size = {"storage": "1Gi"}
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "storageClassName": name,
            "capacity": size,
            "accessModes": ["ReadWriteOnce"],
            "local": {"path": "/data"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
        },
    }
    spec = {"storageClassName": name, "accessModes": ["ReadWriteOnce"], "resources": {"requests": size}}
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"namespace": namespace, "name": "c"},
        "spec": spec,
    }
    await client.post(STORAGE_CLASSES.list_path, of_class)
    await client.post(VOLUMES_KIND.list_path, volume)
    await client.post(VOLUME_CLAIMS.namespace_path(namespace), claim)
    yield name
    await client.delete(VOLUMES_KIND.path(name))
    await client.delete(STORAGE_CLASSES.path(name))


USING = {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "c"}}]}


async def kept(client: Client, name: str) -> bool:
    """Whether a volume is kept for a claim."""
    return bool((await client.get(VOLUMES_KIND.path(name)))["spec"].get("claimRef"))


async def is_kept(client: Client, name: str) -> None:
    """Raises: ApiError while it is not."""
    if not await kept(client, name):
        raise ApiError(404, "NotYet", "nobody's volume")


async def test_a_volume_is_bound_before_its_pod(
    through: Client, client: Client, namespace: str, crds: None, volumes: str
) -> None:
    claim = VOLUME_CLAIMS.path(f"{namespace}/c")

    async def bind_as_a_controller_does() -> None:
        await until_answered(lambda: is_kept(client, volumes))
        await client.patch(claim, {"spec": {"volumeName": volumes}})
        await client.patch(f"{claim}/status", {"status": {"phase": "Bound"}})

    async with one_pod(through, client, namespace, **USING) as at_work:
        controller = asyncio.create_task(bind_as_a_controller_does())
        await at_work.step(1_000.0)
        assert await at_work.bound("a") == NODE
        await controller
        await at_work.settled()


async def test_a_volume_is_free_again_where_its_claim_was_deleted_meanwhile(
    through: Client, client: Client, proxy: FaultProxy, namespace: str, crds: None, volumes: str
) -> None:
    claim = VOLUME_CLAIMS.path(f"{namespace}/c")

    async def delete() -> None:
        await client.patch(claim, {"metadata": {"finalizers": None}})
        await client.delete(claim)

    proxy.on("PUT", f"/persistentvolumes/{volumes}$", meanwhile(delete))
    async with one_pod(through, client, namespace, **USING) as at_work:
        await at_work.step(1_000.0)
        await at_work.given_back("a")
        assert proxy.count("POST", BINDING) == 0
        assert not await kept(client, volumes)
        await at_work.settled()
