"""``pumice run`` under KAI's policy on a real API server: its queues and gangs, and what is written back."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from pumice.kube.access import bearer
from pumice.kube.client import Client
from pumice.kube.errors import ApiError
from pumice.kube.kinds import KAI_POD_GROUPS, KAI_QUEUES, NODES, PODS
from tests.kube import server as kube
from tests.kube.objects import create, install_crds, node, pod
from tests.kube.running import Running, eventually, running
from tests.kube.server import ApiServer

Obj = dict[str, Any]
GPU = "nvidia.com/gpu"


@pytest.fixture(scope="module")
def server(assets: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """A server of these tests alone: a scheduler sees everything that is on it."""
    with kube.running(assets, tmp_path_factory.mktemp("kai")) as started:
        yield started


@pytest.fixture
async def client(server: ApiServer) -> AsyncIterator[Client]:
    async with Client(bearer(server.url, server.token(), server.ssl_context())) as opened:
        await install_crds(opened)
        yield opened


class World:
    """A namespace with what is scheduled in it; queues and nodes go with the test."""

    def __init__(self, client: Client, namespace: str) -> None:
        self.client, self.namespace = client, namespace

    async def nodes(self, *gpus: int) -> None:
        for i, count in enumerate(gpus):
            made = node(f"{self.namespace}-n{i}")
            for amounts in made["status"].values():
                amounts[GPU] = str(count)
            await create(self.client, made)

    async def queue(self, name: str, quota: float = -1, parent: str = "", **spec: Any) -> None:
        free = {"quota": -1, "limit": -1, "overQuotaWeight": 1}
        resources = {"cpu": free, "memory": free, "gpu": {**free, "quota": quota}}
        made = {"parentQueue": parent, "resources": resources, **spec}
        await self.client.post(KAI_QUEUES.list_path, {**_of(KAI_QUEUES), "metadata": {"name": name}, "spec": made})

    async def gang(self, name: str, queue: str, size: int, gpus: int = 1, **spec: Any) -> None:
        metadata = {"namespace": self.namespace, "name": name}
        group = {**_of(KAI_POD_GROUPS), "metadata": metadata, "spec": {"minMember": size, "queue": queue, **spec}}
        await self.client.post(KAI_POD_GROUPS.namespace_path(self.namespace), group)
        await self.pods(*(f"{name}-{i}" for i in range(size)), gpus=gpus, annotations={"pod-group-name": name})

    async def pods(self, *names: str, gpus: int = 1, **metadata: Any) -> None:
        each = [gpu_pod(self.namespace, name, gpus, **metadata) for name in names]
        await create(self.client, *each)

    async def where(self) -> dict[str, str]:
        """Where each pod is that is not leaving, as the server has it."""
        found = await self.client.get(PODS.namespace_path(self.namespace))
        stays = [each for each in found["items"] if "deletionTimestamp" not in each["metadata"]]
        return {each["metadata"]["name"]: each["spec"].get("nodeName", "") for each in stays}

    async def bound(self, gang: str, size: int, what: str = "") -> dict[str, str]:
        """Wait until a gang has its nodes."""

        async def on() -> dict[str, str]:
            pods = await self.where()
            found = {name: where for name, where in pods.items() if name.startswith(f"{gang}-") and where}
            return found if len(found) == size else {}

        return await eventually(on, f"{gang} is not bound: {what}")

    async def group(self, name: str) -> Obj:
        found: Obj = await self.client.get(KAI_POD_GROUPS.path(f"{self.namespace}/{name}"))
        return found

    async def why(self, gang: str) -> Obj:
        """Wait until a gang says why it waits."""

        async def said() -> Obj:
            listed = (await self.group(gang)).get("status", {}).get("schedulingConditions") or [{}]
            return dict(listed[-1])

        return await eventually(said, f"{gang} says nothing")

    async def usage(self, queue: str, **wanted: Any) -> Obj:
        """Wait until a queue's status says this."""

        async def said() -> Obj:
            status: Obj = (await self.client.get(KAI_QUEUES.path(queue))).get("status", {})
            return status if all(status.get(key) == value for key, value in wanted.items()) else {}

        return await eventually(said, f"{queue} does not say {wanted}")


def _of(kind: Any) -> Obj:
    return {"apiVersion": kind.api_version, "kind": kind.kind}


def gpu_pod(namespace: str, name: str, gpus: int, **metadata: Any) -> Obj:
    made = pod(namespace, name, schedulerName="kai-scheduler", tolerations=[{"operator": "Exists"}])
    made["metadata"] |= metadata
    if gpus:
        amounts = made["spec"]["containers"][0]["resources"]
        amounts["requests"][GPU] = str(gpus)
        amounts["limits"] = {GPU: str(gpus)}
    return made


@pytest.fixture
async def world(client: Client, namespace: str) -> AsyncIterator[World]:
    made = World(client, namespace)
    yield made
    for kind in (PODS, KAI_POD_GROUPS):
        for obj in (await client.get(kind.namespace_path(namespace)))["items"]:
            with suppress(ApiError):
                await client.delete(kind.path(f"{namespace}/{obj['metadata']['name']}"))
    for kind in (NODES, KAI_QUEUES):
        for obj in (await client.get(kind.list_path))["items"]:
            await client.delete(kind.path(obj["metadata"]["name"]))


@pytest.fixture
def conf(tmp_path: Path) -> Path:
    path = tmp_path / "kai.conf"
    path.write_text("dialect: kai\n")
    return path


@pytest.fixture
def scheduler(server: ApiServer, conf: Path, namespace: str, tmp_path: Path) -> Iterator[Running]:
    """The scheduler itself."""
    flags = (f"--scheduler-conf={conf}", f"--leader-elect-resource-namespace={namespace}")
    with running(tmp_path, server.kubeconfig(), *flags) as it:
        yield it


async def test_a_gang_is_bound_whole_and_its_queue_says_what_it_has(world: World, scheduler: Running) -> None:
    await world.nodes(4, 4)
    await world.queue("top")
    await world.queue("team", parent="top")
    await world.gang("whole", "team", 3, gpus=2)
    await world.bound("whole", 3, scheduler.text)
    amounts = {"cpu": "3", "memory": "3Gi", GPU: "6"}
    status = await world.usage("top", allocated=amounts, childQueues=["team"])
    assert status["requested"] == amounts and status["allocatedNonPreemptible"] == {"cpu": "0", "memory": "0"}
    assert "kai.scheduler/last-start-timestamp" in (await world.group("whole"))["metadata"]["annotations"]
    await world.gang("large", "team", 3, gpus=2)
    condition = await world.why("large")
    assert condition["type"] == "UnschedulableOnNodePool" and condition["nodePool"] == "default"
    assert condition["reasons"][0]["reason"] == "PodSchedulingErrors", condition
    assert (await world.where())["large-0"] == ""


async def test_what_is_due_is_taken_back(world: World, scheduler: Running) -> None:
    await world.nodes(4)
    await world.queue("top")
    await world.queue("a", quota=2, parent="top")
    await world.queue("b", quota=2, parent="top")
    for i in range(4):
        await world.gang(f"over{i}", "a", 1)
        await world.bound(f"over{i}", 1, scheduler.text)
    await world.gang("due", "b", 2)
    await world.bound("due", 2, scheduler.text)
    assert len(await world.where()) == 4
    await world.usage("a", allocated={"cpu": "2", "memory": "2Gi", GPU: "2"})
